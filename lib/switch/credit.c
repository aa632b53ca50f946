/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/inside.h"
#include "wire/assert.h"

/* Link credits of a switch's ports (docs/design/credits.md). */

static uint8_t lane_of(const struct ur_switch_port *p, uint8_t sl)
{
	int vl = ur_vl_of_sl(&p->out.vl, sl);

	return vl < 0 ? UR_CREDIT_NONE : (uint8_t)vl;
}

void ur_switch_credit_set(struct ur_switch *sw, struct ur_switch_port *p)
{
	const struct ur_switch_port_attr *a = &p->attr;
	struct ur_credit_attr attr = {.buffers = a->credit_frames,
				      .session = a->credit_session,
				      .life_ns = a->credit_life_ns};

	UR_ASSERT(a->credit_frames < sw->attr.limits.frames);
	if (!a->credit_frames) {
		UR_ASSERT(!p->credit.session); /* credits cannot be taken back */
		return;
	}
	for (unsigned d = 0; d < 64; d++)
		attr.map.of_dscp[d] = lane_of(p, sw->sl_of_dscp[d]);
	for (unsigned i = 0; i < 8; i++)
		attr.map.of_pcp[i] = lane_of(p, sw->sl_of_pcp[i]);
	if (!p->credit.session)
		ur_credit_init(&p->credit, &attr);
	else if (memcmp(&attr.map, &p->credit.map, sizeof(attr.map)))
		ur_credit_restart(&p->credit, &attr.map);
}

/* SWITCH-CREDIT-01 */
uint8_t ur_switch_credit_take(struct ur_switch_port *p, const struct ur_switch_frame *frame,
			      uint8_t *lane)
{
	struct ur_credit *c = &p->credit;

	*lane = ur_credit_lane_of(&c->peer_map, frame->data, frame->len);
	ur_credit_received(c, *lane);
	if (!c->on || *lane == UR_CREDIT_NONE)
		return 0;
	if (ur_credit_has_room(c, *lane))
		return (uint8_t)(*lane + 1);
	c->cnt.credit_overruns++;
	return 0;
}

void ur_switch_credit_expire(struct ur_switch *sw, uint8_t port, uint64_t now_ns)
{
	struct ur_switch_port *p = &sw->port[port];

	for (unsigned late = ur_credit_wait(&p->credit, p->out.ready, now_ns); late;
	     late &= late - 1)
		ur_switch_drop_lane(sw, port, (unsigned)__builtin_ctz(late),
				    UR_SWITCH_DROP_NO_CREDIT);
}

bool ur_switch_wants_message(const struct ur_switch *sw, uint8_t port, uint64_t now_ns)
{
	const struct ur_switch_port *p = &sw->port[port];

	return p->attr.credit_frames && sw->up >> port & 1 && ur_credit_is_due(&p->credit, now_ns);
}

void ur_switch_message(struct ur_switch *sw, uint8_t port, uint8_t *frame, const uint8_t mac[6],
		       uint64_t now_ns)
{
	ur_credit_output(&sw->port[port].credit, frame, mac, now_ns);
}
