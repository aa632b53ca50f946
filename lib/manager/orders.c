/* SPDX-License-Identifier: BSD-3-Clause */
#include "manager/election_priv.h"
#include "manager/proof.h"

/* Orders of other managers and of the user: SMInfo's, with a proof of the zone's key. */

bool ur_election_resign(struct ur_election *e, uint64_t to, uint64_t now_ns)
{
	const struct ur_election_peer *heir = NULL;

	if (!ur_election_is_master(e, now_ns))
		return false;
	for (uint32_t i = 0; i < e->peers; i++) {
		const struct ur_election_peer *p = &e->peer[i];

		if (!ur_election_is_rival(e, p) || p->missed ||
		    p->info.state == UR_MANAGER_NOT_ACTIVE || (to && p->guid != to))
			continue;
		if (!heir || ur_election_comes_before(&p->info, heir->info.priority, heir->guid))
			heir = p;
	}
	if (!heir)
		return false;
	e->phase = UR_ELECTION_HAND_OVER;
	e->heir = heir->guid;
	e->master = 0;
	e->until_ns = now_ns + 2 * ur_election_lease(e);
	for (uint32_t i = 0; i < e->members; i++) {
		e->hold[i].next_ns = NEVER;
		e->hold[i].until_ns = 0;
	}
	for (uint32_t i = 0; i < e->peers; i++)
		if (e->peer[i].guid == e->heir)
			e->peer[i].next_ns = now_ns;
	return true;
}

/* MGR-ZONE-03 */
static bool take_over(struct ur_election *e, const struct ur_manager_info *info, uint64_t now_ns)
{
	if (!info->m_key || !info->guid || e->phase == UR_ELECTION_OFF ||
	    e->phase == UR_ELECTION_HAND_OVER || e->phase == UR_ELECTION_REIGN)
		return e->phase == UR_ELECTION_REIGN && info->guid == e->told_by;
	if (e->phase == UR_ELECTION_CONTEND && e->told_key == info->m_key)
		return true; /* the same again */
	e->told_by = info->guid;
	e->told_key = info->m_key;
	/* It says so itself that it is master no more. */
	for (uint32_t i = 0; i < e->peers; i++)
		if (e->peer[i].guid == info->guid) {
			e->peer[i].info.state = UR_MANAGER_STANDBY;
			e->peer[i].fresh = false; /* it may have been ordered to */
		}
	ur_election_contend(e, now_ns);
	return true;
}

static bool acknowledge(struct ur_election *e, const struct ur_manager_info *info, uint64_t now_ns)
{
	if (e->phase != UR_ELECTION_HAND_OVER)
		return info->guid == e->heir; /* the same again */
	if (info->guid != e->heir || info->m_key != e->key)
		return false;
	ur_election_stop_holds(e);
	e->old_key = e->other_key = e->told_key = 0;
	e->key = ur_election_draw(e);
	e->phase = UR_ELECTION_FOLLOW;
	e->master = info->guid;
	e->until_ns = NEVER;
	for (uint32_t i = 0; i < e->peers; i++)
		if (e->peer[i].guid == info->guid)
			e->peer[i].info.state = UR_MANAGER_MASTER;
	return true;
}

static bool disable(struct ur_election *e, uint64_t now_ns)
{
	if (e->phase == UR_ELECTION_REIGN || e->phase == UR_ELECTION_HAND_OVER)
		return false; /* a master hands over first (IBA 14.4.1) */
	ur_election_give_back(e, now_ns);
	e->phase = UR_ELECTION_OFF;
	e->master = 0;
	return true;
}

static bool obey(struct ur_election *e, uint32_t modifier, const struct ur_manager_info *info,
		 uint64_t now_ns)
{
	switch (modifier) {
	case UR_MANAGER_HANDOVER:
		return take_over(e, info, now_ns);
	case UR_MANAGER_ACKNOWLEDGE:
		return acknowledge(e, info, now_ns);
	case UR_MANAGER_DISABLE:
		return disable(e, now_ns);
	case UR_MANAGER_STANDBY_ORDER:
		if (e->phase == UR_ELECTION_OFF)
			ur_election_listen_until(e,
						 now_ns + (e->attr.misses + 1) * e->attr.poll_ns);
		return true;
	case UR_MANAGER_DISCOVER:
		if (e->phase == UR_ELECTION_FOLLOW)
			ur_election_listen_until(e,
						 now_ns + (e->attr.misses + 1) * e->attr.poll_ns);
		return e->phase == UR_ELECTION_LISTEN;
	case UR_MANAGER_RESIGN:
		return ur_election_resign(e, info->to, now_ns);
	default:
		return false;
	}
}

/* MGR-ZONE-05 */
bool ur_election_order(struct ur_election *e, uint32_t modifier, const struct ur_manager_info *info,
		       uint64_t now_ns)
{
	struct ur_manager_info open = *info;

	ur_election_step(e, now_ns);
	if (info->zone != e->attr.zone || info->rules != e->attr.rules)
		return false;
	if (e->last_proof && info->proof == e->last_proof)
		return e->last_said;
	if (modifier == UR_PROOF_ANSWER ||
	    !ur_proof_open(e->attr.zone_key, modifier, e->challenge, &open))
		return false;
	e->challenge = ur_election_draw(e);
	e->last_proof = info->proof;
	e->last_said = obey(e, modifier, &open, now_ns);
	return e->last_said;
}
