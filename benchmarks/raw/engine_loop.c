/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of the protocol without a port: requests between two engines in one process. Run it
 * under callgrind (instructions per packet) or lackey (bytes of a queue pair that are touched).
 *
 *   engine_loop OPERATION BYTES COUNT MODE [BURST]
 *
 * Posts COUNT requests, BURST (8) at a time, after COUNT requests for warming up. The measured part is
 * measured(), which begins and ends with a store to `mark`. Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

#define BURST_DEFAULT 8

/* Stores to this variable mark the begin and the end of the trace. */
static volatile uint64_t mark;

static void run(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, unsigned count,
		unsigned burst)
{
	unsigned done = 0;

	while (done < count) {
		for (unsigned i = 0; i < burst && done + i < count; i++)
			pair_post(p, 0, opcode, len);
		pair_settle(p);
		done += pair_completions(p);
	}
}

__attribute__((noinline)) static void measured(struct pair *p, enum ibv_wr_opcode opcode,
					       uint32_t len, unsigned count, unsigned burst)
{
	mark = 1;
	run(p, opcode, len, count, burst);
	mark = 2;
}

int main(int argc, char **argv)
{
	struct pair_attr attr = {.qps = 1, .mtu = IBV_MTU_4096, .buffer_bytes = 1 << 20};
	enum ibv_wr_opcode opcode;
	struct pair p;
	uint64_t packets, data;
	unsigned len, count, burst = BURST_DEFAULT;

	if (argc == 6)
		burst = (unsigned)atoi(argv[5]);
	if (argc < 5 || argc > 6 || !burst || burst > PAIR_DEPTH ||
	    !pair_opcode(argv[1], &opcode) || !pair_mode(argv[4], &attr.mode) ||
	    (len = (unsigned)atoi(argv[2])) > attr.buffer_bytes ||
	    (count = (unsigned)atoi(argv[3])) == 0) {
		fprintf(stderr, "usage: engine_loop write|send|read BYTES COUNT "
				"gbn|reorder|extended [BURST]\n");
		return 2;
	}
	pair_init(&p, &attr);
	run(&p, opcode, len, count, burst);
	packets = p.packets;
	data = p.data_packets;
	measured(&p, opcode, len, count, burst);
	printf("{\"packets\": %llu, \"from_requester\": %llu, \"messages\": %u, \"trouble\": %llu, "
	       "\"mark\": %llu, \"qp_bytes\": %zu, \"requester\": %llu, \"responder\": %llu}\n",
	       (unsigned long long)(p.packets - packets),
	       (unsigned long long)(p.data_packets - data), count,
	       (unsigned long long)pair_trouble(&p), (unsigned long long)(uintptr_t)&mark,
	       sizeof(struct ur_qp), (unsigned long long)(uintptr_t)p.end[0].qp[0],
	       (unsigned long long)(uintptr_t)p.end[1].qp[0]);
	pair_free(&p);
	return 0;
}
