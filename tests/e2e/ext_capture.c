/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <pcap/pcap.h>

#include "../unit/frames.h"
#include "wire/delay.h"

/*
 * ext_capture FILE: writes a capture of extended mode with every opcode, over IPv4, IPv6 and VLAN,
 * with distinct values in all fields, and packets with one error each. dissector.sh and
 * pcap_tool_test.sh contain its expected contents, packet by packet.
 */

#define MINIMUM_FRAME 60

static const uint8_t text[] = "every packet says where its payload goes.";
static const uint8_t holes[4] = {0x23}; /* 7 missing, 8 and 9 there, 10 to 12 missing, 13 there */

static pcap_dumper_t *out;
static int64_t packet_cnt;

static void write_frame(struct frame *f)
{
	struct pcap_pkthdr hdr = {.ts = {.tv_sec = 1, .tv_usec = packet_cnt++ * 1000}};

	while (f->len < MINIMUM_FRAME)
		f->b[f->len++] = 0xee; /* Ethernet padding, not part of the packet */
	hdr.caplen = hdr.len = (uint32_t)f->len;
	pcap_dump((u_char *)out, &hdr, f->b);
}

static void write_packet(struct ur_packet p)
{
	struct frame f;

	frame_make(&f, &p);
	write_frame(&f);
}

static struct ur_packet of(uint8_t opcode, bool v6, bool vlan)
{
	bool data = ur_op_flags(opcode) & UR_OP_PAYLOAD && !(ur_op_flags(opcode) & UR_OP_ACK);
	struct ur_packet p = frame_packet(opcode, v6, text, data ? 30 : 0);

	p.has_vlan = vlan;
	p.vlan_tci = 3 << 13 | 42;
	return p;
}

static struct ur_packet sequence_nak(bool v6, bool vlan)
{
	struct ur_packet p = of(UR_EXT_ACKNOWLEDGE, v6, vlan);

	p.payload = holes;
	p.payload_len = sizeof(holes);
	p.aeth.syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
	p.xaeth.epsn = ur_psn(7);
	return p;
}

/* Of a long bitmap; bit 0 is PSN 7 + 1 + 2048. */
static struct ur_packet part(void)
{
	struct ur_packet p = sequence_nak(false, false);

	p.bth.opcode = UR_EXT_ACKNOWLEDGE_PART;
	p.op = ur_op_flags(UR_EXT_ACKNOWLEDGE_PART);
	return p;
}

/* The same length and ICRC, but one bit of the payload or last header is flipped. */
static void write_damaged(struct ur_packet p)
{
	struct frame f;

	frame_make(&f, &p);
	f.b[f.len - UR_ICRC_BYTES - 1] ^= 0x10;
	write_frame(&f);
}

/* Eight bytes after the BTH, whatever headers the opcode needs; the ICRC is correct. */
static void write_with_eight_bytes(uint8_t opcode)
{
	struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, false, text, 8);
	struct frame f;
	uint32_t crc;

	frame_make(&f, &p);
	f.b[UR_ETH_BYTES + UR_IPV4_BYTES + UR_UDP_BYTES] = opcode;
	crc = frame_icrc(f.b + UR_ETH_BYTES, f.len - UR_ETH_BYTES - UR_ICRC_BYTES, false);
	for (unsigned i = 0; i < UR_ICRC_BYTES; i++)
		f.b[f.len - UR_ICRC_BYTES + i] = (uint8_t)(crc >> 8 * i);
	write_frame(&f);
}

/* A probe with these bits of the BTH beside F and B, and a checksum. */
static void write_stamped(uint8_t bits)
{
	struct ur_packet p = of(UR_EXT_PROBE, false, false);

	p.bth.resv6 = bits;
	p.udp_csum = 0x2001;
	write_packet(p);
}

int main(int argc, char **argv)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);

	if (argc != 2) {
		fputs("usage: ext_capture FILE\n", stderr);
		return 2;
	}
	out = pcap_dump_open(pcap, argv[1]);
	if (!out) {
		fprintf(stderr, "ext_capture: %s\n", pcap_geterr(pcap));
		return 1;
	}

	for (unsigned op = UR_TRANSPORT_EXT; op < UR_TRANSPORT_EXT + 0x20; op++)
		if (ur_op_flags((uint8_t)op))
			write_packet(of((uint8_t)op, false, false));
	for (unsigned how = 0; how < 4; how++) {
		write_packet(sequence_nak(how & 1, how & 2));
		write_packet(of(UR_EXT_WRITE_MIDDLE, how & 1, how & 2));
		write_damaged(of(UR_EXT_PROBE, how & 1, how & 2));
		write_packet(of(UR_RC_SEND_ONLY, how & 1, how & 2));
		write_damaged(of(UR_RC_SEND_ONLY, how & 1, how & 2));
	}
	write_packet(frame_packet(UR_RC_SEND_ONLY, false, text, 0));
	write_with_eight_bytes(UR_EXT_WRITE_ONLY);
	write_with_eight_bytes(UR_EXT_ACKNOWLEDGE_STATUS_PART + 1);
	write_stamped(UR_DELAY_ASK | 2);
	write_stamped(UR_DELAY_ASK | UR_DELAY_VOID);
	write_stamped(2);
	write_packet(part());

	pcap_dump_close(out);
	pcap_close(pcap);
	return 0;
}
