/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_FAULT_LOG_H
#define CTL_FAULT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "names.h"
#include "wire/vendor.h"

/*
 * A log of faults, in memory and, if it has a name, in a file: a line of JSON for each report, and for each time that
 * some are acknowledged or found to be over. Lines are only appended, each by one write under a lock, so that several
 * programs can write and others follow. What a program that died left of a line is cut off by the next writer.
 *
 *   {"id": 1, "time": 1700000000.5, "severity": "critical", "cause": "link down", "guid": "0x...", "description": "...",
 *    "port": 3, "sequence": 7, "node_time_ns": 5000000000, "value": 0, "limit": 0}
 *   {"time": 1700000005.5, "acknowledged": [1]}
 *   {"time": 1700000009.5, "cleared": [1]}
 *
 * A report is known by its node's GUID, sequence and the time on the node's clock: a node counts from 1 again when it is
 * restarted, and its clock from 0.
 */
#define CTL_FAULT_LOG_MAX 65536 /* reports that are kept in memory, the last ones */

/* X(NAME, name) */
#define CTL_FAULT_STATES(X)                                                                        \
	X(RAISED, raised)                                                                          \
	X(ACKNOWLEDGED, acknowledged)                                                              \
	X(CLEARED, cleared) /* over: LINK_UP came after LINK_DOWN, or a gauge is below its limit */

enum ctl_fault_state {
#define X(NAME, name) CTL_FAULT_##NAME,
	CTL_FAULT_STATES(X)
#undef X
};

struct ctl_fault {
	uint64_t id;   /* from 1 on, in the order of the log */
	double time_s; /* when it was logged, in seconds since 1970 */
	struct ur_fault report;
	char name[CTL_NAME_BYTES]; /* of its node */
	enum ctl_fault_state state;
};

struct ctl_fault_log {
	const char *path; /* NULL: in memory only */
	int fd;
	bool writes;
	off_t at;		 /* what was read of the file */
	uint64_t lines, bad;	 /* of the file; bad: lines that are none of a log */
	struct ctl_fault *fault; /* [0, cnt), in order of their ids */
	uint32_t cnt;
	uint64_t last_id;
};

/* `flags`: of open(2). False: a sentence was printed. ctl_fault_log_close() is called either way. */
bool ctl_fault_log_open(struct ctl_fault_log *log, const char *path, int flags);
void ctl_fault_log_close(struct ctl_fault_log *log);

/* Takes what was appended since. False: a sentence was printed. */
bool ctl_fault_log_read(struct ctl_fault_log *log);

/* True: that report was added before. */
bool ctl_fault_log_has(const struct ctl_fault_log *log, const struct ur_fault *report);

enum ctl_fault_added {
	CTL_FAULT_NEW,
	CTL_FAULT_KNOWN, /* it is a repeated report */
	CTL_FAULT_LOST,	 /* it could not be written; a sentence was printed */
};
/* Appends a report of the node `name`; time and id are given to it here. */
enum ctl_fault_added ctl_fault_log_add(struct ctl_fault_log *log, const struct ur_fault *report,
				       const char *name);

/* Appends that these are now in that state. False: a sentence was printed. */
bool ctl_fault_log_mark(struct ctl_fault_log *log, const uint64_t *ids, uint32_t cnt,
			enum ctl_fault_state state);

/* NULL: there is none, or it is no longer in memory. */
struct ctl_fault *ctl_fault_log_find(const struct ctl_fault_log *log, uint64_t id);

/* As in the file, and its state. */
json_t *ctl_fault_log_json(const struct ctl_fault *fault);
const char *ctl_fault_state_name(enum ctl_fault_state state);

#endif
