/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

/*
 * depths serve | connect ADDRESS: how many READs and atomics each end of a connection may have in flight. In an event,
 * responder_resources is what the other end has asked for as its initiator_depth, and the other way round
 * (rdma_get_cm_event(3)). The numbers differ, so that what is swapped shows.
 */
#define PORT 18571

static const struct rdma_conn_param asked = {
	.responder_resources = 3, .initiator_depth = 5, .retry_count = 7};
static const struct rdma_conn_param given = {.responder_resources = 4, .initiator_depth = 2};

static void check(int rc, const char *what)
{
	if (rc) {
		perror(what);
		exit(1);
	}
}

static struct rdma_cm_event *await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	check(rdma_get_cm_event(channel, &ev), "rdma_get_cm_event");
	if (ev->event != type) {
		fprintf(stderr, "%s, not %s\n", rdma_event_str(ev->event), rdma_event_str(type));
		exit(1);
	}
	return ev;
}

static void pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	check(rdma_ack_cm_event(await(channel, type)), "rdma_ack_cm_event");
}

static void expect(const struct rdma_conn_param *got, unsigned resources, unsigned depth)
{
	if (got->responder_resources == resources && got->initiator_depth == depth)
		return;
	fprintf(stderr, "responder_resources %u, initiator_depth %u, not %u and %u\n",
		got->responder_resources, got->initiator_depth, resources, depth);
	exit(1);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	check(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void serve(struct rdma_event_channel *channel)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_conn_param param = given;
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *ev;

	check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
	check(rdma_listen(listener, 1), "rdma_listen");
	ev = await(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	expect(&ev->param.conn, asked.initiator_depth, asked.responder_resources);
	check(rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	make_qp(id);
	check(rdma_accept(id, &param), "rdma_accept");
	pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	check(rdma_destroy_id(id), "rdma_destroy_id");
	check(rdma_destroy_id(listener), "rdma_destroy_id");
}

static void reach(struct rdma_event_channel *channel, const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_conn_param param = asked;
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	inet_pton(AF_INET, address, &to.sin_addr);
	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000), "rdma_resolve_addr");
	pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(rdma_resolve_route(id, 5000), "rdma_resolve_route");
	pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	check(rdma_connect(id, &param), "rdma_connect");
	ev = await(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect(&ev->param.conn, given.initiator_depth, given.responder_resources);
	check(rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	check(rdma_disconnect(id), "rdma_disconnect");
	rdma_destroy_qp(id);
	check(rdma_destroy_id(id), "rdma_destroy_id");
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel || argc < 2)
		return 2;
	if (argc == 3 && !strcmp(argv[1], "connect"))
		reach(channel, argv[2]);
	else
		serve(channel);
	rdma_destroy_event_channel(channel);
	puts("ok");
	return 0;
}
