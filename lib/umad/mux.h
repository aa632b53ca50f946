/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The multiplexer: one port's QP0 and QP1, shared by programs as the kernel shares them through /dev/infiniband/umad.
 *
 * A program registers agents. Each agent has 32 bits of its own, which the multiplexer stores in the upper half of the
 * TransactionID of every request that the agent sends; a response returns to the agent that they name. A
 * request from the fabric goes to the agent that has registered its class, version and method. Requests with a timeout are
 * sent again, and returned with ETIMEDOUT in the end. RMPP (IBA 13.6) is done here, for agents that ask for it:
 * programs see whole responses.
 *
 * Not supported: RMPP in requests (GetMulti), which no program of infiniband-diags or OpenSM sends.
 *
 * Time is an argument, in nanoseconds. Bytes from the fabric are not trusted; those from programs are checked as well.
 * Thread class: one thread.
 */
#ifndef UR_UMAD_MUX_H
#define UR_UMAD_MUX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "umad/message.h"

#define MUX_NEVER UINT64_MAX

#define MUX_TRANSFERS_MAX 8192			/* of one program, under way, */
#define MUX_BYTES_MAX	  (UINT32_C(128) << 20) /* and of their bytes together */

/* Counters. X(name, help) */
#define MUX_COUNTERS(X)                                                                            \
	X(sent, "MADs from programs")                                                              \
	X(delivered, "MADs to programs")                                                           \
	X(retried, "requests sent again")                                                          \
	X(timed_out, "requests never answered")                                                    \
	X(unmatched_responses, "responses that no program waits for")                              \
	X(unmatched_requests, "requests that no program has registered for")                       \
	X(refused,                                                                                 \
	  "MADs from programs that are invalid, too many, or whose agent is not registered")       \
	X(rmpp_invalid, "RMPP packets that fit no transfer")                                       \
	X(rmpp_aborted, "RMPP transfers that ended early")

struct mux_counters {
#define X(name, help) uint64_t name;
	MUX_COUNTERS(X)
#undef X
};

struct mux_ops {
	/* Sends a MAD of 256 bytes; it may be for this port itself. */
	void (*send)(void *arg, const uint8_t *mad, const struct ib_mad_addr *to);
	/* Gives a program a MAD. `program` is what mux_open() was called with. */
	void (*deliver)(void *arg, void *program, const struct ur_umad_mad *head,
			const uint8_t *mad);
};

struct mux_agent {
	bool used;
	uint32_t tid_high;
	struct ur_umad_register reg;
};

struct mux_program {
	TAILQ_ENTRY(mux_program) link;
	void *arg;
	uint32_t transfers; /* under way */
	size_t bytes;	    /* of their messages */
	struct mux_agent agents[UR_UMAD_AGENTS];
};

/*
 * What an agent has sent and the multiplexer still needs: a request that waits for its response, or an RMPP
 * message of which segments [acked + 1, segments] are not acknowledged.
 */
struct mux_transfer {
	TAILQ_ENTRY(mux_transfer) link;
	struct mux_program *program;
	struct ib_user_mad umad;
	uint8_t *mad;
	uint32_t length;
	uint64_t deadline;
	uint32_t retries_left;
	bool waits; /* for a response */
	/* segments is 0 without RMPP. Sent: [1, next); the receiver permits [1, window]. */
	uint32_t segments, acked, next, window;
};

/* An RMPP response on its way in, or one that is complete and may have to be acknowledged again (mad is NULL). */
struct mux_assembly {
	TAILQ_ENTRY(mux_assembly) link;
	struct mux_program *program;
	struct ib_user_mad umad;
	uint64_t tid;
	uint8_t mgmt_class;
	uint64_t deadline;
	uint8_t *mad;	   /* header, and data of all segments */
	uint8_t *have;	   /* one byte for each segment */
	uint32_t room;	   /* segments that fit in mad */
	uint32_t received; /* all of [1, received] have arrived */
	uint32_t window;   /* [1, window] may arrive */
	uint32_t last;	   /* number of the last segment; 0 if not known */
	uint32_t last_payload;
};

struct mux {
	const struct mux_ops *ops;
	void *arg;
	uint64_t seed;	 /* of the upper halves of TransactionIDs */
	uint64_t agents; /* registered so far */
	TAILQ_HEAD(, mux_program) programs;
	TAILQ_HEAD(, mux_transfer) transfers;
	TAILQ_HEAD(, mux_assembly) assemblies;
	struct mux_counters counters;
};

/* `seed`: random; what a program's TransactionIDs begin with cannot be guessed without it. */
void mux_init(struct mux *m, const struct mux_ops *ops, void *arg, uint64_t seed);
void mux_fini(struct mux *m);

/* NULL: out of memory. */
struct mux_program *mux_open(struct mux *m, void *program);
/* Ends the program's agents and whatever it waits for. */
void mux_close(struct mux *m, struct mux_program *p);

/*
 * The agent's number in the program, or -EINVAL: the registration is invalid, or another agent has one of its methods;
 * -ENOMEM: the program has 32 agents.
 */
int mux_register(struct mux *m, struct mux_program *p, const struct ur_umad_register *reg);
/* 0, or -EINVAL. */
int mux_unregister(struct mux *m, struct mux_program *p, uint32_t agent);

/* Sends what a program wrote: head->length bytes. What is invalid is counted. */
void mux_submit(struct mux *m, struct mux_program *p, const struct ur_umad_mad *head,
		const uint8_t *mad, uint64_t now);

/* A MAD for this port. False: it is a request that no agent has registered for. */
bool mux_input(struct mux *m, const uint8_t *mad, const struct ib_mad_addr *from, uint64_t now);

/*
 * Makes such a request the response that says so; `is_served`: the node serves its class, apart from this request. False: it
 * has no response, by its method or as a part of an RMPP message that does not begin it.
 */
bool mux_refuse(const struct mux *m, uint8_t mad[UR_UMAD_MAD_BYTES], bool is_served);

/* When mux_expire() has to be called, or MUX_NEVER. */
uint64_t mux_deadline(const struct mux *m);
void mux_expire(struct mux *m, uint64_t now);

#endif
