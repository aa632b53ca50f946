/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_PACING_MODES_H
#define UROCE_PACING_MODES_H

/*
 * The congestion control algorithms: the values of [pacing] mode. This list is the only place that
 * names them. The enumerations, the names, the values that the configuration accepts, --help-config,
 * JSON and the list of source files are made from it; lib/cc/NAME.c holds the algorithm
 * (docs/adding.md).
 *
 * A row has a constant, a name (letters, digits and _: it is part of ur_cc_NAME), and half a sentence for --help-config. New rows go at the end: the
 * values of the constants are part of the ABI.
 */
#define UROCE_PACING_MODES(X)                                                                      \
	X(NONE, none, "no limit")                                                                  \
	X(CMDPD, cmdpd, "after a delay far above the average, one packet for each such delay")     \
	X(AUTO, auto, "a rate, set by delays, that keeps a few packets queued at the bottleneck")  \
	X(DCQCN, dcqcn, "a rate, cut by CNPs; packets are ECN-capable")                            \
	X(SWIFT, swift, "a window that keeps the delay near a target; below one packet, gaps")

#endif
