/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_PLAN_H
#define INTEROP_PLAN_H

#include <stdint.h>

#include "spec.h"

/*
 * What one end asks of the other in one round, and what memory holds before and after. Both ends
 * compute it from the scenario, so that each can compare all of its memory, gaps between messages
 * included.
 *
 * Three regions belong to a direction: LOCAL at the initiator, what it sends from and reads into;
 * REMOTE at the target, what the initiator writes, reads and changes; RECEIVE at the target, the
 * receives' buffers.
 */
enum region { REGION_LOCAL, REGION_REMOTE, REGION_RECEIVE, REGIONS };

enum {
	PIECE_GAP = 24, /* bytes between the pieces of a message */
	GRH_BYTES = 40, /* UD: in front of what is received */
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
	uint64_t bytes; /* of payload */
	struct message m[MAX_DEPTH];
};

/* Bytes that a region needs for any round. */
size_t plan_region_bytes(const struct spec *spec);

/* Messages [first, ...) of the direction `from_uroce`; fewer than depth at the end of the scenario.
 */
void plan_round(const struct spec *spec, bool from_uroce, unsigned round, struct plan *plan);

/* The bytes of piece i of n of a message of len bytes, and their offset from the message's. */
void plan_piece(unsigned len, unsigned n, unsigned i, unsigned *offset, unsigned *bytes);

/* What a region holds when the round begins. */
void plan_fill(const struct spec *spec, bool from_uroce, unsigned round, enum region region,
	       uint8_t *mem, size_t bytes);

/* Does to mem[REGIONS] what the messages do. */
void plan_apply(const struct spec *spec, const struct plan *plan, uint8_t *const mem[REGIONS]);

#endif
