/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MGMT_NMA_PRIV_H
#define UR_MGMT_NMA_PRIV_H

#include <string.h>

#include "mgmt/nma.h"
#include "wire/assert.h"
#include "wire/bytes.h"
#include "wire/perf.h"

/*
 * Shared by the files of the agent:
 *
 *   nma.c      queues, memory of responses, time
 *   route.c    directed routes
 *   smp.c      keys, attributes of nodes and switches
 *   port.c     PortInfo and the state of ports
 */
#define NMA_NEVER UINT64_MAX

#define NMA_PKEYS 32 /* entries of a port's P_KeyTable: one block */

struct nma_port {
	uint64_t gid_prefix;
	uint16_t lid, sm_lid;
	uint8_t lmc, sm_sl;
	uint8_t state; /* enum ur_port_state */
	bool disabled; /* by Set(PortInfo) */
	uint8_t width_enabled, speed_enabled, speed_ext_enabled;
	uint8_t neighbor_mtu, operational_vls, down_default;
	uint8_t vl_stall_count, hoq_life;
	uint8_t partition_inbound, partition_outbound;
	uint8_t subnet_timeout, init_type, local_phy_errors, overrun_errors;
	uint16_t p_key_violations, q_key_violations;
	uint16_t pkey[NMA_PKEYS];
};

struct nma_request {
	struct ur_nma_from from;
	uint64_t hash;
	uint8_t mad[UR_MAD_BYTES];
};

/* A response that was sent, for the case that its request is repeated. */
struct nma_answer {
	struct ur_nma_out out;
	uint64_t hash;
	uint64_t until_ns; /* 0: free */
	bool again;	   /* to be sent again */
};

/* [head, head + cnt) modulo the limit are in use. */
struct nma_queue {
	uint16_t head, cnt, cap;
};

struct ur_nma {
	struct ur_nma_attr attr;
	struct ur_nma_stats stats;
	struct nma_port *port; /* [0, limits.ports] */
	uint8_t first_port;    /* 0: a switch, 1: a CA */
	struct nma_queue requests, passing;
	struct nma_request *request;
	struct ur_nma_out *pass;
	struct nma_answer *answer; /* [0, limits.remembered) */
	uint16_t answer_next;	   /* the oldest */
	uint16_t again_cnt;
	bool client, client_is_sm;

	/* The key of the node: all ports have the same. */
	uint64_t m_key;
	uint8_t protect;
	uint16_t lease_s, m_key_violations;
	uint64_t lease_end_ns; /* NMA_NEVER: the lease does not run */

	/* Switch. */
	uint16_t lft_top, mcast_top;
	uint8_t default_port, default_mcast_primary, default_mcast_not_primary, life_time;
	bool port_state_change;
};

/* A request while it is executed: `mad` becomes the response. */
struct nma_call {
	uint8_t *mad;
	uint8_t *data; /* of the attribute, in mad */
	const struct ur_nma_from *from;
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t now_ns;
	bool set;
};

static inline bool nma_is_switch(const struct ur_nma *nma)
{
	return nma->first_port == 0;
}

static inline bool nma_is_smp(const uint8_t *mad)
{
	return mad[1] == UR_MAD_CLASS_SMP_LID || mad[1] == UR_MAD_CLASS_SMP_DR;
}

static inline uint64_t nma_tid(const uint8_t *mad)
{
	return ur_load64(mad + 8);
}

/* The port at which a request arrived; for a client, the port that stands for the node. */
static inline uint8_t nma_arrival_port(const struct ur_nma *nma, const struct ur_nma_from *from)
{
	return from->way == UR_MAD_LOCAL || from->port < nma->first_port ? nma->first_port
									 : from->port;
}

/* The port that has the LID: the arrival port of a CA, port 0 of a switch. */
static inline struct nma_port *nma_end_port(const struct ur_nma *nma, uint8_t port)
{
	return &nma->port[nma_is_switch(nma) ? 0 : port];
}

static inline struct ur_nma_link nma_link(const struct ur_nma *nma, uint8_t port)
{
	struct ur_nma_link link = {0};

	nma->attr.ops->get_link(nma->attr.ctx, port, &link);
	return link;
}

/* ---- route.c ---- */

enum nma_route {
	NMA_DISCARD,
	NMA_HERE,   /* for the agent */
	NMA_CLIENT, /* for a client on this node */
	NMA_OUT,    /* leaves as *to says */
};

/* Advances a directed-route SMP that arrived from a port or a client (IBA 14.2.2). */
enum nma_route nma_route_dr(const struct ur_nma *nma, uint8_t *mad, const struct ur_nma_from *from,
			    struct ur_nma_to *to);
/* Turns an executed directed-route request into a response on its way back. */
enum nma_route nma_return_dr(const struct ur_nma *nma, uint8_t *mad, const struct ur_nma_from *from,
			     struct ur_nma_to *to);

/* ---- smp.c ---- */

/* Whether the key permits the request; if not, it is discarded without a response (IBA 14.2.4). */
bool nma_check_key(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from,
		   uint64_t now_ns);
/* Executes Get or Set of an SMP attribute. Returns the status. */
enum ur_mad_status nma_smp(struct ur_nma *nma, struct nma_call *call);

/* ---- port.c ---- */

void nma_port_init(struct ur_nma *nma, uint8_t port);
void nma_port_link(struct ur_nma *nma, uint8_t port, bool up);
enum ur_mad_status nma_port_info(struct ur_nma *nma, struct nma_call *call);

#endif
