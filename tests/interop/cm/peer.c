/* SPDX-License-Identifier: BSD-3-Clause */
/* interop-cm rping|ucmatose|udaddy --config FILE [--set KEY=VALUE]... --count N --bytes N [--peer
 * ADDRESS] */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

void die(const char *fmt, ...)
{
	va_list ap;

	printf("interop-cm: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

void must(int rc, const char *what)
{
	if (rc != 0)
		die("%s: %s", what, strerror(rc));
}

struct ibv_mr *peer_memory(struct peer *p, void *mem, size_t bytes)
{
	struct ibv_mr *mr = uroce_reg_mr(p->pd, mem, bytes,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						 IBV_ACCESS_REMOTE_WRITE);

	if (mr == NULL)
		die("reg_mr: %s", strerror(errno));
	return mr;
}

void peer_make_qp(struct peer *p, enum ibv_qp_type type, uint32_t qkey)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->send_cq,
		.recv_cq = p->recv_cq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.qkey = qkey,
	};

	p->qp = uroce_create_qp(p->pd, &init);
	if (p->qp == NULL)
		die("create_qp: %s", strerror(errno));
	must(uroce_modify_qp(p->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
	     "modify_qp");
}

struct uroce_cm_event *peer_event(struct peer *p, enum uroce_cm_event_type type)
{
	struct uroce_cm_event *event;
	int rc = uroce_get_cm_event(p->channel, PATIENCE_S * 1000, &event);

	if (rc != 0)
		die("no event '%s': %s", uroce_cm_event_str(type), strerror(rc));
	if (event->type != type)
		die("event '%s' with status %d, not '%s'", uroce_cm_event_str(event->type),
		    event->status, uroce_cm_event_str(type));
	return event;
}

void peer_await(struct peer *p, enum uroce_cm_event_type type)
{
	uroce_ack_cm_event(peer_event(p, type));
}

/* True if there was no listener (reason 8), so that the caller tries again. */
static bool refused(struct peer *p)
{
	struct uroce_cm_event *event;
	int rc = uroce_get_cm_event(p->channel, PATIENCE_S * 1000, &event), status;

	must(rc, "get_cm_event");
	status = event->type == UROCE_CM_ESTABLISHED ? 0 : event->status;
	if (event->type != UROCE_CM_ESTABLISHED &&
	    (event->type != UROCE_CM_REJECTED || status != 8))
		die("event '%s' with status %d", uroce_cm_event_str(event->type), status);
	uroce_ack_cm_event(event);
	return status == 8;
}

static void accept_one(struct peer *p, uint16_t port, void (*before_rts)(struct peer *p))
{
	struct uroce_conn_param param = {.responder_resources = 1,
					 .initiator_depth = 1,
					 .rnr_retry_count = 7,
					 .timeout = 18};
	struct uroce_cm_event *event;

	must(uroce_cm_create_id(p->channel, NULL, &p->listener), "cm_create_id");
	must(uroce_cm_listen(p->listener, port), "cm_listen");
	printf("listening\n");
	event = peer_event(p, UROCE_CM_CONNECT_REQUEST);
	p->id = event->id;
	uroce_ack_cm_event(event);
	peer_make_qp(p, IBV_QPT_RC, 0);
	before_rts(p);
	must(uroce_cm_accept(p->id, p->qp, &param), "cm_accept");
	peer_await(p, UROCE_CM_ESTABLISHED);
}

static void connect_one(struct peer *p, uint16_t port, void (*before_rts)(struct peer *p))
{
	struct uroce_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.timeout = 18,
	};

	/* The port is at the same offset in both address families. */
	((struct sockaddr_in *)&p->addr)->sin_port = htons(port);
	for (unsigned tries = 0; tries < 50; tries++) {
		must(uroce_cm_create_id(p->channel, NULL, &p->id), "cm_create_id");
		peer_make_qp(p, IBV_QPT_RC, 0);
		before_rts(p);
		must(uroce_cm_connect(p->id, (struct sockaddr *)&p->addr, p->qp, &param),
		     "cm_connect");
		if (!refused(p))
			return;
		must(uroce_destroy_qp(p->qp), "destroy_qp");
		must(uroce_cm_destroy_id(p->id), "cm_destroy_id");
		for (struct ibv_wc wc; uroce_poll_cq(p->recv_cq, 1, &wc) > 0;)
			; /* flushed */
		usleep(200000);
	}
	die("there is no listener");
}

void peer_connect(struct peer *p, uint16_t port, void (*before_rts)(struct peer *p))
{
	(p->server ? accept_one : connect_one)(p, port, before_rts);
}

void peer_end(struct peer *p, bool by_us)
{
	if (by_us)
		must(uroce_cm_disconnect(p->id), "cm_disconnect");
	peer_await(p, UROCE_CM_DISCONNECTED);
}

struct ibv_wc peer_completion(struct peer *p, struct ibv_cq *cq)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;
	int n = 0;

	while (n == 0) {
		n = uroce_poll_cq(cq, 1, &wc);
		if (n == 0 && uroce_progress(p->ctx) == 0)
			usleep(50);
		if (time(NULL) > end)
			die("no completion");
	}
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("completion: %s", n < 0 ? "poll_cq fails" : uroce_wc_status_str(wc.status));
	return wc;
}

void peer_receive(struct peer *p, struct ibv_mr *mr, void *buf, unsigned bytes)
{
	struct ibv_sge sge = {(uintptr_t)buf, bytes, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(uroce_post_recv(p->qp, &wr, &bad), "post_recv");
}

void peer_post(struct peer *p, struct ibv_send_wr *wr, struct ibv_mr *mr, void *buf, unsigned bytes)
{
	struct ibv_sge sge = {(uintptr_t)buf, bytes, mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	must(uroce_post_send(p->qp, wr, &bad), "post_send");
}

static void open_peer(struct peer *p, const char *config, const char *const *set)
{
	struct uroce_open_attr attr = {.config = config, .set = set};
	char err[512];

	p->ctx = uroce_open(&attr, err, sizeof(err));
	if (p->ctx == NULL)
		die("%s", err);
	p->channel = uroce_create_event_channel(p->ctx);
	p->pd = uroce_alloc_pd(p->ctx);
	p->send_cq = uroce_create_cq(p->ctx, 256, NULL, NULL, 0);
	p->recv_cq = uroce_create_cq(p->ctx, 256, NULL, NULL, 0);
	if (p->channel == NULL || p->pd == NULL || p->send_cq == NULL || p->recv_cq == NULL)
		die("cannot create objects: %s", strerror(errno));
}

static void close_peer(struct peer *p)
{
	struct uroce_objects left;

	if (p->qp != NULL)
		must(uroce_destroy_qp(p->qp), "destroy_qp");
	if (p->id != NULL)
		must(uroce_cm_destroy_id(p->id), "cm_destroy_id");
	if (p->listener != NULL)
		must(uroce_cm_destroy_id(p->listener), "cm_destroy_id");
	must(uroce_destroy_cq(p->send_cq), "destroy_cq");
	must(uroce_destroy_cq(p->recv_cq), "destroy_cq");
	must(uroce_query_objects(p->ctx, &left), "query_objects");
	if (left.qps != 0 || left.cqs != 0)
		die("%u queue pairs and %u CQs are left", left.qps, left.cqs);
	_exit(0); /* regions and the rest go with the process: rping's other end may have died as
		     well */
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct peer *p);
	} programs[] = {{"rping", run_rping}, {"ucmatose", run_ucmatose}, {"udaddy", run_udaddy}};
	const char *config = NULL, *set[32] = {NULL};
	static struct peer p = {.server = true, .count = 10, .bytes = 100};
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *ai;
	unsigned sets = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--config") == 0) {
			config = argv[i + 1];
		} else if (strcmp(argv[i], "--set") == 0 && sets < 31) {
			set[sets++] = argv[i + 1];
		} else if (strcmp(argv[i], "--count") == 0) {
			p.count = (unsigned)atoi(argv[i + 1]);
		} else if (strcmp(argv[i], "--bytes") == 0) {
			p.bytes = (unsigned)atoi(argv[i + 1]);
		} else if (strcmp(argv[i], "--peer") == 0) {
			if (getaddrinfo(argv[i + 1], NULL, &hints, &ai) != 0)
				die("'%s' is no address", argv[i + 1]);
			memcpy(&p.addr, ai->ai_addr, ai->ai_addrlen);
			freeaddrinfo(ai);
			p.server = false;
		} else {
			die("'%s' is no option", argv[i]);
		}
	}
	for (unsigned i = 0; argc > 1 && i < 3; i++)
		if (strcmp(argv[1], programs[i].name) == 0) {
			open_peer(&p, config, set);
			programs[i].run(&p);
			printf("%s: done\n", argv[1]);
			close_peer(&p);
		}
	die("rping, ucmatose or udaddy?");
}
