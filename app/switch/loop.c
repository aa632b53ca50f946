/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "doze.h"
#include "rest.h"
#include "state.h"

#define LINKS_NS 100000	    /* between looks at what the kernel reports of links */
#define QUICK_NS 1000000    /* between looks at clients of groups that are served quickly */
#define WATCH_NS 50000000   /* between looks at other links, clients and statistics */
#define LOAD_NS	 1000000000 /* over which the load is computed */
#define STATE_NS 1000000000 /* between writes of changes */
#define DOZE_NS	 5000000    /* until a frame comes, but not for longer than this */
#define SLEEP_NS 20000	    /* or this, if one may come unnoticed */
#define SLICE_NS 100000	    /* of the scheduler */

/* ---- the CPU ---- */

/* Threads that this one makes are ordinary. Without CAP_SYS_NICE it cannot be taken back, so both have it. */
#define RESET_ON_FORK 1

/* As the kernel has it; the C library has no name for it. */
struct sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * Asks for a short time slice: since Linux 6.12 a process with one runs sooner after it has slept. Older kernels
 * ignore this.
 */
static void be_ordinary(void)
{
	struct sched_attr attr = {.size = sizeof(attr),
				  .flags = RESET_ON_FORK,
				  .nice = getpriority(PRIO_PROCESS, 0),
				  .runtime = SLICE_NS};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The lowest real-time priority: whatever is not real-time is interrupted. False: this is not permitted. */
static bool be_urgent(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr), .policy = SCHED_FIFO, .flags = RESET_ON_FORK, .priority = 1};

	return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

/* What the thread is, and whether it may be the other. */
struct urgency {
	bool now, forbidden;
};

static void set_urgency(struct urgency *u, bool wanted)
{
	if (u->now == wanted || (wanted && u->forbidden))
		return;
	if (!wanted)
		be_ordinary();
	else if (!be_urgent()) {
		u->forbidden = true;
		fprintf(stderr,
			"no real-time priority while others use this CPU: it needs root or LimitRTPRIO=1\n");
	}
	u->now = wanted && !u->forbidden;
}

/* For how long no node has something to do at a time of its own, such as a frame that waits for a port's rate. */
static uint64_t free_ns(const struct node *n, unsigned cnt)
{
	uint64_t least = DOZE_NS;

	for (unsigned i = 0; i < cnt; i++) {
		uint64_t now_ns = ur_clock_ns(&n[i].clock), at;

		at = RTE_MIN(ur_switch_next_deadline(n[i].sw, node_ready(&n[i]), now_ns),
			     ur_switch_agent_next_deadline(n[i].agent));
		if (n[i].soon)
			at = RTE_MIN(at, n[i].times.quick_ns);
		least = RTE_MIN(least, at > now_ns ? at - now_ns : 0);
	}
	return least;
}

/* SWITCH-DOZE-01. False: a frame may come that ends no doze. */
static bool ask_interrupts(struct node *n, unsigned cnt, bool on)
{
	bool all = true;

	for (unsigned i = 0; i < cnt; i++)
		all = node_ask_interrupts(&n[i], on) && all;
	return all;
}

static bool polls(const struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (n[i].options.common.poll)
			return true;
	return false;
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

/* What ended a doze was no frame. Groups have their turn when QUICK_NS have passed, however many clients come. */
static void look_around(struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		node_watch_kernel(&n[i], ur_clock_ns(&n[i].clock));
		n[i].soon = true;
	}
}

/* Whether a port has come that was not asked for interrupts. */
static bool has_unasked(const struct node *n, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (n[i].unasked)
			return true;
	return false;
}

/*
 * Sleeps for `ns`, or SLEEP_NS if a frame may come unnoticed, or until one comes. Returns the number of frames that came before it
 * could sleep. Two looks: a client's driver has no fence between a frame and its look at the flag, so the frame may be visible only a
 * moment after the flag was read.
 */
static unsigned sleep_a_while(struct node *n, unsigned cnt, struct rest *r, uint64_t ns)
{
	bool all = ask_interrupts(n, cnt, true), ended = false;
	unsigned moved = serve(n, cnt);
	uint64_t from_ns;

	if (!moved)
		moved = serve(n, cnt);
	if (!moved && !has_unasked(n, cnt)) {
		from_ns = ur_clock_ns(&n->clock);
		ended = doze(all ? ns : SLEEP_NS);
		rest_slept(r, from_ns, ur_clock_ns(&n->clock));
	}
	ask_interrupts(n, cnt, false);
	if (!ended)
		return moved;
	moved = serve(n, cnt);
	if (!moved)
		look_around(n, cnt);
	return moved;
}

static void yield(const struct node *n, struct rest *r)
{
	uint64_t from_ns = ur_clock_ns(&n->clock);

	sched_yield();
	rest_yielded(r, from_ns, ur_clock_ns(&n->clock));
}

static void rest(struct node *n, unsigned cnt, struct rest *r)
{
	enum rest_what what = rest_idle(r, ur_clock_ns(&n->clock));
	uint64_t ns;

	if (what == REST_NOT)
		return;
	/* Nothing is slept over. */
	ns = free_ns(n, cnt);
	if (what == REST_YIELD || ns < SLEEP_NS)
		yield(n, r);
	else if (sleep_a_while(n, cnt, r, ns))
		rest_busy(r, ur_clock_ns(&n->clock));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Rounds with frames, one after the other, since `from_ns`; 0: none. */
struct span {
	uint64_t from_ns, cpu_ns;
};

static void look_at_cpu(struct span *s, struct rest *r, uint64_t now_ns)
{
	uint64_t cpu;

	if (s->from_ns && now_ns < s->from_ns + REST_SPAN_NS)
		return;
	cpu = cpu_ns();
	if (s->from_ns)
		rest_ran(r, now_ns - s->from_ns, cpu - s->cpu_ns, now_ns);
	*s = (struct span){now_ns, cpu};
}

void node_run(struct node *n, unsigned cnt, const volatile sig_atomic_t *stop)
{
	struct urgency urgency = {.forbidden = !n->options.common.realtime};
	struct span span = {0};
	struct rest r;

	rest_begin(&r, polls(n, cnt), ur_clock_ns(&n->clock));
	for (unsigned i = 0; i < cnt; i++)
		n[i].times.load_ns = ur_clock_ns(&n[i].clock) + LOAD_NS;
	prctl(PR_SET_TIMERSLACK, 1);
	be_ordinary();
	while (!*stop) {
		if (serve(n, cnt)) {
			uint64_t now_ns = ur_clock_ns(&n->clock);

			rest_busy(&r, now_ns);
			look_at_cpu(&span, &r, now_ns);
		} else {
			rest(n, cnt, &r);
			span.from_ns = 0;
		}
		set_urgency(&urgency, r.urgent);
	}
}
