/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_OBJECTS_H
#define UR_SIM_OBJECTS_H

#include "sim.h"

/*
 * The objects of an application: regions, completion queues, queue pairs. A function fails the case
 * if the engine refuses a call; tests of refusals call the engine directly.
 */

/* A region in its own allocation, between two guard zones. */
struct sim_mr {
	struct sim_ep *ep;
	uint8_t *alloc, *p;
	size_t len;
	uint32_t key;
};

#define SIM_ACCESS_ALL                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

void sim_mr_init(struct sim_mr *mr, struct sim_ep *ep, size_t len, int access);
/* The same in another protection domain, with addresses from `iova` on (0: its own address). */
void sim_mr_init_pd(struct sim_mr *mr, struct sim_ep *ep, size_t len, int access, uint32_t pd,
		    uint64_t iova);
void sim_mr_check_guards(struct sim *s, const struct sim_mr *mr);
void sim_mr_free(struct sim_mr *mr);
/* True if the key is valid. */
bool sim_mr_valid(const struct sim_mr *mr);

struct sim_cq {
	unsigned notified; /* must be first: number of completion events raised */
	struct ur_cq cq;
	void *ring;
};

void sim_cq_init(struct sim_cq *cq, uint32_t cqe);
void sim_cq_free(struct sim_cq *cq);

struct sim_srq {
	struct ur_srq srq;
	void *ring;
};

void sim_srq_init(struct sim_srq *srq, uint32_t entries, uint32_t max_sge);
void sim_srq_free(struct sim_srq *srq);

struct sim_qp_attr {
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	bool sig_all;
	struct sim_cq *send_cq, *recv_cq;
	struct sim_srq *srq;
	enum ibv_mtu mtu;
	uint32_t psn; /* PSN of the first request */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic, dest_rd_atomic;
	int access;
	uint32_t qkey; /* UD */
	uint8_t sl;
	bool v6, vlan;
	enum ur_mode mode; /* RC */
	bool strict;
	uint8_t paths; /* extended: UDP source ports to spray over; 0: default */
	struct ur_adm_agreed agreed;
};

struct sim_qp {
	struct sim_ep *ep;
	struct sim_qp_attr attr;
	struct ur_qp *qp;
	struct ur_qpn qpn;
	void *rings;
	struct sim_qp *peer;
};

/* RC, depth 16, PMTU 1024, all rights, timeout 14 (67 ms), retry_cnt 7 and rnr_retry 7. */
struct sim_qp_attr sim_qp_defaults(struct sim_cq *send_cq, struct sim_cq *recv_cq);

/* Creates the QP, in RESET. */
void sim_qp_create(struct sim_qp *qp, struct sim_ep *ep, const struct sim_qp_attr *attr);
void sim_qp_to_init(struct sim_qp *qp);
void sim_qp_to_rtr(struct sim_qp *qp, const struct sim_qp *peer);
void sim_qp_to_rts(struct sim_qp *qp);
/* Any other transition. Returns the engine's result. */
int sim_qp_modify(struct sim_qp *qp, enum ibv_qp_state state, int extra_mask,
		  struct ibv_qp_attr *attr);
/* Connects two QPs with each other and moves both to RTS. */
void sim_qp_connect(struct sim_qp *a, struct sim_qp *b);
/* Creates and connects two QPs. */
void sim_qp_pair(struct sim_qp *a, struct sim_ep *ep_a, const struct sim_qp_attr *attr_a,
		 struct sim_qp *b, struct sim_ep *ep_b, const struct sim_qp_attr *attr_b);
void sim_qp_destroy(struct sim_qp *qp);

struct ur_path_attr sim_path_attr(const struct sim_qp *from, const struct sim_ep *to,
				  struct ur_qpn dqpn);
void sim_ah_init(struct ur_ah *ah, const struct sim_qp *from, const struct sim_ep *to,
		 struct ur_qpn dqpn);

/* Like ibv_post_send() and ibv_post_recv(): 0 or an errno value. Ring the doorbell. */
int sim_post_send(struct sim_qp *qp, const struct ibv_send_wr *wr);
int sim_post_recv(struct sim_qp *qp, const struct ibv_recv_wr *wr);
int sim_post_srq(struct sim_srq *srq, const struct ibv_recv_wr *wr);

/* An SGE in the region. */
struct ibv_sge sim_sge(const struct sim_mr *mr, size_t off, uint32_t len);

/* Waits for a completion and returns it. Fails the case after limit_ns. */
struct ibv_wc sim_wait(struct sim *s, struct sim_cq *cq, uint64_t limit_ns);
/* The same, for a completion with this wr_id and status. */
void sim_expect(struct sim *s, struct sim_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		uint64_t limit_ns);
/* Fails the case if the CQ has a completion. */
void sim_expect_none(struct sim *s, struct sim_cq *cq);

/* Number of times that the endpoint has raised the event for that object. */
unsigned sim_async_count(const struct sim_ep *ep, enum ibv_event_type type, const void *user);

const struct ur_counters *sim_counters(const struct sim_ep *ep);

#endif
