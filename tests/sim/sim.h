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
 * A network of engines in virtual time, see docs/design/simulator.md. A process runs one simulation
 * at a time. A run depends only on its attributes and on the calls of the test.
 *
 * Failures do not return: sim_fail() prints the case, writes its pcap and aborts.
 */
#define SIM_EP_MAX    17
#define SIM_ASYNC_MAX 256
#define SIM_US(n)     ((uint64_t)(n)*1000u)
#define SIM_MS(n)     ((uint64_t)(n)*1000000u)
#define SIM_PD	      7u /* the default protection domain */

struct sim;
struct sim_cq;

#define SIM_GROWTHS   32
#define SIM_GROWTH_NS 1000000 /* an endpoint gets more memory for contexts so late */

struct sim_async {
	enum ibv_event_type type;
	void *user;
};

/* An endpoint: an engine, and the state that the edge would keep for it. */
struct sim_ep {
	struct sim *sim;
	unsigned idx;
	struct ur_engine *engine;
	void *engine_memory;
	void *loss_memory[SIM_GROWTHS]; /* slabs that were added, [0, loss_growths) */
	unsigned loss_growths;
	uint64_t grow_ns; /* when the next are; UR_NEVER: none are wanted */
	struct ur_mem *mem;
	uint8_t mac[6];
	struct ur_gid gid4, gid6;
	struct sim_link link[SIM_EP_MAX]; /* to each endpoint */
	struct sim_port out;		  /* before all links; its queue is the transmit ring */
	struct sim_port in;		  /* after all links to this endpoint */
	uint64_t wake_ns;		  /* time of the scheduled turn; UR_NEVER: none */
	uint64_t turn_delay_ns;		  /* delay between an event and the resulting turn */
	unsigned tx_cap;		  /* descriptors of one output call */
	unsigned idle_turns;		  /* turns in a row without a frame or progress of time */
	uint64_t last_turn_ns, last_turn_frames;
	uint64_t stalled_until_ns; /* the endpoint does not run before, see sim_stall() */
	uint64_t blocked_until_ns; /* the transmit ring is full until then */
	uint64_t tx_frames, rx_frames, rx_bad_icrc; /* as the edge would count them */
	uint64_t lost_frames;			    /* frames of tx_frames that were lost */
	uint64_t rx_dropped;			    /* frames refused by input() */
	enum ur_drop last_drop;			    /* last result of input() */
	struct sim_async async[SIM_ASYNC_MAX];
	unsigned async_cnt;
	/* Gets the endpoint's frames instead of the engine, which then has nothing to do. */
	void (*intercept)(struct sim_ep *ep, const struct ur_packet *p, const uint8_t *frame,
			  uint32_t len);
	void *foreign_arg;
};

struct sim_attr {
	const char *name; /* name of the case; a replay needs it and `number` */
	uint64_t number, seed;
	unsigned eps; /* [2, SIM_EP_MAX] */
	uint32_t max_qp, max_mr;
	uint32_t window, ackreq_every;
	uint32_t contexts; /* size of each pool of mode reorder, and for spraying */
	struct {
		uint32_t slabs, max, bytes; /* slabs at first and at most, of so many bytes */
		uint32_t first;		    /* span of the first tier; 0: UROCE_LOSS_FIRST or 64 */
	} loss;				    /* memory for QPs with a gap in mode extended */
	uint32_t reorder_slots;
	uint64_t time_wait_ns;
	uint64_t turn_delay_ns;
	unsigned tx_cap;
	bool fast;		   /* for measurements: no trace, no validation after each event */
	bool unwatched;		   /* packets are forged, so the wire oracle is switched off */
	struct sim_link_attr link; /* all directions */
	const struct ur_engine_qos *qos;     /* NULL: the default */
	const struct ur_adm_attr *admission; /* NULL: plain */
	const struct ur_cc_attr *pacing;     /* NULL: none */
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

/* The verdict of a hook. SIM_KEEP: the hook has a copy and will deliver it later. */
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

	/* The n-th frame for which mask_counts() is true (NULL: all frames) is lost if bit n is set. */
	uint64_t drop_mask;
	unsigned counted;
	bool (*mask_counts)(const struct ur_packet *p);

	/* Called for every frame sent. It may change the frame, and must then call sim_reseal(). */
	enum sim_verdict (*hook)(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				 const struct ur_packet *p);
	void *hook_arg;

	/* Called after every call of output, which made `n` packets. `could`: a queue was ready. */
	void (*on_output)(struct sim *s, struct sim_ep *ep, bool could, unsigned n);
	void *output_arg;

	/* Called after every event. */
	void (*after)(struct sim *s, void *arg);
	void *after_arg;

	uint64_t events;
};

/* Default attributes: two endpoints, 10 Gb/s, 5 us, no impairment. */
struct sim_attr sim_defaults(const char *name, uint64_t number);

struct sim *sim_new(const struct sim_attr *attr);
void sim_free(struct sim *s);

/* Schedules a turn of the endpoint's loop (after a doorbell, an arrival, ...). */
void sim_kick(struct sim_ep *ep);
/* Calls fn at that time. */
void sim_call_at(struct sim *s, uint64_t at_ns, void (*fn)(struct sim *s, void *arg), void *arg);

/*
 * Runs until done(arg) is true (NULL: until no event is left), for at most limit_ns. Returns false
 * if the limit was reached; sim_must_run() fails the case then.
 */
bool sim_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns);
void sim_must_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns);
/* Runs for that time. */
void sim_sleep(struct sim *s, uint64_t ns);

/* Delivers a frame to the endpoint now, as if from the network. The bytes are copied. */
void sim_inject(struct sim_ep *to, const uint8_t *frame, uint32_t len);
/* The same at a later time. */
void sim_inject_at(struct sim_ep *to, uint64_t at_ns, const uint8_t *frame, uint32_t len);

/* Sends a frame from the endpoint, as if its engine had made it. It may be marked in transit. */
void sim_send(struct sim_ep *from, uint8_t *frame, uint32_t len);

/* The endpoint with the packet's destination address, or NULL. */
struct sim_ep *sim_destination(struct sim *s, const struct ur_packet *p);

/*
 * The endpoint does not run for that time, like a thread that is not scheduled. Frames wait in its
 * receive ring; afterwards it reads all of them before it checks timers.
 */
void sim_stall(struct sim_ep *ep, uint64_t ns);

/* Corrects the ICRC of a changed frame. */
void sim_reseal(uint8_t *frame, const struct ur_packet *p);

/* Completes a descriptor to a frame: payload, pad, ICRC. Returns its length; `out` has 9 KB. */
uint32_t sim_build_frame(const struct ur_tx *tx, uint8_t *out);

_Noreturn void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define SIM_CHECK(s, cond, ...)                                                                    \
	do {                                                                                       \
		if (!(cond))                                                                       \
			sim_fail((s), __VA_ARGS__);                                                \
	} while (0)

/* True if UROCE_SIM_REPLAY names a case of `name`; sets its number. */
bool sim_replay(const char *name, uint64_t *number);
/* True if UROCE_SIM_REPLAY is set. */
bool sim_replaying(void);

/*
 * The name of a case in a mode, such as "extended.send", valid until the next call of this
 * function. Each mode has its own numbering of cases.
 */
const char *sim_mode_case(enum ur_mode mode, const char *name);

#endif
