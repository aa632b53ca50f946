/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_BUILD_H
#define UR_TRANSPORT_BUILD_H

#include <stdint.h>
#include <string.h>

#include "transport/qp.h"
#include "wire/path.h"

/*
 * Writes the headers of a packet: the fast counterpart of ur_put_*(), for a buffer that is known to be
 * large enough.
 */

static inline uint8_t *ur_build32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
	return p + 4;
}

static inline uint8_t *ur_build64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, 8);
	return p + 8;
}

/* Two words of 32 bits, in one store. */
static inline uint8_t *ur_build2(uint8_t *p, uint32_t first, uint32_t second)
{
	return ur_build64(p, (uint64_t)first << 32 | second);
}

struct ur_build_bth {
	uint8_t opcode;
	bool solicited, ackreq;
	uint16_t pkey;
	struct ur_qpn dqpn;
	struct ur_psn psn;
};

/*
 * Ethernet to BTH for a packet of `ext` bytes of extended headers and tx->payload_len bytes of
 * payload (set before, with its fragments). Returns where the extended headers go; sets all of
 * tx but the fragments. MigReq is sent as 1 (the state Migrated), as adapters do.
 */
static inline uint8_t *ur_build_begin(struct ur_tx *tx, const struct ur_path *path,
				      const struct ur_build_bth *bth, unsigned ext)
{
	unsigned pad = -(unsigned)tx->payload_len & 3;
	unsigned udp = UR_BTH_BYTES + ext + tx->payload_len + pad + UR_ICRC_BYTES;
	uint8_t *p = tx->hdr + ur_path_write(path, tx->hdr, udp);

	tx->hdr_len = (uint16_t)(path->len + UR_BTH_BYTES + ext);
	tx->l3_off = path->l3_off;
	tx->v6 = path->v6;
	tx->pad = (uint8_t)pad;
	tx->asked = 0;
	p = ur_build32(p, (uint32_t)bth->opcode << 24 | (uint32_t)bth->solicited << 23 | 1u << 22 |
				  pad << 20 | bth->pkey);
	p = ur_build32(p, bth->dqpn.v);
	return ur_build32(p, (uint32_t)bth->ackreq << 31 | bth->psn.v);
}

/* The same along the path of a connected queue pair, from one of its two UDP source ports. */
static inline uint8_t *ur_build_from_qp(struct ur_tx *tx, const struct ur_qp *qp, uint16_t sport_be,
					const struct ur_build_bth *bth, unsigned ext)
{
	uint8_t *p = ur_build_begin(tx, qp->path, bth, ext);

	memcpy(p - UR_BTH_BYTES - UR_UDP_BYTES, &sport_be, sizeof(sport_be));
	return p;
}

static inline uint32_t ur_tx_frame_bytes(const struct ur_tx *tx)
{
	return (uint32_t)tx->hdr_len + tx->payload_len + tx->pad + UR_ICRC_BYTES;
}

#endif
