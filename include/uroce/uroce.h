/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_UROCE_H
#define UROCE_UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h> /* types only: no function of libibverbs is called */

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
 * `config` is a file of pmd-config/ or one like it. `set` lists overrides "section.key=value",
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

/* Asynchronous events. ctx->async_fd becomes readable when there is one. */
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
 * Also makes a region valid again, under new keys, that was invalidated by a local or a remote
 * invalidate.
 */
int uroce_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
/* Returns when no packet under way can touch the memory any more. */
int uroce_dereg_mr(struct ibv_mr *mr);

/* Completion queues. comp_vector chooses the worker, [0, ctx->num_comp_vectors). */
struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *ctx);
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

/* Counters of the whole endpoint; uroce_counters_json() has all of them by name. */
struct uroce_counters {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes; /* RoCEv2 packets, bytes with headers */
	uint64_t retransmitted_packets;
	uint64_t dropped_packets; /* received RoCEv2 packets that had no effect, all reasons */
	uint64_t out_of_sequence, duplicate_request, rnr_nak_sent, rnr_nak_received;
	uint64_t packet_seq_err, local_ack_timeout_err;
	uint64_t impaired_packets; /* lost, duplicated, reordered or corrupted by [impair] */
	uint64_t rx_missed;        /* the PMD's own count of packets it had no room for */
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
