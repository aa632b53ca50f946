/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ATTR_H
#define UR_TRANSPORT_ATTR_H

/* How a queue pair survives loss and reordering (docs/design/loss.md). X(NAME, name) */
#define UR_MODES(X)                                                                                \
	X(GBN, gbn)                                                                                \
	X(REORDER, reorder)                                                                        \
	X(EXTENDED, extended)

enum ur_mode {
#define X(NAME, name) UR_MODE_##NAME,
	UR_MODES(X)
#undef X
};

#define UR_RD_ATOMIC_MAX 128 /* upper bound of max_dest_rd_atomic */

#define UR_SPRAY_MAX 16 /* UDP source ports of a queue pair */

#endif
