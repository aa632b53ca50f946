/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "fuzz.h"
#include "mgmt/nma.h"
#include "mgmt/registers.h"
#include "wire/bytes.h"
#include "wire/perf.h"

/*
 * The management agents of a switch and of an endpoint get MADs of every class, valid ones with a few bytes changed and random
 * ones, by every way, with and without the key, while time passes and links go up and down. Each agent is
 * validated after each step. A node without a key that the input has used must not have been written to.
 */
#define PORTS 3
#define KEY   UINT64_C(0x8877665544332211)

struct node {
	struct ur_nma *nma;
	void *memory;
	bool is_switch, up[PORTS + 1];
	uint8_t lft[256], eeprom[256];
	struct ur_vl_attr vl;
	unsigned writes;
};

struct fuzz {
	const uint8_t *p, *end;
	uint64_t now;
	struct node node[2];
	bool keyed;		    /* a MAD had the key */
	uint8_t last[UR_MAD_BYTES]; /* sent by an agent */
	uint8_t sent[UR_MAD_BYTES]; /* to an agent, */
	uint8_t how, dlid;	    /* and how */
};

static uint8_t u8(struct fuzz *f)
{
	return f->p < f->end ? *f->p++ : 0;
}

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	const struct node *n = ctx;

	FUZZ_CHECK(port <= PORTS);
	*link = (struct ur_nma_link){.up = port == 0 || n->up[port], .mtu = 5, .bps = 1};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *c)
{
	(void)ctx;
	FUZZ_CHECK(port <= PORTS);
	*c = (struct ur_nma_counters){.rx_errors = port, .tx_bytes = UINT64_MAX};
}

static void get_gauges(void *ctx, struct ur_nma_gauges *g)
{
	const struct node *n = ctx;

	*g = (struct ur_nma_gauges){.load = n->up[1] ? 999 : 1, .mempool = 960};
}

static void get_vl(void *ctx, uint8_t port, struct ur_vl_attr *vl)
{
	FUZZ_CHECK(port <= PORTS);
	*vl = ((struct node *)ctx)->vl;
}

static int set_vl(void *ctx, uint8_t port, const struct ur_vl_attr *vl)
{
	struct node *n = ctx;

	FUZZ_CHECK(port <= PORTS && !ur_vl_attr_check(vl));
	n->vl = *vl;
	n->writes++;
	return 0;
}

static void get_lft(void *ctx, uint16_t block, uint8_t ports[64])
{
	FUZZ_CHECK(block < 4);
	memcpy(ports, ((struct node *)ctx)->lft + block * 64u, 64);
}

static int set_lft(void *ctx, uint16_t block, const uint8_t ports[64])
{
	struct node *n = ctx;

	FUZZ_CHECK(block < 4);
	memcpy(n->lft + block * 64u, ports, 64);
	n->writes++;
	return ports[0] == 2 ? -1 : 0;
}

static void set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	FUZZ_CHECK(port <= PORTS && lid < 0xc000 && lmc <= 7);
	((struct node *)ctx)->writes++;
}

static void set_enabled(void *ctx, uint8_t port, bool enabled)
{
	struct node *n = ctx;

	FUZZ_CHECK(port >= 1 && port <= PORTS);
	n->up[port] = enabled;
	n->writes++;
}

static uint8_t eeprom_load(void *ctx, uint16_t address)
{
	return ((struct node *)ctx)->eeprom[address & 255];
}

static void eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	struct node *n = ctx;

	n->eeprom[address & 255] = value;
	n->writes++;
}

static const struct ur_nma_ops full = {
	.get_link = get_link,
	.get_counters = get_counters,
	.get_gauges = get_gauges,
	.get_vl = get_vl,
	.set_vl = set_vl,
	.get_lft = get_lft,
	.set_lft = set_lft,
	.set_lid = set_lid,
	.set_enabled = set_enabled,
	.eeprom_load = eeprom_load,
	.eeprom_store = eeprom_store,
};
static const struct ur_nma_ops bare = {.get_link = get_link};

static void open_node(struct node *n, bool is_switch, uint8_t how, uint64_t now)
{
	struct ur_nma_attr attr = {
		.limits = {.ports = is_switch ? PORTS : 1,
			   .requests = 3,
			   .passing = 2,
			   .remembered = 2,
			   .notices = 2},
		.config = {.m_key = KEY,
			   .protect = how & 3,
			   .lease_s = how >> 2 & 1,
			   .ask_neighbours = how >> 3 & 1},
		.type = is_switch ? UR_NODE_SWITCH : UR_NODE_CA,
		.node_guid = 1,
		.port_guid = 2,
		.lft_lids = is_switch ? 256 : 0,
		.seed = 5,
		.ops = how & 16 ? &bare : &full,
		.ctx = n,
	};

	n->is_switch = is_switch;
	n->up[1] = n->up[2] = true;
	ur_vl_attr_default(&n->vl);
	n->vl.mtu_shift = 12;
	n->memory = aligned_alloc(64, (ur_nma_size(&attr.limits) + 63) / 64 * 64);
	if (!n->memory)
		exit(0);
	n->nma = ur_nma_init(n->memory, &attr, now);
}

/* A MAD that gets far: the rest of its bytes is the input's. */
static void make_mad(struct fuzz *f, uint8_t mad[UR_MAD_BYTES])
{
	static const uint8_t classes[] = {0x81, 0x01, 0x04, 0x4a, 0x81, 0x03, 0x07, 0x81};
	static const uint8_t methods[] = {1, 2, 2, 7, 0x81, 5, 1, 2};
	static const uint16_t attrs[] = {0x11, 0x10, 0x15,   0x12,   0x14, 0x16, 0x17, 0x18,
					 0x19, 0x20, 0xff10, 0xff11, 0x1d, 0x01, 0x02, 0x15};
	uint8_t kind = u8(f);

	memset(mad, 0, UR_MAD_BYTES);
	mad[0] = 1;
	mad[1] = classes[kind & 7];
	mad[2] = 1;
	mad[3] = methods[kind >> 3 & 7];
	mad[15] = u8(f);
	ur_store16(mad + 16, attrs[u8(f) & 15]);
	mad[21] = u8(f) & 7;
	mad[23] = u8(f) & 7;
	if (mad[1] == UR_MAD_CLASS_SMP_DR) {
		uint8_t hops = u8(f);

		mad[4] = hops & 0x80;
		mad[UR_SMP_HOP_POINTER] = u8(f) & 3 ? hops >> 3 & 7 : hops & 7;
		mad[UR_SMP_HOP_COUNT] = hops >> 3 & 7;
		memset(mad + UR_SMP_DR_SLID, u8(f) & 1 ? 0xff : 0, 4);
		for (unsigned i = 0; i < 128; i++)
			mad[UR_SMP_INITIAL + i] = (uint8_t)(1 + (i + hops) % PORTS);
	}
	if (mad[1] == UR_MAD_CLASS_VENDOR) {
		ur_store24(mad + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
		ur_store16(mad + 16, 0x0f + (u8(f) & 3));
	}
	if (u8(f) & 1) {
		ur_store64(mad + (mad[1] == UR_MAD_CLASS_VENDOR ? UR_VENDOR_KEY : UR_SMP_MKEY),
			   KEY);
		f->keyed = true;
	}
	/* Registers often exist. */
	mad[UR_SMP_DATA] = u8(f) & 3;
	if (mad[1] != UR_MAD_CLASS_VENDOR)
		ur_store16(mad + UR_SMP_DATA + 4,
			   ur_register_address(u8(f) % UR_REGISTER_CNT, u8(f) & 3));
	for (unsigned n = u8(f) & 31; n; n--)
		mad[(mad[1] == UR_MAD_CLASS_VENDOR ? UR_VENDOR_BODY : UR_SMP_DATA) + u8(f) % 70] =
			u8(f);
	/* No change gives a MAD the key by chance: it is not in the input's alphabet. */
	for (unsigned n = u8(f) & 3; n; n--)
		mad[u8(f)] = u8(f);
}

static bool has_key(const uint8_t *mad)
{
	return ur_load64(mad + UR_SMP_MKEY) == KEY || ur_load64(mad + UR_VENDOR_KEY) == KEY;
}

static void drain(struct fuzz *f, struct node *n)
{
	struct ur_nma_out out;

	for (unsigned i = 0; i < 64 && ur_nma_output(n->nma, &out, f->now); i++) {
		FUZZ_CHECK(out.to.port <= PORTS);
		FUZZ_CHECK(out.to.way != UR_MAD_HOP || out.to.port >= 1);
		FUZZ_CHECK(out.mad[0] == 1 || out.to.way == UR_MAD_LOCAL ||
			   out.to.way == UR_MAD_IP || out.to.way == UR_MAD_LID);
		memcpy(f->last, out.mad, UR_MAD_BYTES);
		ur_nma_validate(n->nma);
	}
}

static void input(struct fuzz *f, struct node *n, const uint8_t *mad)
{
	uint8_t how = f->how;
	struct ur_nma_from from = {.way = how & 3,
				   .port = n->is_switch ? how >> 2 & 3 : 1,
				   .qpn = mad[1] != UR_MAD_CLASS_SMP_DR &&
					  mad[1] != UR_MAD_CLASS_SMP_LID,
				   .slid = how >> 5,
				   .dlid = f->dlid & 7,
				   .sqpn = 1};

	if ((how >> 4 & 7) == 7) /* the wrong queue pair */
		from.qpn ^= 1;
	if (mad[1] == UR_MAD_CLASS_SMP_DR && how & 0x80)
		from.way = UR_MAD_HOP;
	if (from.way == UR_MAD_LOCAL)
		from.port = 0;
	ur_nma_input(n->nma, mad, &from, f->now);
	memmove(f->sent, mad, UR_MAD_BYTES);
	if (how >> 5 & 1)
		drain(f, n);
}

/* Two LIDs, so that traps have a destination. By the key, as a subnet manager would. */
static void assign_lid(struct fuzz *f, struct node *n)
{
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1};
	struct ur_port_info info = {
		.m_key = KEY, .m_key_protect = 1, .m_key_lease = 1, .lid = 3, .sm_lid = 1};
	uint8_t mad[UR_MAD_BYTES] = {1, UR_MAD_CLASS_SMP_DR, 1, UR_MAD_METHOD_SET};

	mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = mad[UR_SMP_RETURN + 1] = 1;
	ur_store16(mad + 16, UR_SMP_PORT_INFO);
	ur_store64(mad + UR_SMP_MKEY, KEY);
	memset(mad + UR_SMP_DR_SLID, 0xff, 4);
	ur_put_port_info(mad + UR_SMP_DATA, &info);
	ur_nma_input(n->nma, mad, &from, f->now);
	drain(f, n);
	n->writes = 0;
}

static void step(struct fuzz *f)
{
	struct node *n = &f->node[u8(f) & 1];
	uint8_t mad[UR_MAD_BYTES];
	uint64_t due;

	switch (u8(f) & 7) {
	default:
		make_mad(f, mad);
		f->keyed |= has_key(mad);
		f->how = u8(f);
		f->dlid = u8(f);
		input(f, n, mad);
		break;
	case 4: /* what an agent sent arrives somewhere, also at itself */
		memcpy(mad, f->last, UR_MAD_BYTES);
		mad[u8(f)] ^= u8(f) & 1;
		f->keyed |= has_key(mad);
		f->how = u8(f);
		input(f, n, mad);
		break;
	case 3: /* the same again, in the same way */
		input(f, n, f->sent);
		break;
	case 5:
		due = ur_nma_next_deadline(n->nma);
		f->now += (uint64_t)u8(f) * 10000000;
		if (due != UINT64_MAX && due > f->now)
			f->now = due;
		ur_nma_expire(n->nma, f->now);
		drain(f, n);
		break;
	case 6:
		n->up[1] = !n->up[1];
		ur_nma_link_event(n->nma, 1, f->now);
		break;
	case 7:
		ur_nma_set_client(n->nma, u8(f) & 1, u8(f) & 1);
		ur_nma_fault(n->nma, u8(f) % UR_FAULT_CNT, 1, 5, 4, f->now);
		break;
	}
	ur_nma_validate(n->nma);
	/* MGMT-KEY-05 */
	FUZZ_CHECK(f->keyed || !(f->node[0].writes | f->node[1].writes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f = calloc(1, sizeof(*f));

	if (!f)
		return 0;
	f->p = data;
	f->end = data + size;
	f->now = 1;
	for (unsigned i = 0; i < 2; i++)
		open_node(&f->node[i], i == 0, u8(f), f->now);
	if (u8(f) & 1)
		assign_lid(f, &f->node[0]);
	if (u8(f) & 1)
		assign_lid(f, &f->node[1]);
	while (f->p < f->end)
		step(f);
	for (unsigned i = 0; i < 2; i++) {
		drain(f, &f->node[i]);
		free(f->node[i].memory);
	}
	free(f);
	return 0;
}
