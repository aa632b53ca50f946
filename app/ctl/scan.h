/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SCAN_H
#define CTL_SCAN_H

#include "registers.h"

/*
 * Reads the same registers of many nodes again and again. A link that goes down may be on the way to other nodes: these
 * are read by another way in the same pass, if there is one. For that the state of each port is read, whatever else is.
 * A register that an older agent lacks is not known, and its node is not silent for that. It is asked for again every
 * CTL_SCAN_ASK_AGAIN passes, and after a pass in which the node was silent: an agent may have been replaced.
 */
#define CTL_SCAN_ASK_AGAIN 64 /* passes */

struct ctl_value {
	uint64_t now, before; /* in this pass and the last one in which it was known */
	bool known, was_known;
	bool absent; /* the node says that it has no such register. Never a port's state */
};

struct ctl_scan {
	struct ctl_session *s;
	/* What is read: [0, cnt), in the order in which it was added. */
	struct ctl_register *reg;
	struct ctl_value *value;
	uint32_t cnt, max;
	uint64_t passes;
	uint64_t at_ns, before_ns; /* this pass and the last one, on the clock of the fabric */
	/* of a pass */
	bool *closed_ports, *closed_nodes; /* by number */
	uint32_t *queue;
	struct ctl_register *again; /* what was not answered, and which of `value` it is */
	uint32_t *again_at, again_cnt;
};

/* Room for `max` registers. False: there is no memory; a sentence was printed. ctl_scan_close() is called either way. */
bool ctl_scan_open(struct ctl_scan *scan, struct ctl_session *s, size_t max);
void ctl_scan_close(struct ctl_scan *scan);

/* Adds a register, and returns its number. `port` counts for those of a port only. */
uint32_t ctl_scan_add(struct ctl_scan *scan, uint32_t node, enum ur_register_id id, uint8_t port);

/* Reads everything. False: a sentence was printed. */
bool ctl_scan_pass(struct ctl_scan *scan);

/* What a counter has grown by since the last pass; 0 if one of the two is not known, or the counter began anew. */
static inline uint64_t ctl_scan_delta(const struct ctl_scan *scan, uint32_t i)
{
	const struct ctl_value *v = &scan->value[i];

	return scan->passes > 1 && v->known && v->was_known && v->now >= v->before
		       ? v->now - v->before
		       : 0;
}

/* Seconds between this pass and the last one; 0 for the first. */
static inline double ctl_scan_seconds(const struct ctl_scan *scan)
{
	return scan->passes > 1 ? (double)(scan->at_ns - scan->before_ns) / 1e9 : 0;
}

#endif
