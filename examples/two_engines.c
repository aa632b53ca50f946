/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines joined by a wire that loses frames, under virtual time: one end writes a megabyte into
 * the memory of the other. docs/embedding.md explains each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/verbs.h"

#define MUST(expr) ((expr) ? (void)0 : ur_assert_fail(#expr, __FILE__, __LINE__))

enum { MESSAGE = 1 << 20, DELAY_NS = 10000, WIRE = 512, LOSE = 20, PD = 1 };

struct frame {
	uint64_t at_ns; /* when it arrives */
	uint32_t len;
	uint8_t bytes[4300];
};

struct end {
	struct ur_engine *engine;
	struct ur_cq *cq;
	struct ur_qp *qp;
	uint8_t mac[6], buffer[MESSAGE];
	uint32_t key; /* of the buffer, for both sides */
	struct ur_gid gid;
	struct frame wire[WIRE]; /* on their way to this end, oldest first: [head, tail) */
	uint32_t head, tail;
	unsigned frames; /* towards it */
} a = {.mac = {2, 0, 0, 0, 0, 1}}, b = {.mac = {2, 0, 0, 0, 0, 2}};

#define AT(end, idx) (&(end)->wire[(idx) % WIRE])

/* The program that links the core defines how it stops when an assertion fails. */
void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, expr);
	abort();
}

static void *memory(size_t bytes)
{
	return memset(aligned_alloc(64, (bytes + 63) & ~(size_t)63), 0, bytes);
}

static void open_end(struct end *end, uint32_t ipv4)
{
	struct ur_qp_create qp = {.type = IBV_QPT_RC, .pd = PD, .random = ipv4};
	struct ur_cq_create cq = {.cqe = 8, .unarmed = true};
	struct ur_engine_attr attr;

	ur_engine_attr_default(&attr);
	attr.mem = ur_mem_init(memory(ur_mem_size(1)), 1);
	attr.random = ipv4;
	end->engine = ur_engine_init(memory(ur_engine_size(&attr.limits)), &attr, 0);
	end->gid = ur_gid_from_ipv4(ipv4);
	MUST(!ur_mem_register(attr.mem, PD, end->buffer, MESSAGE, (uintptr_t)end->buffer,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, ipv4, &end->key));
	end->cq = ur_engine_create_cq(memory(ur_engine_cq_size(8)), &cq);
	qp.send_cq = qp.recv_cq = end->cq;
	qp.cap = (struct ibv_qp_cap){4, 4, 1, 1, 0}; /* requests and SGEs of each queue */
	qp.rings = memory(ur_qp_rings_bytes(&qp));
	MUST(!ur_engine_create_qp(end->engine, &qp, 0, &end->qp));
}

/* What two ends must exchange first, here by hand instead of by a connection manager. */
static void connect_end(struct end *end, const struct end *peer)
{
	struct ur_qp_connection c = {.path = {.src = end->gid, .dst = peer->gid},
				     .dest_qpn = ur_engine_qpn(peer->qp),
				     .path_mtu = IBV_MTU_4096,
				     .access = IBV_ACCESS_REMOTE_WRITE,
				     .mode = {.mode = UR_MODE_EXTENDED}};

	c.sq_psn = c.rq_psn = ur_psn(100);
	memcpy(c.path.smac, end->mac, 6);
	memcpy(c.path.dmac, peer->mac, 6);
	c.path.sport = ur_path_sport(0, ur_engine_qpn(end->qp), c.dest_qpn);
	MUST(!ur_engine_connect_qp(end->engine, end->qp, &c, 0));
}

/* Takes packets from the engine while it has some, and puts their frames on the wire. */
static void send_all(struct end *end, struct end *peer, uint64_t now_ns)
{
	for (;;) {
		struct frame *f = AT(peer, peer->tail);
		struct ur_tx tx = {.hdr = f->bytes};

		if (peer->tail - peer->head == WIRE ||
		    !ur_engine_output(end->engine, &tx, 1, now_ns))
			return;
		f->len = ur_tx_write(&tx, f->bytes);
		f->at_ns = now_ns + DELAY_NS;
		if (++peer->frames % LOSE)
			peer->tail++;
	}
}

/* When the next frame arrives here or the next timer expires. */
static uint64_t next_event(const struct end *end)
{
	uint64_t timer_ns = ur_engine_next_deadline(end->engine);
	uint64_t frame_ns = AT(end, end->head)->at_ns;

	return end->head == end->tail || timer_ns < frame_ns ? timer_ns : frame_ns;
}

/* Hands the engine what has arrived by now, and runs its timers. */
static void receive_all(struct end *end, uint64_t now_ns)
{
	for (; end->head != end->tail && AT(end, end->head)->at_ns <= now_ns; end->head++)
		ur_engine_input_frame(end->engine, AT(end, end->head)->bytes,
				      AT(end, end->head)->len, now_ns);
	ur_engine_expire(end->engine, now_ns);
}

int main(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)a.buffer, .length = MESSAGE};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;
	uint64_t now_ns = 0;

	open_end(&a, 0x0a000001);
	open_end(&b, 0x0a000002);
	connect_end(&a, &b);
	connect_end(&b, &a);
	for (unsigned i = 0; i < MESSAGE; i++)
		a.buffer[i] = (uint8_t)(i * 7 + i / 4096);
	sge.lkey = a.key;
	wr.wr.rdma.remote_addr = (uintptr_t)b.buffer;
	wr.wr.rdma.rkey = b.key;
	wr.send_flags = IBV_SEND_SIGNALED;
	MUST(!ur_engine_post_send(a.qp, &wr));
	ur_engine_doorbell(a.engine, a.qp, now_ns);
	while (!ur_engine_poll_cq(a.cq, 1, &wc)) {
		send_all(&a, &b, now_ns);
		send_all(&b, &a, now_ns);
		now_ns = next_event(&a) < next_event(&b) ? next_event(&a) : next_event(&b);
		receive_all(&a, now_ns);
		receive_all(&b, now_ns);
	}
	MUST(wc.status == IBV_WC_SUCCESS && memcmp(a.buffer, b.buffer, MESSAGE) == 0);
	printf("%u bytes in %lu us; of %u frames %u were lost\n", MESSAGE,
	       (unsigned long)now_ns / 1000, b.frames, b.frames / LOSE);
	return 0;
}
