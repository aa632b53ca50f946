/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_LAYOUT_H
#define PERF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "proto.h"

/*
 * How the registered memory of either end is divided; both compute it from the parameters, so they
 * exchange only an address. Pure.
 *
 *   head:  one word that all fetch_adds of the peer go to, padded to a cache line
 *   then for each queue pair one `stride`; with fewer `buffers` than queue pairs they share them:
 *      word PERF_AT_ACK   the peer writes here up to which message it has checked our WRITEs
 *      word PERF_AT_CAS   the peer's compare-and-swaps go here
 *      word PERF_AT_ACK_OUT  where the words that we write there are kept while posted
 *      words PERF_AT_GRANT  keys that we may invalidate, from the peer
 *      tx    `slots` messages to send from and to read into
 *      wr    `slots` messages: the peer's WRITEs
 *      rd    `slots` messages: what the peer READs
 *      rx    `rx_slots` receives
 * A ring that the operation does not use takes no room. Without --verify a ring has one slot and
 * all receives share one buffer, rx_step being 0. Receives that only WRITEs with immediate data
 * complete have no buffer: rx_bytes is 0.
 */
#define PERF_HEAD_BYTES 64
#define PERF_AT_ACK	0
#define PERF_AT_CAS	8
#define PERF_AT_ACK_OUT 16
#define PERF_AT_GRANT	64
#define PERF_GRANTS	8 /* words, and invalidatable regions, of a queue pair */
#define PERF_AT_RINGS	128
#define PERF_GRH_BYTES	40

struct perf_layout {
	uint64_t slot_bytes;
	uint64_t tx, wr, rd, rx; /* offsets in a stride */
	uint64_t rx_bytes;	 /* of one receive */
	uint64_t rx_step;	 /* from one receive to the next */
	uint64_t stride;
	uint64_t total;
};

/* Where the stride of a queue pair starts. */
static inline uint64_t perf_layout_stride(const struct perf_layout *l, const struct perf_params *p,
					  uint32_t idx)
{
	return PERF_HEAD_BYTES + idx % (uint32_t)p->buffers * l->stride;
}

/* Receives are needed: by the operation, or because the receiver of WRITEs has to see them. */
bool perf_params_receives(const struct perf_params *p);

void perf_layout_compute(struct perf_layout *l, const struct perf_params *p);

/*
 * Derives the client's parameters from its options: rounds to powers of two, and takes fewer slots
 * (and so less depth) if verification would need more than a gigabyte. addr and rkey are left 0.
 */
void perf_params_from_options(struct perf_params *p, const struct perf_options *o, uint64_t size,
			      const struct ibv_device_attr *device, uint32_t mtu);

#endif
