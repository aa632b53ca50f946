/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of scheduling by number of send queues: only the VL arbiter and the EMUX. Run it under
 * callgrind, which counts the instructions of measured().
 *
 *   sched_loop turn|wake|doorbell QUEUES COUNT
 *
 *   turn      the arbiter selects one of four lanes, an SQ has a turn of one packet; QUEUES are ready
 *   wake      a gate at which QUEUES wait opens for one of them, while QUEUES others are ready
 * doorbell  an SQ becomes active, while QUEUES are ready
 *
 * Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/emux.h"
#include "wire/assert.h"

#define LANES 4
#define BYTES 4096

static struct ur_vl vl;
static struct ur_emux emux;
static struct ur_gate gate;
static struct ur_emux_queue *ready, *waiting, late;

void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "sched_loop: %s at %s:%d\n", expr, file, line);
	abort();
}

static struct ur_emux_queue *make(unsigned cnt)
{
	struct ur_emux_queue *q = calloc(cnt, sizeof(*q));

	if (!q)
		abort();
	for (unsigned i = 0; i < cnt; i++)
		ur_emux_queue_init(&emux, &q[i], 0, (uint8_t)(i % LANES));
	return q;
}

static void start(unsigned cnt)
{
	static const struct ur_emux_attr attr = {UR_EMUX_RR, 1, BYTES};
	struct ur_vl_attr a;

	ur_vl_attr_default(&a);
	ur_vl_init(&vl, &a);
	ur_emux_init(&emux, &attr, &vl);
	ur_gate_init(&gate);
	ready = make(cnt);
	waiting = make(cnt);
	ur_emux_queue_init(&emux, &late, 0, 0);
	gate.closed = true;
	for (unsigned i = 0; i < cnt; i++) {
		ur_emux_activate(&emux, &ready[i]);
		ur_emux_set_gate(&emux, &waiting[i], &gate);
		ur_emux_activate(&emux, &waiting[i]);
	}
}

static void turn(void)
{
	unsigned lane = ur_vl_pick(&vl, emux.ready_lanes);

	if (!ur_emux_turn(&emux, lane))
		abort();
	if (!ur_emux_charge(&emux, lane, BYTES, 1))
		ur_emux_end_turn(&emux, lane);
	ur_vl_charge(&vl, lane, BYTES);
}

static void wake(void)
{
	ur_emux_gate_open(&emux, &gate, 1);
}

static void doorbell(void)
{
	ur_emux_set(&emux, &late, true);
}

/* Puts the queue that was woken back to the end of the gate's list. */
static void after_wake(unsigned i, unsigned cnt)
{
	gate.closed = true;
	ur_emux_deactivate(&emux, &waiting[i % cnt]);
	ur_emux_activate(&emux, &waiting[i % cnt]);
}

static void after_doorbell(unsigned i, unsigned cnt)
{
	(void)i, (void)cnt;
	ur_emux_set(&emux, &late, false);
}

static const struct {
	const char *name;
	void (*happens)(void);
	void (*after)(unsigned i, unsigned cnt);
} operations[] = {
	{"turn", turn, NULL}, {"wake", wake, after_wake}, {"doorbell", doorbell, after_doorbell}};

__attribute__((noinline)) static void measured(void (*happens)(void))
{
	happens();
}

int main(int argc, char **argv)
{
	unsigned op = 0, queues, count;

	while (argc == 4 && op < 3 && strcmp(operations[op].name, argv[1]) != 0)
		op++;
	if (argc != 4 || op == 3 || (queues = (unsigned)atoi(argv[2])) == 0 ||
	    (count = (unsigned)atoi(argv[3])) == 0) {
		fprintf(stderr, "usage: sched_loop turn|wake|doorbell QUEUES COUNT\n");
		return 2;
	}
	start(queues);
	for (unsigned i = 0; i < count; i++) {
		measured(operations[op].happens);
		if (operations[op].after)
			operations[op].after(i, queues);
	}
	ur_emux_validate(&emux);
	printf("{\"turns\": %llu, \"woken\": %llu, \"ready\": %u, \"waiting\": %u}\n",
	       (unsigned long long)emux.turns, (unsigned long long)emux.woken, emux.ready_cnt,
	       emux.held_cnt);
	free(ready);
	free(waiting);
	return 0;
}
