/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_PACING_MODES_H
#define UROCE_PACING_MODES_H

/*
 * The congestion control algorithms: the values of [pacing] mode. This list is the only place that
 * names them. The enumerations, the names, what the configuration accepts, --help-config, JSON and
 * the list of source files are made from it; lib/cc/NAME.c holds the algorithm (docs/adding.md).
 *
 * A row is a constant, a name, and half a sentence for --help-config. New rows go at the end: the
 * values of the constants are part of the ABI.
 */
#define UROCE_PACING_MODES(X)                                                                      \
	X(NONE, none, "no limit")                                                                  \
	X(CMDPD, cmdpd, "one packet per delay after a delay far above the average")                \
	X(AUTO, auto, "a rate that keeps few packets queued, by the least delay seen")             \
	X(DCQCN, dcqcn, "a rate cut by congestion notifications; packets are ECN-capable")         \
	X(SWIFT, swift, "a window that keeps the delay near a target, below one packet by gaps")

#endif
