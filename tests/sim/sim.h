/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_SIM_H
#define UR_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/inside.h"
#include "link.h"
#include "port.h"
#include "rng.h"
#include "trace.h"
#include "wire_oracle.h"

/*
 * A network of engines in virtual time. See docs/design/simulator.md. One simulation at a time in a
 * process; everything is a function of its attributes and of what the test does.
 *
 * Failures do not return: sim_fail() prints the case, writes its pcap and aborts.
 */
#define SIM_EP_MAX    17
#define SIM_ASYNC_MAX 256
#define SIM_US(n)     ((uint64_t)(n)*1000u)
#define SIM_MS(n)     ((uint64_t)(n)*1000000u)
#define SIM_PD	      7u /* the protection domain used unless a test wants another */

struct sim;
struct sim_cq;

struct sim_async {
	enum ibv_event_type type;
	void *user;
};

/* An endpoint: one engine and what the edge would keep beside it. */
struct sim_ep {
	struct sim *sim;
	unsigned idx;
	struct ur_engine *engine;
	void *engine_memory;
	struct ur_mem *mem;
	uint8_t mac[6];
	struct ur_gid gid4, gid6;
	struct sim_link link[SIM_EP_MAX]; /* to each endpoint */
	struct sim_port out;		  /* before all links; its queue is the transmit ring */
	struct sim_port in;		  /* behind all links to this endpoint */
	uint64_t wake_ns;		  /* the turn that is scheduled, UR_NEVER: none */
	uint64_t turn_delay_ns;		  /* from an event to the turn it asks for */
	unsigned tx_cap;		  /* descriptors of one output call */
	unsigned idle_turns;		  /* turns in a row without a frame or progress of time */
	uint64_t last_turn_ns, last_turn_frames;
	uint64_t stalled_until_ns;		    /* nothing runs before: sim_stall() */
	uint64_t blocked_until_ns;		    /* the transmit ring is full before */
	uint64_t tx_frames, rx_frames, rx_bad_icrc; /* as the edge sees them */
	uint64_t lost_frames;			    /* of tx_frames */
	uint64_t rx_dropped;			    /* input() said no */
	enum ur_drop last_drop;			    /* what input() said last */
	struct sim_async async[SIM_ASYNC_MAX];
	unsigned async_cnt;
	/* Takes the endpoint's frames in place of the engine, which has nothing then. */
	void (*intercept)(struct sim_ep *ep, const struct ur_packet *p, const uint8_t *frame,
			  uint32_t len);
	void *foreign_arg;
};

struct sim_attr {
	const char *name; /* of the case, with `number` what a replay is told */
	uint64_t number, seed;
	unsigned eps; /* [2, SIM_EP_MAX] */
	uint32_t max_qp, max_mr;
	uint32_t window, ackreq_every;
	uint32_t contexts; /* in each of the pools for QPs with a gap */
	uint32_t reorder_slots;
	uint64_t time_wait_ns;
	uint64_t turn_delay_ns;
	unsigned tx_cap;
	bool fast;		   /* for measurements: no trace, no validation after each event */
	bool unwatched;		   /* an end is told lies: what it says on the wire is not judged */
	struct sim_link_attr link; /* all directions */
	const struct ur_engine_qos *qos;     /* NULL: the default */
	const struct ur_adm_attr *admission; /* NULL: plain */
	const struct ur_pacing_attr *pacing; /* NULL: none */
};

enum sim_event_kind {
	SIM_EVENT_ARRIVAL, /* of a frame at the port before the endpoint */
	SIM_EVENT_FRAME,
	SIM_EVENT_TURN,
	SIM_EVENT_CALL,
};

struct sim_event {
	uint64_t at_ns, order;
	enum sim_event_kind kind;
	struct sim_ep *ep;
	uint8_t *frame;
	uint32_t len;
	void (*call)(struct sim *s, void *arg);
	void *arg;
};

/* What a hook says about a frame. SIM_KEEP: it has a copy and will deliver that some time. */
enum sim_verdict { SIM_PASS, SIM_DROP, SIM_KEEP };

struct sim {
	struct sim_attr attr;
	struct sim_rng rng;
	uint64_t now_ns, order;
	struct sim_event *heap;
	unsigned heap_cnt, heap_cap;
	struct sim_ep ep[SIM_EP_MAX];
	struct sim_trace trace;
	struct sim_wire *wire; /* NULL: unwatched */

	/* The n-th frame for which mask_counts() is true (NULL: all) is lost when bit n is set. */
	uint64_t drop_mask;
	unsigned counted;
	bool (*mask_counts)(const struct ur_packet *p);

	/* Sees every frame as it leaves. It may change it and then reseals it with sim_reseal(). */
	enum sim_verdict (*hook)(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				 const struct ur_packet *p);
	void *hook_arg;

	/* Called after every call of output, which made n packets; `could`: a queue was ready. */
	void (*on_output)(struct sim *s, struct sim_ep *ep, bool could, unsigned n);
	void *output_arg;

	/* Called after every event. */
	void (*after)(struct sim *s, void *arg);
	void *after_arg;

	uint64_t events;
};

/* Sensible attributes: two endpoints, 10 Gb/s, 5 us, nothing goes wrong. */
struct sim_attr sim_defaults(const char *name, uint64_t number);

struct sim *sim_new(const struct sim_attr *attr);
void sim_free(struct sim *s);

/* Asks for a turn of the endpoint's loop (after a doorbell, an arrival, ...). */
void sim_kick(struct sim_ep *ep);
/* Calls fn at that time. */
void sim_call_at(struct sim *s, uint64_t at_ns, void (*fn)(struct sim *s, void *arg), void *arg);

/*
 * Runs until done(arg) (NULL: until nothing is left to do), at most until limit_ns from now.
 * Returns whether it got there; sim_must_run() fails the case otherwise.
 */
bool sim_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns);
void sim_must_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns);
/* Lets that much time pass. */
void sim_sleep(struct sim *s, uint64_t ns);

/* Hands a frame to the endpoint now, as if it had come from the network. The bytes are copied. */
void sim_inject(struct sim_ep *to, const uint8_t *frame, uint32_t len);
/* The same at a later time. */
void sim_inject_at(struct sim_ep *to, uint64_t at_ns, const uint8_t *frame, uint32_t len);

/* Sends a frame from the endpoint, as if its engine had made it. It may be marked on the way. */
void sim_send(struct sim_ep *from, uint8_t *frame, uint32_t len);

/* The endpoint whose address the packet is for, or NULL. */
struct sim_ep *sim_destination(struct sim *s, const struct ur_packet *p);

/*
 * The endpoint does not run for so long, as a thread that is not scheduled: frames wait in its
 * receive ring. Then it reads all of them before it looks at a timer.
 */
void sim_stall(struct sim_ep *ep, uint64_t ns);

/* Makes the ICRC of a changed frame right again. */
void sim_reseal(uint8_t *frame, const struct ur_packet *p);

/* Completes a descriptor to a frame: payload, pad, ICRC. Returns its length; `out` has 9 KB. */
uint32_t sim_build_frame(const struct ur_tx *tx, uint8_t *out);

_Noreturn void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define SIM_CHECK(s, cond, ...)                                                                    \
	do {                                                                                       \
		if (!(cond))                                                                       \
			sim_fail((s), __VA_ARGS__);                                                \
	} while (0)

/* The case named in UROCE_SIM_REPLAY, if it is one of `name`'s. */
bool sim_replay(const char *name, uint64_t *number);
/* Whether a replay was asked for at all. */
bool sim_replaying(void);

/*
 * The name of a case in a mode, "extended.send": good until the next call of this function. Cases
 * of a mode are numbered on their own.
 */
const char *sim_mode_case(enum ur_mode mode, const char *name);

#endif
