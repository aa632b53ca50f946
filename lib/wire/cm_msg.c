/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/cm_msg.h"

static struct ur_gid get_gid(struct ur_cursor *c)
{
	struct ur_gid gid = {{0}};

	ur_get_bytes(c, gid.b, 16);
	return gid;
}

static void put_path(struct ur_cursor *c, const struct ur_cm_path *p)
{
	ur_put16(c, p->local_lid);
	ur_put16(c, p->remote_lid);
	ur_put_bytes(c, p->local_gid.b, 16);
	ur_put_bytes(c, p->remote_gid.b, 16);
	ur_put32(c, p->flow_label << 12 | (p->rate & 0x3f));
	ur_put8(c, p->tclass);
	ur_put8(c, p->hop_limit);
	ur_put8(c, (uint8_t)(p->sl << 4 | p->subnet_local << 3));
	ur_put8(c, (uint8_t)(p->ack_timeout << 3 | (p->tail & 7)));
}

static void get_path(struct ur_cursor *c, struct ur_cm_path *p)
{
	uint32_t word;
	uint8_t byte;

	p->local_lid = ur_get16(c);
	p->remote_lid = ur_get16(c);
	p->local_gid = get_gid(c);
	p->remote_gid = get_gid(c);
	word = ur_get32(c);
	p->flow_label = word >> 12;
	p->rate = word & 0x3f;
	p->tclass = ur_get8(c);
	p->hop_limit = ur_get8(c);
	byte = ur_get8(c);
	p->sl = byte >> 4;
	p->subnet_local = byte >> 3 & 1;
	byte = ur_get8(c);
	p->ack_timeout = byte >> 3;
	p->tail = byte & 7;
}

void ur_put_cm_req(struct ur_cursor *c, const struct ur_cm_req *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, 0);
	ur_put64(c, m->service_id);
	ur_put64(c, m->ca_guid);
	ur_put32(c, 0);
	ur_put32(c, m->qkey);
	ur_put24(c, m->qpn.v);
	ur_put8(c, m->responder_resources);
	ur_put24(c, m->local_eecn);
	ur_put8(c, m->initiator_depth);
	ur_put24(c, m->remote_eecn);
	ur_put8(c, (uint8_t)(m->remote_resp_timeout << 3 | (m->transport & 3) << 1 | m->flow_ctrl));
	ur_put24(c, m->psn.v);
	ur_put8(c, (uint8_t)(m->local_resp_timeout << 3 | (m->retry_cnt & 7)));
	ur_put16(c, m->pkey);
	ur_put8(c, (uint8_t)(m->pmtu << 4 | m->rdc_exists << 3 | (m->rnr_retry & 7)));
	ur_put8(c, (uint8_t)(m->max_cm_retries << 4 | m->srq << 3 | (m->ext_transport & 7)));
	put_path(c, &m->primary);
	put_path(c, &m->alternate);
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_req(struct ur_cursor *c, struct ur_cm_req *m)
{
	uint8_t byte;

	m->local_comm_id = ur_get32(c);
	ur_take(c, 4);
	m->service_id = ur_get64(c);
	m->ca_guid = ur_get64(c);
	ur_take(c, 4);
	m->qkey = ur_get32(c);
	m->qpn = ur_qpn(ur_get24(c));
	m->responder_resources = ur_get8(c);
	m->local_eecn = ur_get24(c);
	m->initiator_depth = ur_get8(c);
	m->remote_eecn = ur_get24(c);
	byte = ur_get8(c);
	m->remote_resp_timeout = byte >> 3;
	m->transport = byte >> 1 & 3;
	m->flow_ctrl = byte & 1;
	m->psn = ur_psn(ur_get24(c));
	byte = ur_get8(c);
	m->local_resp_timeout = byte >> 3;
	m->retry_cnt = byte & 7;
	m->pkey = ur_get16(c);
	byte = ur_get8(c);
	m->pmtu = byte >> 4;
	m->rdc_exists = byte >> 3 & 1;
	m->rnr_retry = byte & 7;
	byte = ur_get8(c);
	m->max_cm_retries = byte >> 4;
	m->srq = byte >> 3 & 1;
	m->ext_transport = byte & 7;
	get_path(c, &m->primary);
	get_path(c, &m->alternate);
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_mra(struct ur_cursor *c, const struct ur_cm_mra *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, m->remote_comm_id);
	ur_put8(c, (uint8_t)(m->about << 6));
	ur_put8(c, (uint8_t)(m->service_timeout << 3));
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_mra(struct ur_cursor *c, struct ur_cm_mra *m)
{
	m->local_comm_id = ur_get32(c);
	m->remote_comm_id = ur_get32(c);
	m->about = ur_get8(c) >> 6;
	m->service_timeout = ur_get8(c) >> 3;
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_rej(struct ur_cursor *c, const struct ur_cm_rej *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, m->remote_comm_id);
	ur_put8(c, (uint8_t)(m->about << 6));
	ur_put8(c, (uint8_t)(m->info_len << 1));
	ur_put16(c, m->reason);
	ur_put_bytes(c, m->info, sizeof(m->info));
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_rej(struct ur_cursor *c, struct ur_cm_rej *m)
{
	m->local_comm_id = ur_get32(c);
	m->remote_comm_id = ur_get32(c);
	m->about = ur_get8(c) >> 6;
	m->info_len = ur_get8(c) >> 1;
	m->reason = ur_get16(c);
	ur_get_bytes(c, m->info, sizeof(m->info));
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_rep(struct ur_cursor *c, const struct ur_cm_rep *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, m->remote_comm_id);
	ur_put32(c, m->qkey);
	ur_put32(c, m->qpn.v << 8);
	ur_put32(c, m->eecn << 8);
	ur_put32(c, m->psn.v << 8);
	ur_put8(c, m->responder_resources);
	ur_put8(c, m->initiator_depth);
	ur_put8(c, (uint8_t)(m->target_ack_delay << 3 | (m->failover & 3) << 1 | m->flow_ctrl));
	ur_put8(c, (uint8_t)(m->rnr_retry << 5 | m->srq << 4));
	ur_put64(c, m->ca_guid);
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_rep(struct ur_cursor *c, struct ur_cm_rep *m)
{
	uint8_t byte;

	m->local_comm_id = ur_get32(c);
	m->remote_comm_id = ur_get32(c);
	m->qkey = ur_get32(c);
	m->qpn = ur_qpn(ur_get32(c) >> 8);
	m->eecn = ur_get32(c) >> 8;
	m->psn = ur_psn(ur_get32(c) >> 8);
	m->responder_resources = ur_get8(c);
	m->initiator_depth = ur_get8(c);
	byte = ur_get8(c);
	m->target_ack_delay = byte >> 3;
	m->failover = byte >> 1 & 3;
	m->flow_ctrl = byte & 1;
	byte = ur_get8(c);
	m->rnr_retry = byte >> 5;
	m->srq = byte >> 4 & 1;
	m->ca_guid = ur_get64(c);
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_pair(struct ur_cursor *c, const struct ur_cm_pair *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, m->remote_comm_id);
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_pair(struct ur_cursor *c, struct ur_cm_pair *m)
{
	m->local_comm_id = ur_get32(c);
	m->remote_comm_id = ur_get32(c);
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_dreq(struct ur_cursor *c, const struct ur_cm_dreq *m)
{
	ur_put32(c, m->local_comm_id);
	ur_put32(c, m->remote_comm_id);
	ur_put32(c, m->remote_qpn.v << 8);
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_dreq(struct ur_cursor *c, struct ur_cm_dreq *m)
{
	m->local_comm_id = ur_get32(c);
	m->remote_comm_id = ur_get32(c);
	m->remote_qpn = ur_qpn(ur_get32(c) >> 8);
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_sidr_req(struct ur_cursor *c, const struct ur_cm_sidr_req *m)
{
	ur_put32(c, m->request_id);
	ur_put16(c, m->pkey);
	ur_put16(c, 0);
	ur_put64(c, m->service_id);
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_sidr_req(struct ur_cursor *c, struct ur_cm_sidr_req *m)
{
	m->request_id = ur_get32(c);
	m->pkey = ur_get16(c);
	ur_take(c, 2);
	m->service_id = ur_get64(c);
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_put_cm_sidr_rep(struct ur_cursor *c, const struct ur_cm_sidr_rep *m)
{
	ur_put32(c, m->request_id);
	ur_put8(c, m->status);
	ur_put8(c, m->info_len);
	ur_put16(c, 0);
	ur_put32(c, m->qpn.v << 8);
	ur_put64(c, m->service_id);
	ur_put32(c, m->qkey);
	ur_put_bytes(c, m->info, sizeof(m->info));
	ur_put_bytes(c, m->private_data, sizeof(m->private_data));
}

void ur_get_cm_sidr_rep(struct ur_cursor *c, struct ur_cm_sidr_rep *m)
{
	m->request_id = ur_get32(c);
	m->status = ur_get8(c);
	m->info_len = ur_get8(c);
	ur_take(c, 2);
	m->qpn = ur_qpn(ur_get32(c) >> 8);
	m->service_id = ur_get64(c);
	m->qkey = ur_get32(c);
	ur_get_bytes(c, m->info, sizeof(m->info));
	ur_get_bytes(c, m->private_data, sizeof(m->private_data));
}

static void put_ip(struct ur_cursor *c, uint8_t ip_version, const struct ur_gid *addr)
{
	if (ip_version == 4) {
		ur_put_zero(c, 12);
		ur_put_bytes(c, addr->b + 12, 4);
	} else {
		ur_put_bytes(c, addr->b, 16);
	}
}

static struct ur_gid get_ip(struct ur_cursor *c, uint8_t ip_version)
{
	if (ip_version == 4) {
		ur_take(c, 12);
		return ur_gid_from_ipv4(ur_get32(c));
	}
	return get_gid(c);
}

void ur_put_rdma_ip(struct ur_cursor *c, const struct ur_rdma_ip *ip)
{
	ur_put8(c, ip->version);
	ur_put8(c, (uint8_t)(ip->ip_version << 4));
	ur_put16(c, ip->sport);
	put_ip(c, ip->ip_version, &ip->src);
	put_ip(c, ip->ip_version, &ip->dst);
}

bool ur_get_rdma_ip(struct ur_cursor *c, struct ur_rdma_ip *ip)
{
	ip->version = ur_get8(c);
	ip->ip_version = ur_get8(c) >> 4;
	ip->sport = ur_get16(c);
	ip->src = get_ip(c, ip->ip_version);
	ip->dst = get_ip(c, ip->ip_version);
	return !c->bad && ip->version >> 4 == 0 && (ip->ip_version == 4 || ip->ip_version == 6);
}

const char *ur_cm_attr_text(uint16_t attr_id)
{
	switch (attr_id) {
#define X(name, value, text)                                                                       \
	case value:                                                                                \
		return text;
		UR_CM_ATTRS(X)
#undef X
	default:
		return "unknown CM message";
	}
}

const char *ur_cm_rej_text(uint16_t reason)
{
	switch (reason) {
#define X(name, value, text)                                                                       \
	case value:                                                                                \
		return text;
		UR_CM_REJ_REASONS(X)
#undef X
	default:
		return "unknown reason";
	}
}

const char *ur_cm_sidr_text(uint8_t status)
{
	switch (status) {
#define X(name, value, text)                                                                       \
	case value:                                                                                \
		return text;
		UR_CM_SIDR_STATUSES(X)
#undef X
	default:
		return "unknown status";
	}
}
