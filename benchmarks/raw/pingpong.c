/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower limit of latency: one frame at a time between two processes, with nothing but DPDK's
 * bursts in between. `pingpong EAL... -- ping SIZE SECONDS` prints one line of JSON with
 * percentiles of half the round trip; `pingpong EAL... -- pong` returns every frame until it gets a
 * signal. The port is the first device of the EAL.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "port.h"

#define PORT	PORT_ID
#define BURST	32
#define LINK_MS 10000
#define LOST_NS 100000000ull
#define HIST_NS                                                                                    \
	(1u << 17) /* half round trips in [0, HIST_NS) are recorded with a resolution of 1 ns */
#define HEADER_BYTES 14
#define SEQ_AT	     HEADER_BYTES
#define WARMUP	     1000

static volatile sig_atomic_t stop;
static uint32_t hist[HIST_NS + 1]; /* the last slot: longer ones */

static void on_signal(int sig)
{
	stop = sig;
}

static void send_one(struct rte_mbuf *m)
{
	while (rte_eth_tx_burst(PORT, 0, &m, 1) == 0) {
		if (stop) {
			rte_pktmbuf_free(m);
			return;
		}
	}
}

static void pong(void)
{
	struct rte_mbuf *pkts[BURST];

	while (!stop) {
		uint16_t n = rte_eth_rx_burst(PORT, 0, pkts, BURST);

		for (uint16_t i = 0; i < n; i++)
			send_one(pkts[i]);
	}
}

/* True if the answer to `seq` has arrived. Other and late frames are dropped. */
static int answered(uint64_t seq)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(PORT, 0, pkts, BURST);
	int found = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint64_t got;

		memcpy(&got, rte_pktmbuf_mtod_offset(pkts[i], const char *, SEQ_AT), sizeof(got));
		found |= got == seq;
		rte_pktmbuf_free(pkts[i]);
	}
	return found;
}

static uint64_t one_ping(struct rte_mempool *pool, uint64_t seq, uint16_t size)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint64_t patience = LOST_NS * (rte_get_tsc_hz() / 1000000) / 1000;
	uint64_t from = rte_rdtsc();
	char *frame;

	if (!m)
		return 0;
	frame = rte_pktmbuf_append(m, size);
	memset(frame, 0, size);
	memset(frame, 0xff, 6);
	memcpy(frame + SEQ_AT, &seq, sizeof(seq));
	send_one(m);
	while (!answered(seq)) {
		if (stop || rte_rdtsc() - from > patience)
			return 0;
	}
	return rte_rdtsc() - from;
}

static double percentile_us(uint64_t samples, double percent)
{
	uint64_t rank = (uint64_t)((double)samples * percent / 100), seen = 0;

	for (unsigned ns = 0; ns <= HIST_NS; ns++) {
		seen += hist[ns];
		if (seen > rank)
			return ns / 1e3;
	}
	return HIST_NS / 1e3;
}

static int ping(struct rte_mempool *pool, uint16_t size, double seconds)
{
	uint64_t hz = rte_get_tsc_hz(), until = rte_rdtsc() + (uint64_t)(seconds * (double)hz);
	uint64_t samples = 0, lost = 0;

	for (uint64_t seq = 1; rte_rdtsc() < until && !stop; seq++) {
		uint64_t cycles = one_ping(pool, seq, size), ns;

		if (!cycles) {
			lost++;
			continue;
		}
		if (seq <= WARMUP)
			continue;
		ns = (uint64_t)((double)cycles * 5e8 / (double)hz);
		hist[ns < HIST_NS ? ns : HIST_NS]++;
		samples++;
	}
	if (!samples) {
		fprintf(stderr, "pingpong: nothing came back\n");
		return 1;
	}
	printf("{\"size\": %u, \"samples\": %llu, \"lost\": %llu, \"p50\": %.3f, \"p99\": %.3f, "
	       "\"p999\": %.3f}\n",
	       size, (unsigned long long)samples, (unsigned long long)lost,
	       percentile_us(samples, 50), percentile_us(samples, 99),
	       percentile_us(samples, 99.9));
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: pingpong EAL... -- ping SIZE SECONDS\n"
			"       pingpong EAL... -- pong\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct port port;
	const char *why;
	int used = rte_eal_init(argc, argv), rc = 0;
	bool pinging;
	long size = 0;

	if (used < 0)
		return usage();
	argc -= used;
	argv += used;
	pinging = argc == 4 && strcmp(argv[1], "ping") == 0;
	if (!pinging && !(argc == 2 && strcmp(argv[1], "pong") == 0))
		return usage();
	if (pinging)
		size = strtol(argv[2], NULL, 10);
	if (pinging && (size < 60 || size > 1514 || strtod(argv[3], NULL) <= 0))
		return usage();
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	why = port_open(&port);
	if (why) {
		fprintf(stderr, "pingpong: %s\n", why);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	if (!pinging) {
		pong();
	} else if (port_wait_for_link(LINK_MS, &stop)) {
		fprintf(stderr, "pingpong: no link\n");
		rc = 1;
	} else {
		rc = ping(port.pool, (uint16_t)size, strtod(argv[3], NULL));
	}
	port_close();
	return rc;
}
