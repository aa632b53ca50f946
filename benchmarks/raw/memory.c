/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that queue pairs take: the sizes of their parts, and the growth of the process after
 * they have been created and have carried traffic.
 *
 *   memory COUNT MODE
 *
 * Creates COUNT connected pairs in two engines, sends a WRITE, a SEND and a READ on each, and
 * prints one JSON object. Resident bytes are those of both sides together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/inside.h"
#include "pair.h"

#define MESSAGE	   64
#define FIRST_TIER 64 /* ur_limits.loss_first by default */

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0, ours = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%llu %llu", &pages, &ours) != 2)
		ours = 0;
	if (f)
		fclose(f);
	return ours * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void carry(struct pair *p, uint32_t qps)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};
	unsigned done = 0;

	for (unsigned op = 0; op < sizeof(ops) / sizeof(ops[0]); op++)
		for (uint32_t i = 0; i < qps; i++) {
			pair_post(p, i, ops[op], MESSAGE);
			pair_settle(p);
			done += pair_completions(p);
		}
	if (done != 3 * qps) {
		fprintf(stderr, "memory: %u of %u requests completed\n", done, 3 * qps);
		exit(1);
	}
}

static void number(const char *name, uint64_t value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

/* The queues of a queue pair that asks for as much as each of the pairs does. */
static size_t rings_bytes(enum ibv_qp_type type)
{
	struct ur_qp_create c = {
		.type = type,
		.cap = {PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0},
		.max_dest_rd_atomic = 16,
	};

	return ur_qp_rings_bytes(&c);
}

static void print_sizes(void)
{
	number("qp", sizeof(struct ur_qp));
	number("requester", sizeof(struct ur_requester));
	number("responder", sizeof(struct ur_responder));
	number("gbn_requester", sizeof(struct ur_gbn_requester));
	number("gbn_responder", sizeof(struct ur_gbn_responder));
	number("ext_requester", sizeof(struct ur_ext_requester));
	number("ext_responder", sizeof(struct ur_ext_responder));
	number("unreliable_requester", sizeof(struct ur_unreliable_requester));
	number("ud_responder", sizeof(struct ur_ud_responder));
	number("rings_ud", rings_bytes(IBV_QPT_UD));
	number("path", sizeof(struct ur_path));
	number("send_wqe", sizeof(struct ur_wqe) + sizeof(struct ur_sge));
	number("recv_wqe", sizeof(struct ur_rwqe) + sizeof(struct ur_sge));
	number("remembered_read", sizeof(struct ur_rd_res));
	number("region", sizeof(struct ur_mr));
	number("completion", sizeof(struct ibv_wc));
	number("recovery_context", ur_rtx_bytes(FIRST_TIER));
	number("ooo_context", ur_ooo_bytes(FIRST_TIER));
	number("recovery_context_largest", ur_rtx_bytes(UR_EXT_WINDOW));
	number("ooo_context_largest", ur_ooo_bytes(UR_EXT_WINDOW));
	number("reorder_slot", ur_reorder_pool_size(2, 4096, 0) - ur_reorder_pool_size(1, 4096, 0));
	number("reorder_context",
	       ur_reorder_pool_size(0, 4096, 2) - ur_reorder_pool_size(0, 4096, 1));
	number("read_gap_context", ur_read_gap_pool_size(2) - ur_read_gap_pool_size(1));
}

/* Pools of an engine: X(name, its limit). */
#define POOLS(X)                                                                                   \
	X(qp_slot, max_qp)                                                                         \
	X(reorder_slots, reorder_slots)                                                            \
	X(reorder_contexts, reorder_contexts)                                                      \
	X(read_gaps, read_gaps)                                                                    \
	X(spray_contexts, spray_contexts)                                                          \
	X(destinations, destinations)                                                              \
	X(admission_peers, admission)                                                              \
	X(cm_ids, cm.max_ids)                                                                      \
	X(cm_listeners, cm.max_listeners)                                                          \
	X(cm_messages, cm.max_tx)

/* The growth of an engine per element, computed from many, so that rounding hardly matters. */
#define MANY 1024
static void print_pools(void)
{
	const struct ur_limits least = {
		.max_qp = MANY,
		.workers = 1,
		.cm = {.max_ids = MANY, .max_listeners = MANY, .max_pending = MANY, .max_tx = MANY},
		.reorder_slots = MANY,
		.reorder_slot_bytes = 4096,
		.reorder_contexts = MANY,
		.read_gaps = MANY,
		.max_sge = 16,
		.spray_contexts = MANY,
		.destinations = MANY,
		.admission = MANY,
	};
	const char *comma = "";

	printf(", \"pools\": {");
#define X(name, limit)                                                                             \
	{                                                                                          \
		struct ur_limits more = least;                                                     \
                                                                                                   \
		more.limit = 2 * MANY;                                                             \
		printf("%s\"" #name "\": %zu", comma,                                              \
		       (ur_engine_size(&more) - ur_engine_size(&least)) / MANY);                   \
		comma = ", ";                                                                      \
	}
	POOLS(X)
#undef X
	printf("}");
}

/* Number of contexts in use after all packets have arrived in order. */
static uint64_t contexts_held(const struct pair *p)
{
	uint64_t held = 0;

	for (unsigned side = 0; side < 2; side++) {
		const struct ur_core *c = ur_engine_core(p->end[side].engine);

		held += c->ooo.held_cnt + c->rtx.held_cnt;
		held += c->reorder.context_cnt - c->reorder.contexts_free;
		held += c->reorder.slot_cnt - c->reorder.slots_free;
		held += c->read_gaps.cnt - c->read_gaps.free_cnt;
	}
	return held;
}

int main(int argc, char **argv)
{
	struct pair_attr attr = {.mtu = IBV_MTU_4096, .buffer_bytes = 1 << 16};
	struct pair p;
	uint64_t before, made, used;

	if (argc != 3 || (attr.qps = (uint32_t)atoi(argv[1])) == 0 || attr.qps > 1 << 14 ||
	    !pair_mode(argv[2], &attr.mode)) {
		fprintf(stderr, "usage: memory COUNT gbn|reorder|extended\n");
		return 2;
	}
	before = resident_bytes();
	pair_init(&p, &attr);
	made = resident_bytes();
	carry(&p, attr.qps);
	used = resident_bytes();
	printf("{\"qps\": %u, \"mode\": \"%s\", \"depth\": %u", attr.qps, argv[2], PAIR_DEPTH);
	number("resident_made", made - before);
	number("resident_used", used - before);
	number("engine_bytes", p.end[0].engine_bytes);
	number("rings_bytes", p.end[0].rings_bytes);
	print_sizes();
	print_pools();
	number("contexts_held", contexts_held(&p));
	number("trouble", pair_trouble(&p));
	printf("}\n");
	pair_free(&p);
	return 0;
}
