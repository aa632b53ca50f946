/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams. The client learns by SIDR which queue pair is behind the server's port.
 *   cc -o ud ud.c $(pkg-config --cflags --libs uroce)
 *   ./ud memif-server.conf server port.device=/tmp/uroce.sock
 *   ./ud memif-client.conf 10.77.0.1 port.device=/tmp/uroce.sock
 * Arguments: the configuration; "server", or the server's address; any number of SECTION.KEY=VALUE.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <uroce/cm.h>
#include <uroce/uroce.h>

#define PORT  7473
#define QKEY  0x1234
#define BYTES 64

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct uroce_event_channel *events;
static struct {
	struct ibv_grh grh; /* every datagram is received behind 40 bytes of header */
	char rx[BYTES], tx[BYTES];
} memory = {.tx = "hello"};

/* Calls that return int return an errno value. */
static void check(int rc, const char *what)
{
	if (rc != 0)
		errx(1, "%s: %s", what, strerror(rc));
}

/* A UD queue pair is connected to no peer: the application moves it to RTS itself. */
static void start(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct ibv_sge sge = {(uintptr_t)&memory, sizeof(memory.grh) + BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(uroce_modify_qp(qp, &attr, mask), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(uroce_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(uroce_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	check(uroce_post_recv(qp, &wr, &bad), "post a receive");
}

/* A datagram may be lost: after ten seconds of polling there is none. */
static struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	clock_t until = clock() + 10 * CLOCKS_PER_SEC;
	struct ibv_wc wc;

	while (uroce_poll_cq(cq, 1, &wc) == 0)
		check(clock() > until ? ETIMEDOUT : 0, "no datagram");
	check(wc.status == IBV_WC_SUCCESS ? 0 : EIO, uroce_wc_status_str(wc.status));
	return wc;
}

/* Sends memory.tx. The completion means that it has been sent, not that it has arrived. */
static void send_datagram(struct ibv_ah_attr *to, uint32_t qpn)
{
	struct ibv_sge sge = {(uintptr_t)memory.tx, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	wr.wr.ud.ah = uroce_create_ah(pd, to);
	check(wr.wr.ud.ah == NULL ? errno : 0, "address handle");
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	check(uroce_post_send(qp, &wr, &bad), "post a send");
	wait_completion(qp->send_cq);
	check(uroce_destroy_ah(wr.wr.ud.ah), "destroy the address handle");
}

static void serve(struct uroce_cm_id *listener)
{
	struct uroce_cm_event *event;
	struct ibv_ah_attr sender;
	struct ibv_wc question;

	check(uroce_cm_sidr_listen(listener, PORT), "listen");
	fputs("listening\n", stderr);
	check(uroce_get_cm_event(events, -1, &event), "wait for a request");
	check(uroce_cm_sidr_reply(event->id, qp, QKEY, 0), "reply");
	check(uroce_cm_destroy_id(event->id), "destroy the id");
	uroce_ack_cm_event(event);
	question = wait_completion(qp->recv_cq);
	check(uroce_init_ah_from_wc(ctx, 1, &question, &memory.grh, &sender), "sender");
	snprintf(memory.tx, BYTES, "you said %.40s", memory.rx);
	send_datagram(&sender, question.src_qp);
}

static void ask(struct uroce_cm_id *id, const char *address)
{
	struct sockaddr_in peer = {.sin_family = AF_INET};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct uroce_cm_event *event;

	check(inet_pton(AF_INET, address, &peer.sin_addr) == 1 ? 0 : EINVAL, address);
	memset(to.grh.dgid.raw + 10, 0xff, 2); /* an IPv4 address as ::ffff:a.b.c.d */
	memcpy(to.grh.dgid.raw + 12, &peer.sin_addr, 4);
	check(uroce_cm_sidr_resolve(id, (struct sockaddr *)&peer, PORT, NULL, 0), "resolve");
	check(uroce_get_cm_event(events, -1, &event), "wait for the queue pair's number");
	check(event->type == UROCE_CM_SIDR_RESOLVED ? event->status : EHOSTUNREACH, "resolve");
	send_datagram(&to, event->qpn);
	wait_completion(qp->recv_cq);
	puts(memory.rx);
	uroce_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1, .cap = {1, 1, 1, 1}};
	struct uroce_open_attr open = {.config = argv[1]};
	struct uroce_cm_id *id;
	char why[512];

	check(argc < 3 ? EINVAL : 0, "CONFIG server|ADDRESS [SECTION.KEY=VALUE]...");
	open.set = (const char *const *)argv + 3; /* argv ends with NULL, as `set` does */
	ctx = uroce_open(&open, why, sizeof(why));
	check(ctx == NULL ? errno : 0, why);
	pd = uroce_alloc_pd(ctx);
	events = uroce_create_event_channel(ctx);
	attr.send_cq = uroce_create_cq(ctx, 4, NULL, NULL, 0);
	attr.recv_cq = uroce_create_cq(ctx, 4, NULL, NULL, 0);
	check(!pd || !events || !attr.send_cq || !attr.recv_cq ? errno : 0, "create objects");
	mr = uroce_reg_mr(pd, &memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	qp = uroce_create_qp(pd, &attr);
	check(!mr || !qp ? errno : 0, "create a queue pair");
	check(uroce_cm_create_id(events, NULL, &id), "create an id");
	start();
	if (strcmp(argv[2], "server") == 0)
		serve(id);
	else
		ask(id, argv[2]);
	check(uroce_cm_destroy_id(id) || uroce_destroy_event_channel(events), "destroy the id");
	check(uroce_destroy_qp(qp) || uroce_dereg_mr(mr), "destroy the queue pair");
	check(uroce_destroy_cq(attr.send_cq) || uroce_destroy_cq(attr.recv_cq), "destroy the CQs");
	return uroce_dealloc_pd(pd) || uroce_close(ctx);
}
