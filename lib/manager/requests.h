/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_REQUESTS_H
#define UR_MANAGER_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "wire/mad.h"

/*
 * The requests of a manager: MADs that wait to be sent, or for their response (docs/design/management.md).
 * It sees neither frames nor agents: ur_requests_output() says which MAD to send, ur_requests_input() is
 * given what arrives.
 *
 * A request is sent again, unchanged, each time its timeout passes, until its retries are used up. Each request
 * ends in exactly one answer: the response, or "timed out".
 *
 * Times are in ns and never go back. Nothing is allocated. Thread class: one thread.
 */

/*
 * With attr.start the window adapts, MGR-WINDOW-01: it grows by one with each response, up to attr.window, while responses
 * take at most twice as long as the fastest from as many hops; otherwise it shrinks by an eighth, once in a response's
 * time, and when one times out, down to attr.start. So a path whose every hop is a little slower is filled all the same, and one that is full is not
 * filled more.
 */

/* A MAD and its address. */
struct ur_mgr_mad {
	/*
	 * Of the other end. 0: one that has no LID, which is the neighbour or, for an SMP with a directed route, the
	 * end of the route.
	 */
	uint16_t lid;
	uint8_t bytes[UR_MAD_BYTES];
};

#define UR_REQUESTS_WINDOW_MAX 65536

struct ur_requests_attr {
	uint32_t window;     /* requests at the same time, 1 to UR_REQUESTS_WINDOW_MAX */
	uint32_t start;	     /* 0: always `window`; else at first so many, and as many as pay */
	uint32_t retries;    /* a request is sent at most 1 + retries times */
	uint64_t timeout_ns; /* from each sending, more than 0 */
	uint64_t seed;	     /* random and secret: the key of the TransactionIDs */
};

/* X(name, meaning) */
#define UR_REQUESTS_COUNTERS(X)                                                                    \
	X(sent, "requests sent for the first time")                                                \
	X(resent, "requests sent again")                                                           \
	X(answered, "requests answered")                                                           \
	X(timed_out, "requests without a response after all retries")                              \
	X(busy, "responses that ask for a later request (IBA 13.4.7)")                             \
	X(repeated, "responses to a request that was answered already")                            \
	X(late, "responses to a request that had timed out")                                       \
	X(mismatched, "TransactionID known, but another class, attribute, route or sender")        \
	X(unknown, "responses with a TransactionID that was never sent, or long ago")              \
	X(not_response, "other MADs, such as requests and traps")

struct ur_requests_counters {
#define X(name, meaning) uint64_t name;
	UR_REQUESTS_COUNTERS(X)
#undef X
};

enum ur_request_state {
	UR_REQUEST_FREE,
	UR_REQUEST_TO_SEND, /* in to_send */
	UR_REQUEST_WAITS,   /* in waiting, in order of deadlines */
};

struct ur_request {
	TAILQ_ENTRY(ur_request) link; /* free, to_send or waiting */
	uint64_t tid;		      /* its TransactionID; FREE: that of the last one */
	uint64_t cookie;
	uint64_t posted_ns, deadline_ns;
	uint32_t sendings;
	uint8_t state;	     /* enum ur_request_state */
	bool last_timed_out; /* FREE: how the last one ended */
	struct ur_mgr_mad mad;
};

TAILQ_HEAD(ur_request_list, ur_request);

struct ur_requests {
	struct ur_requests_attr attr;
	struct ur_requests_counters counters;
	uint64_t made;		 /* TransactionIDs so far */
	uint32_t open;		 /* requests that are not FREE */
	uint32_t limit;		 /* of `open`: the window now */
	uint32_t stretch;	 /* smoothed time of a response, by the least of its hops, of 256 */
	uint64_t cut_ns;	 /* the window may shrink again then */
	uint64_t least_ns[64];	 /* time of a response, by hops; UINT64_MAX: none yet */
	struct ur_request *slot; /* [0, attr.window) */
	struct ur_request_list free, to_send, waiting;
};

/* How a request ended. */
struct ur_mgr_answer {
	uint64_t cookie;	      /* as given to ur_requests_post() */
	const struct ur_mgr_mad *mad; /* the response; NULL: timed out. Valid until the next post */
	uint64_t waited_ns;	      /* since it was posted */
};

size_t ur_requests_size(uint32_t window);
/* `memory`: ur_requests_size(attr->window) bytes, aligned to 8, in use until the end. */
void ur_requests_init(struct ur_requests *r, void *memory, const struct ur_requests_attr *attr);

/* True if ur_requests_post() would accept a request. */
static inline bool ur_requests_have_room(const struct ur_requests *r)
{
	return r->open < r->limit;
}

/*
 * Posts a request, a MAD with method Get or Set; it is copied, and its TransactionID replaced. False: the window is
 * full.
 */
bool ur_requests_post(struct ur_requests *r, const struct ur_mgr_mad *mad, uint64_t cookie,
		      uint64_t now_ns);

/* Writes the next MAD to send. False: there is none now. */
bool ur_requests_output(struct ur_requests *r, uint64_t now_ns, struct ur_mgr_mad *out);

/*
 * A MAD has arrived; mad->lid is the sender's. True: it is the response to a request, which ends here. False: it was
 * counted and is ignored.
 */
bool ur_requests_input(struct ur_requests *r, const struct ur_mgr_mad *mad, uint64_t now_ns,
		       struct ur_mgr_answer *answer);

/*
 * Time has passed. Requests with retries left become ready to be sent again. True: one without timed out, and `answer`
 * tells which; call again.
 */
bool ur_requests_expire(struct ur_requests *r, uint64_t now_ns, struct ur_mgr_answer *answer);

/* When to call ur_requests_expire(); UINT64_MAX: nothing waits. */
uint64_t ur_requests_next_deadline(const struct ur_requests *r);

/* Forgets all open requests; they end without an answer. */
void ur_requests_cancel_all(struct ur_requests *r);

/* Asserts what must always hold. For tests. */
void ur_requests_validate(const struct ur_requests *r);

#endif
