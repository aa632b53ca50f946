/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MGMT-STATUS-01: what the adapter's agent leaves to programs, and no program has registered for, is refused on the way by
 * which it came. The test is the switch at the other end of the adapter's link.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "adapter.h"
#include "wire/icrc.h"
#include "wire/mad_path.h"
#include "wire/packet.h"
#include "wire/smp.h"

#define MS	  UINT64_C(1000000)
#define LID	  9 /* the adapter's */
#define PEER_LID  3
#define GET_TABLE 0x12
#define TID	  UINT64_C(0x1122334455667788)

static const uint8_t mac[6] = {6, 0, 0, 0, 0, 1}, peer_mac[6] = {6, 0, 0, 0, 0, 2};
static char dir[] = "/tmp/uroce-hca-XXXXXX", name[64];
static struct adapter adapter;
static uint64_t now = MS;
static int wire;

static void never(void *arg, void *program, const struct ur_umad_mad *head, const uint8_t *mad)
{
	cr_assert(false, "there is no program");
}

static void make_link(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct adapter_config config = {
		.name = "uroce0", .link = name, .description = "an adapter", .deliver = never};

	cr_assert(mkdtemp(dir));
	snprintf(name, sizeof(name), "unix:%s/link", dir);
	strcpy(at.sun_path, name + 5);
	cr_assert(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0);
	memcpy(config.mac, mac, 6);
	cr_assert_eq(adapter_open(&adapter, &config, now), 0);
	wire = accept(fd, NULL, NULL);
	cr_assert_geq(wire, 0);
	close(fd);
	adapter_run(&adapter, now);
}

static void remove_link(void)
{
	adapter_close(&adapter);
	close(wire);
	unlink(name + 5);
	rmdir(dir);
}

TestSuite(hca_adapter, .init = make_link, .fini = remove_link);

static void begin(uint8_t mad[UR_MAD_BYTES], uint8_t mgmt_class, uint8_t method, uint16_t attr_id)
{
	memset(mad, 0, UR_MAD_BYTES);
	mad[0] = UR_MAD_BASE_VERSION;
	mad[1] = mgmt_class;
	mad[2] = 1;
	mad[3] = method;
	ur_store64(mad + 8, TID);
	ur_store16(mad + 16, attr_id);
	if (mgmt_class != UR_MAD_CLASS_SMP_DR)
		return;
	mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 1;
	mad[UR_SMP_INITIAL + 1] = 1;
	memset(mad + UR_SMP_DR_SLID, 0xff, 4);
}

/* The answer of the adapter; whatever else it sends is passed over. */
static void ask(const struct ur_path *path, const uint8_t *mad, uint8_t *frame,
		struct ur_packet *answer)
{
	bool smp = mad[1] == UR_MAD_CLASS_SMP_LID || mad[1] == UR_MAD_CLASS_SMP_DR;
	unsigned qpn = smp ? UR_SMI_QPN : UR_GSI_QPN;
	unsigned len = ur_mad_frame(frame, path, ur_qpn(qpn), ur_qpn(qpn), ur_psn(0), mad);
	ssize_t got;

	cr_assert_eq(send(wire, frame, len, 0), (ssize_t)len);
	adapter_run(&adapter, now += MS);
	do {
		got = recv(wire, frame, 2048, MSG_DONTWAIT);
		cr_assert_gt(got, 0, "no answer");
		cr_assert(ur_packet_decode(frame, (uint32_t)got, answer) == UR_DROP_NONE &&
			  ur_icrc_ok(frame, answer));
	} while (ur_load64(answer->payload + 8) != TID);
	cr_expect(answer->payload[3] & UR_MAD_METHOD_RESPONSE);
	cr_expect_eq(answer->bth.dqpn.v, qpn);
}

static void set_lid(void)
{
	struct ur_port_info info = {.lid = LID, .sm_lid = PEER_LID};
	uint8_t mad[UR_MAD_BYTES], frame[2048];
	struct ur_packet answer;
	struct ur_path hop;

	begin(mad, UR_MAD_CLASS_SMP_DR, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO);
	ur_put_port_info(mad + UR_SMP_DATA, &info);
	ur_mad_hop_path(&hop, peer_mac);
	ask(&hop, mad, frame, &answer);
	cr_assert_eq(ur_load16(answer.payload + 4), UR_SMP_DIRECTION);
}

static const struct row {
	const char *what;
	uint8_t mgmt_class, method;
	uint16_t attr_id;
	bool is_sm; /* a subnet manager has the port open */
	uint16_t status;
} rows[] = {
	{"an SMP by directed route", UR_MAD_CLASS_SMP_DR, GET_TABLE, UR_SMP_NODE_INFO, false,
	 UR_SMP_DIRECTION | UR_MAD_STATUS_METHOD},
	{"SMInfo by directed route", UR_MAD_CLASS_SMP_DR, UR_MAD_METHOD_GET, UR_SMP_SM_INFO, true,
	 UR_SMP_DIRECTION | UR_MAD_STATUS_ATTRIBUTE},
	{"an SMP by LID", UR_MAD_CLASS_SMP_LID, GET_TABLE, UR_SMP_NODE_INFO, false,
	 UR_MAD_STATUS_METHOD},
	{"subnet administration", UR_MAD_CLASS_SA, UR_MAD_METHOD_GET, 0x35, false,
	 UR_MAD_STATUS_BAD_VERSION},
	{"a table of counters", UR_MAD_CLASS_PERF, GET_TABLE, 0x12, false, UR_MAD_STATUS_METHOD},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void refused(const struct row *r, const struct ur_path *path, enum ur_mad_way way)
{
	uint8_t mad[UR_MAD_BYTES], frame[2048];
	struct ur_packet answer;
	uint16_t slid, dlid;

	adapter_set_clients(&adapter, true, r->is_sm);
	begin(mad, r->mgmt_class, r->method, r->attr_id);
	ask(path, mad, frame, &answer);
	cr_expect_eq(ur_load16(answer.payload + 4), r->status, "%s: status %#x", r->what,
		     ur_load16(answer.payload + 4));
	cr_expect_eq(ur_mad_way_of(&answer, &slid, &dlid), way, "%s", r->what);
	if (way == UR_MAD_LID)
		cr_expect(slid == LID && dlid == PEER_LID, "%s", r->what);
	if (r->mgmt_class != UR_MAD_CLASS_SMP_DR)
		return;
	/* It is on its first hop back, to the port at which the request left the peer. */
	cr_expect_eq(answer.payload[UR_SMP_HOP_POINTER], 1, "%s: hop pointer %u", r->what,
		     answer.payload[UR_SMP_HOP_POINTER]);
	cr_expect_eq(answer.payload[UR_SMP_HOP_COUNT], 1);
	cr_expect_eq(answer.payload[UR_SMP_RETURN + 1], 1);
}

Test(hca_adapter, what_came_by_hop_is_refused_by_hop)
{
	struct ur_path hop;

	ur_mad_hop_path(&hop, peer_mac);
	for (unsigned i = 0; i < ROWS; i++)
		refused(&rows[i], &hop, UR_MAD_HOP);
	/* A LID of its own changes nothing. */
	set_lid();
	for (unsigned i = 0; i < ROWS; i++)
		refused(&rows[i], &hop, UR_MAD_HOP);
}

Test(hca_adapter, what_came_by_lid_is_refused_by_lid)
{
	struct ur_path lid;

	set_lid();
	ur_mad_lid_path(&lid, PEER_LID, LID);
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].mgmt_class != UR_MAD_CLASS_SMP_DR)
			refused(&rows[i], &lid, UR_MAD_LID);
}
