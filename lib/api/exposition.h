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
	char family[UR_EXPOSITION_NAME]; /* the last family written; "" at the start */
};

/*
 * Writes one metric. Metrics with the same name must be written one after the other. This is a
 * callback for uroce_visit_metrics(); `exposition` is a struct ur_exposition. Returns 0, or EIO if
 * `out` has an error.
 *
 * Names of metrics and labels consist of lower-case letters, digits and '_'. Help texts and label
 * values may be any UTF-8; backslash, newline and double quote are escaped.
 */
int ur_exposition_write(void *exposition, const struct uroce_metric *metric);

#endif
