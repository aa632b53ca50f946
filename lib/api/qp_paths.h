/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QP_PATHS_H
#define UR_API_QP_PATHS_H

#include "edge/counters.h"
#include "transport/qp.h"

/* The UDP source ports of a queue pair's requests, as they were between two rounds. */
struct ur_qp_paths {
	uint16_t sport; /* the queue pair's own; 0: it has no path yet */
	uint8_t n;	/* 1: it does not spray, and `path` says nothing */
	struct ur_spray_path path[UR_SPRAY_MAX];
};

/* Thread class: the queue pair's worker. */
void ur_qp_paths_copy(const struct ur_qp *qp, struct ur_qp_paths *out);

/*
 * "sport", and of one that sprays "paths", by index: port, share of what is sent now, loss (in the
 * last thousand packets or so) and the round trip that shares are found from, 0 when unknown. Any
 * thread.
 */
void ur_qp_paths_emit(struct ur_emit *e, const struct ur_qp_paths *p);

#endif
