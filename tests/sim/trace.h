/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_TRACE_H
#define UR_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A record of all frames sent in a run, whatever happened to them. Above a limit, the oldest frames
 * are discarded in bulk, because the last ones matter.
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
	SIM_TRACE_HELD, /* to be delivered later, by the test */
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

/* Returns the frame at *at and advances *at, which begins with 0. False: there are no more. */
bool sim_trace_next(const struct sim_trace *t, size_t *at, struct sim_trace_frame *f);

/* Writes all frames to a pcap file with nanosecond timestamps. Returns false on failure. */
bool sim_trace_write(const struct sim_trace *t, const char *file);

/* Prints the last `max` frames, one per line, and what happened to each. */
void sim_trace_print(const struct sim_trace *t, FILE *out, uint32_t max);

#endif
