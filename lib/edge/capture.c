/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* pthread_attr_setaffinity_np */
#include "edge/capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pcap/pcap.h>

#include "edge/byte_ring.h"
#include "thread/thread.h"

#define RING_DEFAULT	  (4u << 20)
#define FILE_HEAD_BYTES	  24
#define PACKET_HEAD_BYTES 16
#define BATCH		  256	  /* records written at a time */
#define IDLE_NS		  1000000 /* sleep of the writer while all rings are empty */

/* A record in a ring: this header, followed by `caplen` bytes. */
struct copy {
	uint64_t ts_ns;
	uint32_t len, caplen;
};

/* The state of one worker. The worker alone writes the counters; any thread may read them. */
struct tap {
	struct ur_byte_ring ring;
	atomic_uint_fast64_t seen, filtered, dropped, past_limit;
};

struct ur_capture {
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	struct bpf_program filter;
	bool has_filter;
	enum ur_capture_dir dirs;
	uint32_t snaplen;
	uint64_t max_bytes;
	int64_t epoch_ns;
	pthread_t thread;
	atomic_bool ending;
	atomic_bool full; /* the file has reached max_bytes, so nothing more is copied */
	atomic_uint_fast64_t written, written_bytes, write_errors, past_limit;
	int error; /* of the writer; valid after it has ended */
	unsigned tap_cnt;
	struct tap *tap;
};

static const char *const stat_names[] = {
#define X(name, text) #name,
	UR_CAPTURE_STATS(X)
#undef X
};

static const char *const stat_texts[] = {
#define X(name, text) text,
	UR_CAPTURE_STATS(X)
#undef X
};

const char *ur_capture_stat_name(unsigned stat)
{
	return stat < UR_CAPTURE_STAT_CNT ? stat_names[stat] : "?";
}

const char *ur_capture_stat_text(unsigned stat)
{
	return stat < UR_CAPTURE_STAT_CNT ? stat_texts[stat] : "?";
}

/* Each counter has one writer, so no locked instruction is needed. */
static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static uint64_t get(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- the worker's side ---- */

/* True if the packet is to be copied; otherwise the reason is counted. */
static bool wanted(struct ur_capture *c, struct tap *tap, const void *data, size_t first,
		   size_t len, enum ur_capture_dir dir)
{
	const struct pcap_pkthdr hdr = {.caplen = (bpf_u_int32)first, .len = (bpf_u_int32)len};

	add(&tap->seen, 1);
	if (!(c->dirs & dir) ||
	    (c->has_filter && pcap_offline_filter(&c->filter, &hdr, data) == 0)) {
		add(&tap->filtered, 1);
		return false;
	}
	if (atomic_load_explicit(&c->full, memory_order_relaxed)) {
		add(&tap->past_limit, 1);
		return false;
	}
	return true;
}

void ur_capture_segments(struct ur_capture *c, unsigned worker_idx, const struct iovec *seg,
			 unsigned cnt, uint64_t ts_ns, enum ur_capture_dir dir)
{
	struct tap *tap = &c->tap[worker_idx];
	size_t len = 0, left;
	struct copy *copy;
	uint8_t *to;

	for (unsigned i = 0; i < cnt; i++)
		len += seg[i].iov_len;
	if (cnt == 0 || !wanted(c, tap, seg[0].iov_base, seg[0].iov_len, len, dir))
		return;
	left = len < c->snaplen ? len : c->snaplen;
	copy = ur_byte_ring_reserve(&tap->ring, sizeof(*copy) + left);
	if (!copy) {
		add(&tap->dropped, 1);
		return;
	}
	*copy = (struct copy){.ts_ns = ts_ns, .len = (uint32_t)len, .caplen = (uint32_t)left};
	to = (uint8_t *)(copy + 1);
	for (unsigned i = 0; i < cnt && left; i++) {
		size_t n = seg[i].iov_len < left ? seg[i].iov_len : left;

		memcpy(to, seg[i].iov_base, n);
		to += n;
		left -= n;
	}
	ur_byte_ring_commit(&tap->ring);
}

void ur_capture_packet(struct ur_capture *c, unsigned worker_idx, const void *data, size_t len,
		       uint64_t ts_ns, enum ur_capture_dir dir)
{
	const struct iovec seg = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};

	ur_capture_segments(c, worker_idx, &seg, 1, ts_ns, dir);
}

int ur_capture_attach(struct ur_capture_hook *hook, struct ur_capture *c)
{
	struct ur_capture *none = NULL;

	return atomic_compare_exchange_strong(&hook->current, &none, c) ? 0 : -EBUSY;
}

struct ur_capture *ur_capture_detach(struct ur_capture_hook *hook)
{
	const struct timespec nap = {.tv_nsec = 10000};
	struct ur_capture *c = atomic_exchange(&hook->current, NULL);

	for (unsigned i = 0; c && i < UR_CAPTURE_WORKERS_MAX; i++)
		while (atomic_load(&hook->worker[i].inside))
			nanosleep(&nap, NULL);
	return c;
}

/* ---- the writer's side ---- */

static void write_copy(struct ur_capture *c, const struct copy *copy)
{
	uint64_t bytes = get(&c->written_bytes) + PACKET_HEAD_BYTES + copy->caplen;
	uint64_t ts_ns = copy->ts_ns + (uint64_t)c->epoch_ns;
	/* In a file with the nanosecond magic, tv_usec holds nanoseconds. */
	struct pcap_pkthdr hdr = {.ts = {.tv_sec = (time_t)(ts_ns / 1000000000),
					 .tv_usec = (suseconds_t)(ts_ns % 1000000000)},
				  .caplen = copy->caplen,
				  .len = copy->len};

	if (c->error) {
		add(&c->write_errors, 1);
		return;
	}
	if (atomic_load_explicit(&c->full, memory_order_relaxed) || bytes > c->max_bytes) {
		atomic_store_explicit(&c->full, true, memory_order_relaxed);
		add(&c->past_limit, 1);
		return;
	}
	pcap_dump((u_char *)c->dumper, &hdr, (const u_char *)(copy + 1));
	if (ferror(pcap_dump_file(c->dumper))) {
		c->error = errno ? -errno : -EIO;
		add(&c->write_errors, 1);
		return;
	}
	add(&c->written, 1);
	atomic_store_explicit(&c->written_bytes, bytes, memory_order_relaxed);
}

/* The ring with the oldest record, so that the file is in order of time as far as possible. */
static struct tap *oldest_tap(struct ur_capture *c, const struct copy **copy)
{
	struct tap *best = NULL;

	for (unsigned i = 0; i < c->tap_cnt; i++) {
		size_t len;
		const struct copy *head = ur_byte_ring_peek(&c->tap[i].ring, &len);

		if (head && (!best || head->ts_ns < (*copy)->ts_ns)) {
			best = &c->tap[i];
			*copy = head;
		}
	}
	return best;
}

/* Writes at most `most` records; returns their number. */
static unsigned drain(struct ur_capture *c, unsigned most)
{
	unsigned n;

	for (n = 0; n < most; n++) {
		const struct copy *copy = NULL;
		struct tap *tap = oldest_tap(c, &copy);

		if (!tap)
			break;
		write_copy(c, copy);
		ur_byte_ring_release(&tap->ring);
	}
	return n;
}

static void flush(struct ur_capture *c)
{
	if (pcap_dump_flush(c->dumper) < 0 && !c->error)
		c->error = errno ? -errno : -EIO;
}

static void *writer(void *arg)
{
	const struct timespec nap = {.tv_nsec = IDLE_NS};
	struct ur_capture *c = arg;
	bool dirty = false, ending;

	do {
		/* Read before draining, so that the rings hold all records from before the end. */
		ending = atomic_load_explicit(&c->ending, memory_order_acquire);
		while (drain(c, BATCH))
			dirty = true;
		if (dirty)
			flush(c);
		dirty = false;
		if (!ending)
			nanosleep(&nap, NULL);
	} while (!ending);
	return NULL;
}

/* ---- start and stop ---- */

static void destroy(struct ur_capture *c)
{
	if (c->has_filter)
		pcap_freecode(&c->filter);
	if (c->dumper)
		pcap_dump_close(c->dumper);
	if (c->pcap)
		pcap_close(c->pcap);
	for (unsigned i = 0; c->tap && i < c->tap_cnt; i++)
		ur_byte_ring_fini(&c->tap[i].ring);
	free(c->tap);
	free(c);
}

static struct ur_capture *fail(struct ur_capture *c, char *err, size_t cap, const char *what,
			       const char *why)
{
	snprintf(err, cap, "capture: %s: %s", what, why);
	if (c)
		destroy(c);
	return NULL;
}

int ur_capture_check_filter(const char *filter, char *err, size_t cap)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, UR_CAPTURE_SNAPLEN);
	struct bpf_program program;
	int rc = 0;

	if (!pcap)
		return -ENOMEM;
	if (pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) < 0) {
		snprintf(err, cap, "filter \"%s\": %s", filter, pcap_geterr(pcap));
		rc = -EINVAL;
	} else {
		pcap_freecode(&program);
	}
	pcap_close(pcap);
	return rc;
}

static int make_taps(struct ur_capture *c, const struct ur_capture_attr *attr)
{
	uint32_t ring_bytes = attr->ring_bytes ? attr->ring_bytes : RING_DEFAULT;

	c->tap = aligned_alloc(64, attr->worker_cnt * sizeof(*c->tap));
	if (!c->tap)
		return -ENOMEM;
	memset(c->tap, 0, attr->worker_cnt * sizeof(*c->tap));
	c->tap_cnt = attr->worker_cnt;
	for (unsigned i = 0; i < c->tap_cnt; i++)
		if (ur_byte_ring_init(&c->tap[i].ring, ring_bytes) < 0)
			return -ENOMEM;
	return 0;
}

static int start_thread(struct ur_capture *c, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	if (cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = ur_thread_start(&c->thread, &attr, writer, c);
	pthread_attr_destroy(&attr);
	return rc;
}

struct ur_capture *ur_capture_start(const struct ur_capture_attr *attr, char *err, size_t cap)
{
	struct ur_capture *c;
	int rc;

	if (!attr->path || attr->worker_cnt < 1 || attr->worker_cnt > UR_CAPTURE_WORKERS_MAX)
		return fail(NULL, err, cap, "start", "no path, or a wrong number of workers");
	c = calloc(1, sizeof(*c));
	if (!c)
		return fail(NULL, err, cap, "start", "no memory");
	c->dirs = attr->dirs ? attr->dirs : UR_CAPTURE_BOTH;
	c->snaplen = attr->snaplen && attr->snaplen < UR_CAPTURE_SNAPLEN ? attr->snaplen
									 : UR_CAPTURE_SNAPLEN;
	c->max_bytes = attr->max_bytes ? attr->max_bytes : UINT64_MAX;
	c->epoch_ns = attr->epoch_ns;
	atomic_store(&c->written_bytes, FILE_HEAD_BYTES);
	c->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, (int)c->snaplen,
						       PCAP_TSTAMP_PRECISION_NANO);
	if (!c->pcap || make_taps(c, attr) < 0)
		return fail(c, err, cap, attr->path, "no memory");
	if (attr->filter && attr->filter[0]) {
		if (pcap_compile(c->pcap, &c->filter, attr->filter, 1, PCAP_NETMASK_UNKNOWN) < 0) {
			char why[PCAP_ERRBUF_SIZE];

			snprintf(why, sizeof(why), "%s", pcap_geterr(c->pcap));
			return fail(c, err, cap, attr->filter, why);
		}
		c->has_filter = true;
	}
	c->dumper = pcap_dump_open(c->pcap, attr->path);
	if (!c->dumper) {
		char why[PCAP_ERRBUF_SIZE];

		snprintf(why, sizeof(why), "%s", pcap_geterr(c->pcap));
		return fail(c, err, cap, "cannot write", why);
	}
	flush(c);
	rc = start_thread(c, attr->cpus);
	if (rc)
		return fail(c, err, cap, "writer thread", strerror(rc));
	return c;
}

void ur_capture_stats(const struct ur_capture *c, uint64_t *stats)
{
	memset(stats, 0, sizeof(*stats) * UR_CAPTURE_STAT_CNT);
	for (unsigned i = 0; i < c->tap_cnt; i++) {
		stats[UR_CAPTURE_SEEN] += get(&c->tap[i].seen);
		stats[UR_CAPTURE_FILTERED] += get(&c->tap[i].filtered);
		stats[UR_CAPTURE_DROPPED] += get(&c->tap[i].dropped);
		stats[UR_CAPTURE_PAST_LIMIT] += get(&c->tap[i].past_limit);
	}
	stats[UR_CAPTURE_PAST_LIMIT] += get(&c->past_limit);
	stats[UR_CAPTURE_WRITTEN] = get(&c->written);
	stats[UR_CAPTURE_WRITTEN_BYTES] = get(&c->written_bytes);
	stats[UR_CAPTURE_WRITE_ERRORS] = get(&c->write_errors);
}

int ur_capture_stop(struct ur_capture *c, uint64_t *stats)
{
	int rc;

	atomic_store_explicit(&c->ending, true, memory_order_release);
	pthread_join(c->thread, NULL);
	if (stats)
		ur_capture_stats(c, stats);
	rc = c->error;
	destroy(c);
	return rc;
}
