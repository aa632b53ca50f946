/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets */
#endif
#include "dpdk/evict.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_memcpy.h>

#include "edge/cache.h"
#include "thread/thread.h"

#define FRAME_BYTES 4096
#define RING	    256 /* frames; with their memory as large as the ring of a memif */
#define DST_FRAMES  16	/* the application's memory, which stays in the cache */
#define BATCH	    8	/* frames for each look at the clock */
#define TURNS	    3
#define LAPS	    (4 * TURNS) /* of a turn: two without eviction, two with; see is_evicted() */
#define SAMPLES	    (TURNS * RING / BATCH)
#define CPUS_MAX    4
#define PATIENCE_NS UINT64_C(300000000)
#define SPINS	    256 /* before a thread that waits looks at the clock */
#define WORTH_IN_16 14	/* eviction must save an eighth */

struct samples {
	unsigned cnt[2]; /* [0]: of frames that stayed in the cache, [1]: that were evicted */
	uint32_t ns[2][SAMPLES];
};

/* Frames are numbered from 0. Written: [0, head); read: [0, tail). */
struct exchange {
	char *ring, *dst;
	uint64_t deadline_ns;
	_Alignas(64) _Atomic unsigned head;
	_Alignas(64) _Atomic unsigned tail;
	struct samples writer, reader;
};

struct measurement {
	struct ur_evict found;
	unsigned with, without; /* CPUs with which eviction paid, and did not */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool is_evicted(unsigned frame)
{
	return frame / RING & 2;
}

/* The other laps leave the lines as the next lap is to find them. */
static bool is_sampled(unsigned frame)
{
	return frame / RING & 1;
}

/* Waits until *index is at least `least`. False: time is up. */
static bool wait_for(const struct exchange *x, const _Atomic unsigned *index, unsigned least)
{
	for (unsigned spins = 1; atomic_load_explicit(index, memory_order_acquire) < least; spins++)
		if (spins % SPINS == 0 && now_ns() >= x->deadline_ns)
			return false;
	return true;
}

static void take_sample(struct samples *s, unsigned frame, uint64_t from_ns)
{
	bool evicted = is_evicted(frame);

	if (is_sampled(frame))
		s->ns[evicted][s->cnt[evicted]++] = (uint32_t)((now_ns() - from_ns) / BATCH);
}

static char *frame_of(const struct exchange *x, unsigned at)
{
	return x->ring + (size_t)(at % RING) * FRAME_BYTES;
}

/*
 * Copies as DPDK's drivers do, store by store. The C library moves whole lines (`rep movsb`), for which the CPU
 * does not fetch the old ones; with it distant cores do not show what they cost.
 */
static void *write_frames(void *arg)
{
	struct exchange *x = arg;
	char frame[FRAME_BYTES];

	memset(frame, 1, sizeof(frame));
	for (unsigned at = 0; at < LAPS * RING; at += BATCH) {
		uint64_t from_ns;

		if (at >= RING && !wait_for(x, &x->tail, at - RING + BATCH))
			break;
		from_ns = now_ns();
		for (unsigned i = 0; i < BATCH; i++)
			rte_memcpy(frame_of(x, at + i), frame, FRAME_BYTES);
		take_sample(&x->writer, at, from_ns);
		atomic_store_explicit(&x->head, at + BATCH, memory_order_release);
	}
	return NULL;
}

static void read_frames(struct exchange *x)
{
	for (unsigned at = 0; at < LAPS * RING; at += BATCH) {
		uint64_t from_ns;

		if (!wait_for(x, &x->head, at + BATCH))
			break;
		from_ns = now_ns();
		for (unsigned i = at; i < at + BATCH; i++) {
			rte_memcpy(x->dst + (size_t)(i % DST_FRAMES) * FRAME_BYTES, frame_of(x, i),
				   FRAME_BYTES);
			if (is_evicted(i))
				ur_cache_evict(frame_of(x, i), FRAME_BYTES);
		}
		take_sample(&x->reader, at, from_ns);
		atomic_store_explicit(&x->tail, at + BATCH, memory_order_release);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * The time that the slower side takes for a frame, waits not counted; UINT32_MAX: unknown. The median, because
 * other programs take the CPU now and then.
 */
static uint32_t slower_ns(struct exchange *x, bool evicted)
{
	uint32_t *w = x->writer.ns[evicted], *r = x->reader.ns[evicted];

	if (x->writer.cnt[evicted] != SAMPLES || x->reader.cnt[evicted] != SAMPLES)
		return UINT32_MAX;
	qsort(w, SAMPLES, sizeof(*w), compare);
	qsort(r, SAMPLES, sizeof(*r), compare);
	return w[SAMPLES / 2] > r[SAMPLES / 2] ? w[SAMPLES / 2] : r[SAMPLES / 2];
}

/* Sets ns[] as struct samples has it. False: no thread can be started on `cpu`. */
static bool measure_with(struct exchange *x, unsigned cpu, uint32_t ns[2])
{
	pthread_attr_t attr;
	cpu_set_t one;
	pthread_t writer;
	int rc;

	atomic_store(&x->head, 0);
	atomic_store(&x->tail, 0);
	memset(&x->writer, 0, sizeof(x->writer));
	memset(&x->reader, 0, sizeof(x->reader));
	x->deadline_ns = now_ns() + PATIENCE_NS;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	rc = pthread_create(&writer, &attr, write_frames, x);
	pthread_attr_destroy(&attr);
	if (rc)
		return false;
	read_frames(x);
	pthread_join(writer, NULL);
	for (unsigned evicted = 0; evicted < 2; evicted++)
		ns[evicted] = slower_ns(x, evicted);
	return true;
}

static void add(struct measurement *m, const uint32_t ns[2])
{
	if (ns[0] == UINT32_MAX || ns[1] == UINT32_MAX)
		return;
	m->found.keep_ns += ns[0];
	m->found.evict_ns += ns[1];
	m->found.cpu_cnt++;
	if (ur_evict_pays(ns[0], ns[1]))
		m->with++;
	else
		m->without++;
}

/* Widens this thread's CPUs to all that the process may use, then pins it. Returns the others. */
static cpu_set_t move_to(unsigned cpu)
{
	cpu_set_t all, one;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	if (sched_getaffinity(0, sizeof(all), &all))
		CPU_ZERO(&all);
	CPU_CLR(cpu, &all);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	return all;
}

static void *measure(void *arg)
{
	struct measurement *m = arg;
	cpu_set_t others = move_to(m->found.cpu);
	unsigned cnt = (unsigned)CPU_COUNT(&others), nth = 0, tried = 0;
	struct exchange *x = aligned_alloc(64, sizeof(*x));
	size_t bytes = (RING + DST_FRAMES) * (size_t)FRAME_BYTES;
	uint32_t ns[2];

	m->found.reason = cnt ? UR_EVICT_NOT_MEASURED : UR_EVICT_NO_OTHER_CPU;
	if (x)
		x->ring = aligned_alloc(FRAME_BYTES, bytes);
	if (x && x->ring) {
		memset(x->ring, 0, bytes);
		x->dst = x->ring + RING * (size_t)FRAME_BYTES;
		/* Evenly spread: neighbours by number are often neighbours by distance. */
		for (unsigned cpu = 0; cpu < CPU_SETSIZE && tried < CPUS_MAX; cpu++)
			if (CPU_ISSET(cpu, &others) && nth++ * CPUS_MAX >= tried * cnt) {
				tried++;
				if (measure_with(x, cpu, ns))
					add(m, ns);
			}
		free(x->ring);
	}
	free(x);
	return NULL;
}

bool ur_evict_pays(uint32_t keep_ns, uint32_t evict_ns)
{
	return (uint64_t)evict_ns * 16 < (uint64_t)keep_ns * WORTH_IN_16;
}

static struct ur_evict measured(unsigned cpu)
{
	struct measurement m = {.found = {.cpu = cpu, .reason = UR_EVICT_NOT_MEASURED}};
	pthread_t thread;
	sigset_t old;

	/* Until the end: a handler that leaves by siglongjmp() would leave the thread behind, with `m`. */
	ur_signals_block(&old);
	if (pthread_create(&thread, NULL, measure, &m) == 0)
		pthread_join(thread, NULL);
	ur_signals_restore(&old);
	if (m.found.cpu_cnt) {
		m.found.reason = UR_EVICT_MEASURED;
		m.found.mixed = m.with && m.without;
		m.found.on = ur_evict_pays(m.found.keep_ns, m.found.evict_ns);
	}
	return m.found;
}

struct ur_evict ur_evict_decide(int want, bool shared, unsigned cpu)
{
	if (!shared)
		return (struct ur_evict){.reason = UR_EVICT_NOT_SHARED};
	if (want == UR_TRISTATE_NO)
		return (struct ur_evict){.reason = UR_EVICT_CONFIGURED};
	if (!ur_cache_can_evict())
		return (struct ur_evict){.reason = UR_EVICT_NO_CLFLUSHOPT};
	if (want == UR_TRISTATE_YES)
		return (struct ur_evict){.on = true, .reason = UR_EVICT_CONFIGURED};
	return measured(cpu);
}

void ur_evict_describe(const struct ur_evict *e, char *text, size_t bytes)
{
	static const char *const reasons[] = {
#define X(NAME, phrase) phrase,
		UR_EVICT_REASONS(X)
#undef X
	};
	const char *what = e->on ? "received frames are evicted from the cache"
				 : "received frames stay in the cache";

	if (e->reason != UR_EVICT_MEASURED) {
		snprintf(text, bytes, "%s (%s)", what, reasons[e->reason]);
		return;
	}
	snprintf(text, bytes,
		 "%s (measured with CPU %u and %u other%s: %u ns for 4 KB if they stay, %u ns if "
		 "evicted%s)",
		 what, e->cpu, e->cpu_cnt, e->cpu_cnt == 1 ? "" : "s", e->keep_ns / e->cpu_cnt,
		 e->evict_ns / e->cpu_cnt,
		 e->mixed ? "; it depends on the other CPU, [port] evict decides" : "");
}
