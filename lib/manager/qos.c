/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/qos.h"
#include "vl/vl.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define NS	   1000000000.0
#define NO_LANE	   15
#define TURN_MAX   255	 /* the largest weight */
#define IBA_UNIT   64	 /* bytes */
#define LIMIT_UNIT 4096	 /* bytes */
#define LIMIT_MAX  254	 /* 255 has no limit in UR_VL_IBA */
#define ROUND_MAX  512	 /* packets of a round that are tried */
#define PAIR_MAX   64	 /* the same, of two tables in UR_VL_MEASURED */
#define SETS_MAX   5	 /* lanes of which every set is tried for the high table */
#define RUN_MAX	   4000	 /* packets through the arbiter for one candidate */
#define RUN_LAST   20000 /* the same, of the one that is taken */
#define TRIES_MAX  1500	 /* candidates that go through the arbiter: a bound on the time */

enum side { LOW, HIGH };

struct search {
	const struct ur_qos_task *t;
	struct ur_qos_solution *best;
	uint8_t lanes;
	uint32_t share[UR_VL_CNT]; /* of UR_QOS_ALL, sum UR_QOS_ALL */
	uint64_t room[UR_VL_CNT];  /* bytes of others that a packet may wait for; UINT64_MAX: any */
	uint32_t mtu, turn_most;   /* packets of an entry */
	uint32_t tries;
	double excess; /* of *best: the largest, over its bound or share */
};

/* A candidate: packets a round of each lane, over how many entries, in which table. */
struct candidate {
	uint16_t high; /* bit: lane */
	uint8_t limit;
	uint16_t packets[UR_VL_CNT];
	uint8_t entries[UR_VL_CNT];
};

const char *ur_qos_check(const struct ur_qos_task *t)
{
	uint32_t sum = 0, seen = 0;

	if (t->cnt < 1 || t->cnt > UR_VL_CNT)
		return "there are 1 to 15 targets";
	for (unsigned i = 0; i < t->cnt; i++) {
		if (t->target[i].sl > 15 || seen >> t->target[i].sl & 1)
			return "service levels are 0 to 15, and each has one target";
		if (!t->target[i].share || t->target[i].share > UR_QOS_ALL)
			return "a share is more than 0 and at most all of the link";
		if (t->target[i].bound_ns && !t->bps)
			return "a bound of the wait needs the port's rate";
		seen |= 1u << t->target[i].sl;
		sum += t->target[i].share;
	}
	if (sum > UR_QOS_ALL)
		return "the shares are more than the whole link together";
	if (sum < UR_QOS_ALL && t->cnt == UR_VL_CNT)
		return "15 lanes have targets, which are less than the whole link together: no lane is left for the rest";
	if (t->mtu_shift < 8 || t->mtu_shift > 12)
		return "the path MTU is none of 256, 512, 1024, 2048 and 4096";
	return NULL;
}

/* ---- the arbiter ---- */

static uint16_t used_lanes(const struct ur_vl *v)
{
	uint16_t lanes = 0;

	for (unsigned sl = 0; sl < 16; sl++)
		if (ur_vl_of_sl(v, sl) >= 0)
			lanes |= (uint16_t)(1u << ur_vl_of_sl(v, sl));
	return lanes;
}

void ur_qos_run(const struct ur_vl_attr *vl, uint32_t packets, uint64_t bytes[UR_VL_CNT],
		uint64_t gap[UR_VL_CNT])
{
	uint64_t sent = 0, last[UR_VL_CNT] = {0};
	uint32_t mtu = 1u << vl->mtu_shift;
	struct ur_vl v;
	uint16_t ready;

	memset(bytes, 0, sizeof(*bytes) * UR_VL_CNT);
	memset(gap, 0, sizeof(*gap) * UR_VL_CNT);
	ur_vl_init(&v, vl);
	ready = used_lanes(&v);
	for (uint32_t i = 0; i < packets; i++, sent += mtu) {
		unsigned lane = ur_vl_pick(&v, ready);

		ur_vl_charge(&v, lane, mtu);
		if (sent - last[lane] > gap[lane])
			gap[lane] = sent - last[lane];
		last[lane] = sent + mtu;
		bytes[lane] += mtu;
	}
	for (unsigned i = 0; i < UR_VL_CNT; i++)
		if (ready >> i & 1 && sent - last[i] > gap[i])
			gap[i] = sent - last[i];
}

/* ---- tables ---- */

static bool is_in(const struct candidate *c, unsigned lane, enum side side)
{
	return (c->high >> lane & 1) == side;
}

static uint32_t packets_of(const struct search *s, const struct candidate *c, enum side side)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < s->lanes; i++)
		n += is_in(c, i, side) ? c->packets[i] : 0;
	return n;
}

/* Packets of the k-th entry of a lane. */
static uint32_t turn(const struct candidate *c, unsigned lane, unsigned k)
{
	return c->packets[lane] * (k + 1u) / c->entries[lane] -
	       c->packets[lane] * k / c->entries[lane];
}

/*
 * The lane of the entry that begins at packet `at` of a round of `total`: its k-th entry may begin at its fair place
 * and not before, and of those that may the one that must begin first comes first.
 */
static unsigned next_lane(const struct search *s, const struct candidate *c, enum side side,
			  double at, double total, const uint8_t *done, const double *end)
{
	double least = 1e18;
	unsigned found = 0;

	for (unsigned i = 0; i < s->lanes; i++) {
		double period, release, deadline, room = (double)(s->room[i] / s->mtu);

		if (!is_in(c, i, side) || done[i] == c->entries[i])
			continue;
		period = total / c->entries[i];
		release = period * done[i];
		deadline = release + period - turn(c, i, done[i]);
		if (done[i] && end[i] + room < deadline)
			deadline = end[i] + room;
		if (release >= at + 1)
			deadline += 1e9; /* only if nothing else is left */
		if (deadline < least - 1e-9) {
			least = deadline;
			found = i;
		}
	}
	return found;
}

/* The entries of a table, those of a lane as far from each other as can be. False: there are too many. */
static bool put_table(const struct search *s, const struct candidate *c, enum side side,
		      struct ur_vl_entry *entry, uint8_t *cnt)
{
	uint32_t unit = s->t->mode == UR_VL_MEASURED ? 1 : s->mtu / IBA_UNIT, entries = 0;
	double end[UR_VL_CNT] = {0}, at = 0, total = packets_of(s, c, side);
	uint8_t done[UR_VL_CNT] = {0};

	for (unsigned i = 0; i < s->lanes; i++)
		entries += is_in(c, i, side) ? c->entries[i] : 0;
	if (entries > UR_VL_ENTRIES)
		return false;
	for (*cnt = 0; *cnt < entries; ++*cnt) {
		unsigned lane = next_lane(s, c, side, at, total, done, end);
		uint32_t n = turn(c, lane, done[lane]++);

		entry[*cnt] = (struct ur_vl_entry){(uint8_t)lane, (uint8_t)(n * unit)};
		at += n;
		end[lane] = at;
	}
	return true;
}

static bool make_tables(const struct search *s, const struct candidate *c, struct ur_vl_attr *vl)
{
	*vl = (struct ur_vl_attr){
		.mode = s->t->mode, .mtu_shift = s->t->mtu_shift, .high_limit = c->limit};
	for (unsigned sl = 0; sl < 16; sl++)
		vl->sl2vl[sl] = s->lanes > s->t->cnt ? s->t->cnt : NO_LANE;
	for (unsigned i = 0; i < s->t->cnt; i++)
		vl->sl2vl[s->t->target[i].sl] = (uint8_t)i;
	return put_table(s, c, HIGH, vl->high, &vl->high_cnt) &&
	       put_table(s, c, LOW, vl->low, &vl->low_cnt);
}

/* ---- one candidate ---- */

/* High packets that go by before a low one, at most: 1 of Q = 0. */
static uint32_t per_limit(const struct search *s, uint32_t limit)
{
	uint32_t n = limit * LIMIT_UNIT / s->mtu;

	return n ? n : 1;
}

/* What the arbiter makes of the tables. In UR_VL_STRICT each table by itself. */
static void measure(const struct search *s, const struct candidate *c, const struct ur_vl_attr *vl,
		    uint32_t n, uint64_t bytes[UR_VL_CNT], uint64_t of[2])
{
	uint64_t b[UR_VL_CNT], gap[UR_VL_CNT];
	struct ur_vl_attr one = *vl;

	of[LOW] = of[HIGH] = 0;
	if (s->t->mode != UR_VL_STRICT || !vl->high_cnt || !vl->low_cnt) {
		ur_qos_run(vl, n, bytes, gap);
		for (unsigned i = 0; i < s->lanes; i++)
			of[LOW] += bytes[i];
		of[HIGH] = of[LOW];
		return;
	}
	one.low_cnt = 0;
	ur_qos_run(&one, n, bytes, gap);
	one = *vl;
	one.high_cnt = 0;
	ur_qos_run(&one, n, b, gap);
	for (unsigned i = 0; i < s->lanes; i++) {
		enum side side = c->high >> i & 1;

		if (side == LOW)
			bytes[i] = b[i];
		of[side] += bytes[i];
	}
}

/* Bytes of the largest entry. */
static uint64_t largest(const struct ur_vl_entry *entry, unsigned cnt, uint32_t unit)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < cnt; i++)
		most = entry[i].weight > most ? entry[i].weight : most;
	return most * unit;
}

/*
 * What goes by at most while `others` entries of the same table with `bytes` in all do, of the other table. Lanes that were
 * idle may find each turn of the other table before them.
 */
static uint64_t of_other_table(const struct search *s, const struct ur_vl_attr *vl, enum side side,
			       unsigned others, uint64_t bytes)
{
	uint64_t limit = (uint64_t)per_limit(s, vl->high_limit) * s->mtu, high, low;

	if (s->t->mode == UR_VL_IBA)
		return side == HIGH ? (bytes / limit + 2) * s->mtu
				    : (bytes / s->mtu + 1) * (limit + s->mtu);
	high = largest(vl->high, vl->high_cnt, s->mtu);
	low = largest(vl->low, vl->low_cnt, s->mtu);
	if (side == HIGH)
		return (others + 1) * low;
	/* VL-LAW-01: an allowance by the weight of the entry that is due, or one turn. */
	low *= per_limit(s, vl->high_limit);
	return (others + 2) * (low > high ? low : high);
}

/* The most bytes of others that go by between two entries of a lane, all others being busy. */
static uint64_t longest_gap(const struct search *s, const struct ur_vl_attr *vl, unsigned lane,
			    enum side side)
{
	const struct ur_vl_entry *entry = side == HIGH ? vl->high : vl->low;
	unsigned cnt = side == HIGH ? vl->high_cnt : vl->low_cnt, others = 0;
	uint32_t unit = s->t->mode == UR_VL_MEASURED ? s->mtu : IBA_UNIT;
	uint64_t bytes = 0, most = 0;

	if (s->t->mode == UR_VL_STRICT && side == LOW && vl->high_cnt)
		return UINT64_MAX - s->mtu; /* high lanes may never pause */
	for (unsigned i = 0; i < 2 * cnt; i++) {
		uint64_t gap = bytes;

		if (entry[i % cnt].vl != lane) {
			bytes += (uint64_t)entry[i % cnt].weight * unit;
			others++;
			continue;
		}
		if (s->t->mode != UR_VL_STRICT && vl->high_cnt && vl->low_cnt)
			gap += of_other_table(s, vl, side, others, bytes);
		most = gap > most ? gap : most;
		bytes = others = 0;
	}
	return most;
}

static uint32_t wanted(const struct search *s, const struct candidate *c, unsigned lane)
{
	uint64_t sum = 0;

	if (s->t->mode != UR_VL_STRICT)
		return s->share[lane];
	for (unsigned i = 0; i < s->lanes; i++)
		if ((c->high >> i & 1) == (c->high >> lane & 1))
			sum += s->share[i];
	return (uint32_t)((uint64_t)s->share[lane] * UR_QOS_ALL / sum);
}

/* Fills in what the lanes get. Returns by how much the share that is the farthest off is; 0: all are kept. */
static double judge(const struct search *s, const struct candidate *c, uint32_t slack,
		    const uint64_t *bytes, const uint64_t *gap, const uint64_t of[2],
		    struct ur_qos_solution *got)
{
	double most = 0;

	for (unsigned i = 0; i < s->lanes; i++) {
		struct ur_qos_got *g = &got->got[i];
		uint32_t want = wanted(s, c, i), off;

		g->high = c->high >> i & 1;
		g->share = (uint32_t)(bytes[i] * UR_QOS_ALL / of[g->high]);
		/* The packet that is under way when it arrives is one of the others'. */
		g->wait_ns =
			s->t->bps && gap[i] < UINT64_MAX / 2
				? (uint64_t)((double)(gap[i] + s->mtu) * 8 * NS / (double)s->t->bps)
				: 0;
		off = g->share > want ? g->share - want : want - g->share;
		if (off > s->t->tolerance + slack && off * 1e-6 > most)
			most = off * 1e-6;
	}
	return most;
}

/*
 * Runs a candidate. Returns the lane that misses its bound the most, -1: none. *excess: 0 if shares and bounds are
 * kept; the best candidate so far is kept.
 */
static int try(struct search *s, const struct candidate *c, double *excess)
{
	uint32_t round = packets_of(s, c, LOW) + packets_of(s, c, HIGH);
	uint32_t n = c->high ? RUN_MAX : 4 * round; /* of one table whole rounds */
	uint64_t bytes[UR_VL_CNT], gap[UR_VL_CNT], of[2];
	struct ur_qos_solution got = {.lanes = s->lanes, .failed = -1};
	double most = 0;

	*excess = 1e9;
	s->tries++;
	if (!make_tables(s, c, &got.vl))
		return -1;
	for (unsigned i = 0; i < s->lanes; i++) {
		gap[i] = longest_gap(s, &got.vl, i, c->high >> i & 1);
		if (gap[i] > s->room[i] && (double)gap[i] / (double)(s->room[i] + 1) > most) {
			most = (double)gap[i] / (double)(s->room[i] + 1);
			got.failed = (int8_t)i;
		}
	}
	if (most >= s->excess) { /* others are nearer */
		*excess = most;
		return got.failed;
	}
	measure(s, c, &got.vl, n, bytes, of);
	/* A run of two tables does not end where it began: what seems good is looked at again. */
	*excess = judge(s, c, 1 + (c->high ? round * (UR_QOS_ALL / n) : 0), bytes, gap, of, &got);
	if (!*excess && c->high) {
		measure(s, c, &got.vl, RUN_LAST, bytes, of);
		*excess = judge(s, c, UR_QOS_ALL / 1000, bytes, gap, of, &got);
	}
	*excess += most;
	got.packets[LOW] = (uint16_t)packets_of(s, c, LOW);
	got.packets[HIGH] = (uint16_t)packets_of(s, c, HIGH);
	if (*excess < s->excess) {
		s->excess = *excess;
		*s->best = got;
	}
	return got.failed;
}

/* Of the lanes of one table the one with the longest turns that can be divided; -1: none. */
static int longest_turn(const struct search *s, const struct candidate *c, int but)
{
	uint32_t most = 1;
	int found = -1;

	for (unsigned i = 0; i < s->lanes; i++) {
		uint32_t turn = (c->packets[i] + c->entries[i] - 1u) / c->entries[i];

		if ((int)i != but && c->entries[i] < c->packets[i] && turn > most) {
			most = turn;
			found = (int)i;
		}
	}
	return found;
}

static void fewest_entries(const struct search *s, struct candidate *c)
{
	for (unsigned i = 0; i < s->lanes; i++)
		c->entries[i] = (uint8_t)((c->packets[i] + s->turn_most - 1) / s->turn_most);
}

/* As few entries as the bounds need: those of the lane that waits too long are divided, then those of others. */
static bool divide(struct search *s, struct candidate *c)
{
	double excess;

	fewest_entries(s, c);
	for (unsigned step = 0; step < UR_VL_ENTRIES && s->tries < TRIES_MAX; step++) {
		int lane = try(s, c, &excess);

		if (!excess)
			return true;
		if (lane < 0) /* no bound, but shares; or too many entries */
			return false;
		if (c->entries[lane] >= c->packets[lane])
			lane = longest_turn(s, c, lane);
		if (lane < 0)
			return false;
		c->entries[lane]++;
	}
	return false;
}

/*
 * Packets a round of the lanes of one table, `total` of them, so that each lane is within the tolerance of its part of
 * what the table gets (`of`, of UR_QOS_ALL). False: there is no such division.
 */
static bool share_out(const struct search *s, struct candidate *c, enum side side, uint32_t total,
		      uint64_t of)
{
	uint32_t sum = 0, high[UR_VL_CNT] = {0};
	uint64_t tolerance = s->t->tolerance;

	for (unsigned i = 0; i < s->lanes; i++) {
		uint64_t least, most, want = s->share[i];

		if (!is_in(c, i, side))
			continue;
		least = want > tolerance ? (want - tolerance) * total : 0;
		most = (want + tolerance) * total;
		c->packets[i] = (uint16_t)((least + of - 1) / of);
		c->packets[i] += !c->packets[i];
		high[i] = (uint32_t)(most / of);
		if (high[i] < c->packets[i])
			return false;
		sum += c->packets[i];
	}
	/* The rest goes to those that are the farthest below their shares. */
	for (; sum < total; sum++) {
		double most = -1e9;
		int lane = -1;

		for (unsigned i = 0; i < s->lanes; i++) {
			double below = (double)s->share[i] * total / (double)of - c->packets[i];

			if (is_in(c, i, side) && c->packets[i] < high[i] && below > most) {
				most = below;
				lane = (int)i;
			}
		}
		if (lane < 0)
			return false;
		c->packets[lane]++;
	}
	return sum == total;
}

/* ---- searches ---- */

/* Whether a lane has so few packets of a round that it waits too long even if every packet is an entry. */
static bool cannot_be(const struct search *s, const struct candidate *c, uint32_t total)
{
	for (unsigned i = 0; i < s->lanes; i++)
		if (s->room[i] / s->mtu < (total - 1) / c->packets[i])
			return true;
	return false;
}

/* The low table alone, with that many packets. */
static bool one_table(struct search *s, uint32_t total)
{
	struct candidate c = {.high = 0};
	double excess;

	if (!share_out(s, &c, LOW, total, UR_QOS_ALL))
		return false;
	if (!cannot_be(s, &c, total))
		return divide(s, &c);
	if (!s->tries) { /* the nearest, if there is none */
		fewest_entries(s, &c);
		(void)try(s, &c, &excess);
	}
	return false;
}

static bool some_table(struct search *s)
{
	for (uint32_t total = s->lanes; total <= ROUND_MAX && s->tries < TRIES_MAX; total++)
		if (one_table(s, total))
			return true;
	return false;
}

static uint64_t share_of(const struct search *s, uint16_t lanes)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->lanes; i++)
		sum += lanes >> i & 1 ? s->share[i] : 0;
	return sum;
}

/* Both tables, each with the fewest packets that its shares need. */
static bool smallest_round(const struct search *s, struct candidate *c, enum side side, uint64_t of)
{
	for (uint32_t total = 1; total <= ROUND_MAX; total++)
		if (share_out(s, c, side, total, of))
			return true;
	return false;
}

/* Q * 4096 bytes of the high table, then one packet of the low one: the shares of the tables are those of Q. */
static bool two_tables_iba(struct search *s, uint16_t high)
{
	struct candidate c = {.high = high};

	for (unsigned limit = 0; limit <= LIMIT_MAX; limit++) {
		uint64_t n = per_limit(s, limit), of = UR_QOS_ALL * n / (n + 1);
		uint64_t share = share_of(s, high);

		c.limit = (uint8_t)limit;
		if (of > share + s->t->tolerance)
			return false;
		if (of + s->t->tolerance < share || !smallest_round(s, &c, HIGH, of) ||
		    !smallest_round(s, &c, LOW, UR_QOS_ALL - of))
			continue;
		if (divide(s, &c))
			return true;
	}
	return false;
}

/* VL-LAW-01: the high table's part when turns are sent whole, with an entry a lane. */
static uint64_t law(const struct search *s, const struct candidate *c)
{
	uint64_t sent[2] = {0, 0}, k = per_limit(s, c->limit);
	unsigned next = 0, high = ur_popcount(c->high);

	for (unsigned round = 0; round < high; round++)
		for (unsigned j = 0; j < s->lanes; j++) {
			uint64_t used = 0;

			if (c->high >> j & 1)
				continue;
			for (;;) {
				while (!(c->high >> next & 1))
					next = (next + 1) % s->lanes;
				if (used && used + c->packets[next] > k * c->packets[j])
					break;
				used += c->packets[next];
				next = (next + 1) % s->lanes;
			}
			sent[HIGH] += used;
			sent[LOW] += c->packets[j];
		}
	return sent[HIGH] * UR_QOS_ALL / (sent[HIGH] + sent[LOW]);
}

/* Every candidate with that many packets in both tables; the least limit first. */
static bool pairs_of(struct search *s, uint16_t high, uint32_t sum)
{
	uint64_t share = share_of(s, high), all_high;
	struct candidate c[PAIR_MAX];
	unsigned cnt = 0;

	for (uint32_t h = 1; h < sum; h++) {
		c[cnt] = (struct candidate){.high = high};
		cnt += share_out(s, &c[cnt], HIGH, h, share) &&
		       share_out(s, &c[cnt], LOW, sum - h, UR_QOS_ALL - share);
	}
	all_high = 0;
	for (unsigned limit = 0; limit <= UINT8_MAX && all_high < cnt; limit++) {
		all_high = 0;
		for (unsigned i = 0; i < cnt; i++) {
			uint64_t of;

			c[i].limit = (uint8_t)limit;
			of = law(s, &c[i]);
			all_high += of > share + s->t->tolerance;
			if (of > share + s->t->tolerance || of + s->t->tolerance < share)
				continue;
			if (divide(s, &c[i]))
				return true;
			if (s->tries >= TRIES_MAX)
				return false;
		}
	}
	return false;
}

/* Whether these lanes are tried as those of the high table: with many lanes only the likely sets. */
static bool is_set(const struct search *s, uint32_t lanes)
{
	uint32_t bounded = 0;

	for (unsigned i = 0; i < s->lanes; i++)
		bounded |= (s->room[i] != UINT64_MAX ? 1u : 0) << i;
	if (bounded && !(lanes & bounded))
		return false;
	return s->lanes <= SETS_MAX || lanes == bounded || ur_popcount(lanes) == 1;
}

/* High before low up to a limit: where the low table has not enough entries for the bounds. */
static bool iba(struct search *s)
{
	if (some_table(s))
		return true;
	for (unsigned cnt = 1; cnt < s->lanes; cnt++)
		for (uint32_t high = 1; high + 1 < 1u << s->lanes; high++)
			if (ur_popcount(high) == cnt && is_set(s, high) && s->tries < TRIES_MAX &&
			    two_tables_iba(s, (uint16_t)high))
				return true;
	return false;
}

/* The fewest packets in one table or two, then the least limit. */
static bool measured(struct search *s)
{
	for (uint32_t sum = s->lanes; sum <= ROUND_MAX && s->tries < TRIES_MAX; sum++) {
		if (one_table(s, sum))
			return true;
		for (uint32_t high = 1; sum <= PAIR_MAX && high + 1 < 1u << s->lanes; high++)
			if (is_set(s, high) && pairs_of(s, (uint16_t)high, sum))
				return true;
	}
	return false;
}

static bool strict(struct search *s)
{
	struct candidate c = {.high = 0};

	for (unsigned i = 0; i < s->t->cnt; i++)
		if (s->room[i] != UINT64_MAX)
			c.high |= (uint16_t)(1u << i);
	if (!c.high)
		return some_table(s);
	return smallest_round(s, &c, HIGH, share_of(s, c.high)) &&
	       (c.high == (1u << s->lanes) - 1 || share_of(s, c.high) == UR_QOS_ALL ||
		smallest_round(s, &c, LOW, UR_QOS_ALL - share_of(s, c.high))) &&
	       divide(s, &c);
}

bool ur_qos_solve(const struct ur_qos_task *t, struct ur_qos_solution *solution)
{
	struct search s = {.t = t, .best = solution, .lanes = t->cnt, .excess = 1e9};
	uint32_t rest = UR_QOS_ALL;

	UR_ASSERT(!ur_qos_check(t));
	memset(solution, 0, sizeof(*solution));
	solution->failed = -1;
	s.mtu = 1u << t->mtu_shift;
	s.turn_most = t->mode == UR_VL_MEASURED ? TURN_MAX : TURN_MAX / (s.mtu / IBA_UNIT);
	for (unsigned i = 0; i < t->cnt; i++) {
		double bytes = (double)t->target[i].bound_ns * (double)t->bps / (8 * NS) - s.mtu;

		s.share[i] = t->target[i].share;
		rest -= t->target[i].share;
		s.room[i] = UINT64_MAX;
		if (t->target[i].bound_ns)
			s.room[i] = bytes > 0 ? (uint64_t)bytes : 0;
	}
	if (rest > t->tolerance) {
		s.share[s.lanes] = rest;
		s.room[s.lanes++] = UINT64_MAX;
	}
	if (t->mode == UR_VL_STRICT)
		return strict(&s);
	return t->mode == UR_VL_MEASURED ? measured(&s) : iba(&s);
}
