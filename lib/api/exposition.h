/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_EXPOSITION_H
#define UR_API_EXPOSITION_H

#include "uroce/counters.h"

/*
 * Prometheus' text exposition format, version 0.0.4: per family of one name a HELP and a TYPE line,
 * then a line for each combination of labels.
 *
 * Thread class: any; one thread at a time per struct.
 */

#define UR_EXPOSITION_NAME 64

struct ur_exposition {
	FILE *out;
	char family[UR_EXPOSITION_NAME]; /* that was written last; "" at the start */
};

/*
 * Writes one metric; those of one name must come one after the other. Fits uroce_visit_metrics(),
 * `exposition` is a struct ur_exposition. Returns 0, or EIO when `out` is in error.
 *
 * Names of metrics and labels are ours and must be of lower case letters, digits and '_'. Help and
 * label values may hold any UTF-8; backslash, newline and double quote are escaped.
 */
int ur_exposition_write(void *exposition, const struct uroce_metric *metric);

#endif
