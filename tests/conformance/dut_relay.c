/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scripted end is in another process. So the other end of the ring is a port without an
 * endpoint, whose frames are relayed.
 */
#include "dut.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dpdk/eal_ring.h"

#define SLOTS	    1024
#define FRAME_BYTES 9216
#define BURST	    32

static uint16_t port;
static int frames;
static struct rte_mempool *pool;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "dut: the other end of the ring: %s\n", what);
	exit(2);
}

void dut_relay_open(const char *ring, int fd)
{
	struct rte_eth_conf conf = {0};
	char device[64];

	frames = fd;
	must(ur_eal_ring_add(ring, 1, SLOTS, &port, device, sizeof(device)) == 0, "no such ring");
	pool = rte_pktmbuf_pool_create("conformance", 4095, 0, 0,
				       FRAME_BYTES + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	must(pool != NULL, "no memory");
	must(rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
		     rte_eth_rx_queue_setup(port, 0, SLOTS, SOCKET_ID_ANY, NULL, pool) == 0 &&
		     rte_eth_tx_queue_setup(port, 0, SLOTS, SOCKET_ID_ANY, NULL) == 0 &&
		     rte_eth_dev_start(port) == 0,
	     "cannot be started");
}

/* A frame for the tester: CLOCK_MONOTONIC in nanoseconds, then its bytes. */
static void relay(const void *bytes, size_t len)
{
	struct timespec now;
	int64_t ns;
	struct iovec part[] = {{&ns, sizeof(ns)}, {(void *)(uintptr_t)bytes, len}};
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	must(sendmsg(frames, &msg, MSG_NOSIGNAL) == (ssize_t)(sizeof(ns) + len),
	     "the tester is gone");
}

static unsigned to_tester(void)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(port, 0, m, BURST);
	uint8_t copy[FRAME_BYTES];

	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = rte_pktmbuf_pkt_len(m[i]);
		const void *bytes = rte_pktmbuf_read(m[i], 0, len, copy);

		must(bytes && len <= sizeof(copy), "a frame too long");
		relay(bytes, len);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

static unsigned from_tester(void)
{
	unsigned n = 0;

	while (n < BURST) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		ssize_t len;

		must(m != NULL, "no buffer");
		len = recv(frames, rte_pktmbuf_mtod(m, void *), FRAME_BYTES, MSG_DONTWAIT);
		if (len <= 0) {
			rte_pktmbuf_free(m);
			break;
		}
		m->pkt_len = m->data_len = (uint16_t)len;
		must(rte_eth_tx_burst(port, 0, &m, 1) == 1, "the ring is full");
		n++;
	}
	return n;
}

bool dut_relay(void)
{
	unsigned in = from_tester();

	return to_tester() + in > 0;
}
