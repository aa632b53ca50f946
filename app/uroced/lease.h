/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_LEASE_H
#define UROCED_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/lease_msg.h"

/*
 * The leases of addresses (docs/design/uroced.md). An address is free, held or in quarantine. Pure: time and random
 * secrets are arguments; the caller owns the memory. Thread class: one thread.
 *
 * Invariant, lease_table_validate(): held_cnt addresses are held, no user holds more than per_user.
 */
#define LEASE_ADDRESSES_MAX 1024

struct lease_attr {
	uint32_t first,
		last;	/* addresses, host byte order: [first, last], at most LEASE_ADDRESSES_MAX */
	uint8_t prefix; /* of their network, [1, 30] */
	/*
	 * 0: each client has an address of its own. Else the one that all share; first is 1, and last at most UR_LEASE_NUMBER_MAX:
	 * clients have numbers in the place of addresses.
	 */
	uint32_t host;
	unsigned clients;	/* most leases at a time */
	unsigned per_user;	/* the same of one uid */
	uint64_t quarantine_ns; /* after a lease */
};

enum lease_state { LEASE_FREE, LEASE_HELD, LEASE_QUARANTINE };

struct lease {
	enum lease_state state;
	uint32_t uid;
	uint64_t until_ns; /* quarantine: its end */
	uint64_t freed;	   /* free: order in which it became free; the least is given first */
	char secret[UR_LEASE_SECRET_BYTES];
};

struct lease_table {
	struct lease_attr attr;
	unsigned held_cnt;
	uint64_t frees;
	struct lease lease[LEASE_ADDRESSES_MAX]; /* of address attr.first + i */
};

/* NULL if the attributes are valid, else a phrase that says what is wrong (a constant). */
const char *lease_attr_check(const struct lease_attr *a);

/* `attr` has passed the check. All addresses are free. */
void lease_table_init(struct lease_table *t, const struct lease_attr *attr);

/*
 * UROCED-LEASE-01: grants the request of a process of user `uid`. Returns the index of its address, [0, last - first],
 * or a negative value: -1 - enum ur_lease_refusal. A new lease has the secret `fresh`; one that comes back
 * keeps its own, also if this daemon does not know it (UROCED-RELEASE-03). With one address for all, the first two digits of a secret are
 * the number. UROCED-QUARANTINE-02: a user with per_user addresses in quarantine gets one of these.
 */
int lease_take(struct lease_table *t, const struct ur_lease_request *r, uint32_t uid,
	       const char *fresh, uint64_t now_ns);

/* The lease ends: its address is in quarantine. */
void lease_end(struct lease_table *t, unsigned i, uint64_t now_ns);

/*
 * What an earlier daemon had leased: in quarantine from now on. `own`: as lease_own(). False: not of the range, or not a secret.
 */
bool lease_restore(struct lease_table *t, uint32_t own, uint32_t uid, const char *secret,
		   uint64_t now_ns);

/* What a client has to itself: its address, or its number. */
static inline uint32_t lease_own(const struct lease_table *t, unsigned i)
{
	return t->attr.first + i;
}

static inline uint32_t lease_address(const struct lease_table *t, unsigned i)
{
	return t->attr.host ? t->attr.host : lease_own(t, i);
}

/* The client's number, [1, 62]; 0: it has an address of its own. */
static inline uint8_t lease_number(const struct lease_table *t, unsigned i)
{
	return t->attr.host ? (uint8_t)lease_own(t, i) : 0;
}

/* For tests: asserts the invariant. */
void lease_table_validate(const struct lease_table *t);

#endif
