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
	unsigned idle;	    /* rounds without a frame */
	uint64_t busy_ns;   /* time of the last one with a frame */
	uint64_t shared_ns; /* until then another process is taken to share the CPU */
};

/*
 * Gives up the CPU when nothing has moved for a while. On a CPU of its own it yields for some time before it
 * sleeps. On a shared one the other process would keep the CPU for its whole slice after a yield, but is
 * interrupted when a sleep ends. A frame that waits for its port's rate is not slept over.
 */
static void rest(struct node *n, struct rest *r, uint64_t now_ns)
{
	const struct timespec nap = {.tv_nsec = n->asleep ? ASLEEP_NS : SLEEP_NS};

	if (n->options.common.poll || ++r->idle < IDLE_YIELD)
		return;
	if (ur_switch_next_deadline(n->sw, node_ready(n), now_ns) >= now_ns + SLEEP_NS &&
	    (now_ns < r->shared_ns || now_ns - r->busy_ns >= IDLE_SLEEP_NS)) {
		nanosleep(&nap, NULL);
		return;
	}
	sched_yield();
	if (ur_clock_ns(&n->clock) - now_ns >= SHARED_NS)
		r->shared_ns = now_ns + SHARED_FOR_NS;
}

/* ---- loop ---- */

struct times {
	uint64_t links_ns, quick_ns, watch_ns, stats_ns, state_ns, load_ns; /* when each is due */
	uint64_t work_ns; /* spent on frames since the load was computed */
};

static void measure_load(struct node *n, struct times *t, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - (t->load_ns - LOAD_NS);

	n->load = (uint32_t)(t->work_ns * 1000 / took_ns);
	ur_switch_agent_set_load(n->agent, n->load);
	t->work_ns = 0;
	t->load_ns = now_ns + LOAD_NS;
}

/* What is not done for each frame. */
static void do_chores(struct node *n, struct times *t, uint64_t now_ns)
{
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
	if (n->options.common.json && now_ns >= t->stats_ns) {
		node_write_stats(n, n->options.common.json, now_ns);
		t->stats_ns = now_ns + (uint64_t)(n->options.common.interval_s * NS_PER_S);
	}
	if (now_ns >= t->load_ns)
		measure_load(n, t, now_ns);
	if (now_ns >= t->state_ns) {
		state_save(n);
		t->state_ns = now_ns + STATE_NS;
	}
}

void node_run(struct node *n, const volatile sig_atomic_t *stop)
{
	uint64_t now_ns = ur_clock_ns(&n->clock), last_ns;
	struct rest r = {.busy_ns = now_ns};
	struct times t = {.load_ns = now_ns + LOAD_NS};

	prctl(PR_SET_TIMERSLACK, 1);
	shorten_slice();
	while (!*stop) {
		last_ns = now_ns;
		now_ns = ur_clock_ns(&n->clock);
		if (r.busy_ns == last_ns) /* the round that began then has moved frames */
			t.work_ns += now_ns - last_ns;
		do_chores(n, &t, now_ns);
		if (node_round(n, now_ns)) {
			r.idle = 0;
			r.busy_ns = now_ns;
		} else {
			rest(n, &r, now_ns);
		}
	}
}
