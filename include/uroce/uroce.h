/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_UROCE_H
#define UROCE_UROCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h> /* types only: no function of libibverbs is called */

#include "uroce/counters.h"
#include "uroce/qos.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * liburoce: a RoCEv2 endpoint in user space, with the interface of verbs.
 *
 * Objects are the structs of libibverbs. A function uroce_x() has the signature, the meaning and the
 * errors of ibv_x(); the manual page of ibv_x() describes it, and the comments here add what differs.
 * Calls that return int return 0 or an errno value, except where verbs itself does otherwise (poll,
 * get_cq_event, get_async_event). Calls that return a pointer return NULL on failure and set errno.
 *
 * Ownership: an object belongs to the caller from the call that creates it to the one that destroys
 * it, which fails with EBUSY while another object uses it. Strings and attributes that are passed in
 * are copied. Texts that are returned are static, unless the comment says otherwise.
 *
 * Thread class: every function may be called from any thread at any time, except that no other call
 * may use an object while it is destroyed. In inline mode the calling thread does the endpoint's work
 * inside of post, poll and every call that waits.
 * A child of fork() must not call any function of the library; it may call exit() or exec(). A call that it makes all the
 * same does not reach the endpoint, which is its parent's.
 * A thread may be cancelled (pthread_cancel) in any call that waits. No lock stays held then.
 *
 * Source: IBTA Volume 1, chapters 9 to 11, and annex A17 (RoCEv2).
 */

/* The endpoint that uroce_open() opens. */
struct uroce_open_attr {
	/*
	 * A configuration file; a name without a slash is also searched among the installed ones.
	 * NULL: every key has its default.
	 */
	const char *config;
	/*
	 * Overrides "section.key=value", the last followed by NULL; or NULL. {"port.dev=eth0", NULL}
	 * alone shares the kernel's interface eth0 and its addresses. "section.key?=value" is for keys
	 * that neither the file nor an earlier override sets.
	 */
	const char *const *set;
};

/*
 * Opens an endpoint: starts DPDK, if it is the first of the process, opens the port and starts the
 * workers. A process may open several endpoints. On failure it returns NULL, sets errno, and writes to
 * `err`, at most err_bytes bytes, one sentence that names the place and the remedy. errno is EINVAL
 * (no port is named, or the configuration is wrong), ENOENT, EACCES, EBUSY, ENODEV, or another one
 * from the system. On success `err` is not written.
 */
struct ibv_context *uroce_open(const struct uroce_open_attr *attr, char *err, size_t err_bytes);

/*
 * Another context of the same endpoint, with objects and asynchronous events of its own; for programs
 * that open a device several times. Events of the port come to every context. The limits are those of
 * the endpoint, for all its contexts together. NULL and errno: ENOMEM, EMFILE.
 */
struct ibv_context *uroce_share(struct ibv_context *ctx);

/*
 * Closes a context. With the last one of an endpoint it stops the workers and closes the port. EBUSY: an
 * object of the context still exists. A thread in uroce_get_async_event() gets -1 and ECANCELED, and has left the call
 * when this one returns.
 */
int uroce_close(struct ibv_context *ctx);

/*
 * For a program that closes a context and leaves objects behind: its memory regions and windows grant nothing from now on, its
 * queue pairs go to ERR. The objects may still be destroyed; until then the context stays.
 */
void uroce_abandon(struct ibv_context *ctx);

/* Prints every configuration key with its default, allowed values and meaning. */
void uroce_config_help(FILE *out);

/*
 * Inline mode: does the endpoint's work once (receive, timers, send). Returns the number of packets
 * received and sent. In dedicated mode it returns 0 at once.
 */
unsigned uroce_progress(struct ibv_context *ctx);

/*
 * As poll(2), for any of the program's descriptors, those of channels among them. In inline mode the thread does the endpoint's work meanwhile: the
 * packet that brings an event wakes this thread, where poll() would have it wait until the endpoint's progress thread has woken, too. One thread
 * at a time has this; others wait as in poll(). EINTR comes after any signal. The context may not be closed meanwhile.
 */
int uroce_wait(struct ibv_context *ctx, struct pollfd *fds, nfds_t cnt, int timeout_ms);

/* Whether the endpoint has no threads of its own for its work; see uroce_progress(). */
bool uroce_is_inline(const struct ibv_context *ctx);

/*
 * Writes one line of text that says how the endpoint reaches its network, such as "eth0 by af_packet,
 * with the kernel's addresses 10.0.0.1, fe80::1". If another process writes received frames (memif with zero
 * copy), it also says whether they are evicted from the cache, and why. The text is cut to `bytes`.
 */
void uroce_describe_port(struct ibv_context *ctx, char *text, size_t bytes);

/* The limits of the endpoint, from [transport] of the configuration. */
int uroce_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr);
/*
 * As ibv_query_device_ex(). What is 0 beyond the limits does not exist. `bytes` is the size of *attr, which may be that
 * of another release.
 */
int uroce_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t bytes);
/* As ibv_query_rt_values_ex(): raw_clock is the endpoint's clock in nanoseconds, all in tv_nsec. EINVAL. */
int uroce_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
/* The state of the port; port_num is 1 (EINVAL otherwise). */
int uroce_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *attr);
/*
 * Entry 0 is the first IPv4 address, if there is one; then IPv6, link-local last. With [port] dev the
 * table follows the interface's addresses (IBV_EVENT_GID_CHANGE): an address that is removed leaves a
 * zero entry, and the next one that is added takes the first of those. EINVAL: no such entry.
 */
int uroce_query_gid(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid);
/* There is one, the default P_Key 0xffff at index 0. */
int uroce_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index, __be16 *pkey);

/*
 * Returns the next asynchronous event: 0, or -1 with errno. ctx->async_fd is readable while there is
 * one. No event is lost, however many objects have one; an event that happens again to an object
 * before it was fetched is reported once. The call waits until there is an event, unless async_fd is
 * non-blocking (then -1 and EAGAIN), a signal comes (EINTR, unless its handler has SA_RESTART), or the context is closed
 * (ECANCELED). Every event has to be acknowledged: destroying its object waits
 * for that.
 */
int uroce_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event);
/* Acknowledges an event; its object may be destroyed from then on. */
void uroce_ack_async_event(struct ibv_async_event *event);
/* Text of an event's type. Static. */
const char *uroce_event_type_str(enum ibv_event_type type);

/* A protection domain, which the caller owns. NULL and errno: ENOMEM. */
struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx);
/*
 * Frees a protection domain or a parent domain. EBUSY while a memory region or window, queue pair, SRQ, CQ, address handle or
 * parent domain belongs to it.
 */
int uroce_dealloc_pd(struct ibv_pd *pd);

/*
 * As ibv_alloc_td(): a thread domain, which says that objects are used by one thread at a time. It has an effect through
 * parent domains. NULL and errno: EOPNOTSUPP (comp_mask is not 0), ENOMEM.
 */
struct ibv_td *uroce_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
/* EBUSY while a parent domain names it. */
int uroce_dealloc_td(struct ibv_td *td);
/*
 * As ibv_alloc_parent_domain(): another handle of the protection domain attr->pd, for every call that takes one. With attr->td, queue
 * pairs, SRQs and CQs that are created in it take no lock in post and poll, so all calls with one object have to come from
 * one thread at a time; different objects may be used by different threads. uroce_dealloc_pd() frees it. It counts
 * as a protection domain. NULL and errno: EINVAL (attr->pd is NULL or a parent domain, or an object belongs to another context), EOPNOTSUPP
 * (comp_mask is not 0: there are no allocators), ENOMEM.
 */
struct ibv_pd *uroce_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr);

/*
 * Registers `length` bytes at `addr`. `access` is a combination of IBV_ACCESS_* rights and
 * UROCE_ACCESS_REMOTE_INVALIDATE. The memory stays the application's and has to exist until
 * uroce_dereg_mr(). Nothing is pinned. NULL and errno: EINVAL (invalid rights or range), ENOMEM.
 */
struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
/* As uroce_reg_mr(), but addresses in work requests start at `iova` instead of `addr`. */
struct ibv_mr *uroce_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
/*
 * An access flag in addition to those of verbs: peers of queue pairs of the region's protection domain
 * may invalidate its keys by IBV_WR_SEND_WITH_INV. Without the flag such a SEND fails with a remote
 * access error, because a peer that may only read a region must not be able to take it away from other
 * peers. (In verbs only type 2 memory windows and fast registration can be invalidated.) IBV_WR_LOCAL_INV needs no flag.
 * A region that windows are bound to cannot be invalidated.
 */
#define UROCE_ACCESS_REMOTE_INVALIDATE (1 << 16)

/*
 * As ibv_rereg_mr(); the region keeps its keys. One that a local or remote invalidate has made invalid becomes
 * valid again, under new keys. EBUSY: a memory window is bound to it. EINVAL: invalid flags, rights or range; the region is unchanged then.
 */
int uroce_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
/* Returns when no packet, received or sent, can touch the memory any more. EBUSY: a memory window is bound to it. */
int uroce_dereg_mr(struct ibv_mr *mr);

/*
 * As ibv_alloc_mw(): a memory window of type 1, which uroce_bind_mw() binds, or of type 2, which IBV_WR_BIND_MW on an RC
 * queue pair binds to that queue pair (docs/design/verbs.md). NULL and errno: EINVAL (type), ENOMEM.
 */
struct ibv_mw *uroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
/* Unbinds and frees the window; returns when no packet can touch the memory through it any more. */
int uroce_dealloc_mw(struct ibv_mw *mw);
/*
 * As ibv_bind_mw(): posts the bind of a window of type 1, and sets mw->rkey to the R_Key that is valid once it has
 * completed. A length of 0 unbinds. EINVAL: a window of type 2, or of another protection domain; otherwise as
 * uroce_post_send(). A bind that is not allowed completes with IBV_WC_MW_BIND_ERR.
 */
int uroce_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* A queue of completion events. Its `fd` is readable while there is one. NULL and errno. */
struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *ctx);
/*
 * EBUSY while a CQ uses it. A thread that waits on it gets -1 and ECANCELED, and has left the wait
 * when this call returns.
 */
int uroce_destroy_comp_channel(struct ibv_comp_channel *channel);
/*
 * A completion queue of at least `cqe` entries. comp_vector chooses its worker, in [0, num_comp_vectors
 * of the context), which is the number of workers. A layer above may report more vectors: they are counted
 * modulo the workers. `channel` may be NULL. NULL and errno: EINVAL (an argument is out of range), ENOMEM.
 */
struct ibv_cq *uroce_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			       struct ibv_comp_channel *channel, int comp_vector);
/*
 * As ibv_create_cq_ex(): a CQ that ibv_start_poll(), ibv_next_poll(), ibv_end_poll() and ibv_wc_read_*()
 * work on; the other functions take it by ibv_cq_ex_to_cq(). With IBV_CREATE_CQ_ATTR_SINGLE_THREADED, or in
 * a parent domain with a thread domain, polling takes no lock: all calls with this CQ, and uroce_modify_qp() to RESET of its queue
 * pairs, have to come from one thread at a time. NULL and errno as uroce_create_cq(), EINVAL: attr->parent_domain is none of this
 * context, EOPNOTSUPP: fields, flags or attributes that do not exist here, such as time stamps.
 */
struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
/*
 * Changes the number of entries; completions that wait to be polled stay. EINVAL: more of them wait than fit, or out
 * of range. ENOMEM.
 */
int uroce_resize_cq(struct ibv_cq *cq, int cqe);
/* EBUSY while a queue pair uses it. Waits until all its events are acknowledged. */
int uroce_destroy_cq(struct ibv_cq *cq);
/*
 * Takes up to num_entries completions; returns how many, or a negative errno value. In inline mode,
 * when the queue is empty, the calling thread does the endpoint's work once and checks again.
 */
int uroce_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
/*
 * Requests one event for the next completion (solicited_only: the next solicited one, or an error).
 * Completions that are in the queue already cause none: poll again after this call.
 */
int uroce_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/*
 * Waits for a completion event; in inline mode the waiting thread does the endpoint's work. Returns 0,
 * or -1 with errno: EAGAIN (the channel's descriptor is non-blocking and there is no event), EINTR,
 * ECANCELED (the channel is being destroyed).
 */
int uroce_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
/* Acknowledges events of a CQ. uroce_destroy_cq() waits until all of them are acknowledged. */
void uroce_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
/* Text of a completion's status. Static. */
const char *uroce_wc_status_str(enum ibv_wc_status status);

/* A shared receive queue. It moves to the worker of its first queue pair. NULL and errno. */
struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
/*
 * Changes the size (IBV_SRQ_MAX_WR), arms the limit event (IBV_SRQ_LIMIT), or both. EINVAL: out of
 * range, or a limit above the size. ENOMEM.
 */
int uroce_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
/* Returns size, scatter entries and limit. */
int uroce_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
/* EBUSY while a queue pair uses it. */
int uroce_destroy_srq(struct ibv_srq *srq);
/* As uroce_post_recv(), for every queue pair of the SRQ. */
int uroce_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * A queue pair of type RC, UC or UD, in RESET. It belongs to the worker of its receive CQ, and its SRQ
 * has to belong to the same worker. attr->cap is set to the capacities that were allocated. NULL and
 * errno: EINVAL (a limit of the device is exceeded, an object belongs to another context, the SRQ
 * belongs to another worker), EOPNOTSUPP (another type), ENOMEM.
 */
struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/*
 * As ibv_create_qp_ex(). With IBV_QP_INIT_ATTR_SEND_OPS_FLAGS requests may also be posted by ibv_wr_start(),
 * which are posted together by ibv_wr_complete() or, after an error, not at all. Between start and complete or abort
 * the send queue is locked, so the same thread makes these calls. NULL and errno as uroce_create_qp(), and EOPNOTSUPP:
 * an attribute, or an operation that queue pairs of this type do not take.
 */
struct ibv_qp *uroce_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
/* The form that ibv_wr_start() takes; NULL: the queue pair was created without. */
struct ibv_qp_ex *uroce_qp_to_qp_ex(struct ibv_qp *qp);
/*
 * As ibv_modify_qp(). The transition to RTR resolves the peer's MAC address and takes as long as that
 * does (EHOSTUNREACH when there is no answer). The transition to RESET removes the queue pair's completions that have not
 * been polled from its CQs.
 */
int uroce_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
/* As ibv_query_qp(). `init_attr` may be NULL. */
int uroce_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr);
/*
 * Destroys a queue pair. Its outstanding work requests get no completions. ACKs that are owed are sent
 * first. Its number is not used again before time-wait is over.
 */
int uroce_destroy_qp(struct ibv_qp *qp);
/*
 * Posts a list of send work requests. The list itself is copied; the memory that it names belongs to
 * the library until the request completes, inline data excepted. Returns 0, or an errno value with
 * *bad_wr at the first request that was not posted: ENOMEM (the queue is full), EINVAL. In inline
 * mode the calling thread does the endpoint's work.
 */
int uroce_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* Posts receives, as uroce_post_send() posts sends; allowed from INIT on. */
int uroce_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * How an RC queue pair recovers from loss and reordering (docs/design/loss.md). X(NAME, word)
 *
 * - AUTO: EXTENDED if both ends agree on it when they connect by CM, REORDER otherwise.
 * - EXTENDED: only lost packets are sent again, and each packet's data is placed when it arrives.
 *   Earlier data may be placed later; only the completion says that all of it is there. Both ends
 *   have to be uroce.
 * - REORDER: for any RoCEv2 peer; packets that arrive early are kept until they are in order.
 * - GBN: for any RoCEv2 peer; go-back-N, everything from a gap on is sent again.
 */
#define UROCE_QP_MODES(X)                                                                          \
	X(AUTO, "auto")                                                                            \
	X(EXTENDED, "extended")                                                                    \
	X(REORDER, "reorder")                                                                      \
	X(GBN, "gbn")

/* UROCE_QP_MODES explains them. */
enum uroce_qp_mode {
#define X(NAME, word) UROCE_QP_MODE_##NAME,
	UROCE_QP_MODES(X)
#undef X
};

/*
 * Why a queue pair has its mode. X(NAME, word, sentence): the word is a key of
 * uroce_counters_json(); the sentence is for users and names the remedy.
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

/* UROCE_QP_MODE_REASONS explains them. */
enum uroce_qp_mode_reason {
#define X(NAME, word, sentence) UROCE_MODE_REASON_##NAME,
	UROCE_QP_MODE_REASONS(X)
#undef X
};

/* All UDP source ports that spraying may use. */
#define UROCE_SPRAY_ALL 255

/* See uroce_set_qp_mode(). */
struct uroce_qp_mode_attr {
	enum uroce_qp_mode mode; /* before RTR the requested one, from then on the actual one */
	/*
	 * Extended mode: the last packet of a WRITE from the peer is placed after all others, so
	 * that a program may poll on the last byte. The other modes place packets in order anyway.
	 */
	bool strict;
	/* Extended mode: number of UDP source ports to send from: 0 (off), [2, 16], UROCE_SPRAY_ALL. */
	uint8_t spray;
	enum uroce_qp_mode_reason reason; /* query only */
};

/* The members of struct uroce_qp_mode_attr that uroce_set_qp_mode() applies. */
enum uroce_qp_mode_attr_mask {
	UROCE_QP_MODE = 1 << 0,	  /* mode */
	UROCE_QP_STRICT = 1 << 1, /* strict */
	UROCE_QP_SPRAY = 1 << 2,  /* spray */
};

/*
 * Sets the mode that an RC queue pair requests, in place of [transport] mode, strict and spray. Call it
 * in RESET or INIT, before uroce_cm_connect() or uroce_cm_accept(). The setting stays until it is
 * changed, through RESET too. EINVAL: another state, an unknown bit or value, or spraying in a mode
 * that keeps the order. EOPNOTSUPP: not an RC queue pair. EBUSY: the queue pair is being connected.
 *
 * EXTENDED is a requirement: if the peer does not agree, uroce_cm_accept() fails with EPROTONOSUPPORT,
 * and uroce_cm_connect() ends with UROCE_CM_UNREACHABLE of that status; uroce_query_qp_mode() says why.
 * A queue pair that is connected by modify_qp has to require it at both ends.
 */
int uroce_set_qp_mode(struct ibv_qp *qp, const struct uroce_qp_mode_attr *attr, int attr_mask);
/* Returns, before RTR, the requested mode; from then on, the actual one and the reason for it. */
int uroce_query_qp_mode(struct ibv_qp *qp, struct uroce_qp_mode_attr *attr);
/* The word of a mode, such as "reorder". Static. */
const char *uroce_qp_mode_str(enum uroce_qp_mode mode);
/* The sentence of a reason. Static. */
const char *uroce_qp_mode_reason_str(enum uroce_qp_mode_reason reason);
/*
 * As ibv_query_qp_data_in_order(): 1 if a program may poll on the memory that this queue pair receives
 * into, instead of waiting for the completion. That holds for atomics, and for WRITEs with `strict`.
 */
int uroce_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/*
 * An address handle. Resolves the MAC address and takes as long as that does. NULL and errno:
 * EHOSTUNREACH (no answer), EINVAL, ENOMEM.
 */
struct ibv_ah *uroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
/* Sends that use the handle and have not left yet fail, so wait for their completions first. */
int uroce_destroy_ah(struct ibv_ah *ah);
/*
 * Fills `attr` with the address vector of the sender of a datagram, from its completion and the 40
 * bytes in front of the payload. EINVAL: the datagram was not sent to this endpoint, or has no such
 * header.
 */
int uroce_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
			  struct ibv_grh *grh, struct ibv_ah_attr *attr);

/*
 * Attaches a UD queue pair to a multicast group: it receives a copy of each datagram to the group whose P_Key and Q_Key fit,
 * with the group as destination in its first 40 bytes. `gid` is the group's IPv6 address, or its IPv4 address as an IPv4-mapped
 * one; `lid` is ignored. The endpoint is in the group by IGMP or MLD as long as a queue pair is attached. What a queue pair of the
 * endpoint sends to the group is delivered as well, to itself too unless it was created with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB. To
 * attach twice is to attach once. Sends go to an address handle of the group, and to QPN 0xffffff.
 * EINVAL: not a group, another kind of queue pair, or the endpoint has no address of the group's family; ENOMEM: a limit of
 * uroce_query_device() is reached; or an errno of the kernel's on a shared interface.
 */
int uroce_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* Detaches it; do so before it is destroyed. EINVAL: it is not attached. */
int uroce_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/*
 * Joins a multicast group, without a queue pair: switches deliver its packets to the port. Each join lasts until
 * uroce_leave_mcast(), or the end of the endpoint. Errors: as uroce_attach_mcast().
 */
int uroce_join_mcast(struct ibv_context *ctx, const union ibv_gid *gid);
/* Takes one join back. EINVAL: there is none. */
int uroce_leave_mcast(struct ibv_context *ctx, const union ibv_gid *gid);

/*
 * Captures what the port sends and receives to a pcap file with nanosecond stamps, while the endpoint
 * runs. `filter` is a pcap-filter(7) expression or NULL; max_bytes bounds the file, 0: no bound.
 * Strings are copied. EBUSY: a capture is running. On failure `err` holds one sentence.
 */
int uroce_capture_start(struct ibv_context *ctx, const char *file, const char *filter,
			uint64_t max_bytes, char *err, size_t err_bytes);
/* Counters of a capture. */
struct uroce_capture_stats {
	uint64_t written;  /* packets in the file */
	uint64_t dropped;  /* not written because the writer was too slow; no packet was lost */
	uint64_t filtered; /* packets that the filter rejected */
	uint64_t overflow; /* packets after max_bytes was reached */
};
/* Ends the capture and closes the file. `stats` may be NULL. ENOENT: none is running. */
int uroce_capture_stop(struct ibv_context *ctx, struct uroce_capture_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
