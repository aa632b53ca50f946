/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_PROBE_TRAIN_H
#define UR_TRANSPORT_PROBE_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Probes that follow one that nothing answers, where packets are being lost (EXT-SEL-TRAIN-01). A burst of losses that has taken all
 * that was in flight takes lone probes as well, one after each timeout. A train outlasts it.
 *
 * Let T be the silence after which a probe is sent: two round trips and what they vary. The probes of a train follow each other after
 * T/2, T/4, and then T/8: at most four in a round trip. After UR_PROBE_TRAIN_FAST of them there are eight in the time of the
 * first timeout, and none after UR_PROBE_TRAIN_TIMEOUTS timeouts. A worker has UR_PROBE_TRAINS places: thousands of queue pairs that
 * find silence at the same time do not all ask at that rate.
 *
 * Thread class: the worker.
 */
#define UR_PROBE_TRAINS		8
#define UR_PROBE_TRAIN_FAST	16
#define UR_PROBE_TRAIN_TIMEOUTS 4
/* How long packets are taken to be lost after an arrival has shown a loss. */
#define UR_PROBE_TRAIN_LOSSES_NS UINT64_C(100000000)

struct ur_probe_train {
	const void *of;	     /* the sequence that asks; NULL: free */
	uint64_t timeout_ns; /* when the timeout is over */
	uint64_t path_ns;    /* since when its probes take the path that they take */
	uint32_t sent;	     /* probes since the train began */
};

struct ur_probe_trains {
	struct ur_probe_train place[UR_PROBE_TRAINS];
	uint64_t lossy_until_ns; /* 0: nothing was seen to be lost yet */
};

/* Something that arrived has shown a loss. */
static inline void ur_probe_train_note_loss(struct ur_probe_trains *t, uint64_t now_ns)
{
	t->lossy_until_ns = now_ns + UR_PROBE_TRAIN_LOSSES_NS;
}

/* The place of `of`; NULL: it has none. With NULL, a free one. */
static inline struct ur_probe_train *ur_probe_train_find(struct ur_probe_trains *t, const void *of)
{
	for (unsigned i = 0; i < UR_PROBE_TRAINS; i++)
		if (t->place[i].of == of)
			return &t->place[i];
	return NULL;
}

/* How long after its last probe the next one follows, with T = silence_ns; there was one. At least least_ns. */
static inline uint64_t ur_probe_train_gap_ns(const struct ur_probe_train *train,
					     uint64_t silence_ns, uint64_t timeout_ns,
					     uint64_t least_ns)
{
	unsigned shift = train->sent < 3 ? train->sent : 3;
	uint64_t ns = silence_ns >> shift, slow_ns = timeout_ns / 8;

	if (train->sent >= UR_PROBE_TRAIN_FAST && ns < slow_ns)
		ns = slow_ns;
	return ns > least_ns ? ns : least_ns;
}

#endif
