/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_wire.h"

#include "frames.h"

/* Which frames an endpoint takes for its own. */

static const uint8_t a_mac[6] = {0x02, 0x75, 0x72, 0, 0, 0x0a};
static const uint8_t b_mac[6] = {0x02, 0x75, 0x72, 0, 0, 0x0b};

/* A request to a queue pair that A does not have: what is taken is counted as such. */
static struct ur_packet request(bool has_vlan, uint16_t tci)
{
	static const uint8_t payload[4];
	struct ur_packet p = frame_packet(UR_RC_WRITE_ONLY, false, payload, sizeof(payload));

	memcpy(p.dmac, a_mac, 6);
	memcpy(p.smac, b_mac, 6);
	p.ip.dst = ur_gid_from_ipv4(0x0a4d0001);
	p.ip.src = ur_gid_from_ipv4(0x0a4d0002);
	p.has_vlan = has_vlan;
	p.vlan_tci = tci;
	return p;
}

static uint64_t dropped(const char *reason)
{
	json_t *drops = section(A, "drops");
	uint64_t n = number_of(drops, reason);

	json_decref(drops);
	return n;
}

static void expect_counted(const char *reason, const struct ur_packet *p)
{
	struct ur_packet copy = *p;
	static struct frame f;
	uint64_t before = dropped(reason);

	frame_make(&f, &copy);
	inject(f.b, f.len, f.len);
	cr_expect_eq(dropped(reason), before + 1, "not counted as %s: tag %d 0x%x", reason,
		     p->has_vlan, p->vlan_tci);
}

static void expect_taken(bool has_vlan, uint16_t tci)
{
	struct ur_packet p = request(has_vlan, tci);

	expect_counted("qpn", &p);
}

static void expect_other_vlan(bool has_vlan, uint16_t tci)
{
	struct ur_packet p = request(has_vlan, tci);

	expect_counted("vlan", &p);
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, without_a_vlan_tagged_frames_are_dropped, open_nothing, close_both)
{
	take_wire(NULL);
	expect_taken(false, 0);
	expect_taken(true, 5 << 13);
	expect_other_vlan(true, 100);
	expect_other_vlan(true, 5 << 13 | 100);
	give_wire();
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, in_a_vlan_only_its_frames_are_taken, open_nothing, close_both)
{
	static const char *const set[] = {"address.vlan=100", NULL};

	take_wire(set);
	expect_taken(true, 100);
	expect_taken(true, 7 << 13 | 100);
	expect_other_vlan(false, 0);
	expect_other_vlan(true, 3 << 13);
	expect_other_vlan(true, 101);
	give_wire();
}

/* As a driver gives it that takes tags off; `shared`: the tag cannot be put back. */
static void expect_stripped(const char *reason, uint16_t tci, bool shared)
{
	struct ur_packet p = request(false, 0);
	uint64_t before = dropped(reason);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	static struct frame f;

	cr_assert_not_null(m);
	frame_make(&f, &p);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = tci;
	if (shared)
		rte_mbuf_refcnt_update(m, 1);
	cr_assert_eq(rte_eth_tx_burst(wire, 0, &m, 1), 1);
	progress();
	cr_expect_eq(dropped(reason), before + 1, "not counted as %s: 0x%x", reason, tci);
	if (shared)
		rte_pktmbuf_free(m);
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, a_tag_that_the_driver_took_off_counts, open_nothing, close_both)
{
	static const char *const set[] = {"address.vlan=100", NULL};

	take_wire(set);
	for (int shared = 0; shared < 2; shared++) {
		expect_stripped("qpn", 100, shared);
		expect_stripped("qpn", 6 << 13 | 100, shared);
		expect_stripped("vlan", 101, shared);
		expect_stripped("vlan", 0, shared);
	}
	give_wire();
}
