/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <unistd.h>

#include <pcap/pcap.h>

/* The messages of the connection manager after a change of the DSCP/PCP map. */

#define PORT  7471
#define IP_B  "10.77.0.2"
#define VLAN  5
#define DREQ  0x15
#define REP   0x13
#define SL    3
#define SL_IS (24 << 2) /* the default DSCP of SL 3, which has priority 3 */

static const char *const settings[] = {"address.vlan=5", "transport.mode=gbn", NULL};

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_cm_marks, .fini = teardown, .timeout = 240);

static char file[] = "api_cm_marks_test.XXXXXX";

static void capture(void)
{
	char err[256];
	int fd;

	memcpy(file + sizeof(file) - 7, "XXXXXX", 6);
	fd = mkstemp(file);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(uroce_capture_start(A->ctx, file, NULL, 0, err, sizeof(err)), 0, "%s", err);
}

/* Ends the capture, which must contain a message of this kind with these values. */
static void expect_marks(uint8_t attr_id, uint8_t tos, uint8_t pcp)
{
	struct pcap_pkthdr *h;
	const u_char *b;
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *pcap;
	unsigned n = 0;

	cr_assert_eq(uroce_capture_stop(A->ctx, NULL), 0);
	pcap = pcap_open_offline(file, err);
	cr_assert_not_null(pcap, "%s", err);
	while (pcap_next_ex(pcap, &h, &b) == 1) {
		/* Ethernet and tag 18, IPv4 20, UDP 8, BTH 12, DETH 8, MAD */
		if (h->caplen < 66 + 256 || b[12] != 0x81 || b[27] != 17 || b[46] != 0x64 ||
		    b[66 + 17] != attr_id)
			continue;
		cr_expect_eq((b[14] & 0xf) << 8 | b[15], VLAN);
		cr_expect_eq(b[19], tos, "%#x, not %#x", b[19], tos);
		cr_expect_eq(b[14] >> 5, pcp, "%u, not %u", b[14] >> 5, pcp);
		n++;
	}
	pcap_close(pcap);
	unlink(file);
	cr_expect_gt(n, 0, "no such message");
}

static void set_marks(struct end *e, uint8_t sl, uint8_t dscp, uint8_t pcp)
{
	struct uroce_qos_attr qos;
	char err[128] = "";

	cr_assert_eq(uroce_query_qos(e->ctx, &qos), 0);
	qos.sl_dscp[sl] = dscp;
	qos.sl_pcp[sl] = pcp;
	cr_assert_eq(uroce_set_qos(e->ctx, &qos, err, sizeof(err)), 0, "%s", err);
}

static struct uroce_cm_id *listener, *a, *b;
static struct ibv_qp *qa, *qb;

static void request(uint8_t tclass)
{
	struct uroce_cm_event *ev;

	end_open(A, "ring-a.conf", settings);
	end_open(B, "ring-b.conf", settings);
	listener = end_listen(B, PORT);
	a = end_id(A);
	qa = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(uroce_cm_set_service(a, SL, tclass), 0);
	cr_assert_eq(end_try_connect(a, IP_B, PORT, qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	b = ev->id;
	uroce_ack_cm_event(ev);
}

static void accept_it(void)
{
	qb = end_qp(B, IBV_QPT_RC);
	cr_assert_eq(uroce_cm_accept(b, qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

static void disconnect(struct uroce_cm_id *id)
{
	cr_assert_eq(uroce_cm_disconnect(id), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
}

static void drop(void)
{
	cr_expect_eq(uroce_cm_destroy_id(a), 0);
	cr_expect_eq(uroce_cm_destroy_id(b), 0);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

/* Disconnects `id`, checks the traffic class of the message, and frees everything. */
static void part(struct uroce_cm_id *id, uint8_t tos, uint8_t pcp)
{
	capture();
	disconnect(id);
	expect_marks(DREQ, tos, pcp);
	drop();
}

/* CM-DSCP-01, QOS-LIVE-02 */
Test(api_cm_marks, of_the_active_side_follow_the_map)
{
	request(0);
	accept_it();
	set_marks(A, SL, 46, 6);
	part(a, 46 << 2, 6);
}

Test(api_cm_marks, of_another_service_level_change_nothing)
{
	request(0);
	accept_it();
	set_marks(A, SL + 1, 46, 6);
	part(a, SL_IS, 3);
}

Test(api_cm_marks, whose_traffic_class_the_application_chose_stay)
{
	request(10 << 2);
	accept_it();
	set_marks(A, SL, 46, 6);
	part(a, 10 << 2, 6);
}

/* CM-SL-01: the DSCP is that of the request, the priority is our own. */
Test(api_cm_marks, of_the_passive_side_have_the_dscp_of_the_request)
{
	request(0);
	accept_it();
	set_marks(B, SL, 46, 6);
	part(b, SL_IS, 6);
}

/* CM-DSCP-01 */
Test(api_cm_marks, of_a_passive_side_that_chose_for_itself_follow_the_map)
{
	request(0);
	cr_assert_eq(uroce_cm_set_service(b, SL + 1, 0), 0);
	capture();
	accept_it();
	expect_marks(REP, 32 << 2, 4);
	set_marks(B, SL + 1, 46, 6);
	part(b, 46 << 2, 6);
}
