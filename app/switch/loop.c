/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

#define LINKS_NS      100000	 /* between looks at what the kernel reports of links */
#define QUICK_NS      1000000	 /* between looks at clients of groups that are served quickly */
#define WATCH_NS      50000000	 /* between looks at other links, clients and statistics */
#define LOAD_NS	      1000000000 /* over which the load is computed */
#define STATE_NS      1000000000 /* between writes of changes */
#define IDLE_YIELD    16	 /* rounds without a frame after which it yields */
#define IDLE_SLEEP_NS 300000	 /* time without a frame after which it sleeps, */
#define SLEEP_NS      20000	 /* for so long */
#define ASLEEP_NS     1000000	 /* or this, if no port is up */
#define SHARED_NS     200000 /* a yield that takes longer shows that another process has the CPU */
#define SHARED_FOR_NS 100000000 /* for how long this is taken for granted */
#define SLICE_NS      100000	/* of the scheduler */

/* ---- the CPU ---- */

/*
 * Asks for a short time slice: since Linux 6.12 a process with one runs sooner after it has slept. Older kernels
 * ignore this.
 */
static void shorten_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

struct rest {
	bool polls;	    /* never sleeps */
	unsigned idle;	    /* rounds without a frame */
	uint64_t busy_ns;   /* time of the last one with a frame */
	uint64_t shared_ns; /* until then another process is taken to share the CPU */
};

/* Whether no frame waits for the rate of a port that could be over before a sleep is. */
static bool may_sleep(const struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		uint64_t now_ns = ur_clock_ns(&n[i].clock);

		if (ur_switch_next_deadline(n[i].sw, node_ready(&n[i]), now_ns) < now_ns + SLEEP_NS)
			return false;
	}
	return true;
}

static uint64_t nap_ns(const struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (!n[i].asleep)
			return SLEEP_NS;
	return ASLEEP_NS;
}

static bool polls(const struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (n[i].options.common.poll)
			return true;
	return false;
}

/*
 * Gives up the CPU when nothing has moved for a while. On a CPU of its own it yields for some time before it
 * sleeps. On a shared one the other process would keep the CPU for its whole slice after a yield, but is
 * interrupted when a sleep ends. A frame that waits for its port's rate is not slept over. Shorter sleeps are worse:
 * with 2 us it uses up its share of the CPU, and round trips between two programs that poll take several times as long.
 */
static void rest(struct node *n, unsigned cnt, struct rest *r, uint64_t now_ns)
{
	struct timespec nap = {0};

	if (r->polls || ++r->idle < IDLE_YIELD)
		return;
	if ((now_ns < r->shared_ns || now_ns - r->busy_ns >= IDLE_SLEEP_NS) && may_sleep(n, cnt)) {
		nap.tv_nsec = (long)nap_ns(n, cnt);
		nanosleep(&nap, NULL);
		return;
	}
	sched_yield();
	if (ur_clock_ns(&n->clock) - now_ns >= SHARED_NS)
		r->shared_ns = now_ns + SHARED_FOR_NS;
}

/* ---- loop ---- */

static void measure_load(struct node *n, struct node_times *t, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - (t->load_ns - LOAD_NS);

	n->load = (uint32_t)(t->work_ns * 1000 / took_ns);
	ur_switch_agent_set_load(n->agent, n->load);
	t->work_ns = 0;
	t->load_ns = now_ns + LOAD_NS;
}

/* What is not done for each frame. */
static void do_chores(struct node *n, uint64_t now_ns)
{
	struct node_times *t = &n->times;

	if (now_ns >= t->links_ns) {
		node_watch_kernel(n, now_ns);
		t->links_ns = now_ns + LINKS_NS;
	}
	if (now_ns >= t->quick_ns) {
		node_watch_quick(n, now_ns);
		t->quick_ns = now_ns + QUICK_NS;
	}
	if (now_ns < t->watch_ns)
		return;
	t->watch_ns = now_ns + WATCH_NS;
	node_watch(n, now_ns);
	if (n->stats && now_ns >= t->stats_ns) {
		node_write_stats(n, now_ns);
		t->stats_ns = now_ns + (uint64_t)(n->options.common.interval_s * NS_PER_S);
	}
	if (now_ns >= t->load_ns)
		measure_load(n, t, now_ns);
	if (now_ns >= t->state_ns) {
		state_save(n);
		t->state_ns = now_ns + STATE_NS;
	}
}

/* Serves each node once, which adds what it takes to its load. Returns the number of frames. */
static unsigned serve(struct node *n, unsigned cnt)
{
	uint64_t now_ns, end_ns;
	unsigned moved = 0, own;

	for (unsigned i = 0; i < cnt; i++) {
		now_ns = ur_clock_ns(&n[i].clock);
		do_chores(&n[i], now_ns);
		own = node_round(&n[i], now_ns);
		moved += own;
		end_ns = own ? ur_clock_ns(&n[i].clock) : now_ns;
		n[i].times.work_ns += end_ns - now_ns;
	}
	return moved;
}

void node_run(struct node *n, unsigned cnt, const volatile sig_atomic_t *stop)
{
	uint64_t now_ns = ur_clock_ns(&n->clock);
	struct rest r = {.polls = polls(n, cnt), .busy_ns = now_ns};

	for (unsigned i = 0; i < cnt; i++)
		n[i].times.load_ns = ur_clock_ns(&n[i].clock) + LOAD_NS;
	prctl(PR_SET_TIMERSLACK, 1);
	shorten_slice();
	while (!*stop) {
		now_ns = ur_clock_ns(&n->clock);
		if (serve(n, cnt)) {
			r.idle = 0;
			r.busy_ns = now_ns;
		} else {
			rest(n, cnt, &r, now_ns);
		}
	}
}
