/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lease.h"

#define S	     UINT64_C(1000000000)
#define FIRST	     0x0a4d0002 /* 10.77.0.2 */
#define REFUSED(why) (-1 - UR_LEASE_##why)

static struct lease_table t;

static const char *secret(unsigned i)
{
	static char text[8][UR_LEASE_SECRET_BYTES];

	snprintf(text[i % 8], sizeof(text[0]), "%022x", i + 1);
	return text[i % 8];
}

static void start(unsigned addresses, unsigned clients, unsigned per_user)
{
	struct lease_attr a = {FIRST, FIRST + addresses - 1, 24, 0, clients, per_user, 10 * S};

	cr_assert_null(lease_attr_check(&a));
	lease_table_init(&t, &a);
}

static int take(uint32_t address, const char *had, uint32_t uid, const char *fresh, uint64_t now_ns)
{
	struct ur_lease_request r = {.address = address};
	int got;

	memcpy(r.secret, had, strlen(had));
	got = lease_take(&t, &r, uid, fresh, now_ns);
	lease_table_validate(&t);
	return got;
}

Test(uroced_lease, each_client_gets_an_address_of_its_own)
{
	start(3, 8, 8);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(take(0, "", 1, secret((unsigned)i), 0), i);
	cr_assert_eq(lease_address(&t, 2), FIRST + 2);
	cr_assert_eq(take(0, "", 1, secret(3), 0), REFUSED(NO_ADDRESS));
}

/* UROCED-LEASE-01 */
Test(uroced_lease, counts_are_limited)
{
	start(20, 5, 2);
	cr_assert_geq(take(0, "", 7, secret(0), 0), 0);
	cr_assert_geq(take(0, "", 7, secret(1), 0), 0);
	cr_assert_eq(take(0, "", 7, secret(2), 0), REFUSED(QUOTA));
	cr_assert_geq(take(0, "", 8, secret(3), 0), 0);
	cr_assert_geq(take(0, "", 9, secret(4), 0), 0);
	cr_assert_geq(take(0, "", 10, secret(5), 0), 0);
	cr_assert_eq(take(0, "", 11, secret(6), 0), REFUSED(FULL));
	lease_end(&t, 0, 0);
	cr_assert_geq(take(0, "", 7, secret(7), 0), 0);
}

Test(uroced_lease, a_client_may_ask_for_an_address)
{
	start(5, 5, 5);
	cr_assert_eq(take(FIRST + 3, "", 1, secret(0), 0), 3);
	cr_assert_eq(take(FIRST + 3, "", 1, secret(1), 0), REFUSED(TAKEN));
	cr_assert_eq(take(FIRST + 3, secret(0), 1, secret(1), 0), REFUSED(TAKEN),
		     "held, even with its secret");
	cr_assert_eq(take(FIRST - 1, "", 1, secret(1), 0), REFUSED(FOREIGN));
	cr_assert_eq(take(FIRST + 5, "", 1, secret(1), 0), REFUSED(FOREIGN));
	cr_assert_eq(take(1, "", 1, secret(1), 0), REFUSED(FOREIGN));
}

/* UROCED-QUARANTINE-01 */
Test(uroced_lease, in_quarantine_only_its_process_gets_an_address)
{
	start(1, 5, 5);
	cr_assert_eq(take(0, "", 1, secret(0), 0), 0);
	lease_end(&t, 0, S);
	cr_assert_eq(take(0, "", 1, secret(1), 2 * S), REFUSED(NO_ADDRESS));
	cr_assert_eq(take(FIRST, "", 1, secret(1), 2 * S), REFUSED(TAKEN));
	cr_assert_eq(take(FIRST, secret(5), 1, secret(1), 2 * S), REFUSED(TAKEN), "another secret");
	cr_assert_eq(take(FIRST, secret(0), 2, secret(1), 2 * S), REFUSED(TAKEN), "another user");
	cr_assert_eq(take(FIRST, secret(0), 1, secret(1), 2 * S), 0);
	cr_assert_str_eq(t.lease[0].secret, secret(0), "it keeps its secret");
	lease_end(&t, 0, 3 * S);
	cr_assert_eq(take(0, "", 2, secret(1), 13 * S - 1), REFUSED(NO_ADDRESS));
	cr_assert_eq(take(0, "", 2, secret(1), 13 * S), 0);
	cr_assert_str_eq(t.lease[0].secret, secret(1), "a new lease, a new secret");
}

/* UROCED-QUARANTINE-02 */
Test(uroced_lease, a_user_cannot_fill_the_quarantine)
{
	start(6, 6, 2);
	for (unsigned i = 0; i < 20; i++) {
		int got = take(0, "", 7, secret(i), i);

		cr_assert_eq(got, (int)(i % 2));
		cr_assert_str_eq(t.lease[got].secret, secret(i), "not that of the process before");
		lease_end(&t, (unsigned)got, i);
	}
	cr_assert_eq(take(FIRST + 4, "", 7, secret(0), 20), REFUSED(QUOTA));
	cr_assert_eq(take(FIRST + 1, secret(19), 7, secret(1), 20), 1, "it may return");
	cr_assert_eq(take(0, "", 8, secret(2), 20), 2);
}

Test(uroced_lease, the_address_free_for_longest_is_next)
{
	start(3, 5, 5);
	for (unsigned i = 0; i < 3; i++)
		take(0, "", 1, secret(i), 0);
	lease_end(&t, 2, 0);
	cr_assert_eq(take(0, "", 1, secret(3), 10 * S), 2);
	lease_end(&t, 0, 10 * S);
	lease_end(&t, 2, 15 * S);
	cr_assert_eq(take(FIRST + 1, "", 1, secret(4), 20 * S), REFUSED(TAKEN)); /* frees 0 */
	cr_assert_eq(take(0, "", 1, secret(4), 40 * S), 0);
}

Test(uroced_lease, a_restarted_daemon_keeps_addresses_for_their_processes)
{
	start(3, 5, 5);
	cr_assert(lease_restore(&t, FIRST + 1, 1000, secret(0), 0));
	cr_assert_not(lease_restore(&t, FIRST + 1, 1000, secret(1), 0), "twice");
	cr_assert_not(lease_restore(&t, FIRST + 3, 1000, secret(1), 0), "not of the range");
	cr_assert_not(lease_restore(&t, FIRST, 1000, "short", 0));
	cr_assert_not(lease_restore(&t, FIRST, 1000, "zzzzzzzzzzzzzzzzzzzzzz", 0));
	cr_assert_eq(take(0, "", 1, secret(2), 0), 0);
	cr_assert_eq(take(0, "", 1, secret(3), 0), 2);
	cr_assert_eq(take(FIRST + 1, secret(0), 1000, secret(4), 0), 1);
}

/* UROCED-RELEASE-03 */
Test(uroced_lease, a_daemon_that_knows_nothing_of_a_lease_gives_it_back)
{
	start(3, 5, 2);
	cr_assert_eq(take(FIRST + 1, secret(0), 1, secret(1), 0), 1);
	cr_assert_str_eq(t.lease[1].secret, secret(0));
	cr_assert_eq(take(FIRST + 1, secret(0), 1, secret(1), 0), REFUSED(TAKEN), "held");
	lease_end(&t, 1, 0);
	cr_assert_eq(take(FIRST + 1, secret(5), 1, secret(1), S), REFUSED(TAKEN), "in quarantine");
	cr_assert_eq(take(FIRST + 1, secret(0), 1, secret(1), 10 * S), 1, "it has rested");
	cr_assert_str_eq(t.lease[1].secret, secret(0));
	cr_assert_eq(take(0, secret(2), 1, secret(3), 10 * S), 0);
	cr_assert_str_eq(t.lease[0].secret, secret(3), "it asked for no address");
	cr_assert_eq(take(FIRST + 2, secret(2), 1, secret(4), 10 * S), REFUSED(QUOTA));
}

Test(uroced_lease, ranges_that_cannot_be_leased)
{
	static const struct {
		uint32_t first, last;
		uint8_t prefix;
	} bad[] = {
		{FIRST, FIRST - 1, 24},	      {FIRST, FIRST + 300, 24},
		{0x0a4d0000, FIRST, 24},      {FIRST, 0x0a4d00ff, 24},
		{FIRST, FIRST, 31},	      {FIRST, FIRST, 0},
		{0x0a4d0001, 0x0a4d0500, 16}, {0x7f000001, 0x7f000002, 8},
		{0xe0000001, 0xe0000002, 8},  {1, 2, 8},
		{0xfffffff0, 0xfffffff2, 8},
	};
	struct lease_attr a = {FIRST, FIRST, 24, 0, 1, 1, 0};

	cr_assert_null(lease_attr_check(&a));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = (struct lease_attr){bad[i].first, bad[i].last, bad[i].prefix, 0, 1, 1, 0};
		cr_assert_not_null(lease_attr_check(&a), "%u", i);
	}
	a = (struct lease_attr){FIRST, FIRST, 24, 0, 0, 1, 0};
	cr_assert_not_null(lease_attr_check(&a));
}

/* ---- messages ---- */

static struct ur_lease_grant grant(void)
{
	struct ur_lease_grant g = {.address = FIRST,
				   .prefix = 24,
				   .slots_shift = 8,
				   .mtu = 4200,
				   .memif_id = 77,
				   .memif = "uroced.sock.memif"};

	memcpy(g.secret, secret(0), sizeof(g.secret));
	ur_lease_mac(g.address, g.mac);
	return g;
}

Test(uroced_lease, messages_round_trip)
{
	struct ur_lease_request r = {.address = FIRST, .program = "ib_write_bw"}, r2;
	struct ur_lease_grant g = grant(), g2;
	enum ur_lease_refusal why;
	uint8_t msg[UR_LEASE_MESSAGE_MAX];

	memcpy(r.secret, secret(3), sizeof(r.secret));
	ur_lease_put_request(&r, msg);
	cr_assert(ur_lease_get_request(msg, UR_LEASE_REQUEST_BYTES, &r2));
	cr_assert(r2.address == FIRST && !strcmp(r2.secret, r.secret) &&
		  !strcmp(r2.program, r.program));
	ur_lease_put_grant(&g, msg);
	memset(&g2, 0, sizeof(g2));
	cr_assert_eq(ur_lease_get_answer(msg, UR_LEASE_GRANT_BYTES, &g2, &why), UR_LEASE_GRANTED);
	cr_assert_eq(g2.address, FIRST);
	cr_assert(g2.prefix == 24 && g2.slots_shift == 8 && g2.mtu == 4200 && g2.memif_id == 77);
	cr_assert_str_eq(g2.secret, g.secret);
	cr_assert_str_eq(g2.memif, g.memif);
	cr_assert_arr_eq(g2.mac, ((uint8_t[]){2, 0x75, 10, 77, 0, 2}), 6);
	for (unsigned i = 0; i < UR_LEASE_REFUSAL_CNT; i++) {
		ur_lease_put_refusal(i, msg);
		cr_assert_eq(ur_lease_get_answer(msg, UR_LEASE_REFUSAL_BYTES, &g2, &why),
			     UR_LEASE_REFUSED);
		cr_assert_eq(why, i);
		cr_assert_gt(strlen(ur_lease_refusal_text(why)), 10);
	}
}

/* UROCED-MSG-01 */
Test(uroced_lease, messages_about_ports_round_trip)
{
	struct ur_lease_port p = {UR_LEASE_UDP, 4711, true}, p2;
	struct ur_lease_bound b = {UR_LEASE_BOUND, UR_LEASE_UDP, 0, 40000}, b2;
	uint8_t msg[UR_LEASE_PORT_BYTES + 1] = {0};

	ur_lease_put_port(&p, msg);
	for (size_t len = 0; len < sizeof(msg); len++)
		cr_assert_eq(ur_lease_get_port(msg, len, &p2), len == UR_LEASE_PORT_BYTES);
	cr_assert(p2.space == p.space && p2.port == p.port && p2.release);
	for (unsigned i = 0; i < UR_LEASE_PORT_BYTES; i++) {
		msg[i] ^= 0x42;
		if (i != 6 && i != 7)
			cr_assert_not(ur_lease_get_port(msg, UR_LEASE_PORT_BYTES, &p2), "%u", i);
		msg[i] ^= 0x42;
	}
	ur_lease_put_bound(&b, msg);
	for (size_t len = 0; len < sizeof(msg); len++)
		cr_assert_eq(ur_lease_get_bound(msg, len, &b2), len == UR_LEASE_PORT_BYTES);
	cr_assert(b2.status == b.status && b2.space == b.space && !b2.asked && b2.port == 40000);
	b.asked = 4711;
	ur_lease_put_bound(&b, msg);
	cr_assert_not(ur_lease_get_bound(msg, UR_LEASE_PORT_BYTES, &b2), "another port");
	b = (struct ur_lease_bound){UR_LEASE_PORT_TAKEN, UR_LEASE_TCP, 4711, 4711};
	ur_lease_put_bound(&b, msg);
	cr_assert_not(ur_lease_get_bound(msg, UR_LEASE_PORT_BYTES, &b2), "taken, and bound");
}

static void put_be(uint8_t *msg, unsigned at, unsigned bytes, uint64_t v)
{
	while (bytes--)
		msg[at++] = (uint8_t)(v >> 8 * bytes);
}

/* UROCED-MSG-01, UROCED-DIRECT-01: the version is the only difference. */
Test(uroced_lease, a_request_says_whether_its_client_knows_direct_rings)
{
	struct ur_lease_request r = {.address = FIRST, .program = "x"}, r2;
	uint8_t msg[2][UR_LEASE_REQUEST_BYTES];

	memcpy(r.secret, secret(3), sizeof(r.secret));
	for (unsigned i = 0; i < 2; i++) {
		r.direct = i;
		ur_lease_put_request(&r, msg[i]);
		memset(&r2, 0xff, sizeof(r2));
		cr_assert(ur_lease_get_request(msg[i], UR_LEASE_REQUEST_BYTES, &r2));
		cr_assert_eq(r2.direct, i);
		cr_assert(r2.address == FIRST && !strcmp(r2.secret, r.secret) &&
			  !strcmp(r2.program, "x"));
	}
	cr_assert_arr_eq(msg[0], "ULQ1", 4);
	cr_assert_arr_eq(msg[1], "ULQ2", 4);
	cr_assert_arr_eq(msg[0] + 4, msg[1] + 4, UR_LEASE_REQUEST_BYTES - 4);
}

/* UROCED-MSG-01 */
Test(uroced_lease, a_ring_request_round_trips_and_is_refused_when_malformed)
{
	uint8_t msg[UR_LEASE_RING_REQUEST_BYTES + 1] = {0};
	uint32_t address = 77;

	ur_lease_put_ring_request(FIRST, msg);
	for (size_t len = 0; len <= sizeof(msg); len++)
		if (len != UR_LEASE_RING_REQUEST_BYTES)
			cr_assert_not(ur_lease_get_ring_request(msg, len, &address), "%zu", len);
	for (unsigned i = 0; i < 4; i++) {
		msg[i] ^= 0x02;
		cr_assert_not(ur_lease_get_ring_request(msg, UR_LEASE_RING_REQUEST_BYTES, &address),
			      "%u", i);
		msg[i] ^= 0x02;
	}
	cr_assert_eq(address, 77, "as it was");
	cr_assert(ur_lease_get_ring_request(msg, UR_LEASE_RING_REQUEST_BYTES, &address));
	cr_assert_eq(address, FIRST);
}

/* UROCED-MSG-01 */
Test(uroced_lease, messages_about_direct_rings_round_trip)
{
	static const struct ur_lease_direct rings[] = {{FIRST, 4218, true},
						       {FIRST + 1, 65535, false},
						       {1, 1, true},
						       {UINT32_MAX, 0, false}};
	uint8_t msg[UR_LEASE_DIRECT_BYTES];
	struct ur_lease_direct d;

	for (unsigned i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		memset(&d, 0xff, sizeof(d));
		ur_lease_put_direct(&rings[i], msg);
		cr_assert(ur_lease_get_direct(msg, sizeof(msg), &d), "%u", i);
		cr_assert_eq(d.client, rings[i].client);
		cr_assert_eq(d.frame_max, rings[i].frame_max);
		cr_assert_eq(d.second, rings[i].second);
	}
}

/* UROCED-MSG-01 */
Test(uroced_lease, malformed_messages_about_direct_rings_are_refused)
{
	static const struct ur_lease_direct ring = {FIRST, 4218, true};
	static const struct {
		unsigned at, bytes;
		uint64_t v;
		const char *why;
	} bad[] = {
		{0, 4, 0x554c4432, "another version"},
		{0, 4, 0x554c5731, "a ring request"},
		{4, 4, 0, "no client"},
		{8, 2, 0, "an end of no ring"},
		{10, 1, 2, "no such end"},
		{10, 1, 255, "no such end"},
		{11, 1, 1, "not zero"},
		{11, 1, 0x80, "not zero"},
	};
	struct ur_lease_direct d = {7, 8, false};
	uint8_t msg[UR_LEASE_DIRECT_BYTES + 1] = {0};

	ur_lease_put_direct(&ring, msg);
	for (size_t len = 0; len <= sizeof(msg); len++)
		if (len != UR_LEASE_DIRECT_BYTES)
			cr_assert_not(ur_lease_get_direct(msg, len, &d), "%zu", len);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ur_lease_put_direct(&ring, msg);
		put_be(msg, bad[i].at, bad[i].bytes, bad[i].v);
		cr_assert_not(ur_lease_get_direct(msg, UR_LEASE_DIRECT_BYTES, &d), "%s",
			      bad[i].why);
	}
	cr_assert(d.client == 7 && d.frame_max == 8 && !d.second, "as it was");
}

/* UROCED-NUMBER-01 */
Test(uroced_lease, with_one_address_clients_have_numbers)
{
	struct lease_attr a = {1, UR_LEASE_NUMBER_MAX, 24, FIRST, 4, 4, 10 * S};
	char had[UR_LEASE_SECRET_BYTES];

	cr_assert_null(lease_attr_check(&a));
	lease_table_init(&t, &a);
	cr_assert_eq(take(0, "", 7, secret(0), 0), 0);
	memcpy(had, t.lease[0].secret, sizeof(had));
	cr_assert_eq(take(FIRST, "", 7, secret(1), 0), 1);
	cr_assert_eq(take(FIRST + 1, "", 7, secret(2), 0), REFUSED(FOREIGN));
	cr_assert(lease_address(&t, 0) == FIRST && lease_address(&t, 1) == FIRST);
	cr_assert(lease_number(&t, 0) == 1 && lease_number(&t, 1) == 2);
	lease_end(&t, 0, 0);
	cr_assert_eq(take(0, "", 7, secret(3), S), 2, "the number rests");
	cr_assert_eq(take(FIRST, had, 8, secret(4), S), REFUSED(TAKEN));
	cr_assert_eq(take(FIRST, had, 7, secret(4), S), 0, "by its secret");
	cr_assert_str_eq(t.lease[0].secret, had);
	cr_assert(lease_restore(&t, 62, 9, secret(5), S));
	cr_assert_not(lease_restore(&t, 63, 9, secret(5), S));
	a.last++;
	cr_assert_not_null(lease_attr_check(&a));
}

/* UROCED-RELEASE-03 */
Test(uroced_lease, a_secret_says_which_number_it_was)
{
	struct lease_attr a = {1, 61, 24, FIRST, 8, 8, 10 * S};
	char had[UR_LEASE_SECRET_BYTES];

	lease_table_init(&t, &a);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(take(0, "", 7, secret((unsigned)i), 0), i);
	memcpy(had, t.lease[2].secret, sizeof(had));
	lease_table_init(&t, &a);
	cr_assert_eq(take(FIRST, had, 7, secret(3), 0), 2);
	cr_assert_str_eq(t.lease[2].secret, had);
	had[UR_LEASE_SECRET_CHARS - 1] ^= 1;
	cr_assert_eq(take(FIRST, had, 7, secret(4), 0), REFUSED(TAKEN), "another's secret");
	memcpy(had, "3e", 2);
	cr_assert_eq(take(FIRST, had, 7, secret(4), 0), 0, "62 is not one of this daemon's");
	cr_assert_neq(memcmp(t.lease[0].secret + 2, had + 2, 20), 0, "a fresh one");
	memcpy(had, "00", 2);
	cr_assert_eq(take(FIRST, had, 7, secret(5), 0), 1);
	memcpy(had, "3d", 2);
	cr_assert_eq(take(FIRST, had, 7, secret(6), 0), 60);
	cr_assert_str_eq(t.lease[60].secret, had);
}

/* UROCED-MSG-01 */
Test(uroced_lease, malformed_messages_are_refused)
{
	struct ur_lease_request r = {.program = "x"}, r2;
	struct ur_lease_grant g = grant(), g2;
	enum ur_lease_refusal why;
	uint8_t msg[UR_LEASE_MESSAGE_MAX + 1] = {0};

	ur_lease_put_request(&r, msg);
	for (size_t len = 0; len <= UR_LEASE_REQUEST_BYTES + 1; len++)
		cr_assert_eq(ur_lease_get_request(msg, len, &r2), len == UR_LEASE_REQUEST_BYTES);
	msg[3] = '3';
	cr_assert_not(ur_lease_get_request(msg, UR_LEASE_REQUEST_BYTES, &r2), "another version");
	ur_lease_put_request(&r, msg);
	memset(msg + 32, 'x', 32);
	cr_assert_not(ur_lease_get_request(msg, UR_LEASE_REQUEST_BYTES, &r2),
		      "a name without an end");
	ur_lease_put_request(&r, msg);
	msg[32] = '\n';
	cr_assert_not(ur_lease_get_request(msg, UR_LEASE_REQUEST_BYTES, &r2), "not printable");
	ur_lease_put_request(&r, msg);
	msg[40] = 'y';
	cr_assert_not(ur_lease_get_request(msg, UR_LEASE_REQUEST_BYTES, &r2),
		      "bytes behind the end");
	ur_lease_put_grant(&g, msg);
	for (size_t len = 0; len <= UR_LEASE_GRANT_BYTES + 1; len++)
		cr_assert_eq(ur_lease_get_answer(msg, len, &g2, &why),
			     len == UR_LEASE_GRANT_BYTES ? UR_LEASE_GRANTED : UR_LEASE_BAD);
	static const struct {
		unsigned at;
		uint8_t v;
	} bad[] = {{8, 31}, {8, 0},  {9, 15},	{9, 3},	   {10, 0xff}, {10, 0},	  {12, 3},
		   {18, 1}, {19, 1}, {24, 'z'}, {48, '/'}, {48, '.'},  {49, ','}, {48, 0}};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ur_lease_put_grant(&g, msg);
		msg[bad[i].at] = bad[i].v;
		cr_assert_eq(ur_lease_get_answer(msg, UR_LEASE_GRANT_BYTES, &g2, &why),
			     UR_LEASE_BAD, "%u", i);
	}
	ur_lease_put_refusal(UR_LEASE_REFUSAL_CNT, msg);
	cr_assert_eq(ur_lease_get_answer(msg, UR_LEASE_REFUSAL_BYTES, &g2, &why), UR_LEASE_BAD);
}
