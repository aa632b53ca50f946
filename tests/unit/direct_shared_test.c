/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_end.h"

/* Direct rings where all clients of uroced have one address. UROCED-DIRECT-04 */

#define NUMBER 5 /* of this end */
#define OTHER  9 /* of the other one */
#define QPN_AT 47

/* This end's MAC address is the host's. */
static void set_up_shared(void)
{
	struct ur_direct_peer *p;

	set_up();
	d.host.number = NUMBER;
	ur_lease_mac(OWN, d.host.mac);
	ur_store32(d.host.ip4, OWN);
	p = make_ring(&peer, OTHER, FRAME_MAX, 0);
	cr_assert_not_null(p);
	cr_assert_null(ur_direct_add(&d, p));
	ur_direct_set_ready(&peer.ring);
}

TestSuite(direct_shared, .init = set_up_shared, .fini = tear_down_ring);

/* To a queue pair of the client with this number. */
static void address_to(uint8_t *f, uint8_t number)
{
	f[QPN_AT] = (uint8_t)(number << 2 | 3);
}

Test(direct_shared, the_queue_pair_number_names_the_receiver)
{
	uint8_t f[200];

	make_frame(f, sizeof(f), OWN, OWN);
	for (uint8_t n = 0; n < 64; n++) {
		uint32_t wanted = n == NUMBER || n == OTHER || n == 63 ? 0 : n;

		address_to(f, n);
		cr_assert_eq(ur_direct_find(&d, f, sizeof(f)), n == OTHER ? d.peer[0] : NULL, "%u",
			     n);
		cr_assert_eq(ur_direct_request(&d, S), wanted, "%u", n);
	}
}

Test(direct_shared, frames_to_other_hosts_leave_by_the_port)
{
	uint8_t f[200];

	for (unsigned i = 0; i < 6; i++) {
		make_frame(f, sizeof(f), OWN, OWN);
		address_to(f, OTHER);
		f[i] ^= 1;
		cr_assert_null(ur_direct_find(&d, f, sizeof(f)), "%u", i);
		cr_assert_eq(d.wanted, 0, "%u", i);
	}
	make_frame(f, sizeof(f), OWN, OWN);
	address_to(f, OTHER);
	f[42] = 0x64;
	cr_assert_null(ur_direct_find(&d, f, sizeof(f)), "UD");
}

Test(direct_shared, frames_come_from_the_hosts_address)
{
	struct ur_pkt pkt;
	uint8_t f[200];

	make_frame(f, sizeof(f), OWN, OWN);
	push(&peer, f, sizeof(f));
	cr_assert_eq(ur_direct_rx(&d, &source, &pkt, 1), 1);
	cr_assert(is_frame(pkt.data, pkt.len, sizeof(f), OWN, OWN));
	ur_mbuf_free(&source, &pkt, 1);
	for (unsigned i = 0; i < 2; i++) {
		make_frame(f, sizeof(f), OWN, OWN);
		f[i ? 29 : 11]++;
		push(&peer, f, sizeof(f));
		cr_assert_eq(ur_direct_rx(&d, &source, &pkt, 1), 0, "%u", i);
	}
	cr_assert_eq(cnt.direct_refused, 2);
}

Test(direct_shared, a_wake_names_the_end_that_it_wakes)
{
	struct ur_pkt pkt = make_pkt(100, OWN);
	struct rte_mbuf *m;
	const uint8_t *f;

	address_to(pkt.data, OTHER);
	ur_direct_set_sleeps(&peer.ring, true);
	cr_assert_eq(ur_mbuf_tx(&source, &pkt, 1), 1);
	cr_assert_eq(ur_direct_waiting(&peer.ring, 1), 1);
	cr_assert_eq(ur_port_rx(&port, 0, &m, 1), 1);
	f = rte_pktmbuf_mtod(m, const uint8_t *);
	cr_assert_eq(ur_load16(f + 34), OTHER);
	cr_assert_eq(ur_load16(f + 36), UR_LEASE_WAKE_PORT);
	rte_pktmbuf_free(m);
}
