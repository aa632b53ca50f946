/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "guard.h"
#include "steer.h"
#include "wire/cm_msg.h"
#include "wire/mad_path.h"

#define ADDRESS 0x0a4d0001 /* 10.77.0.1 */
#define UPLINK	1
#define SELF	9
#define BIT(p)	(UINT64_C(1) << (p))

static const uint8_t host[6] = {2, 0x75, 10, 77, 0, 1}, other[6] = {2, 0, 0, 0, 0, 9};
static struct steer s;
static uint8_t frame[512];
static uint32_t len;

/* An uplink at port 1, client 5 at port 2, client 62 at port 3. */
static void setup(void)
{
	steer_init(&s, host, ADDRESS, 7);
	s.uplinks = BIT(UPLINK);
	s.self = SELF;
	steer_add(&s, 5, 2);
	steer_add(&s, 62, 3);
}

TestSuite(uroced_steer, .init = setup);

static uint64_t ports(uint8_t in)
{
	uint8_t *copy = malloc(len);
	struct ur_switch_frame f = {.data = copy, .len = len};
	struct ur_switch_headers h;
	uint64_t to;

	memcpy(copy, frame, len);
	cr_assert(ur_switch_headers_read(copy, len, &h));
	to = steer_ports(&s, in, &f, &h);
	free(copy);
	return to;
}

static void make_path(struct ur_path *path, const uint8_t *to, const uint8_t *from)
{
	struct ur_path_attr a = {.src = ur_gid_from_ipv4(ADDRESS),
				 .dst = ur_gid_from_ipv4(ADDRESS)};

	memcpy(a.dmac, to, 6);
	memcpy(a.smac, from, 6);
	ur_path_init(path, &a);
}

/* A datagram with a MAD. */
static uint8_t *mad(enum ur_cm_attr_id attr)
{
	static uint8_t m[UR_MAD_BYTES];

	memset(m, 0, sizeof(m));
	m[0] = 1;
	m[1] = UR_MAD_CLASS_CM;
	m[2] = 2;
	m[3] = 3;
	ur_store16(m + 16, (uint16_t)attr);
	return m;
}

static void send_mad(const uint8_t *m)
{
	struct ur_path path;

	make_path(&path, host, other);
	len = ur_mad_frame(frame, &path, ur_qpn(1), ur_qpn(1), ur_psn(0), m);
}

static void roce(uint8_t opcode, uint32_t qpn)
{
	struct ur_path path;

	make_path(&path, host, other);
	len = ur_mad_frame(frame, &path, ur_qpn(qpn), ur_qpn(1), ur_psn(0), mad(UR_CM_REQ));
	frame[path.len] = opcode;
}

static void request(enum ur_cm_attr_id attr, uint8_t protocol, uint16_t port)
{
	uint8_t *m = mad(attr);

	ur_store64(m + UR_MAD_HDR_BYTES + 8, ur_rdma_ip_service(protocol, port));
	send_mad(m);
}

static void message(enum ur_cm_attr_id attr, uint32_t local, uint32_t remote)
{
	uint8_t *m = mad(attr);

	ur_store32(m + UR_MAD_HDR_BYTES, local);
	ur_store32(m + UR_MAD_HDR_BYTES + 4, remote);
	send_mad(m);
}

/* UROCED-STEER-01 */
Test(uroced_steer, packets_go_to_the_client_with_the_number)
{
	roce(0x04, 5 << 18 | 77);
	cr_assert_eq(ports(UPLINK), BIT(2));
	cr_assert_eq(ports(2), BIT(2), "to itself");
	cr_assert_eq(ports(3), BIT(2), "from another client");
	roce(0x04, 62 << 18);
	cr_assert_eq(ports(UPLINK), BIT(3));
	for (uint32_t n = 0; n < 64; n++) {
		roce(0x64, n << 18 | 2);
		cr_assert_eq(ports(UPLINK), n == 5 ? BIT(2) : n == 62 ? BIT(3) : 0, "%u", n);
	}
	steer_remove(&s, 5);
	roce(0x04, 5 << 18 | 77);
	cr_assert_eq(ports(UPLINK), 0);
}

/* A UDP datagram to the host, without data. */
static void udp(uint16_t sport, uint16_t dport)
{
	roce(0x64, 5 << 18);
	ur_store16(frame + 34, sport);
	ur_store16(frame + 36, dport);
	len = 42;
}

/* UROCED-DIRECT-04 */
Test(uroced_steer, a_datagram_to_the_discard_port_wakes_the_client_that_its_source_port_names)
{
	for (unsigned n = 0; n < 70; n++) {
		udp((uint16_t)n, 9);
		cr_assert_eq(ports(2), n == 5 ? BIT(2) : n == 62 ? BIT(3) : BIT(SELF), "%u", n);
		cr_assert_eq(ports(UPLINK), BIT(SELF), "%u, from another host", n);
	}
	udp(62, 10);
	cr_assert_eq(ports(2), BIT(SELF), "another port");
	udp(62, 9);
	frame[23] = 6;
	cr_assert_eq(ports(2), BIT(SELF), "TCP");
	udp(62, 9);
	frame[14] = 0x46;
	cr_assert_eq(ports(2), BIT(SELF), "IP options");
	udp(62, 9);
	frame[21] = 1;
	cr_assert_eq(ports(2), BIT(SELF), "a fragment");
	udp(62, 9);
	frame[33] ^= 1;
	cr_assert_eq(ports(2), BIT(SELF), "another address");
	for (len = 41; len < 44; len += 2)
		cr_assert_eq(ports(2), BIT(SELF), "%u bytes", len);
	udp(62, 9);
	frame[0] ^= 2;
	cr_assert_eq(ports(2), BIT(UPLINK), "to another host");
	udp(62, 9);
	s.kernel = true;
	cr_assert_eq(ports(2), BIT(3), "where the kernel has the address, too");
}

/* UROCED-STEER-02, UROCED-PORTS-01 */
Test(uroced_steer, requests_go_to_the_client_with_the_port)
{
	uint16_t port = 7471, chosen = 0;

	request(UR_CM_REQ, UR_RDMA_IP_TCP, port);
	cr_assert_eq(ports(UPLINK), BIT(SELF), "which refuses it");
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_TCP, 5, &port), UR_LEASE_BOUND);
	cr_assert_eq(ports(UPLINK), BIT(2));
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_TCP, 62, &port), UR_LEASE_PORT_TAKEN);
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_TCP, 5, &port), UR_LEASE_BOUND);
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_UDP, 62, &port), UR_LEASE_BOUND,
		     "another port space");
	request(UR_CM_SIDR_REQ, UR_RDMA_IP_UDP, port);
	cr_assert_eq(ports(2), BIT(3));
	ports_release(&s.ports, UR_LEASE_TCP, 62, port);
	request(UR_CM_REQ, UR_RDMA_IP_TCP, port);
	cr_assert_eq(ports(UPLINK), BIT(2), "only its own");
	ports_release(&s.ports, UR_LEASE_TCP, 5, port);
	cr_assert_eq(ports(UPLINK), BIT(2), "for what is repeated");
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_TCP, 62, &port), UR_LEASE_BOUND);
	cr_assert_eq(ports(UPLINK), BIT(3));
	cr_assert_eq(ports_bind(&s.ports, UR_LEASE_TCP, 5, &chosen), UR_LEASE_BOUND);
	cr_assert(chosen >= PORTS_EPHEMERAL && chosen < PORTS_EPHEMERAL + PORTS_EPHEMERAL_N);
	steer_remove(&s, 62);
	cr_assert_eq(ports(UPLINK), BIT(SELF));
	request(UR_CM_REQ, 17 + 1, port);
	cr_assert_eq(ports(UPLINK), BIT(SELF), "an unknown protocol");
}

/* UROCED-STEER-02 */
Test(uroced_steer, other_messages_go_by_the_communication_id)
{
	static const enum ur_cm_attr_id pairs[] = {UR_CM_MRA, UR_CM_REJ,  UR_CM_REP,
						   UR_CM_RTU, UR_CM_DREQ, UR_CM_DREP};

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		message(pairs[i], 62u << 26 | 3, 5u << 26 | 1234);
		cr_assert_eq(ports(UPLINK), BIT(2), "%u", i);
		message(pairs[i], 5u << 26, 7u << 26);
		cr_assert_eq(ports(UPLINK), BIT(SELF), "%u: a client that is gone", i);
	}
	message(UR_CM_SIDR_REP, 62u << 26 | 3, 0);
	cr_assert_eq(ports(UPLINK), BIT(3));
	message(UR_CM_REP, 0, 5u << 26);
	frame[14 + 20 + 8 + 12 + 8 + 1] = UR_MAD_CLASS_PERF;
	cr_assert_eq(ports(UPLINK), 0);
}

static uint8_t *arp(const uint8_t *to, uint16_t op, uint32_t target)
{
	memset(frame, 0, sizeof(frame));
	memcpy(frame, to, 6);
	memcpy(frame + 6, other, 6);
	ur_store16(frame + 12, 0x806);
	ur_store16(frame + 14 + 6, op);
	ur_store32(frame + 14 + 24, target);
	len = 60;
	return frame;
}

/* UROCED-STEER-01 */
Test(uroced_steer, questions_are_answered_once)
{
	static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};

	arp(all, 1, ADDRESS);
	cr_assert_eq(ports(UPLINK), BIT(SELF));
	cr_assert_eq(ports(2), BIT(UPLINK) | BIT(SELF));
	arp(all, 1, ADDRESS + 8);
	cr_assert_eq(ports(UPLINK), BIT(SELF) | BIT(2) | BIT(3));
	arp(host, 2, ADDRESS);
	cr_assert_eq(ports(UPLINK), BIT(SELF) | BIT(2) | BIT(3), "an answer is for all");
	arp(host, 1, ADDRESS);
	cr_assert_eq(ports(UPLINK), BIT(SELF));
	len = 30; /* too short */
	cr_assert_eq(ports(UPLINK), BIT(SELF));
	arp(other, 2, 1);
	cr_assert_eq(ports(2), BIT(UPLINK));
	cr_assert_eq(ports(UPLINK), 0, "another host of the uplink's network");
	s.uplinks |= BIT(4);
	cr_assert_eq(ports(UPLINK), UR_SWITCH_NOT_STEERED);
}

/* ---- what a client may send ---- */

static enum guard_reason check(void)
{
	struct guard g;

	guard_init(&g, host, ADDRESS, 5, false);
	memcpy(frame + 6, host, 6);
	return guard_check(&g, frame, len);
}

/* UROCED-GUARD-02 */
Test(uroced_steer, a_client_names_only_its_own_numbers)
{
	static const enum ur_cm_attr_id attrs[] = {UR_CM_MRA, UR_CM_REJ,     UR_CM_REP,
						   UR_CM_RTU, UR_CM_DREQ,    UR_CM_DREP,
						   UR_CM_REQ, UR_CM_SIDR_REQ};
	const uint32_t deth = 14 + 20 + 8 + 12, body = deth + 8 + UR_MAD_HDR_BYTES;

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		message(attrs[i], 62u << 26 | 3, 5u << 26);
		cr_assert_eq(check(), GUARD_QPN, "%u", i);
		message(attrs[i], 5u << 26 | 3, 62u << 26);
		if (attrs[i] == UR_CM_REP)
			ur_store24(frame + body + 12, 5 << 18 | 4);
		if (attrs[i] == UR_CM_REQ)
			ur_store24(frame + body + 32, 5 << 18 | 4);
		cr_assert_eq(check(), GUARD_PASS, "%u", i);
	}
	message(UR_CM_REQ, 5u << 26, 0);
	cr_assert_eq(check(), GUARD_QPN, "another's queue pair");
	message(UR_CM_REJ, 0, 62u << 26);
	cr_assert_eq(check(), GUARD_PASS, "no connection has been made");
	message(UR_CM_SIDR_REP, 62u << 26, 0);
	cr_assert_eq(check(), GUARD_QPN);
	ur_store24(frame + body + 8, 5 << 18 | 4);
	cr_assert_eq(check(), GUARD_PASS);
	roce(0x64, 62 << 18 | 2);
	cr_assert_eq(check(), GUARD_QPN, "a datagram of QP1 to another queue pair");
	ur_store24(frame + deth + 5, 5 << 18 | 2);
	cr_assert_eq(check(), GUARD_PASS);
	ur_store24(frame + deth + 5, 6 << 18 | 2);
	cr_assert_eq(check(), GUARD_QPN);
	roce(0x64, 1);
	ur_store24(frame + deth + 5, 5 << 18 | 2);
	cr_assert_eq(check(), GUARD_QPN, "a queue pair to QP1");
	roce(0x04, 62 << 18 | 2);
	cr_assert_eq(check(), GUARD_PASS, "RC names no source");
}
