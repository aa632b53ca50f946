/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dedicated worker: a thread of the library does the endpoint's work on a CPU of its own. The
 * client counts in the server's memory, asleep until each completion; the server sleeps throughout.
 *   cc -o dedicated_worker dedicated_worker.c $(pkg-config --cflags --libs uroce)
 *   ./dedicated_worker memif-server.conf server port.device=/tmp/uroce.sock
 *   ./dedicated_worker memif-client.conf 10.77.0.1 port.device=/tmp/uroce.sock
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

#define PORT   7474
#define ROUNDS 100

static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_comp_channel *completions;
static struct uroce_event_channel *events;
static uint64_t counter; /* server: counts; client: the value before its last step */

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

/* Sleeps until there is a completion. What came before the CQ was armed makes no event: poll again. */
static void sleep_until_completion(struct ibv_cq *cq)
{
	struct ibv_cq *which;
	struct ibv_wc wc;
	void *user;

	while (uroce_poll_cq(cq, 1, &wc) == 0) {
		check(uroce_req_notify_cq(cq, 0), "arm");
		if (uroce_poll_cq(cq, 1, &wc) == 1)
			break;
		check(uroce_get_cq_event(completions, &which, &user) ? errno : 0, "sleep");
		uroce_ack_cq_events(which, 1);
	}
	check(wc.status == IBV_WC_SUCCESS ? 0 : EIO, uroce_wc_status_str(wc.status));
}

static void serve(struct uroce_cm_id *listener)
{
	uint64_t where[] = {htobe64((uintptr_t)&counter), htobe64(mr->rkey)}; /* for the client */
	struct uroce_conn_param param = {
		.private_data = where, .private_data_len = sizeof(where), .responder_resources = 1};
	struct uroce_cm_event *event;
	struct uroce_cm_id *id;

	check(uroce_cm_listen(listener, PORT), "listen");
	fputs("listening\n", stderr);
	event = wait_event(UROCE_CM_CONNECT_REQUEST);
	id = event->id;
	uroce_ack_cm_event(event);
	check(uroce_cm_accept(id, qp, &param), "accept");
	uroce_ack_cm_event(wait_event(UROCE_CM_ESTABLISHED));
	uroce_ack_cm_event(wait_event(UROCE_CM_DISCONNECTED));
	printf("the counter is %llu\n", (unsigned long long)counter);
	check(uroce_cm_destroy_id(id), "destroy the id");
}

static void count(struct uroce_cm_id *id, const char *address)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct ibv_sge sge = {(uintptr_t)&counter, sizeof(counter), mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct uroce_cm_event *event;
	uint64_t where[2];

	check(inet_pton(AF_INET, address, &peer.sin_addr) == 1 ? 0 : EINVAL, address);
	check(uroce_cm_connect(id, (struct sockaddr *)&peer, qp, NULL), "connect");
	event = wait_event(UROCE_CM_ESTABLISHED);
	check(event->param.private_data_len < sizeof(where) ? EPROTO : 0, "private data");
	memcpy(where, event->param.private_data, sizeof(where));
	uroce_ack_cm_event(event);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = be64toh(where[0]);
	wr.wr.atomic.rkey = (uint32_t)be64toh(where[1]);
	wr.wr.atomic.compare_add = 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		check(uroce_post_send(qp, &wr, &bad), "post");
		sleep_until_completion(qp->send_cq);
	}
	printf("the counter was %llu\n", (unsigned long long)counter);
	check(uroce_cm_disconnect(id), "disconnect");
	uroce_ack_cm_event(wait_event(UROCE_CM_DISCONNECTED));
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {1, 1, 1, 1}};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	static char dedicated[] = "worker.mode=dedicated";
	struct uroce_open_attr open = {.config = argv[1]};
	const char *role;
	struct uroce_cm_id *id;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char why[512];

	check(argc < 3 ? EINVAL : 0, "CONFIG server|ADDRESS [SECTION.KEY=VALUE]...");
	role = argv[2];
	argv[2] = dedicated; /* the first of the overrides; argv ends with NULL, as `set` does */
	open.set = (const char *const *)argv + 2;
	ctx = uroce_open(&open, why, sizeof(why));
	check(ctx == NULL ? errno : 0, why);
	pd = uroce_alloc_pd(ctx);
	events = uroce_create_event_channel(ctx);
	completions = uroce_create_comp_channel(ctx);
	check(!pd || !events || !completions ? errno : 0, "create channels");
	attr.send_cq = attr.recv_cq = uroce_create_cq(ctx, 4, NULL, completions, 0);
	mr = uroce_reg_mr(pd, &counter, sizeof(counter), access);
	qp = attr.send_cq != NULL ? uroce_create_qp(pd, &attr) : NULL;
	check(!mr || !qp ? errno : 0, "create a queue pair");
	check(uroce_cm_create_id(events, NULL, &id), "create an id");
	if (strcmp(role, "server") == 0)
		serve(id);
	else
		count(id, role);
	check(uroce_cm_destroy_id(id) || uroce_destroy_event_channel(events), "destroy the id");
	check(uroce_destroy_qp(qp) || uroce_destroy_cq(attr.send_cq), "destroy the queues");
	check(uroce_destroy_comp_channel(completions) || uroce_dereg_mr(mr), "destroy");
	return uroce_dealloc_pd(pd) || uroce_close(ctx);
}
