/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_END_H
#define UR_TEST_END_H

#include <criterion/criterion.h>

#include "engine/inside.h"
#include "frames.h"

/*
 * One engine with one QP in RTS. The test acts as the peer: it passes in requests and responses as
 * frames made from literal numbers, and gets the engine's packets decoded. The QP's invariants are
 * asserted after each step. Completions of both queues arrive in one CQ.
 */
#define END_PD	       7u
#define END_QKEY       0x11111111u /* the Q_Key of frame_packet() */
#define END_PEER_QPN   0x77u
#define END_RQ_PSN     100u	  /* PSN of the peer's first request */
#define END_SQ_PSN     1000u	  /* PSN of our first request */
#define END_SPORT      0xc000u	  /* our UDP source port */
#define END_MTU	       256u	  /* default path MTU */
#define END_BUF_BYTES  (1u << 20) /* registered with all rights */
#define END_CQE	       64u
#define END_TIMEOUT_NS (UINT64_C(4096) << 10)
#define END_ASYNC_MAX  16

struct end_attr {
	enum ibv_qp_type type; /* 0: RC */
	enum ibv_mtu mtu;      /* 0: 256 */
	uint32_t window;       /* 0: 64 */
	uint32_t ackreq_every; /* 0: no AckReq for this reason */
	uint32_t recv_wr, send_wr;
	uint32_t cqe;		 /* 0: END_CQE */
	uint8_t rd_atomic;	 /* 0: 2 */
	uint8_t dest_rd_atomic;	 /* 0: 2 */
	uint8_t no_rd;		 /* max_rd_atomic really is 0 */
	uint8_t no_timeout;	 /* the local ACK timer is off */
	uint32_t sq_psn, rq_psn; /* 0: as above */
	int no_access;		 /* remote rights that the QP does not grant */
	enum ur_mode mode;	 /* 0: UR_MODE_GBN */
	bool strict;
	uint8_t paths;		    /* mode extended: UDP source ports; 0: default */
	bool v6, vlan;		    /* how we send */
	bool no_contexts;	    /* the pools of all modes are empty */
	bool large_slabs;	    /* they hold the contexts of `window`; else 128 KiB */
	uint32_t contexts;	    /* size of each pool with one context per queue pair; 0: 1 */
	uint32_t reorder_slots;	    /* 0: 64 */
	uint8_t retry_cnt, timeout; /* 0: 3; 10 */
	const struct ur_cc_attr *pacing;     /* NULL: none */
	const struct ur_adm_attr *admission; /* NULL: plain */
	struct ur_adm_agreed agreed;
	struct ur_srq *srq;
	bool no_prediction;
	bool keeps_ports, no_plb;
	bool rtr; /* stay in RTR */
	bool cm;  /* be worker 0, with a connection manager; else worker 1 of 2 */
};

struct end_memory {
	void *p;
	size_t bytes;
};

struct end {
	struct end_attr attr;
	struct ur_engine *engine;
	struct ur_mem *mem;
	struct ur_cq cq;
	struct ur_qp *qp;
	uint64_t now_ns;
	uint8_t *buf; /* END_BUF_BYTES, registered under `key` at its own address */
	uint32_t key;
	uint32_t unaligned_key; /* its second byte to the end, from address 0; may be invalidated */
	struct ibv_async_event async[END_ASYNC_MAX];
	unsigned async_cnt, notified;
	struct frame in_frame, out_frame;
	struct ur_packet out;
	struct end_memory memory[8];
	unsigned memory_cnt;
};

struct end *end_new(struct end_attr attr);
/* Memory that is 0, aligned to 64 bytes, and the end's: end_free() gives it back. */
void *end_take(struct end *e, size_t bytes);
void end_free(struct end *e);
/* Adds a QP like `qp`. All other functions concern `qp`, unless a packet names another QP. */
struct ur_qp *end_add_qp(struct end *e);
#define END(...) end_new((struct end_attr){__VA_ARGS__})

/* ---- as the peer ---- */

/* A packet from the peer to our QP. A WRITE or READ has the start of the buffer and `payload_len`. */
struct ur_packet end_packet(struct end *e, uint8_t opcode, uint32_t psn, uint16_t payload_len);
/* Makes the frame and passes it to the engine. */
enum ur_drop end_in(struct end *e, struct ur_packet p);
/* end_packet() and end_in() in one call. */
enum ur_drop end_recv(struct end *e, uint8_t opcode, uint32_t psn, uint16_t payload_len);
/* Passes in an acknowledgement with this syndrome and MSN. */
enum ur_drop end_ack(struct end *e, uint32_t psn, uint8_t syndrome, uint32_t msn);
/* The next packet that we send, valid until the next call; NULL if there is none. */
const struct ur_packet *end_out(struct end *e);
/* Fails unless the next packet has this opcode and PSN; returns it. */
const struct ur_packet *end_expect(struct end *e, uint8_t opcode, uint32_t psn);
/* The next packet must be an ACK of this PSN. */
void end_expect_ack(struct end *e, uint32_t psn);
void end_expect_nak(struct end *e, uint32_t psn, uint8_t syndrome);
void end_expect_silence(struct end *e);
/* Sends everything that can be sent; returns the number of packets. */
unsigned end_drain(struct end *e);

/* ---- as the application ---- */

/* Posts a receive of one segment at buf + off. */
void end_post_recv(struct end *e, uint64_t id, uint32_t off, uint32_t len);
/* A request for [off, off + len) of the buffer; wr_id is `id`. */
struct ibv_send_wr end_wr(struct end *e, uint64_t id, enum ibv_wr_opcode opcode);
int end_post(struct end *e, struct ibv_send_wr wr, uint32_t off, uint32_t len);
/* Posts a signalled request of `len` bytes. */
void end_send(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len);
/* The next completion, which must have this id and status. */
struct ibv_wc end_expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status);
void end_expect_no_wc(struct end *e);
/* Number of times that the event was raised. */
unsigned end_async(const struct end *e, enum ibv_event_type type);
int end_modify(struct end *e, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask);
/* Advances the time; timers expire. */
void end_sleep(struct end *e, uint64_t ns);
const struct ur_counters *end_counters(struct end *e);

#endif
