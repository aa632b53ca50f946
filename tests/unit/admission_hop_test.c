/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission_sim.h"

#include "switch_bed.h"
#include "wire/ext.h"

/*
 * The simulation of admission_sim.h with a real switch half way: all senders are behind port 1, the pool is behind port 4,
 * which is the trunk. SWITCH-HOLD-01: fewer refused requests cross the trunk where requests are on their way when the
 * status changes.
 */
#define POOL 7
#define HOST 4

static struct ur_switch_frame finish(struct ur_packet *p, unsigned src, unsigned dst)
{
	struct ur_switch_frame f = {frames[frame_at++ % 4096], NULL, 0};
	struct frame made;

	host_mac(p->dmac, dst);
	host_mac(p->smac, src);
	p->ip.src = ur_gid_from_ipv4(0x0a000000 + src);
	p->ip.dst = ur_gid_from_ipv4(0x0a000000 + dst);
	frame_make(&made, p);
	memcpy(f.data, made.b, made.len);
	f.handle = f.data;
	f.len = (uint32_t)made.len;
	return f;
}

static void put(uint8_t port, struct ur_switch_frame f)
{
	cr_assert_eq(ur_switch_input(sw, port, &f, now_ns), 1);
}

static void request(const struct event *e)
{
	static const uint8_t bytes[64];
	struct ur_packet p = frame_packet(UR_EXT_SEND_ONLY, false, bytes, 64);

	p.bth.dqpn = ur_qpn(0x100 + e->idx);
	p.xth = (struct ur_xth){
		.flags = (uint8_t)(UR_XTH_RECV | e->queue_class << UR_XTH_CLAIM_SHIFT),
		.tag = ur_pool_tag(POOL)};
	put(1, finish(&p, 1, HOST));
}

static void status(const struct event *e)
{
	struct ur_packet p = frame_packet(UR_EXT_NOTIFY, false, NULL, 0);

	p.asth =
		(struct ur_asth){.status = e->status, .generation = e->generation, .room = e->room};
	p.pool = POOL;
	put(HOST, finish(&p, HOST, 1));
	cr_assert_eq(ur_switch_output(sw, 1, tx, 64, now_ns), 1);
}

/* The class that a request had when it was sent: it is not sent again before it is answered. */
static void pass(void *ctx, struct sim *sim, const struct event *e)
{
	static uint64_t deadline_ns;
	uint64_t wake, *next_ns = ctx ? ctx : &deadline_ns;
	unsigned n;

	now_ns = sim->now + 1;
	if (e->passes == REQUEST)
		request(e);
	else if (e->passes != HOP)
		status(e);
	n = ur_switch_output(sw, HOST, tx, 256, now_ns);
	if (sim->order % 64 == 0)
		ur_switch_validate(sw);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *bth = tx[i].frame.data + 14 + 20 + 8;

		push(sim, (struct event){.at = sim->now + ONE_WAY_NS / 2,
					 .kind = REQUEST,
					 .idx = ur_load24(bth + 5) - 0x100,
					 .queue_class = bth[20] >> UR_XTH_CLAIM_SHIFT & 3});
	}
	wake = ur_switch_next_deadline(sw, UINT64_MAX, now_ns);
	if (wake != UINT64_MAX && wake != *next_ns) {
		*next_ns = wake;
		push(sim, (struct event){.at = wake, .kind = HOP, .passes = HOP});
	}
}

static struct result measure(enum ur_adm_mode mode, unsigned senders, unsigned load10, bool hold)
{
	uint64_t next_ns = 0;
	const struct hop hop = {&next_ns, pass};
	struct result r;

	now_ns = 1;
	bed_attr();
	attr.hold = hold;
	bed_start();
	introduce();
	r = run(mode, senders, senders, load10, &hop);
	return r;
}

static void compare(unsigned senders, unsigned load10)
{
	static const char *const name[MODES] = {"plain", "ab", "intelligent", "paper"};

	for (enum ur_adm_mode m = UR_ADM_PLAIN; m < MODES; m++) {
		struct result off = measure(m, senders, load10, false);
		struct result on = measure(m, senders, load10, true);

		print(name[m], senders, load10, &off);
		print("  held", senders, load10, &on);
		cr_assert_geq(on.jain, 0.95);
		/* Modes without NOTIFY tell the switch nothing. */
		if (m < UR_ADM_INTELLIGENT)
			cr_assert(on.refused == off.refused && on.worst == off.worst);
		if (m == UR_ADM_PAPER)
			cr_assert_leq(on.refused, (senders == 16 ? 0.8 : 1.01) * off.refused);
		if (m == UR_ADM_INTELLIGENT)
			cr_assert_leq(on.refused, 1.01, "as without a switch");
		cr_assert_leq(on.mean, 1.01 * off.mean);
	}
}

Test(admission_hop, sixteen_senders)
{
	compare(16, 12);
	compare(16, 20);
	compare(16, 40);
}

Test(admission_hop, sixty_four_senders)
{
	compare(64, 12);
	compare(64, 20);
	compare(64, 40);
}
