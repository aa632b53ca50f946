/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <unistd.h>

#include <pcap/pcap.h>

/*
 * Compares what the CM of an endpoint announces with what the endpoint does. The frames are
 * inspected, because two ends of ours would agree on a misinterpreted field.
 */
#define PORT 7471
#define IP_B "10.77.0.2"

/* Offsets in an untagged IPv4 frame, and in a MAD. */
#define AT_BTH		   42u
#define AT_MAD		   (AT_BTH + 12 + 8)
#define AT_BODY		   (AT_MAD + 24)
#define CM_REQ		   0x10u
#define CM_REP		   0x13u
#define SEND_ONLY	   0x04u
#define UC_WITHOUT_CREDITS (1u << 1) /* transport service type, end-to-end flow control */

static const char *const settings[] = {"transport.mode=gbn", NULL};

static char file[] = "api_cm_wire_test.XXXXXX";

struct frame {
	uint8_t b[512];
	size_t len;
};

static struct frame frames[64];
static size_t frame_cnt;

static struct uroce_cm_id *listener, *a, *b;
static struct ibv_qp *qa, *qb;
static struct ibv_srq *srq; /* of B's queue pair, or NULL */

static void capture(struct end *e)
{
	char err[256];

	close(mkstemp(file));
	cr_assert_eq(uroce_capture_start(e->ctx, file, NULL, 0, err, sizeof(err)), 0, "%s", err);
}

static void setup(void)
{
	end_open(A, "ring-a.conf", settings);
	end_open(B, "ring-b.conf", settings);
	capture(A);
}

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_cm_wire, .init = setup, .fini = teardown, .timeout = 240);
TestSuite(api_cm_mac, .fini = teardown, .timeout = 240); /* the tests open endpoints themselves */

static void connect_them(enum ibv_qp_type type)
{
	struct uroce_cm_event *ev;

	listener = end_listen(B, PORT);
	a = end_id(A);
	qa = end_qp(A, type);
	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
	qb = end_qp_of(B, type, srq);
	cr_assert_eq(uroce_cm_accept(b, qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

static void drop_them(void)
{
	cr_expect_eq(uroce_cm_destroy_id(a), 0);
	cr_expect_eq(uroce_cm_destroy_id(b), 0);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

/* Ends the capture and reads it. */
static void read_frames(void)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *bytes;
	pcap_t *pcap;

	cr_assert_eq(uroce_capture_stop(A->ctx, NULL), 0);
	pcap = pcap_open_offline(file, err);
	cr_assert_not_null(pcap, "%s", err);
	while (pcap_next_ex(pcap, &h, &bytes) == 1) {
		struct frame *f = &frames[frame_cnt];

		if (h->caplen < AT_BTH + 12 || h->caplen > sizeof(f->b) || bytes[23] != 17)
			continue;
		cr_assert_lt(++frame_cnt, sizeof(frames) / sizeof(frames[0]));
		f->len = h->caplen;
		memcpy(f->b, bytes, h->caplen);
	}
	pcap_close(pcap);
	unlink(file);
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* The body of the first CM message of this kind. */
static const uint8_t *message(uint8_t attr_id)
{
	for (size_t i = 0; i < frame_cnt; i++)
		if (get24(frames[i].b + AT_BTH + 5) == 1 && frames[i].b[AT_MAD + 17] == attr_id)
			return frames[i].b + AT_BODY;
	cr_assert_fail("no message %#x", attr_id);
	return NULL;
}

/* The PSN of the first packet with that opcode to that QP. */
static uint32_t first_psn(uint8_t opcode, uint32_t dest_qpn)
{
	for (size_t i = 0; i < frame_cnt; i++)
		if (frames[i].b[AT_BTH] == opcode && get24(frames[i].b + AT_BTH + 5) == dest_qpn)
			return get24(frames[i].b + AT_BTH + 9);
	cr_assert_fail("no packet with opcode %#x to QP %u", opcode, dest_qpn);
	return 0;
}

static void expect_psns(enum ibv_qp_type type, uint8_t opcode)
{
	uint32_t qpn_a, qpn_b;

	connect_them(type);
	qpn_a = qa->qp_num;
	qpn_b = qb->qp_num;
	end_post_recv(A, qa, 1);
	end_post_recv(B, qb, 2);
	end_post_send(A, qa, 3, "from a");
	cr_assert_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(B).wr_id, 2);
	end_post_send(B, qb, 4, "from b");
	cr_assert_eq(end_wc(B).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(A).wr_id, 1);
	drop_them();
	read_frames();
	cr_expect_eq(first_psn(opcode, qpn_a), get24(message(CM_REQ) + 44));
	cr_expect_eq(first_psn(opcode, qpn_b), get24(message(CM_REP) + 20));
}

/* CM-PSN-01 */
Test(api_cm_wire, each_side_begins_with_the_psn_that_the_other_named)
{
	expect_psns(IBV_QPT_RC, SEND_ONLY);
}

/* CM-GUID-01, CM-FAILOVER-01 */
Test(api_cm_wire, an_endpoint_has_one_guid_and_no_second_path)
{
	struct ibv_device_attr attr;

	connect_them(IBV_QPT_RC);
	drop_them();
	read_frames();
	cr_assert_eq(uroce_query_device(A->ctx, &attr), 0);
	cr_expect_arr_eq(&attr.node_guid, message(CM_REQ) + 16, 8);
	cr_expect_arr_eq(&attr.sys_image_guid, message(CM_REQ) + 16, 8);
	cr_assert_eq(uroce_query_device(B->ctx, &attr), 0);
	cr_expect_arr_eq(&attr.node_guid, message(CM_REP) + 28, 8);
	cr_expect_eq(message(CM_REP)[26] >> 1 & 3, 1, "failover is not supported");
}

/* CM-FLOW-01 */
Test(api_cm_wire, end_to_end_credits_are_announced_where_there_are_any)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

	srq = uroce_create_srq(B->pd, &attr);
	cr_assert_not_null(srq);
	connect_them(IBV_QPT_RC);
	drop_them();
	cr_expect_eq(uroce_destroy_srq(srq), 0);
	read_frames();
	cr_expect_eq(message(CM_REQ)[43] & 1, 1);
	cr_expect_eq(message(CM_REQ)[51] >> 3 & 1, 0, "no SRQ");
	cr_expect_eq(message(CM_REP)[26] & 1, 0);
	cr_expect_eq(message(CM_REP)[27] >> 4 & 1, 1, "an SRQ");
	cr_expect_eq(message(CM_REP)[26] >> 3, 15, "an ACK may take 134 ms");
}

/* CM-FLOW-01 */
Test(api_cm_wire, unreliable_connections_announce_no_credits)
{
	connect_them(IBV_QPT_UC);
	drop_them();
	read_frames();
	cr_expect_eq(message(CM_REQ)[43] & 7, UC_WITHOUT_CREDITS);
	cr_expect_eq(message(CM_REP)[26] & 1, 0);
}

/* CM-PSN-01 */
Test(api_cm_wire, unreliable_connections_begin_so_too)
{
	expect_psns(IBV_QPT_UC, SEND_ONLY | 0x20);
}

/* ---- the way back ---- */

/* Ends B's capture; returns how often B queried A's MAC address. */
static unsigned arp_requests(void)
{
	static const uint8_t ip_a[4] = {10, 77, 0, 1}, ip_b[4] = {10, 77, 0, 2};
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *f;
	pcap_t *pcap;
	unsigned n = 0;

	cr_assert_eq(uroce_capture_stop(B->ctx, NULL), 0);
	pcap = pcap_open_offline(file, err);
	cr_assert_not_null(pcap, "%s", err);
	while (pcap_next_ex(pcap, &h, &f) == 1)
		n += h->caplen >= 42 && f[12] == 8 && f[13] == 6 && f[21] == 1 &&
		     memcmp(f + 28, ip_b, 4) == 0 && memcmp(f + 38, ip_a, 4) == 0;
	pcap_close(pcap);
	unlink(file);
	return n;
}

/* CM-MAC-01: otherwise a forged request, whose sender never answers ARP, would block the application. */
Test(api_cm_mac, accept_sends_no_query_and_answers_the_source_of_the_request)
{
	static const char *const knows_b[] = {"transport.mode=gbn", "address.mac=02:00:00:00:00:0a",
					      "address.neighbor=10.77.0.2=02:00:00:00:00:0b", NULL};
	static const char *const knows_nothing[] = {"transport.mode=gbn",
						    "address.mac=02:00:00:00:00:0b", NULL};

	end_open(A, "ring-a.conf", knows_b);
	end_open(B, "ring-b.conf", knows_nothing);
	capture(B);
	connect_them(IBV_QPT_RC);
	end_post_recv(A, qa, 1);
	end_post_send(B, qb, 2, "from b");
	cr_expect_eq(end_wc(B).status, IBV_WC_SUCCESS);
	cr_expect_eq(end_wc(A).wr_id, 1);
	drop_them();
	cr_expect_eq(arp_requests(), 0);
}
