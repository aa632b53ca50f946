/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_BENCH_H
#define UR_SIM_BENCH_H

#include "objects.h"

/*
 * The table on which the directed tests work: two endpoints, a connected QP pair (0 sends to 1), a
 * CQ and a region at each end, filled with different patterns.
 */
#define BENCH_BYTES 8192

struct bench_attr {
	enum ibv_qp_type type; /* 0: RC */
	enum ibv_mtu mtu;      /* 0: 1024 */
	size_t bytes;	       /* of each region; 0: BENCH_BYTES */
	int access;	       /* of QP 1; 0: everything */
	uint32_t window;       /* 0: 128 */
	uint32_t cqe;	       /* 0: 64 */
	uint32_t max_qp;       /* 0: 8 */
	bool set_rnr, set_retry;
	uint8_t rnr_retry, retry_cnt, timeout;
	bool unconnected; /* the QPs stay in RESET */
	bool srq;	  /* QP 1 takes its receives from one */
	bool v6;
	uint64_t number; /* of the case */
};

struct bench {
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_srq srq;
	struct sim_mr mr[2];
	struct sim_qp qp[2];
	struct ibv_sge sge[8]; /* of the last requests made below */
	unsigned sge_next;
};

/* The case is "mode.name:number". */
struct bench *bench_new(enum ur_mode mode, const char *name, const struct bench_attr *attr);
void bench_free(struct bench *b);

/* Signalled requests of QP 0 from or to offset 0 of its region. Valid until the eighth after it. */
struct ibv_send_wr bench_send(struct bench *b, uint64_t wr_id, uint32_t len);
struct ibv_send_wr bench_rdma(struct bench *b, enum ibv_wr_opcode opcode, size_t remote_off,
			      uint32_t len);
struct ibv_send_wr bench_atomic(struct bench *b, size_t remote_off, uint64_t add);
/* Posts a receive into the start of QP 1's region. */
void bench_recv(struct bench *b, uint64_t wr_id, uint32_t len);

/* A hook: makes the address of every atomic odd. */
enum sim_verdict bench_unalign(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			       const struct ur_packet *p);

#endif
