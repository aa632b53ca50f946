/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udaddy: the client resolves the server's UD queue pair by SIDR and sends it `count` datagrams
 * with its own QPN as immediate data. The server sends the same number of datagrams to the source
 * of the first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

enum {
	UDADDY_PORT = 7174,
	GRH_BYTES = 40,
	MAX_COUNT = 60,
	UDP_QKEY = 0x01234567, /* RDMA_UDP_QKEY */
};

static char out[4096], in[MAX_COUNT][4096 + GRH_BYTES];
static struct ibv_mr *out_mr, *in_mr;

static void make_qp(struct peer *p)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

	peer_make_qp(p, IBV_QPT_UD, UDP_QKEY);
	must(uroce_modify_qp(p->qp, &a, IBV_QP_STATE), "modify_qp to RTR");
	a.qp_state = IBV_QPS_RTS;
	must(uroce_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "modify_qp to RTS");
	out_mr = peer_memory(p, out, sizeof(out));
	in_mr = peer_memory(p, in, sizeof(in));
	for (unsigned i = 0; i < p->count; i++)
		peer_receive(p, in_mr, in[i], p->bytes + GRH_BYTES);
}

static void send_all(struct peer *p, struct ibv_ah *ah, uint32_t qpn)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = htobe32(p->qp->qp_num),
			.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = UDP_QKEY},
		};

		peer_post(p, &wr, out_mr, out, p->bytes);
	}
	for (unsigned i = 0; i < p->count; i++)
		peer_completion(p, p->send_cq);
}

/* Receives all datagrams; returns the completion of the first. */
static struct ibv_wc receive_all(struct peer *p)
{
	struct ibv_wc first, wc;

	for (unsigned i = 0; i < p->count; i++) {
		wc = peer_completion(p, p->recv_cq);
		if (i == 0)
			first = wc;
		if (wc.byte_len != p->bytes + GRH_BYTES || (wc.wc_flags & IBV_WC_GRH) == 0)
			die("datagram %u has %u bytes", i, wc.byte_len);
	}
	return first;
}

static void server(struct peer *p)
{
	struct uroce_cm_event *event;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	must(uroce_cm_create_id(p->channel, NULL, &p->listener), "cm_create_id");
	must(uroce_cm_sidr_listen(p->listener, UDADDY_PORT), "cm_sidr_listen");
	make_qp(p);
	printf("listening\n");
	event = peer_event(p, UROCE_CM_SIDR_REQUEST);
	p->id = event->id;
	uroce_ack_cm_event(event);
	must(uroce_cm_sidr_reply(p->id, p->qp, UDP_QKEY, 0), "cm_sidr_reply");
	wc = receive_all(p);
	must(uroce_init_ah_from_wc(p->ctx, 1, &wc, (struct ibv_grh *)in[0], &attr),
	     "init_ah_from_wc");
	ah = uroce_create_ah(p->pd, &attr);
	if (ah == NULL)
		die("create_ah: %s", strerror(errno));
	send_all(p, ah, be32toh(wc.imm_data));
	must(uroce_destroy_ah(ah), "destroy_ah");
}

/* Repeats the request until there is a listener. */
static struct uroce_cm_event *resolve(struct peer *p)
{
	struct uroce_cm_event *event;

	for (unsigned tries = 0; tries < 50; tries++) {
		must(uroce_cm_create_id(p->channel, NULL, &p->id), "cm_create_id");
		must(uroce_cm_sidr_resolve(p->id, (struct sockaddr *)&p->addr, UDADDY_PORT, NULL,
					   0),
		     "cm_sidr_resolve");
		event = peer_event(p, UROCE_CM_SIDR_RESOLVED);
		if (event->status == 0)
			return event;
		if (event->status != 1)
			die("SIDR status %d", event->status);
		uroce_ack_cm_event(event);
		must(uroce_cm_destroy_id(p->id), "cm_destroy_id");
		usleep(200000);
	}
	die("there is no listener");
}

static void client(struct peer *p)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct uroce_cm_event *event;
	struct ibv_ah *ah;

	make_qp(p);
	event = resolve(p);
	if (event->qkey != UDP_QKEY)
		die("the Q_Key is %08x", event->qkey);
	if (p->addr.ss_family == AF_INET6) {
		memcpy(attr.grh.dgid.raw, &((struct sockaddr_in6 *)&p->addr)->sin6_addr, 16);
		attr.grh.sgid_index = 1;
	} else {
		attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
		memcpy(attr.grh.dgid.raw + 12, &((struct sockaddr_in *)&p->addr)->sin_addr, 4);
	}
	ah = uroce_create_ah(p->pd, &attr);
	if (ah == NULL)
		die("create_ah: %s", strerror(errno));
	send_all(p, ah, event->qpn);
	uroce_ack_cm_event(event);
	receive_all(p);
	must(uroce_destroy_ah(ah), "destroy_ah");
}

void run_udaddy(struct peer *p)
{
	if (p->count > MAX_COUNT || p->bytes > sizeof(out))
		die("too many or too large datagrams");
	(p->server ? server : client)(p);
}
