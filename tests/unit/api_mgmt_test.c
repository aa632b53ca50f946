/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <unistd.h>

#include <rte_ethdev.h>

#include "api/device.h"
#include "engine/mgmt_priv.h"
#include "wire/smp.h"

/* What an endpoint's management agent does with the device: VL tables, LIDs, the link. */

static const char *const two[] = {"worker.count=2", NULL};

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_mgmt, .fini = teardown, .timeout = 240);

static void set_begin(uint8_t *mad, uint16_t attr_id, uint32_t modifier)
{
	static uint64_t tid;

	memset(mad, 0, UR_MAD_BYTES);
	mad[0] = 1;
	mad[1] = UR_MAD_CLASS_SMP_DR;
	mad[2] = 1;
	mad[3] = UR_MAD_METHOD_SET;
	ur_store64(mad + 8, ++tid);
	ur_store16(mad + 16, attr_id);
	ur_store32(mad + 20, modifier);
	memset(mad + UR_SMP_DR_SLID, 0xff, 4);
}

struct mad_call {
	struct ur_device *dev;
	const uint8_t *mad;
	enum ur_drop drop;
};

static void input_on_worker(void *arg, uint64_t now_ns)
{
	static const struct ur_nma_from from = {.way = UR_MAD_LOCAL};
	struct mad_call *c = arg;

	c->drop = ur_engine_mgmt_input(ur_worker_engine(c->dev->workers[0]), c->mad, &from, now_ns);
}

static void send_set(struct end *e, const uint8_t *mad)
{
	struct mad_call c = {ur_device(e->ctx), mad, UR_DROP_CNT};

	ur_worker_call(c.dev->workers[0], input_on_worker, &c);
	cr_assert_eq(c.drop, UR_DROP_NONE);
}

/* SL to VL of port 1, as its agent shows it. */
struct vl_call {
	struct ur_device *dev;
	struct ur_vl_attr vl;
};

static void vl_on_worker(void *arg, uint64_t now_ns)
{
	struct vl_call *c = arg;
	struct ur_engine *e = ur_worker_engine(c->dev->workers[0]);

	(void)now_ns;
	e->mgmt->ops.get_vl(e->mgmt, 1, &c->vl);
}

static uint8_t shown_lane(struct end *e, unsigned sl)
{
	struct vl_call c = {.dev = ur_device(e->ctx)};

	ur_worker_call(c.dev->workers[0], vl_on_worker, &c);
	return c.vl.sl2vl[sl];
}

static void wait_shown(struct end *e, unsigned sl, uint8_t vl)
{
	uint64_t until = end_ms() + PATIENCE_MS;

	while (shown_lane(e, sl) != vl) {
		end_progress();
		cr_assert_lt(end_ms(), until, "SL %u is shown on lane %u", sl, shown_lane(e, sl));
	}
}

static void set_lane(struct end *e, unsigned sl, uint8_t vl)
{
	uint8_t mad[UR_MAD_BYTES], map[16];

	for (unsigned i = 0; i < 16; i++)
		map[i] = shown_lane(e, i);
	map[sl] = vl;
	set_begin(mad, UR_SMP_SL2VL, 0);
	for (unsigned i = 0; i < 8; i++)
		mad[UR_SMP_DATA + i] = (uint8_t)(map[2 * i] << 4 | map[2 * i + 1]);
	send_set(e, mad);
}

static struct uroce_qos_attr qos_of(struct end *e)
{
	struct uroce_qos_attr qos;

	cr_assert_eq(uroce_query_qos(e->ctx, &qos), 0);
	return qos;
}

/* Waits until the public API shows SL `sl` on lane `vl`. */
static void wait_lane(struct end *e, unsigned sl, uint8_t vl)
{
	uint64_t until = end_ms() + PATIENCE_MS;

	while (qos_of(e).sl2vl[sl] != vl) {
		end_progress();
		cr_assert_lt(end_ms(), until, "SL %u is on lane %u", sl, qos_of(e).sl2vl[sl]);
	}
}

/* QOS-MAD-01 */
Test(api_mgmt, tables_set_by_a_manager_are_those_of_the_api)
{
	struct uroce_qos_attr qos;
	char err[128];

	end_open(A, "ring-a.conf", NULL);
	set_lane(A, 2, 15);
	wait_lane(A, 2, 15);
	cr_expect(!(atomic_load(&ur_device(A->ctx)->served_sls) >> 2 & 1),
		  "posts are refused as after a change by the API");
	set_lane(A, 2, 5);
	wait_lane(A, 2, 5);
	cr_expect(atomic_load(&ur_device(A->ctx)->served_sls) >> 2 & 1);
	/* A later change of something else keeps them. */
	qos = qos_of(A);
	qos.turn_wqes = 3;
	cr_assert_eq(uroce_set_qos(A->ctx, &qos, err, sizeof(err)), 0);
	cr_expect_eq(shown_lane(A, 2), 5);
}

/* QOS-MAD-01 */
Test(api_mgmt, tables_set_by_a_manager_reach_all_workers)
{
	struct ur_device *dev;

	end_open(A, "ring-a.conf", two);
	dev = ur_device(A->ctx);
	cr_assert_eq(dev->worker_cnt, 2);
	set_lane(A, 3, 9);
	wait_lane(A, 3, 9);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(ur_vl_of_sl(&ur_worker_engine(dev->workers[i])->core.vl, 3), 9);
}

/* QOS-MAD-01: a table that is written in parts keeps the part that no worker has yet. */
Test(api_mgmt, tables_that_follow_each_other_add_up)
{
	struct ur_device *dev;

	end_open(A, "ring-a.conf", two);
	dev = ur_device(A->ctx);
	/* The device's lock keeps the control thread from giving them to the workers. */
	pthread_mutex_lock(&dev->lock);
	set_lane(A, 1, 7);
	wait_shown(A, 1, 7);
	set_lane(A, 2, 8);
	wait_shown(A, 2, 8);
	cr_expect_eq(shown_lane(A, 1), 7);
	cr_expect_eq(ur_device(A->ctx)->qos.engine.vl.sl2vl[1], 1, "no worker has it yet");
	pthread_mutex_unlock(&dev->lock);
	wait_lane(A, 2, 8);
	cr_expect_eq(qos_of(A).sl2vl[1], 7);
}

/* MGMT-WORKER-01 */
Test(api_mgmt, the_addresses_of_a_lid_are_set_by_the_control_thread)
{
	struct ur_port_info info = {.lid = 128, .lmc = 7, .sm_lid = 1};
	uint8_t mad[UR_MAD_BYTES];
	struct ur_mgmt_lid got;
	struct ur_mgmt *m;
	uint64_t until;

	end_open(A, "ring-a.conf", NULL);
	m = &ur_device(A->ctx)->mgmt;
	set_begin(mad, UR_SMP_PORT_INFO, 1);
	ur_put_port_info(mad + UR_SMP_DATA, &info);
	send_set(A, mad);
	until = end_ms() + PATIENCE_MS;
	do {
		end_progress();
		pthread_mutex_lock(&m->lock);
		got = m->filtered;
		pthread_mutex_unlock(&m->lock);
		cr_assert_lt(end_ms(), until);
	} while (got.lid != 128);
	cr_expect_eq(got.lmc, 7);
}

struct state_call {
	struct ur_device *dev;
	enum ur_port_state state;
	uint64_t downs;
};

static void state_on_worker(void *arg, uint64_t now_ns)
{
	struct state_call *c = arg;
	struct ur_engine *e = ur_worker_engine(c->dev->workers[0]);
	struct ur_nma_counters counters;

	(void)now_ns;
	c->state = ur_nma_port_state(e->mgmt->nma, 1);
	e->mgmt->ops.get_counters(e->mgmt, 1, &counters);
	c->downs = counters.link_downed;
}

static struct state_call wait_state(struct end *e, enum ur_port_state state)
{
	struct state_call c = {.dev = ur_device(e->ctx)};
	uint64_t until = end_ms() + PATIENCE_MS;

	do {
		end_progress();
		ur_worker_call(c.dev->workers[0], state_on_worker, &c);
		cr_assert_lt(end_ms(), until, "the state is %d", (int)c.state);
	} while (c.state != state);
	return c;
}

/* MGMT-LINK-01 */
Test(api_mgmt, the_agent_is_told_of_the_link)
{
	struct ur_device *dev;

	end_open(A, "ring-a.conf", NULL);
	dev = ur_device(A->ctx);
	cr_expect_eq(wait_state(A, UR_PORT_INIT).downs, 0);
	cr_assert_eq(rte_eth_dev_set_link_down(dev->port.id), 0);
	cr_expect_eq(wait_state(A, UR_PORT_DOWN).downs, 1);
	cr_assert_eq(rte_eth_dev_set_link_up(dev->port.id), 0);
	cr_expect_eq(wait_state(A, UR_PORT_INIT).downs, 1,
		     "one that came up is not one that went down");
}

/* ---- link credits ---- */

static uint64_t sessions_of(struct end *e)
{
	return ur_worker_counters(ur_device(e->ctx)->workers[0])->credit_sessions;
}

static void wait_sessions(struct end *e, uint64_t least)
{
	uint64_t until = end_ms() + PATIENCE_MS;

	while (sessions_of(e) < least) {
		end_progress();
		cr_assert_lt(end_ms(), until, "%llu sessions", (unsigned long long)sessions_of(e));
	}
}

static void credits_begin_anew(const char *const *set)
{
	struct ur_device *dev;

	end_open(A, "ring-a.conf", set);
	end_open(B, "ring-b.conf", set);
	dev = ur_device(A->ctx);
	wait_sessions(A, 1);
	cr_assert_eq(rte_eth_dev_set_link_down(dev->port.id), 0);
	wait_sessions(A, 2);
	cr_assert_eq(rte_eth_dev_set_link_up(dev->port.id), 0);
	wait_sessions(A, 3);
	wait_sessions(B, 3);
}

/* CREDIT-SESSION-01: as at a switch, so that a link that was down is no silence of the other end. */
Test(api_mgmt, credits_begin_anew_when_the_link_goes_down_or_comes_up)
{
	credits_begin_anew((const char *[]){"port.credits=yes", NULL});
}

/* CREDIT-SESSION-01 */
Test(api_mgmt, credits_begin_anew_without_an_agent)
{
	credits_begin_anew((const char *[]){"port.credits=yes", "management.agent=no", NULL});
}
