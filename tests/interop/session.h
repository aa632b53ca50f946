/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_SESSION_H
#define INTEROP_SESSION_H

#include <stdint.h>

#include "link.h"
#include "plan.h"

/* Address, queue pair and memory of the peer. */
struct remote {
	uint32_t qpn, psn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

enum { QKEY = 0x11111111 }; /* Q_Key of UD queue pairs */

struct cm; /* defined in cm_uroce.c or cm_rdmacm.c */

/* One scenario at one end. */
struct session {
	struct spec spec;
	struct device *dev;
	struct link *link;
	bool leads; /* true in the program that was given the scenario */
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
	uint32_t remote_local_rkey; /* key of a region of the peer without remote rights */
	uint32_t qkey;		    /* Q_Key of datagrams */
	bool peer_left;		    /* its program has ended, as expected */

	/* Our regions: LOCAL of our direction; REMOTE and RECEIVE of the peer's direction. */
	uint8_t *mem[REGIONS], *image[REGIONS];
	struct ibv_mr *mr[REGIONS];
	size_t region_bytes;
};

/* Records why the scenario fails (the first reason counts) and returns false. */
bool failed(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Receives a line. Fails if the peer has failed or has been silent for spec.stall seconds. */
bool receive_line(struct session *s, char *line, size_t cap);

/* Waits until both ends have reached this point. */
bool meet(struct session *s, const char *where);

/* Creates everything that a queue pair needs: PD, memory, CQs and SRQ. */
bool session_open(struct session *s);
/* Destroys all objects; false if one cannot be destroyed. */
bool session_close(struct session *s);

/* Creates the queue pair and connects it according to the scenario. */
bool session_connect(struct session *s);
/* The same in two steps, by CM only. The second step may be repeated after a disconnect. */
bool session_listen(struct session *s);
bool session_connect_cm(struct session *s);
/* Ends a connection. With CM, the end that connected also disconnects. */
bool session_disconnect(struct session *s);

struct ibv_qp_init_attr session_qp_attr(const struct session *s);
enum ibv_mtu session_mtu(const struct session *s);
uint32_t our_psn(const struct session *s);
bool receives_from_srq(const struct session *s);
/* Sets uroce's mode of recovery on a queue pair in RESET. */
bool session_set_mode(struct session *s, struct ibv_qp *qp);

/* Polls a CQ; records an error as a failure. */
bool poll_cq(struct session *s, struct ibv_cq *cq, struct ibv_wc *wc, int cap, int *cnt);

#endif
