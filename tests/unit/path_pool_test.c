/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "transport/path_pool.h"

#define PATHS 4

struct pool {
	struct ur_path_pool p;
	const struct ur_path *mine[PATHS]; /* of each user */
	void *memory;
};

static void setup(struct pool *t)
{
	t->memory = aligned_alloc(64, ur_path_pool_size(PATHS));
	cr_assert(t->memory);
	ur_path_pool_init(&t->p, t->memory, PATHS, 4711);
	for (unsigned i = 0; i < PATHS; i++)
		t->mine[i] = &ur_path_none;
}

static struct ur_path path_to(uint8_t host, uint16_t sport, uint8_t tos)
{
	struct ur_path_attr attr = {
		.smac = {2, 0, 0, 0, 0, 1},
		.dmac = {2, 0, 0, 0, 0, 2},
		.src = ur_gid_from_ipv4(0x0a000001),
		.dst = ur_gid_from_ipv4(0x0a000000 | host),
		.tos = tos,
		.sport = sport,
	};
	struct ur_path path;

	ur_path_init(&path, &attr);
	return path;
}

static void take(struct pool *t, unsigned user, struct ur_path path)
{
	ur_path_pool_replace(&t->p, &t->mine[user], &path);
}

static unsigned free_paths(const struct pool *t)
{
	const struct ur_shared_path *s;
	unsigned n = 0;

	LIST_FOREACH(s, &t->p.free, link)
	n++;
	return n;
}

Test(path_pool, headers_that_differ_in_the_port_alone_are_shared)
{
	struct pool t;

	setup(&t);
	take(&t, 0, path_to(2, 0xc001, 0));
	take(&t, 1, path_to(2, 0xc002, 0));
	cr_assert_eq(t.mine[0], t.mine[1]);
	cr_assert_eq(ur_load16(t.mine[0]->hdr + t.mine[0]->len - UR_UDP_BYTES), 0);
	cr_assert_eq(free_paths(&t), PATHS - 1);
	free(t.memory);
}

Test(path_pool, other_addresses_or_classes_are_other_paths)
{
	struct pool t;

	setup(&t);
	take(&t, 0, path_to(2, 0xc001, 0));
	take(&t, 1, path_to(3, 0xc001, 0));
	take(&t, 2, path_to(2, 0xc001, 0x20));
	cr_assert_neq(t.mine[0], t.mine[1]);
	cr_assert_neq(t.mine[0], t.mine[2]);
	cr_assert_eq(t.mine[1]->hdr[UR_ETH_BYTES + 19], 3);
	cr_assert_eq(t.mine[2]->hdr[UR_ETH_BYTES + 1], 0x20);
	free(t.memory);
}

Test(path_pool, one_user_is_given_another_path_and_the_others_keep_theirs)
{
	struct ur_path changed;
	struct pool t;

	setup(&t);
	take(&t, 0, path_to(2, 0xc001, 0));
	take(&t, 1, path_to(2, 0xc002, 0));
	changed = *t.mine[0];
	changed.hdr[5] = 9;
	take(&t, 0, changed);
	cr_assert_eq(t.mine[0]->hdr[5], 9);
	cr_assert_eq(t.mine[1]->hdr[5], 2);
	cr_assert_eq(free_paths(&t), PATHS - 2);
	/* The last one follows: the old path is free again. */
	changed = *t.mine[1];
	changed.hdr[5] = 9;
	take(&t, 1, changed);
	cr_assert_eq(t.mine[0], t.mine[1]);
	cr_assert_eq(free_paths(&t), PATHS - 1);
	free(t.memory);
}

Test(path_pool, as_many_paths_as_users_are_enough)
{
	struct pool t;

	setup(&t);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < PATHS; i++)
			take(&t, i, path_to((uint8_t)(10 * round + i + 1), 0xc000, 0));
	cr_assert_eq(free_paths(&t), 0);
	for (unsigned i = 0; i < PATHS; i++) {
		ur_path_pool_give(&t.p, &t.mine[i]);
		cr_assert_eq(t.mine[i], &ur_path_none);
		ur_path_pool_give(&t.p, &t.mine[i]);
	}
	cr_assert_eq(free_paths(&t), PATHS);
	free(t.memory);
}

Test(path_pool, no_path_leads_nowhere)
{
	struct ur_ip from = {.src = ur_gid_from_ipv4(0x0a000002)};

	cr_assert(!ur_path_leads_to(&ur_path_none, &from));
	cr_assert(!ur_path_none.plain);
}
