/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_API_WIRE_H
#define TESTS_API_WIRE_H

#include "api_pair.h"

#include <jansson.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dpdk/eal_ring.h"
#include "dpdk/port.h"

/* Only endpoint A exists. The test uses the other end of its ring to send and receive raw frames. */

static struct rte_mempool *pool; /* for the frames that the test injects */
static uint16_t wire;
static char wire_device[64];

static inline void take_wire(const char *const *set)
{
	struct rte_eth_conf conf = {0};

	open_side(A, set);
	cr_assert_eq(ur_eal_ring_add("loop", 1, 256, &wire, wire_device, sizeof(wire_device)), 0);
	pool = rte_pktmbuf_pool_create("test", 1023, 0, 0, 2176, SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	cr_assert_eq(rte_eth_dev_configure(wire, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(wire, 0, 64, SOCKET_ID_ANY, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(wire, 0, 64, SOCKET_ID_ANY, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(wire), 0);
}

static inline unsigned swallow(void)
{
	struct rte_mbuf *m[32];
	unsigned n, total = 0;

	while ((n = rte_eth_rx_burst(wire, 0, m, 32))) {
		rte_pktmbuf_free_bulk(m, n);
		total += n;
	}
	return total;
}

static inline void give_wire(void)
{
	close_side(A);
	swallow();
	rte_eth_dev_stop(wire);
	rte_eth_dev_close(wire);
	ur_eal_ring_remove(wire_device);
	cr_assert_eq(rte_mempool_avail_count(pool), 1023u, "the test's buffers are lost");
	rte_mempool_free(pool);
	cr_assert_eq(ur_port_reap(), 0u, "the endpoint's buffers are lost");
}

/* A frame of `len` bytes in segments of at most `seg`. */
static inline void inject(const uint8_t *bytes, size_t len, size_t seg)
{
	struct rte_mbuf *first = rte_pktmbuf_alloc(pool);

	cr_assert_not_null(first);
	for (size_t at = 0; at < len; at += seg) {
		struct rte_mbuf *m = at ? rte_pktmbuf_alloc(pool) : first;
		size_t n = len - at < seg ? len - at : seg;

		cr_assert_not_null(m);
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), bytes + at, n);
		if (at)
			cr_assert_eq(rte_pktmbuf_chain(first, m), 0);
	}
	cr_assert_eq(rte_eth_tx_burst(wire, 0, &first, 1), 1);
	progress();
}

static inline json_t *section(struct side *s, const char *name)
{
	char *text = uroce_counters_json(s->ctx);
	json_t *all = json_loads(text, 0, NULL), *one = json_incref(json_object_get(all, name));

	json_decref(all);
	free(text);
	return one;
}

static inline uint64_t number_of(const json_t *o, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(o, name));
}

#endif
