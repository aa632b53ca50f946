/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects queue pairs without CM: the programs exchange numbers over TCP, then call modify_qp. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cm.h"

static bool to_init(struct session *s)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.qkey = QKEY,
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

/* Exchanges the GIDs of both ends. */
static bool exchange_gids(struct session *s)
{
	union ibv_gid gid;
	char line[256], text[33];

	device_gid(s->dev, s->spec.gid, &gid);
	gid_text(&gid, text);
	if (!link_send(s->link, "gid %s", text))
		return failed(s, "the program at the other end has gone");
	if (!receive_line(s, line, sizeof(line)))
		return false;
	return (strncmp(line, "gid ", 4) == 0 && gid_from_text(line + 4, &s->remote.gid)) ||
	       failed(s, "not a GID: '%s'", line);
}

/* Exchanges queue pair numbers, first PSNs and memory of both ends. */
static bool exchange_ends(struct session *s)
{
	unsigned long long addr;
	char line[256];

	if (!link_send(s->link, "end %u %u %u %u %llu", s->qp->qp_num, our_psn(s),
		       s->mr[REGION_REMOTE]->rkey, s->mr[REGION_RECEIVE]->rkey,
		       (unsigned long long)(uintptr_t)s->mem[REGION_REMOTE]))
		return failed(s, "the program at the other end has gone");
	if (!receive_line(s, line, sizeof(line)))
		return false;
	if (sscanf(line, "end %u %u %u %u %llu", &s->remote.qpn, &s->remote.psn, &s->remote.rkey,
		   &s->remote_local_rkey, &addr) != 5)
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
	if (!session_set_mode(s, s->qp) || !exchange_ends(s) || !to_init(s) || !to_rtr(s) ||
	    !to_rts(s))
		return false;
	if (s->spec.type == IBV_QPT_UD) {
		ah = address(s);
		s->ah = V(create_ah)(s->pd, &ah);
		if (s->ah == NULL)
			return failed(s, "create_ah: %s", strerror(errno));
	}
	return true;
}

static bool by_cm(const struct session *s)
{
	return strcmp(s->spec.connect, "cm") == 0;
}

bool session_listen(struct session *s)
{
	return exchange_gids(s) && cm_open(s) && (is_us(s->spec.active) || cm_listen(s)) &&
	       meet(s, "listening");
}

bool session_connect_cm(struct session *s)
{
	return (is_us(s->spec.active) ? cm_connect(s) : cm_accept(s)) && exchange_ends(s) &&
	       meet(s, "connected");
}

bool session_connect(struct session *s)
{
	if (by_cm(s))
		return session_listen(s) && session_connect_cm(s);
	return exchange_gids(s) && connect_manual(s) && meet(s, "connected");
}

bool session_disconnect(struct session *s)
{
	return !by_cm(s) || cm_disconnect(s, is_us(s->spec.active));
}
