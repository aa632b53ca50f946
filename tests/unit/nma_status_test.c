/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include "mgmt/registers.h"
#include "wire/perf.h"

/*
 * MGMT-STATUS-01, MGMT-STATUS-02: the status of every kind of request that an agent does not execute (IBA 13.4.7), at an
 * endpoint and at a switch; for SMPs by directed route and by LID. What is refused changes nothing.
 */
#define OK	  UR_MAD_STATUS_OK
#define VERSION	  UR_MAD_STATUS_BAD_VERSION
#define METHOD	  UR_MAD_STATUS_METHOD
#define ATTRIBUTE UR_MAD_STATUS_ATTRIBUTE
#define VALUE	  UR_MAD_STATUS_VALUE
#define NONE	  0x7fff /* no response */
#define GET	  UR_MAD_METHOD_GET
#define SET	  UR_MAD_METHOD_SET
#define SMP	  UR_MAD_CLASS_SMP_LID /* and by directed route */
#define PERF	  UR_MAD_CLASS_PERF
#define VENDOR	  UR_MAD_CLASS_VENDOR
#define KEY	  UINT64_C(0x1122334455667788)

enum where { CA = 1, SWITCH = 2, BOTH = 3 };

/* Node 0 is the manager's; node 1 is a switch, at its port; node 2 is an endpoint, at port 2 of the switch. */
static struct fabric *make(void)
{
	struct fabric *f = fabric_new();
	struct ur_nma_attr attr;

	fabric_add(f, false, NULL);
	for (int i = 1; i < 3; i++) {
		attr = fabric_attr(i == 1, i);
		attr.config = (struct ur_nma_config){.m_key = KEY};
		fabric_add(f, i == 1, &attr);
	}
	fabric_join(f, 0, 1, 1, 1);
	fabric_join(f, 1, 2, 2, 1);
	fabric_run(f);
	return f;
}

/*
 * The status of the node's response to a MAD that came by hop, or NONE. What else it has to say was said before.
 */
static uint16_t status_at(struct fabric *f, int node, const struct mad *m, const char *what)
{
	bool is_dr = m->b[1] == UR_MAD_CLASS_SMP_DR, smp = is_dr || m->b[1] == SMP;
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1, .qpn = !smp, .sqpn = !smp};
	struct ur_nma *nma = f->node[node].nma;
	struct ur_nma_out out;

	(void)ur_nma_input(nma, m->b, &from, f->now);
	if (!ur_nma_output(nma, &out, f->now))
		return NONE;
	ur_nma_validate(nma);
	cr_expect(!ur_nma_output(nma, &(struct ur_nma_out){0}, f->now), "%s: two responses", what);
	cr_expect_eq(out.to.way, UR_MAD_HOP);
	cr_expect_eq(out.mad[3], ur_mad_response_method(m->b[3]), "%s", what);
	cr_expect_arr_eq(out.mad, m->b, 3);
	cr_expect_arr_eq(out.mad + 8, m->b + 8, 16, "%s: TransactionID, attribute, modifier", what);
	cr_expect_eq(out.mad[4] >> 7, is_dr, "%s: the direction of a directed route", what);
	return ur_load16(out.mad + 4) & 0x7fff;
}

static struct mad make_mad(struct fabric *f, uint8_t mgmt_class, uint8_t method, uint16_t attr,
			   uint32_t mod)
{
	struct mad m = new_mad(f, mgmt_class, method, attr, mod);

	if (mgmt_class == UR_MAD_CLASS_SMP_DR) {
		m = new_dr(f, method, attr, mod, (const uint8_t[]){1}, 1);
		m.b[UR_SMP_HOP_POINTER] = 1;
	}
	if (mgmt_class == VENDOR)
		ur_store24(m.b + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	ur_store64(m.b + (mgmt_class == VENDOR ? UR_VENDOR_KEY : UR_SMP_MKEY),
		   mgmt_class == PERF ? 0 : KEY);
	return m;
}

/* ---- requests without a body that could be wrong ---- */

static const struct row {
	enum where where;
	uint8_t mgmt_class, version, method;
	uint16_t attr;
	uint32_t mod;
	uint16_t status;
} rows[] = {
	/* What is served, so that the rest says something. */
	{BOTH, SMP, 1, GET, UR_SMP_NODE_INFO, 0, OK},
	{BOTH, SMP, 1, GET, UR_SMP_NODE_DESC, 0, OK},
	{BOTH, SMP, 1, GET, UR_SMP_GUID_INFO, 0, OK},
	{BOTH, SMP, 1, GET, UR_SMP_PORT_INFO, 1, OK},
	{BOTH, SMP, 1, GET, UR_SMP_PKEY_TABLE, 0, OK},
	{BOTH, SMP, 1, GET, UR_SMP_SL2VL, 0, OK},
	{BOTH, SMP, 1, GET, UR_SMP_VL_ARB, 4 << 16 | 1, OK},
	{SWITCH, SMP, 1, GET, UR_SMP_SWITCH_INFO, 0, OK},
	{SWITCH, SMP, 1, GET, UR_SMP_LFT, 15, OK},
	{BOTH, PERF, 1, GET, UR_PERF_CLASS_PORT_INFO, 0, OK},
	{BOTH, VENDOR, 1, GET, UR_VENDOR_CLASS_PORT_INFO, 0, OK},
	{BOTH, VENDOR, 1, GET, UR_VENDOR_BIST, 0, OK},
	/* Classes and versions. A version is the first thing that is looked at. */
	{BOTH, UR_MAD_CLASS_SA, 2, GET, 0x35, 0, VERSION},
	{BOTH, UR_MAD_CLASS_SA, 2, 0x12, 0x35, 0, VERSION},
	{BOTH, 0x05, 1, GET, 1, 0, VERSION}, /* baseboard management */
	{BOTH, 0x08, 1, GET, 1, 0, VERSION}, /* SNMP */
	{BOTH, 0x09, 1, GET, 1, 0, VERSION}, /* vendors without an OUI */
	{BOTH, 0x33, 1, GET, 1, 0, VERSION}, /* with one */
	{BOTH, 0x21, 1, SET, 1, 0, VERSION}, /* congestion control */
	{BOTH, 0x00, 1, GET, 1, 0, VERSION},
	{BOTH, 0xff, 1, GET, 1, 0, VERSION},
	{BOTH, SMP, 0, GET, UR_SMP_NODE_INFO, 0, VERSION},
	{BOTH, SMP, 2, SET, UR_SMP_PORT_INFO, 1, VERSION},
	{BOTH, SMP, 255, 0x12, 0x7777, 0, VERSION},
	{BOTH, PERF, 2, GET, UR_PERF_CLASS_PORT_INFO, 0, VERSION},
	{BOTH, VENDOR, 2, SET, UR_VENDOR_REGISTERS, 0, VERSION},
	/* Methods, ahead of attributes. */
	{BOTH, SMP, 1, 0x12, UR_SMP_NODE_INFO, 0, METHOD},
	{BOTH, SMP, 1, 0x13, UR_SMP_NODE_INFO, 0, METHOD},
	{BOTH, SMP, 1, 0x14, 0x7777, 0, METHOD},
	{BOTH, SMP, 1, 0x15, UR_SMP_PORT_INFO, 9, METHOD},
	{BOTH, SMP, 1, 0x12, UR_SMP_EEPROM, 0, METHOD},
	{BOTH, PERF, 1, 0x12, UR_PERF_PORT_COUNTERS, 0, METHOD},
	{BOTH, PERF, 1, 0x15, 0x7777, 0, METHOD},
	{BOTH, VENDOR, 1, 0x12, UR_VENDOR_REGISTERS, 0, METHOD},
	{BOTH, VENDOR, 1, 0x14, UR_VENDOR_EEPROM, 0, METHOD},
	/* Attributes, and methods that they do not have. */
	{BOTH, SMP, 1, GET, 0x0000, 0, ATTRIBUTE},
	{BOTH, SMP, 1, GET, UR_SMP_NOTICE, 0, ATTRIBUTE},
	{BOTH, SMP, 1, SET, UR_SMP_NOTICE, 0, ATTRIBUTE},
	{BOTH, SMP, 1, SET, UR_SMP_NODE_INFO, 0, ATTRIBUTE},
	{BOTH, SMP, 1, SET, UR_SMP_NODE_DESC, 0, ATTRIBUTE},
	{BOTH, SMP, 1, GET, 0x001a, 0, ATTRIBUTE}, /* RandomForwardingTable */
	{BOTH, SMP, 1, GET, UR_SMP_MFT, 0, ATTRIBUTE},
	{BOTH, SMP, 1, SET, UR_SMP_MFT, 0, ATTRIBUTE},
	{BOTH, SMP, 1, GET, UR_SMP_SM_INFO, 0, ATTRIBUTE},
	{BOTH, SMP, 1, SET, UR_SMP_SM_INFO, 1, ATTRIBUTE},
	{BOTH, SMP, 1, GET, 0x0030, 0, ATTRIBUTE}, /* VendorDiag */
	{BOTH, SMP, 1, GET, UR_SMP_LED_INFO, 0, ATTRIBUTE},
	{BOTH, SMP, 1, GET, UR_SMP_MANAGER, 0, ATTRIBUTE},
	{BOTH, SMP, 1, GET, UR_SMP_ROUTE, 0, ATTRIBUTE}, /* neither has this function */
	{BOTH, SMP, 1, GET, 0xffff, 0, ATTRIBUTE},
	{CA, SMP, 1, GET, UR_SMP_SWITCH_INFO, 0, ATTRIBUTE},
	{CA, SMP, 1, SET, UR_SMP_SWITCH_INFO, 0, ATTRIBUTE},
	{CA, SMP, 1, GET, UR_SMP_LFT, 0, ATTRIBUTE},
	{CA, SMP, 1, SET, UR_SMP_LFT, 0, ATTRIBUTE},
	{BOTH, PERF, 1, SET, UR_PERF_CLASS_PORT_INFO, 0, ATTRIBUTE},
	{BOTH, PERF, 1, GET, 0x0010, 0, ATTRIBUTE}, /* PortSamplesControl */
	{BOTH, PERF, 1, GET, 0x0000, 0, ATTRIBUTE},
	{BOTH, VENDOR, 1, SET, UR_VENDOR_CLASS_PORT_INFO, 0, ATTRIBUTE},
	{BOTH, VENDOR, 1, SET, UR_VENDOR_BIST, 0, ATTRIBUTE},
	{BOTH, VENDOR, 1, GET, 0x0013, 0, ATTRIBUTE},
	/* Modifiers. */
	{BOTH, SMP, 1, GET, UR_SMP_PORT_INFO, FABRIC_PORTS + 1, VALUE},
	{CA, SMP, 1, GET, UR_SMP_PORT_INFO, 2, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_PORT_INFO, 255, VALUE},
	{BOTH, SMP, 1, SET, UR_SMP_PORT_INFO, FABRIC_PORTS + 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_GUID_INFO, 1, VALUE},
	{BOTH, SMP, 1, SET, UR_SMP_GUID_INFO, 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_PKEY_TABLE, 1, VALUE},
	{BOTH, SMP, 1, SET, UR_SMP_PKEY_TABLE, 1, VALUE},
	{SWITCH, SMP, 1, GET, UR_SMP_PKEY_TABLE, 1 << 16, VALUE}, /* of an external port */
	{SWITCH, SMP, 1, GET, UR_SMP_SL2VL, FABRIC_PORTS + 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_SL2VL, (FABRIC_PORTS + 1) << 8 | 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_VL_ARB, 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_VL_ARB, 5 << 16 | 1, VALUE},
	{BOTH, SMP, 1, GET, UR_SMP_VL_ARB, 1 << 16 | (FABRIC_PORTS + 1), VALUE},
	{SWITCH, SMP, 1, GET, UR_SMP_LFT, 16, VALUE},
	{SWITCH, SMP, 1, SET, UR_SMP_LFT, 16, VALUE},
	{SWITCH, SMP, 1, GET, UR_SMP_LFT, 1 << 16, VALUE},
	/* What is answered by nothing. */
	{BOTH, SMP, 1, 0x03, UR_SMP_NODE_INFO, 0, NONE}, /* Send */
	{BOTH, SMP, 1, UR_MAD_METHOD_TRAP, UR_SMP_NOTICE, 0, NONE},
	{BOTH, SMP, 1, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, NONE},
	{BOTH, SMP, 1, UR_MAD_METHOD_GET_RESP, UR_SMP_NODE_INFO, 0, NONE},
	{BOTH, SMP, 9, UR_MAD_METHOD_GET_RESP, UR_SMP_NODE_INFO, 0, NONE},
	{BOTH, PERF, 1, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, NONE},
	{BOTH, PERF, 1, UR_MAD_METHOD_REPORT, UR_SMP_NOTICE, 0, NONE},
	{BOTH, UR_MAD_CLASS_SA, 2, 0x92, 0x35, 0, NONE},
	{BOTH, UR_MAD_CLASS_CM, 2, UR_MAD_METHOD_SEND, 0x10, 0, NONE},
};

static void expect_row(struct fabric *f, int node, uint8_t mgmt_class, const struct row *r)
{
	struct mad m = make_mad(f, mgmt_class, r->method, r->attr, r->mod);
	uint16_t status;
	char what[96];

	snprintf(what, sizeof(what),
		 "%s, class %#x version %u method %#x attribute %#x modifier %#x",
		 node == 1 ? "switch" : "endpoint", mgmt_class, r->version, r->method, r->attr,
		 r->mod);
	m.b[2] = r->version;
	status = status_at(f, node, &m, what);
	cr_expect_eq(status, r->status, "%s: status %#x, not %#x", what, status, r->status);
}

Test(nma_status, what_is_not_served_has_the_status_that_says_so)
{
	struct fabric *f = make();

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int node = 1; node < 3; node++) {
			const struct row *r = &rows[i];
			unsigned writes = f->node[node].writes;

			if (!(r->where & (node == 1 ? SWITCH : CA)))
				continue;
			expect_row(f, node, r->mgmt_class, r);
			/* A response on a directed route is for the way back. */
			if (r->mgmt_class == SMP && !(r->method & UR_MAD_METHOD_RESPONSE))
				expect_row(f, node, UR_MAD_CLASS_SMP_DR, r);
			cr_expect_eq(f->node[node].writes, writes, "row %u", i);
		}
	fabric_free(f);
}

/* Of a base version that is unknown, nothing else is known. SMPs belong to QP0, and all else to QP1. */
Test(nma_status, what_is_no_mad_has_no_response)
{
	struct fabric *f = make();

	for (int node = 1; node < 3; node++) {
		struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1, .qpn = 1, .sqpn = 1};
		struct mad m = make_mad(f, SMP, GET, UR_SMP_NODE_INFO, 0);

		m.b[0] = 2;
		cr_expect_eq(status_at(f, node, &m, "base version 2"), NONE);
		m.b[0] = 0;
		cr_expect_eq(status_at(f, node, &m, "base version 0"), NONE);
		m.b[0] = 1;
		cr_expect_eq(ur_nma_input(f->node[node].nma, m.b, &from, f->now), UR_DROP_MAD);
		from.qpn = 0;
		m = make_mad(f, PERF, GET, UR_PERF_CLASS_PORT_INFO, 0);
		cr_expect_eq(ur_nma_input(f->node[node].nma, m.b, &from, f->now), UR_DROP_MAD);
		cr_expect(!ur_nma_wants_output(f->node[node].nma));
	}
	fabric_free(f);
}

/* ---- fields of a Set ---- */

/* X(where, port, field, value, status): values that leave the field as it is. */
#define PORT_INFO_NOPS(X)                                                                          \
	X(BOTH, 1, state, UR_PORT_NOP, OK)                                                         \
	X(BOTH, 1, width_enabled, 255, OK)                                                         \
	X(BOTH, 1, speed_enabled, 15, OK)

/* X(where, port, field, value, status) */
#define PORT_INFO_SETS(X)                                                                          \
	X(BOTH, 1, state, UR_PORT_INIT, VALUE)                                                     \
	X(BOTH, 1, state, UR_PORT_ACTIVE, VALUE) /* it is not armed */                             \
	X(BOTH, 1, state, 5, VALUE)                                                                \
	X(BOTH, 1, state, 15, VALUE)                                                               \
	X(SWITCH, 3, state, UR_PORT_ARMED, VALUE) /* it is down */                                 \
	X(BOTH, 1, phys_state, UR_PHYS_SLEEP, VALUE)                                               \
	X(BOTH, 1, phys_state, 4, VALUE)                                                           \
	X(BOTH, 1, phys_state, UR_PHYS_LINK_UP, VALUE)                                             \
	X(BOTH, 1, down_default, 1, OK)                                                            \
	X(BOTH, 1, down_default, 2, OK)                                                            \
	X(BOTH, 1, down_default, 3, VALUE)                                                         \
	X(BOTH, 1, down_default, 15, VALUE)                                                        \
	X(BOTH, 1, width_enabled, 0x80, VALUE)                                                     \
	X(BOTH, 1, speed_enabled, 4, VALUE)                                                        \
	X(BOTH, 1, speed_ext_enabled, 1, VALUE)                                                    \
	X(BOTH, 1, neighbor_mtu, 5, OK)                                                            \
	X(BOTH, 1, neighbor_mtu, 6, VALUE)                                                         \
	X(BOTH, 1, neighbor_mtu, 15, VALUE)                                                        \
	X(BOTH, 1, operational_vls, 5, OK)                                                         \
	X(BOTH, 1, operational_vls, 6, VALUE)                                                      \
	X(BOTH, 1, operational_vls, 15, VALUE)                                                     \
	X(CA, 1, lid, 0xbfff, OK)                                                                  \
	X(CA, 1, lid, 0xc000, VALUE)                                                               \
	X(CA, 1, lid, 0xffff, VALUE)                                                               \
	X(CA, 1, sm_lid, 0xc000, VALUE)                                                            \
	X(CA, 1, lmc, 7, VALUE) /* the LID is not a multiple of 2^LMC */                           \
	X(SWITCH, 0, lid, 0xc000, VALUE)                                                           \
	X(SWITCH, 0, sm_lid, 0xffff, VALUE)                                                        \
	X(SWITCH, 0, lmc, 1, VALUE)

static void read_port(struct fabric *f, int node, uint8_t port, uint8_t data[UR_SMP_DATA_BYTES])
{
	cr_assert(ur_nma_query(f->node[node].nma, UR_SMP_PORT_INFO, port, data));
}

/*
 * A Set that changes one field of a port that has the LID 9, or none. Then is_set() says whether the field is as it was set; NULL:
 * nothing changes.
 */
static void expect_set_at(int node, uint8_t port, void (*change)(struct ur_port_info *info),
			  bool (*is_set)(const struct ur_port_info *info), uint16_t expected,
			  const char *what)
{
	uint8_t before[UR_SMP_DATA_BYTES], after[UR_SMP_DATA_BYTES];
	struct fabric *f = make();
	struct mad m = make_mad(f, SMP, SET, UR_SMP_PORT_INFO, port);
	struct ur_port_info info;
	uint16_t status;

	read_port(f, node, port, before);
	ur_get_port_info(before, &info);
	info.state = UR_PORT_NOP;
	info.phys_state = UR_PHYS_NOP;
	info.down_default = 0;
	info.lid = port == 0 || node == 2 ? 9 : 0;
	info.m_key = KEY;
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert_eq(status_at(f, node, &m, what), OK, "%s: nothing is changed", what);
	read_port(f, node, port, before);
	change(&info);
	m = make_mad(f, SMP, SET, UR_SMP_PORT_INFO, port);
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	status = status_at(f, node, &m, what);
	cr_expect_eq(status, expected, "%s, node %d: status %#x", what, node, status);
	read_port(f, node, port, after);
	ur_get_port_info(after, &info);
	if (expected || !is_set)
		cr_expect_arr_eq(after, before, sizeof(after), "%s, node %d: changed", what, node);
	else
		cr_expect(is_set(&info), "%s, node %d: not set", what, node);
	fabric_free(f);
}

static void expect_set(enum where where, uint8_t port, void (*change)(struct ur_port_info *info),
		       bool (*is_set)(const struct ur_port_info *info), uint16_t expected,
		       const char *what)
{
	if (where & SWITCH)
		expect_set_at(1, port, change, is_set, expected, what);
	if (where & CA)
		expect_set_at(2, port, change, is_set, expected, what);
}

#define X(where, port, field, number, status)                                                      \
	static void set_##where##_##port##_##field##_##number(struct ur_port_info *info)           \
	{                                                                                          \
		info->field = number;                                                              \
	}
PORT_INFO_NOPS(X)
PORT_INFO_SETS(X)
#undef X

#define X(where, port, field, number, status)                                                      \
	static bool is_##where##_##port##_##field##_##number(const struct ur_port_info *info)      \
	{                                                                                          \
		return info->field == number;                                                      \
	}
PORT_INFO_SETS(X)
#undef X

/* MGMT-STATUS-02 */
Test(nma_status, a_field_of_port_info_with_an_invalid_value_changes_nothing)
{
#define X(where, port, field, number, status)                                                      \
	expect_set(where, port, set_##where##_##port##_##field##_##number, NULL, status,           \
		   #field " " #number);
	PORT_INFO_NOPS(X)
#undef X
#define X(where, port, field, number, status)                                                      \
	expect_set(where, port, set_##where##_##port##_##field##_##number,                         \
		   is_##where##_##port##_##field##_##number, status, #field " " #number);
	PORT_INFO_SETS(X)
#undef X
}

/* MGMT-STATUS-02 */
Test(nma_status, other_attributes_with_an_invalid_value_change_nothing)
{
	struct fabric *f = make();
	struct fabric_node *n = &f->node[1];
	struct mad m = make_mad(f, SMP, SET, UR_SMP_LFT, 0);
	struct ur_switch_info info = {.linear_fdb_top = 1024};
	unsigned writes = n->writes;

	memset(m.b + UR_SMP_DATA, 0xff, 64);
	m.b[UR_SMP_DATA + 63] = FABRIC_PORTS + 1;
	cr_expect_eq(status_at(f, 1, &m, "LFT"), VALUE);
	m = make_mad(f, SMP, SET, UR_SMP_SWITCH_INFO, 0);
	ur_put_switch_info(m.b + UR_SMP_DATA, &info);
	cr_expect_eq(status_at(f, 1, &m, "SwitchInfo"), VALUE);
	m = make_mad(f, SMP, SET, UR_SMP_SL2VL, 1);
	memset(m.b + UR_SMP_DATA, 0xff, 8); /* no SL has a lane */
	cr_expect_eq(status_at(f, 1, &m, "SL2VL"), VALUE);
	m = make_mad(f, SMP, SET, UR_SMP_VL_ARB, 1 << 16 | 1);
	memset(m.b + UR_SMP_DATA, 15, 64); /* VL15 is not arbitrated */
	cr_expect_eq(status_at(f, 1, &m, "VLArbitration"), VALUE);
	m = make_mad(f, PERF, GET, UR_PERF_PORT_COUNTERS, 0);
	m.b[UR_GMP_DATA + 1] = FABRIC_PORTS + 1;
	cr_expect_eq(status_at(f, 1, &m, "PortCounters"), VALUE);
	cr_expect_eq(status_at(f, 2, &m, "PortCounters"), VALUE);
	m = make_mad(f, PERF, SET, UR_PERF_PORT_COUNTERS_EXT, 0);
	m.b[UR_GMP_DATA + 1] = 0xfe;
	cr_expect_eq(status_at(f, 1, &m, "PortCountersExtended"), VALUE);
	m = make_mad(f, VENDOR, GET, UR_VENDOR_REGISTERS, 0); /* of no registers */
	cr_expect_eq(status_at(f, 1, &m, "registers"), VALUE);
	m = make_mad(f, SMP, SET, UR_SMP_EEPROM, 0);
	m.b[UR_SMP_DATA] = UR_EEPROM_MAX + 1;
	cr_expect_eq(status_at(f, 2, &m, "E2PROM"), VALUE);
	cr_expect_eq(n->writes, writes);
	fabric_free(f);
}
