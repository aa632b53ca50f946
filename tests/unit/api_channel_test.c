/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <pthread.h>
#include <stdatomic.h>

#include "api/cm_priv.h"
#include "uroce/cm.h"

/* Destruction of channels while threads wait on them. */

#define WAITERS 3

static const char *const dedicated[] = {"worker.mode=dedicated", "eal.lcores=(0,1)@(0,1)", NULL};

static void open_dedicated(void)
{
	open_side(A, dedicated);
}

static void open_inline(void)
{
	open_side(A, NULL);
}

static pthread_t threads[WAITERS];
static struct ibv_comp_channel *comp;
static struct uroce_event_channel *events;

static void *wait_for_completion(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	if (uroce_get_cq_event(comp, &cq, &context) != -1)
		return arg;
	return errno == ECANCELED ? NULL : arg;
}

static void *wait_for_event(void *arg)
{
	struct uroce_cm_event *ev;

	return uroce_get_cm_event(events, -1, &ev) == ECANCELED ? NULL : arg;
}

static void start(void *(*wait)(void *), struct ur_waiters *w, pthread_mutex_t *lock)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	unsigned waiting;

	for (unsigned i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, wait, A), 0);
	do {
		cr_assert_lt(now_ms(), until);
		pthread_mutex_lock(lock);
		waiting = w->cnt;
		pthread_mutex_unlock(lock);
	} while (waiting < WAITERS);
}

static void join_threads(void)
{
	void *wrong;

	for (unsigned i = 0; i < WAITERS; i++) {
		cr_assert_eq(pthread_join(threads[i], &wrong), 0);
		cr_expect_null(wrong, "it was not told");
	}
}

/* CHANNEL-END-01 */
static void destroy_both_kinds(void)
{
	struct ur_api_channel *ch;

	for (unsigned i = 0; i < 20; i++) {
		comp = uroce_create_comp_channel(A->ctx);
		cr_assert_not_null(comp);
		ch = UR_API(channel, comp);
		start(wait_for_completion, &ch->waiters, &ch->lock);
		cr_assert_eq(uroce_destroy_comp_channel(comp), 0);
		join_threads();
		events = uroce_create_event_channel(A->ctx);
		cr_assert_not_null(events);
		start(wait_for_event, &events->waiters, &ur_device(A->ctx)->cm->lock);
		cr_assert_eq(uroce_destroy_event_channel(events), 0);
		join_threads();
	}
}

PAIR_TEST(api_channel, waiters_leave_a_channel_that_is_destroyed, open_inline, close_both)
{
	destroy_both_kinds();
}

PAIR_TEST(api_channel, waiters_leave_beside_a_dedicated_worker, open_dedicated, close_both)
{
	destroy_both_kinds();
}
