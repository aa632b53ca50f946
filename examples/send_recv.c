/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEND and RECV over a reliable connection: the server answers a line in capitals.
 *   cc -o send_recv send_recv.c $(pkg-config --cflags --libs uroce)
 *   ./send_recv memif-server.conf server port.device=/tmp/uroce.sock
 *   ./send_recv memif-client.conf 10.77.0.1 port.device=/tmp/uroce.sock
 *
 * Arguments: the configuration; "server", or the server's address; any number of SECTION.KEY=VALUE.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uroce/cm.h>
#include <uroce/uroce.h>

#define PORT  7471
#define BYTES 256

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct uroce_event_channel *events;
static char tx[BYTES] = "hello from the client", rx[BYTES];

/* Calls that return int return an errno value. */
static void check(int rc, const char *what)
{
	if (rc != 0)
		errx(1, "%s: %s", what, strerror(rc));
}

/* A receive may be posted from INIT on, so that it is there before the first message. */
static void post_receive(void)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_sge sge = {(uintptr_t)rx, BYTES - 1, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	check(uroce_modify_qp(qp, &init, mask), "INIT");
	check(uroce_post_recv(qp, &wr, &bad), "post a receive");
}

/* The text is copied when it is posted (INLINE): its memory needs no registration. */
static void post_send(void)
{
	struct ibv_sge sge = {(uintptr_t)tx, (uint32_t)strlen(tx) + 1, 0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	wr.send_flags = IBV_SEND_INLINE;
	check(uroce_post_send(qp, &wr, &bad), "post a send");
}

static void wait_completion(void)
{
	struct ibv_wc wc;

	while (uroce_poll_cq(cq, 1, &wc) == 0)
		; /* polling makes the endpoint work, unless it has workers of its own */
	check(wc.status == IBV_WC_SUCCESS ? 0 : EIO, uroce_wc_status_str(wc.status));
}

/* The next event of the connection has to be this one. Returns the id that it is about. */
static struct uroce_cm_id *wait_event(enum uroce_cm_event_type type)
{
	struct uroce_cm_event *event;
	struct uroce_cm_id *id;

	check(uroce_get_cm_event(events, -1, &event), "wait for an event");
	check(event->type == type ? 0 : EPROTO, uroce_cm_event_str(event->type));
	id = event->id;
	uroce_ack_cm_event(event);
	return id;
}

static void serve(struct uroce_cm_id *listener)
{
	struct uroce_cm_id *id;

	check(uroce_cm_listen(listener, PORT), "listen");
	fputs("listening\n", stderr);
	id = wait_event(UROCE_CM_CONNECT_REQUEST);
	post_receive();
	check(uroce_cm_accept(id, qp, NULL), "accept");
	wait_event(UROCE_CM_ESTABLISHED);
	wait_completion(); /* of the receive */
	for (size_t i = 0; i < BYTES; i++)
		tx[i] = (char)toupper((unsigned char)rx[i]);
	post_send();
	wait_completion();
	wait_event(UROCE_CM_DISCONNECTED);
	check(uroce_cm_destroy_id(id), "destroy the id");
}

static void ask(struct uroce_cm_id *id, const char *address)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	check(inet_pton(AF_INET, address, &peer.sin_addr) == 1 ? 0 : EINVAL, address);
	post_receive();
	check(uroce_cm_connect(id, (struct sockaddr *)&peer, qp, NULL), "connect");
	wait_event(UROCE_CM_ESTABLISHED);
	post_send();
	wait_completion(); /* of the send and the receive, in either order */
	wait_completion();
	puts(rx);
	check(uroce_cm_disconnect(id), "disconnect");
	wait_event(UROCE_CM_DISCONNECTED);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};
	struct uroce_open_attr open = {.config = argv[1]};
	struct uroce_cm_id *id;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char why[512];

	check(argc < 3 ? EINVAL : 0, "CONFIG server|ADDRESS [SECTION.KEY=VALUE]...");
	open.set = (const char *const *)argv + 3; /* argv ends with NULL, as `set` does */
	ctx = uroce_open(&open, why, sizeof(why));
	check(ctx == NULL ? errno : 0, why);
	pd = uroce_alloc_pd(ctx);
	events = uroce_create_event_channel(ctx);
	attr.send_cq = attr.recv_cq = cq = uroce_create_cq(ctx, 4, NULL, NULL, 0);
	check(pd == NULL || events == NULL || cq == NULL ? errno : 0, "create objects");
	attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, BYTES};
	mr = uroce_reg_mr(pd, rx, sizeof(rx), IBV_ACCESS_LOCAL_WRITE);
	qp = uroce_create_qp(pd, &attr);
	check(mr == NULL || qp == NULL ? errno : 0, "create a queue pair");
	check(uroce_cm_create_id(events, NULL, &id), "create an id");
	if (strcmp(argv[2], "server") == 0)
		serve(id);
	else
		ask(id, argv[2]);
	check(uroce_cm_destroy_id(id) || uroce_destroy_qp(qp) || uroce_destroy_cq(cq) ||
		      uroce_dereg_mr(mr) || uroce_dealloc_pd(pd) ||
		      uroce_destroy_event_channel(events) || uroce_close(ctx),
	      "close");
	return 0;
}
