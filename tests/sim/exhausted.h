/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_EXHAUSTED_H
#define UR_SIM_EXHAUSTED_H

#include "objects.h"

/*
 * True if losses justify that an RC queue pair has run out of retries. The first attempt to get an
 * answer to the oldest unacknowledged packet, una, must have failed, and so must retry_cnt
 * repetitions of that packet. Each failure needs a loss: of a repetition itself, of a probe or of
 * an answer; for the first attempt also of a later packet, the one that requested the answer. With
 * fewer losses the queue pair gave up too early. In extended mode, any packet from the peer
 * restarts the count, and any request packet requests an answer.
 */
bool sim_exhausted_rightly(const struct sim *s, const struct sim_qp *req, const struct sim_qp *rsp,
			   struct ur_psn una);

#endif
