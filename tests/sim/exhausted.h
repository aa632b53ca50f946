/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_EXHAUSTED_H
#define UR_SIM_EXHAUSTED_H

#include "objects.h"

/*
 * Whether the network is to blame for a queue pair that ran out of retries. RC: the first attempt
 * to get an answer to the oldest request packet, una, has failed, and so have retry_cnt repetitions
 * of that packet. Each has cost a loss: of a repetition it was the packet itself, a probe or an
 * answer; the first attempt may have failed for a later packet, the one that asked for the answer.
 * Fewer losses than that: the queue pair gave up too early. In extended mode everything heard from
 * the peer begins a new count, and any request asks.
 */
bool sim_exhausted_rightly(const struct sim *s, const struct sim_qp *req, const struct sim_qp *rsp,
			   struct ur_psn una);

#endif
