/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <arpa/inet.h>

#include "rsocket/dgram_proto.h"

/* Headers before the data of datagrams. */

static union ur_rs_addr v4(void)
{
	union ur_rs_addr a = {.in = {.sin_family = AF_INET, .sin_port = htons(0x1234)}};

	inet_pton(AF_INET, "10.77.0.1", &a.in.sin_addr);
	return a;
}

static union ur_rs_addr v6(void)
{
	union ur_rs_addr a = {.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(0x1234)}};

	inet_pton(AF_INET6, "fd77::1", &a.in6.sin6_addr);
	return a;
}

/* RSOCKET-UDP-01 */
Test(rsocket_dgram, udp_headers_have_the_bytes_of_the_document)
{
	static const uint8_t want[16] = {0x55, 0x55, 0x55, 0x55, 4,  7,	 16, 0,
					 0,    0x12, 0x34, 0x56, 10, 77, 0,  1};
	union ur_rs_addr a = v4(), b = v6();
	uint8_t got[UR_RS_HEADER_MAX];
	enum ur_rs_udp_op op = UR_RS_UDP_DATA;
	uint32_t qpn = 0;

	cr_assert_eq(ur_rs_put_udp(got, UR_RS_UDP_CTRL, 0x123456, &a), 16);
	cr_expect_arr_eq(got, want, sizeof(want));
	cr_assert_eq(ur_rs_get_udp(got, 20, AF_INET, &op, &qpn), 16);
	cr_expect(op == UR_RS_UDP_CTRL && qpn == 0x123456);
	cr_expect_eq(ur_rs_put_udp(got, UR_RS_UDP_DATA, 7, &b), 28);
	cr_expect_eq(ur_rs_get_udp(got, 28, AF_INET6, &op, &qpn), 28);
	cr_expect(op == UR_RS_UDP_DATA && qpn == 7);
	cr_expect_eq(got[12], 0xfd);
}

/* RSOCKET-UDP-01 */
Test(rsocket_dgram, other_udp_is_ignored)
{
	union ur_rs_addr a = v4();
	uint8_t good[UR_RS_HEADER_MAX];
	enum ur_rs_udp_op op;
	uint32_t qpn = 99;

	ur_rs_put_udp(good, UR_RS_UDP_DATA, 7, &a);
	for (size_t len = 0; len < 16; len++)
		cr_expect_eq(ur_rs_get_udp(good, len, AF_INET, &op, &qpn), 0, "%zu bytes", len);
	cr_expect_eq(ur_rs_get_udp(good, 28, AF_INET6, &op, &qpn), 0, "IPv6 says IPv4");
	for (size_t i = 0; i < 7; i++) {
		uint8_t bad[UR_RS_HEADER_MAX];

		memcpy(bad, good, sizeof(bad));
		bad[i] ^= 2;
		cr_expect_eq(ur_rs_get_udp(bad, 16, AF_INET, &op, &qpn), 0, "byte %zu", i);
	}
	cr_expect_eq(qpn, 99, "nothing is written");
}

/* RSOCKET-UDP-02 */
Test(rsocket_dgram, sends_tell_the_address_that_they_come_from)
{
	static const uint8_t want[8] = {4, 8, 0x12, 0x34, 10, 77, 0, 1};
	union ur_rs_addr a = v4(), b = v6(), from;
	uint8_t got[UR_RS_HEADER_MAX];

	cr_assert_eq(ur_rs_put_send(got, &a), 8);
	cr_expect_arr_eq(got, want, sizeof(want));
	cr_assert_eq(ur_rs_get_send(got, 8, AF_INET, &from), 8);
	cr_expect(ur_rs_same_addr(&from, &a));
	cr_expect_not(ur_rs_same_addr(&from, &b));
	cr_assert_eq(ur_rs_put_send(got, &b), 24);
	cr_assert_eq(ur_rs_get_send(got, 24, AF_INET6, &from), 24);
	cr_expect(ur_rs_same_addr(&from, &b));
}

/* RSOCKET-UDP-02 */
Test(rsocket_dgram, no_header_reaches_beyond_its_datagram)
{
	union ur_rs_addr a = v4(), b = v6(), from = a;
	uint8_t good[UR_RS_HEADER_MAX];

	ur_rs_put_send(good, &b);
	for (size_t len = 0; len < 24; len++)
		cr_expect_eq(ur_rs_get_send(good, len, AF_INET6, &from), 0, "%zu bytes", len);
	ur_rs_put_send(good, &a);
	for (size_t len = 0; len < 8; len++)
		cr_expect_eq(ur_rs_get_send(good, len, AF_INET, &from), 0, "%zu bytes", len);
	good[1] = 200;
	cr_expect_eq(ur_rs_get_send(good, sizeof(good), AF_INET, &from), 0);
	good[0] = 5;
	good[1] = 8;
	cr_expect_eq(ur_rs_get_send(good, sizeof(good), AF_INET, &from), 0);
	cr_expect(ur_rs_same_addr(&from, &a), "nothing is written");
}

/* RSOCKET-UDP-02 */
Test(rsocket_dgram, sends_of_the_other_family_are_dropped)
{
	union ur_rs_addr a = v4(), b = v6(), from = a;
	uint8_t good[UR_RS_HEADER_MAX];

	ur_rs_put_send(good, &b);
	cr_expect_eq(ur_rs_get_send(good, sizeof(good), AF_INET, &from), 0);
	ur_rs_put_send(good, &a);
	cr_expect_eq(ur_rs_get_send(good, sizeof(good), AF_INET6, &from), 0);
	cr_expect(ur_rs_same_addr(&from, &a), "nothing is written");
}
