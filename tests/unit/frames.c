/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "frames.h"

struct ur_packet frame_packet(uint8_t opcode, bool v6, const uint8_t *payload, uint16_t payload_len)
{
	struct ur_packet p = {
		.dmac = {2, 0, 0, 0, 0, 0x0b},
		.smac = {2, 0, 0, 0, 0, 0x0a},
		.ip = {.v6 = v6, .ttl = 64, .tos = 0x02},
		.sport = 0xc123,
		.dport = UR_ROCE_UDP_PORT,
		.op = ur_op_flags(opcode),
		.bth = {.opcode = opcode,
			.pad = (uint8_t)(-payload_len & 3),
			.pkey = 0xffff,
			.dqpn = ur_qpn(0x123456),
			.psn = ur_psn(0xfedcba)},
		.deth = {.qkey = 0x11111111, .sqpn = ur_qpn(0x654321)},
		.reth = {.va = 0x7f0102030405, .rkey = 0xa1b2c3d4, .length = 12345},
		.aeth = {.syndrome = 0x1f, .msn = 0x0a0b0c},
		.atomiceth = {.va = 0x7f01020304f8,
			      .rkey = 0xa1b2c3d4,
			      .swap_add = 0x1122334455667788,
			      .compare = 0x99aabbccddeeff00},
		.atomic_ack = 0x0123456789abcdef,
		.xth = {.stamp = 0xf1f2f3f4,
			.path = 0x0d,
			.ssn = 0x212223,
			.flags = UR_XTH_RECV | UR_XTH_RETRY,
			.offset = 0x313233,
			.rwqen = 0x414243},
		.xaeth = {.echo = 0xe1e2e3e4,
			  .residence = 0x01020304,
			  .path = 0x0e,
			  .epsn = ur_psn(0xffffff)},
		.xrth = {.ssn = 0x515253, .offset = 0x616263},
		.asth = {.status = 3,
			 .queue_class = 1,
			 .granted = true,
			 .room = 7,
			 .generation = 0x8182},
		.ndth = {.hops = 3, .delay = 0x2345},
		.bpth = {.flags = UR_BPTH_MORE, .offset = 2048},
		.pool = 0x91929394,
		.imm = 0xcafef00d,
		.ieth = 0x0badcafe,
		.payload = payload,
		.payload_len = payload_len,
	};

	if (v6) {
		p.ip.flow_label = 0xabcde;
		p.ip.src.b[0] = p.ip.dst.b[0] = 0xfe;
		p.ip.src.b[1] = p.ip.dst.b[1] = 0x80;
		p.ip.src.b[15] = 1;
		p.ip.dst.b[15] = 2;
	} else {
		p.ip.id = 0x4321;
		p.ip.frag = 0x4000;
		p.ip.src = ur_gid_from_ipv4(0x0a000001);
		p.ip.dst = ur_gid_from_ipv4(0x0a000002);
	}
	return p;
}

void frame_fix_ipv4_csum(uint8_t *ip)
{
	uint32_t sum = 0;

	ip[10] = ip[11] = 0;
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

void frame_make(struct frame *f, struct ur_packet *p)
{
	size_t l3_off = p->has_vlan ? 18 : 14;
	uint16_t udp_len = (uint16_t)(8 + 12 + ur_opcodes[p->bth.opcode].ext_bytes +
				      p->payload_len + p->bth.pad + 4);
	uint32_t crc;

	p->udp_len = udp_len;
	p->ip.len = p->ip.v6 ? udp_len : (uint16_t)(udp_len + 20);
	f->len = ur_packet_encode(p, f->b, sizeof(f->b));
	if (!f->len)
		abort();
	if (!p->ip.v6) {
		frame_fix_ipv4_csum(f->b + l3_off);
		p->ip.csum = (uint16_t)(f->b[l3_off + 10] << 8 | f->b[l3_off + 11]);
	}
	crc = frame_icrc(f->b + l3_off, f->len - l3_off - 4, p->ip.v6);
	for (unsigned i = 0; i < 4; i++)
		f->b[f->len - 4 + i] = (uint8_t)(crc >> 8 * i);
	p->icrc = crc;
}

uint32_t frame_crc32(uint32_t crc, const uint8_t *p, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

uint32_t frame_icrc(const uint8_t *l3, size_t len, bool v6)
{
	static uint8_t masked[8 + 65536];
	uint8_t *ip = masked + 8, *udp = ip + (v6 ? 40 : 20), *bth = udp + 8;

	memset(masked, 0xff, 8);
	memcpy(ip, l3, len);
	if (v6) {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = 0xff;
		ip[7] = 0xff;
	} else {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	}
	udp[6] = udp[7] = 0xff;
	bth[4] = 0xff;
	return frame_crc32(0, masked, 8 + len);
}
