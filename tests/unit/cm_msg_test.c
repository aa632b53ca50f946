/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/cm_msg.h"

static uint32_t rng_state;

static uint8_t rng8(void)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return (uint8_t)(rng_state >> 24);
}

static void random_bytes(uint8_t *to, size_t n, uint32_t seed)
{
	rng_state = seed;
	while (n--)
		*to++ = rng8();
}

/*
 * Decoding loses only reserved bits: an encoded message decodes and encodes to the same bytes, and
 * every truncation is detected.
 */
#define ROUND_TRIP(name, type)                                                                     \
	Test(cm_msg, name##_survives_a_round_trip)                                                 \
	{                                                                                          \
		uint8_t wire[UR_CM_BODY_BYTES], first[UR_CM_BODY_BYTES], second[UR_CM_BODY_BYTES]; \
		type m;                                                                            \
		struct ur_cursor c;                                                                \
                                                                                                   \
		for (uint32_t seed = 0; seed < 200; seed++) {                                      \
			random_bytes(wire, sizeof(wire), seed);                                    \
			c = ur_cursor_ro(wire, sizeof(wire));                                      \
			ur_get_cm_##name(&c, &m);                                                  \
			cr_assert(!c.bad && ur_cursor_left(&c) == 0);                              \
			c = ur_cursor(first, sizeof(first));                                       \
			ur_put_cm_##name(&c, &m);                                                  \
			cr_assert(!c.bad && ur_cursor_left(&c) == 0);                              \
			c = ur_cursor_ro(first, sizeof(first));                                    \
			ur_get_cm_##name(&c, &m);                                                  \
			c = ur_cursor(second, sizeof(second));                                     \
			ur_put_cm_##name(&c, &m);                                                  \
			cr_assert_arr_eq(first, second, sizeof(first));                            \
		}                                                                                  \
	}                                                                                          \
	Test(cm_msg, name##_is_refused_at_every_truncation)                                        \
	{                                                                                          \
		uint8_t wire[UR_CM_BODY_BYTES] = {0};                                              \
		type m;                                                                            \
                                                                                                   \
		for (size_t n = 0; n < sizeof(wire); n++) {                                        \
			struct ur_cursor c = ur_cursor_ro(wire, n);                                \
                                                                                                   \
			ur_get_cm_##name(&c, &m);                                                  \
			cr_assert(c.bad, "%zu bytes were enough", n);                              \
			c = ur_cursor(wire, n);                                                    \
			ur_put_cm_##name(&c, &m);                                                  \
			cr_assert(c.bad, "%zu bytes were room enough", n);                         \
		}                                                                                  \
	}

ROUND_TRIP(req, struct ur_cm_req)
ROUND_TRIP(mra, struct ur_cm_mra)
ROUND_TRIP(rej, struct ur_cm_rej)
ROUND_TRIP(rep, struct ur_cm_rep)
ROUND_TRIP(pair, struct ur_cm_pair)
ROUND_TRIP(dreq, struct ur_cm_dreq)
ROUND_TRIP(sidr_req, struct ur_cm_sidr_req)
ROUND_TRIP(sidr_rep, struct ur_cm_sidr_rep)

Test(cm_msg, mad_header_survives_a_round_trip)
{
	uint8_t wire[UR_MAD_HDR_BYTES], again[UR_MAD_HDR_BYTES];
	struct ur_cursor c;
	struct ur_mad mad;

	random_bytes(wire, sizeof(wire), 7);
	c = ur_cursor_ro(wire, sizeof(wire));
	ur_get_mad(&c, &mad);
	cr_assert(!c.bad && ur_cursor_left(&c) == 0);
	c = ur_cursor(again, sizeof(again));
	ur_put_mad(&c, &mad);
	cr_assert_arr_eq(wire, again, sizeof(wire));
}

/* Every bit of a REQ with a meaning is at its position in IBA table 99. */
Test(cm_msg, req_fields_are_where_the_diagram_shows_them)
{
	uint8_t w[UR_CM_BODY_BYTES];
	struct ur_cursor c = ur_cursor(w, sizeof(w));
	struct ur_cm_req m = {
		.local_comm_id = 0x01020304,
		.service_id = 0x1122334455667788,
		.ca_guid = 0xa1a2a3a4a5a6a7a8,
		.qkey = 0x51525354,
		.qpn = {0x616263},
		.responder_resources = 0x71,
		.initiator_depth = 0x72,
		.remote_resp_timeout = 0x15,
		.transport = UR_CM_TRANSPORT_UC,
		.flow_ctrl = true,
		.psn = {0x818283},
		.local_resp_timeout = 0x0a,
		.retry_cnt = 5,
		.pkey = 0x9192,
		.pmtu = 3,
		.rnr_retry = 6,
		.max_cm_retries = 9,
		.srq = true,
		.primary = {.local_lid = 0xb1b2,
			    .flow_label = 0xc1c2c,
			    .rate = 0x2a,
			    .tclass = 0xd1,
			    .hop_limit = 0xd2,
			    .sl = 0xd,
			    .subnet_local = true,
			    .ack_timeout = 0x13},
	};

	ur_put_cm_req(&c, &m);
	cr_expect_arr_eq(w + 0, "\x01\x02\x03\x04\0\0\0\0", 8);
	cr_expect_arr_eq(w + 8, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	cr_expect_arr_eq(w + 16, "\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\0\0\0\0", 12);
	cr_expect_arr_eq(w + 28, "\x51\x52\x53\x54\x61\x62\x63\x71", 8);
	cr_expect_arr_eq(w + 36, "\0\0\0\x72\0\0\0", 7);
	cr_expect_eq(w[43], 0x15 << 3 | 1 << 1 | 1);
	cr_expect_arr_eq(w + 44, "\x81\x82\x83", 3);
	cr_expect_eq(w[47], 0x0a << 3 | 5);
	cr_expect_arr_eq(w + 48, "\x91\x92", 2);
	cr_expect_eq(w[50], 0x36);
	cr_expect_eq(w[51], 0x98);
	cr_expect_arr_eq(w + 52, "\xb1\xb2", 2);
	cr_expect_arr_eq(w + 88, "\xc1\xc2\xc0\x2a\xd1\xd2\xd8", 7);
	cr_expect_eq(w[95], 0x13 << 3);
}

Test(cm_msg, rep_fields_are_where_the_diagram_shows_them)
{
	uint8_t w[UR_CM_BODY_BYTES];
	struct ur_cursor c = ur_cursor(w, sizeof(w));
	struct ur_cm_rep m = {
		.local_comm_id = 0x01020304,
		.remote_comm_id = 0x05060708,
		.qkey = 0x11121314,
		.qpn = {0x212223},
		.eecn = 0x313233,
		.psn = {0x414243},
		.responder_resources = 0x51,
		.initiator_depth = 0x52,
		.target_ack_delay = 0x0f,
		.failover = 2,
		.flow_ctrl = true,
		.rnr_retry = 6,
		.srq = true,
		.ca_guid = 0x6162636465666768,
	};

	ur_put_cm_rep(&c, &m);
	cr_expect_arr_eq(w, "\1\2\3\4\5\6\7\x8\x11\x12\x13\x14\x21\x22\x23\0\x31\x32\x33\0", 20);
	cr_expect_arr_eq(w + 20, "\x41\x42\x43\0\x51\x52", 6);
	cr_expect_eq(w[26], 0x0f << 3 | 2 << 1 | 1);
	cr_expect_eq(w[27], 6 << 5 | 1 << 4);
	cr_expect_arr_eq(w + 28, "\x61\x62\x63\x64\x65\x66\x67\x68", 8);
}

Test(cm_msg, rej_and_mra_name_the_message_in_their_top_bits)
{
	uint8_t w[UR_CM_BODY_BYTES];
	struct ur_cursor c = ur_cursor(w, sizeof(w));
	struct ur_cm_rej rej = {.about = UR_CM_ABOUT_OTHER, .info_len = 8, .reason = 0x0104};
	struct ur_cm_mra mra = {.about = UR_CM_ABOUT_REP, .service_timeout = 0x18};

	ur_put_cm_rej(&c, &rej);
	cr_expect_arr_eq(w + 8, "\x80\x10\x01\x04", 4);
	c = ur_cursor(w, sizeof(w));
	ur_put_cm_mra(&c, &mra);
	cr_expect_arr_eq(w + 8, "\x40\xc0", 2);
}

Test(rdma_ip, carries_both_address_families)
{
	struct ur_rdma_ip v4 = {.ip_version = 4,
				.sport = 0x1234,
				.src = ur_gid_from_ipv4(0x0a630001),
				.dst = ur_gid_from_ipv4(0x0a630002)};
	struct ur_rdma_ip v6 = {.ip_version = 6,
				.sport = 1,
				.src = {{0xfd, 0x99, [15] = 1}},
				.dst = {{0xfd, 0x99, [15] = 2}}};
	uint8_t w[UR_RDMA_IP_BYTES];
	struct ur_rdma_ip back;
	struct ur_cursor c;

	c = ur_cursor(w, sizeof(w));
	ur_put_rdma_ip(&c, &v4);
	cr_assert(!c.bad && ur_cursor_left(&c) == 0);
	cr_expect_arr_eq(w, "\0\x40\x12\x34\0\0\0\0\0\0\0\0\0\0\0\0\x0a\x63\0\1", 20);
	c = ur_cursor_ro(w, sizeof(w));
	cr_assert(ur_get_rdma_ip(&c, &back));
	cr_expect(back.sport == 0x1234 && ur_gid_eq(&back.src, &v4.src));
	cr_expect(ur_gid_eq(&back.dst, &v4.dst));

	c = ur_cursor(w, sizeof(w));
	ur_put_rdma_ip(&c, &v6);
	c = ur_cursor_ro(w, sizeof(w));
	cr_assert(ur_get_rdma_ip(&c, &back));
	cr_expect(ur_gid_eq(&back.src, &v6.src) && ur_gid_eq(&back.dst, &v6.dst));
}

Test(rdma_ip, refuses_other_versions_and_short_headers)
{
	uint8_t w[UR_RDMA_IP_BYTES] = {0, 0x40};
	struct ur_cursor c = ur_cursor_ro(w, sizeof(w) - 1);
	struct ur_rdma_ip ip;

	cr_expect_not(ur_get_rdma_ip(&c, &ip));
	w[1] = 0x50;
	c = ur_cursor_ro(w, sizeof(w));
	cr_expect_not(ur_get_rdma_ip(&c, &ip));
	w[1] = 0x60;
	w[0] = 0x10;
	c = ur_cursor_ro(w, sizeof(w));
	cr_expect_not(ur_get_rdma_ip(&c, &ip));
}

Test(rdma_ip, service_ids_hold_protocol_and_port)
{
	cr_expect_eq(ur_rdma_ip_service(UR_RDMA_IP_TCP, 7174), 0x0000000001061c06ull);
	cr_expect(ur_is_rdma_ip_service(0x0000000001061c06ull));
	cr_expect_not(ur_is_rdma_ip_service(0x0000000002061c06ull));
	cr_expect_not(ur_is_rdma_ip_service(0x1000000001061c06ull));
}

Test(cm_msg, reasons_and_messages_have_texts)
{
	cr_expect_str_eq(ur_cm_rej_text(8), "no listener for the service id");
	cr_expect_str_eq(ur_cm_rej_text(34), "unknown reason");
	cr_expect_str_eq(ur_cm_attr_text(0x0010), "connection request");
	cr_expect_str_eq(ur_cm_attr_text(0x0019), "unknown CM message");
	cr_expect_str_eq(ur_cm_sidr_text(1), "service id not supported");
	cr_expect_str_eq(ur_cm_sidr_text(6), "unknown status");
}
