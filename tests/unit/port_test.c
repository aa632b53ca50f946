/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "edge/impair_pkt.h"
#include "dpdk/mbuf_source.h"
#include "dpdk/port.h"

static char err[512];
static struct ur_port port;

/* Criterion runs each test in its own process, with its own EAL and a ring as port 0. */
static void setup(void)
{
	char line[256], *argv[16];
	int argc = 0;

	snprintf(line, sizeof(line),
		 "port_test --no-huge --no-shconf --no-pci -m 64 --no-telemetry --log-level=*:3 "
		 "--lcores 0 --file-prefix ur_port_test_%d --vdev net_ring0",
		 (int)getpid());
	for (char *arg = strtok(line, " "); arg; arg = strtok(NULL, " "))
		argv[argc++] = arg;
	cr_assert_geq(rte_eal_init(argc, argv), 0);
}

static void teardown(void)
{
	ur_port_close(&port);
	rmdir(rte_eal_get_runtime_dir()); /* the EAL does not remove it */
	rte_eal_cleanup();
}

TestSuite(port, .init = setup, .fini = teardown);
TestSuite(mbuf_source, .init = setup, .fini = teardown);
TestSuite(impair_mbuf, .init = setup, .fini = teardown);

static void open_port(struct ur_port_attr attr)
{
	cr_assert_eq(ur_port_open(&port, 0, &attr, err, sizeof(err)), 0, "%s", err);
}

/* One mbuf with the bytes 0, 1, 2, ... */
/* Byte i of a packet: i, except for the type, which is IPv4. */
static uint8_t content(uint16_t i)
{
	return i == 12 ? 0x08 : i == 13 ? 0x00 : (uint8_t)i;
}

static struct rte_mbuf *make(uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port.pool[0]);
	uint8_t *p;

	cr_assert_not_null(m);
	p = (uint8_t *)rte_pktmbuf_append(m, len);
	cr_assert_not_null(p, "%u bytes fit in one mbuf", len);
	for (uint16_t i = 0; i < len; i++)
		p[i] = content(i);
	return m;
}

static unsigned flipped_bits(struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned bits = 0;

	for (uint16_t i = 0; i < m->data_len; i++)
		bits += (unsigned)__builtin_popcount(p[i] ^ content(i));
	return bits;
}

Test(port, packets_sent_into_a_ring_are_received)
{
	struct rte_mbuf *m, *got = NULL;

	open_port((struct ur_port_attr){.mtu = 4200});
	cr_assert_eq(port.max_payload, 4096);
	cr_assert_eq(port.max_frame_bytes, 4218);
	m = make(4218);
	cr_assert_eq(ur_port_tx(&port, 0, &m, 1), 1);
	cr_assert_eq(ur_port_rx(&port, 0, &got, 1), 1);
	cr_assert_eq(got->pkt_len, 4218);
	cr_assert_eq(flipped_bits(got), 0);
	rte_pktmbuf_free(got);
	cr_assert_eq(rte_mempool_avail_count(port.pool[0]), port.mbuf_cnt, "no mbuf is lost");
}

Test(port, more_queues_than_there_are_grants_what_there_is)
{
	open_port((struct ur_port_attr){.queue_cnt = UR_PORT_QUEUES_MAX, .mbuf_cnt = 63});
	cr_assert_geq(port.queue_cnt, 1);
	cr_assert_leq(port.queue_cnt, UR_PORT_QUEUES_MAX);
	for (unsigned q = 0; q < port.queue_cnt; q++)
		cr_assert_not_null(port.pool[q]);
}

Test(port, pools_hold_their_rings_and_little_more)
{
	open_port((struct ur_port_attr){.rx_desc = 256, .tx_desc = 256, .mbuf_extra_cnt = 1024});
	cr_assert_eq(port.mbuf_cnt, 2047);
	cr_assert_geq(port.mbuf_cnt, port.rx_desc + port.tx_desc + 1024u);
}

Test(port, a_port_that_is_not_there_is_named)
{
	struct ur_port_attr attr = {0};

	cr_assert_eq(ur_port_open(&port, 7, &attr, err, sizeof(err)), -ENODEV);
	cr_assert_not_null(strstr(err, "port 7"), "%s", err);
	cr_assert_not(port.open);
}

Test(port, is_opened_once)
{
	struct ur_port_attr attr = {0};
	struct ur_port other = {0};

	open_port(attr);
	cr_assert_eq(ur_port_open(&other, 0, &attr, err, sizeof(err)), -EBUSY);
	cr_assert_not(other.open);
	ur_port_close(&port);
	ur_port_close(&port);
}

Test(port, its_counters_are_reported_by_name)
{
	json_t *json;
	struct rte_mbuf *m;

	open_port((struct ur_port_attr){0});
	cr_assert_eq(ur_counters_register("/uroce/port", ur_port_counters, &port, "the port"), 0);
	cr_assert_eq(ur_counters_register("/uroce/port", ur_port_counters, &port, "again"),
		     -EEXIST);
	cr_assert_eq(ur_counters_register("uroce", ur_port_counters, &port, "no slash"), -EINVAL);
	m = make(100);
	cr_assert_eq(ur_port_tx(&port, 0, &m, 1), 1);
	json = ur_counters_json("/uroce/port,0");
	cr_assert_eq(json_integer_value(json_object_get(json, "opackets")), 1);
	cr_assert_str_eq(json_string_value(json_object_get(json, "driver")), "net_ring");
	json_decref(json);
	cr_assert_null(ur_counters_json("/uroce/port,1"), "no such port");
	cr_assert_null(ur_counters_json("/uroce/nothing"));
	json = ur_counters_json("/uroce/list");
	cr_assert_str_eq(json_string_value(json_object_get(json, "/uroce/port")), "the port");
	json_decref(json);
	ur_counters_unregister("/uroce/port");
	cr_assert_null(ur_counters_json("/uroce/port"));
}

/* ---- mbufs as a packet source ---- */

static struct ur_mbuf_source source;
static uint64_t no_mbuf;
static const struct ur_source_ops ops = {
	.rx = ur_mbuf_rx, .tx = ur_mbuf_tx, .alloc = ur_mbuf_alloc, .free = ur_mbuf_free};

static void open_source(bool writes)
{
	static const struct ur_clock clock;

	open_port((struct ur_port_attr){0});
	ur_mbuf_source_init(&source, &port, 0, &clock, writes, &no_mbuf);
}

/* No buffer is lost: all but `held` are in the pool once the source has given back what it keeps. */
static void expect_all_back(unsigned held)
{
	ur_mbuf_source_fini(&source);
	cr_assert_eq(rte_mempool_avail_count(port.pool[0]) + held, port.mbuf_cnt);
}

static struct ur_impair_pkt *open_impair(const struct ur_impair_config *cfg)
{
	open_source(true);
	return ur_impair_pkt_new(cfg, 0, &ops, &source, port.mbuf_room_bytes);
}

/* The way of a burst: from the wire, through impairment and to the wire, which is a ring. */
static unsigned impair(struct ur_impair_pkt *imp, struct rte_mbuf **in, unsigned n,
		       struct rte_mbuf **out, unsigned cap, uint64_t now_ns)
{
	struct ur_pkt pkts[UR_BURST], left[UR_BURST];

	cr_assert_eq(ur_port_tx(&port, 0, in, (uint16_t)n), n);
	cr_assert_eq(ur_mbuf_rx(&source, pkts, UR_BURST), n);
	n = ur_impair_pkt_run(imp, pkts, n, left, cap, now_ns);
	cr_assert_eq(ur_mbuf_tx(&source, left, n), n);
	cr_assert_eq(ur_port_rx(&port, 0, out, UR_BURST), n);
	return n;
}

Test(mbuf_source, a_chained_frame_is_received_contiguous)
{
	struct rte_mbuf *m, *tail;
	struct ur_pkt pkt;

	open_source(false);
	m = make(100);
	tail = rte_pktmbuf_alloc(port.pool[0]);
	for (uint16_t i = 100; i < 150; i++)
		*rte_pktmbuf_append(tail, 1) = (char)content(i);
	cr_assert_eq(rte_pktmbuf_chain(m, tail), 0);
	cr_assert_eq(ur_port_tx(&port, 0, &m, 1), 1);
	cr_assert_eq(ur_mbuf_rx(&source, &pkt, 1), 1);
	cr_assert_eq(pkt.len, 150);
	cr_assert_not(pkt.in_pieces);
	for (uint16_t i = 0; i < 150; i++)
		cr_assert_eq(pkt.data[i], content(i));
	ur_mbuf_free(&source, &pkt, 1);
	expect_all_back(0);
}

/* A frame that crosses the wire, longer by `tag` bytes at the front than it was. */
static struct ur_pkt receive_one(uint16_t tag)
{
	struct rte_mbuf *m = make(100);
	struct ur_pkt pkt;

	if (tag)
		cr_assert_not_null(rte_pktmbuf_prepend(m, tag));
	cr_assert_eq(ur_port_tx(&port, 0, &m, 1), 1);
	cr_assert_eq(ur_mbuf_rx(&source, &pkt, 1), 1);
	return pkt;
}

/* EDGE-KEEP-01 */
Test(mbuf_source, one_frame_at_a_time_uses_one_buffer)
{
	struct ur_pkt in, out;
	struct rte_mbuf *m;
	unsigned left;

	open_source(false);
	in = receive_one(4);
	ur_mbuf_free(&source, &in, 1);
	left = rte_mempool_avail_count(port.pool[0]);
	cr_assert_eq(left, port.mbuf_cnt - 1, "the source keeps it");
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(ur_mbuf_alloc(&source, &out, 1));
		m = out.handle;
		cr_assert_eq(out.handle, in.handle);
		cr_assert_eq(out.data, (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, "as new");
		cr_assert_eq(m->ol_flags | m->data_len | m->pkt_len, 0u);
		cr_assert_eq(rte_mempool_avail_count(port.pool[0]), left);
		ur_mbuf_free(&source, &out, 1);
	}
	expect_all_back(0);
}

Test(mbuf_source, what_is_not_as_new_goes_back_to_its_pool)
{
	struct rte_mempool *other = rte_pktmbuf_pool_create("other", 31, 0, 0, 2048, SOCKET_ID_ANY);
	struct ur_pkt pkts[UR_BURST], foreign = {.handle = rte_pktmbuf_alloc(other)}, shared;

	open_source(false);
	cr_assert_not_null(foreign.handle);
	ur_mbuf_free(&source, &foreign, 1);
	cr_assert_eq(rte_mempool_avail_count(other), 31u);
	shared = receive_one(0);
	rte_mbuf_refcnt_set(shared.handle, 2);
	ur_mbuf_free(&source, &shared, 1);
	cr_assert_eq(rte_mbuf_refcnt_read(shared.handle), 1, "another still has it");
	ur_mbuf_free(&source, &shared, 1);
	/* More than the source keeps, a few at a time, and then at once. */
	cr_assert(ur_mbuf_alloc(&source, pkts, UR_BURST));
	for (unsigned i = 0; i < UR_BURST; i += 4)
		ur_mbuf_free(&source, pkts + i, 4);
	cr_assert_eq(rte_mempool_avail_count(port.pool[0]), port.mbuf_cnt - UR_MBUF_KEPT);
	cr_assert(ur_mbuf_alloc(&source, pkts, UR_BURST));
	ur_mbuf_free(&source, pkts, UR_BURST);
	expect_all_back(0);
	rte_mempool_free(other);
}

Test(mbuf_source, a_frame_too_long_for_one_piece_is_lost_and_counted)
{
	struct rte_mbuf *m[3], *tail;
	struct ur_pkt pkts[3];

	open_source(false);
	for (unsigned i = 0; i < 3; i++)
		m[i] = make(100);
	tail = rte_pktmbuf_alloc(port.pool[0]);
	cr_assert_not_null(rte_pktmbuf_append(tail, (uint16_t)port.mbuf_room_bytes));
	cr_assert_eq(rte_pktmbuf_chain(m[0], tail), 0);
	cr_assert_eq(ur_port_tx(&port, 0, m, 3), 3);
	cr_assert_eq(ur_mbuf_rx(&source, pkts, 2), 2, "the third takes the place of the first");
	cr_assert_eq(pkts[0].handle, m[1]);
	cr_assert_eq(pkts[1].handle, m[2]);
	cr_assert_eq(no_mbuf, 1u);
	ur_mbuf_free(&source, pkts, 2);
	expect_all_back(0);
}

Test(mbuf_source, a_tag_that_was_stripped_is_put_back_or_reported)
{
	struct rte_mbuf *m;
	struct ur_pkt pkt;

	open_source(false);
	for (unsigned shared = 0; shared < 2; shared++) {
		m = make(100);
		m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
		m->vlan_tci = 0x2063;
		rte_pktmbuf_refcnt_update(m, (int16_t)shared);
		cr_assert_eq(ur_port_tx(&port, 0, &m, 1), 1);
		cr_assert_eq(ur_mbuf_rx(&source, &pkt, 1), 1);
		cr_assert_eq(pkt.has_tci, shared);
		if (shared) {
			cr_assert_eq(pkt.vlan_tci, 0x2063);
			cr_assert_eq(pkt.len, 100);
			rte_pktmbuf_refcnt_update(m, -1);
		} else {
			static const uint8_t tag[4] = {0x81, 0, 0x20, 0x63};

			cr_assert_eq(pkt.len, 104);
			cr_assert_arr_eq(pkt.data + 12, tag, 4);
		}
		ur_mbuf_free(&source, &pkt, 1);
	}
	expect_all_back(0);
}

Test(mbuf_source, attached_payload_makes_the_frame_that_a_copy_makes)
{
	static uint8_t payload[4096];
	struct ur_pkt pkts[2];
	struct ur_tx tx[2];

	open_source(false);
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	cr_assert(ur_mbuf_alloc(&source, pkts, 2));
	for (unsigned i = 0; i < 2; i++) {
		memset(pkts[i].data, 0x5a, 54);
		tx[i] = (struct ur_tx){.hdr = pkts[i].data,
				       .hdr_len = 54,
				       .l3_off = 14,
				       .pad = 3,
				       .payload_len = 4093,
				       .frag_cnt = 1,
				       .frag = {{payload, 4093}}};
	}
	ur_mbuf_gather.build(&source, pkts, tx, 1);
	pkts[1].len = ur_tx_write(&tx[1], pkts[1].data);
	cr_assert(pkts[0].in_pieces);
	cr_assert_eq(pkts[0].len, pkts[1].len);
	for (unsigned joined = 0; joined < 2; joined++) {
		struct iovec seg[8] = {{0}};
		unsigned cnt = ur_mbuf_gather.segments(&source, &pkts[0], seg, 8), at = 0;

		cr_assert_eq(cnt, joined ? 1 : 3);
		cr_assert_eq(seg[1].iov_base == payload, !joined);
		for (unsigned i = 0; i < cnt; i++) {
			cr_assert_arr_eq(seg[i].iov_base, pkts[1].data + at, seg[i].iov_len);
			at += (unsigned)seg[i].iov_len;
		}
		cr_assert_eq(at, pkts[1].len);
		ur_mbuf_gather.join(&source, &pkts[0]);
	}
	ur_mbuf_free(&source, pkts, 2);
	expect_all_back(0);
}

/* ---- impairment of them ---- */

Test(impair_mbuf, corruption_leaves_arp_and_ethernet_headers_alone)
{
	struct ur_impair_config cfg = {.seed = 6, .corrupt = UINT32_MAX};
	struct ur_impair_pkt *imp = open_impair(&cfg);

	for (unsigned i = 0; i < 300; i++) {
		struct rte_mbuf *m = make(38), *out[UR_BURST];
		uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *), was[14];

		memcpy(was, p, sizeof(was));
		cr_assert_eq(impair(imp, &m, 1, out, 4, 0), 1);
		cr_assert_arr_eq(rte_pktmbuf_mtod(out[0], uint8_t *), was, sizeof(was));
		cr_assert_eq(flipped_bits(out[0]), 1);
		p = rte_pktmbuf_mtod(out[0], uint8_t *);
		for (uint16_t b = 0; b < 38; b++)
			p[b] = content(b);
		p[13] = 0x06; /* ARP */
		m = out[0];
		cr_assert_eq(impair(imp, &m, 1, out, 4, 0), 1);
		rte_pktmbuf_mtod(out[0], uint8_t *)[13] = 0x00;
		cr_assert_eq(flipped_bits(out[0]), 0);
		rte_pktmbuf_free(out[0]);
	}
	ur_impair_pkt_free(imp);
}

Test(impair_mbuf, corruption_flips_one_bit_and_never_in_shared_memory)
{
	struct ur_impair_config cfg = {.seed = 5, .corrupt = UINT32_MAX};
	struct ur_impair_pkt *imp = open_impair(&cfg);

	for (unsigned i = 0; i < 100; i++) {
		struct rte_mbuf *m = make(200), *head = rte_pktmbuf_alloc(port.pool[0]);
		struct rte_mbuf *out[UR_BURST];

		rte_pktmbuf_refcnt_update(m, 1); /* the test's, in addition to the packet's */
		cr_assert_eq(impair(imp, &m, 1, out, 4, 0), 1);
		cr_assert_neq(out[0], m);
		cr_assert_eq(flipped_bits(out[0]), 1);
		cr_assert_eq(flipped_bits(m), 0);
		rte_pktmbuf_free(out[0]);

		rte_pktmbuf_attach(head, m); /* attached without a copy */
		cr_assert_eq(impair(imp, &head, 1, out, 4, 0), 1);
		cr_assert_eq(flipped_bits(out[0]), 1);
		cr_assert_eq(flipped_bits(m), 0);
		rte_pktmbuf_free(out[0]);

		cr_assert_eq(impair(imp, &m, 1, out, 4, 0), 1);
		cr_assert_eq(out[0], m, "what is ours alone is not copied");
		cr_assert_eq(flipped_bits(m), 1);
		rte_pktmbuf_free(m);
	}
	ur_impair_pkt_free(imp);
	expect_all_back(0);
}

Test(impair_mbuf, duplicates_are_copies_and_nothing_leaks)
{
	struct ur_impair_config cfg = {.seed = 6,
				       .duplicate = ur_impair_chance(0.5),
				       .loss = ur_impair_chance(0.2),
				       .reorder = ur_impair_chance(0.3),
				       .reorder_gap = 3,
				       .delay_ns = 100,
				       .jitter_ns = 50,
				       .hold_max = 16};
	struct ur_impair_pkt *imp = open_impair(&cfg);

	for (unsigned i = 0; i < 5000; i++) {
		struct rte_mbuf *m[4], *out[UR_BURST];
		unsigned n;

		for (unsigned k = 0; k < 4; k++)
			m[k] = make(64);
		n = impair(imp, m, 4, out, 8, i * 20);
		for (unsigned k = 0; k < n; k++) {
			cr_assert_eq(rte_mbuf_refcnt_read(out[k]), 1);
			cr_assert_eq(out[k]->data_len, 64);
			cr_assert_eq(flipped_bits(out[k]), 0);
		}
		rte_pktmbuf_free_bulk(out, n);
		n = impair(imp, NULL, 0, out, 8, i * 20 + 1);
		rte_pktmbuf_free_bulk(out, n);
	}
	expect_all_back(ur_impair_held(ur_impair_pkt_impair(imp)));
	ur_impair_pkt_free(imp);
	expect_all_back(0);
}

static uint16_t ipv4_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The IPv4 header of a RoCEv2 packet with this TOS and a correct checksum. */
static size_t make_ipv4(uint8_t *frame, size_t l3, uint8_t tos)
{
	static const uint8_t ip[20] = {0x45, 0, 0,  60, 0, 0, 0x40, 0,	64, 17,
				       0,    0, 10, 99, 0, 1, 10,   99, 0,  2};
	uint16_t sum;

	memset(frame, 0, 100);
	if (l3 == 18)
		frame[12] = 0x81;
	frame[l3 - 2] = 0x08;
	memcpy(frame + l3, ip, 20);
	frame[l3 + 1] = tos;
	sum = (uint16_t)~ipv4_sum(frame + l3);
	frame[l3 + 10] = (uint8_t)(sum >> 8);
	frame[l3 + 11] = (uint8_t)sum;
	return l3 + 60;
}

Test(impair_mbuf, ecn_marks_what_is_capable_and_keeps_the_checksum_right)
{
	uint8_t frame[100];

	for (unsigned tos = 0; tos < 256; tos++)
		for (size_t l3 = 14; l3 <= 18; l3 += 4) {
			size_t len = make_ipv4(frame, l3, (uint8_t)tos);

			cr_assert_eq(ur_impair_mark_frame(frame, len), (tos & 3) != 0);
			cr_assert_eq(frame[l3 + 1], tos & 3 ? tos | 3 : tos);
			cr_assert_eq(ipv4_sum(frame + l3), 0xffff, "tos %u", tos);
		}
	memset(frame, 0, sizeof(frame));
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	cr_assert_not(ur_impair_mark_frame(frame, 74));
	frame[15] = 0x2f; /* ECT(0), and a flow label that must stay */
	cr_assert(ur_impair_mark_frame(frame, 74));
	cr_assert_eq(frame[15], 0x3f);
	cr_assert_not(ur_impair_mark_frame(frame, 20), "too short to have an IP header");
}
