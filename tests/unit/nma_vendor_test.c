/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include "mgmt/registers.h"
#include "wire/perf.h"

/*
 * Registers, E2PROM, fault reports, link test, neighbours. The manager is on node 0; switch 1 is at its port, switch 2
 * behind it.
 */
#define KEY UINT64_C(0x1122334455667788)
#define MS  UINT64_C(1000000)

static struct fabric *keyed_row(struct ur_nma_config config)
{
	struct fabric *f = fabric_new();

	fabric_add(f, false, NULL);
	for (int i = 1; i < 3; i++) {
		struct ur_nma_attr attr = fabric_attr(true, i);

		attr.config = config;
		fabric_add(f, true, &attr);
		fabric_join(f, i - 1, i == 1 ? 1 : 2, i, 1);
	}
	fabric_run(f);
	return f;
}

static struct fabric *row(void)
{
	return keyed_row((struct ur_nma_config){.m_key = KEY, .protect = 1});
}

static const uint8_t route[] = {1, 2};

/* Asks for registers of switch 2 by directed route. Returns enum ur_vendor_error. */
static unsigned registers(struct fabric *f, uint8_t method, uint64_t key, struct ur_registers *r)
{
	struct mad m = new_dr(f, method, UR_SMP_REGISTERS, 0, route, 2), answer;

	ur_store64(m.b + UR_SMP_MKEY, key);
	ur_put_registers(m.b + UR_SMP_DATA, r);
	if (!ask(f, 0, &m, 0, &answer))
		return 99;
	ur_get_registers(answer.b + UR_SMP_DATA, r);
	cr_assert((status_of(&answer) == UR_MAD_STATUS_VALUE) == (r->error != 0));
	return r->error;
}

static uint64_t read_reg(struct fabric *f, enum ur_register_id id, uint8_t port)
{
	struct ur_registers r = {.count = 1, .address0 = ur_register_address(id, port)};

	cr_assert(registers(f, UR_MAD_METHOD_GET, 0, &r) == 0, "%s", ur_registers[id].name);
	return r.value0;
}

static unsigned write_reg(struct fabric *f, enum ur_register_id id, uint8_t port, uint64_t value)
{
	struct ur_registers r = {
		.count = 1, .address0 = ur_register_address(id, port), .value0 = value};

	return registers(f, UR_MAD_METHOD_SET, KEY, &r);
}

/* MGMT-REG-01: every row of the table, read and written. */
Test(nma_vendor, every_register_reads_and_writes_as_its_row_says)
{
	for (unsigned i = 0; i < UR_REGISTER_CNT; i++) {
		struct fabric *f = row();
		const struct ur_register *reg = &ur_registers[i];
		uint8_t port = 0;
		unsigned error;

		cr_assert(ur_register_at(ur_register_address(i, 2), &port) == i, "%s", reg->name);
		cr_assert(port == (reg->scope == UR_REG_PORT ? 2 : 0));
		if (reg->access == UR_REG_RW)
			cr_assert(read_reg(f, i, 2) == reg->initial, "%s", reg->name);
		error = write_reg(f, i, 2, reg->max);
		cr_assert(error == (reg->access == UR_REG_RO ? UR_VENDOR_ERROR_ACCESS : 0), "%s",
			  reg->name);
		if (reg->access == UR_REG_RW)
			cr_assert(read_reg(f, i, 2) == reg->max, "%s", reg->name);
		if (reg->access != UR_REG_RO && reg->max < UINT64_MAX)
			cr_assert(write_reg(f, i, 2, reg->max + 1) == UR_VENDOR_ERROR_VALUE, "%s",
				  reg->name);
		fabric_free(f);
	}
}

Test(nma_vendor, two_registers_cost_one_request_and_are_written_both_or_none)
{
	struct fabric *f = row();
	struct ur_registers r = {.count = 2,
				 .address0 = ur_register_address(UR_NODE_SCRATCH, 0),
				 .address1 = ur_register_address(UR_NODE_NODE_GUID, 0),
				 .value0 = 5};
	unsigned before = f->carried;

	cr_assert(registers(f, UR_MAD_METHOD_GET, 0, &r) == 0);
	cr_assert(f->carried - before == 4);
	cr_assert(r.value0 == 0 && r.value1 == 0x1002);
	r.value0 = 5;
	cr_assert(registers(f, UR_MAD_METHOD_SET, KEY, &r) == UR_VENDOR_ERROR_ACCESS &&
		  r.entry == 1);
	cr_assert(read_reg(f, UR_NODE_SCRATCH, 0) == 0);
	r.address1 = ur_register_address(UR_NODE_LOAD_LIMIT, 0);
	r.value1 = 500;
	cr_assert(registers(f, UR_MAD_METHOD_SET, KEY, &r) == 0);
	cr_assert(read_reg(f, UR_NODE_SCRATCH, 0) == 5 &&
		  read_reg(f, UR_NODE_LOAD_LIMIT, 0) == 500);
	for (unsigned count = 0; count < 256; count++) {
		r.count = (uint8_t)count;
		cr_assert((registers(f, UR_MAD_METHOD_GET, 0, &r) == UR_VENDOR_ERROR_COUNT) ==
			  (count < 1 || count > 2));
	}
	fabric_free(f);
}

Test(nma_vendor, addresses_without_a_register_are_refused)
{
	struct fabric *f = row();
	unsigned found = 0;

	for (unsigned address = 0; address < 65536; address += address < 0x1000 ? 1 : 61) {
		struct ur_registers r = {.count = 1, .address0 = (uint16_t)address};
		uint8_t port;
		bool exists = ur_register_at((uint16_t)address, &port) != UR_REGISTER_CNT &&
			      port <= FABRIC_PORTS && address < UR_SWITCH_REGISTERS;
		unsigned error = registers(f, UR_MAD_METHOD_GET, 0, &r);

		cr_assert(error == (exists ? 0 : UR_VENDOR_ERROR_ADDRESS), "%#x", address);
		found += exists;
	}
	cr_assert(found > UR_REGISTER_CNT);
	fabric_free(f);
}

/* MGMT-KEY-04 */
Test(nma_vendor, a_write_needs_the_key_even_where_the_port_has_none)
{
	static const struct {
		struct ur_nma_config config;
		uint64_t key;
		unsigned error;
	} is[] = {
		{{.m_key = KEY, .protect = 1}, KEY, 0},
		{{.m_key = KEY, .protect = 1},
		 1,
		 99}, /* discarded, as every SMP with a wrong key */
		{{.m_key = KEY, .protect = 0}, 0, 99},
		{{.m_key = 0}, 0, UR_VENDOR_ERROR_KEY},
		{{.m_key = 0}, KEY, UR_VENDOR_ERROR_KEY},
		{{.m_key = 0, .open = true}, 0, 0},
	};

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		struct fabric *f = keyed_row(is[i].config);
		struct ur_registers r = {.count = 1,
					 .address0 = ur_register_address(UR_NODE_SCRATCH, 0),
					 .value0 = 7};

		cr_assert(registers(f, UR_MAD_METHOD_SET, is[i].key, &r) == is[i].error, "case %u",
			  i);
		cr_assert(read_reg(f, UR_NODE_SCRATCH, 0) == (is[i].error ? 0 : 7));
		fabric_free(f);
	}
}

/* The same in the vendor class, to the neighbour's address. */
static bool vendor(struct fabric *f, uint8_t method, uint64_t key, struct ur_registers *r)
{
	struct mad m = new_mad(f, UR_MAD_CLASS_VENDOR, method, UR_VENDOR_REGISTERS, 0);
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1, .qpn = 1, .sqpn = 1};
	struct ur_nma_out out;

	ur_store24(m.b + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	ur_store64(m.b + UR_VENDOR_KEY, key);
	ur_put_registers(m.b + UR_VENDOR_BODY, r);
	ur_nma_input(f->node[2].nma, m.b, &from, f->now);
	if (!ur_nma_output(f->node[2].nma, &out, f->now))
		return false;
	cr_assert(out.to.way == UR_MAD_HOP && out.to.port == 1 && out.to.dqpn == 1);
	cr_assert(ur_load24(out.mad + UR_VENDOR_OUI_AT) == UR_VENDOR_OUI);
	ur_get_registers(out.mad + UR_VENDOR_BODY, r);
	return true;
}

Test(nma_vendor, the_vendor_class_has_the_same_registers_and_the_same_key)
{
	struct fabric *f = row();
	struct ur_registers r = {.count = 1, .address0 = ur_register_address(UR_NODE_NODE_GUID, 0)};

	cr_assert(vendor(f, UR_MAD_METHOD_GET, 0, &r) && r.value0 == 0x1002 && !r.error);
	r = (struct ur_registers){
		.count = 1, .address0 = ur_register_address(UR_NODE_SCRATCH, 0), .value0 = 3};
	cr_assert(vendor(f, UR_MAD_METHOD_SET, 0, &r) && r.error == UR_VENDOR_ERROR_KEY);
	cr_assert(vendor(f, UR_MAD_METHOD_SET, KEY, &r) && !r.error);
	cr_assert(read_reg(f, UR_NODE_SCRATCH, 0) == 3);
	fabric_free(f);
}

/* MGMT-KEY-01: what SMPs cannot read the vendor class cannot read either. */
Test(nma_vendor, protect_bits_hold_for_the_vendor_class)
{
	struct fabric *f = keyed_row((struct ur_nma_config){.m_key = KEY, .protect = 2});
	struct ur_registers r = {.count = 1, .address0 = ur_register_address(UR_NODE_NODE_GUID, 0)};

	cr_assert(vendor(f, UR_MAD_METHOD_GET, 0, &r) && r.error == UR_VENDOR_ERROR_KEY &&
		  !r.value0);
	r.error = 0;
	cr_assert(vendor(f, UR_MAD_METHOD_GET, KEY, &r) && !r.error && r.value0 == 0x1002);
	fabric_free(f);
}

/* ---- E2PROM: MGMT-EEPROM-01 ---- */

static struct mad eeprom(struct fabric *f, uint8_t method, const struct ur_eeprom *e)
{
	struct mad m = new_dr(f, method, UR_SMP_EEPROM, 0, route, 2);

	ur_store64(m.b + UR_SMP_MKEY, KEY);
	ur_put_eeprom(m.b + UR_SMP_DATA, e);
	return m;
}

Test(nma_vendor, the_eeprom_takes_its_time_and_holds_up_nothing_else)
{
	struct fabric *f = row();
	struct ur_eeprom e = {
		.count = 6, .address = {0, 1, 2, 65535, 100, 101}, .value = {1, 2, 3, 4, 5, 6}};
	struct mad write = eeprom(f, UR_MAD_METHOD_SET, &e),
		   read = eeprom(f, UR_MAD_METHOD_GET, &e), r;

	cr_assert(!ask(f, 0, &write, 0, &r));
	cr_assert(f->node[2].writes == 0);
	cr_assert(read_reg(f, UR_NODE_NODE_TYPE, 0) == UR_NODE_SWITCH); /* answered at once */
	cr_assert(ask(f, 0, &read, 0, &r) && status_of(&r) == UR_MAD_STATUS_BUSY);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 18 * MS - 1);
	cr_assert(f->node[0].inbox_cnt == 0);
	/* Repeated while it works: executed once. */
	send_mad(f, 0, &write, 0);
	fabric_sleep(f, 1);
	cr_assert(f->node[0].inbox_cnt == 1 && f->node[2].writes == 6);
	cr_assert(f->node[2].eeprom[65535] == 4);
	f->node[0].inbox_cnt = 0;
	read = eeprom(f, UR_MAD_METHOD_GET, &e);
	send_mad(f, 0, &read, 0);
	fabric_sleep(f, 900000 - 1);
	cr_assert(f->node[0].inbox_cnt == 0);
	fabric_sleep(f, 1);
	cr_assert(f->node[0].inbox_cnt == 1);
	ur_get_eeprom(f->node[0].inbox[0].mad + UR_SMP_DATA, &e);
	for (unsigned i = 0; i < 6; i++)
		cr_assert(e.value[i] == i + 1);
	fabric_free(f);
}

/*
 * MGMT-EEPROM-02: one requester asks again and again as soon as it is answered; the request of another one is done between two
 * of them.
 */
Test(nma_vendor, a_second_reader_of_the_eeprom_is_not_starved)
{
	struct fabric *f = row();
	struct ur_eeprom e = {.count = 6, .address = {0, 1, 2, 3, 4, 5}};
	struct mad first = eeprom(f, UR_MAD_METHOD_GET, &e), again, r;
	struct ur_nma *nma = f->node[2].nma;
	struct ur_nma_from from = {.way = UR_MAD_LID, .port = 1, .qpn = 1, .sqpn = 1, .slid = 9};
	uint8_t gmp[UR_MAD_BYTES] = {1, UR_MAD_CLASS_VENDOR, 1, UR_MAD_METHOD_GET};
	struct ur_nma_out out;
	unsigned busy = 0;

	cr_assert(!ask(f, 0, &first, 0, &r));
	ur_store64(gmp + 8, 77);
	ur_store16(gmp + 16, UR_VENDOR_EEPROM);
	ur_store24(gmp + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	ur_put_eeprom(gmp + UR_VENDOR_BODY, &e);
	cr_assert(ur_nma_input(nma, gmp, &from, f->now) == UR_DROP_NONE);
	cr_assert(!ur_nma_output(nma, &out, f->now), "it waits, and is not told that it is busy");
	again = eeprom(f, UR_MAD_METHOD_GET, &e);
	cr_assert(ask(f, 0, &again, 0, &r) && status_of(&r) == UR_MAD_STATUS_BUSY);
	for (unsigned slid = 10; slid < 20; slid++) {
		from.slid = (uint16_t)slid;
		cr_assert(ur_nma_input(nma, gmp, &from, f->now) == UR_DROP_NONE);
		busy += ur_nma_output(nma, &out, f->now) &&
			ur_load16(out.mad + 4) == UR_MAD_STATUS_BUSY;
	}
	cr_assert(busy == 9, "how many wait is bounded");
	ur_nma_validate(nma);
	f->now += 900000;
	cr_assert(ur_nma_output(nma, &out, f->now) && out.mad[1] == UR_MAD_CLASS_SMP_DR);
	cr_assert(!ur_nma_output(nma, &out, f->now));
	f->now += 900000;
	cr_assert(ur_nma_output(nma, &out, f->now) && out.to.dlid == 9 && !ur_load16(out.mad + 4));
	f->now += 900000;
	cr_assert(ur_nma_output(nma, &out, f->now) && out.to.dlid == 10);
	fabric_free(f);
}

Test(nma_vendor, registers_have_the_values_in_the_eeprom_at_power_up)
{
	struct fabric *f = fabric_new();
	struct ur_nma_attr attr = fabric_attr(true, 1);
	uint8_t *chip = malloc(UR_EEPROM_BYTES);
	static const struct {
		enum ur_register_id id;
		uint64_t value;
	} stored[] = {{UR_NODE_SCRATCH, 77},
		      {UR_NODE_NODE_GUID, 1},
		      {UR_NODE_LOAD_LIMIT, 9999},
		      {UR_NODE_RING_LIMIT, 10}};
	void *memory = aligned_alloc(64, ur_nma_size(&attr.limits));
	struct fabric_node *n = &f->node[0];

	memset(chip, 0xff, UR_EEPROM_BYTES);
	memcpy(chip, "URN1", 4);
	for (unsigned i = 0; i < 4; i++) {
		ur_store16(chip + 4 + 10 * i, ur_register_address(stored[i].id, 0));
		ur_store64(chip + 6 + 10 * i, stored[i].value);
	}
	n->eeprom = chip;
	n->is_switch = true;
	f->cnt = 1;
	for (unsigned p = 0; p <= FABRIC_PORTS; p++)
		n->peer[p].node = -1;
	attr.ctx = n;
	n->nma = ur_nma_init(memory, &attr, 1);
	for (unsigned i = 0; i < 4; i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, NULL, 0), r;
		struct ur_registers reg = {.count = 1,
					   .address0 = ur_register_address(stored[i].id, 0)};
		static const uint64_t expected[] = {77, 0x1001, 950, 10};

		ur_put_registers(m.b + UR_SMP_DATA, &reg);
		cr_assert(ask(f, 0, &m, 0, &r));
		ur_get_registers(r.b + UR_SMP_DATA, &reg);
		cr_assert(reg.value0 == expected[i], "%s", ur_registers[stored[i].id].name);
	}
	fabric_free(f);
}

/* ---- fault reports: MGMT-FAULT-01 ---- */

/* The reports and traps in the manager's inbox; each is repressed. */
static unsigned take_notices(struct fabric *f, struct ur_notice *head, struct ur_fault *fault)
{
	struct fabric_node *n = &f->node[0];
	unsigned cnt = n->inbox_cnt;

	for (unsigned i = 0; i < cnt; i++) {
		const uint8_t *data = n->inbox[i].mad + UR_SMP_DATA;

		cr_assert(n->inbox[i].mad[3] == UR_MAD_METHOD_TRAP);
		ur_get_notice(data, head);
		ur_get_fault(data + UR_NOTICE_DETAILS, fault);
	}
	n->inbox_cnt = 0;
	return cnt;
}

static void enable_faults(struct fabric *f, uint64_t causes)
{
	cr_assert(write_reg(f, UR_NODE_FAULT_HERE, 0, 1) == 0);
	cr_assert(write_reg(f, UR_NODE_FAULT_ENABLE, 0, causes) == 0);
	cr_assert(write_reg(f, UR_NODE_FAULT_STATUS, 0, UINT32_MAX) == 0); /* the links came up */
	f->node[0].inbox_cnt = 0;
}

Test(nma_vendor, a_hot_node_is_reported_along_the_route_of_its_manager)
{
	struct fabric *f = row();
	struct ur_notice head;
	struct ur_fault fault;
	struct mad repress;
	uint32_t first;

	enable_faults(f, 1u << UR_FAULT_HOT);
	f->node[2].gauges.load = 960;
	fabric_sleep(f, 99 * MS);
	cr_assert(f->node[0].inbox_cnt == 0);
	fabric_sleep(f, 1 * MS);
	cr_assert(f->node[0].inbox_cnt == 1);
	cr_assert(f->node[0].inbox[0].mad[1] == UR_MAD_CLASS_SMP_DR);
	repress = new_dr(f, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, route, 2);
	memcpy(repress.b + 8, f->node[0].inbox[0].mad + 8, 8);
	ur_store64(repress.b + UR_SMP_MKEY, KEY);
	cr_assert(take_notices(f, &head, &fault) == 1);
	cr_assert(!head.is_generic && head.producer == UR_VENDOR_OUI &&
		  head.trap == UR_FAULT_NOTICE);
	cr_assert(fault.cause == UR_FAULT_HOT && fault.severity == UR_SEVERITY_ERROR);
	first = fault.sequence;
	cr_assert(fault.value == 960 && fault.limit == 950 && fault.node_guid == 0x1002);
	/* Repeated until it is repressed, at most eight times. */
	fabric_sleep(f, 1000 * MS);
	cr_assert(take_notices(f, &head, &fault) == 1 && fault.sequence == first);
	send_mad(f, 0, &repress, 0);
	fabric_sleep(f, 20000 * MS);
	cr_assert(take_notices(f, &head, &fault) == 0, "it stays hot: no other report");
	f->node[2].gauges.load = 10;
	fabric_sleep(f, 200 * MS);
	f->node[2].gauges.load = 990;
	fabric_sleep(f, 20000 * MS);
	cr_assert(take_notices(f, &head, &fault) == 8 && fault.sequence == first + 1);
	cr_assert(ur_nma_stats(f->node[2].nma)->notices_lost == 1);
	fabric_free(f);
}

Test(nma_vendor, bursts_and_links_are_reported_and_masked_causes_are_not)
{
	struct fabric *f = row();
	struct ur_notice head;
	struct ur_fault fault;

	enable_faults(f, UINT32_MAX);
	cr_assert(write_reg(f, UR_NODE_FAULT_MASK, 0, 1u << UR_FAULT_RETRANSMITS) == 0);
	f->node[0].inbox_cnt = 0;
	f->node[2].counters[1].rx_errors += 101;
	f->node[2].counters[1].retransmitted += 100000;
	fabric_sleep(f, 100 * MS);
	cr_assert(take_notices(f, &head, &fault) == 1);
	cr_assert(fault.cause == UR_FAULT_ERROR_BURST && fault.port == 1 && fault.value == 101);
	fabric_sleep(f, 10000 * MS);
	take_notices(f, &head, &fault);
	cr_assert(read_reg(f, UR_NODE_FAULT_STATUS, 0) ==
		  (1u << UR_FAULT_ERROR_BURST | 1u << UR_FAULT_RETRANSMITS));
	cr_assert(write_reg(f, UR_NODE_FAULT_STATUS, 0, 1u << UR_FAULT_ERROR_BURST) == 0);
	cr_assert(read_reg(f, UR_NODE_FAULT_STATUS, 0) == 1u << UR_FAULT_RETRANSMITS);
	f->node[0].inbox_cnt = 0;
	f->node[2].peer[3].node = 0; /* comes up, and goes down */
	ur_nma_link_event(f->node[2].nma, 3, f->now);
	fabric_run(f);
	cr_assert(take_notices(f, &head, &fault) == 1);
	cr_assert(fault.cause == UR_FAULT_LINK_UP && fault.port == 3);
	f->node[2].peer[3].node = -1;
	ur_nma_link_event(f->node[2].nma, 3, f->now);
	fabric_run(f);
	cr_assert(take_notices(f, &head, &fault) == 1);
	cr_assert(fault.cause == UR_FAULT_LINK_DOWN && fault.severity == UR_SEVERITY_CRITICAL);
	fabric_free(f);
}

static void set_link(struct fabric *f, bool up)
{
	f->node[2].peer[3].node = up ? 0 : -1;
	ur_nma_link_event(f->node[2].nma, 3, f->now);
}

/* A manager asks for the last fault, and confirms no other: what waits for that must not be older. */
Test(nma_vendor, a_report_that_waits_has_the_newest_fault)
{
	struct fabric *f = row();
	struct ur_notice head;
	struct ur_fault fault;
	bool reported = false;
	uint64_t last;
	unsigned cnt;

	enable_faults(f, UINT32_MAX);
	set_link(f, true);
	set_link(f, false);
	set_link(f, true);
	fabric_run(f);
	f->node[0].inbox_cnt = 0; /* lost, or denied: the last fault is that the link is up */
	set_link(f, false);
	last = read_reg(f, UR_NODE_FAULT_COUNT, 0);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 1000 * MS);
	cnt = f->node[0].inbox_cnt;
	for (unsigned i = 0; i < cnt; i++) {
		ur_get_notice(f->node[0].inbox[i].mad + UR_SMP_DATA, &head);
		ur_get_fault(f->node[0].inbox[i].mad + UR_SMP_DATA + UR_NOTICE_DETAILS, &fault);
		reported |= fault.cause == UR_FAULT_LINK_DOWN && fault.sequence == last;
	}
	cr_assert(reported, "none of %u reports has the last fault", cnt);
	fabric_free(f);
}

/* ---- traps: MGMT-TRAP-01 ---- */

/* Node 2 has LID 3, and node 0, LID 1, is its subnet manager. */
static struct fabric *managed_row(void)
{
	struct fabric *f = keyed_row((struct ur_nma_config){0});
	struct ur_port_info info = {.lid = 3, .sm_lid = 1};
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, route, 2), r;

	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	f->node[1].lft[1] = f->node[2].lft[1] = 1;
	f->node[1].lft[3] = 2;
	f->node[0].inbox_cnt = 0;
	return f;
}

Test(nma_vendor, traps_go_to_the_subnet_manager_until_they_are_repressed)
{
	struct fabric *f = managed_row();
	struct ur_notice head;
	struct mad m, r;

	ur_nma_trap(f->node[2].nma, UR_TRAP_LINK_INTEGRITY, 4);
	ur_nma_trap(f->node[2].nma, UR_TRAP_LINK_INTEGRITY, 4); /* the same: counted, not sent */
	fabric_run(f);
	cr_assert(f->node[0].inbox_cnt == 1);
	memcpy(m.b, f->node[0].inbox[0].mad, UR_MAD_BYTES);
	cr_assert(m.b[1] == UR_MAD_CLASS_SMP_LID && m.b[3] == UR_MAD_METHOD_TRAP);
	ur_get_notice(m.b + UR_SMP_DATA, &head);
	cr_assert(head.is_generic && head.trap == 129 && head.type == 1 && head.issuer_lid == 3);
	cr_assert(head.producer == UR_NODE_SWITCH && head.count == 2);
	cr_assert(ur_load16(m.b + UR_SMP_DATA + 12) == 3 && m.b[UR_SMP_DATA + 14] == 4);
	/* REQ: MGMT-TRAP-02: the same in another class ends nothing. */
	r = m;
	r.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
	r.b[1] = UR_MAD_CLASS_PERF;
	send_mad(f, 0, &r, 3);
	r.b[1] = UR_MAD_CLASS_VENDOR;
	ur_store24(r.b + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	send_mad(f, 0, &r, 3);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 1500 * MS);
	cr_assert(f->node[0].inbox_cnt == 1);
	m.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
	send_mad(f, 0, &m, 3);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 5000 * MS);
	cr_assert(f->node[0].inbox_cnt == 0);
	/* 128: one for all ports. */
	f->node[2].peer[3].node = 0;
	ur_nma_link_event(f->node[2].nma, 3, f->now);
	fabric_run(f);
	cr_assert(f->node[0].inbox_cnt == 1);
	ur_get_notice(f->node[0].inbox[0].mad + UR_SMP_DATA, &head);
	cr_assert(head.trap == 128);
	fabric_free(f);
}

/* A subnet manager that read the ports before the second event would otherwise never look again. */
Test(nma_vendor, a_repress_of_what_was_before_ends_no_trap_of_what_came_after)
{
	struct fabric *f = managed_row();
	struct ur_notice head;
	struct mad m, first;

	set_link(f, true);
	fabric_run(f);
	cr_assert(f->node[0].inbox_cnt == 1);
	memcpy(first.b, f->node[0].inbox[0].mad, UR_MAD_BYTES);
	set_link(f, false);
	/* REQ: MGMT-TRAP-03 */
	first.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
	send_mad(f, 0, &first, 3);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 1500 * MS);
	cr_assert(f->node[0].inbox_cnt == 1, "%u traps of the second event", f->node[0].inbox_cnt);
	memcpy(m.b, f->node[0].inbox[0].mad, UR_MAD_BYTES);
	ur_get_notice(m.b + UR_SMP_DATA, &head);
	cr_assert(head.trap == UR_TRAP_LINK_STATE && head.count == 2);
	m.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
	send_mad(f, 0, &m, 3);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 5000 * MS);
	cr_assert(f->node[0].inbox_cnt == 0);
	fabric_free(f);
}

/* REQ: MGMT-TRAP-03: and what waits is no older than the last event. */
Test(nma_vendor, a_trap_that_waits_has_the_newest_capabilities)
{
	struct fabric *f = managed_row();
	struct ur_nma *nma = f->node[2].nma;
	const uint8_t *mask = f->node[0].inbox[0].mad + UR_SMP_DATA + UR_NOTICE_DETAILS + 6;

	ur_nma_set_client(nma, true, true);
	fabric_run(f);
	cr_assert(f->node[0].inbox_cnt == 1 && ur_load32(mask) & UR_PORT_CAP_SM);
	ur_nma_set_client(nma, true, false);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 1500 * MS);
	cr_assert(f->node[0].inbox_cnt == 1 && !(ur_load32(mask) & UR_PORT_CAP_SM));
	fabric_free(f);
}

Test(nma_vendor, a_bad_key_is_reported_to_the_subnet_manager)
{
	struct fabric *f = row();
	struct ur_port_info info = {.m_key = KEY, .m_key_protect = 1, .lid = 3, .sm_lid = 1};
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, route, 2), r;
	struct ur_notice head;

	ur_store64(m.b + UR_SMP_MKEY, KEY);
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	f->node[1].lft[1] = f->node[2].lft[1] = 1;
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_LFT, 5, route, 2);
	ur_store64(m.b + UR_SMP_MKEY, 0xbad);
	f->node[0].inbox_cnt = 0;
	send_mad(f, 0, &m, 0);
	fabric_run(f);
	cr_assert(f->node[0].inbox_cnt == 1);
	memcpy(r.b, f->node[0].inbox[0].mad, UR_MAD_BYTES);
	ur_get_notice(r.b + UR_SMP_DATA, &head);
	cr_assert(head.trap == 256 && head.type == 2);
	cr_assert(ur_load64(r.b + UR_SMP_DATA + UR_NOTICE_DETAILS + 14) == 0xbad);
	cr_assert(ur_load16(r.b + UR_SMP_DATA + UR_NOTICE_DETAILS + 8) == UR_SMP_LFT);
	cr_assert(r.b[UR_SMP_DATA + UR_NOTICE_DETAILS + 23] == (0x80 | 2));
	fabric_free(f);
}

/* ---- links: MGMT-BIST-01 ---- */

static unsigned broken; /* every so many packets of a link test are changed */

static bool spoil(struct fabric *f, int from, uint8_t port, uint8_t *mad)
{
	static unsigned n;

	(void)f, (void)from, (void)port;
	if (mad[1] != UR_MAD_CLASS_VENDOR || mad[3] != UR_MAD_METHOD_GET_RESP || !broken)
		return true;
	n++;
	if (n % broken == 0)
		mad[200] ^= 1;
	return n % broken != 1;
}

Test(nma_vendor, a_link_test_counts_what_is_lost_and_what_is_wrong)
{
	struct fabric *f = row();

	f->on_link = spoil;
	for (unsigned pattern = 0; pattern < 4; pattern++)
		for (broken = 0; broken <= 10; broken += 10) {
			uint64_t expected = broken ? 20 : 0;

			cr_assert(write_reg(f, UR_PORT_BIST_PATTERN, 1, pattern) == 0);
			cr_assert(write_reg(f, UR_PORT_BIST_DURATION_NS, 1, 200 * MS) == 0);
			cr_assert(write_reg(f, UR_PORT_BIST_CONTROL, 1, 1) == 0);
			f->node[0].inbox_cnt = 0;
			fabric_sleep(f, 100 * MS);
			cr_assert(read_reg(f, UR_PORT_BIST_CONTROL, 1) == 1); /* beside it */
			fabric_sleep(f, 400 * MS);
			cr_assert(read_reg(f, UR_PORT_BIST_CONTROL, 1) == 0);
			cr_assert(read_reg(f, UR_PORT_BIST_SENT, 1) == 200);
			cr_assert(read_reg(f, UR_PORT_BIST_ERRORS, 1) == expected);
			cr_assert(read_reg(f, UR_PORT_BIST_RETURNED, 1) == 200 - 2 * expected);
			cr_assert((read_reg(f, UR_NODE_FAULT_STATUS, 0) >> UR_FAULT_BIST & 1) ==
				  (broken != 0));
			write_reg(f, UR_NODE_FAULT_STATUS, 0, UINT32_MAX);
		}
	fabric_free(f);
}

Test(nma_vendor, a_link_test_stops_when_it_is_told)
{
	struct fabric *f = row();

	cr_assert(write_reg(f, UR_PORT_BIST_CONTROL, 1, 1) == 0);
	fabric_sleep(f, 100 * MS);
	cr_assert(write_reg(f, UR_PORT_BIST_CONTROL, 1, 0) == 0);
	fabric_sleep(f, 1000 * MS);
	cr_assert(read_reg(f, UR_PORT_BIST_SENT, 1) <= 101);
	cr_assert(ur_nma_next_deadline(f->node[2].nma) == UINT64_MAX);
	fabric_free(f);
}

/* What comes along a route of two hops is not the neighbour's, although the neighbour passes it on. */
Test(nma_vendor, a_neighbour_answers_for_itself)
{
	struct ur_nma_attr attr = fabric_attr(false, 0);
	struct ur_nma_from from = {.way = UR_MAD_HOP, .port = 1};
	struct ur_node_info info = {.node_guid = 0x666, .local_port = 6, .node_type = 2};
	struct fabric *f = fabric_new();
	struct ur_nma_out out;
	uint8_t known[UR_MAD_BYTES];
	struct ur_registers r = {.count = 1};

	attr.config = (struct ur_nma_config){.ask_neighbours = true};
	fabric_add(f, false, &attr);
	f->node[0].peer[1].node = 0; /* the link is up */
	ur_nma_link_event(f->node[0].nma, 1, f->now);
	while (ur_nma_output(f->node[0].nma, &out, f->now))
		if (out.to.way == UR_MAD_HOP)
			memcpy(known, out.mad, UR_MAD_BYTES);
	known[3] = UR_MAD_METHOD_GET_RESP;
	ur_store16(known + 4, UR_SMP_DIRECTION);
	ur_put_node_info(known + UR_SMP_DATA, &info);
	known[UR_SMP_HOP_COUNT] = 2;
	known[UR_SMP_HOP_POINTER] = 1;
	known[UR_SMP_RETURN + 1] = 1;
	(void)ur_nma_input(f->node[0].nma, known, &from, f->now);
	for (int i = 0; i < 2; i++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, NULL, 0), answer;

		r.address0 = ur_register_address(UR_PORT_NEIGHBOUR_GUID, 1);
		ur_put_registers(m.b + UR_SMP_DATA, &r);
		cr_assert(ask(f, 0, &m, 0, &answer));
		ur_get_registers(answer.b + UR_SMP_DATA, &r);
		cr_assert(r.value0 == (i ? 0x666 : 0), "%#lx", (unsigned long)r.value0);
		known[UR_SMP_HOP_COUNT] = 1;
		(void)ur_nma_input(f->node[0].nma, known, &from, f->now);
	}
	fabric_free(f);
}

Test(nma_vendor, neighbours_are_asked_and_known_by_node_and_port)
{
	struct fabric *f = keyed_row((struct ur_nma_config){.m_key = KEY, .ask_neighbours = true});

	cr_assert(read_reg(f, UR_PORT_NEIGHBOUR_GUID, 1) == 0x1001);
	cr_assert(read_reg(f, UR_PORT_NEIGHBOUR_PORT, 1) == (2 | UR_NODE_SWITCH << 8));
	cr_assert(read_reg(f, UR_PORT_NEIGHBOUR_GUID, 2) == 0);
	f->node[2].down[1] = true; /* what is not known any more is not shown */
	ur_nma_link_event(f->node[2].nma, 1, f->now);
	f->node[2].down[1] = false;
	ur_nma_link_event(f->node[2].nma, 1, f->now);
	f->node[1].down[2] = true; /* the neighbour does not answer: eight attempts */
	fabric_sleep(f, 1000000 * MS);
	cr_assert(ur_nma_next_deadline(f->node[2].nma) == UINT64_MAX);
	f->node[1].down[2] = false;
	cr_assert(read_reg(f, UR_PORT_NEIGHBOUR_GUID, 1) == 0);
	fabric_free(f);
}
