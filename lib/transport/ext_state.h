/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_STATE_H
#define UR_TRANSPORT_EXT_STATE_H

#include "transport/ooo.h"
#include "transport/rtt.h"
#include "transport/selective.h"
#include "transport/spray.h"

/* What extended mode keeps in a queue pair beside what standard mode has (docs/design/loss.md). */

struct ur_ext_requester {
	struct ur_rtt rtt;
	struct ur_selective psn; /* requests */
	struct ur_selective rsp; /* response packets of READs and atomics, by response number */
	uint32_t rwqen;		 /* of the next message that consumes a receive; 24 bits */
	uint32_t last_stamp;	 /* of the last packet made */
	struct ur_spray_qp *spray; /* NULL: every packet takes the queue pair's own port */
	uint8_t path;		   /* of the packet being made */
	/* A probe that nothing else shares its stamp with was sent and has not come back. */
	uint32_t probe_stamp;
	bool probed;
	bool probe;  /* a probe is to be sent */
	bool naked;  /* the peer refused a request for good: it answers nothing any more */
	bool waited; /* `due_end`, `due_stamp` hold */
	/*
	 * From `due_stamp` on, requests for responses before `due_end` were sent again because they
	 * had been lost themselves.
	 */
	struct ur_psn due_end;
	uint32_t due_stamp;
	uint8_t rd_seq;	    /* READ and atomic requests made so far */
	uint8_t atomic_cnt; /* atomics that are not answered, */
	uint32_t atomic;    /* the oldest of which is this WQE */
};

/* A READ or atomic request that is being answered: the first time, or once more. */
struct ur_ext_answer {
	uint64_t va;	     /* READ: of its first byte; atomic: the value found */
	uint64_t arrival_ns; /* of the request that asked */
	uint32_t stamp;	     /* its stamp */
	uint32_t rkey;
	uint32_t length;      /* bytes */
	uint32_t sent;	      /* bytes [0, sent) have left */
	uint32_t ssn, offset; /* of the request */
	struct ur_psn psn;
	uint8_t path;
	bool atomic;
	bool repeat; /* it was answered before */
};

struct ur_ext_responder {
	struct ur_ooo *ooo; /* NULL: in order */
	uint32_t rwqen;	    /* receives taken by completed messages; 24 bits */
	uint32_t offset;    /* PSN_OFFSET of the packet at ePSN; 0 between messages */
	uint32_t told_msn;  /* MSN when credits were told last */
	bool starved;	    /* a gap was met without a context left; until ePSN moves */
	/* The ACK owed: of the newest packet since the last one. */
	uint8_t echo_path;
	uint32_t echo;
	uint64_t arrival_ns;
	/* The probe to be answered, once `probe_after` of the answers have left. */
	bool probe;
	uint8_t probe_path;
	uint16_t probe_after;
	uint32_t probe_echo;
	uint64_t probe_arrival_ns;
	/*
	 * Answers [ans_head, ans_head + ans_cnt), to be sent in this order, in a ring of ans_cap >=
	 * 2 * max_dest_rd_atomic. At most max_dest_rd_atomic are first answers; the room for them is
	 * never taken by repeats.
	 */
	struct ur_ext_answer *ans;
	uint16_t ans_cap, ans_head, ans_cnt, ans_repeats;
};

#endif
