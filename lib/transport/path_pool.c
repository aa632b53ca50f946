/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/path_pool.h"

#include "wire/assert.h"
#include "wire/bits.h"

const struct ur_path ur_path_none;

size_t ur_path_pool_size(uint32_t cnt)
{
	return cnt * sizeof(struct ur_shared_path) +
	       ur_align64(ur_pow2_at_least(cnt) * sizeof(struct ur_shared_paths));
}

void ur_path_pool_init(struct ur_path_pool *p, void *memory, uint32_t cnt, uint64_t seed)
{
	struct ur_shared_path *paths = memory;
	uint32_t buckets = ur_pow2_at_least(cnt);

	UR_ASSERT(cnt && ((uintptr_t)memory & 63) == 0);
	*p = (struct ur_path_pool){
		.bucket = (struct ur_shared_paths *)(void *)(paths + cnt),
		.mask = buckets - 1,
		.seed = seed,
	};
	LIST_INIT(&p->free);
	for (uint32_t i = 0; i < buckets; i++)
		LIST_INIT(&p->bucket[i]);
	for (uint32_t i = cnt; i-- > 0;)
		LIST_INSERT_HEAD(&p->free, &paths[i], link);
}

static struct ur_shared_paths *bucket_of(const struct ur_path_pool *p, const struct ur_path *path)
{
	struct ur_gid to = ur_path_destination(path);

	return &p->bucket[ur_hash16(to.b, p->seed) & p->mask];
}

/* The bytes that ur_path_init() leaves alone are 0. */
static bool is_same(const struct ur_path *a, const struct ur_path *b)
{
	return a->len == b->len && a->l3_off == b->l3_off && a->v6 == b->v6 &&
	       memcmp(a->hdr, b->hdr, a->len) == 0;
}

void ur_path_pool_give(struct ur_path_pool *p, const struct ur_path **mine)
{
	/* The path is the first member, and the pool's memory may be written. */
	struct ur_shared_path *s = (struct ur_shared_path *)(uintptr_t)*mine;

	if (*mine == &ur_path_none)
		return;
	*mine = &ur_path_none;
	UR_ASSERT(s->user_cnt);
	if (--s->user_cnt)
		return;
	LIST_REMOVE(s, link);
	LIST_INSERT_HEAD(&p->free, s, link);
}

void ur_path_pool_replace(struct ur_path_pool *p, const struct ur_path **mine,
			  const struct ur_path *path)
{
	struct ur_path wanted = *path;
	struct ur_shared_paths *bucket;
	struct ur_shared_path *s;

	ur_path_set_sport(&wanted, 0);
	ur_path_pool_give(p, mine);
	bucket = bucket_of(p, &wanted);
	LIST_FOREACH(s, bucket, link)
	if (is_same(&s->path, &wanted))
		break;
	if (!s) {
		s = LIST_FIRST(&p->free);
		UR_ASSERT(s);
		LIST_REMOVE(s, link);
		s->path = wanted;
		s->user_cnt = 0;
		LIST_INSERT_HEAD(bucket, s, link);
	}
	s->user_cnt++;
	*mine = &s->path;
}
