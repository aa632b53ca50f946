/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of the protocol without a port: requests between two engines in one process. Run it
 * under callgrind (instructions per packet) or lackey (bytes of a queue pair that are touched).
 *
 *   engine_loop OPERATION BYTES COUNT MODE [BURST [QPS]]
 *
 * Posts COUNT requests, BURST (8) at a time, to QPS queue pairs (1) in turn, after COUNT requests for warming up. The measured part is
 * measured(), which begins and ends with a store to `mark`. Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

#define BURST_DEFAULT 8

/* Stores to this variable mark the begin and the end of the trace. */
static volatile uint64_t mark;

struct load {
	enum ibv_wr_opcode opcode;
	uint32_t len;
	unsigned count, burst, qps;
};

static void run(struct pair *p, const struct load *l)
{
	unsigned done = 0, next = 0;

	while (done < l->count) {
		for (unsigned i = 0; i < l->burst && done + i < l->count; i++) {
			pair_post(p, next, l->opcode, l->len);
			next = next + 1 < l->qps ? next + 1 : 0;
		}
		pair_settle(p);
		done += pair_completions(p);
	}
}

__attribute__((noinline)) static void measured(struct pair *p, const struct load *l)
{
	mark = 1;
	run(p, l);
	mark = 2;
}

static bool parse(int argc, char **argv, struct load *l, struct pair_attr *attr)
{
	if (argc < 5 || argc > 7)
		return false;
	*l = (struct load){.burst = BURST_DEFAULT, .qps = 1};
	l->len = (unsigned)atoi(argv[2]);
	l->count = (unsigned)atoi(argv[3]);
	if (argc > 5)
		l->burst = (unsigned)atoi(argv[5]);
	if (argc > 6)
		l->qps = (unsigned)atoi(argv[6]);
	*attr = (struct pair_attr){.qps = l->qps, .mtu = IBV_MTU_4096, .buffer_bytes = 1 << 20};
	return pair_opcode(argv[1], &l->opcode) && pair_mode(argv[4], &attr->mode) &&
	       l->len <= attr->buffer_bytes && l->count && l->qps && l->qps <= PAIR_QPS_MAX &&
	       l->burst && l->burst <= PAIR_BURST;
}

/* Objects that a queue pair shares with others: address and bytes. */
static void print_shared(const char *side, const struct ur_qp *qp)
{
	printf(", \"shared_%s\": {\"path\": [%llu, %zu], \"send CQ\": [%llu, %zu], \"receive CQ\": [%llu, %zu], "
	       "\"worker\": [%llu, %zu]}",
	       side, (unsigned long long)(uintptr_t)qp->path, sizeof(*qp->path),
	       (unsigned long long)(uintptr_t)qp->send_cq, sizeof(*qp->send_cq),
	       (unsigned long long)(uintptr_t)qp->recv_cq, sizeof(*qp->recv_cq),
	       (unsigned long long)(uintptr_t)qp->core, sizeof(*qp->core));
}

int main(int argc, char **argv)
{
	struct pair_attr attr;
	struct load load;
	struct pair p;
	uint64_t packets, data;

	if (!parse(argc, argv, &load, &attr)) {
		fprintf(stderr, "usage: engine_loop write|send|read BYTES COUNT "
				"gbn|reorder|extended [BURST [QPS]]\n");
		return 2;
	}
	pair_init(&p, &attr);
	run(&p, &load);
	packets = p.packets;
	data = p.data_packets;
	measured(&p, &load);
	printf("{\"packets\": %llu, \"from_requester\": %llu, \"messages\": %u, \"trouble\": %llu, "
	       "\"mark\": %llu, \"qp_bytes\": %zu, \"requester\": %llu, \"responder\": %llu",
	       (unsigned long long)(p.packets - packets),
	       (unsigned long long)(p.data_packets - data), load.count,
	       (unsigned long long)pair_trouble(&p), (unsigned long long)(uintptr_t)&mark,
	       sizeof(struct ur_qp), (unsigned long long)(uintptr_t)p.end[0].qp[0],
	       (unsigned long long)(uintptr_t)p.end[1].qp[0]);
	print_shared("requester", p.end[0].qp[0]);
	print_shared("responder", p.end[1].qp[0]);
	printf("}\n");
	pair_free(&p);
	return 0;
}
