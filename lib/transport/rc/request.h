/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_REQUEST_H
#define UR_TRANSPORT_RC_REQUEST_H

#include "transport/build.h"
#include "transport/send_queue.h"
#include "wire/opcode.h"

/*
 * A request packet that is about to be made, and the extended headers that are the same in the headers
 * of IBA and in extended ones (docs/wire-format.md). A header codec writes what differs.
 */
struct request {
	struct ur_psn psn;
	uint32_t
		offset; /* of the packet (READ: of the first response) in its message, in packets */
	uint8_t flags;	/* enum ur_xth_flags but for RECV; IBA headers have no place for them */
	uint8_t opcode; /* of RC */
	uint8_t class;	/* of the WQE's opcode, if it is a SEND or WRITE; else 0 */
	bool ackreq, solicited;
	bool joins; /* another one was made just before, in the same call */
};

/* The RC opcode of a packet of a SEND or WRITE; those of other transports have other top bits. */
static inline uint8_t data_opcode(unsigned class, bool first, bool last)
{
	/* [write][first][last]; immediate and invalidate only change the last packet's. */
	static const uint8_t plain[2][2][2] = {
		{{UR_RC_SEND_MIDDLE, UR_RC_SEND_LAST}, {UR_RC_SEND_FIRST, UR_RC_SEND_ONLY}},
		{{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST}, {UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY}},
	};
	uint8_t op = plain[!!(class & OP_WRITE)][first][last];

	if (last && (class & OP_IMM))
		op++;
	else if (last && (class & OP_INV))
		op = first ? UR_RC_SEND_ONLY_INV : UR_RC_SEND_LAST_INV;
	return op;
}

static inline uint8_t *put_reth(uint8_t *p, uint64_t va, uint32_t rkey, uint32_t length)
{
	p = ur_build64(p, va);
	p = ur_build32(p, rkey);
	return ur_build32(p, length);
}

/* The last packet of a message carries its immediate data, or the key to invalidate. */
static inline void put_imm_inv(uint8_t *p, const struct ur_wqe *wqe)
{
	if (class_of(wqe) & OP_IMM)
		memcpy(p, &wqe->imm_inv, UR_IMM_BYTES);
	else
		ur_build32(p, wqe->imm_inv);
}

/* The RC opcode of an atomic, and its header. */
static inline uint8_t atomic_opcode(const struct ur_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? UR_RC_COMPARE_SWAP : UR_RC_FETCH_ADD;
}

static inline void put_atomiceth(uint8_t *p, const struct ur_wqe *wqe)
{
	const struct ur_wqe_ext *ext = ur_wqe_ext(wqe);
	bool cas = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	p = ur_build64(p, wqe->remote_addr);
	p = ur_build32(p, wqe->rkey);
	p = ur_build64(p, cas ? ext->atomic.swap : ext->atomic.compare_add);
	ur_build64(p, cas ? ext->atomic.compare_add : 0);
}

#endif
