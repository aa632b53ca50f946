/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool failed(struct session *s, const char *fmt, ...)
{
	va_list ap;

	if (s->why[0] != '\0')
		return false;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return false;
}

bool receive_line(struct session *s, char *line, size_t cap)
{
	/* Longer than the peer waits for a completion, so that the peer reports what is missing. */
	unsigned patience_s = s->spec.stall + 15;
	int got = link_recv(s->link, line, cap, patience_s * 1000);

	if (got > 0)
		return true;
	if (got < 0)
		return failed(s, "%s: %s", PEER_NAME, s->link->peer_failure);
	return failed(s, "no word from " PEER_NAME " for %u s", patience_s);
}

bool meet(struct session *s, const char *where)
{
	char line[256];

	if (!link_send(s->link, "at %s", where))
		return failed(s, "the program at the other end has gone");
	if (!receive_line(s, line, sizeof(line)))
		return false;
	if (strncmp(line, "at ", 3) != 0 || strcmp(line + 3, where) != 0)
		return failed(s, "we are at '%s', " PEER_NAME " said '%s'", where, line);
	return true;
}

enum ibv_mtu session_mtu(const struct session *s)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && (128u << code) < s->spec.mtu)
		code++;
	return code;
}

uint32_t our_psn(const struct session *s)
{
	uint32_t psn = s->spec.psn & 0xffffff;

	return strcmp(OUR_NAME, "uroce") == 0 ? psn : psn ^ 0xffffff;
}

bool receives_from_srq(const struct session *s)
{
	return is_us(s->spec.srq);
}

static bool make_regions(struct session *s)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;

	s->region_bytes = plan_region_bytes(&s->spec);
	for (unsigned r = 0; r < REGIONS; r++) {
		s->mem[r] = aligned_alloc(4096, (s->region_bytes + 4095) & ~(size_t)4095);
		s->image[r] = malloc(s->region_bytes);
		if (s->mem[r] == NULL || s->image[r] == NULL)
			return failed(s, "no memory");
		memset(s->mem[r], 0, s->region_bytes);
		s->mr[r] = V(reg_mr)(s->pd, s->mem[r], s->region_bytes,
				     r == REGION_REMOTE ? access : IBV_ACCESS_LOCAL_WRITE);
		if (s->mr[r] == NULL)
			return failed(s, "reg_mr: %s", strerror(errno));
	}
	return true;
}

bool session_open(struct session *s)
{
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = s->spec.depth + 8, .max_sge = s->spec.sge + 1}};
	union ibv_gid gid;

	s->qkey = QKEY;
	s->gid_index = device_gid(s->dev, s->spec.gid, &gid);
	if (s->gid_index < 0)
		return failed(s, "there is no GID of kind '%s'", s->spec.gid);
	s->pd = V(alloc_pd)(s->dev->ctx);
	s->channel = V(create_comp_channel)(s->dev->ctx);
	if (s->pd == NULL || s->channel == NULL)
		return failed(s, "alloc_pd or create_comp_channel: %s", strerror(errno));
	if (!make_regions(s))
		return false;
	s->send_cq = V(create_cq)(s->dev->ctx, (int)s->spec.depth + 8, NULL, NULL, 0);
	s->recv_cq = V(create_cq)(s->dev->ctx, (int)s->spec.depth + 8, NULL, s->channel, 0);
	if (s->send_cq == NULL || s->recv_cq == NULL)
		return failed(s, "create_cq: %s", strerror(errno));
	if (receives_from_srq(s)) {
		s->srq = V(create_srq)(s->pd, &srq);
		if (s->srq == NULL)
			return failed(s, "create_srq: %s", strerror(errno));
	}
	return true;
}

bool session_close(struct session *s)
{
	const char *bad = NULL;

	cm_close(s);
	if (s->ah != NULL && V(destroy_ah)(s->ah) != 0)
		bad = "address handle";
	if (s->qp != NULL && V(destroy_qp)(s->qp) != 0)
		bad = "queue pair";
	if (s->srq != NULL && V(destroy_srq)(s->srq) != 0)
		bad = "SRQ";
	if ((s->send_cq != NULL && V(destroy_cq)(s->send_cq) != 0) ||
	    (s->recv_cq != NULL && V(destroy_cq)(s->recv_cq) != 0))
		bad = "CQ";
	if (s->channel != NULL && V(destroy_comp_channel)(s->channel) != 0)
		bad = "completion channel";
	for (unsigned r = 0; r < REGIONS; r++) {
		if (s->mr[r] != NULL && V(dereg_mr)(s->mr[r]) != 0)
			bad = "memory region";
		free(s->mem[r]);
		free(s->image[r]);
	}
	if (s->pd != NULL && V(dealloc_pd)(s->pd) != 0)
		bad = "protection domain";
	return bad == NULL || failed(s, "cannot destroy the %s", bad);
}

struct ibv_qp_init_attr session_qp_attr(const struct session *s)
{
	return (struct ibv_qp_init_attr){
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = {.max_send_wr = s->spec.depth + 8,
			.max_recv_wr = s->spec.depth + 8,
			.max_send_sge = s->spec.sge + 1,
			.max_recv_sge = s->spec.sge + 1,
			.max_inline_data = 64},
		.qp_type = s->spec.type,
	};
}

bool session_set_mode(struct session *s, struct ibv_qp *qp)
{
#ifdef INTEROP_UROCE
	struct uroce_qp_mode_attr attr = {.mode = strcmp(s->spec.mode, "gbn") == 0
							  ? UROCE_QP_MODE_GBN
							  : UROCE_QP_MODE_REORDER};
	int rc = s->spec.type != IBV_QPT_RC ? 0 : uroce_set_qp_mode(qp, &attr, UROCE_QP_MODE);

	if (rc != 0)
		return failed(s, "set_qp_mode: %s", strerror(rc));
#endif
	return true;
}

bool poll_cq(struct session *s, struct ibv_cq *cq, struct ibv_wc *wc, int cap, int *cnt)
{
	*cnt = V(poll_cq)(cq, cap, wc);
	return *cnt >= 0 || failed(s, "poll_cq: %d", *cnt);
}
