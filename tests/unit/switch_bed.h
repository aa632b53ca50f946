/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_SWITCH_BED_H
#define UR_TEST_SWITCH_BED_H

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "switch/switch.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/* A switch under test, in virtual time: ports 1 to 4 are up. The MAC address of host h is 02-00-00-00-00-hh. */
#define BED_PORTS 5

static struct ur_switch *sw;
static struct ur_switch_attr attr;
static struct ur_switch_port_attr port_attr;
static uint64_t now_ns = 1000;
static uint8_t frames[4096][2048]; /* those that the test sends, reused in turn */
static unsigned frame_at;
static struct ur_switch_tx tx[256];

static void bed_attr(void)
{
	ur_switch_attr_default(&attr);
	attr.limits.ports = BED_PORTS;
	attr.limits.frames = 512;
	ur_switch_port_attr_default(&port_attr);
}

static void bed_start(void)
{
	size_t size = ur_switch_size(&attr);

	cr_assert_null(ur_switch_attr_check(&attr));
	cr_assert_null(ur_switch_port_attr_check(&port_attr));
	free(sw);
	sw = ur_switch_init(aligned_alloc(64, size), &attr);
	for (uint8_t p = 1; p < attr.limits.ports; p++) {
		ur_switch_set_port(sw, p, &port_attr, now_ns);
		ur_switch_set_link(sw, p, true, now_ns);
	}
}

static inline void bed_plain(void)
{
	bed_attr();
	bed_start();
}

static void host_mac(uint8_t *mac, unsigned host)
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, (uint8_t)(host >> 8), (uint8_t)host}, 6);
}

/* A frame of `len` bytes from host `src` to host `dst`; 0xffff: broadcast. Not IP. */
static struct ur_switch_frame plain(unsigned src, unsigned dst, uint32_t len)
{
	uint8_t *f = frames[frame_at++ % 4096];

	memset(f, 0, 2048);
	host_mac(f, dst);
	if (dst == 0xffff)
		memset(f, 0xff, 6);
	host_mac(f + 6, src);
	ur_store16(f + 12, 0x88b5);
	return (struct ur_switch_frame){f, f, len};
}

/* Inserts a tag. */
static inline struct ur_switch_frame tagged(struct ur_switch_frame f, uint16_t tci)
{
	memmove(f.data + 16, f.data + 12, f.len - 12);
	ur_store16(f.data + 12, UR_ETHERTYPE_VLAN);
	ur_store16(f.data + 14, tci);
	f.len += 4;
	return f;
}

/* A RoCEv2 frame with a right ICRC. */
static inline struct ur_switch_frame roce(unsigned src, unsigned dst, bool v6, uint8_t tos,
					  uint16_t sport, uint16_t payload)
{
	static const uint8_t bytes[2048];
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, v6, bytes, payload);
	struct ur_switch_frame f = {frames[frame_at++ % 4096], NULL, 0};
	struct frame made;

	host_mac(p.dmac, dst);
	host_mac(p.smac, src);
	p.ip.tos = tos;
	p.sport = sport;
	frame_make(&made, &p);
	memcpy(f.data, made.b, made.len);
	f.handle = f.data;
	f.len = (uint32_t)made.len;
	return f;
}

/* A management packet as docs/design/management.md has it; lid 0: to the neighbour. */
static inline struct ur_switch_frame mad(uint16_t lid)
{
	static const uint8_t bytes[256];
	struct ur_packet p = frame_packet(UR_UD_SEND_ONLY, true, bytes, 256);
	struct ur_switch_frame f = {frames[frame_at++ % 4096], NULL, 0};
	struct frame made;

	memcpy(p.dmac, (const uint8_t[]){1, 0x80, 0xc2, 0, 0, 0x0e}, 6);
	if (lid) {
		memcpy(p.dmac, (const uint8_t[]){2, 0x4c, 0x49, 0x44}, 4);
		ur_store16(p.dmac + 4, lid);
	}
	host_mac(p.smac, 77);
	p.bth.dqpn = ur_qpn(0);
	p.ip.tos = 56 << 2;
	frame_make(&made, &p);
	memcpy(f.data, made.b, made.len);
	f.handle = f.data;
	f.len = (uint32_t)made.len;
	return f;
}

static unsigned give(uint8_t port, struct ur_switch_frame f)
{
	unsigned n = ur_switch_input(sw, port, &f, now_ns);

	ur_switch_validate(sw);
	return n;
}

/* Takes up to `cap` frames from a port. */
static unsigned take(uint8_t port, unsigned cap)
{
	unsigned n = ur_switch_output(sw, port, tx, cap, now_ns);

	ur_switch_validate(sw);
	return n;
}

/* The bytes of tx[i] as they are sent. Static. */
static inline const uint8_t *sent(unsigned i, uint32_t *len)
{
	static uint8_t out[2048];
	const struct ur_switch_tx *t = &tx[i];

	memcpy(out, t->head, t->head_len);
	memcpy(out + t->head_len, t->frame.data + t->skip, t->frame.len - t->skip);
	*len = t->frame.len - t->skip + t->head_len;
	return out;
}

/* Hosts 1 to 4 are known at ports 1 to 4. */
static inline void introduce(void)
{
	for (unsigned h = 1; h < BED_PORTS; h++)
		give((uint8_t)h, plain(h, 0xffff, 64));
	for (uint8_t p = 1; p < BED_PORTS; p++)
		cr_assert_eq(take(p, 256), BED_PORTS - 2);
}

static inline uint64_t dropped(uint8_t port, unsigned vl, enum ur_switch_drop why)
{
	struct ur_switch_counters c;

	ur_switch_counters(sw, port, &c);
	return c.lane[vl].drops[why];
}

static inline struct ur_switch_counters counters(uint8_t port)
{
	struct ur_switch_counters c;

	ur_switch_counters(sw, port, &c);
	return c;
}

#endif
