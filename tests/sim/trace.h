/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_TRACE_H
#define UR_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Every frame that was sent in a run, whatever became of it, up to a bound (then the oldest are
 * forgotten in bulk: what matters is what came last).
 */
struct sim_trace {
	uint8_t *buf;
	size_t used, cap;
	uint32_t frames, forgotten;
};

enum sim_trace_fate {
	SIM_TRACE_SENT,
	SIM_TRACE_LOST,
	SIM_TRACE_CORRUPT,
	SIM_TRACE_DUP,
	SIM_TRACE_HELD, /* delivered later, by the test */
};

void sim_trace_reset(struct sim_trace *t);
void sim_trace_free(struct sim_trace *t);
void sim_trace_add(struct sim_trace *t, uint64_t now_ns, const uint8_t *frame, uint32_t len,
		   enum sim_trace_fate fate);

struct sim_trace_frame {
	uint64_t at_ns;
	const uint8_t *b;
	uint32_t len;
	enum sim_trace_fate fate;
};

/* The frame at *at, which is moved to the next one; begin with 0. False: there are no more. */
bool sim_trace_next(const struct sim_trace *t, size_t *at, struct sim_trace_frame *f);

/* Writes all frames to a pcap file with nanosecond stamps. False when that fails. */
bool sim_trace_write(const struct sim_trace *t, const char *file);

/* Prints the last `max` frames, one line each, with what became of them. */
void sim_trace_print(const struct sim_trace *t, FILE *out, uint32_t max);

#endif
