/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that two programs connect by hand: numbers over TCP, modify_qp at each end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session.h"

static bool to_init(struct session *s)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.qkey = 0x11111111,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, rc;

	if (s->spec.type == IBV_QPT_UC)
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	mask |= s->spec.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	rc = V(modify_qp)(s->qp, &a, mask);
	return rc == 0 || failed(s, "modify_qp to INIT: %s", strerror(rc));
}

static struct ibv_ah_attr address(const struct session *s)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = s->remote.gid,
			.sgid_index = (uint8_t)s->gid_index,
			.hop_limit = 64},
	};
}

static bool to_rtr(struct session *s)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = session_mtu(s),
		.dest_qp_num = s->remote.qpn,
		.rq_psn = s->remote.psn,
		.max_dest_rd_atomic = (uint8_t)s->spec.rd,
		.min_rnr_timer = (uint8_t)s->spec.rnr_timer,
		.ah_attr = address(s),
	};
	int mask = IBV_QP_STATE, rc;

	if (s->spec.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (s->spec.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rc = V(modify_qp)(s->qp, &a, mask);
	return rc == 0 || failed(s, "modify_qp to RTR: %s", strerror(rc));
}

static bool to_rts(struct session *s)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = our_psn(s),
		.max_rd_atomic = (uint8_t)s->spec.rd,
		.timeout = (uint8_t)s->spec.timeout,
		.retry_cnt = (uint8_t)s->spec.retry,
		.rnr_retry = (uint8_t)s->spec.rnr_retry,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, rc;

	if (s->spec.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	rc = V(modify_qp)(s->qp, &a, mask);
	return rc == 0 || failed(s, "modify_qp to RTS: %s", strerror(rc));
}

static void gid_text(const union ibv_gid *gid, char text[33])
{
	for (unsigned i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", gid->raw[i]);
}

static bool gid_from_text(const char *text, union ibv_gid *gid)
{
	for (unsigned i = 0; i < 16; i++)
		if (sscanf(text + 2 * i, "%2hhx", &gid->raw[i]) != 1)
			return false;
	return true;
}

/* Tells the peer where we are and hears where it is. */
static bool exchange(struct session *s)
{
	union ibv_gid gid;
	char line[256], text[33];
	unsigned long long addr;

	device_gid(s->dev, s->spec.gid, &gid);
	gid_text(&gid, text);
	if (!link_send(s->link, "end %u %u %u %llu %s", s->qp->qp_num, our_psn(s),
		       s->mr[REGION_REMOTE]->rkey,
		       (unsigned long long)(uintptr_t)s->mem[REGION_REMOTE], text))
		return failed(s, "the program at the other end has gone");
	if (!receive_line(s, line, sizeof(line)))
		return false;
	if (sscanf(line, "end %u %u %u %llu %32s", &s->remote.qpn, &s->remote.psn, &s->remote.rkey,
		   &addr, text) != 5 ||
	    !gid_from_text(text, &s->remote.gid))
		return failed(s, "not an end: '%s'", line);
	s->remote.addr = addr;
	return true;
}

static bool connect_manual(struct session *s)
{
	struct ibv_qp_init_attr init = session_qp_attr(s);
	struct ibv_ah_attr ah;

	s->qp = V(create_qp)(s->pd, &init);
	if (s->qp == NULL)
		return failed(s, "create_qp: %s", strerror(errno));
	if (!session_set_mode(s, s->qp) || !exchange(s) || !to_init(s) || !to_rtr(s) || !to_rts(s))
		return false;
	if (s->spec.type == IBV_QPT_UD) {
		ah = address(s);
		s->ah = V(create_ah)(s->pd, &ah);
		if (s->ah == NULL)
			return failed(s, "create_ah: %s", strerror(errno));
	}
	return true;
}

static bool connect_cm(struct session *s)
{
	if (is_us(s->spec.active))
		return meet(s, "listening") && cm_connect(s) && exchange(s);
	return cm_listen(s) && meet(s, "listening") && cm_accept(s) && exchange(s);
}

bool session_connect(struct session *s)
{
	bool ok = strcmp(s->spec.connect, "cm") == 0 ? connect_cm(s) : connect_manual(s);

	return ok && meet(s, "connected");
}
