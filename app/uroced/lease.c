/* SPDX-License-Identifier: BSD-3-Clause */
#include "lease.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_CHARS 2

static unsigned address_cnt(const struct lease_table *t)
{
	return t->attr.last - t->attr.first + 1;
}

static const char *check_range(uint32_t first, uint32_t last, uint8_t prefix)
{
	uint32_t host = prefix <= 30 && prefix ? UINT32_MAX >> prefix : 0;

	if (!host)
		return "the prefix length must be 1 to 30";
	if (first > last || last - first >= LEASE_ADDRESSES_MAX)
		return "the range must go upwards, and have at most 1024 addresses";
	if ((first & ~host) != (last & ~host))
		return "the first and the last address are in different networks";
	if (!(first & host) || (last & host) == host)
		return "the network's own address and its broadcast address cannot be leased";
	if (first >> 24 == 0 || first >> 24 == 127 || last >> 28 >= 14)
		return "these are not addresses of hosts";
	return NULL;
}

const char *lease_attr_check(const struct lease_attr *a)
{
	const char *wrong = a->host ? check_range(a->host, a->host, a->prefix)
				    : check_range(a->first, a->last, a->prefix);

	if (wrong)
		return wrong;
	if (a->host && (a->first != 1 || a->last < 1 || a->last > UR_LEASE_NUMBER_MAX))
		return "at most 62 clients can share an address";
	if (!a->clients || !a->per_user)
		return "there must be room for one client";
	return NULL;
}

void lease_table_init(struct lease_table *t, const struct lease_attr *attr)
{
	memset(t, 0, sizeof(*t));
	t->attr = *attr;
}

static unsigned held_by(const struct lease_table *t, uint32_t uid)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < address_cnt(t); i++)
		cnt += t->lease[i].state == LEASE_HELD && t->lease[i].uid == uid;
	return cnt;
}

static void release(struct lease_table *t, struct lease *l)
{
	l->state = LEASE_FREE;
	l->freed = ++t->frees;
	memset(l->secret, 0, sizeof(l->secret));
}

static void release_old(struct lease_table *t, uint64_t now_ns)
{
	for (unsigned i = 0; i < address_cnt(t); i++)
		if (t->lease[i].state == LEASE_QUARANTINE && t->lease[i].until_ns <= now_ns)
			release(t, &t->lease[i]);
}

/* -1: none. */
static int oldest_free(const struct lease_table *t)
{
	int best = -1;

	for (unsigned i = 0; i < address_cnt(t); i++)
		if (t->lease[i].state == LEASE_FREE &&
		    (best < 0 || t->lease[i].freed < t->lease[best].freed))
			best = (int)i;
	return best;
}

/* The address that has been in the user's quarantine the longest, -1: none; how many there are. */
static int oldest_own(const struct lease_table *t, uint32_t uid, unsigned *cnt)
{
	int best = -1;

	*cnt = 0;
	for (unsigned i = 0; i < address_cnt(t); i++) {
		const struct lease *l = &t->lease[i];

		if (l->state != LEASE_QUARANTINE || l->uid != uid)
			continue;
		(*cnt)++;
		if (best < 0 || l->until_ns < t->lease[best].until_ns)
			best = (int)i;
	}
	return best;
}

static bool has_secret(const struct lease *l, const struct ur_lease_request *r)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < sizeof(l->secret); i++)
		differ |= (unsigned char)(l->secret[i] ^ r->secret[i]);
	return !differ;
}

/* UROCED-QUARANTINE-01: in quarantine only the process that had the address gets it. */
static bool may_return(const struct lease *l, const struct ur_lease_request *r, uint32_t uid)
{
	return l->secret[0] && l->uid == uid && has_secret(l, r);
}

/* With one address for all, a secret begins with the number in hexadecimal. */
static void set_number(struct lease_table *t, unsigned i)
{
	char digits[NUMBER_CHARS + 1];

	if (!t->attr.host)
		return;
	snprintf(digits, sizeof(digits), "%02x", (uint8_t)lease_own(t, i));
	memcpy(t->lease[i].secret, digits, NUMBER_CHARS);
}

/* 0: none of this daemon's. */
static uint32_t number_in(const struct lease_table *t, const char *secret)
{
	char digits[NUMBER_CHARS + 1] = {0};
	unsigned long number;

	if (!secret[0])
		return 0;
	memcpy(digits, secret, NUMBER_CHARS);
	number = strtoul(digits, NULL, 16);
	return number <= t->attr.last ? (uint32_t)number : 0;
}

/*
 * UROCED-NUMBER-01: what is asked for, as lease_own() has it; 0: any. With one address for all, the secret says which number it
 * was.
 */
static uint32_t wanted(const struct lease_table *t, const struct ur_lease_request *r)
{
	if (!t->attr.host || !r->address)
		return r->address;
	if (r->address != t->attr.host)
		return UINT32_MAX;
	for (unsigned i = 0; i < address_cnt(t); i++)
		if (r->secret[0] && has_secret(&t->lease[i], r))
			return lease_own(t, i);
	return number_in(t, r->secret);
}

/*
 * The index of the address to lease, or -1 - refusal. UROCED-QUARANTINE-02: with as many addresses in quarantine as it
 * may have leases, a user gets one of these. Otherwise one that leases and leaves in a loop would take them all.
 */
static int choose(const struct lease_table *t, const struct ur_lease_request *r, uint32_t want,
		  uint32_t uid)
{
	uint32_t i = want - t->attr.first;
	unsigned own;
	int old = oldest_own(t, uid, &own), any;

	if (!want) {
		any = own < t->attr.per_user ? oldest_free(t) : old;
		return any < 0 ? -1 - UR_LEASE_NO_ADDRESS : any;
	}
	if (i >= address_cnt(t))
		return -1 - UR_LEASE_FOREIGN;
	if (t->lease[i].state == LEASE_HELD ||
	    (t->lease[i].state == LEASE_QUARANTINE && !may_return(&t->lease[i], r, uid)))
		return -1 - UR_LEASE_TAKEN;
	if (t->lease[i].state == LEASE_FREE && own >= t->attr.per_user)
		return -1 - UR_LEASE_QUOTA;
	return (int)i;
}

/*
 * UROCED-RELEASE-03: a client that names a secret for a free address says that it had the address before: from a daemon that was killed before
 * it had recorded the lease, or so long ago that the address is out of quarantine. It keeps the secret, because its port cannot be opened
 * again with another. A client that makes a secret up gets a free address, or the number that it asks for, as it may ask for an address.
 */
static const char *secret_for(const struct ur_lease_request *r, uint32_t want, const char *fresh)
{
	return want && r->secret[0] ? r->secret : fresh;
}

int lease_take(struct lease_table *t, const struct ur_lease_request *r, uint32_t uid,
	       const char *fresh, uint64_t now_ns)
{
	struct lease *l;
	uint32_t want;
	int i;

	release_old(t, now_ns);
	if (held_by(t, uid) >= t->attr.per_user)
		return -1 - UR_LEASE_QUOTA;
	if (t->held_cnt >= t->attr.clients)
		return -1 - UR_LEASE_FULL;
	want = wanted(t, r);
	i = choose(t, r, want, uid);
	if (i < 0)
		return i;
	l = &t->lease[i];
	if (l->state == LEASE_FREE || !may_return(l, r, uid)) {
		memcpy(l->secret, secret_for(r, want, fresh), sizeof(l->secret));
		set_number(t, (unsigned)i);
	}
	l->state = LEASE_HELD;
	l->uid = uid;
	t->held_cnt++;
	return i;
}

void lease_end(struct lease_table *t, unsigned i, uint64_t now_ns)
{
	struct lease *l = &t->lease[i];

	assert(i < address_cnt(t) && l->state == LEASE_HELD);
	l->state = LEASE_QUARANTINE;
	l->until_ns = now_ns + t->attr.quarantine_ns;
	t->held_cnt--;
}

bool lease_restore(struct lease_table *t, uint32_t own, uint32_t uid, const char *secret,
		   uint64_t now_ns)
{
	uint32_t i = own - t->attr.first;

	if (i >= address_cnt(t) || !ur_lease_is_secret(secret) || t->lease[i].state != LEASE_FREE)
		return false;
	t->lease[i] = (struct lease){
		.state = LEASE_QUARANTINE, .uid = uid, .until_ns = now_ns + t->attr.quarantine_ns};
	memcpy(t->lease[i].secret, secret, UR_LEASE_SECRET_CHARS);
	return true;
}

void lease_table_validate(const struct lease_table *t)
{
	unsigned held = 0;

	for (unsigned i = 0; i < address_cnt(t); i++) {
		const struct lease *l = &t->lease[i];

		held += l->state == LEASE_HELD;
		assert((l->state == LEASE_FREE) == !l->secret[0]);
		assert(l->state != LEASE_HELD || held_by(t, l->uid) <= t->attr.per_user);
	}
	assert(held == t->held_cnt && held <= t->attr.clients);
}
