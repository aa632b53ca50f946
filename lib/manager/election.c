/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/election_priv.h"
#include "manager/proof.h"
#include "wire/assert.h"
#include "wire/siphash.h"

#define NS_PER_S UINT64_C(1000000000)
#define ACKS	 16 /* questions and acknowledgements without an answer */

/* What to do next with a member. */
enum todo {
	TODO_READ,
	TODO_TAKE,	/* write this manager's key with hold.key, which may be the node's */
	TODO_CHALLENGE, /* write with a key that is not the node's: the lease begins to run */
	TODO_GIVE_BACK, /* write key 0 */
};

uint64_t ur_election_lease(const struct ur_election *e)
{
	return e->attr.lease_s * NS_PER_S;
}

/* For how long the answer to a question with the key counts, since it was asked: clocks may differ by an eighth. */
static uint64_t counts_for(const struct ur_election *e)
{
	return ur_election_lease(e) - ur_election_lease(e) / 8;
}

uint64_t ur_election_draw(struct ur_election *e)
{
	uint64_t number = ++e->made, r;

	r = ur_siphash(e->attr.seed, e->attr.guid, &number, sizeof(number));
	return r ? r : 1;
}

static bool is_majority(const struct ur_election *e, uint32_t seats)
{
	return 2 * seats > e->attr.seats;
}

void ur_election_held(const struct ur_election *e, uint64_t now_ns, uint32_t *seats,
		      uint32_t *members)
{
	*seats = *members = 0;
	for (uint32_t i = 0; i < e->members; i++) {
		*members += e->hold[i].until_ns > now_ns;
		*seats += i < e->attr.seats && e->hold[i].until_ns > now_ns;
	}
}

static uint32_t seats_held(const struct ur_election *e, uint64_t now_ns)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < e->attr.seats; i++)
		cnt += e->hold[i].until_ns > now_ns;
	return cnt;
}

/* MGR-ZONE-01 */
bool ur_election_is_master(const struct ur_election *e, uint64_t now_ns)
{
	return e->phase == UR_ELECTION_REIGN && is_majority(e, seats_held(e, now_ns));
}

const char *ur_election_phase_name(enum ur_election_phase phase)
{
	static const char *const names[] = {
#define X(NAME, state, meaning) [UR_ELECTION_##NAME] = #NAME,
		UR_ELECTION_PHASES(X)
#undef X
	};

	return names[phase];
}

/* ---- phases ---- */

static void begin_holds(struct ur_election *e, uint32_t first, uint64_t now_ns)
{
	for (uint32_t i = first; i < e->members; i++)
		e->hold[i].next_ns = now_ns;
}

/* Members that have the key get it taken away; nothing else is asked of them. */
void ur_election_give_back(struct ur_election *e, uint64_t now_ns)
{
	for (uint32_t i = 0; i < e->members; i++) {
		struct ur_hold *h = &e->hold[i];

		h->next_ns = h->mine ? now_ns : NEVER;
		h->todo = h->mine ? TODO_GIVE_BACK : TODO_READ;
		h->until_ns = 0;
		h->challenged_ns = 0;
		h->told = false; /* others may have written since it was read: it is read again */
	}
}

void ur_election_stop_holds(struct ur_election *e)
{
	for (uint32_t i = 0; i < e->members; i++) {
		e->hold[i].next_ns = NEVER;
		e->hold[i].todo = TODO_READ;
		e->hold[i].until_ns = 0;
		e->hold[i].challenged_ns = 0;
		e->hold[i].mine = false;
	}
}

void ur_election_listen_until(struct ur_election *e, uint64_t until_ns)
{
	e->phase = UR_ELECTION_LISTEN;
	e->until_ns = until_ns;
	e->master = 0;
	e->ranked = false;
}

void ur_election_contend(struct ur_election *e, uint64_t now_ns)
{
	e->phase = UR_ELECTION_CONTEND;
	e->until_ns = NEVER;
	e->master = 0;
	for (uint32_t i = 0; i < e->members; i++) {
		e->hold[i].todo = TODO_READ;
		e->hold[i].tried = 0;
		e->hold[i].challenged_ns = 0;
		e->hold[i].next_ns = i < e->attr.seats ? now_ns : NEVER;
	}
}

static void follow(struct ur_election *e, uint64_t master, uint64_t now_ns)
{
	e->phase = UR_ELECTION_FOLLOW;
	e->master = master;
	e->until_ns = NEVER;
	ur_election_give_back(e, now_ns);
}

static void reign(struct ur_election *e, uint64_t now_ns)
{
	e->phase = UR_ELECTION_REIGN;
	e->master = e->attr.guid;
	e->until_ns = NEVER;
	e->terms++;
	e->ack_left = e->told_by ? ACKS : 0;
	for (uint32_t i = 0; i < e->members; i++)
		e->hold[i].way = 0; /* another master may have told it another one */
	begin_holds(e, e->attr.seats, now_ns);
}

void ur_election_init(struct ur_election *e, const struct ur_election_attr *attr,
		      struct ur_hold *hold, uint64_t now_ns)
{
	UR_ASSERT(attr->seats && attr->seats <= UR_ELECTION_SEATS_MAX && attr->lease_s &&
		  attr->misses && attr->guid);
	*e = (struct ur_election){
		.attr = *attr, .hold = hold, .members = attr->seats, .now_ns = now_ns};
	e->key = ur_election_draw(e);
	e->challenge = ur_election_draw(e);
	ur_election_stop_holds(e);
	/* Each peer is asked often enough to find out that it is gone. */
	ur_election_listen_until(e, now_ns + (attr->misses + 1) * attr->poll_ns);
}

void ur_election_set_members(struct ur_election *e, struct ur_hold *hold, uint32_t members)
{
	UR_ASSERT(members >= e->attr.seats);
	e->hold = hold;
	e->members = members;
	e->next_member = 0;
	for (uint32_t i = 0; i < members; i++) {
		struct ur_hold *h = &hold[i];

		if (h->open) { /* what it came to is read */
			h->open = false;
			h->todo = h->todo == TODO_GIVE_BACK ? TODO_GIVE_BACK : TODO_READ;
			h->next_ns = e->now_ns;
		}
		if (!h->next_ns)
			h->next_ns = e->phase == UR_ELECTION_REIGN ? e->now_ns : NEVER;
	}
}

/* ---- peers ---- */

static struct ur_election_peer *find_peer(struct ur_election *e, uint64_t guid)
{
	for (uint32_t i = 0; guid && i < e->peers; i++)
		if (e->peer[i].guid == guid)
			return &e->peer[i];
	return NULL;
}

static bool is_gone(const struct ur_election *e, const struct ur_election_peer *p)
{
	return p->missed >= e->attr.misses;
}

/* It has answered, knows the zone's key, and manages the same zone. MGR-ZONE-06 */
bool ur_election_is_rival(const struct ur_election *e, const struct ur_election_peer *p)
{
	return p->told && !is_gone(e, p) && p->info.zone == e->attr.zone &&
	       p->info.rules == e->attr.rules;
}

/* The open question, if there is one. Whether an order was obeyed is not known: before the next one the peer is asked. */
static void cancel(struct ur_election_peer *p)
{
	if (p->open && p->telling)
		p->fresh = false;
	p->open = p->telling = false;
}

void ur_election_set_peers(struct ur_election *e, const uint64_t *guid, uint32_t cnt)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < e->peers; i++) {
		bool listed = false;

		for (uint32_t k = 0; k < cnt; k++)
			listed = listed || guid[k] == e->peer[i].guid;
		cancel(&e->peer[i]);
		if (listed || !is_gone(e, &e->peer[i]))
			e->peer[kept++] = e->peer[i];
	}
	e->peers = kept;
	for (uint32_t k = 0; k < cnt; k++)
		if (guid[k] && guid[k] != e->attr.guid && !find_peer(e, guid[k]) &&
		    e->peers < UR_ELECTION_PEERS_MAX)
			e->peer[e->peers++] = (struct ur_election_peer){.guid = guid[k]};
}

bool ur_election_comes_before(const struct ur_manager_info *a, uint8_t priority, uint64_t guid)
{
	return a->priority != priority ? a->priority > priority : a->guid < guid;
}

/* Standbys that take over before this one does. */
static uint32_t rank(const struct ur_election *e)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < e->peers; i++)
		cnt += ur_election_is_rival(e, &e->peer[i]) &&
		       e->peer[i].info.state != UR_MANAGER_NOT_ACTIVE &&
		       ur_election_comes_before(&e->peer[i].info, e->attr.priority, e->attr.guid);
	return cnt;
}

static uint64_t other_master(const struct ur_election *e)
{
	for (uint32_t i = 0; i < e->peers; i++)
		if (ur_election_is_rival(e, &e->peer[i]) && !e->peer[i].missed &&
		    e->peer[i].info.state == UR_MANAGER_MASTER)
			return e->peer[i].guid;
	return 0;
}

static void fill_info(const struct ur_election *e, uint64_t now_ns, struct ur_manager_info *info)
{
	static const uint8_t states[] = {
#define X(NAME, state, meaning) [UR_ELECTION_##NAME] = UR_MANAGER_##state,
		UR_ELECTION_PHASES(X)
#undef X
	};

	*info = (struct ur_manager_info){
		.guid = e->attr.guid,
		.act_count = e->act_count,
		.priority = e->attr.priority,
		.state = states[e->phase],
		.seats = (uint8_t)e->attr.seats,
		.held = (uint8_t)seats_held(e, now_ns),
		.zone = e->attr.zone,
		.rules = e->attr.rules,
	};
	/* Not a moment longer than its seats. */
	if (info->state == UR_MANAGER_MASTER && !ur_election_is_master(e, now_ns))
		info->state = UR_MANAGER_STANDBY;
}

void ur_election_info(struct ur_election *e, uint64_t asked, uint64_t now_ns,
		      struct ur_manager_info *info)
{
	e->act_count++;
	fill_info(e, now_ns, info);
	info->number = e->challenge;
	ur_proof_seal(e->attr.zone_key, UR_PROOF_ANSWER, asked, info);
}

/* In its own name: what another manager proves is no proof of it. */
static bool is_proved(struct ur_election *e, const struct ur_election_peer *p, const uint8_t *data,
		      struct ur_manager_info *info)
{
	ur_get_manager_info(data, info);
	if (info->guid == p->guid &&
	    ur_proof_open(e->attr.zone_key, UR_PROOF_ANSWER, p->asked, info))
		return true;
	e->unproved += info->zone == e->attr.zone;
	if (info->zone == e->attr.zone)
		e->unproved_guid = p->guid;
	return false;
}

static void take_peer(struct ur_election *e, uint32_t index, const uint8_t *data, uint64_t now_ns)
{
	struct ur_election_peer *p = &e->peer[index];
	struct ur_manager_info info;
	bool telling = p->telling;

	p->open = p->telling = false;
	p->next_ns = now_ns + e->attr.poll_ns;
	p->fresh = data && is_proved(e, p, data, &info);
	if (telling) {
		if (p->fresh)
			p->info.number = info.number;
		if (p->fresh && p->guid == e->told_by)
			e->ack_left = 0;
		return;
	}
	if (!p->fresh) {
		p->missed += p->missed < UINT32_MAX;
		return;
	}
	p->missed = 0;
	p->told = true;
	p->info = info;
	if (e->phase == UR_ELECTION_HAND_OVER && p->guid == e->heir)
		p->next_ns = now_ns; /* it was asked because it has to be told */
}

/* ---- members ---- */

/*
 * A key that may be the node's and was not tried: its own former one, the one that came with HANDOVER, the one that was read
 * from a seat whose lease had ended. With the last one no seat is taken, because the lease of another seat may still run:
 * its master counts on it. MGR-ZONE-02
 */
static uint64_t untried_key(const struct ur_election *e, uint32_t i)
{
	uint64_t key[] = {e->old_key, e->told_key, i < e->attr.seats ? 0 : e->other_key};
	struct ur_hold *h = &e->hold[i];

	for (; h->tried < 3; h->tried++)
		if (key[h->tried])
			return key[h->tried++];
	return 0;
}

static void next_todo(struct ur_hold *h, enum todo todo, uint64_t key, uint64_t at_ns)
{
	h->todo = todo;
	h->key = key;
	h->next_ns = at_ns;
}

static void has_own_key(struct ur_election *e, uint32_t i, const struct ur_port_info *info,
			uint64_t now_ns)
{
	struct ur_hold *h = &e->hold[i];

	h->mine = true;
	h->challenged_ns = 0;
	h->until_ns = h->asked_ns + counts_for(e);
	if (info->m_key_protect != 1 || info->m_key_lease != e->attr.lease_s)
		next_todo(h, TODO_TAKE, e->key, now_ns);
	else
		next_todo(h, TODO_READ, 0,
			  h->asked_ns + ur_election_lease(e) / (i < e->attr.seats ? 4 : 2));
}

/* It has no key, or another one, which it does not show: a write with key 0 tells, and makes the lease run. */
static void has_hidden_key(struct ur_election *e, uint32_t i, uint64_t now_ns)
{
	struct ur_hold *h = &e->hold[i];
	uint64_t key = untried_key(e, i);

	if (key) {
		next_todo(h, TODO_TAKE, key, now_ns);
	} else if (!h->challenged_ns ||
		   now_ns - h->challenged_ns > ur_election_lease(e) + ur_election_lease(e) / 4) {
		next_todo(h, TODO_CHALLENGE, 0, now_ns);
	} else {
		next_todo(h, TODO_READ, 0, now_ns + ur_election_lease(e) / 8);
	}
}

static void change_key(struct ur_election *e)
{
	e->old_key = e->key;
	e->key = ur_election_draw(e);
	for (uint32_t i = 0; i < e->members; i++) {
		e->hold[i].until_ns = 0;
		e->hold[i].mine = false;
	}
}

/* What the member's PortInfo says, read or after a write. */
static void look(struct ur_election *e, uint32_t i, const uint8_t *data, uint64_t now_ns)
{
	struct ur_hold *h = &e->hold[i];
	struct ur_port_info info;

	ur_get_port_info(data, &info);
	memcpy(h->data, data, sizeof(h->data));
	h->told = true;
	h->mine = h->foreign = false;
	if (info.m_key == e->key && info.m_key_protect) {
		has_own_key(e, i, &info, now_ns);
		return;
	}
	h->until_ns = 0;
	h->way = 0; /* it may have been started again, and does not know where to report */
	if (info.m_key == e->key) {
		/* The lease has ended: others can read the key, and take what has it. */
		change_key(e);
		ur_election_contend(e, now_ns);
	} else if (!info.m_key && !info.m_key_protect) {
		next_todo(h, TODO_TAKE, 0, now_ns);
	} else if (info.m_key && !info.m_key_protect && info.m_key_lease) {
		/* The lease has ended, and the key can be read. Other members may have the same. */
		if (i < e->attr.seats)
			e->other_key = info.m_key;
		next_todo(h, TODO_TAKE, info.m_key, now_ns);
	} else if (!info.m_key_lease && (info.m_key || h->challenged_ns)) {
		/* A key for ever, such as that of a subnet manager: its owner's. */
		h->foreign = true;
		next_todo(h, TODO_READ, 0, now_ns + ur_election_lease(e));
	} else {
		has_hidden_key(e, i, now_ns);
	}
}

static void take_member(struct ur_election *e, uint32_t i, const uint8_t *data, uint64_t now_ns)
{
	struct ur_hold *h = &e->hold[i];
	enum todo did = (enum todo)h->doing;

	h->open = false;
	if (did == TODO_GIVE_BACK && h->todo == TODO_GIVE_BACK) {
		h->mine = false;
		next_todo(h, TODO_READ, 0, NEVER);
		return;
	}
	if (e->phase != UR_ELECTION_CONTEND && e->phase != UR_ELECTION_REIGN) {
		/* It may have taken the key, or have it still. */
		h->mine = h->mine || (data && did == TODO_TAKE);
		if (did == TODO_READ && data) {
			struct ur_port_info info;

			memcpy(h->data, data, sizeof(h->data));
			h->told = true;
			ur_get_port_info(data, &info);
			h->mine = h->mine && info.m_key == e->key; /* or it is another's */
		} else if (did == TODO_READ && !h->told) {
			h->mine = false; /* it does not answer: its lease will end */
		}
		next_todo(h, h->mine ? TODO_GIVE_BACK : TODO_READ, 0, h->mine ? now_ns : NEVER);
		if (e->phase == UR_ELECTION_HAND_OVER)
			h->next_ns = NEVER;
		return;
	}
	if (data) {
		look(e, i, data, now_ns);
		return;
	}
	/* A write with a key that was not the node's is not answered. At protection 2 and 3 a read is not either. */
	if (did == TODO_CHALLENGE || did == TODO_TAKE || !h->challenged_ns)
		h->challenged_ns = now_ns;
	next_todo(h, TODO_READ, 0, now_ns + ur_election_lease(e) / 8);
}

/* A Set with nothing changed but the key. */
static void make_write(const struct ur_election *e, const struct ur_hold *h,
		       struct ur_election_ask *ask)
{
	bool gives_back = h->todo == TODO_GIVE_BACK;
	struct ur_port_info info;

	ur_get_port_info(h->data, &info);
	info.state = UR_PORT_NOP;
	info.phys_state = info.down_default = 0;
	info.width_enabled = info.speed_enabled = info.speed_ext_enabled = 0;
	info.m_key = gives_back ? 0 : e->key;
	info.m_key_protect = !gives_back;
	info.m_key_lease = gives_back ? 0 : e->attr.lease_s;
	ask->what = UR_ELECTION_WRITE;
	ask->key = gives_back ? e->key : h->key;
	memset(ask->data, 0, sizeof(ask->data));
	ur_put_port_info(ask->data, &info);
}

static bool ask_member(struct ur_election *e, uint64_t now_ns, struct ur_election_ask *ask)
{
	for (uint32_t n = 0; n < e->members; n++) {
		uint32_t i = e->next_member;
		struct ur_hold *h = &e->hold[i];

		e->next_member = i + 1 == e->members ? 0 : i + 1;
		if (h->open || h->next_ns > now_ns)
			continue;
		if (h->todo != TODO_READ &&
		    !h->told) /* nothing is known that could be written back */
			h->todo = TODO_READ;
		*ask = (struct ur_election_ask){.index = i, .key = e->key};
		if (h->todo == TODO_READ)
			ask->what = UR_ELECTION_READ;
		else
			make_write(e, h, ask);
		h->open = true;
		h->doing = h->todo;
		h->asked_ns = now_ns;
		return true;
	}
	return false;
}

/* ---- questions ---- */

static bool poll(struct ur_election *e, struct ur_election_peer *p, struct ur_election_ask *ask)
{
	struct ur_manager_info question = {.number = ur_election_draw(e)};

	*ask = (struct ur_election_ask){.what = UR_ELECTION_POLL, .index = (uint32_t)(p - e->peer)};
	ur_put_manager_info(ask->data, &question);
	p->asked = question.number;
	p->open = true;
	return true;
}

/* A peer whose last answer had no proof, or that has been told something since, is asked first. */
static bool tell(struct ur_election *e, struct ur_election_peer *p, uint32_t order, uint64_t key,
		 uint64_t now_ns, struct ur_election_ask *ask)
{
	struct ur_manager_info info;

	if (!p->fresh)
		return poll(e, p, ask);
	fill_info(e, now_ns, &info);
	info.m_key = key;
	info.number = p->asked = ur_election_draw(e);
	ur_proof_seal(e->attr.zone_key, order, p->info.number, &info);
	*ask = (struct ur_election_ask){
		.what = UR_ELECTION_TELL, .index = (uint32_t)(p - e->peer), .modifier = order};
	ur_put_manager_info(ask->data, &info);
	p->open = p->telling = true;
	return true;
}

static bool ask_peer(struct ur_election *e, uint64_t now_ns, struct ur_election_ask *ask)
{
	struct ur_election_peer *to = find_peer(e, e->told_by);

	if (e->phase == UR_ELECTION_REIGN && e->ack_left && to && !to->open) {
		e->ack_left--;
		return tell(e, to, UR_MANAGER_ACKNOWLEDGE, e->told_key, now_ns, ask);
	}
	for (uint32_t i = 0; i < e->peers; i++) {
		struct ur_election_peer *p = &e->peer[i];

		if (p->open || p->next_ns > now_ns)
			continue;
		e->act_count++;
		if (e->phase == UR_ELECTION_HAND_OVER && p->guid == e->heir)
			return tell(e, p, UR_MANAGER_HANDOVER, e->key, now_ns, ask);
		return poll(e, p, ask);
	}
	return false;
}

/* ---- what follows ---- */

static void end_listen(struct ur_election *e, uint64_t now_ns)
{
	uint32_t before = e->ranked ? 0 : rank(e);

	e->ranked = true;
	if (before)
		e->until_ns = now_ns + before * 2 * ur_election_lease(e);
	else
		ur_election_contend(e, now_ns);
}

/* Some seats, and not enough: others have the rest. Each manager tries again at a time of its own. */
static void end_contest(struct ur_election *e, uint64_t now_ns)
{
	uint64_t pause =
		ur_election_lease(e) / 2 + ur_election_draw(e) % (2 * ur_election_lease(e));

	ur_election_give_back(e, now_ns);
	ur_election_listen_until(e, now_ns + pause);
	e->ranked = true;
}

static void step_contend(struct ur_election *e, uint64_t now_ns)
{
	uint32_t seats = seats_held(e, now_ns);

	if (is_majority(e, seats))
		reign(e, now_ns);
	else if (!seats)
		e->until_ns = NEVER;
	else if (e->until_ns == NEVER)
		e->until_ns = now_ns + 2 * ur_election_lease(e);
	else if (now_ns >= e->until_ns)
		end_contest(e, now_ns);
}

static void step_follow(struct ur_election *e, uint64_t now_ns)
{
	const struct ur_election_peer *p = find_peer(e, e->master);
	uint64_t master = other_master(e);

	if (p && !is_gone(e, p) && p->info.state == UR_MANAGER_MASTER)
		return;
	if (master)
		e->master = master;
	else
		ur_election_listen_until(e, now_ns);
}

/* The phase that follows from what is known now. */
void ur_election_step(struct ur_election *e, uint64_t now_ns)
{
	uint64_t master;

	e->now_ns = now_ns;
	switch (e->phase) {
	case UR_ELECTION_LISTEN:
	case UR_ELECTION_CONTEND:
		master = other_master(e);
		if (master)
			follow(e, master, now_ns);
		else if (e->phase == UR_ELECTION_CONTEND)
			step_contend(e, now_ns);
		else if (now_ns >= e->until_ns)
			end_listen(e, now_ns);
		break;
	case UR_ELECTION_FOLLOW:
		step_follow(e, now_ns);
		break;
	case UR_ELECTION_REIGN:
		if (!ur_election_is_master(e, now_ns)) {
			ur_election_stop_holds(e);
			ur_election_listen_until(e, now_ns + e->attr.poll_ns);
		}
		break;
	case UR_ELECTION_HAND_OVER: /* it may still have its seats */
		if (now_ns >= e->until_ns) {
			change_key(e); /* the heir knows the old one */
			ur_election_contend(e, now_ns);
		}
		break;
	case UR_ELECTION_OFF:
		break;
	}
}

bool ur_election_output(struct ur_election *e, uint64_t now_ns, struct ur_election_ask *ask)
{
	ur_election_step(e, now_ns);
	return ask_member(e, now_ns, ask) || ask_peer(e, now_ns, ask);
}

void ur_election_answer(struct ur_election *e, enum ur_election_what what, uint32_t index,
			const uint8_t *data, uint64_t now_ns)
{
	if (what == UR_ELECTION_READ || what == UR_ELECTION_WRITE)
		take_member(e, index, data, now_ns);
	else
		take_peer(e, index, data, now_ns);
	ur_election_step(e, now_ns);
}

uint64_t ur_election_next_deadline(const struct ur_election *e)
{
	uint64_t next = e->phase == UR_ELECTION_OFF ? NEVER : e->until_ns;

	for (uint32_t i = 0; i < e->members; i++)
		if (!e->hold[i].open && e->hold[i].next_ns < next)
			next = e->hold[i].next_ns;
	for (uint32_t i = 0; i < e->peers; i++)
		if (!e->peer[i].open && e->peer[i].next_ns < next)
			next = e->peer[i].next_ns;
	/* A reign ends when too few of its seats are renewed. */
	for (uint32_t i = 0; e->phase == UR_ELECTION_REIGN && i < e->attr.seats; i++)
		if (e->hold[i].until_ns > e->now_ns && e->hold[i].until_ns < next)
			next = e->hold[i].until_ns;
	return next;
}

/* ---- the end ---- */

void ur_election_leave(struct ur_election *e, uint64_t now_ns)
{
	e->phase = UR_ELECTION_OFF;
	e->master = 0;
	e->now_ns = now_ns;
	ur_election_give_back(e, now_ns);
}

bool ur_election_has_left(const struct ur_election *e)
{
	for (uint32_t i = 0; i < e->members; i++)
		if (e->hold[i].mine || e->hold[i].open)
			return false;
	return e->phase == UR_ELECTION_OFF;
}
