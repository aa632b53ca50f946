/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_SESSION_H
#define INTEROP_SESSION_H

#include <stdint.h>

#include "link.h"
#include "plan.h"

/* Where the peer is, and what it lets us reach. */
struct remote {
	uint32_t qpn, psn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

enum { QKEY = 0x11111111 }; /* of UD queue pairs */

struct cm; /* of cm_uroce.c or cm_rdmacm.c */

/* One scenario at one end. */
struct session {
	struct spec spec;
	struct device *dev;
	struct link *link;
	bool leads; /* it is the program that was given the scenario */
	char why[512];

	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct cm *cm;
	int gid_index;
	struct remote remote;
	uint32_t remote_local_rkey; /* of a region of the peer's without remote rights */
	uint32_t qkey;		    /* that datagrams carry */
	bool peer_left;		    /* its program ended, as it should */

	/* Ours of the direction that we begin (LOCAL) and of the one that the peer begins. */
	uint8_t *mem[REGIONS], *image[REGIONS];
	struct ibv_mr *mr[REGIONS];
	size_t region_bytes;
};

/* Notes why the scenario fails, once, and returns false. */
bool failed(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Receives a line. Fails if the peer has failed or has been silent for spec.stall seconds. */
bool receive_line(struct session *s, char *line, size_t cap);

/* Both ends wait here for each other. */
bool meet(struct session *s, const char *where);

/* PD, memory, CQs and SRQ; everything that a queue pair needs. */
bool session_open(struct session *s);
/* Destroys what there is; false when something cannot be destroyed. */
bool session_close(struct session *s);

/* Makes the queue pair and connects it as the scenario says. */
bool session_connect(struct session *s);
/* The same in two steps, the second of which may be repeated after a disconnect, by CM only. */
bool session_listen(struct session *s);
bool session_connect_cm(struct session *s);
/* A connection that CM made is ended by the end that began it. */
bool session_disconnect(struct session *s);

struct ibv_qp_init_attr session_qp_attr(const struct session *s);
enum ibv_mtu session_mtu(const struct session *s);
uint32_t our_psn(const struct session *s);
bool receives_from_srq(const struct session *s);
/* Sets uroce's mode of recovery on a queue pair in RESET. */
bool session_set_mode(struct session *s, struct ibv_qp *qp);

/* Polls; notes a failure when that fails. */
bool poll_cq(struct session *s, struct ibv_cq *cq, struct ibv_wc *wc, int cap, int *cnt);

#endif
