/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "edge/neigh.h"
#include "fuzz.h"

/*
 * The bytes are a sequence of actions with arguments. Some frames get correct checksums, to reach
 * the code after the checks. Whatever happens, the table stays valid, the static entry stays, and
 * the frames sent are well-formed and have our addresses.
 */
enum { FRAME, FRAME_MENDED, RESOLVE, TIME, DRAIN, GROUP, ACTION_CNT };

static const uint8_t our_mac[6] = {0x92, 0x52, 0x3c, 0x2a, 0x8b, 0xb1};
static const uint8_t fixed_mac[6] = {0x02, 0, 0, 0, 0, 9};
static const struct ur_gid fixed = {{[10] = 0xff, 0xff, 10, 9, 0, 9}};
static const struct ur_gid ours4 = {{[10] = 0xff, 0xff, 10, 9, 0, 2}};
static const struct ur_gid ours6 = {{0xfd, 0x09, [15] = 2}};

struct story {
	const uint8_t *p, *end;
	uint64_t now_ns;
	struct ur_neigh n;
};

static uint8_t byte(struct story *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

static uint16_t sum16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void put_sum(uint8_t *at, uint16_t sum)
{
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

/* Corrects lengths and checksums of an untagged frame, as far as it is long enough for them. */
static void mend(uint8_t *f, size_t len)
{
	size_t head = len > 14 ? (size_t)(f[14] & 15) * 4 : 0;

	if (len >= 62 && f[12] == 0x86 && f[13] == 0xdd) {
		f[18] = (uint8_t)((len - 54) >> 8);
		f[19] = (uint8_t)(len - 54);
		f[56] = f[57] = 0;
		put_sum(f + 56,
			sum16((uint32_t)(len - 54) + 58 + sum16(0, f + 22, 32), f + 54, len - 54));
	} else if (head >= 20 && len >= 14 + head + 8 && f[12] == 0x08 && f[13] == 0) {
		f[16] = (uint8_t)((len - 14) >> 8);
		f[17] = (uint8_t)(len - 14);
		f[24] = f[25] = 0;
		put_sum(f + 24, sum16(0, f + 14, head));
		f[14 + head + 2] = f[14 + head + 3] = 0;
		put_sum(f + 14 + head + 2, sum16(0, f + 14 + head, len - 14 - head));
	}
}

static void frame(struct story *s, bool mended)
{
	size_t len = (size_t)byte(s) << 8 | byte(s), left = (size_t)(s->end - s->p);
	uint8_t *copy;

	len = len < left ? len : left;
	copy = malloc(len + 1); /* so that a sanitizer detects reads past the end */
	FUZZ_CHECK(copy);
	copy = realloc(copy, len ? len : 1);
	FUZZ_CHECK(copy);
	memcpy(copy, s->p, len);
	s->p += len;
	if (mended)
		mend(copy, len);
	FUZZ_CHECK(ur_neigh_input(&s->n, copy, len, s->now_ns) < UR_NEIGH_VERDICT_CNT);
	free(copy);
}

static void resolve(struct story *s)
{
	struct ur_gid g = byte(s) & 1 ? ours6 : ours4;
	uint8_t mac[6];

	g.b[15] = byte(s);
	ur_neigh_resolve(&s->n, &g, mac, s->now_ns);
}

/* Joins or leaves one of 256 groups. */
static void change_group(struct story *s)
{
	static const struct ur_gid group4 = {{[10] = 0xff, 0xff, 239, 1, 2}},
				   group6 = {{0xff, 0x15}};
	uint8_t what = byte(s);
	struct ur_gid g = what & 1 ? group6 : group4;

	g.b[15] = byte(s) & 0x7f;
	if (what & 2)
		ur_neigh_leave_group(&s->n, &g, s->now_ns);
	else
		ur_neigh_join_group(&s->n, &g, s->now_ns);
	FUZZ_CHECK(s->n.group_cnt <= UR_NEIGH_GROUPS_MAX);
}

static void drain(struct story *s)
{
	static uint8_t out[UR_NEIGH_FRAME_MAX];
	size_t len;

	while ((len = ur_neigh_output(&s->n, out, sizeof(out)))) {
		FUZZ_CHECK(len >= 60);
		FUZZ_CHECK(memcmp(out + 6, our_mac, 6) == 0);
	}
	FUZZ_CHECK(s->n.out.head == s->n.out.tail);
}

static void check(const struct story *s)
{
	const struct ur_neigh *n = &s->n;
	bool found = false;

	FUZZ_CHECK(n->out.tail - n->out.head <= UR_NEIGH_QUEUE_BYTES);
	for (unsigned i = 0; i < n->entry_max; i++) {
		const struct ur_neigh_entry *e = &n->entry[i];

		if (e->state == UR_NEIGH_STATE_FREE)
			continue;
		FUZZ_CHECK(e->state <= UR_NEIGH_STATE_FAILED);
		FUZZ_CHECK(e->due_ns >= n->next_due_ns);
		FUZZ_CHECK(!ur_gid_eq(&e->gid, &ours4) && !ur_gid_eq(&e->gid, &ours6));
		FUZZ_CHECK((e->mac[0] & 1) == 0);
		FUZZ_CHECK(memcmp(e->mac, our_mac, 6) != 0);
		for (unsigned k = 0; k < i; k++)
			FUZZ_CHECK(n->entry[k].state == UR_NEIGH_STATE_FREE ||
				   !ur_gid_eq(&n->entry[k].gid, &e->gid));
		if (ur_gid_eq(&e->gid, &fixed)) {
			found = true;
			FUZZ_CHECK(e->state == UR_NEIGH_STATE_STATIC);
			FUZZ_CHECK(memcmp(e->mac, fixed_mac, 6) == 0);
		}
	}
	FUZZ_CHECK(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct story s;
	struct ur_neigh_attr attr = {.addr = {{ours4, 24}, {ours6, 64}}, .addr_cnt = 2};

	memcpy(attr.mac, our_mac, 6);
	s.p = data;
	s.end = data + size;
	s.now_ns = 0;
	ur_neigh_init(&s.n, &attr);
	s.n.entry_max = 8;
	FUZZ_CHECK(ur_neigh_add_static(&s.n, &fixed, fixed_mac, 0) == 0);
	while (s.p < s.end) {
		switch (byte(&s) % ACTION_CNT) {
		case FRAME:
			frame(&s, false);
			break;
		case FRAME_MENDED:
			frame(&s, true);
			break;
		case RESOLVE:
			resolve(&s);
			break;
		case TIME:
			s.now_ns += (uint64_t)byte(&s) * 200000000;
			ur_neigh_expire(&s.n, s.now_ns);
			break;
		case GROUP:
			change_group(&s);
			break;
		default:
			drain(&s);
		}
		check(&s);
	}
	return 0;
}
