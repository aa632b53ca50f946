/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_end.h"

TestSuite(direct, .init = set_up_ring, .fini = tear_down_ring);
TestSuite(direct_rings, .init = set_up, .fini = tear_down);

static void expect_counters(uint64_t tx, uint64_t lost, uint64_t rx, uint64_t refused)
{
	cr_assert_eq(cnt.direct_tx, tx);
	cr_assert_eq(cnt.direct_lost, lost);
	cr_assert_eq(cnt.direct_rx, rx);
	cr_assert_eq(cnt.direct_refused, refused);
}

/* ---- rings ---- */

/* UROCED-DIRECT-01 */
Test(direct_rings, descriptors_end_with_the_ring)
{
	unsigned before = descriptors();
	struct ur_direct_peer *p = make_ring(&peer, PEER, FRAME_MAX, 0);

	cr_assert_not_null(p);
	cr_assert_eq(descriptors(), before + 1, "the other end's");
	ur_direct_peer_free(p, false);
	free_other(&peer);
	cr_assert_eq(descriptors(), before);
	ur_direct_peer_free(NULL, true);
}

/* The last ACK of a process is taken after its end; then it can keep the file, and no memory. */
Test(direct_rings, pages_stay_until_the_ring_is_over)
{
	for (unsigned over = 0; over < 2; over++) {
		struct ur_direct_peer *p = make_ring(&peer, PEER, FRAME_MAX, 0);
		struct stat st;

		cr_assert_not_null(p);
		memset(p->ring.own->slots, 7, 100);
		ur_direct_peer_free(p, over);
		cr_assert_eq(fstat(peer.memory, &st), 0);
		cr_expect_eq(st.st_blocks * 512 < (blkcnt_t)peer.bytes / 2, over);
		free_other(&peer);
	}
}

Test(direct_rings, memory_that_is_too_small_is_refused)
{
	static const size_t less[] = {1, 4096, 64 * UR_DIRECT_SLOTS};
	unsigned before = descriptors();

	for (unsigned i = 0; i < 3; i++) {
		cr_assert_null(make_ring(&peer, PEER, FRAME_MAX, less[i]));
		free_other(&peer);
		cr_assert_eq(descriptors(), before);
	}
}

/* What is no memory, and descriptors that did not arrive. */
Test(direct_rings, what_cannot_be_mapped_is_refused)
{
	static const struct ur_lease_direct msg = {PEER, FRAME_MAX, false};
	unsigned before = descriptors();

	cr_expect_null(
		ur_direct_peer_new(&d.host, &msg, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	cr_expect_null(ur_direct_peer_new(&d.host, &msg, -1));
	cr_assert_eq(descriptors(), before);
}

Test(direct_rings, a_ring_replaces_that_of_the_same_address_and_no_seventeenth_is_added)
{
	static struct other o[UR_DIRECT_MAX + 2];
	struct ur_direct_peer *p[UR_DIRECT_MAX + 2];

	for (unsigned i = 0; i < UR_DIRECT_MAX + 2; i++) {
		p[i] = make_ring(&o[i], i == UR_DIRECT_MAX + 1 ? PEER + 5 : PEER + i, 256, 0);
		cr_assert_not_null(p[i]);
	}
	for (unsigned i = 0; i < UR_DIRECT_MAX; i++) {
		cr_assert_not(ur_direct_is_ready(&o[i].ring));
		cr_assert_null(ur_direct_add(&d, p[i]), "%u", i);
		cr_assert(ur_direct_is_ready(&o[i].ring), "it takes frames from now on");
	}
	cr_assert_eq(ur_direct_add(&d, p[UR_DIRECT_MAX]), p[UR_DIRECT_MAX], "no room");
	cr_assert_not(ur_direct_is_ready(&o[UR_DIRECT_MAX].ring));
	cr_assert_eq(ur_direct_add(&d, p[UR_DIRECT_MAX + 1]), p[5], "that of the same address");
	cr_assert(ur_direct_is_ready(&o[UR_DIRECT_MAX + 1].ring));
	cr_assert_null(ur_direct_remove(&d, PEER + UR_DIRECT_MAX), "it was not added");
	cr_assert_eq(ur_direct_remove(&d, PEER + 5), p[UR_DIRECT_MAX + 1]);
	cr_assert_null(ur_direct_remove(&d, PEER + 5));
	cr_assert_null(ur_direct_add(&d, p[UR_DIRECT_MAX]), "now there is room");
	ur_direct_peer_free(p[5], false);
	ur_direct_peer_free(p[UR_DIRECT_MAX + 1], false);
	for (unsigned i = 0; i < UR_DIRECT_MAX + 2; i++)
		free_other(&o[i]);
}

/* ---- which frames leave by a ring ---- */

/* UROCED-DIRECT-01 */
Test(direct, rc_packets_to_the_other_end_leave_by_its_ring)
{
	uint8_t f[FRAME_MAX + 1];

	for (uint32_t len = 58; len <= FRAME_MAX; len += 4160) {
		make_frame(f, len, OWN, PEER);
		for (unsigned op = 0; op < 256; op++) {
			bool rc = op >> 5 == 0 || op >> 5 == 6;

			f[42] = (uint8_t)op;
			cr_assert_eq(ur_direct_find(&d, f, len), rc ? d.peer[0] : NULL, "%x", op);
		}
	}
}

Test(direct, other_frames_do_not_and_request_no_ring)
{
	static const struct {
		unsigned at;
		uint8_t v;
		const char *what;
	} other[] = {
		{42, 0x64, "UD"},
		{42, 0x24, "UC"},
		{42, 0x81, "CNP"},
		{42, 0xa4, "XRC"},
		{12, 0x86, "another type"},
		{13, 0x06, "ARP"},
		{12, 0x81, "a tag"},
		{14, 0x46, "IP options"},
		{14, 0x44, "a header that is too short"},
		{14, 0x65, "another version of IP"},
		{23, 6, "TCP"},
		{36, 0x13, "another port"},
		{37, 0xb8, "another port"},
		{0, 0x03, "a group"},
		{0, 0x00, "no client's address"},
		{1, 0x76, "no client's address"},
	};
	uint8_t f[200];

	for (unsigned to = 0; to < 2; to++) {
		for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
			make_frame(f, sizeof(f), OWN, PEER + to);
			f[other[i].at] = other[i].v;
			cr_assert_null(ur_direct_find(&d, f, sizeof(f)), "%s", other[i].what);
			cr_assert_eq(d.wanted, 0, "%s", other[i].what);
		}
		make_frame(f, sizeof(f), OWN, PEER + to);
		for (uint32_t len = 0; len < 58; len++) {
			cr_assert_null(ur_direct_find(&d, f, len), "%u bytes", len);
			cr_assert_eq(d.wanted, 0);
		}
	}
	cr_assert_null(ur_direct_find(&d, f, sizeof(f)));
	cr_assert_eq(d.wanted, PEER + 1, "unchanged, it would be requested");
}

Test(direct, frames_that_the_ring_cannot_take_leave_by_the_port)
{
	uint8_t f[FRAME_MAX + 1];

	make_frame(f, sizeof(f), OWN, PEER);
	cr_assert_eq(ur_direct_find(&d, f, FRAME_MAX), d.peer[0]);
	cr_assert_null(ur_direct_find(&d, f, FRAME_MAX + 1));
	cr_assert_eq(d.wanted, 0, "there is a ring");
}

Test(direct_rings, nothing_leaves_by_a_ring_whose_other_end_is_not_ready)
{
	struct ur_direct_peer *p = make_ring(&peer, PEER, FRAME_MAX, 0);
	uint8_t f[100];

	cr_assert_not_null(p);
	ur_direct_add(&d, p);
	make_frame(f, sizeof(f), OWN, PEER);
	cr_assert_null(ur_direct_find(&d, f, sizeof(f)));
	cr_assert_eq(d.wanted, 0, "there is a ring");
	ur_direct_set_ready(&peer.ring);
	cr_assert_eq(ur_direct_find(&d, f, sizeof(f)), p);
	free_other(&peer);
}

static void want(uint32_t address)
{
	uint8_t f[100];

	make_frame(f, sizeof(f), OWN, address);
	cr_assert_null(ur_direct_find(&d, f, sizeof(f)));
}

/* UROCED-DIRECT-01 */
Test(direct_rings, each_address_is_requested_once_in_a_second)
{
	cr_assert_eq(ur_direct_request(&d, 5 * S), 0, "nothing was sent");
	want(PEER);
	cr_assert_eq(ur_direct_request(&d, 5 * S), PEER);
	cr_assert_eq(ur_direct_request(&d, 8 * S), 0, "nothing was sent since then");
	for (unsigned i = 0; i < 3; i++) {
		uint64_t now_ns = (10 + i) * S;

		want(PEER);
		cr_assert_eq(ur_direct_request(&d, now_ns), PEER);
		want(PEER);
		cr_assert_eq(ur_direct_request(&d, now_ns), 0);
		want(PEER + 1);
		cr_assert_eq(ur_direct_request(&d, now_ns + 1), PEER + 1, "each by itself");
		want(PEER);
		cr_assert_eq(ur_direct_request(&d, now_ns + S - 1), 0);
		want(PEER + 1);
		cr_assert_eq(ur_direct_request(&d, now_ns + S - 1), 0);
	}
}

/* As many as there can be rings, twice. */
Test(direct_rings, addresses_that_were_requested_are_remembered)
{
	for (unsigned i = 0; i < 2 * UR_DIRECT_MAX; i++) {
		want(PEER + i);
		cr_assert_eq(ur_direct_request(&d, S + i), PEER + i);
	}
	for (unsigned i = 0; i < 2 * UR_DIRECT_MAX; i++) {
		want(PEER + i);
		cr_assert_eq(ur_direct_request(&d, S + 100), 0, "%u", i);
	}
	want(PEER + 100);
	cr_assert_eq(ur_direct_request(&d, S + 100), PEER + 100);
	want(PEER + 1);
	cr_assert_eq(ur_direct_request(&d, S + 100), 0);
	want(PEER);
	cr_assert_eq(ur_direct_request(&d, S + 100), PEER, "the oldest was forgotten");
}

/* ---- send ---- */

static void expect_sent(uint32_t i, uint32_t len)
{
	uint32_t got;
	const uint8_t *f;

	cr_assert_gt(ur_direct_waiting(&peer.ring, UR_DIRECT_SLOTS), i);
	f = ur_direct_frame(&peer.ring, i, &got);
	cr_assert(is_frame(f, got, len, OWN, PEER), "frame %u", i);
}

Test(direct, frames_for_ring_and_port_leave_by_theirs)
{
	static const struct {
		uint32_t len, to;
	} burst[] = {{100, PEER}, {101, PEER}, {102, PEER + 1}, {103, PEER}, {104, 9}, {105, 9}};
	struct ur_pkt pkts[6];
	struct rte_mbuf *m[8];

	for (unsigned i = 0; i < 6; i++)
		pkts[i] = make_pkt(burst[i].len, burst[i].to);
	cr_assert_eq(ur_mbuf_tx(&source, pkts, 6), 6);
	cr_assert_eq(ur_direct_waiting(&peer.ring, 8), 3);
	expect_sent(0, 100);
	expect_sent(1, 101);
	expect_sent(2, 103);
	ur_direct_take(&peer.ring, 3);
	cr_assert_eq(ur_port_rx(&port, 0, m, 8), 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(m[i]->data_len, i ? 103 + i : 102);
		rte_pktmbuf_free(m[i]);
	}
	expect_counters(3, 0, 0, 0);
}

Test(direct, a_frame_in_pieces_arrives_whole)
{
	static uint8_t payload[4096];
	static const uint32_t lens[] = {4093, 2049, 4096};
	struct ur_pkt pkts[3], as;

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	for (unsigned i = 0; i < 3; i++) {
		struct ur_tx tx = {.hdr_len = 54,
				   .l3_off = 14,
				   .pad = -lens[i] & 3,
				   .payload_len = lens[i],
				   .frag_cnt = 1,
				   .frag = {{payload, lens[i]}}};
		uint32_t got;
		const uint8_t *f;

		cr_assert(ur_mbuf_alloc(&source, pkts, 1) && ur_mbuf_alloc(&source, &as, 1));
		make_frame(pkts[0].data, 54, OWN, PEER);
		memcpy(as.data, pkts[0].data, 54);
		tx.hdr = pkts[0].data;
		ur_mbuf_gather.build(&source, pkts, &tx, 1);
		cr_assert(pkts[0].in_pieces);
		tx.hdr = as.data;
		as.len = ur_tx_write(&tx, as.data);
		cr_assert_eq(ur_mbuf_tx(&source, pkts, 1), 1);
		cr_assert_eq(ur_direct_waiting(&peer.ring, 8), 1);
		f = ur_direct_frame(&peer.ring, 0, &got);
		cr_assert_eq(got, as.len);
		cr_assert_arr_eq(f, as.data, as.len);
		ur_direct_take(&peer.ring, 1);
		ur_mbuf_free(&source, &as, 1);
	}
	expect_counters(3, 0, 0, 0);
}

/* Returns how many of n frames were taken; the others go back. */
static unsigned send_some(unsigned n)
{
	struct ur_pkt pkts[UR_BURST];
	unsigned sent;

	for (unsigned i = 0; i < n; i++)
		pkts[i] = make_pkt(100, PEER);
	sent = ur_mbuf_tx(&source, pkts, n);
	ur_mbuf_free(&source, pkts + sent, n - sent);
	return sent;
}

static void fill_up(unsigned slots)
{
	for (unsigned i = 0; i < slots; i += UR_BURST)
		cr_assert_eq(send_some(UR_BURST), UR_BURST);
}

static void fill(void)
{
	fill_up(UR_DIRECT_SLOTS);
}

/* UROCED-DIRECT-03 */
Test(direct, a_ring_that_is_full_loses_frames_after_a_millisecond)
{
	fill();
	for (unsigned again = 0; again < 2; again++) {
		uint64_t lost = cnt.direct_lost, tx = cnt.direct_tx, now_ns = (1 + again) * S / 2;

		set_time(now_ns);
		cr_assert_eq(send_some(4), 0, "they wait");
		set_time(now_ns + MS - 1000);
		cr_assert_eq(send_some(4), 0);
		expect_counters(tx, lost, 0, 0);
		set_time(now_ns + MS + 1000);
		cr_assert_eq(send_some(4), 4, "lost");
		cr_assert_eq(send_some(8), 8, "at once");
		expect_counters(tx, lost + 12, 0, 0);
		/* It takes a few: what does not fit is still lost. */
		ur_direct_take(&peer.ring, 3);
		cr_assert_eq(send_some(8), 8);
		expect_counters(tx + 3, lost + 17, 0, 0);
		/* It takes half a ring: from then on there is a millisecond again. */
		ur_direct_take(&peer.ring, UR_DIRECT_SLOTS / 2);
		fill_up(UR_DIRECT_SLOTS / 2);
		set_time(now_ns + 2 * MS);
		cr_assert_eq(send_some(1), 0);
		expect_counters(tx + 3 + UR_DIRECT_SLOTS / 2, lost + 17, 0, 0);
		/* That takes a few in time changes nothing. */
		ur_direct_take(&peer.ring, 1);
		cr_assert_eq(send_some(2), 1);
		set_time(now_ns + 3 * MS + 1000);
		cr_assert_eq(send_some(1), 1);
		expect_counters(tx + 4 + UR_DIRECT_SLOTS / 2, lost + 18, 0, 0);
		ur_direct_take(&peer.ring, UR_DIRECT_SLOTS);
		fill();
	}
	cr_assert_eq(ur_direct_waiting(&peer.ring, UINT32_MAX), UR_DIRECT_SLOTS);
}

/* UROCED-DIRECT-03: what an end says that it has taken, and has not, is no progress. */
Test(direct, an_end_that_lies_about_what_it_has_taken_holds_nobody_back)
{
	uint64_t now_ns = S;

	fill();
	set_time(now_ns);
	cr_assert_eq(send_some(1), 0);
	for (unsigned i = 1; i <= 10; i++) {
		atomic_store(&peer.ring.own->head, (i << 20) + UR_DIRECT_SLOTS / 2);
		set_time(now_ns += 9 * MS / 10);
		cr_assert_eq(send_some(1), i > 1, "%u", i);
	}
	expect_counters(UR_DIRECT_SLOTS, 9, 0, 0);
}

/* The frames of a worker leave in order, so those behind wait as well. */
Test(direct, a_full_ring_holds_back_what_follows)
{
	struct ur_pkt pkts[4];
	struct rte_mbuf *m[4];

	fill();
	for (unsigned i = 0; i < 4; i++)
		pkts[i] = make_pkt(100 + i, i == 0 || i == 3 ? PEER + 1 : PEER);
	cr_assert_eq(ur_mbuf_tx(&source, pkts, 4), 1);
	cr_assert_eq(ur_port_rx(&port, 0, m, 4), 1);
	cr_assert_eq(m[0]->data_len, 100);
	rte_pktmbuf_free(m[0]);
	ur_direct_take(&peer.ring, UR_DIRECT_SLOTS);
	cr_assert_eq(ur_mbuf_tx(&source, pkts + 1, 3), 3);
	expect_sent(0, 101);
	expect_sent(1, 102);
	cr_assert_eq(ur_port_rx(&port, 0, m, 4), 1);
	cr_assert_eq(m[0]->data_len, 103);
	rte_pktmbuf_free(m[0]);
}

/* How many datagrams for nobody have left by the port; nothing else has. */
static unsigned wakes(void)
{
	struct rte_mbuf *m[UR_BURST];
	unsigned n = ur_port_rx(&port, 0, m, UR_BURST);

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *f = rte_pktmbuf_mtod(m[i], const uint8_t *);
		uint8_t mac[6];

		cr_assert_eq(m[i]->data_len, 42);
		ur_lease_mac(PEER, mac);
		cr_assert_arr_eq(f, mac, 6);
		ur_lease_mac(OWN, mac);
		cr_assert_arr_eq(f + 6, mac, 6);
		cr_assert_eq(ur_load16(f + 16), 28);
		cr_assert_eq(ur_csum_fold(ur_csum_add(0, f + 14, 20)), 0xffff,
			     "the header is sound");
		cr_assert_eq(ur_load16(f + 36), 9, "discard");
		cr_assert_eq(ur_load16(f + 38), 8);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

Test(direct, an_end_that_sleeps_is_woken_once)
{
	cr_assert_eq(send_some(1), 1);
	cr_assert_eq(wakes(), 0, "it polls");
	for (unsigned i = 0; i < 3; i++) {
		ur_direct_set_sleeps(&peer.ring, true);
		ur_direct_set_sleeps(&peer.ring, true);
		cr_assert_eq(send_some(5), 5);
		cr_assert_eq(wakes(), 1);
		cr_assert_eq(send_some(1), 1);
		cr_assert_eq(wakes(), 0, "from this sleep it was");
		ur_direct_set_sleeps(&peer.ring, false);
		cr_assert_eq(send_some(1), 1);
		cr_assert_eq(wakes(), 0);
	}
	expect_counters(22, 0, 0, 0);
}

Test(direct, an_end_that_sleeps_says_so)
{
	cr_assert_not(ur_direct_must_wake(&peer.ring));
	ur_direct_set_sleep(&d, true);
	cr_assert(ur_direct_must_wake(&peer.ring));
	ur_direct_set_sleep(&d, false);
	cr_assert_not(ur_direct_must_wake(&peer.ring));
}

/* The second one goes to sleep after the first was woken, and before that is awake. */
Test(direct, each_thread_that_goes_to_sleep_is_woken)
{
	ur_direct_set_sleep(&d, true);
	cr_assert(ur_direct_must_wake(&peer.ring));
	ur_direct_set_woken(&peer.ring);
	cr_assert_not(ur_direct_must_wake(&peer.ring));
	ur_direct_set_sleep(&d, true);
	cr_assert(ur_direct_must_wake(&peer.ring));
	ur_direct_set_sleep(&d, false);
	cr_assert(ur_direct_must_wake(&peer.ring), "the first one is awake");
	ur_direct_set_sleep(&d, false);
	cr_assert_not(ur_direct_must_wake(&peer.ring));
}

/* ---- receive ---- */

static unsigned receive(struct ur_pkt *pkts, unsigned n)
{
	return ur_direct_rx(&d, &source, pkts, n);
}

/* UROCED-DIRECT-02 */
Test(direct, what_the_other_ends_lease_does_not_permit_is_refused)
{
	static const struct {
		unsigned at;
		uint8_t v;
		const char *what;
	} bad[] = {
		{6, 0x03, "another source MAC"},
		{11, 4, "another source MAC"},
		{26, 11, "another source address"},
		{29, 4, "another source address"},
		{42, 0x64, "UD"},
		{42, 0x24, "UC"},
		{42, 0x81, "CNP"},
		{12, 0x86, "another type"},
		{14, 0x46, "IP options"},
		{23, 6, "TCP"},
		{36, 0x13, "another port"},
	};
	static const unsigned kinds = sizeof(bad) / sizeof(bad[0]);
	struct ur_pkt pkts[UR_BURST];
	uint8_t f[200];
	unsigned got;

	for (unsigned i = 0; i < kinds; i++) {
		push_good(&peer, 100 + i);
		make_frame(f, sizeof(f), PEER, OWN);
		f[bad[i].at] = bad[i].v;
		push(&peer, f, sizeof(f));
		got = receive(pkts, UR_BURST);
		cr_assert_eq(got, 1, "%s", bad[i].what);
		cr_assert(is_frame(pkts[0].data, pkts[0].len, 100 + i, PEER, OWN));
		ur_mbuf_free(&source, pkts, 1);
		expect_counters(0, 0, i + 1, i + 1);
	}
	/* Among good ones, in one burst. */
	for (unsigned i = 0; i < 10; i++) {
		push_good(&peer, 100 + i);
		make_frame(f, sizeof(f), PEER, OWN);
		f[bad[i].at] = bad[i].v;
		push(&peer, f, sizeof(f));
	}
	got = receive(pkts, UR_BURST);
	cr_assert_eq(got, 10);
	for (unsigned i = 0; i < got; i++)
		cr_assert(is_frame(pkts[i].data, pkts[i].len, 100 + i, PEER, OWN), "%u", i);
	ur_mbuf_free(&source, pkts, got);
	expect_counters(0, 0, kinds + 10, kinds + 10);
}

/* UROCED-DIRECT-02 */
Test(direct, frames_that_are_too_short_or_too_long_are_refused)
{
	static const uint32_t lens[] = {0,     57,	   58,	FRAME_MAX, FRAME_MAX + 1,
					65536, UINT32_MAX, 100, 13,	   1};
	struct ur_pkt pkts[UR_BURST];
	unsigned got;

	for (unsigned i = 0; i < 10; i++) {
		make_frame(ur_direct_room(&peer.ring), lens[i] < FRAME_MAX ? 100 : FRAME_MAX, PEER,
			   OWN);
		ur_direct_push(&peer.ring, lens[i]);
	}
	got = receive(pkts, UR_BURST);
	cr_assert_eq(got, 3);
	cr_assert_eq(pkts[0].len, 58);
	cr_assert(is_frame(pkts[1].data, pkts[1].len, FRAME_MAX, PEER, OWN));
	cr_assert(is_frame(pkts[2].data, pkts[2].len, 100, PEER, OWN));
	ur_mbuf_free(&source, pkts, got);
	expect_counters(0, 0, 3, 7);
}

/* The ring has longer frames than the port's buffers. */
Test(direct_rings, frames_that_fit_in_no_buffer_are_refused)
{
	uint16_t room = (uint16_t)port.mbuf_room_bytes;
	struct ur_direct_peer *p = make_ring(&peer, PEER, room + 100, 0);
	struct ur_pkt pkts[4];

	cr_assert_not_null(p);
	ur_direct_add(&d, p);
	for (uint32_t i = 0; i < 3; i++) {
		make_frame(ur_direct_room(&peer.ring), room + i * 50, PEER, OWN);
		ur_direct_push(&peer.ring, room + i * 50);
	}
	cr_assert_eq(receive(pkts, 4), 1);
	cr_assert(is_frame(pkts[0].data, pkts[0].len, room, PEER, OWN));
	ur_mbuf_free(&source, pkts, 1);
	expect_counters(0, 0, 1, 2);
	free_other(&peer);
}

Test(direct, no_more_is_received_than_was_asked_for)
{
	struct ur_pkt pkts[UR_BURST];

	for (uint32_t i = 0; i < 10; i++)
		push_good(&peer, 100 + i);
	for (uint32_t i = 0; i < 10; i += 5) {
		cr_assert_eq(receive(pkts, 5), 5);
		for (uint32_t k = 0; k < 5; k++)
			cr_assert(is_frame(pkts[k].data, pkts[k].len, 100 + i + k, PEER, OWN));
		ur_mbuf_free(&source, pkts, 5);
	}
	cr_assert_eq(receive(pkts, 5), 0);
}

Test(direct, without_a_buffer_frames_stay_in_the_ring)
{
	struct rte_mbuf **m = calloc(port.mbuf_cnt, sizeof(*m));
	struct ur_pkt pkt;

	push_good(&peer, 100);
	cr_assert_eq(rte_pktmbuf_alloc_bulk(port.pool[0], m, port.mbuf_cnt), 0);
	cr_assert_eq(receive(&pkt, 1), 0);
	cr_assert_eq(no_mbuf, 0, "nothing is lost");
	rte_pktmbuf_free_bulk(m, port.mbuf_cnt);
	free(m);
	cr_assert_eq(receive(&pkt, 1), 1);
	cr_assert(is_frame(pkt.data, pkt.len, 100, PEER, OWN));
	ur_mbuf_free(&source, &pkt, 1);
	expect_counters(0, 0, 1, 0);
}

/* One that always has frames keeps neither the port nor another ring from being received. */
Test(direct_rings, rings_and_port_are_received_in_turns)
{
	static struct other o[3];
	unsigned from[4] = {0};

	for (uint32_t i = 0; i < 3; i++)
		cr_assert_null(ur_direct_add(&d, make_ring(&o[i], PEER + i, FRAME_MAX, 0)));
	for (unsigned n = 0; n < 60; n++) {
		struct ur_pkt pkts[4], port_pkt = make_pkt(99, 1);

		for (uint32_t i = 0; i < 3; i++)
			while (ur_direct_waiting(&d.peer[i]->ring, 4) < 4)
				push_good(&o[i], 100 + i);
		cr_assert_eq(ur_mbuf_tx(&source, &port_pkt, 1), 1);
		cr_assert_eq(ur_mbuf_rx(&source, pkts, 4), 4);
		for (unsigned i = 0; i < 4; i++)
			from[pkts[i].len - 99]++;
		ur_mbuf_free(&source, pkts, 4);
	}
	for (unsigned i = 0; i < 4; i++)
		cr_assert_geq(from[i], 20, "%u: %u", i, from[i]);
	for (unsigned i = 0; i < 3; i++)
		free_other(&o[i]);
	for (struct rte_mbuf *m; ur_port_rx(&port, 0, &m, 1);)
		rte_pktmbuf_free(m);
}
