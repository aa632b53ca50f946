/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CAPTURE_H
#define UR_EDGE_CAPTURE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Captures what a port really sent and received to a pcap file (nanosecond stamps, Ethernet), for
 * tcpdump, tshark and uroce-pcap. Workers copy packets to rings, one for each worker; a thread
 * writes them. A worker never waits: a full ring drops the copy and counts it, not the packet.
 *
 * Where to hook in: received packets before impairment, sent ones after it.
 *
 * Thread class: start, stop, attach and detach: one control thread. packet and segments: worker
 * `worker_idx` alone for its index. stats: anyone.
 */

#define UR_CAPTURE_WORKERS_MAX 64
#define UR_CAPTURE_SNAPLEN     65535

enum ur_capture_dir { UR_CAPTURE_RX = 1, UR_CAPTURE_TX = 2, UR_CAPTURE_BOTH = 3 };

/* Zero in any field with a default means the default. */
struct ur_capture_attr {
	const char *path;    /* file to write, replaced when it is there */
	const char *filter;  /* pcap-filter(7); NULL or "": everything */
	unsigned worker_cnt; /* 1 to UR_CAPTURE_WORKERS_MAX */
	uint32_t snaplen;    /* bytes of a packet that are kept; 0: all */
	uint64_t max_bytes; /* of the file: packets past it are counted, not written; 0: no bound */
	uint32_t ring_bytes;	  /* of each worker, rounded up to a power of two; 0: 4 MiB */
	int64_t epoch_ns;	  /* Unix time at the workers' time 0 */
	enum ur_capture_dir dirs; /* 0: both */
	const cpu_set_t *cpus;	  /* where the writer may run; NULL: as the calling thread */
};

/* X(name, text) */
#define UR_CAPTURE_STATS(X)                                                                        \
	X(SEEN, "packets shown to the capture")                                                    \
	X(FILTERED, "not matched by the filter or direction")                                      \
	X(DROPPED, "copies dropped because a ring was full")                                       \
	X(PAST_LIMIT, "not written because the file is full")                                      \
	X(WRITTEN, "packets in the file")                                                          \
	X(WRITTEN_BYTES, "size of the file")                                                       \
	X(WRITE_ERRORS, "packets that could not be written")

enum ur_capture_stat {
#define X(name, text) UR_CAPTURE_##name,
	UR_CAPTURE_STATS(X)
#undef X
		UR_CAPTURE_STAT_CNT
};

struct ur_capture;

/* "dropped"; "copies dropped because ...". Never NULL for a valid value. */
const char *ur_capture_stat_name(unsigned stat);
const char *ur_capture_stat_text(unsigned stat);

/* 0 when the filter compiles; else -EINVAL with libpcap's reason in err. */
int ur_capture_check_filter(const char *filter, char *err, size_t cap);

/*
 * Opens the file, compiles the filter, starts the writer. NULL with one sentence in err on failure.
 * The strings of attr are not used after it.
 */
struct ur_capture *ur_capture_start(const struct ur_capture_attr *attr, char *err, size_t cap);

/*
 * Writes all that is in the rings, ends the writer, closes the file, frees c. No worker may use c
 * any more (see ur_capture_detach). stats: UR_CAPTURE_STAT_CNT numbers, or NULL. Returns 0, or a
 * negative errno when the file could not be written in full.
 */
int ur_capture_stop(struct ur_capture *c, uint64_t *stats);

/* UR_CAPTURE_STAT_CNT numbers, while it runs. */
void ur_capture_stats(const struct ur_capture *c, uint64_t *stats);

/* One packet in one piece. ts_ns: worker time, see epoch_ns. `dir` is one of RX and TX. */
void ur_capture_packet(struct ur_capture *c, unsigned worker_idx, const void *data, size_t len,
		       uint64_t ts_ns, enum ur_capture_dir dir);

/*
 * One packet in cnt pieces. The filter looks at the first: headers lie there; one that asks for
 * bytes behind it does not match.
 */
void ur_capture_segments(struct ur_capture *c, unsigned worker_idx, const struct iovec *seg,
			 unsigned cnt, uint64_t ts_ns, enum ur_capture_dir dir);

/*
 * How a running worker learns of a capture that comes and goes. Around each burst:
 *
 *	struct ur_capture *c = ur_capture_enter(&hook, worker);
 *	if (c) {
 *		ur_capture_packet(c, worker, ...);
 *		ur_capture_leave(&hook, worker);
 *	}
 *
 * Without a capture this is one load. A zeroed hook is ready to use.
 */
struct ur_capture_hook {
	_Atomic(struct ur_capture *) current;
	struct {
		_Alignas(64) atomic_bool inside;
	} worker[UR_CAPTURE_WORKERS_MAX];
};

static inline struct ur_capture *ur_capture_enter(struct ur_capture_hook *hook, unsigned worker_idx)
{
	struct ur_capture *c;

	if (!atomic_load_explicit(&hook->current, memory_order_relaxed))
		return NULL;
	/* Sequentially consistent, as is detach: it sees us inside, or we see NULL. */
	atomic_store(&hook->worker[worker_idx].inside, true);
	c = atomic_load(&hook->current);
	if (!c)
		atomic_store_explicit(&hook->worker[worker_idx].inside, false,
				      memory_order_release);
	return c;
}

static inline void ur_capture_leave(struct ur_capture_hook *hook, unsigned worker_idx)
{
	atomic_store_explicit(&hook->worker[worker_idx].inside, false, memory_order_release);
}

/* Shows c to the workers. -EBUSY when there is one already. */
int ur_capture_attach(struct ur_capture_hook *hook, struct ur_capture *c);

/*
 * Takes it away and returns it (NULL when there was none) once no worker is inside any more, which
 * takes at most a burst; it may then be stopped. Not from a worker that is inside.
 */
struct ur_capture *ur_capture_detach(struct ur_capture_hook *hook);

#endif
