/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_UROCE_H
#define UROCE_UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h> /* types only: no function of libibverbs is called */

#include "uroce/qos.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * liburoce: a RoCEv2 endpoint in user space.
 *
 * Whoever knows verbs knows this interface: the objects are libibverbs' own structs, and each
 * function uroce_x() has the shape, the meaning and the errors of ibv_x(), which its manual page
 * tells. What is said below is only what differs. Calls that return int return 0 or an errno value
 * (post and poll as in verbs); calls that return a pointer return NULL and set errno.
 *
 * Thread class: every function may be called from any thread at any time, except that an object
 * must not be destroyed while another call on it is under way. In inline mode the calling thread
 * does the endpoint's work inside post, poll and every waiting call.
 */

/*
 * Opening and closing an endpoint.
 *
 * `config` is a file of pmd-config/ or one like it (EINVAL without one). `set` lists overrides "section.key=value",
 * NULL at its end; it may be NULL. On failure NULL is returned, errno is set and `err` holds one
 * sentence that names the place and the remedy. One process may open several endpoints.
 */
struct uroce_open_attr {
	const char *config;
	const char *const *set;
};

struct ibv_context *uroce_open(const struct uroce_open_attr *attr, char *err, size_t err_bytes);

/* All objects of the context must be gone (EBUSY otherwise). Stops the workers, closes the port. */
int uroce_close(struct ibv_context *ctx);

/* Prints every configuration key with type, range, default and meaning. */
void uroce_config_help(FILE *out);

/*
 * Inline mode: do the endpoint's work once (receive, timers, send); returns the number of packets
 * received and sent. In dedicated mode it returns 0 at once. poll_cq and post_send do the same.
 */
unsigned uroce_progress(struct ibv_context *ctx);

bool uroce_is_inline(const struct ibv_context *ctx);

int uroce_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr);
int uroce_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *attr);
/* Entry 0 is the first IPv4 address, if there is one; then IPv6, link-local last. */
int uroce_query_gid(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid);
int uroce_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index, __be16 *pkey);

/*
 * Asynchronous events. ctx->async_fd becomes readable when there is one. None is lost, however many
 * objects have one; what happens to an object again before it was fetched is told once.
 */
int uroce_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event);
void uroce_ack_async_event(struct ibv_async_event *event);
const char *uroce_event_type_str(enum ibv_event_type type);

/* Protection domains and memory regions. */
struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx);
int uroce_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
/* As reg_mr, but remote addresses start at `iova` instead of `addr`. */
struct ibv_mr *uroce_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
/*
 * An access flag beside those of verbs: the peer of any queue pair of the region's protection domain
 * may take the region's keys out of force, by IBV_WR_SEND_WITH_INV. Without it such a SEND is refused
 * as a remote access error: a right to read is none to take the region from everybody else. (In verbs
 * only memory windows of type 2 and regions of fast registration can be invalidated, and there are
 * none here.) IBV_WR_LOCAL_INV needs no flag.
 */
#define UROCE_ACCESS_REMOTE_INVALIDATE (1 << 16)

/*
 * Also makes a region valid again, under new keys, that was invalidated by a local or a remote
 * invalidate.
 */
int uroce_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
/* Returns when no packet under way can touch the memory any more. */
int uroce_dereg_mr(struct ibv_mr *mr);

/* Completion queues. comp_vector chooses the worker, [0, ctx->num_comp_vectors). */
struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *ctx);
/* A thread that waits on it gets -1 and ECANCELED, and has left when this returns. */
int uroce_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *uroce_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			       struct ibv_comp_channel *channel, int comp_vector);
int uroce_destroy_cq(struct ibv_cq *cq);
int uroce_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int uroce_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int uroce_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void uroce_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
const char *uroce_wc_status_str(enum ibv_wc_status status);

/* Shared receive queues. */
struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int uroce_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int uroce_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int uroce_destroy_srq(struct ibv_srq *srq);
int uroce_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * Queue pairs. A QP lives on the worker of its receive CQ; its SRQ must live there too (EINVAL
 * otherwise). modify_qp to RTR resolves the peer's MAC address and may take as long as that does.
 */
struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int uroce_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int uroce_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr);
int uroce_destroy_qp(struct ibv_qp *qp);
int uroce_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int uroce_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * How an RC queue pair survives loss and reordering. X(NAME, word)
 *
 * AUTO      EXTENDED when both ends agree while they connect by CM, else REORDER
 * EXTENDED  exactly what is lost is sent again, and data is placed as it comes: earlier data may
 *           land later, and only the completion says that all is there. Both ends are uroce.
 * REORDER   any RoCEv2 peer; packets that come early are kept until their turn
 * GBN       any RoCEv2 peer; everything from a gap on is sent again (go-back-N)
 */
#define UROCE_QP_MODES(X)                                                                          \
	X(AUTO, "auto")                                                                            \
	X(EXTENDED, "extended")                                                                    \
	X(REORDER, "reorder")                                                                      \
	X(GBN, "gbn")

enum uroce_qp_mode {
#define X(NAME, word) UROCE_QP_MODE_##NAME,
	UROCE_QP_MODES(X)
#undef X
};

/*
 * Why a queue pair has the mode that it has. X(NAME, word, sentence); the word names a counter of
 * uroce_counters_json(), the sentence is for people and says what to do about it.
 */
#define UROCE_QP_MODE_REASONS(X)                                                                   \
	X(OPEN, "open", "the mode is decided when the queue pair goes to RTR")                     \
	X(AGREED, "agreed", "both ends agreed on extended mode")                                   \
	X(CHOSEN, "chosen", "the application or [transport] mode chose it")                        \
	X(SERVICE, "service", "only RC queue pairs have modes")                                    \
	X(BY_HAND, "by_hand",                                                                      \
	  "a queue pair that is connected by modify_qp cannot agree on extended mode; choose it "  \
	  "at both ends by uroce_set_qp_mode() or [transport] mode")                               \
	X(PRIVATE_DATA, "private_data",                                                            \
	  "the private data leaves no room to agree on extended mode; use at most 40 bytes in "    \
	  "connect and 180 in accept")                                                             \
	X(PEER, "peer",                                                                            \
	  "the peer does not agree on extended mode; run uroce there with [transport] mode = "     \
	  "auto or extended, or choose auto, reorder or gbn here")

enum uroce_qp_mode_reason {
#define X(NAME, word, sentence) UROCE_MODE_REASON_##NAME,
	UROCE_QP_MODE_REASONS(X)
#undef X
};

#define UROCE_SPRAY_ALL 255

struct uroce_qp_mode_attr {
	enum uroce_qp_mode mode;
	/*
	 * Extended mode: the last packet of a WRITE from the peer is placed after all others, so
	 * that one may poll on the last byte. The other modes place packets in order anyway.
	 */
	bool strict;
	/* Extended mode: UDP source ports to send by, 0 (off), 2 to 16, or UROCE_SPRAY_ALL. */
	uint8_t spray;
	enum uroce_qp_mode_reason reason; /* query only */
};

enum uroce_qp_mode_attr_mask {
	UROCE_QP_MODE = 1 << 0,
	UROCE_QP_STRICT = 1 << 1,
	UROCE_QP_SPRAY = 1 << 2,
};

/*
 * What an RC queue pair wants to be, instead of what [transport] says; in RESET or INIT, before
 * uroce_cm_connect() or uroce_cm_accept(). It holds until changed, through RESET too. EINVAL:
 * another state, an unknown bit or value, or ports to spray over in a mode that keeps the order;
 * EOPNOTSUPP: not an RC queue pair; EBUSY: it is being connected.
 *
 * EXTENDED is a demand: uroce_cm_accept() fails with EPROTONOSUPPORT, and uroce_cm_connect() ends
 * with UROCE_CM_UNREACHABLE of that status, when the peer does not agree; query_qp_mode tells why.
 * When the queue pair is connected by modify_qp, both ends must demand it.
 */
int uroce_set_qp_mode(struct ibv_qp *qp, const struct uroce_qp_mode_attr *attr, int attr_mask);
/* What is wanted until RTR, what is from then on. */
int uroce_query_qp_mode(struct ibv_qp *qp, struct uroce_qp_mode_attr *attr);
const char *uroce_qp_mode_str(enum uroce_qp_mode mode);
const char *uroce_qp_mode_reason_str(enum uroce_qp_mode_reason reason);
/*
 * As ibv_query_qp_data_in_order(): 1 when the memory that this QP receives into may be polled
 * instead of the completion. True of atomics, and of WRITEs to a QP with `strict`.
 */
int uroce_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* Address handles. create_ah resolves the MAC address (EHOSTUNREACH when nobody answers). */
struct ibv_ah *uroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int uroce_destroy_ah(struct ibv_ah *ah);
int uroce_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
			  struct ibv_grh *grh, struct ibv_ah_attr *attr);

/*
 * Capture of what the port really sends and receives, to a pcap file with nanosecond stamps, while
 * the endpoint runs. `filter` is a BPF expression or NULL; `max_bytes` 0 means no bound. EBUSY when
 * one is under way. On failure `err` holds one sentence.
 */
int uroce_capture_start(struct ibv_context *ctx, const char *file, const char *filter,
			uint64_t max_bytes, char *err, size_t err_bytes);
struct uroce_capture_stats {
	uint64_t written;  /* packets in the file */
	uint64_t dropped;  /* copies lost because the writer was behind */
	uint64_t filtered; /* packets the filter did not want */
	uint64_t overflow; /* packets after max_bytes was reached */
};
int uroce_capture_stop(struct ibv_context *ctx, struct uroce_capture_stats *stats);

/*
 * Counters of the whole endpoint since it was opened; uroce_counters_json() has all of them by
 * name, those of the first list by these names. X(name, meaning)
 */
#define UROCE_TRANSPORT_COUNTERS(X)                                                                \
	X(rx_packets, "RoCEv2 packets accepted by a queue pair")                                   \
	X(rx_bytes, "their bytes, Ethernet header to ICRC")                                        \
	X(tx_packets, "RoCEv2 packets sent")                                                       \
	X(tx_bytes, "their bytes, Ethernet header to ICRC")                                        \
	X(retransmitted_packets, "request packets sent again")                                     \
	X(out_of_sequence, "requests received beyond the expected PSN")                            \
	X(duplicate_request, "requests received that were executed before")                        \
	X(rnr_nak_sent, "RNR NAKs sent")                                                           \
	X(packet_seq_err, "sequence NAKs received")                                                \
	X(local_ack_timeout_err, "local ACK timeouts")                                             \
	/* surviving loss and reordering */                                                        \
	X(retransmitted_responses, "READ and atomic responses sent again")                         \
	X(spurious_retransmits, "packets sent again although they had arrived")                    \
	X(probes_sent, "tail probes")                                                              \
	X(rto, "retransmission timeouts")                                                          \
	X(packets_deemed_lost, "or refused for want of a receive; responses too")                  \
	X(lost_but_arrived, "of them, before they were sent again")                                \
	X(reordered, "packets that came late, but were not lost")                                  \
	X(early_packets, "requests beyond a missing one that were kept or placed")                 \
	X(early_dropped, "requests beyond a missing one that were dropped")                        \
	X(early_responses, "responses placed beyond a missing one")                                \
	X(ooo_contexts, "out-of-order contexts taken")                                             \
	X(ooo_exhausted, "gaps for which there was none")                                          \
	X(rtx_contexts, "recovery contexts taken")                                                 \
	X(rtx_exhausted, "gaps for which there was none")                                          \
	/* receiver admission ([admission] mode is not plain); requests that need a receive */     \
	X(adm_accepted, "requests that a receive pool accepted, of peers that hear its status")    \
	X(adm_refused, "requests of them that it refused, with a letter")                          \
	X(adm_false_claims, "requests that claimed a letter which their queue pair did not hold")  \
	X(adm_expired, "letters that expired, their holders silent for [admission] mark_ms")       \
	X(adm_notifies_sent, "NOTIFYs sent: a pool's change of status, told to a peer")            \
	X(adm_calls_sent, "calls sent: a receive is there for a refused request")                  \
	X(adm_notifies_received, "NOTIFYs received, calls included")                               \
	X(adm_calls_received, "calls received")                                                    \
	X(adm_waits, "messages kept back because the peer's pool would have refused them")         \
	X(adm_woken, "of them let go on by what was heard, or by time")                            \
	X(adm_exhausted, "peers and pools of peers for which [admission] peers had no place")

#define UROCE_COUNTERS(X)                                                                          \
	UROCE_TRANSPORT_COUNTERS(X)                                                                \
	X(dropped_packets, "received RoCEv2 packets that had no effect, all reasons")              \
	X(rnr_nak_received, "RNR NAKs received")                                                   \
	X(impaired_packets, "lost, duplicated, reordered or corrupted by [impair]")                \
	X(impaired_lost, "of impaired_packets those that [impair] dropped")                        \
	X(rx_missed, "the PMD's own count of packets it had no room for")

struct uroce_counters {
#define X(name, meaning) uint64_t name;
	UROCE_COUNTERS(X)
#undef X
};
int uroce_query_counters(struct ibv_context *ctx, struct uroce_counters *counters);
/* A JSON object with every counter, per port, drop reason and QP. The caller frees it with free(). */
char *uroce_counters_json(struct ibv_context *ctx);

/* Live objects of the context, to find leaks. */
struct uroce_objects {
	uint32_t pds, mrs, cqs, srqs, qps, ahs, channels, cm_ids, cm_connections;
	uint32_t qps_time_wait; /* QP slots that are not reusable yet */
};
int uroce_query_objects(struct ibv_context *ctx, struct uroce_objects *objects);

#ifdef __cplusplus
}
#endif

#endif
