/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/macs.h"

#include "switch/hash.h"
#include "wire/assert.h"
#include "wire/bytes.h"

static uint32_t buckets_of(uint32_t macs)
{
	uint32_t n = 1;

	while (n * UR_SWITCH_WAYS < macs)
		n *= 2;
	return n;
}

size_t ur_switch_macs_size(uint32_t macs)
{
	return (size_t)buckets_of(macs) * UR_SWITCH_WAYS * sizeof(struct ur_switch_mac);
}

void ur_switch_macs_init(struct ur_switch_macs *m, void *mem, const struct ur_switch_attr *a)
{
	uint32_t buckets = buckets_of(a->limits.macs);

	*m = (struct ur_switch_macs){
		.entry = mem,
		.mask = buckets - 1,
		.share = buckets * UR_SWITCH_WAYS / a->limits.ports,
		.age_ns = a->age_ns,
		.seed = a->seed,
	};
	memset(mem, 0, ur_switch_macs_size(a->limits.macs));
}

/* Never 0: VLAN 0 does not exist. */
static uint64_t key_of(uint16_t vid, const uint8_t mac[6])
{
	return (uint64_t)vid << 48 | (uint64_t)ur_load16(mac) << 32 | ur_load32(mac + 2);
}

static struct ur_switch_mac *bucket_of(const struct ur_switch_macs *m, uint64_t key)
{
	return &m->entry[(ur_switch_hash(key, m->seed) & m->mask) * UR_SWITCH_WAYS];
}

static bool is_old(const struct ur_switch_macs *m, const struct ur_switch_mac *e, uint64_t now_ns)
{
	return now_ns - e->seen_ns >= m->age_ns;
}

static struct ur_switch_mac *find(const struct ur_switch_macs *m, uint64_t key)
{
	struct ur_switch_mac *e = bucket_of(m, key);

	for (unsigned i = 0; i < UR_SWITCH_WAYS; i++)
		if (e[i].key == key)
			return &e[i];
	return NULL;
}

/* SWITCH-MAC-02: how readily an entry of a full bucket is given up for an address of `port`; 0: not. */
static unsigned merit(const struct ur_switch_macs *m, const struct ur_switch_mac *e, uint8_t port,
		      uint64_t now_ns)
{
	if (!e->key)
		return 4;
	if (is_old(m, e, now_ns))
		return 3;
	if (e->port == port)
		return 2;
	return m->cnt[e->port] > m->share;
}

static struct ur_switch_mac *make_room(struct ur_switch_macs *m, uint64_t key, uint8_t port,
				       uint64_t now_ns)
{
	struct ur_switch_mac *e = bucket_of(m, key), *best = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < UR_SWITCH_WAYS; i++) {
		unsigned is = merit(m, &e[i], port, now_ns);

		if (is > most || (is && is == most && e[i].seen_ns < best->seen_ns)) {
			best = &e[i];
			most = is;
		}
	}
	if (best && best->key)
		m->cnt[best->port]--;
	return best;
}

/* SWITCH-MAC-01 */
enum ur_switch_learned ur_switch_macs_learn(struct ur_switch_macs *m, uint16_t vid,
					    const uint8_t mac[6], uint8_t port, uint64_t now_ns)
{
	uint64_t key = key_of(vid, mac);
	struct ur_switch_mac *e = find(m, key);

	if (e) {
		bool moved = e->port != port;

		m->cnt[e->port]--;
		m->cnt[port]++;
		e->port = port;
		e->seen_ns = now_ns;
		return moved ? UR_SWITCH_MOVED : UR_SWITCH_KNOWN;
	}
	e = make_room(m, key, port, now_ns);
	if (!e)
		return UR_SWITCH_FULL;
	*e = (struct ur_switch_mac){key, now_ns, port};
	m->cnt[port]++;
	return UR_SWITCH_LEARNED;
}

uint8_t ur_switch_macs_find(const struct ur_switch_macs *m, uint16_t vid, const uint8_t mac[6],
			    uint64_t now_ns)
{
	const struct ur_switch_mac *e = find(m, key_of(vid, mac));

	return e && !is_old(m, e, now_ns) ? e->port : UR_SWITCH_NO_PORT;
}

void ur_switch_macs_forget(struct ur_switch_macs *m, uint8_t port)
{
	for (size_t i = 0; i < ((size_t)m->mask + 1) * UR_SWITCH_WAYS; i++)
		if (m->entry[i].key && m->entry[i].port == port)
			m->entry[i] = (struct ur_switch_mac){0};
	m->cnt[port] = 0;
}

uint32_t ur_switch_macs_cnt(const struct ur_switch_macs *m, uint64_t now_ns)
{
	uint32_t n = 0;

	for (size_t i = 0; i < ((size_t)m->mask + 1) * UR_SWITCH_WAYS; i++)
		n += m->entry[i].key && !is_old(m, &m->entry[i], now_ns);
	return n;
}
