/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_PROTO_H
#define PERF_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uroce/uroce.h"

/*
 * The messages between client and server. Each of these lists is one message: its fields travel in
 * this order as 64-bit big-endian numbers. Pure encoding; control.h carries the messages.
 *
 * The client sends requests, the server answers with the same sequence number. PING, from both, is
 * not answered: the transport's acknowledgement is enough.
 */
#define X(name, unit, help) +1
/* A result holds all of these: ends whose lists differ in length are incompatible. */
enum { PERF_NUMBERS = 0 UROCE_COUNTERS(X) UROCE_OBJECTS(X) };
#undef X
#define PERF_PROTO_VERSION (8 * 256 + PERF_NUMBERS % 256)
#define PERF_MSG_BYTES	   4096 /* the longest message */
#define PERF_TEXT_BYTES	   256	/* a sentence, with its final zero */
#define PERF_ENDS_MAX	   128	/* queue pairs in one ENDS message */

/* X(name, answer) */
#define PERF_MESSAGES(X)                                                                           \
	X(PARAMS) /* client: parameters and its memory's address; answer: READY */                 \
	X(READY)  /* where the server's memory is */                                               \
	X(PAIR)	  /* both: a UD queue pair */                                                      \
	X(START)  /* client: all queue pairs are connected; answer: OK */                          \
	X(MARK)	  /* client: measure from now; answer: OK */                                       \
	X(QUIET)  /* client: stop sending; answer, when all is complete: OK */                     \
	X(ENDS)	  /* both: how many messages were sent on which queue pair */                      \
	X(FINISH) /* client: the run is over; answer: RESULT */                                    \
	X(RESULT)                                                                                  \
	X(OK)                                                                                      \
	X(ERROR) /* a sentence; the session is over */                                             \
	X(PING)

enum perf_message {
#define X(name) PERF_MSG_##name,
	PERF_MESSAGES(X)
#undef X
};

#define PERF_PARAMS(X)                                                                             \
	X(op)                                                                                      \
	X(mode)                                                                                    \
	X(type)                                                                                    \
	X(size)                                                                                    \
	X(qps)                                                                                     \
	X(depth)                                                                                   \
	X(slots)    /* of each ring in memory: a power of two, or 1 */                             \
	X(rq_depth) /* receives posted on each queue pair */                                       \
	X(buffers)  /* strides of memory; queue pairs share them if there are fewer */             \
	X(verify)                                                                                  \
	X(bidir)                                                                                   \
	X(mtu)                                                                                     \
	X(inline_bytes)                                                                            \
	X(sge)                                                                                     \
	X(signal_every) /* a power of two */                                                       \
	X(srq)                                                                                     \
	X(receives)	/* of the SRQ; 0: rq_depth for each queue pair */                          \
	X(service_us)	/* a receive is posted again after so long, one after the other */         \
	X(think_us)	/* of a queue pair, after each message */                                  \
	X(random_order) /* of the queue pairs that post; else first in, first out */               \
	X(events)                                                                                  \
	X(seed)                                                                                    \
	X(timeout)                                                                                 \
	X(retry)                                                                                   \
	X(rnr_retry)                                                                               \
	X(min_rnr_timer) /* code, 0 to 31 */                                                       \
	X(rd_atomic)                                                                               \
	X(transport) /* enum uroce_qp_mode of the data queue pairs + 1; 0: as configured */        \
	X(addr)	     /* of the client's memory */                                                  \
	X(rkey)

#define PERF_RECEIVES_MAX 1024 /* a power of two */

struct perf_params {
#define X(name) uint64_t name;
	PERF_PARAMS(X)
#undef X
};

#define PERF_READY(X)                                                                              \
	X(addr)                                                                                    \
	X(rkey)

struct perf_ready {
#define X(name) uint64_t name;
	PERF_READY(X)
#undef X
};

#define PERF_PAIR(X)                                                                               \
	X(idx)                                                                                     \
	X(sl)                                                                                      \
	X(priority)                                                                                \
	X(weight)                                                                                  \
	X(qpn)                                                                                     \
	X(qkey)                                                                                    \
	X(gid_high)                                                                                \
	X(gid_low)

struct perf_pair {
#define X(name) uint64_t name;
	PERF_PAIR(X)
#undef X
};

/* A queue pair's share of the port, at both ends. */
struct perf_share {
	uint8_t sl, priority, weight;
};

/* An ENDS message is an array of these. */
#define PERF_END(X)                                                                                \
	X(idx)                                                                                     \
	X(messages) /* sent on this queue pair since it was connected */                           \
	X(cas)	    /* of them compare-and-swaps */

struct perf_end {
#define X(name) uint64_t name;
	PERF_END(X)
#undef X
};

#define PERF_RESULT(X)                                                                             \
	X(ops)	       /* sent and completed while measured */                                     \
	X(bytes)       /* of them */                                                               \
	X(rx_messages) /* received while measured, as far as a receive completed */                \
	X(rx_bytes)                                                                                \
	X(errors)    /* of completion and verification */                                          \
	X(missing)   /* UC and UD: sent but never received */                                      \
	X(reordered) /* UD: received late or twice */                                              \
	X(checked)   /* messages whose bytes were compared */                                      \
	X(duration_ns)                                                                             \
	X(pause_ns)  /* longest time without a poll while measured; not in mode lat */             \
	X(paused_ms) /* whole milliseconds of all such times, each counted by itself */            \
	X(cpu_ns)                                                                                  \
	X(fetch_adds) /* value of the word that all fetch_adds of the peer went to */

struct perf_result {
#define X(name) uint64_t name;
	PERF_RESULT(X)
#undef X
	struct uroce_counters counters;
	struct perf_objects {
#define X(name, unit, help) uint64_t name;
		UROCE_OBJECTS(X)
#undef X
	} before, after;
	char text[PERF_TEXT_BYTES]; /* the first error, or empty */
};

struct perf_header {
	enum perf_message kind;
	uint32_t seq;
	uint32_t bytes; /* behind the header */
};

#define PERF_HEADER_BYTES 16

/*
 * Encoders return the bytes written; `out` has PERF_MSG_BYTES. Decoders return false when the
 * message is too short, of another version or has a value out of range.
 */
size_t perf_header_encode(void *out, const struct perf_header *h);
bool perf_header_decode(const void *in, size_t bytes, struct perf_header *h);

size_t perf_params_encode(void *out, const struct perf_params *p);
bool perf_params_decode(const void *in, size_t bytes, struct perf_params *p);
size_t perf_ready_encode(void *out, const struct perf_ready *r);
bool perf_ready_decode(const void *in, size_t bytes, struct perf_ready *r);
size_t perf_pair_encode(void *out, const struct perf_pair *p);
bool perf_pair_decode(const void *in, size_t bytes, struct perf_pair *p);
size_t perf_end_encode(void *out, const struct perf_end *e);
bool perf_end_decode(const void *in, size_t bytes, struct perf_end *e);
size_t perf_result_encode(void *out, const struct perf_result *r);
bool perf_result_decode(const void *in, size_t bytes, struct perf_result *r);

/* True when a server may act on them: every number in its range. */
bool perf_params_valid(const struct perf_params *p);

/*
 * Private data of the connection requests.
 */
enum perf_hello_kind { PERF_HELLO_CONTROL, PERF_HELLO_DATA };

struct perf_hello {
	enum perf_hello_kind kind;
	uint64_t session; /* chosen by the client */
	uint32_t idx, gen;
	struct perf_share share; /* DATA; the connection itself has the SL */
};

#define PERF_HELLO_BYTES 28

size_t perf_hello_encode(void *out, const struct perf_hello *h);
bool perf_hello_decode(const void *in, size_t bytes, struct perf_hello *h);

#endif
