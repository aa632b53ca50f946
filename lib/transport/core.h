/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_CORE_H
#define UR_TRANSPORT_CORE_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "mem/mem.h"
#include "sched/emux.h"
#include "pacing/pacing.h"
#include "timer/wheel.h"
#include "transport/admission_state.h"
#include "transport/cq.h"
#include "transport/ooo.h"
#include "transport/read_gap.h"
#include "transport/reorder.h"
#include "transport/selective.h"
#include "transport/spray.h"
#include "wire/drop.h"

/*
 * What the transports of one worker share. Thread class of everything in here: that worker.
 */

/*
 * Counters, with the kernel drivers' names where the meaning is the same. X(name, meaning)
 */
#define UR_COUNTERS(X)                                                                             \
	X(rx_packets, "RoCEv2 packets accepted by a QP")                                           \
	X(rx_bytes, "their bytes, Ethernet header to ICRC")                                        \
	X(tx_packets, "RoCEv2 packets sent")                                                       \
	X(tx_bytes, "their bytes, Ethernet header to ICRC")                                        \
	X(retransmitted_packets, "request packets sent again")                                     \
	X(duplicate_request, "requests received that were executed before")                        \
	X(out_of_sequence, "requests received beyond the expected PSN")                            \
	X(packet_seq_err, "sequence NAKs received")                                                \
	X(implied_nak_seq_err, "READ or atomic responses found missing")                           \
	X(local_ack_timeout_err, "local ACK timeouts")                                             \
	X(rnr_nak_retry_err, "RNR NAKs received")                                                  \
	X(rnr_nak_sent, "RNR NAKs sent")                                                           \
	X(seq_nak_sent, "sequence NAKs sent")                                                      \
	X(retry_exceeded_err, "QPs that ran out of retries")                                       \
	X(rnr_retry_exceeded_err, "QPs that ran out of RNR retries")                               \
	X(rx_read_requests, "READ requests received")                                              \
	X(rx_write_requests, "WRITE packets received")                                             \
	X(rx_atomic_requests, "atomic requests received")                                          \
	X(req_cqe_error, "send completions with an error")                                         \
	X(resp_cqe_error, "receive completions with an error")                                     \
	X(flushed_wqe, "work requests flushed")                                                    \
	X(resp_remote_access_errors, "requests refused for key, range or rights")                  \
	X(resp_invalid_requests, "requests refused as invalid")                                    \
	X(cq_overflow, "completions lost because a CQ was full")                                   \
	X(np_ecn_marked_roce_packets, "packets received with ECN CE")                              \
	X(np_cnp_sent, "CNPs sent")                                                                \
	X(rp_cnp_handled, "CNPs received that slowed a destination down")                          \
	X(rp_cnp_ignored, "CNPs received that changed nothing")                                    \
	X(acks_sent, "ACKs sent")                                                                  \
	X(acks_received, "ACKs and NAKs received, responses that acknowledge included")            \
	X(early_packets, "requests received beyond the expected PSN and kept or placed")           \
	X(early_dropped, "requests received beyond the expected PSN and dropped")                  \
	X(early_disbelieved, "of them, and of responses, those that lay too far from all others")  \
	X(early_responses, "responses placed beyond a missing one")                                \
	X(ooo_contexts, "out-of-order contexts taken")                                             \
	X(ooo_exhausted, "gaps for which no out-of-order context was left")                        \
	X(stale_gap_err, "QPs that ended because a gap stayed open for too long")                  \
	X(rtx_contexts, "recovery contexts taken")                                                 \
	X(rtx_exhausted, "gaps for which no recovery context was left")                            \
	X(packets_deemed_lost, "packets deemed lost, or refused for want of a receive")            \
	X(lost_but_arrived, "of them those that arrived before they were sent again")              \
	X(reordered, "packets that arrived late, but were not lost")                               \
	X(spurious_retransmits, "packets sent again whose first transmission had arrived")         \
	X(retransmitted_responses, "response packets sent again")                                  \
	X(probes_sent, "tail probes sent")                                                         \
	X(rto, "retransmission timeouts")                                                          \
	X(sched_turns, "scheduling turns")                                                         \
	X(sched_blind_visits, "turns in which nothing could be sent")                              \
	X(sched_sifted, "queues moved from a ready list to a gate that had closed")                \
	X(adm_accepted, "requests that a receive pool accepted, of QPs that it tells its status")  \
	X(adm_refused, "requests that it refused")                                                 \
	X(adm_false_claims, "requests that claimed a letter which their QP does not hold")         \
	X(adm_expired, "letters that expired")                                                     \
	X(adm_notifies_sent, "NOTIFYs sent, but for calls")                                        \
	X(adm_calls_sent, "calls sent")                                                            \
	X(adm_notifies_received, "NOTIFYs received, calls included")                               \
	X(adm_calls_received, "calls received")                                                    \
	X(adm_waits, "messages kept back because they would have been refused")                    \
	X(adm_woken, "of them let go on by what was heard, or by time")                            \
	X(adm_exhausted, "peers and entries of admission for which there was no place")            \
	X(sched_woken, "queues that a gate let go on")

struct ur_counters {
#define X(name, text) uint64_t name;
	UR_COUNTERS(X)
#undef X
	uint64_t drops[UR_DROP_CNT];
};

/* Where the engine tells what its owner has to pass on. Called on the worker, must not call back.
 */
struct ur_sink {
	void *ctx;
	/* An armed CQ of this worker has a completion (write its event file descriptor). */
	void (*completion)(void *ctx, struct ur_cq *cq);
	/* An asynchronous event of the object whose `user` this is (CQ, QP or SRQ by `type`). */
	void (*async)(void *ctx, enum ibv_event_type type, void *user);
	/* A completion for a CQ of another worker. */
	void (*foreign)(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited);
};

/* What a lane has sent, ACKs and NAKs included. */
struct ur_lane_counters {
	uint64_t packets, bytes; /* of frames, Ethernet header to ICRC */
};

struct ur_core {
	struct ur_mem *mem; /* shared with the endpoint's other workers */
	struct ur_wheel wheel;
	struct ur_vl vl;     /* which lane sends next, */
	struct ur_emux emux; /* and who in it */
	struct ur_pacing pacing;
	struct ur_dest *dests;	/* transport/dest.h */
	struct ur_sched settle; /* unreliable QPs with packets that have left, not completed yet */
	struct ur_ooo_pool ooo;
	struct ur_rtx_pool rtx;
	struct ur_spray_pool spray;
	struct ur_reorder_pool reorder;
	struct ur_read_gap_pool read_gaps;
	struct ur_admission adm;
	struct ur_sched cnps; /* QPs that owe a CNP */
	struct ur_sched acks; /* QPs that owe an ACK or NAK: served before everything else */
	struct ur_counters cnt;
	struct ur_lane_counters lane[UR_VL_CNT];
	struct ur_sink sink;
	uint16_t worker;
};

/* Pushes a completion wherever its CQ lives and raises what has to be raised. */
void ur_core_complete(struct ur_core *core, struct ur_cq *cq, const struct ibv_wc *wc,
		      bool solicited);

#endif
