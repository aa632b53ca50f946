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
 * Captures the packets that a port sends and receives to a pcap file (nanosecond timestamps,
 * Ethernet) for tcpdump, tshark and uroce-pcap. Each worker copies packets to a ring of its own; a
 * thread writes them to the file. A worker never waits: if its ring is full, the copy is dropped
 * and counted, and the packet goes on.
 *
 * Received packets are captured before impairment, sent packets after it.
 *
 * Thread class: start, stop, attach and detach: one control thread. packet and segments: only the
 * worker `worker_idx`. stats: any thread.
 */

#define UR_CAPTURE_WORKERS_MAX 64
#define UR_CAPTURE_SNAPLEN     65535

enum ur_capture_dir { UR_CAPTURE_RX = 1, UR_CAPTURE_TX = 2, UR_CAPTURE_BOTH = 3 };

/* For fields with a default, 0 means the default. */
struct ur_capture_attr {
	const char *path;    /* file to write; replaced if it exists */
	const char *filter;  /* pcap-filter(7); NULL or "": everything */
	unsigned worker_cnt; /* 1 to UR_CAPTURE_WORKERS_MAX */
	uint32_t snaplen;    /* bytes kept of each packet; 0: all */
	uint64_t
		max_bytes; /* maximum size of the file; later packets are only counted; 0: unlimited */
	uint32_t ring_bytes;	  /* size of each ring, rounded up to a power of two; 0: 4 MiB */
	int64_t epoch_ns;	  /* Unix time at the workers' time 0 */
	enum ur_capture_dir dirs; /* 0: both */
	const cpu_set_t *cpus;	  /* CPUs of the writer; NULL: those of the calling thread */
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

/* Name such as "dropped", and text such as "copies dropped because ..."; never NULL. */
const char *ur_capture_stat_name(unsigned stat);
const char *ur_capture_stat_text(unsigned stat);

/* Returns 0 if the filter is valid, else -EINVAL with libpcap's message in `err`. */
int ur_capture_check_filter(const char *filter, char *err, size_t cap);

/*
 * Opens the file, compiles the filter and starts the writer. On failure returns NULL, with a
 * sentence in `err`. The strings in `attr` are not used afterwards.
 */
struct ur_capture *ur_capture_start(const struct ur_capture_attr *attr, char *err, size_t cap);

/*
 * Writes the remaining records, ends the writer, closes the file and frees `c`. No worker may use
 * `c` any more (see ur_capture_detach()). `stats` takes UR_CAPTURE_STAT_CNT numbers, or is NULL.
 * Returns 0, or a negative errno if the file is incomplete.
 */
int ur_capture_stop(struct ur_capture *c, uint64_t *stats);

/* Reads UR_CAPTURE_STAT_CNT counters of a running capture. */
void ur_capture_stats(const struct ur_capture *c, uint64_t *stats);

/* Captures a contiguous packet. ts_ns: worker time, see epoch_ns. `dir` is either RX or TX. */
void ur_capture_packet(struct ur_capture *c, unsigned worker_idx, const void *data, size_t len,
		       uint64_t ts_ns, enum ur_capture_dir dir);

/*
 * Captures a packet of `cnt` segments. The filter sees only the first, which holds the headers; a
 * filter on later bytes does not match.
 */
void ur_capture_segments(struct ur_capture *c, unsigned worker_idx, const struct iovec *seg,
			 unsigned cnt, uint64_t ts_ns, enum ur_capture_dir dir);

/*
 * The hook through which captures are attached to running workers. A worker does, for each burst:
 *
 *	struct ur_capture *c = ur_capture_enter(&hook, worker);
 *	if (c) {
 *		ur_capture_packet(c, worker, ...);
 *		ur_capture_leave(&hook, worker);
 *	}
 *
 * Without a capture the cost is one load. A zeroed hook is ready for use.
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
	/* Sequentially consistent, like detach: either it sees `inside`, or this worker sees NULL. */
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

/* Makes `c` visible to the workers. -EBUSY if a capture is attached already. */
int ur_capture_attach(struct ur_capture_hook *hook, struct ur_capture *c);

/*
 * Detaches the capture and waits until no worker is inside, which takes at most one burst. Returns
 * the capture, which may now be stopped, or NULL if there was none. Not for a worker that is
 * inside.
 */
struct ur_capture *ur_capture_detach(struct ur_capture_hook *hook);

#endif
