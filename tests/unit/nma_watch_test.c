/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include "mgmt/registers.h"
#include "wire/perf.h"

/*
 * MGMT-WATCH-01: counters of ports that pass the thresholds of PortInfo are traps to the subnet manager. It is on node 0 (LID
 * 1); the switch is node 1 (LID 2).
 */
#define MS   UINT64_C(1000000)
#define SCAN (100 * MS)

static void set_thresholds(struct fabric *f, uint8_t port, uint8_t phy, uint8_t overruns)
{
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, port, (const uint8_t[]){1},
			      1),
		   r;
	struct ur_port_info info;

	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	ur_get_port_info(r.b + UR_SMP_DATA, &info);
	cr_assert(info.local_phy_errors == 8 && info.overrun_errors == 8, "before a manager came");
	info.local_phy_errors = phy;
	info.overrun_errors = overruns;
	info.state = UR_PORT_NOP;
	info.phys_state = UR_PHYS_NOP;
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, port, (const uint8_t[]){1}, 1);
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
}

static void set_lids(struct fabric *f, unsigned i, uint16_t sm_lid)
{
	struct mad m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, (const uint8_t[]){1}, i),
		   r;
	struct ur_port_info info = {.lid = (uint16_t)(1 + i), .sm_lid = sm_lid};

	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
}

static struct fabric *managed(void)
{
	struct fabric *f = fabric_new();

	fabric_add(f, false, NULL);
	fabric_add(f, true, NULL);
	fabric_join(f, 0, 1, 1, 1);
	set_lids(f, 0, 1);
	set_lids(f, 1, 1);
	f->node[1].lft[1] = 1;
	set_thresholds(f, 2, 5, 2);
	f->node[0].inbox_cnt = 0;
	return f;
}

/* How many traps have come, of these numbers only and about port 2, since the last call. Each is repressed. */
static unsigned take_traps(struct fabric *f, uint16_t trap)
{
	unsigned cnt = f->node[0].inbox_cnt;

	for (unsigned i = 0; i < cnt; i++) {
		struct ur_notice head;
		struct mad m;

		memcpy(m.b, f->node[0].inbox[i].mad, UR_MAD_BYTES);
		ur_get_notice(m.b + UR_SMP_DATA, &head);
		cr_assert(m.b[3] == UR_MAD_METHOD_TRAP && head.is_generic && head.type == 1);
		cr_assert(head.trap == trap, "trap %u, not %u", head.trap, trap);
		cr_assert(ur_load16(m.b + UR_SMP_DATA + UR_NOTICE_DETAILS + 2) == 2);
		cr_assert(m.b[UR_SMP_DATA + UR_NOTICE_DETAILS + 4] == 2);
		m.b[3] = UR_MAD_METHOD_TRAP_REPRESS;
		send_mad(f, 0, &m, 2);
	}
	f->node[0].inbox_cnt = 0;
	fabric_run(f);
	return cnt;
}

static struct ur_port_counters counters(struct fabric *f)
{
	struct mad m = new_mad(f, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_PERF_PORT_COUNTERS, 0);
	struct ur_port_counters a = {.port_select = 2};
	struct mad r;

	ur_put_port_counters(m.b + UR_GMP_DATA, &a);
	cr_assert(ask(f, 0, &m, 2, &r) && !status_of(&r));
	f->node[0].inbox_cnt = 0;
	ur_get_port_counters(r.b + UR_GMP_DATA, &a);
	return a;
}

static uint64_t reg(struct fabric *f, enum ur_register_id id)
{
	struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, (const uint8_t[]){1}, 1),
		   r;
	struct ur_registers regs = {.count = 1, .address0 = ur_register_address(id, 2)};

	ur_put_registers(m.b + UR_SMP_DATA, &regs);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	f->node[0].inbox_cnt = 0;
	ur_get_registers(r.b + UR_SMP_DATA, &regs);
	return regs.value0;
}

Test(nma_watch, errors_above_the_threshold_between_two_scans_are_trap_129)
{
	struct fabric *f = managed();
	struct ur_nma_counters *c = &f->node[1].counters[2];

	c->rx_errors += 5;
	fabric_sleep(f, SCAN);
	cr_assert(take_traps(f, 129) == 0, "at the threshold");
	c->rx_errors += 3;
	c->symbol_errors += 3;
	fabric_sleep(f, SCAN);
	cr_assert(take_traps(f, 129) == 1);
	fabric_sleep(f, 20000 * MS);
	cr_assert(take_traps(f, 129) == 0, "no further errors");
	cr_assert(counters(f).local_link_integrity == 1 && counters(f).rcv_errors == 11);
	cr_assert(counters(f).symbol_errors == 3);
	cr_assert(reg(f, UR_PORT_INTEGRITY) == 1 && reg(f, UR_PORT_SYMBOL_ERRORS) == 3);
	fabric_free(f);
}

Test(nma_watch, overruns_in_more_scans_in_a_row_than_the_threshold_are_trap_130)
{
	struct fabric *f = managed();
	struct ur_nma_counters *c = &f->node[1].counters[2];

	for (unsigned i = 0; i < 6; i++) { /* two scans of three find some */
		c->overruns += i % 3 ? 1000 : 0;
		fabric_sleep(f, SCAN);
	}
	fabric_sleep(f, SCAN);
	cr_assert(take_traps(f, 130) == 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(take_traps(f, 130) == 0);
		c->overruns++;
		fabric_sleep(f, SCAN);
	}
	cr_assert(take_traps(f, 130) == 1);
	cr_assert(counters(f).buffer_overruns == 1);
	cr_assert(reg(f, UR_PORT_EXCESSIVE_OVERRUNS) == 1 && reg(f, UR_PORT_OVERRUNS) == 4003);
	fabric_free(f);
}

Test(nma_watch, silence_about_credits_is_trap_131)
{
	struct fabric *f = managed();

	f->node[1].counters[2].flow_control++;
	fabric_sleep(f, SCAN);
	cr_assert(take_traps(f, 131) == 1);
	fabric_sleep(f, 3000 * MS);
	cr_assert(take_traps(f, 131) == 0);
	cr_assert(reg(f, UR_PORT_FLOW_CONTROL) == 1);
	fabric_free(f);
}

Test(nma_watch, a_port_with_lasting_errors_traps_once_a_second)
{
	struct fabric *f = managed();
	struct ur_nma_counters *c = &f->node[1].counters[2];
	unsigned traps = 0;

	for (unsigned i = 0; i < 100; i++) {
		c->symbol_errors += 1000;
		fabric_sleep(f, SCAN);
		traps += take_traps(f, 129);
	}
	cr_assert(traps == 10, "%u traps in 10 s", traps);
	cr_assert(reg(f, UR_PORT_INTEGRITY) == 100 && counters(f).local_link_integrity == 15);
	fabric_free(f);
}

Test(nma_watch, nothing_is_scanned_without_a_subnet_manager)
{
	struct fabric *f = managed();

	cr_assert(ur_nma_next_deadline(f->node[1].nma) - f->now <= SCAN);
	set_lids(f, 1, 0);
	cr_assert(ur_nma_next_deadline(f->node[1].nma) == UINT64_MAX, "MGMT-COST-01");
	f->node[1].counters[2].symbol_errors += 1000;
	fabric_sleep(f, 1000 * MS);
	set_lids(f, 1, 1);
	f->node[0].inbox_cnt = 0;
	fabric_sleep(f, 1000 * MS);
	cr_assert(take_traps(f, 129) == 0, "what was counted before is no burst");
	fabric_free(f);
}

/* Link events of the switch's port 2, which leads to nothing else. */
static void set_link(struct fabric *f, bool up)
{
	f->node[1].peer[2].node = up ? 0 : -1;
	ur_nma_link_event(f->node[1].nma, 2, f->now);
	fabric_run(f);
	f->node[0].inbox_cnt = 0; /* trap 128 */
}

Test(nma_watch, a_link_that_comes_up_after_a_failure_has_recovered)
{
	struct fabric *f = managed();

	set_link(f, false);
	set_link(f, true);
	set_link(f, true);
	cr_assert(reg(f, UR_PORT_LINK_RECOVERED) == 0, "it had never been up");
	set_link(f, false);
	cr_assert(reg(f, UR_PORT_LINK_RECOVERED) == 0);
	set_link(f, true);
	set_link(f, true);
	cr_assert(reg(f, UR_PORT_LINK_RECOVERED) == 1 && counters(f).link_recovery == 1);
	fabric_free(f);
}
