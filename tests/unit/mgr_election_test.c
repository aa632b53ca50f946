/* SPDX-License-Identifier: BSD-3-Clause */
#include "manager/election.h"
#include "manager/proof.h"
#include "nma_fabric.h"

/*
 * Several managers and the real agents of a zone's seats, under virtual time. Questions and answers get lost, managers and
 * seats are cut off from each other, managers die and come back. After each event there is at most one master, and what
 * it may write no other one may. One node more answers as if it were a manager that comes first, without the zone's key.
 */
#define MANAGERS 4
#define SEATS	 5
#define MEMBERS	 8
#define MS	 UINT64_C(1000000)
#define LEASE_NS UINT64_C(2000000000)
#define TIMEOUT	 (20 * MS)
#define WAITING	 64
#define ZONE_KEY UINT64_C(0x5a5a)
#define NONE	 (-1)
#define LIAR	 MANAGERS /* as a manager's number; never one that runs */

/* A question on its way: what it comes to is known at once, and arrives later. */
struct waiting {
	uint64_t at_ns; /* 0: free */
	struct ur_election_ask ask;
	bool answered;
	uint8_t data[UR_SMP_DATA_BYTES];
};

struct manager {
	bool alive;
	struct ur_election e;
	struct ur_hold hold[MEMBERS];
	struct waiting waiting[WAITING];
	uint64_t guid;
};

struct world {
	struct fabric *f;
	struct manager m[MANAGERS];
	unsigned managers, members, misses;
	uint32_t random, loss;	     /* of 1000 */
	bool cut[MANAGERS][MEMBERS]; /* manager and member do not reach each other */
	bool apart[MANAGERS][MANAGERS];
	uint64_t masters_ns; /* time in which there was a master */
	bool forgets;	     /* seats may forget their keys: two masters, for a lease at most */
	uint64_t two_ns;
	struct ur_manager_info heard; /* the last true answer, which the liar has seen */
	unsigned lies;
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->random = w->random * 1664525u + 1013904223u;
	return (w->random >> 8) % below;
}

static void start_manager(struct world *w, unsigned i, uint8_t priority)
{
	struct manager *m = &w->m[i];
	struct ur_election_attr attr = {
		.guid = 0x100 + i,
		.priority = priority,
		.lease_s = LEASE_NS / 1000000000,
		.poll_ns = 200 * MS,
		.misses = 3,
		.seats = SEATS,
		.zone = 1,
		.rules = 2,
		.zone_key = ZONE_KEY,
		.seed = draw(w, 1u << 24) + 1u,
	};
	uint64_t guid[MANAGERS + 1];

	memset(m, 0, sizeof(*m));
	m->alive = true;
	for (unsigned k = 0; k < w->members; k++)
		m->hold[k].guid = 0x1000 + k;
	ur_election_init(&m->e, &attr, m->hold, w->f->now);
	ur_election_set_members(&m->e, m->hold, w->members);
	for (unsigned k = 0; k < w->managers; k++)
		guid[k] = 0x100 + k;
	guid[w->managers] = 0x100 + LIAR;
	ur_election_set_peers(&m->e, guid, w->managers + 1);
}

static struct world *new_world(unsigned managers, unsigned members, uint32_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	w->f = fabric_new();
	w->managers = managers;
	w->members = members;
	w->random = seed * 2654435761u + 1;
	for (unsigned i = 0; i < members; i++)
		fabric_add(w->f, false, NULL);
	for (unsigned i = 0; i < managers; i++)
		start_manager(w, i, 0);
	return w;
}

static void free_world(struct world *w)
{
	fabric_free(w->f);
	free(w);
}

static bool lost(struct world *w)
{
	return draw(w, 1000) < w->loss;
}

/* The agent of a member is asked, by its own client: keys and leases do not depend on the way. */
static bool ask_member(struct world *w, const struct ur_election_ask *q, uint8_t *data)
{
	bool sets = q->what == UR_ELECTION_WRITE;
	struct mad m = new_dr(w->f, sets ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET, UR_SMP_PORT_INFO,
			      0, NULL, 0);
	struct mad answer;

	ur_store64(m.b + UR_SMP_MKEY, q->key);
	memcpy(m.b + UR_SMP_DATA, q->data, UR_SMP_DATA_BYTES);
	if (!ask(w->f, (int)q->index, &m, 0, &answer) || status_of(&answer))
		return false;
	memcpy(data, answer.b + UR_SMP_DATA, UR_SMP_DATA_BYTES);
	return true;
}

/* Who sees an order on its way learns no key. MGR-ZONE-05 */
static void check_secret(const struct world *w, unsigned from, const uint8_t *data)
{
	const struct ur_election *e = &w->m[from].e;

	for (unsigned i = 0; i + 8 <= UR_SMP_DATA_BYTES; i++) {
		uint64_t v = ur_load64(data + i);

		cr_assert(!v || (v != ZONE_KEY && v != e->key && v != e->told_key),
			  "a key in an order");
	}
}

/* A standby or a master of priority 15, whatever is asked; with no proof, or with what a true manager has proved. */
static bool lie(struct world *w, const struct ur_election_ask *a, uint8_t *data)
{
	struct ur_manager_info info = w->heard;

	cr_assert(a->what == UR_ELECTION_POLL, "an order for a node that proves nothing");
	info.priority = 15;
	info.state = draw(w, 2) ? UR_MANAGER_STANDBY : UR_MANAGER_MASTER;
	info.zone = 1;
	info.rules = 2;
	info.seats = info.held = SEATS;
	if (draw(w, 4))
		info.guid = 0x100 + LIAR;
	if (!draw(w, 4))
		info = w->heard; /* word for word */
	memset(data, 0, UR_SMP_DATA_BYTES);
	ur_put_manager_info(data, &info);
	w->lies++;
	return true;
}

static bool ask_peer(struct world *w, unsigned from, const struct ur_election_ask *a, uint8_t *data)
{
	unsigned to = (unsigned)(w->m[from].e.peer[a->index].guid - 0x100);
	struct ur_manager_info info;

	if (to == LIAR)
		return lie(w, a, data);
	if (!w->m[to].alive || w->apart[from][to] || lost(w))
		return false;
	ur_get_manager_info(a->data, &info);
	if (a->what == UR_ELECTION_TELL) {
		check_secret(w, from, a->data);
		if (!ur_election_order(&w->m[to].e, a->modifier, &info, w->f->now))
			return false;
	}
	ur_election_info(&w->m[to].e, info.number, w->f->now, &info);
	w->heard = info;
	memset(data, 0, UR_SMP_DATA_BYTES);
	ur_put_manager_info(data, &info);
	return !lost(w);
}

static void send(struct world *w, unsigned from, const struct ur_election_ask *a)
{
	struct manager *m = &w->m[from];
	struct waiting *x = m->waiting;
	bool port = a->what == UR_ELECTION_READ || a->what == UR_ELECTION_WRITE;

	while (x->at_ns)
		x++;
	cr_assert(x < m->waiting + WAITING);
	*x = (struct waiting){.ask = *a};
	if (port && !w->cut[from][a->index] && !lost(w)) /* the answer may be lost as well */
		x->answered = ask_member(w, a, x->data) && !lost(w);
	else if (!port)
		x->answered = ask_peer(w, from, a, x->data);
	x->at_ns = w->f->now + (x->answered ? MS + draw(w, 5) * MS : TIMEOUT);
}

static int master_of(const struct world *w)
{
	int master = NONE;

	for (unsigned i = 0; i < w->managers; i++) {
		if (!w->m[i].alive || !ur_election_is_master(&w->m[i].e, w->f->now))
			continue;
		if (master != NONE)
			return -2;
		master = (int)i;
	}
	return master;
}

static uint64_t key_of(struct world *w, int node)
{
	uint8_t data[UR_SMP_DATA_BYTES];
	struct ur_port_info info;

	/* Not by a MAD: one with the master's key would renew it. */
	(void)ur_nma_query(w->f->node[node].nma, UR_SMP_PORT_INFO, 0, data);
	ur_get_port_info(data, &info);
	return info.m_key;
}

/* MGR-ZONE-01: a master's key is on more than half of the seats, and there it stays as long as it thinks. */
static void check(struct world *w)
{
	int master = master_of(w);
	unsigned has = 0;

	if (w->forgets)
		return;
	cr_assert(master != -2, "two masters");
	for (unsigned i = 0; i < w->managers; i++)
		cr_assert(w->m[i].e.master != 0x100 + LIAR && w->m[i].e.heir != 0x100 + LIAR);
	if (master == NONE)
		return;
	for (int i = 0; i < SEATS; i++)
		has += key_of(w, i) == w->m[master].e.key;
	cr_assert(2 * has > SEATS, "a master with %u seats", has);
}

/* The next moment at which anything happens, and what happens then. */
static void step(struct world *w, uint64_t end)
{
	uint64_t next = end;
	struct ur_election_ask a;

	for (unsigned i = 0; i < w->managers; i++) {
		struct manager *m = &w->m[i];

		if (!m->alive)
			continue;
		while (ur_election_output(&m->e, w->f->now, &a))
			send(w, i, &a);
		if (ur_election_next_deadline(&m->e) < next)
			next = ur_election_next_deadline(&m->e);
		for (unsigned k = 0; k < WAITING; k++)
			if (m->waiting[k].at_ns && m->waiting[k].at_ns < next)
				next = m->waiting[k].at_ns;
	}
	check(w);
	next = next > w->f->now ? next : w->f->now + 1;
	w->masters_ns += master_of(w) >= 0 ? next - w->f->now : 0;
	w->two_ns += master_of(w) == -2 ? next - w->f->now : 0;
	fabric_sleep(w->f, next - w->f->now);
	for (unsigned i = 0; i < w->managers; i++)
		for (unsigned k = 0; k < WAITING; k++) {
			struct waiting x = w->m[i].waiting[k];

			if (!w->m[i].alive || !x.at_ns || x.at_ns > w->f->now)
				continue;
			w->m[i].waiting[k].at_ns = 0;
			ur_election_answer(&w->m[i].e, x.ask.what, x.ask.index,
					   x.answered ? x.data : NULL, w->f->now);
			check(w);
		}
}

static void run(struct world *w, uint64_t ns)
{
	uint64_t end = w->f->now + ns;

	while (w->f->now < end)
		step(w, end);
}

/* Runs until there is a master, other than `not`; returns it. */
static int wait_master(struct world *w, int not, uint64_t within_ns)
{
	uint64_t end = w->f->now + within_ns;

	while (w->f->now < end) {
		int master = master_of(w);

		if (master >= 0 && master != not )
			return master;
		step(w, end);
	}
	cr_assert_fail("no master within %llu ms", (unsigned long long)(within_ns / MS));
	return NONE;
}

static bool has_all(struct world *w, int manager)
{
	for (unsigned i = 0; i < w->members; i++)
		if (key_of(w, (int)i) != w->m[manager].e.key)
			return false;
	return true;
}

/* As uroce-ctl gives it: with a proof that it has asked before. `info` is what is sent. */
static bool sealed_order(struct world *w, int to, uint32_t modifier, struct ur_manager_info *info,
			 uint64_t zone_key)
{
	struct ur_manager_info said;

	ur_election_info(&w->m[to].e, 0, w->f->now, &said);
	info->number = draw(w, 1u << 24);
	ur_proof_seal(zone_key, modifier, said.number, info);
	return ur_election_order(&w->m[to].e, modifier, info, w->f->now);
}

static bool order(struct world *w, int to, uint32_t modifier, uint64_t heir)
{
	struct ur_manager_info info = {.zone = 1, .rules = 2, .to = heir};

	return sealed_order(w, to, modifier, &info, ZONE_KEY);
}

Test(election, one_manager_becomes_master_of_all_members)
{
	struct world *w = new_world(1, MEMBERS, 1);

	cr_assert(wait_master(w, NONE, 2000 * MS) == 0);
	run(w, 500 * MS);
	cr_assert(has_all(w, 0));
	run(w, 20 * LEASE_NS);
	cr_assert(w->m[0].e.terms == 1, "it lost its seats without a rival");
	free_world(w);
}

/* IBA 14.4.1: the highest priority, then the lowest GUID. */
Test(election, priority_decides_at_the_start)
{
	struct world *w = new_world(3, MEMBERS, 2);

	start_manager(w, 2, 9);
	cr_assert(wait_master(w, NONE, 3000 * MS) == 2);
	free_world(w);
	w = new_world(3, MEMBERS, 2);
	cr_assert(wait_master(w, NONE, 3000 * MS) == 0);
	run(w, 3 * LEASE_NS);
	cr_assert(w->m[1].e.phase == UR_ELECTION_FOLLOW && w->m[2].e.phase == UR_ELECTION_FOLLOW);
	free_world(w);
}

/* Three polls of 200 ms, a lease of 2 s, and what eighths of it add. */
Test(election, a_standby_takes_over_in_bounded_time)
{
	struct world *w = new_world(2, MEMBERS, 3);
	int first = wait_master(w, NONE, 3000 * MS);
	uint64_t died;

	run(w, 3 * LEASE_NS);
	cr_assert(has_all(w, first));
	w->m[first].alive = false;
	died = w->f->now;
	cr_assert(wait_master(w, first, 4 * LEASE_NS) == 1 - first);
	cr_assert(w->f->now - died <= 3 * 200 * MS + LEASE_NS + LEASE_NS / 4 + 4 * TIMEOUT,
		  "after %llu ms", (unsigned long long)((w->f->now - died) / MS));
	/* Not before the lease has run: the dead one could still write. */
	cr_assert(w->f->now - died >= LEASE_NS);
	run(w, 500 * MS);
	cr_assert(has_all(w, 1 - first));
	/* The first one comes back, follows, and gets the zone by command. */
	start_manager(w, (unsigned)first, 15);
	run(w, 3 * LEASE_NS);
	cr_assert(master_of(w) == 1 - first && w->m[first].e.phase == UR_ELECTION_FOLLOW);
	cr_assert(order(w, 1 - first, UR_MANAGER_RESIGN, 0));
	died = w->f->now;
	cr_assert(wait_master(w, 1 - first, LEASE_NS) == first);
	cr_assert(w->f->now - died < LEASE_NS / 4, "handing over waits for no lease");
	run(w, 500 * MS);
	cr_assert(has_all(w, first));
	cr_assert(w->m[1 - first].e.phase == UR_ELECTION_FOLLOW);
	free_world(w);
}

/* MGR-ZONE-05: with the zone's key only. A standby that does not get the seats does not reign. */
Test(election, orders_need_the_key)
{
	struct world *w = new_world(2, MEMBERS, 4);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;
	const struct ur_manager_info good = {
		.guid = 0x100 + (unsigned)first, .zone = 1, .rules = 2, .m_key = 77};
	struct ur_manager_info info = good;

	run(w, LEASE_NS);
	cr_assert(!sealed_order(w, first, UR_MANAGER_RESIGN, &info, 1));
	info = good;
	cr_assert(!sealed_order(w, other, UR_MANAGER_HANDOVER, &info, 1));
	info = good;
	info.rules = 3;
	cr_assert(!sealed_order(w, other, UR_MANAGER_HANDOVER, &info, ZONE_KEY));
	info = good; /* forged by one that knows the zone's key, but no M_Key */
	cr_assert(sealed_order(w, other, UR_MANAGER_HANDOVER, &info, ZONE_KEY));
	run(w, 5 * LEASE_NS);
	cr_assert(master_of(w) == first && w->m[first].e.terms == 1);
	cr_assert(w->m[other].e.phase == UR_ELECTION_FOLLOW);
	info = good;
	info.m_key = 0;
	cr_assert(!sealed_order(w, first, UR_MANAGER_ACKNOWLEDGE, &info, ZONE_KEY));
	info = good;
	cr_assert(!sealed_order(w, first, UR_MANAGER_DISABLE, &info, ZONE_KEY));
	free_world(w);
}

/* Who saw an order cannot give it again, nor another one with its proof. MGR-ZONE-05 */
Test(election, an_order_counts_once)
{
	struct world *w = new_world(2, MEMBERS, 12);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;
	struct ur_manager_info info = {.zone = 1, .rules = 2}, changed;
	struct ur_election *e = &w->m[other].e;

	run(w, LEASE_NS);
	cr_assert(sealed_order(w, other, UR_MANAGER_DISABLE, &info, ZONE_KEY));
	cr_assert(e->phase == UR_ELECTION_OFF);
	changed = info;
	cr_assert(order(w, other, UR_MANAGER_STANDBY_ORDER, 0));
	cr_assert(!ur_election_order(e, UR_MANAGER_DISABLE, &info, w->f->now), "an older one");
	changed.number++;
	cr_assert(!ur_election_order(e, UR_MANAGER_DISABLE, &changed, w->f->now));
	cr_assert(e->phase != UR_ELECTION_OFF);
	/* The last one again is one whose answer was lost: it is answered, and nothing is done. */
	info = (struct ur_manager_info){.zone = 1, .rules = 2};
	cr_assert(sealed_order(w, first, UR_MANAGER_RESIGN, &info, ZONE_KEY));
	cr_assert(w->m[first].e.phase == UR_ELECTION_HAND_OVER);
	cr_assert(ur_election_order(&w->m[first].e, UR_MANAGER_RESIGN, &info, w->f->now));
	cr_assert(wait_master(w, first, 3 * LEASE_NS) == other);
	run(w, LEASE_NS);
	cr_assert(order(w, other, UR_MANAGER_RESIGN, 0));
	cr_assert(wait_master(w, other, 3 * LEASE_NS) == first);
	cr_assert(!ur_election_order(&w->m[first].e, UR_MANAGER_RESIGN, &info, w->f->now));
	cr_assert(master_of(w) == first);
	free_world(w);
}

/* A proof is of all that an answer says, and of the question. MGR-ZONE-06 */
Test(election, a_proof_covers_each_bit)
{
	struct ur_manager_info good = {.guid = 3, .priority = 4, .zone = 1, .rules = 2, .m_key = 9};
	uint8_t data[UR_SMP_DATA_BYTES] = {0}, wrong[UR_SMP_DATA_BYTES];
	struct ur_manager_info info, plain = good;
	unsigned refused = 0;

	good.number = plain.number = 5;
	ur_proof_seal(ZONE_KEY, UR_MANAGER_HANDOVER, 7, &good);
	cr_assert(good.m_key != plain.m_key);
	ur_put_manager_info(data, &good);
	for (unsigned bit = 0; bit < 8 * UR_SMP_DATA_BYTES; bit++) {
		memcpy(wrong, data, sizeof(wrong));
		wrong[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ur_get_manager_info(wrong, &info);
		refused += !ur_proof_open(ZONE_KEY, UR_MANAGER_HANDOVER, 7, &info);
	}
	cr_assert(refused == 8 * UR_SMP_DATA_BYTES - 8, "all but the reserved byte: %u", refused);
	info = good;
	cr_assert(!ur_proof_open(ZONE_KEY, UR_MANAGER_HANDOVER, 8, &info));
	cr_assert(!ur_proof_open(ZONE_KEY + 1, UR_MANAGER_HANDOVER, 7, &info));
	cr_assert(!ur_proof_open(ZONE_KEY, UR_MANAGER_ACKNOWLEDGE, 7, &info));
	cr_assert(!ur_proof_open(ZONE_KEY, UR_PROOF_ANSWER, 7, &info));
	cr_assert(ur_proof_open(ZONE_KEY, UR_MANAGER_HANDOVER, 7, &info));
	cr_assert(info.m_key == plain.m_key);
}

Test(election, a_disabled_standby_takes_nothing_over)
{
	struct world *w = new_world(2, MEMBERS, 5);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;

	run(w, LEASE_NS);
	cr_assert(order(w, other, UR_MANAGER_DISABLE, 0));
	run(w, 500 * MS);
	cr_assert(!order(w, first, UR_MANAGER_RESIGN, 0), "no manager can take over");
	w->m[first].alive = false;
	run(w, 5 * LEASE_NS);
	cr_assert(master_of(w) == NONE);
	cr_assert(order(w, other, UR_MANAGER_STANDBY_ORDER, 0));
	cr_assert(wait_master(w, NONE, 3 * LEASE_NS) == other);
	free_world(w);
}

/* MGR-ZONE-03: the heir is gone when it is told, the master takes back what it has. */
Test(election, a_handover_that_nobody_takes_ends_where_it_began)
{
	struct world *w = new_world(2, MEMBERS, 6);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;

	run(w, LEASE_NS);
	w->m[other].alive = false;
	cr_assert(order(w, first, UR_MANAGER_RESIGN, 0));
	cr_assert(master_of(w) == NONE);
	cr_assert(wait_master(w, NONE, 3 * LEASE_NS) == first);
	free_world(w);
}

/* The next question to the peer; others are not answered. */
static void next_for(struct world *w, int from, int to, struct ur_election_ask *a)
{
	struct ur_election *e = &w->m[from].e;

	for (;;) {
		cr_assert(ur_election_output(e, w->f->now, a), "nothing is asked");
		if ((a->what == UR_ELECTION_POLL || a->what == UR_ELECTION_TELL) &&
		    e->peer[a->index].guid == w->m[to].e.attr.guid)
			return;
	}
}

/* Whether the one that was cancelled was obeyed is not known: the peer is asked, and told again after its answer. */
Test(election, a_question_is_not_taken_for_an_order_that_was_cancelled)
{
	static const uint64_t guid[] = {0x100, 0x101};
	struct world *w = new_world(2, MEMBERS, 13);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;
	struct ur_election *e = &w->m[first].e;
	uint8_t data[UR_SMP_DATA_BYTES];
	struct ur_election_ask a;

	run(w, LEASE_NS);
	memset(w->m[first].waiting, 0, sizeof(w->m[first].waiting));
	ur_election_set_peers(e, guid, 2);
	cr_assert(ur_election_resign(e, guid[other], w->f->now));
	next_for(w, first, other, &a);
	while (a.what == UR_ELECTION_POLL) {
		cr_assert(ask_peer(w, (unsigned)first, &a, data));
		ur_election_answer(e, a.what, a.index, data, w->f->now);
		next_for(w, first, other, &a);
	}
	for (unsigned i = 0; i < 2; i++) {
		/* As at the end of a discovery; the first time the order was obeyed, the second time it was lost. */
		if (!i)
			cr_assert(ask_peer(w, (unsigned)first, &a, data));
		ur_election_set_peers(e, guid, 2);
		next_for(w, first, other, &a);
		cr_assert_eq(a.what, UR_ELECTION_POLL);
		cr_assert(ask_peer(w, (unsigned)first, &a, data));
		ur_election_answer(e, a.what, a.index, data, w->f->now);
		next_for(w, first, other, &a);
		cr_assert_eq(a.what, UR_ELECTION_TELL, "it is told at once");
	}
	cr_assert(ask_peer(w, (unsigned)first, &a, data), "the order is refused");
	ur_election_answer(e, a.what, a.index, data, w->f->now);
	cr_expect_eq(w->m[other].e.phase, UR_ELECTION_CONTEND);
	cr_expect_eq(w->m[other].e.told_key, e->key);
	free_world(w);
}

/* It learns the key, gets no seat, and cannot use the key when the master has its seats again. MGR-ZONE-03 */
Test(election, a_key_that_an_heir_was_told_is_replaced)
{
	struct world *w = new_world(2, MEMBERS, 10);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;
	uint64_t told = w->m[first].e.key;

	run(w, LEASE_NS);
	memset(w->cut[other], true, sizeof(w->cut[other]));
	cr_assert(order(w, first, UR_MANAGER_RESIGN, 0));
	run(w, 300 * MS);
	cr_assert(w->m[other].e.phase == UR_ELECTION_CONTEND && w->m[other].e.told_key == told);
	w->apart[first][other] = w->apart[other][first] = true;
	cr_assert(wait_master(w, NONE, 4 * LEASE_NS) == first);
	memset(w->cut, 0, sizeof(w->cut));
	run(w, 4 * LEASE_NS);
	cr_assert(master_of(w) == first && w->m[first].e.key != told);
	free_world(w);
}

/* While it was cut off the leases ended, and its key could be read. */
Test(election, a_key_that_could_be_read_is_replaced)
{
	struct world *w = new_world(1, MEMBERS, 11);
	struct ur_election_ask challenge = {.what = UR_ELECTION_WRITE};
	uint64_t read;
	uint8_t data[UR_SMP_DATA_BYTES];

	(void)wait_master(w, NONE, 2000 * MS);
	run(w, LEASE_NS);
	read = w->m[0].e.key;
	memset(w->cut[0], true, sizeof(w->cut[0]));
	for (challenge.index = 0; challenge.index < SEATS; challenge.index++)
		cr_assert(!ask_member(w, &challenge, data));
	run(w, 2 * LEASE_NS);
	cr_assert(master_of(w) == NONE);
	memset(w->cut, 0, sizeof(w->cut));
	(void)wait_master(w, NONE, 2 * LEASE_NS);
	for (int i = 0; i < SEATS; i++)
		cr_assert(key_of(w, i) != read);
	free_world(w);
}

/* Keys without a lease are those of a subnet manager: it stays theirs. MGR-ZONE-02 */
Test(election, a_key_without_a_lease_is_never_taken)
{
	struct world *w = new_world(1, MEMBERS, 7);
	struct ur_election_ask ask = {.what = UR_ELECTION_READ};
	struct ur_port_info info;
	uint8_t data[UR_SMP_DATA_BYTES];

	for (ask.index = 0; ask.index < SEATS; ask.index++) {
		ask.what = UR_ELECTION_READ;
		cr_assert(ask_member(w, &ask, data));
		ur_get_port_info(data, &info);
		info.state = 0, info.phys_state = 0, info.down_default = 0;
		info.m_key = 0xabc;
		info.m_key_protect = ask.index % 2; /* 0: the key can be read */
		ask.what = UR_ELECTION_WRITE;
		memset(ask.data, 0, sizeof(ask.data));
		ur_put_port_info(ask.data, &info);
		cr_assert(ask_member(w, &ask, data));
	}
	run(w, 10 * LEASE_NS);
	cr_assert(master_of(w) == NONE);
	for (int i = 0; i < SEATS; i++)
		cr_assert(key_of(w, i) == 0xabc);
	free_world(w);
}

Test(election, one_that_leaves_gives_back_all_keys)
{
	struct world *w = new_world(1, MEMBERS, 8);

	(void)wait_master(w, NONE, 2000 * MS);
	run(w, 500 * MS);
	ur_election_leave(&w->m[0].e, w->f->now);
	run(w, 500 * MS);
	cr_assert(ur_election_has_left(&w->m[0].e));
	for (unsigned i = 0; i < MEMBERS; i++)
		cr_assert(key_of(w, (int)i) == 0);
	free_world(w);
}

/* A master that is cut off is none by its own clock, before another can take its seats. */
Test(election, a_partition_has_one_master_at_most)
{
	struct world *w = new_world(2, MEMBERS, 9);
	int first = wait_master(w, NONE, 3000 * MS), other = 1 - first;
	uint64_t cut_ns;

	run(w, LEASE_NS);
	for (unsigned i = 0; i < 3; i++)
		w->cut[first][i] = true; /* two of five seats are left to it */
	w->apart[first][other] = w->apart[other][first] = true;
	cut_ns = w->f->now;
	while (master_of(w) == first)
		step(w, UINT64_MAX);
	cr_assert(w->f->now - cut_ns <= LEASE_NS);
	cr_assert(wait_master(w, first, 4 * LEASE_NS) == other);
	memset(w->cut, 0, sizeof(w->cut));
	memset(w->apart, 0, sizeof(w->apart));
	run(w, 6 * LEASE_NS);
	cr_assert(master_of(w) == other && has_all(w, other));
	free_world(w);
}

static void misfortune(struct world *w)
{
	unsigned i = draw(w, w->managers), k = draw(w, w->managers), s = draw(w, w->members);

	switch (draw(w, 8)) {
	case 0:
		w->cut[i][s] = true;
		break;
	case 1:
		w->apart[i][k] = true; /* in one direction */
		break;
	case 2:
		memset(w->cut[i], 0, sizeof(w->cut[i]));
		memset(w->apart[i], 0, sizeof(w->apart[i]));
		break;
	case 3:
		w->m[i].alive = false;
		break;
	case 4:
		if (!w->m[i].alive)
			start_manager(w, i, (uint8_t)draw(w, 3));
		break;
	case 5:
		(void)order(w, (int)i, UR_MANAGER_RESIGN, 0);
		break;
	case 6:
		(void)order(w, (int)i, draw(w, 2) ? UR_MANAGER_DISCOVER : UR_MANAGER_STANDBY_ORDER,
			    0);
		break;
	default:
		w->loss = draw(w, 3) * 150;
	}
}

/* MGR-ZONE-01: check() runs after each event. Afterwards all is well, and a master is found. */
Test(election, never_two_masters, .timeout = 120)
{
	const char *seeds = getenv("UROCE_ELECTION_SEEDS");
	unsigned cnt = seeds ? (unsigned)atoi(seeds) : 40;
	uint64_t all = 0, masters = 0, lies = 0;

	for (uint32_t seed = 1; seed <= cnt; seed++) {
		struct world *w = new_world(2 + seed % 3, SEATS, seed);

		for (unsigned i = 0; i < 40; i++) {
			run(w, draw(w, 1500) * MS);
			misfortune(w);
		}
		memset(w->cut, 0, sizeof(w->cut));
		memset(w->apart, 0, sizeof(w->apart));
		w->loss = 0;
		all += w->f->now;
		masters += w->masters_ns;
		lies += w->lies;
		for (unsigned i = 0; i < w->managers; i++)
			if (!w->m[i].alive)
				start_manager(w, i, 0);
		run(w, 12 * LEASE_NS);
		cr_assert(master_of(w) >= 0, "seed %u: no master in the end", seed);
		run(w, 4 * LEASE_NS);
		cr_assert(has_all(w, master_of(w)), "seed %u", seed);
		free_world(w);
	}
	cr_assert(lies > 1000 * cnt / 40, "the liar was asked %llu times",
		  (unsigned long long)lies);
	/* The test would hold if there never were a master. */
	cr_assert(masters > all / 4, "a master in %llu of %llu ms",
		  (unsigned long long)(masters / MS), (unsigned long long)(all / MS));
}

/* A seat that restarts has no key: what its master believes is wrong for a lease at most. */
Test(election, seats_that_forget_cost_a_lease, .timeout = 120)
{
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct world *w = new_world(2, SEATS, seed);
		int first;

		w->forgets = true;
		first = wait_master(w, NONE, 3000 * MS);
		run(w, LEASE_NS);
		w->apart[first][1 - first] = w->apart[1 - first][first] = true;
		run(w, 3 * LEASE_NS);
		for (int i = 0; i < SEATS; i++) {
			struct ur_nma_attr attr = fabric_attr(false, i);

			attr.ctx = &w->f->node[i];
			w->f->node[i].nma = ur_nma_init(w->f->node[i].nma, &attr, w->f->now);
		}
		run(w, 4 * LEASE_NS);
		cr_assert(master_of(w) >= 0);
		cr_assert(w->two_ns <= LEASE_NS, "two masters for %llu ms",
			  (unsigned long long)(w->two_ns / MS));
		free_world(w);
	}
}
