/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: the server sends its memory's address while the connection is made; the
 * client writes there and reads it back. The server's program takes no part in that.
 *
 *   cc -o rdma_write rdma_write.c $(pkg-config --cflags --libs uroce)
 *   ./rdma_write memif-server.conf server port.device=/tmp/uroce.sock
 *   ./rdma_write memif-client.conf 10.77.0.1 port.device=/tmp/uroce.sock
 *
 * Arguments: the configuration; "server", or the server's address; any number of SECTION.KEY=VALUE.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uroce/cm.h>
#include <uroce/uroce.h>

#define PORT  7472
#define BYTES (1u << 20)

/* The private data of the server's accept, in network byte order. */
struct window {
	uint64_t addr_be;
	uint32_t rkey_be;
} __attribute__((packed));

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct uroce_event_channel *events;
static uint8_t memory[2 * BYTES]; /* client: what it writes, then what it reads */

/* Calls that return int return an errno value. */
static void check(int rc, const char *what)
{
	if (rc != 0)
		errx(1, "%s: %s", what, strerror(rc));
}

/* The next event of the connection has to be this one; uroce_ack_cm_event() frees it. */
static struct uroce_cm_event *wait_event(enum uroce_cm_event_type type)
{
	struct uroce_cm_event *event;

	check(uroce_get_cm_event(events, -1, &event), "wait for an event");
	check(event->type == type ? 0 : EPROTO, uroce_cm_event_str(event->type));
	return event;
}

static void serve(struct uroce_cm_id *listener)
{
	struct window window = {htobe64((uintptr_t)memory), htobe32(mr->rkey)};
	struct uroce_conn_param param = {.responder_resources = 1};
	struct uroce_cm_event *event;
	struct uroce_cm_id *id;

	check(uroce_cm_listen(listener, PORT), "listen");
	fputs("listening\n", stderr);
	event = wait_event(UROCE_CM_CONNECT_REQUEST);
	id = event->id;
	uroce_ack_cm_event(event);
	param.private_data = &window;
	param.private_data_len = sizeof(window);
	check(uroce_cm_accept(id, qp, &param), "accept");
	uroce_ack_cm_event(wait_event(UROCE_CM_ESTABLISHED));
	uroce_ack_cm_event(wait_event(UROCE_CM_DISCONNECTED));
	printf("the client left; the last byte is %u\n", memory[BYTES - 1]);
	check(uroce_cm_destroy_id(id), "destroy the id");
}

static void transfer(enum ibv_wr_opcode opcode, const uint8_t *local, const struct window *window)
{
	struct ibv_sge sge = {(uintptr_t)local, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = be64toh(window->addr_be);
	wr.wr.rdma.rkey = be32toh(window->rkey_be);
	check(uroce_post_send(qp, &wr, &bad), "post");
	while (uroce_poll_cq(cq, 1, &wc) == 0)
		;
	check(wc.status == IBV_WC_SUCCESS ? 0 : EIO, uroce_wc_status_str(wc.status));
}

static void drive(struct uroce_cm_id *id, const char *address)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct uroce_cm_event *event;
	struct window window;

	check(inet_pton(AF_INET, address, &peer.sin_addr) == 1 ? 0 : EINVAL, address);
	check(uroce_cm_connect(id, (struct sockaddr *)&peer, qp, NULL), "connect");
	event = wait_event(UROCE_CM_ESTABLISHED);
	check(event->param.private_data_len < sizeof(window) ? EPROTO : 0, "private data");
	memcpy(&window, event->param.private_data, sizeof(window));
	uroce_ack_cm_event(event);
	for (uint32_t i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)(i * 7);
	transfer(IBV_WR_RDMA_WRITE, memory, &window);
	transfer(IBV_WR_RDMA_READ, memory + BYTES, &window);
	check(memcmp(memory, memory + BYTES, BYTES) != 0 ? EIO : 0, "compare");
	printf("%u bytes were written and read back\n", BYTES);
	check(uroce_cm_disconnect(id), "disconnect");
	uroce_ack_cm_event(wait_event(UROCE_CM_DISCONNECTED));
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {1, 1, 1, 1}};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
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
	mr = uroce_reg_mr(pd, memory, sizeof(memory), access);
	qp = uroce_create_qp(pd, &attr);
	check(mr == NULL || qp == NULL ? errno : 0, "create a queue pair");
	check(uroce_cm_create_id(events, NULL, &id), "create an id");
	if (strcmp(argv[2], "server") == 0)
		serve(id);
	else
		drive(id, argv[2]);
	check(uroce_cm_destroy_id(id) || uroce_destroy_qp(qp) || uroce_destroy_cq(cq) ||
		      uroce_dereg_mr(mr) || uroce_dealloc_pd(pd) ||
		      uroce_destroy_event_channel(events) || uroce_close(ctx),
	      "close");
	return 0;
}
