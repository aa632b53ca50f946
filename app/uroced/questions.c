/* SPDX-License-Identifier: BSD-3-Clause */
#include "questions.h"

#include <string.h>

void questions_remove(struct questions *q, struct question *old)
{
	unsigned i = (unsigned)(old - q->of);

	memmove(old, old + 1, (--q->cnt - i) * sizeof(*old));
}

/* False: the client has no fewer than any other. */
static bool make_room(struct questions *q, uint8_t client)
{
	uint8_t cnt[QUESTIONS_CLIENTS] = {0}, most = client;
	unsigned i = 0;

	for (unsigned k = 0; k < q->cnt; k++)
		if (++cnt[q->of[k].client] > cnt[most])
			most = q->of[k].client;
	if (cnt[most] <= cnt[client] + 1)
		return false;
	while (q->of[i].client != most)
		i++;
	questions_remove(q, &q->of[i]);
	return true;
}

void questions_add(struct questions *q, uint32_t target, uint8_t client, uint64_t now_ns)
{
	for (unsigned i = 0; i < q->cnt; i++)
		if (q->of[i].target == target)
			return;
	if (q->cnt == QUESTIONS && !make_room(q, client))
		return;
	q->of[q->cnt++] = (struct question){target, client, now_ns, now_ns + QUESTIONS_WAIT_NS};
}

static unsigned first_due(const struct questions *q, uint64_t now_ns)
{
	unsigned best = q->cnt;

	/* The one that waits longest: of many that are looked for in turn, none is forgotten. */
	for (unsigned i = 0; i < q->cnt; i++)
		if (q->of[i].look_ns <= now_ns &&
		    (best == q->cnt || q->of[i].look_ns < q->of[best].look_ns))
			best = i;
	return best;
}

bool questions_are_due(const struct questions *q, uint64_t now_ns)
{
	return first_due(q, now_ns) < q->cnt;
}

struct question *questions_due(struct questions *q, uint64_t now_ns)
{
	unsigned i = first_due(q, now_ns);

	if (i == q->cnt)
		return NULL;
	q->of[i].look_ns = now_ns + QUESTIONS_LOOK_NS;
	return &q->of[i];
}
