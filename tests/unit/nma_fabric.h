/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_NMA_FABRIC_H
#define TEST_NMA_FABRIC_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "mgmt/nma.h"
#include "wire/bytes.h"

/*
 * Agents of nodes that are joined by links. A manager sits on one of the nodes as its client. Time passes
 * only when a test says so.
 */
#define FABRIC_NODES 70
#define FABRIC_PORTS 4
#define FABRIC_INBOX 64

struct fabric;

struct fabric_node {
	struct fabric *fabric;
	struct ur_nma *nma;
	bool is_switch, down[FABRIC_PORTS + 1];
	struct {
		int node; /* -1: no link */
		uint8_t port;
	} peer[FABRIC_PORTS + 1];
	struct ur_nma_counters counters[FABRIC_PORTS + 1];
	struct ur_nma_gauges gauges;
	struct ur_vl_attr vl[FABRIC_PORTS + 1];
	uint8_t lft[1024];
	uint8_t *eeprom;
	uint16_t lid;
	unsigned writes; /* of any kind */
	struct ur_nma_out inbox[FABRIC_INBOX];
	unsigned inbox_cnt;
};

struct fabric {
	struct fabric_node node[FABRIC_NODES];
	unsigned cnt;
	uint64_t now, tid;
	unsigned carried; /* MADs that crossed a link */
	/* Called for each MAD on a link; false: it is lost. NULL: none is. */
	bool (*on_link)(struct fabric *f, int from, uint8_t port, uint8_t *mad);
};

static void fabric_get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	struct fabric_node *n = ctx;

	link->up = port == 0 || (n->peer[port].node >= 0 && !n->down[port]);
	link->mtu = 5;
	link->bps = UINT64_C(10000000000);
}

static void fabric_get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	*counters = ((struct fabric_node *)ctx)->counters[port];
}

static void fabric_get_gauges(void *ctx, struct ur_nma_gauges *gauges)
{
	*gauges = ((struct fabric_node *)ctx)->gauges;
}

static void fabric_get_vl(void *ctx, uint8_t port, struct ur_vl_attr *vl)
{
	*vl = ((struct fabric_node *)ctx)->vl[port];
}

static int fabric_set_vl(void *ctx, uint8_t port, const struct ur_vl_attr *vl)
{
	struct fabric_node *n = ctx;

	cr_assert(!ur_vl_attr_check(vl));
	n->vl[port] = *vl;
	n->writes++;
	return 0;
}

static void fabric_get_lft(void *ctx, uint16_t block, uint8_t ports[64])
{
	memcpy(ports, ((struct fabric_node *)ctx)->lft + block * 64u, 64);
}

static int fabric_set_lft(void *ctx, uint16_t block, const uint8_t ports[64])
{
	struct fabric_node *n = ctx;

	memcpy(n->lft + block * 64u, ports, 64);
	n->writes++;
	return 0;
}

static void fabric_set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	struct fabric_node *n = ctx;

	(void)port, (void)lmc;
	n->lid = lid;
	n->writes++;
}

static void fabric_set_enabled(void *ctx, uint8_t port, bool enabled)
{
	struct fabric_node *n = ctx;

	n->down[port] = !enabled;
	n->writes++;
}

static uint8_t fabric_eeprom_load(void *ctx, uint16_t address)
{
	struct fabric_node *n = ctx;

	return n->eeprom ? n->eeprom[address] : 0xff;
}

static void fabric_eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	struct fabric_node *n = ctx;

	if (!n->eeprom) {
		n->eeprom = malloc(UR_EEPROM_BYTES);
		memset(n->eeprom, 0xff, UR_EEPROM_BYTES);
	}
	n->eeprom[address] = value;
	n->writes++;
}

static const struct ur_nma_ops fabric_ops = {
	.get_link = fabric_get_link,
	.get_counters = fabric_get_counters,
	.get_gauges = fabric_get_gauges,
	.get_vl = fabric_get_vl,
	.set_vl = fabric_set_vl,
	.get_lft = fabric_get_lft,
	.set_lft = fabric_set_lft,
	.set_lid = fabric_set_lid,
	.set_enabled = fabric_set_enabled,
	.eeprom_load = fabric_eeprom_load,
	.eeprom_store = fabric_eeprom_store,
};

static inline struct ur_nma_attr fabric_attr(bool is_switch, int index)
{
	struct ur_nma_attr attr = {
		.limits = {.ports = is_switch ? FABRIC_PORTS : 1,
			   .requests = 8,
			   .passing = 8,
			   .remembered = 8,
			   .notices = 8},
		.type = is_switch ? UR_NODE_SWITCH : UR_NODE_CA,
		.node_guid = 0x1000 + (uint64_t)index,
		.port_guid = 0x2000 + (uint64_t)index,
		.lft_lids = is_switch ? 1024 : 0,
		.vendor_id = 0x010203,
		.device_id = 0x0405,
		.revision = 0x06070809,
		.seed = 7,
		.ops = &fabric_ops,
	};

	snprintf(attr.description, sizeof(attr.description), "node %d", index);
	return attr;
}

/* Adds a node with these attributes, or with the usual ones if `attr` is NULL. Returns its number. */
static inline int fabric_add(struct fabric *f, bool is_switch, const struct ur_nma_attr *attr)
{
	int index = (int)f->cnt++;
	struct fabric_node *n = &f->node[index];
	struct ur_nma_attr a = attr ? *attr : fabric_attr(is_switch, index);

	n->fabric = f;
	n->is_switch = is_switch;
	for (unsigned p = 0; p <= FABRIC_PORTS; p++) {
		n->peer[p].node = -1;
		ur_vl_attr_default(&n->vl[p]);
		n->vl[p].mtu_shift = 12;
	}
	memset(n->lft, 0xff, sizeof(n->lft));
	a.ctx = n;
	n->nma = ur_nma_init(aligned_alloc(64, ur_nma_size(&a.limits)), &a, f->now);
	return index;
}

static inline void fabric_join(struct fabric *f, int a, uint8_t a_port, int b, uint8_t b_port)
{
	f->node[a].peer[a_port].node = b;
	f->node[a].peer[a_port].port = b_port;
	f->node[b].peer[b_port].node = a;
	f->node[b].peer[b_port].port = a_port;
	ur_nma_link_event(f->node[a].nma, a_port, f->now);
	ur_nma_link_event(f->node[b].nma, b_port, f->now);
}

static inline void fabric_free(struct fabric *f)
{
	for (unsigned i = 0; i < f->cnt; i++) {
		ur_nma_validate(f->node[i].nma);
		free(f->node[i].nma);
		free(f->node[i].eeprom);
	}
	free(f);
}

static inline struct fabric *fabric_new(void)
{
	struct fabric *f = calloc(1, sizeof(*f));

	f->now = 1;
	f->tid = 1;
	return f;
}

/* A MAD of an agent goes over a link, or into the inbox of the client. */
static inline void fabric_carry(struct fabric *f, int from, struct ur_nma_out *out)
{
	struct fabric_node *n = &f->node[from];
	struct ur_nma_from at = {.way = out->to.way,
				 .qpn = (uint8_t)out->to.dqpn,
				 .sqpn = out->to.sqpn,
				 .slid = out->to.slid,
				 .dlid = out->to.dlid};
	uint8_t port = out->to.port;

	if (out->to.way == UR_MAD_LOCAL) {
		cr_assert(n->inbox_cnt < FABRIC_INBOX);
		n->inbox[n->inbox_cnt++] = *out;
		return;
	}
	/* A LID finds its way by each switch's table. */
	for (unsigned hops = 0; hops < FABRIC_NODES; hops++) {
		if (out->to.way == UR_MAD_LID && n->is_switch)
			port = n->lft[out->to.dlid];
		if (port == 0 || port > FABRIC_PORTS || n->peer[port].node < 0 || n->down[port])
			return;
		if (f->on_link && !f->on_link(f, from, port, out->mad))
			return;
		f->carried++;
		at.port = n->peer[port].port;
		from = n->peer[port].node;
		n = &f->node[from];
		if (out->to.way != UR_MAD_LID || !n->is_switch || n->lid == out->to.dlid)
			break;
	}
	ur_nma_input(n->nma, out->mad, &at, f->now);
}

/* Lets every agent send what it has, until all are silent. */
static inline void fabric_run(struct fabric *f)
{
	bool busy = true;

	while (busy) {
		busy = false;
		for (unsigned i = 0; i < f->cnt; i++) {
			struct ur_nma_out out;

			while (ur_nma_output(f->node[i].nma, &out, f->now)) {
				ur_nma_validate(f->node[i].nma);
				fabric_carry(f, (int)i, &out);
				busy = true;
			}
		}
	}
}

/* Time passes; timers run when they are due. */
static inline void fabric_sleep(struct fabric *f, uint64_t ns)
{
	uint64_t end = f->now + ns;

	for (;;) {
		uint64_t next = end;

		fabric_run(f);
		for (unsigned i = 0; i < f->cnt; i++) {
			uint64_t due = ur_nma_next_deadline(f->node[i].nma);

			next = due < next ? due : next;
		}
		f->now = next > f->now ? next : f->now;
		for (unsigned i = 0; i < f->cnt; i++)
			ur_nma_expire(f->node[i].nma, f->now);
		fabric_run(f);
		if (f->now >= end)
			return;
	}
}

/* ---- the manager ---- */

struct mad {
	uint8_t b[UR_MAD_BYTES];
};

static inline struct mad new_mad(struct fabric *f, uint8_t class, uint8_t method, uint16_t attr,
				 uint32_t mod)
{
	struct mad m = {{UR_MAD_BASE_VERSION, class, 1, method}};

	ur_store64(m.b + 8, f->tid++);
	ur_store16(m.b + 16, attr);
	ur_store32(m.b + 20, mod);
	return m;
}

/* A directed-route SMP along `path`: cnt output ports. */
static inline struct mad new_dr(struct fabric *f, uint8_t method, uint16_t attr, uint32_t mod,
				const uint8_t *path, unsigned cnt)
{
	struct mad m = new_mad(f, UR_MAD_CLASS_SMP_DR, method, attr, mod);

	m.b[UR_SMP_HOP_COUNT] = (uint8_t)cnt;
	ur_store16(m.b + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(m.b + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	if (cnt)
		memcpy(m.b + UR_SMP_INITIAL + 1, path, cnt);
	return m;
}

/* Sends it from the manager on node `at`; returns what input() returned. */
static inline enum ur_drop send_mad(struct fabric *f, int at, const struct mad *m, uint16_t dlid)
{
	struct ur_nma_from from = {.way = UR_MAD_LOCAL,
				   .qpn = m->b[1] != UR_MAD_CLASS_SMP_DR &&
					  m->b[1] != UR_MAD_CLASS_SMP_LID,
				   .dlid = dlid};

	from.sqpn = from.qpn;
	ur_nma_set_client(f->node[at].nma, true, false);
	return ur_nma_input(f->node[at].nma, m->b, &from, f->now);
}

/* Sends, waits, and returns the only response; false: there was none. */
static inline bool ask(struct fabric *f, int at, const struct mad *m, uint16_t dlid,
		       struct mad *response)
{
	struct fabric_node *n = &f->node[at];

	n->inbox_cnt = 0;
	send_mad(f, at, m, dlid);
	fabric_run(f);
	if (!n->inbox_cnt)
		return false;
	cr_assert(n->inbox_cnt == 1, "%u responses", n->inbox_cnt);
	memcpy(response->b, n->inbox[0].mad, UR_MAD_BYTES);
	cr_assert(response->b[3] == UR_MAD_METHOD_GET_RESP);
	cr_assert(ur_load64(response->b + 8) == ur_load64(m->b + 8));
	return true;
}

static inline uint16_t status_of(const struct mad *m)
{
	return ur_load16(m->b + 4) & 0x7fff;
}

#endif
