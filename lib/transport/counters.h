/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_COUNTERS_H
#define UR_TRANSPORT_COUNTERS_H

#include <stdint.h>

#include "wire/drop.h"

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

#endif
