/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CM_PRIV_H
#define UR_CM_PRIV_H

#include <errno.h>
#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "cm/cm.h"
#include "cm/speck.h"
#include "wire/assert.h"

/*
 * Internal interface between the files of the connection manager. Every handler and command emits
 * its event last, so that the callback may issue commands on any id, including that of the event.
 */

#define CM_EXP_MIN     10 /* shortest response timeout: 4.2 ms */
#define CM_EXP_MAX     22 /* longest: 17 s */
#define CM_MRA_EXP_MAX 24 /* longest service timeout accepted: 69 s */
#define CM_MRA_MAX     15 /* MRAs accepted for one message */
#define CM_MRA_AUTO    24 /* service timeout of the MRA that answers a repeated message */
/* CM-LIFE-01: time for the caller to answer a peer's request; less than CM_MRA_AUTO. */
#define CM_REQUEST_LIFE_NS (60 * UINT64_C(1000000000))
/* CM-AMPLIFY-01: limits for a peer that has not yet proven that it receives our messages. */
#define CM_UNPROVEN_RETRIES 7
#define CM_UNPROVEN_EXP	    18 /* 1.07 s */

struct cm_id {
	RB_ENTRY(cm_id) timer;
	TAILQ_ENTRY(cm_id) link; /* FREE: free list; LINGER: linger list */
	struct cm_id *peer_next; /* chain in the table of peers' ids */
	struct cm_id *qpn_next;	 /* chain in the table of peers' QPNs */
	uint64_t deadline_ns;	 /* valid while `timed` */
	uint32_t handle;	 /* generation << idx_bits | index */
	uint8_t state;		 /* enum ur_cm_state, written by cm_set_state() only */
	bool timed;		 /* in the timer tree */
	bool in_peer, in_qpn;	 /* in the table of peers' ids, of peers' QPNs */
	bool active;		 /* we sent the REQ or SIDR_REQ */
	bool sidr;
	bool muted;	   /* released by the caller: no events, no commands */
	bool proven;	   /* the peer has sent our communication id back */
	bool remote_known; /* remote_comm_id is valid */
	bool has_last;	   /* `last` is valid */
	bool has_service;  /* `service` is valid */
	struct ur_cm_service service;
	void *ctx;

	struct ur_gid peer_gid;
	uint64_t peer_guid; /* valid once remote_known */
	uint32_t remote_comm_id;
	struct ur_qpn lqpn, rqpn;
	struct ur_psn rpsn;
	uint64_t service_id;
	uint64_t tid;		  /* transaction id of the peer's last request; answers echo it */
	uint8_t resources, depth; /* responder resources, initiator depth of the REQ */
	uint8_t max_retries, retries; /* retries allowed; retries left for `last` */
	uint8_t patience;    /* refusals that still count as a lost request: CM-PATIENCE-01 */
	uint8_t mra_cnt;     /* MRAs received for `last` */
	uint64_t timeout_ns; /* time between repetitions of `last` */

	struct ur_path path;
	struct ur_qpn cm_qpn;	    /* QP of the peer's CM */
	uint8_t last[UR_MAD_BYTES]; /* last message, repeated by timers and to answer duplicates */
};

struct cm_listener {
	enum ur_cm_kind kind;
	uint64_t service_id;
	void *ctx;
	uint32_t next; /* next in its chain or in the free list: index + 1; 0 at the end */
	bool used;
};

struct cm_tx {
	struct ur_path path;
	struct ur_qpn dqpn;
	uint8_t mad[UR_MAD_BYTES];
};

RB_HEAD(cm_timers, cm_id);
TAILQ_HEAD(cm_id_list, cm_id);

struct ur_cm {
	struct ur_cm_limits limits;
	struct ur_cm_attr attr;
	struct ur_cm_counters counters;
	struct ur_speck cipher; /* CM-COMMID-01: communication id = encrypted handle */
	uint32_t no_handle;	/* handle with communication id 0, never used */
	uint32_t tid_hi;
	uint32_t idx_bits;
	uint32_t ids_in_use;
	uint32_t pending[UR_CM_KIND_CNT]; /* ids in the states of cm_is_pending() */
	uint32_t *shares;		  /* pending ids by hash of the peer; bucket_mask + 1 */

	struct cm_id *ids;
	struct cm_id **peers, **qpns; /* buckets, bucket_mask + 1 each */
	uint32_t bucket_mask;
	struct cm_id_list free, linger; /* oldest first */
	struct cm_timers timers;

	struct cm_listener *listeners;
	uint32_t *services; /* buckets: listener index + 1 */
	uint32_t service_mask;
	uint32_t free_listener; /* index + 1 */

	struct cm_tx *tx;
	uint32_t tx_head, tx_cnt; /* [tx_head, tx_head + tx_cnt) modulo max_tx */
};

/* A message being handled. */
struct cm_rx {
	struct ur_mad hdr;
	const struct ur_cm_src *src;
	uint64_t now;
};

/* --- ids (cm_id.c) --- */

/* True if the limits allow one more pending request of that kind; counts a refusal. */
bool cm_has_room(struct ur_cm *cm, enum ur_cm_kind kind, const struct ur_gid *peer);
/* Returns a new id in FREE, or NULL if no id is free or lingering. */
struct cm_id *cm_id_alloc(struct ur_cm *cm);
/* The only function that changes the state. Updates lists, counts and tables; FREE frees the slot. */
void cm_set_state(struct ur_cm *cm, struct cm_id *id, enum ur_cm_state to);
/* NULL for a stale or muted handle. */
struct cm_id *cm_id_get(const struct ur_cm *cm, struct ur_cm_id handle);
/* Finds an id by our communication id; NULL if there is none. */
struct cm_id *cm_id_by_comm(const struct ur_cm *cm, uint32_t comm_id);

/*
 * The table of ids by what the peer chose: (GID, request id) for SIDR, (GID, CA GUID, communication
 * id) otherwise. The GID is part of the key because an attacker cannot freely claim it; without it,
 * one peer could occupy the ids of another.
 */
void cm_peer_insert(struct ur_cm *cm, struct cm_id *id);
struct cm_id *cm_peer_find(const struct ur_cm *cm, const struct ur_gid *gid, uint64_t guid,
			   uint32_t comm_id);
struct cm_id *cm_peer_find_sidr(const struct ur_cm *cm, const struct ur_gid *gid, uint32_t req_id);

/* The table of live connections by the peer's QP: (GID, CA GUID, QPN). */
void cm_qpn_insert(struct ur_cm *cm, struct cm_id *id);
struct cm_id *cm_qpn_find(const struct ur_cm *cm, const struct ur_gid *gid, uint64_t guid,
			  struct ur_qpn qpn);
/* Another live connection with the same QP of the peer, or NULL. */
struct cm_id *cm_qpn_twin(const struct ur_cm *cm, const struct cm_id *id);

struct cm_listener *cm_listener_find(const struct ur_cm *cm, enum ur_cm_kind kind,
				     uint64_t service_id);

/* Bits of a communication id below the prefix, and of a handle. Even, because prefixes have 6 bits or none. */
static inline unsigned cm_id_bits(const struct ur_cm *cm)
{
	return 32u - cm->attr.prefix.bits;
}

/* CM-PREFIX-01 */
static inline uint32_t cm_comm_id(const struct ur_cm *cm, const struct cm_id *id)
{
	return (uint32_t)((uint64_t)cm->attr.prefix.value << cm_id_bits(cm)) |
	       ur_speck_encrypt(&cm->cipher, id->handle);
}

/* The transaction id of an exchange that we start. */
static inline uint64_t cm_tid(const struct ur_cm *cm, const struct cm_id *id)
{
	return (uint64_t)cm->tid_hi << 32 | cm_comm_id(cm, id);
}

static inline bool cm_is_pending(uint8_t state)
{
	return state == UR_CM_ST_REQ_RCVD || state == UR_CM_ST_REP_SENT ||
	       state == UR_CM_ST_SIDR_REQ_RCVD;
}

/* --- timers (cm_timer.c) --- */

void cm_timer_set(struct ur_cm *cm, struct cm_id *id, uint64_t deadline_ns);
void cm_timer_stop(struct ur_cm *cm, struct cm_id *id);
/* 4.096 us * 2^n, with n limited to [min, max]. */
uint64_t cm_exp_ns(unsigned n, unsigned min, unsigned max);
/* Time between two transmissions of id->last, and the number of repetitions. */
uint64_t cm_repeat_ns(const struct cm_id *id);
uint8_t cm_retries(const struct cm_id *id);

/* --- sending (cm_tx.c) --- */

/* Writes a MAD header. The cursor returned is at the start of the message. */
struct ur_cursor cm_msg(uint8_t mad[UR_MAD_BYTES], enum ur_cm_attr_id attr_id, uint64_t tid);
/* Writes the private data of a message: `n` bytes of `data`, then zeros. */
void cm_private(uint8_t *to, size_t size, const void *data, uint8_t n);
/* True if `n` bytes of private data fit, followed by the offer unless it is NULL. */
bool cm_private_fits(const struct ur_offer *offer, uint8_t n, size_t size);

/* Sends id->last once. */
void cm_tx_last(struct ur_cm *cm, struct cm_id *id);
/* Sends it once more, another way: it, or the answer to it, may have been lost on a dead link. */
void cm_tx_again(struct ur_cm *cm, struct cm_id *id);
/* Sends id->last now and repeats it until it is answered or no retries are left. */
void cm_tx_repeat(struct ur_cm *cm, struct cm_id *id, uint64_t now);
void cm_tx_to(struct ur_cm *cm, const struct ur_path *path, struct ur_qpn dqpn,
	      const uint8_t mad[UR_MAD_BYTES]);

/* Sends a REJ for a message that belongs to no id. */
void cm_tx_rej(struct ur_cm *cm, const struct cm_rx *rx, enum ur_cm_about about,
	       uint32_t local_comm_id, uint32_t remote_comm_id, enum ur_cm_rej_reason reason);
/* Builds a REJ in id->last and sends it. With reason TIMEOUT it carries our CA GUID. */
void cm_tx_id_rej(struct ur_cm *cm, struct cm_id *id, enum ur_cm_about about,
		  enum ur_cm_rej_reason reason, const void *private_data, uint8_t private_len);
void cm_tx_drep(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_dreq *dreq);
/* Builds an MRA in id->last and sends it. */
void cm_tx_mra(struct ur_cm *cm, struct cm_id *id, uint8_t service_timeout);

/* --- events (cm.c) --- */

/* An event for `id`. If the id is muted, the event has id 0 and cm_emit() ignores it. */
struct ur_cm_event cm_event(const struct cm_id *id, enum ur_cm_event_type type);
void cm_emit(struct ur_cm *cm, const struct ur_cm_event *ev);
/* The event of a request with `size` bytes of private data, which begin with `ip` if it is set. */
struct ur_cm_event cm_request_event(const struct cm_id *id, enum ur_cm_event_type type,
				    const struct cm_rx *rx, const struct ur_rdma_ip *ip,
				    const uint8_t *private_data, uint8_t size);

/* --- messages --- */

/* Finds the id for a message that names both communication ids. If none fits, NULL and *drop. */
struct cm_id *cm_match(struct ur_cm *cm, const struct cm_rx *rx, uint32_t ours, uint32_t theirs,
		       enum ur_drop *drop);
/* True if the message came from the id's peer; otherwise it is counted. */
bool cm_from_peer(struct ur_cm *cm, const struct cm_rx *rx, const struct cm_id *id);
enum ur_drop cm_unexpected(struct ur_cm *cm);
enum ur_drop cm_duplicate(struct ur_cm *cm);
/* True if a connection can have this QPN. */
bool cm_qpn_ok(struct ur_qpn qpn);

/* cm_passive.c */
enum ur_drop cm_rx_req(struct ur_cm *cm, const struct cm_rx *rx, struct ur_cm_req *req);
enum ur_drop cm_rx_rtu(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_pair *rtu);
/* cm_active.c */
enum ur_drop cm_rx_rep(struct ur_cm *cm, const struct cm_rx *rx, struct ur_cm_rep *rep);
enum ur_drop cm_rx_mra(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_mra *mra);
/* cm_close.c */
enum ur_drop cm_rx_rej(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_rej *rej);
enum ur_drop cm_rx_dreq(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_dreq *dreq);
enum ur_drop cm_rx_drep(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_pair *drep);
/* cm_sidr.c */
enum ur_drop cm_rx_sidr_req(struct ur_cm *cm, const struct cm_rx *rx,
			    const struct ur_cm_sidr_req *req);
enum ur_drop cm_rx_sidr_rep(struct ur_cm *cm, const struct cm_rx *rx,
			    const struct ur_cm_sidr_rep *rep);

/* The peer has sent our communication id back, so it owns its address and can be trusted. */
void cm_prove(struct ur_cm *cm, struct cm_id *id, uint64_t now);

/* Enters TIMEWAIT and starts its timer. */
void cm_enter_timewait(struct ur_cm *cm, struct cm_id *id, uint64_t now);
/* Enters LINGER, in which `last` answers duplicates. The caller's handle is stale. */
void cm_enter_linger(struct ur_cm *cm, struct cm_id *id, uint64_t now);
/* Sends a DREQ for a live connection. */
void cm_start_disconnect(struct ur_cm *cm, struct cm_id *id, const void *private_data,
			 uint8_t private_len, uint64_t now);
/* Disconnects a live connection that the peer has forgotten. */
void cm_forget(struct ur_cm *cm, struct cm_id *id, uint64_t now);

#endif
