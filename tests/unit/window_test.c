/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "mem/window.h"

#define PD     7
#define QPN    0x000123u
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE
#define ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define MW     IBV_ACCESS_MW_BIND
#define IOVA   UINT64_C(0x10000)
#define LEN    UINT64_C(4096)

static uint8_t bytes[LEN];
static uint64_t seed = 1;
static struct ur_mem *m;

static uint64_t next_random(void)
{
	uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static void set_up(void)
{
	void *memory = NULL;

	cr_assert_eq(posix_memalign(&memory, 64, ur_mem_size(16)), 0);
	m = ur_mem_init(memory, 16);
}

static void tear_down(void)
{
	free(m);
}

TestSuite(window, .init = set_up, .fini = tear_down);

static uint32_t region(uint32_t access)
{
	uint32_t key = 0;

	cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, access, next_random(), &key), 0);
	return key;
}

static uint32_t window(bool type2)
{
	uint32_t key = 0;

	cr_assert_eq(ur_window_alloc(m, PD, type2, next_random(), &key), 0);
	cr_assert_neq(key, 0u);
	return key;
}

static struct ur_window_bind bind_of(uint32_t key, uint32_t lkey)
{
	return (struct ur_window_bind){.old_key = key,
				       .key = ibv_inc_rkey(key),
				       .lkey = lkey,
				       .access = READ | WRITE,
				       .addr = IOVA + 100,
				       .length = 200};
}

static uint8_t *check(uint32_t key, uint32_t qpn, uint64_t addr, uint64_t len, uint32_t access)
{
	return ur_mem_check_remote(m, key, PD, qpn, addr, len, access);
}

/* MW-CHECK-01 */
Test(window, grants_exactly_its_bytes_and_rights_to_its_domain)
{
	uint32_t lkey = region(LOCAL | MW), key = window(false);
	struct ur_window_bind b = bind_of(key, lkey);

	cr_expect_null(check(key, QPN, IOVA + 100, 1, READ), "not bound");
	cr_assert(ur_window_bind(m, &b, PD, QPN));
	cr_expect_null(check(key, QPN, IOVA + 100, 1, READ), "the key before");
	for (uint64_t from = 95; from < 305; from++)
		for (uint64_t len = 1; len < 210; len += 7)
			cr_assert_eq(check(b.key, QPN, IOVA + from, len, WRITE),
				     from >= 100 && from + len <= 300 ? bytes + from : NULL);
	cr_expect_null(check(b.key, QPN, UINT64_MAX, 2, READ));
	cr_expect_null(check(b.key, QPN, IOVA + 100, UINT64_MAX, READ));
	cr_expect_null(check(b.key, QPN, IOVA + 100, 8, ATOMIC));
	cr_expect_null(check(b.key, QPN, IOVA + 100, 8, READ | ATOMIC));
	cr_expect_null(ur_mem_check_remote(m, b.key, PD + 1, QPN, IOVA + 100, 8, READ));
	cr_expect_not_null(check(b.key, QPN + 1, IOVA + 100, 8, READ),
			   "type 1 serves every queue pair of the domain");
	for (unsigned bit = 0; bit < 32; bit++)
		cr_expect_null(check(b.key ^ 1u << bit, QPN, IOVA + 100, 8, READ));
	/* Not a local key, and the region itself has no remote rights. */
	cr_expect_null(ur_mem_check(m, b.key, PD, IOVA + 100, 8, 0));
	cr_expect_null(check(lkey, QPN, IOVA + 100, 8, READ));
}

/* MW-CHECK-01 */
Test(window, of_type_2_serves_only_the_queue_pair_it_is_bound_to)
{
	uint32_t lkey = region(LOCAL | MW), key = window(true);
	struct ur_window_bind b = bind_of(key, lkey);

	b.access |= IBV_ACCESS_ZERO_BASED;
	cr_assert(ur_window_bind(m, &b, PD, QPN));
	cr_expect_eq(check(b.key, QPN, 0, 200, READ), bytes + 100);
	cr_expect_null(check(b.key, QPN, 0, 201, READ));
	cr_expect_null(check(b.key, QPN, IOVA + 100, 1, READ));
	cr_expect_null(check(b.key, QPN + 1, 0, 1, READ));
	/* Bound windows of type 2 are invalidated before they are bound again. */
	b.key = ibv_inc_rkey(b.key);
	cr_expect_not(ur_window_bind(m, &b, PD, QPN));
	b.key = ibv_inc_rkey(key);
	cr_expect_not(ur_window_invalidate(m, b.key, PD, QPN + 1));
	cr_expect_not(ur_window_invalidate(m, b.key, PD + 1, QPN));
	cr_expect_not(ur_window_invalidate(m, b.key + 1, PD, QPN));
	cr_expect_not_null(check(b.key, QPN, 0, 200, READ));
	cr_expect(ur_window_invalidate(m, b.key, PD, QPN));
	cr_expect_not(ur_window_invalidate(m, b.key, PD, QPN), "twice");
	cr_expect_null(check(b.key, QPN, 0, 200, READ));
	b.key = ibv_inc_rkey(b.key);
	cr_expect(ur_window_bind(m, &b, PD, QPN + 1));
	cr_expect_null(check(b.key, QPN, 0, 200, READ));
	cr_expect_not_null(check(b.key, QPN + 1, 0, 200, READ));
	/* MW-QP-01 */
	ur_windows_forget_qp(m, QPN);
	cr_expect_not_null(check(b.key, QPN + 1, 0, 200, READ));
	ur_windows_forget_qp(m, QPN + 1);
	cr_expect_null(check(b.key, QPN + 1, 0, 200, READ));
}

/* MW-BIND-01 */
Test(window, is_bound_only_as_the_region_allows)
{
	uint32_t lkey = region(LOCAL | MW), closed = region(LOCAL | READ | WRITE), ro = region(MW),
		 key = window(false);
	const struct ur_window_bind good = bind_of(key, lkey);
	struct ur_window_bind b;

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		b = good;                                                                          \
		change;                                                                            \
		cr_expect_not(ur_window_bind(m, &b, PD, QPN), #change);                            \
		cr_expect_null(check(b.key, QPN, IOVA + 100, 1, 0));                               \
	} while (0)
	REFUSED(b.lkey = closed);
	REFUSED(b.lkey = 0);
	REFUSED(b.lkey ^= 0x80000000);
	REFUSED(b.lkey = ro); /* remote write without local write */
	REFUSED(b.addr = IOVA - 1);
	REFUSED(b.addr = 0);
	REFUSED(b.length = LEN);
	REFUSED(b.length = UINT64_MAX);
	REFUSED(b.access |= IBV_ACCESS_ZERO_BASED); /* type 2 only */
	REFUSED(b.access |= IBV_ACCESS_MW_BIND);
	REFUSED(b.key ^= 0x100); /* another window's, or none's */
	REFUSED(b.old_key ^= 0x100);
	REFUSED(b.key = 0);
	b = good;
	cr_expect_not(ur_window_bind(m, &b, PD + 1, QPN));
	b.lkey = ro;
	b.access = READ;
	cr_expect(ur_window_bind(m, &b, PD, QPN));
	cr_expect(ur_window_bind(m, &good, PD, QPN), "type 1 may be bound again");
	/* A length of 0 unbinds, whatever the region. */
	b.length = 0;
	b.lkey = 0;
	cr_expect(ur_window_bind(m, &b, PD, QPN));
	cr_expect_null(check(good.key, QPN, IOVA + 100, 1, READ));
	key = window(true);
	b = bind_of(key, lkey);
	b.length = 0;
	cr_expect_not(ur_window_bind(m, &b, PD, QPN), "type 2 is invalidated instead");
}

/* MW-REGION-01 */
Test(window, keeps_its_region)
{
	uint32_t lkey = region(LOCAL | READ | MW), key = window(true);
	struct ur_window_bind b = bind_of(key, lkey);

	cr_assert(ur_window_bind(m, &b, PD, QPN));
	cr_expect_not(ur_mem_invalidate(m, lkey, PD, false));
	cr_assert_eq(ur_mem_suspend(m, lkey), 0);
	cr_expect(ur_mem_keep_bound(m, lkey));
	cr_expect_not_null(check(lkey, QPN, IOVA, 1, READ), "the region is in force again");
	cr_assert(ur_window_invalidate(m, b.key, PD, QPN));
	cr_assert_eq(ur_mem_suspend(m, lkey), 0);
	cr_expect_not(ur_mem_keep_bound(m, lkey));
	cr_assert_eq(ur_mem_release(m, lkey), 0);
	b.key = ibv_inc_rkey(b.key);
	cr_expect_not(ur_window_bind(m, &b, PD, QPN), "the region has gone");
}

/* MW-INV-01 */
Test(window, of_type_1_and_regions_are_not_invalidated_as_windows)
{
	uint32_t lkey = region(LOCAL | MW), key = window(false);
	struct ur_window_bind b = bind_of(key, lkey);

	cr_assert(ur_window_bind(m, &b, PD, QPN));
	cr_expect_not(ur_window_invalidate(m, b.key, PD, QPN));
	cr_expect_not(ur_window_invalidate(m, lkey, PD, QPN));
	cr_expect_not(ur_window_invalidate(m, 0, PD, QPN));
	cr_expect_not(ur_mem_invalidate(m, b.key, PD, false));
}

Test(window, that_is_freed_grants_nothing_and_is_not_bound_by_what_was_posted_before)
{
	uint32_t lkey = region(LOCAL | MW), key = window(false);
	struct ur_window_bind b = bind_of(key, lkey);

	cr_assert(ur_window_bind(m, &b, PD, QPN));
	ur_window_suspend(m, key);
	cr_expect_null(check(b.key, QPN, IOVA + 100, 1, READ));
	cr_expect_not(ur_window_bind(m, &b, PD, QPN));
	ur_window_free(m, key);
	cr_expect_not(ur_window_bind(m, &b, PD, QPN));
	/* Nor by a window that has its entry. */
	for (unsigned i = 0; i < 16; i++) {
		uint32_t other = window(false);

		cr_expect_neq(other >> UR_WINDOW_TAG_BITS, key >> UR_WINDOW_TAG_BITS);
	}
	cr_expect_not(ur_window_bind(m, &b, PD, QPN));
	cr_expect_eq(ur_window_alloc(m, PD, true, next_random(), &key), -ENOMEM);
	cr_assert_eq(ur_mem_suspend(m, lkey), 0);
	cr_expect_not(ur_mem_keep_bound(m, lkey));
}

/* MEM-KEY-01. Regions and windows come and go; no key of the one is in the range of the other. */
Test(window, and_regions_never_share_a_key)
{
	uint32_t regions[8] = {0}, windows[8] = {0};

	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)next_random() % 8;
		bool is_region = next_random() & 1;

		if (is_region && regions[i]) {
			cr_assert_eq(ur_mem_suspend(m, regions[i]), 0);
			cr_assert_eq(ur_mem_release(m, regions[i]), 0);
		} else if (!is_region && windows[i]) {
			ur_window_suspend(m, windows[i]);
			ur_window_free(m, windows[i]);
		}
		if (is_region)
			/* Few bits, so that keys would often meet. */
			cr_assert_eq(ur_mem_register(m, PD, bytes, LEN, IOVA, LOCAL | MW,
						     next_random() & ~UINT64_C(0xfffff000),
						     &regions[i]),
				     0);
		else
			cr_assert_eq(ur_window_alloc(m, PD, true,
						     next_random() & ~UINT64_C(0xfffff000),
						     &windows[i]),
				     0);
		for (unsigned r = 0; r < 8; r++)
			for (unsigned w = 0; w < 8 && regions[r]; w++)
				cr_assert_neq(regions[r] >> 8, windows[w] >> 8);
	}
}

/* ---- a reader beside a binder ---- */

static _Atomic bool ended;
static struct ur_window_bind places[2];

static void *keep_binding(void *arg)
{
	for (unsigned i = 0; !atomic_load(&ended); i++) {
		cr_assert(ur_window_bind(m, &places[i & 1], PD, QPN));
		if (!(i & 63))
			sched_yield();
	}
	return NULL;
}

/* MW-CHECK-01: one key for two places in turn; no reader gets bytes of one by the addresses of the other. */
Test(window, grants_nothing_by_the_fields_of_two_binds)
{
	uint32_t lkey = region(LOCAL | MW), key = window(false), granted = 0;
	pthread_t t;

	for (unsigned i = 0; i < 2; i++) {
		places[i] = bind_of(key, lkey);
		places[i].addr = IOVA + 2000 * i;
		places[i].length = i ? 1000 : 10;
	}
	cr_assert_eq(pthread_create(&t, NULL, keep_binding, NULL), 0);
	for (unsigned i = 0; i < 300000 || granted < 100; i++) {
		uint8_t *low = check(places[0].key, QPN, IOVA + 5, 5, READ);
		uint8_t *high = check(places[0].key, QPN, IOVA + 2005, 900, READ);

		cr_assert(!low || low == bytes + 5);
		cr_assert(!high || high == bytes + 2005);
		cr_assert_null(check(places[0].key, QPN, IOVA + 5, 900, READ));
		granted += low || high;
	}
	atomic_store(&ended, true);
	pthread_join(t, NULL);
}
