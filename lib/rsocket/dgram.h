/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_DGRAM_H
#define UR_RSOCKET_DGRAM_H

#include "rsocket/dgram_proto.h"
#include "rsocket/iov.h"
#include "rsocket/socket.h"

/*
 * Sockets for datagrams: a UDP socket of the kernel, and UD queue pairs, one for each address of this host that is used. The first
 * datagram to a peer goes by UDP, with the number of the queue pair before it; the peer's answer has its own. All later ones are SENDs.
 *
 * Under the socket's lock, except ur_rs_udp_new() and ur_rs_udp_free().
 */

#define UR_RS_DGRAM_BYTES 2048 /* the largest, with its header */
#define UR_RS_GRH_BYTES	  40   /* before it, in a receive */

/* A datagram that was received, or a place for one. */
struct ur_rs_dgram {
	TAILQ_ENTRY(ur_rs_dgram) link;
	struct ur_rs_udp_port *port; /* whose receive this is; NULL: it came by UDP */
	union ur_rs_addr from;
	uint32_t skip, bytes; /* data: [skip, skip + bytes) of buf */
	uint8_t *buf;
};

TAILQ_HEAD(ur_rs_dgrams, ur_rs_dgram);

/* An address of this host. */
struct ur_rs_udp_port {
	SLIST_ENTRY(ur_rs_udp_port) link;
	struct rdma_cm_id *id;
	struct ibv_cq *cq; /* of both directions */
	union ur_rs_addr own;
	uint8_t sgid_index;
	uint32_t bytes_max; /* of a datagram, with its header */
	struct ibv_mr *mr;
	uint8_t *memory; /* receives, then sends */
	struct ur_rs_dgram *receives;
	uint32_t receive_cnt, send_cnt;
	uint32_t *free_sends, free_cnt; /* places for sends; a stack */
};

/* A peer. */
struct ur_rs_dest {
	TAILQ_ENTRY(ur_rs_dest) link; /* used last first */
	union ur_rs_addr addr;
	struct ur_rs_udp_port *port;
	uint32_t qpn;		  /* 0: it is not known */
	struct ibv_ah *ah;	  /* NULL: there is none yet */
	struct ur_rs_ah_job *job; /* that makes it, or NULL */
	uint64_t again_ns;	  /* none could be made; not to be tried before */
};

TAILQ_HEAD(ur_rs_dests, ur_rs_dest);

struct ur_rs_udp {
	int fd;			       /* the kernel's socket */
	bool full;		       /* it had no room for a datagram */
	struct ibv_comp_channel *comp; /* of all ports; NULL: there is none yet */
	SLIST_HEAD(, ur_rs_udp_port) ports;
	struct ur_rs_dests dests;
	unsigned dest_cnt;
	union ur_rs_addr connected_to; /* no family: it is not */
	struct ur_rs_dgrams queue;     /* received, and not read */
	struct ur_rs_dgrams spare;     /* places for what comes by UDP */
};

/* NULL with errno. */
struct ur_rs_udp *ur_rs_udp_new(int domain);
/* Nobody has the socket. */
void ur_rs_udp_free(struct ur_rs_udp *u);
void ur_rs_udp_progress(struct ur_rs *rs);
void ur_rs_udp_arm(struct ur_rs *rs);
short ur_rs_udp_events(const struct ur_rs *rs);
/* What a thread that sleeps waits for at the kernel's socket. */
short ur_rs_udp_kernel_events(const struct ur_rs *rs);
/* The calls on such a socket. They return what the public ones return, and end the call. AF_UNSPEC: it is connected no more. */
int ur_rs_udp_connect(struct ur_rs_call *c, const struct sockaddr *addr, socklen_t len);
ssize_t ur_rs_udp_send(struct ur_rs_call *c, struct ur_rs_iov *v, int flags,
		       const struct sockaddr *to, socklen_t len);
/* MSG_TRUNC: as with UDP it returns the bytes of the datagram, even if it was cut. */
ssize_t ur_rs_udp_receive(struct ur_rs_call *c, struct ur_rs_iov *v, int flags,
			  struct sockaddr *from, socklen_t *len);
/* Gives the kernel's socket a port, if it has none. */
int ur_rs_udp_name(struct ur_rs *rs);
/* Waits for what is being sent. */
void ur_rs_udp_drain(struct ur_rs_call *c);

/* ---- dgram_dest.c ---- */

/* The peer of this address, made when it is new. NULL with errno. */
struct ur_rs_dest *ur_rs_udp_dest(struct ur_rs *rs, const union ur_rs_addr *to);
union ibv_gid ur_rs_udp_gid(const union ur_rs_addr *a);
int ur_rs_udp_post_receive(struct ur_rs_dgram *d);
void ur_rs_udp_free_dests(struct ur_rs_udp *u);

/* ---- dgram_ah.c ---- */

/*
 * What a SEND to this peer needs; called when the program sends to it, never because a datagram has come. NULL: there is none
 * yet, and the datagram has to go by UDP. It does not wait.
 */
struct ibv_ah *ur_rs_udp_ah(struct ur_rs_dest *d);
void ur_rs_udp_free_ah(struct ur_rs_dest *d);

#endif
