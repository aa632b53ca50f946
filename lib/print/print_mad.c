/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "print/out.h"
#include "print/print.h"
#include "wire/cm_msg.h"

#define PMTU_BYTES(code) (128u << (code))

static void out_service(struct ur_out *o, uint64_t service_id)
{
	ur_outf(o, " service 0x%016" PRIx64, service_id);
	if (ur_is_rdma_ip_service(service_id))
		ur_outf(o, " (%s port %u)",
			(service_id >> 16 & 0xff) == UR_RDMA_IP_TCP ? "rdma tcp" : "rdma ip",
			(unsigned)(service_id & 0xffff));
}

static void out_rdma_ip(struct ur_out *o, uint64_t service_id, const uint8_t *private_data,
			size_t len)
{
	struct ur_cursor c = ur_cursor_ro(private_data, len);
	struct ur_rdma_ip ip;

	if (!ur_is_rdma_ip_service(service_id) || !ur_get_rdma_ip(&c, &ip))
		return;
	ur_outf(o, " from ");
	ur_out_gid(o, &ip.src);
	ur_outf(o, " port %u to ", ip.sport);
	ur_out_gid(o, &ip.dst);
}

static void out_req(struct ur_out *o, struct ur_cursor *c)
{
	static const char *const transports[] = {"RC", "UC", "RD", "extended"};
	struct ur_cm_req m;

	ur_get_cm_req(c, &m);
	ur_outf(o, " id 0x%" PRIx32, m.local_comm_id);
	out_service(o, m.service_id);
	ur_outf(o,
		" guid 0x%" PRIx64 " %s qpn 0x%" PRIx32 " psn %" PRIu32 " pmtu %u responder %u"
		" initiator %u retry %u rnr_retry %u ack_timeout %u cm_retries %u%s",
		m.ca_guid, transports[m.transport & 3], m.qpn.v, m.psn.v, PMTU_BYTES(m.pmtu & 0xfu),
		m.responder_resources, m.initiator_depth, m.retry_cnt, m.rnr_retry,
		m.primary.ack_timeout, m.max_cm_retries, m.srq ? " srq" : "");
	out_rdma_ip(o, m.service_id, m.private_data, sizeof(m.private_data));
}

static void out_mra(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_mra m;

	ur_get_cm_mra(c, &m);
	ur_outf(o, " id 0x%" PRIx32 " peer 0x%" PRIx32 " about %s timeout %u", m.local_comm_id,
		m.remote_comm_id, m.about == UR_CM_ABOUT_REQ ? "REQ" : "REP", m.service_timeout);
}

static void out_rej(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_rej m;

	ur_get_cm_rej(c, &m);
	ur_outf(o, " id 0x%" PRIx32 " peer 0x%" PRIx32 " reason %u (%s)", m.local_comm_id,
		m.remote_comm_id, m.reason, ur_cm_rej_text(m.reason));
}

static void out_rep(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_rep m;

	ur_get_cm_rep(c, &m);
	ur_outf(o,
		" id 0x%" PRIx32 " peer 0x%" PRIx32 " qpn 0x%" PRIx32 " psn %" PRIu32
		" responder %u initiator %u rnr_retry %u%s guid 0x%" PRIx64,
		m.local_comm_id, m.remote_comm_id, m.qpn.v, m.psn.v, m.responder_resources,
		m.initiator_depth, m.rnr_retry, m.srq ? " srq" : "", m.ca_guid);
}

static void out_pair(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_pair m;

	ur_get_cm_pair(c, &m);
	ur_outf(o, " id 0x%" PRIx32 " peer 0x%" PRIx32, m.local_comm_id, m.remote_comm_id);
}

static void out_dreq(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_dreq m;

	ur_get_cm_dreq(c, &m);
	ur_outf(o, " id 0x%" PRIx32 " peer 0x%" PRIx32 " qpn 0x%" PRIx32, m.local_comm_id,
		m.remote_comm_id, m.remote_qpn.v);
}

static void out_sidr_req(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_sidr_req m;

	ur_get_cm_sidr_req(c, &m);
	ur_outf(o, " id 0x%" PRIx32, m.request_id);
	out_service(o, m.service_id);
	out_rdma_ip(o, m.service_id, m.private_data, sizeof(m.private_data));
}

static void out_sidr_rep(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_cm_sidr_rep m;

	ur_get_cm_sidr_rep(c, &m);
	ur_outf(o, " id 0x%" PRIx32 " status %u (%s) qpn 0x%" PRIx32 " qkey 0x%" PRIx32,
		m.request_id, m.status, ur_cm_sidr_text(m.status), m.qpn.v, m.qkey);
	out_service(o, m.service_id);
}

/* A printer for each message; names and numbers come from UR_CM_ATTRS. */
static const struct {
	uint16_t attr_id;
	const char *name;
	void (*out)(struct ur_out *o, struct ur_cursor *c);
} cm_messages[] = {
	{UR_CM_REQ, "REQ", out_req},
	{UR_CM_MRA, "MRA", out_mra},
	{UR_CM_REJ, "REJ", out_rej},
	{UR_CM_REP, "REP", out_rep},
	{UR_CM_RTU, "RTU", out_pair},
	{UR_CM_DREQ, "DREQ", out_dreq},
	{UR_CM_DREP, "DREP", out_pair},
	{UR_CM_SIDR_REQ, "SIDR_REQ", out_sidr_req},
	{UR_CM_SIDR_REP, "SIDR_REP", out_sidr_rep},
};

static void out_cm(struct ur_out *o, const struct ur_mad *mad, struct ur_cursor *c)
{
	for (size_t i = 0; i < sizeof(cm_messages) / sizeof(cm_messages[0]); i++)
		if (cm_messages[i].attr_id == mad->attr_id) {
			ur_outf(o, "CM %s tid 0x%" PRIx64, cm_messages[i].name, mad->tid);
			cm_messages[i].out(o, c);
			return;
		}
	ur_outf(o, "CM attribute 0x%04x tid 0x%" PRIx64, mad->attr_id, mad->tid);
}

size_t ur_print_mad(char *buf, size_t cap, const uint8_t *bytes, size_t len)
{
	struct ur_cursor c = ur_cursor_ro(bytes, len);
	struct ur_out o = ur_out(buf, cap);
	struct ur_mad mad;

	if (len != UR_MAD_BYTES) {
		ur_outf(&o, "MAD{malformed}");
		return o.len;
	}
	ur_get_mad(&c, &mad);
	ur_outf(&o, "MAD{");
	if (mad.mgmt_class == UR_MAD_CLASS_CM)
		out_cm(&o, &mad, &c);
	else
		ur_outf(&o, "class 0x%02x method 0x%02x attribute 0x%04x tid 0x%" PRIx64,
			mad.mgmt_class, mad.method, mad.attr_id, mad.tid);
	ur_outf(&o, "}");
	return o.len;
}
