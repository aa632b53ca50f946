/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_BENCH_H
#define UR_SIM_BENCH_H

#include "objects.h"

/*
 * The fixture of the directed tests: two endpoints, a connected pair of QPs (0 sends to 1), and at
 * each end a CQ and a region. The regions are filled with different patterns.
 */
#define BENCH_BYTES 8192

struct bench_attr {
	enum ibv_qp_type type; /* 0: RC */
	enum ibv_mtu mtu;      /* 0: 1024 */
	size_t bytes;	       /* of each region; 0: BENCH_BYTES */
	int access;	       /* rights of QP 1; 0: all */
	uint32_t window;       /* 0: 128 */
	uint32_t cqe;	       /* 0: 64 */
	uint32_t max_qp;       /* 0: 8 */
	bool set_rnr, set_retry;
	uint8_t rnr_retry, retry_cnt, timeout;
	bool unconnected; /* the QPs stay in RESET */
	bool srq;	  /* QP 1 uses an SRQ */
	bool v6;
	uint64_t number; /* number of the case */
};

struct bench {
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_srq srq;
	struct sim_mr mr[2];
	struct sim_qp qp[2];
	struct ibv_sge sge[8]; /* SGEs of the last eight requests */
	unsigned sge_next;
};

/* Creates the fixture. The name of the case is "mode.name:number". */
struct bench *bench_new(enum ur_mode mode, const char *name, const struct bench_attr *attr);
void bench_free(struct bench *b);

/*
 * Signalled requests of QP 0 from or to offset 0 of its region. Each is valid until eight more have
 * been made.
 */
struct ibv_send_wr bench_send(struct bench *b, uint64_t wr_id, uint32_t len);
struct ibv_send_wr bench_rdma(struct bench *b, enum ibv_wr_opcode opcode, size_t remote_off,
			      uint32_t len);
struct ibv_send_wr bench_atomic(struct bench *b, size_t remote_off, uint64_t add);
/* Posts a receive into the start of QP 1's region. */
void bench_recv(struct bench *b, uint64_t wr_id, uint32_t len);

/* A hook that makes the address of every atomic odd. */
enum sim_verdict bench_unalign(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			       const struct ur_packet *p);

#endif
