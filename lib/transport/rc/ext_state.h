/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_STATE_H
#define UR_TRANSPORT_EXT_STATE_H

#include <assert.h>

#include "transport/loss/ooo.h"
#include "transport/loss/retry.h"
#include "transport/loss/rtt.h"
#include "transport/loss/selective.h"
#include "transport/plb.h"
#include "transport/rc/spray.h"
#include "transport/repeats.h"

/* What extended mode keeps in a queue pair beside what standard mode has (docs/design/loss.md). */

enum ur_ext_probe {
	UR_PROBE_LOSS = 1,  /* to find out what is lost */
	UR_PROBE_DELAY = 2, /* to ask switches for the delay (transport/net_delay.h) */
	UR_PROBE_TRAIN =
		4, /* in `probed`, with UR_PROBE_LOSS: since probe_stamp nothing but probes has left */
	UR_PROBE_AGAIN =
		8, /* in `probe`, with UR_PROBE_LOSS: nothing has answered the one before */
};

/* Requests in order touch one cache line down to the first sample, and one of each sequence. */
struct ur_ext_requester {
	struct ur_retry retry; /* first: every loss engine has it there */
	struct ur_rtt rtt;
	struct ur_stamp echoed;	  /* without spraying: the newest stamp that gave a round trip */
	struct ur_psn reads_from; /* from here on, or from psn.una, all requests are READs */
	uint32_t
		rwqen; /* of the next message that consumes a receive; above 24 bits, the tag of its pool */
	uint16_t rd_seq; /* READ and atomic requests made so far, */
	uint16_t
		rd_passed; /* and those that the peer has answered to the end, as far as is known */
	uint8_t probed;	   /* enum ur_ext_probe, bits: what was sent and has not come back */
	uint8_t probe;	   /* the same: what is to be sent */
	bool fatal_nak : 1; /* the peer refused a request for good: it answers nothing any more */
	bool plb_is_on : 1; /* without spraying: ur_plb_is_on(), here, where round trips come by */
	uint8_t atomic_cnt; /* atomics that are not answered */
	struct ur_tx_times tx_times; /* when requests left */
	struct ur_selective rsp;     /* response packets of READs and atomics, by response number */
	union {
		struct ur_spray_qp *spray; /* the queue pair sprays; */
		struct ur_plb plb;	   /* it does not: every packet takes its own port */
	};
	struct ur_selective psn;     /* requests */
	struct ur_stamp probe_stamp; /* UR_PROBE_LOSS in `probed`: only a probe has this stamp */
	uint32_t atomic;	     /* WQE of the oldest of atomic_cnt, if there is one */
};

/* READ and atomic requests that may still take a place at the peer. EXT-COMP-PASS-01 */
static inline uint32_t ur_ext_reads_out(const struct ur_ext_requester *x)
{
	return (uint16_t)(x->rd_seq - x->rd_passed);
}

/* What an answer tells the peer of the packet that it answers, for a round trip. */
struct ur_echo {
	uint64_t arrival_ns;
	struct ur_stamp stamp;
	uint8_t path;
	uint8_t hops; /* of a probe with UR_DELAY_ASK, that bit, and UR_XTH_BACK if it has it; else 0 */
	uint16_t delay; /* with it: the code, wire/delay.h */
};

/* A READ or atomic request that is being answered: the first time, or once more. */
struct ur_ext_answer {
	union {
		uint64_t va;	   /* READ: of its first byte */
		uint64_t original; /* atomic: the value found */
	};
	uint64_t arrival_ns;   /* of the request that asked */
	struct ur_stamp stamp; /* its stamp */
	uint32_t rkey;
	uint32_t from, to; /* READ: bytes still to be sent, of [0, to) */
	struct ur_msn ssn; /* of the request, */
	uint32_t offset;   /* and this */
	struct ur_psn psn;
	uint8_t path;
	bool atomic;
	bool repeat; /* it was answered before */
};

static_assert(sizeof(struct ur_ext_answer) % 16 == 0, "what lies behind answers is aligned");

/* Answers [head, head + cnt) of a ring of rsp.ans_cap / 2, to be sent in this order. */
struct ur_ext_answers {
	uint16_t head, cnt;
	uint16_t probe_after; /* so many of them, [0, cnt], came before the probe */
};

/* LOSS-OWN-01. What a queue pair has for a gap when slabs have no memory; behind its answers. */
struct ur_ext_own {
	_Alignas(16) uint8_t requests[UR_OWN_RTX_BYTES];
	_Alignas(16) uint8_t responses[UR_OWN_RTX_BYTES];
	_Alignas(16) uint8_t early[UR_OWN_EARLY_BYTES];
};

struct ur_ext_responder {
	struct ur_ooo *ooo;	   /* of the gap; NULL: there is none */
	uint32_t rwqen;		   /* receives taken by completed messages; 24 bits */
	uint32_t offset;	   /* PSN_OFFSET of the packet at ePSN; 0 between messages */
	struct ur_msn credits_msn; /* MSN when credits were told last */
	bool has_gap;		   /* ooo is not NULL */
	bool starved;		   /* a gap was met without a context left; until ePSN moves */
	bool probe;		   /* one is to be answered, once the answers before it have left */
	uint64_t gap_ns;	   /* ooo: when the gap showed, or something came for ePSN last */
	struct ur_echo echo;	   /* the ACK owed: of the newest packet since the last one */
	struct ur_echo probe_echo;
	/*
	 * Answers to be sent: rsp.ans_cap of them, even, >= 2 * max_dest_rd_atomic. The lower half is
	 * the ring of `first`, the upper half that of `again`; repeats go first.
	 */
	struct ur_ext_answers first, again;
	struct ur_repeats repeats;
	struct ur_stamp
		again_stamp; /* of the last request that had been executed, or probe with flag T */
};

#endif
