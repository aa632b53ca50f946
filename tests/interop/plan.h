/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_PLAN_H
#define INTEROP_PLAN_H

#include <stdint.h>

#include "spec.h"

/*
 * The requests of one end in one round, and the contents of memory before and after. Both ends
 * compute the plan from the scenario, so that each can check all of its memory, including the gaps
 * between messages.
 *
 * A direction has three regions: LOCAL at the initiator, the source of messages and target of
 * READs; REMOTE at the target, accessed by RDMA and atomics; RECEIVE at the target, the buffers of
 * receives.
 */
enum region { REGION_LOCAL, REGION_REMOTE, REGION_RECEIVE, REGIONS };

enum {
	PIECE_GAP = 24, /* bytes between the pieces of a message */
	GRH_BYTES = 40, /* UD: before the payload in a receive */
	MAX_DEPTH = 256,
};

struct message {
	enum op op;
	unsigned len;
	uint32_t imm;
	size_t local, remote, receive; /* offsets into the regions */
	unsigned local_pieces, receive_pieces;
	uint64_t compare, operand; /* atomics */
	bool signaled, solicited, fenced, in_line;
};

struct plan {
	unsigned cnt, receives;
	uint64_t bytes; /* total payload */
	struct message m[MAX_DEPTH];
};

/* Bytes that a region needs for any round. */
size_t plan_region_bytes(const struct spec *spec);

/* Messages [first, ...) of the direction `from_uroce`; fewer than depth at the end of the scenario.
 */
void plan_round(const struct spec *spec, bool from_uroce, unsigned round, struct plan *plan);

/* The bytes of piece i of n of a message of len bytes, and their offset from the message's. */
void plan_piece(unsigned len, unsigned n, unsigned i, unsigned *offset, unsigned *bytes);

/* Writes the contents of a region at the start of the round. */
void plan_fill(const struct spec *spec, bool from_uroce, unsigned round, enum region region,
	       uint8_t *mem, size_t bytes);

/* Applies the effect of the messages to mem[REGIONS]. */
void plan_apply(const struct spec *spec, const struct plan *plan, uint8_t *const mem[REGIONS]);

#endif
