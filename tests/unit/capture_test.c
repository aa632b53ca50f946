/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "edge/capture.h"

static char path[] = "/tmp/uroce_capture_test_XXXXXX";
static char err[512];
static uint64_t stats[UR_CAPTURE_STAT_CNT];

static void setup(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

TestSuite(capture, .init = setup, .fini = teardown);

static struct ur_capture *start(struct ur_capture_attr attr)
{
	struct ur_capture *c;

	attr.path = path;
	if (!attr.worker_cnt)
		attr.worker_cnt = 1;
	c = ur_capture_start(&attr, err, sizeof(err));
	cr_assert_not_null(c, "%s", err);
	return c;
}

/* A UDP datagram to `port`, with the number in its payload. */
static void make_frame(uint8_t *frame, uint16_t port, uint32_t number)
{
	memset(frame, 0, 60);
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[17] = 46;
	frame[22] = 64;
	frame[23] = 17;
	frame[36] = (uint8_t)(port >> 8);
	frame[37] = (uint8_t)port;
	frame[39] = 26;
	memcpy(frame + 42, &number, 4);
}

struct read_back {
	unsigned cnt;
	struct pcap_pkthdr hdr[64];
	uint8_t data[64][128];
};

static void read_file(struct read_back *r)
{
	struct pcap_pkthdr *hdr;
	const u_char *data;
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);

	cr_assert_not_null(p, "%s", err);
	cr_assert_eq(pcap_datalink(p), DLT_EN10MB);
	for (r->cnt = 0; pcap_next_ex(p, &hdr, &data) == 1; r->cnt++) {
		if (r->cnt >= 64)
			continue;
		r->hdr[r->cnt] = *hdr;
		memcpy(r->data[r->cnt], data, hdr->caplen < 128 ? hdr->caplen : 128);
	}
	pcap_close(p);
}

Test(capture, what_is_written_reads_back_with_its_nanoseconds)
{
	struct ur_capture *c =
		start((struct ur_capture_attr){.epoch_ns = 1700000000ll * 1000000000 + 5});
	static struct read_back r;
	uint8_t frame[60];

	for (uint32_t i = 0; i < 10; i++) {
		make_frame(frame, 4791, i);
		ur_capture_packet(c, 0, frame, 60, i * 1000000001ull, UR_CAPTURE_TX);
	}
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	read_file(&r);
	cr_assert_eq(r.cnt, 10);
	for (uint32_t i = 0; i < 10; i++) {
		make_frame(frame, 4791, i);
		cr_assert_eq(r.hdr[i].len, 60);
		cr_assert_eq(r.hdr[i].caplen, 60);
		cr_assert_eq(r.hdr[i].ts.tv_sec, 1700000000 + i);
		cr_assert_eq(r.hdr[i].ts.tv_usec, 5 + i, "nanoseconds");
		cr_assert_arr_eq(r.data[i], frame, 60);
	}
	cr_assert_eq(stats[UR_CAPTURE_WRITTEN], 10);
	cr_assert_eq(stats[UR_CAPTURE_WRITTEN_BYTES], 24 + 10 * 76);
}

Test(capture, the_filter_and_the_direction_choose)
{
	struct ur_capture *c =
		start((struct ur_capture_attr){.filter = "udp port 4791", .dirs = UR_CAPTURE_RX});
	static struct read_back r;
	uint8_t frame[60];

	for (uint32_t i = 0; i < 12; i++) {
		make_frame(frame, i % 2 ? 4791 : 53, i);
		ur_capture_packet(c, 0, frame, 60, i, i % 3 ? UR_CAPTURE_RX : UR_CAPTURE_TX);
	}
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	read_file(&r);
	cr_assert_eq(r.cnt, 4, "1, 5, 7 and 11");
	cr_assert_eq(r.data[1][42], 5);
	cr_assert_eq(stats[UR_CAPTURE_SEEN], 12);
	cr_assert_eq(stats[UR_CAPTURE_FILTERED], 8);
}

Test(capture, a_wrong_filter_and_a_wrong_path_are_reported)
{
	struct ur_capture_attr attr = {.path = path, .filter = "udp prot 4791", .worker_cnt = 1};

	cr_assert_null(ur_capture_start(&attr, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "udp prot 4791"), "%s", err);
	cr_assert_eq(ur_capture_check_filter("udp prot 4791", err, sizeof(err)), -EINVAL);
	cr_assert_eq(ur_capture_check_filter("udp port 4791", err, sizeof(err)), 0);
	attr.filter = NULL;
	attr.path = "/nonexistent/uroce.pcap";
	cr_assert_null(ur_capture_start(&attr, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "/nonexistent/uroce.pcap"), "%s", err);
}

Test(capture, pieces_are_joined_and_snaplen_cuts)
{
	struct ur_capture *c = start((struct ur_capture_attr){.snaplen = 50});
	static struct read_back r;
	uint8_t frame[60];
	struct iovec seg[3] = {{frame, 42}, {frame + 42, 0}, {frame + 42, 18}};

	make_frame(frame, 4791, 0x04030201);
	ur_capture_segments(c, 0, seg, 3, 0, UR_CAPTURE_TX);
	cr_assert_eq(ur_capture_stop(c, NULL), 0);
	read_file(&r);
	cr_assert_eq(r.cnt, 1);
	cr_assert_eq(r.hdr[0].len, 60);
	cr_assert_eq(r.hdr[0].caplen, 50);
	cr_assert_arr_eq(r.data[0], frame, 50);
}

Test(capture, the_file_stays_below_its_bound)
{
	struct ur_capture *c = start((struct ur_capture_attr){.max_bytes = 500});
	static struct read_back r;
	uint8_t frame[60];
	struct stat st;

	for (uint32_t i = 0; i < 100; i++) {
		make_frame(frame, 4791, i);
		ur_capture_packet(c, 0, frame, 60, i, UR_CAPTURE_RX);
	}
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 24 + 6 * 76);
	cr_assert_eq(stats[UR_CAPTURE_WRITTEN], 6);
	cr_assert_eq(stats[UR_CAPTURE_PAST_LIMIT], 94);
	read_file(&r);
	cr_assert_eq(r.cnt, 6);
}

Test(capture, overload_drops_copies_counts_them_and_never_waits)
{
	struct ur_capture *c = start((struct ur_capture_attr){.ring_bytes = 4096});
	static uint8_t frame[1500];
	static struct read_back r;
	unsigned n = 200000;

	make_frame(frame, 4791, 1);
	for (uint32_t i = 0; i < n; i++)
		ur_capture_packet(c, 0, frame, sizeof(frame), i, UR_CAPTURE_RX);
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	cr_assert_gt(stats[UR_CAPTURE_DROPPED], 0, "two frames fit in the ring");
	cr_assert_eq(stats[UR_CAPTURE_WRITTEN] + stats[UR_CAPTURE_DROPPED], n);
	read_file(&r);
	cr_assert_eq(r.cnt, stats[UR_CAPTURE_WRITTEN]);
	cr_assert_eq(r.hdr[0].caplen, 1500);
}

Test(capture, packets_of_all_lengths_survive_the_ring_s_end)
{
	struct ur_capture *c = start((struct ur_capture_attr){.ring_bytes = 8192});
	static uint8_t frame[3000];
	struct pcap_pkthdr *hdr;
	const u_char *data;
	uint64_t last;
	pcap_t *p;

	for (uint32_t len = 1; len < sizeof(frame); len++) {
		memset(frame, (int)(len & 0xff), len);
		do { /* unlike a worker, the test may wait */
			ur_capture_stats(c, stats);
			last = stats[UR_CAPTURE_DROPPED];
			ur_capture_packet(c, 0, frame, len, len, UR_CAPTURE_RX);
			ur_capture_stats(c, stats);
			if (stats[UR_CAPTURE_DROPPED] != last)
				usleep(100);
		} while (stats[UR_CAPTURE_DROPPED] != last);
	}
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	p = pcap_open_offline(path, err);
	cr_assert_not_null(p);
	for (uint32_t len = 1; len < sizeof(frame); len++) {
		cr_assert_eq(pcap_next_ex(p, &hdr, &data), 1);
		cr_assert_eq(hdr->caplen, len);
		for (uint32_t i = 0; i < len; i++)
			cr_assert_eq(data[i], len & 0xff);
	}
	pcap_close(p);
}

Test(capture, workers_are_merged_in_order_of_time)
{
	struct ur_capture *c =
		start((struct ur_capture_attr){.worker_cnt = 2, .ring_bytes = 1 << 20});
	static struct read_back r;
	uint8_t frame[60];

	/* Worker 1 is ahead. The writer may see some of its records first; each worker's order is kept. */
	for (uint32_t i = 0; i < 30; i++) {
		make_frame(frame, 4791, i);
		ur_capture_packet(c, i % 2, frame, 60, i, UR_CAPTURE_RX);
	}
	cr_assert_eq(ur_capture_stop(c, stats), 0);
	read_file(&r);
	cr_assert_eq(r.cnt, 30);
	for (uint32_t w = 0; w < 2; w++) {
		uint32_t next = w;

		for (uint32_t i = 0; i < 30; i++)
			if (r.data[i][42] % 2 == w) {
				cr_assert_eq(r.data[i][42], next);
				next += 2;
			}
	}
}

/* A worker that keeps sending bursts while captures are attached and detached. */
struct worker {
	struct ur_capture_hook *hook;
	unsigned idx;
	atomic_bool *stop;
	uint64_t shown;
};

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	uint8_t frame[60];

	make_frame(frame, 4791, 0);
	while (!atomic_load(w->stop)) {
		struct ur_capture *c = ur_capture_enter(w->hook, w->idx);

		if (c) {
			for (unsigned i = 0; i < 4; i++, w->shown++)
				ur_capture_packet(c, w->idx, frame, 60, w->shown, UR_CAPTURE_TX);
			ur_capture_leave(w->hook, w->idx);
		}
		usleep(10);
	}
	return NULL;
}

Test(capture, starts_and_stops_under_running_workers)
{
	static struct ur_capture_hook hook;
	atomic_bool stop = false;
	struct worker w[2] = {{&hook, 0, &stop, 0}, {&hook, 1, &stop, 0}};
	uint64_t seen = 0;
	pthread_t t[2];

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, run_worker, &w[i]);
	for (unsigned i = 0; i < 30 || (!seen && i < 5000); i++) {
		struct ur_capture *c = start((struct ur_capture_attr){.worker_cnt = 2});

		cr_assert_eq(ur_capture_attach(&hook, c), 0);
		cr_assert_eq(ur_capture_attach(&hook, c), -EBUSY);
		usleep(2000);
		cr_assert_eq(ur_capture_detach(&hook), c);
		cr_assert_eq(ur_capture_stop(c, stats), 0);
		cr_assert_eq(stats[UR_CAPTURE_WRITTEN] + stats[UR_CAPTURE_DROPPED],
			     stats[UR_CAPTURE_SEEN]);
		seen += stats[UR_CAPTURE_SEEN];
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cr_assert_null(ur_capture_detach(&hook));
	cr_assert_gt(seen, 0);
	cr_assert_eq(w[0].shown + w[1].shown, seen);
}

Test(capture, a_full_disk_is_reported_and_stops_nothing)
{
	struct ur_capture_attr attr = {.path = "/dev/full", .worker_cnt = 1};
	struct ur_capture *c = ur_capture_start(&attr, err, sizeof(err));
	static uint8_t frame[1500];

	cr_assert_not_null(c, "%s", err);
	for (unsigned i = 0; i < 100; i++) {
		ur_capture_packet(c, 0, frame, sizeof(frame), i, UR_CAPTURE_RX);
		usleep(100);
	}
	cr_assert_eq(ur_capture_stop(c, stats), -ENOSPC);
	cr_assert_eq(stats[UR_CAPTURE_SEEN], 100);
}
