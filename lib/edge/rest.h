/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_REST_H
#define UR_EDGE_REST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * When the progress thread of an inline endpoint works and how long it rests ([worker] progress = adaptive,
 * EDGE-REST-01). While the application makes rounds itself, the thread stands back: it looks ever more seldom, up to
 * once in a millisecond. Otherwise it makes rounds without a pause while packets come one soon after the other, and for a while after the
 * last one, then in growing steps. After any packet another round follows, which sends the answer. But a packet that comes alone does not make the
 * thread spin: the next may be far, and the application may want this CPU. Times are arguments; the thread reads the clock and sleeps.
 *
 * Thread class: the progress thread, or one that makes rounds in its place (api/adaptive.h), each with its own.
 */

#define UR_REST_STAND_NS  20000 /* the application counts as absent this long after its last round */
#define UR_REST_SPIN_NS	  50000	  /* without a packet, before the thread sleeps */
#define UR_REST_DENSE_NS  500000  /* between two packets: the next may be near */
#define UR_REST_ANSWER_NS 20000	  /* after a packet its answer is sent */
#define UR_REST_STEP_NS	  20000	  /* the first sleep */
#define UR_REST_MAX_NS	  1000000 /* the longest */

struct ur_rest {
	uint64_t spin_ns;   /* UR_REST_SPIN_NS; 0 on a single CPU, which the application needs */
	uint64_t packet_ns; /* time of the last round that moved a packet; 0: none has */
	bool spins;	    /* after it */
	uint64_t stand_ns;  /* the next sleep while the application works */
	uint64_t step_ns;   /* the next sleep while nothing comes */
};

void ur_rest_init(struct ur_rest *r, bool single_cpu);

/* What the thread knows of a worker: a round that is not its own is the application's. Zeroed at first. */
struct ur_rest_worker {
	uint64_t own_ns, application_ns; /* times of the last rounds */
	bool in_doubt;			 /* EDGE-REST-07, */
	uint64_t doubt_ns;		 /* since then */
};

/*
 * Whether the thread may make a round of this worker. `due_ns`: when the thread was to wake for this look, or now if something else
 * woke it. `last_ns`: when the worker began its last round. `contended`: since the last call the application found the thread in
 * its way, so it works again.
 *
 * EDGE-REST-07. The thread may wake on the CPU of an application that polls, and waking takes long, up to 20 us on a virtual machine. The
 * time since due_ns says nothing about the application then. It may have lost the CPU even before. So an application that made a round since
 * the last look, but none in the 20 us before due_ns, is in doubt: it is left alone only if it has made none 20 us later either.
 */
bool ur_rest_is_left_alone(struct ur_rest_worker *w, uint64_t due_ns, uint64_t last_ns,
			   bool contended);

/*
 * EDGE-REST-09. The application says that it is about to sleep, and made its last round at `last_ns`: unless it makes another one, it
 * is absent from now on.
 */
static inline void ur_rest_leave(struct ur_rest_worker *w, uint64_t last_ns)
{
	w->own_ns = last_ns;
	w->application_ns = 0;
	w->in_doubt = false;
}

/* The thread has made a round, which began at `last_ns`. */
static inline void ur_rest_made_round(struct ur_rest_worker *w, uint64_t last_ns)
{
	w->own_ns = last_ns;
}

/* Whether the thread may make a round, given the time of the application's last one; 0: never. */
static inline bool ur_rest_may_work(uint64_t now_ns, uint64_t application_ns)
{
	return now_ns >= application_ns + UR_REST_STAND_NS;
}

/*
 * EDGE-REST-06. Whether the application may be about to answer what has just come: it has made a round a short time ago, so it is not in a
 * system call of its own, but looks for packets in memory, as a target of WRITEs does.
 */
static inline bool ur_rest_may_be_answered(const struct ur_rest_worker *w, uint64_t now_ns)
{
	return now_ns < w->application_ns + 2 * UR_REST_MAX_NS;
}

/* The next sleeps are short ones again. */
static inline void ur_rest_again(struct ur_rest *r)
{
	r->stand_ns = UR_REST_STAND_NS;
	r->step_ns = UR_REST_STEP_NS;
}

/* The sleep, in ns, of a thread that may not work. */
uint64_t ur_rest_stand_back(struct ur_rest *r);

/* The sleep while a worker is in doubt. */
static inline uint64_t ur_rest_in_doubt(uint64_t sleep_ns)
{
	return sleep_ns < UR_REST_STAND_NS ? sleep_ns : UR_REST_STAND_NS;
}

/* The sleep, in ns, after a round that moved `packets`; 0: the next round follows at once. */
uint64_t ur_rest_after(struct ur_rest *r, uint64_t now_ns, unsigned packets);

#endif
