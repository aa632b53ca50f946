/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_COUNTER_LIST_H
#define UROCE_COUNTER_LIST_H

#include <stdint.h> /* uint64_t, of which the structs consist */

/*
 * The counters of the transport, X(name, unit, help). This list is the only place that names them.
 * The struct in which a worker counts, struct uroce_counters, telemetry, JSON, uroce-perf and the
 * Prometheus page follow from it. How to add one: docs/design/counters.md.
 *
 * The name is in lower case. Where the meaning is the same it is the name that the Linux RDMA drivers
 * use (rdma-core, /sys/class/infiniband/.../hw_counters). The unit is a plural noun. The help is half
 * a sentence that can be understood on its own.
 *
 * New rows go to the end: the order is the layout of struct uroce_counters (see there).
 */
#define UROCE_TRANSPORT_COUNTERS(X)                                                                \
	X(rx_packets, "packets", "RoCEv2 packets that a queue pair accepted")                      \
	X(rx_bytes, "bytes", "bytes of accepted RoCEv2 packets, Ethernet header to ICRC")          \
	X(tx_packets, "packets", "RoCEv2 packets sent")                                            \
	X(tx_bytes, "bytes", "bytes of sent RoCEv2 packets, Ethernet header to ICRC")              \
	X(retransmitted_packets, "packets", "request packets sent again")                          \
	X(duplicate_request, "packets", "request packets received that had been executed before")  \
	X(out_of_sequence, "packets", "request packets received beyond the expected PSN")          \
	X(packet_seq_err, "packets", "sequence error NAKs received")                               \
	X(implied_nak_seq_err, "packets", "READ and atomic responses found missing")               \
	X(local_ack_timeout_err, "timeouts", "local ACK timeouts")                                 \
	X(rnr_nak_retry_err, "packets", "RNR NAKs received")                                       \
	X(rnr_nak_sent, "packets", "RNR NAKs sent")                                                \
	X(seq_nak_sent, "packets", "sequence error NAKs sent")                                     \
	X(retry_exceeded_err, "queue pairs", "queue pairs that ran out of retries")                \
	X(rnr_retry_exceeded_err, "queue pairs", "queue pairs that ran out of RNR retries")        \
	X(rx_read_requests, "requests", "READ requests received")                                  \
	X(rx_write_requests, "packets", "WRITE request packets received")                          \
	X(rx_atomic_requests, "requests", "atomic requests received")                              \
	X(req_cqe_error, "completions", "send completions with an error status")                   \
	X(resp_cqe_error, "completions", "receive completions with an error status")               \
	X(flushed_wqe, "requests", "work requests flushed because their queue pair failed")        \
	X(resp_remote_access_errors, "requests",                                                   \
	  "requests refused for their key, range or rights")                                       \
	X(resp_invalid_requests, "requests", "requests refused as invalid")                        \
	X(cq_overflow, "completions", "completions lost because a completion queue was full")      \
	X(np_ecn_marked_roce_packets, "packets", "packets received with ECN CE")                   \
	X(np_cnp_sent, "packets", "CNPs sent")                                                     \
	X(rp_cnp_handled, "packets", "CNPs received that slowed a destination down")               \
	X(rp_cnp_ignored, "packets", "CNPs received that had no effect")                           \
	X(acks_sent, "packets", "ACKs sent")                                                       \
	X(acks_received, "packets",                                                                \
	  "ACKs and NAKs received, including responses that acknowledge")                          \
	X(early_packets, "packets", "requests received beyond a gap and kept or placed")           \
	X(early_dropped, "packets", "requests and responses received beyond a gap and dropped")    \
	X(early_disbelieved, "packets",                                                            \
	  "requests and responses dropped as untrusted: too far beyond all others")                \
	X(early_responses, "packets", "responses placed beyond a missing one")                     \
	X(ooo_contexts, "contexts", "out-of-order contexts taken")                                 \
	X(ooo_exhausted, "gaps", "gaps for which no out-of-order context was left")                \
	X(stale_gap_err, "queue pairs", "queue pairs that failed because a gap stayed open")       \
	X(rtx_contexts, "contexts", "recovery contexts taken")                                     \
	X(rtx_exhausted, "gaps", "gaps for which no recovery context was left")                    \
	X(packets_deemed_lost, "packets",                                                          \
	  "request and response packets considered lost, or refused for lack of a receive")        \
	X(lost_but_arrived, "packets",                                                             \
	  "packets considered lost that arrived before they were sent again")                      \
	X(reordered, "packets", "packets that arrived late but were not lost")                     \
	X(spurious_retransmits, "packets",                                                         \
	  "packets sent again although their first transmission had arrived")                      \
	X(retransmitted_responses, "packets", "READ and atomic response packets sent again")       \
	X(probes_sent, "packets", "tail loss probes sent")                                         \
	X(rto, "timeouts", "retransmission timeouts")                                              \
	X(sched_turns, "turns", "scheduling turns")                                                \
	X(sched_blind_visits, "turns", "scheduling turns in which nothing could be sent")          \
	X(sched_sifted, "queues", "send queues moved from a ready list to a gate that had closed") \
	X(adm_accepted, "requests", "requests accepted by receive pools that report their status") \
	X(adm_refused, "requests", "requests refused by receive pools that report their status")   \
	X(adm_false_claims, "requests",                                                            \
	  "requests that claimed a queue class other than that of their queue pair")               \
	X(adm_expired, "refusals", "refusals that expired because their sender was silent")        \
	X(adm_notifies_sent, "packets", "NOTIFYs sent, not counting grants")                       \
	X(adm_grants_sent, "packets", "grants sent: a receive is reserved for a refused request")  \
	X(adm_notifies_received, "packets", "NOTIFYs received, including grants")                  \
	X(adm_grants_received, "packets", "grants received")                                       \
	X(adm_waits, "messages", "messages held back because they would have been refused")        \
	X(adm_woken, "messages", "held back messages released by a status or by time")             \
	X(adm_exhausted, "entries", "peers and pools beyond the limit of [admission] peers")       \
	X(sched_woken, "queues", "send queues released by a gate")                                 \
	X(ooo_grown, "contexts", "out-of-order contexts that moved to a larger tier")              \
	X(ooo_short, "contexts", "out-of-order contexts that were refused a larger tier")          \
	X(rtx_grown, "contexts", "recovery contexts that moved to a larger tier")                  \
	X(rtx_short, "contexts", "recovery contexts that were refused a larger tier")              \
	X(rx_predicted, "packets", "packets accepted whose headers were as predicted")             \
	X(tx_predicted, "packets", "request packets sent in the way of the commonest")             \
	X(rx_path_predicted, "packets", "other packets whose headers up to UDP were as predicted") \
	X(rx_acks_predicted, "packets", "of these, ACKs that were as predicted")                   \
	X(rx_responses_predicted, "packets", "and READ responses that were as predicted")          \
	X(repaths, "changes", "UDP source ports changed because a path seemed dead or congested")  \
	X(plb_repaths, "changes", "of these, because it seemed congested")

/* Sums that are in struct uroce_counters as well; the same X. */
#define UROCE_SUMMARY_COUNTERS(X)                                                                  \
	X(dropped_packets, "packets", "RoCEv2 packets received that had no effect, any reason")    \
	X(rnr_nak_received, "packets", "RNR NAKs received, the same as rnr_nak_retry_err")         \
	X(impaired_packets, "packets",                                                             \
	  "packets lost, duplicated, reordered or corrupted by [impair]")                          \
	X(impaired_lost, "packets", "packets dropped by [impair]")                                 \
	X(rx_missed, "packets", "packets lost because the port or its driver had no room")

/* The counters of congestion control, docs/design/pacing.md. X(name, COUNTER, unit, help) */
#define UROCE_PACING_COUNTERS(X)                                                                   \
	X(samples, COUNTER, "delays", "delays measured")                                           \
	X(unsure, COUNTER, "delays", "delays ignored because they may be a pause of our own")      \
	X(outliers, COUNTER, "delays", "delays that were too long")                                \
	X(reseeds, COUNTER, "times", "times that the delay of a path was learned anew")            \
	X(throttles, COUNTER, "times", "times that a destination became throttled")                \
	X(cnps, COUNTER, "packets", "congestion notification packets received")                    \
	X(losses, COUNTER, "times", "times that packets to a destination were found lost")         \
	X(timeouts, COUNTER, "times", "retransmission timeouts")                                   \
	X(full, COUNTER, "queue pairs",                                                            \
	  "queue pairs not paced because [pacing] destinations is too small")                      \
	X(net_samples, COUNTER, "delays", "delays that switches have stamped")                     \
	X(net_bad, COUNTER, "delays", "stamped delays that are longer than their round trip")      \
	X(net_blocked, COUNTER, "times",                                                           \
	  "times that a path was found not to let stamped packets pass")

/* The counters of a pool of receives (an SRQ), docs/design/admission.md. X(name, unit, help) */
#define UROCE_POOL_COUNTERS(X)                                                                     \
	X(accepted, "requests", "requests accepted")                                               \
	X(refused, "requests", "requests refused")                                                 \
	X(changes, "changes", "changes of status")                                                 \
	X(grants, "packets", "grants sent")                                                        \
	X(void_grants, "grants", "grants that their queue pair did not use in time")               \
	X(notifies, "packets", "NOTIFYs sent, not counting grants")                                \
	X(expired, "refusals", "refusals that expired because their sender was silent")            \
	X(false_claims, "requests",                                                                \
	  "requests that claimed a queue class other than that of their queue pair")

#endif
