/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MGMT_NMA_PRIV_H
#define UR_MGMT_NMA_PRIV_H

#include <string.h>

#include "mgmt/nma.h"
#include "mgmt/registers.h"
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
 *   perf.c     PerfMgt
 *   vendor.c   requests for registers and E2PROM
 *   registers.c  the registers
 *   notice.c   traps and fault reports
 *   scan.c     what the agent looks for itself: limits, thresholds
 *   link.c     neighbours, link tests
 */
#define NMA_NEVER UINT64_MAX

#define NMA_PKEYS  32 /* entries of a port's P_KeyTable: one block */
#define NMA_PC	   17 /* counters in PortCounters */
#define NMA_PC_EXT 8  /* and in PortCountersExtended */

/* The node at the other end of a link. */
struct nma_neighbour {
	uint64_t guid; /* 0: unknown */
	uint8_t port, type;
	uint8_t tries;
	uint64_t tid;	  /* of the question; 0: none is open */
	uint64_t next_ns; /* it is sent then */
};

struct nma_bist {
	bool running; /* also while the last packets may return */
	uint8_t pattern;
	uint32_t rate; /* packets a second */
	uint64_t duration_ns, end_ns, next_ns, tid;
	uint64_t sent, returned, errors;
};

/* What a port had counted at the last scan. */
struct nma_scanned {
	uint64_t rx_errors, symbol_errors, retransmitted, overruns, flow_control;
	uint16_t overrun_scans; /* scans in a row that found overruns */
	uint64_t trap_next_ns[UR_TRAP_FLOW_CONTROL - UR_TRAP_LINK_INTEGRITY + 1];
};

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
	uint64_t pc_base[NMA_PC], pc_ext_base[NMA_PC_EXT]; /* what the counters are counted from */
	struct nma_neighbour neighbour;
	struct nma_bist bist;
	struct nma_scanned scanned;
	bool failed; /* the link went down, and not by management; it has not come up yet */
	/* LinkErrorRecovery, LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors. */
	uint64_t link_recovered, integrity_errors, excessive_overruns;
};

struct nma_notice {
	uint64_t tid; /* 0: free */
	bool by_gmp;  /* sent in the vendor class, else as an SMP */
	uint64_t next_ns;
	uint16_t what; /* number of a trap, or cause of a fault */
	uint8_t port, tries;
	uint8_t data[UR_SMP_DATA_BYTES];
};

/* The manager that asked for fault reports. */
struct nma_manager {
	bool set;
	uint8_t mgmt_class, hops;
	struct ur_nma_from from;
	uint8_t route[UR_SMP_HOPS_MAX + 1]; /* to it: [1, hops] */
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

enum { NMA_SMPS, NMA_GMPS, NMA_KINDS };

#define NMA_EEPROM_REQUESTS 3

struct ur_nma {
	struct ur_nma_attr attr;
	struct ur_nma_stats stats;
	struct nma_port *port; /* [0, limits.ports] */
	uint8_t first_port;    /* 0: a switch, 1: a CA */
	/* Requests: SMPs, which go first, and GMPs. request[k]: [0, limits.requests). MGMT-QUEUE-01 */
	struct nma_queue requests[NMA_KINDS], passing;
	struct nma_request *request[NMA_KINDS];
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

	uint64_t born_ns, now_ns;      /* first and last time that the agent was told */
	uint64_t own_tids;	       /* requests and notices of its own so far */
	uint64_t reg[UR_REGISTER_CNT]; /* registers of the node that have a value */

	/* The request that the E2PROM works on, and those that follow: [0, eeprom_cnt), each of another requester. */
	uint64_t eeprom_due_ns;
	unsigned eeprom_cnt;
	struct nma_request eeprom[NMA_EEPROM_REQUESTS];

	struct nma_notice *notice; /* [0, limits.notices) */
	uint64_t notice_next_ns;
	struct nma_manager manager;
	uint64_t scan_next_ns, scanned_full;
	uint32_t above;	       /* bit: the gauge of this cause is above its limit */
	uint64_t link_next_ns; /* neighbours and link tests */

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

/* ---- nma.c ---- */

/* A TransactionID for a request or notice of the agent's own; not 0, and cannot be guessed. */
uint64_t nma_own_tid(struct ur_nma *nma);

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
/* The lease ends, if it is time. */
void nma_check_lease(struct ur_nma *nma, uint64_t now_ns);
/* Executes Get or Set of an SMP attribute. Returns the status. */
enum ur_mad_status nma_smp(struct ur_nma *nma, struct nma_call *call);

/* ---- port.c ---- */

uint32_t nma_capabilities(const struct ur_nma *nma); /* CapabilityMask */
void nma_port_init(struct ur_nma *nma, uint8_t port);
/* The link came up or went down, or was disabled: PortStateChange, and trap 128 of a switch. */
void nma_port_link(struct ur_nma *nma, uint8_t port, bool up);
enum ur_mad_status nma_port_info(struct ur_nma *nma, struct nma_call *call);

/* ---- perf.c ---- */

enum ur_mad_status nma_perf(struct ur_nma *nma, struct nma_call *call);

/* ---- vendor.c ---- */

/* Executes Get or Set of the vendor class, but not of the E2PROM. call->data is the body. */
enum ur_mad_status nma_vendor(struct ur_nma *nma, struct nma_call *call);
enum ur_mad_status nma_registers(struct ur_nma *nma, struct nma_call *call);
/* Checks a request for the E2PROM. It takes *wait_ns; 0: it is answered now. */
enum ur_mad_status nma_eeprom(struct ur_nma *nma, struct nma_call *call, uint64_t *wait_ns);
/* The body of a request for the E2PROM, or NULL. */
uint8_t *nma_eeprom_body(uint8_t *mad);
/* Gives it such a request. False: it is busy. */
bool nma_eeprom_take(struct ur_nma *nma, const struct nma_request *r, uint64_t now_ns);
/* When the first request is done, its response in the request's own bytes; NULL: none is. */
struct nma_request *nma_eeprom_done(struct ur_nma *nma, uint64_t now_ns);
/* Forgets it, and starts the next one. */
void nma_eeprom_next(struct ur_nma *nma, uint64_t now_ns);
void nma_eeprom_defaults(struct ur_nma *nma, uint64_t now_ns);

/* ---- registers.c ---- */

void nma_reg_init(struct ur_nma *nma);
enum ur_vendor_error nma_reg_find(const struct ur_nma *nma, uint16_t address,
				  enum ur_register_id *id, uint8_t *port);
/* Whether the register may be written with the value. */
enum ur_vendor_error nma_reg_check(const struct ur_nma *nma, uint16_t address, uint64_t value);
uint64_t nma_reg_read(const struct ur_nma *nma, uint16_t address, uint64_t now_ns);
/* A value that does not pass the check has no effect. `from` and `mad`: the request, or NULL. */
void nma_reg_write(struct ur_nma *nma, uint16_t address, uint64_t value,
		   const struct ur_nma_from *from, const uint8_t *mad, uint64_t now_ns);

/* ---- notice.c ---- */

void nma_trap(struct ur_nma *nma, enum ur_trap trap, uint8_t port, const uint8_t *details);
void nma_trap_bad_key(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from);
/* Fault reports go back to the sender of this request; NULL: to the subnet manager. */
void nma_report_to(struct ur_nma *nma, const struct ur_nma_from *from, const uint8_t *mad);
bool nma_next_notice(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns);
void nma_repress(struct ur_nma *nma, const uint8_t *mad);

/* ---- scan.c ---- */

/* Starts or stops the scans, as the registers and the subnet manager's LID say. */
void nma_scan_start(struct ur_nma *nma, uint64_t now_ns);
void nma_scan(struct ur_nma *nma, uint64_t now_ns);

/* ---- link.c ---- */

void nma_ask_neighbour(struct ur_nma *nma, uint8_t port, uint64_t now_ns);
/* Whether it is the answer of a neighbour, or a returned packet of a link test. */
bool nma_learn_neighbour(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from);
bool nma_bist_returned(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from);
void nma_bist_run(struct ur_nma *nma, uint8_t port, bool start, uint64_t now_ns);
bool nma_next_link(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns);

#endif
