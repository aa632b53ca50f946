/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <stdatomic.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define RING  256
#define MBUFS 1023
#define CACHE 127
#define ROOM  RTE_ALIGN_CEIL(PORT_FRAME_BYTES + RTE_PKTMBUF_HEADROOM, RTE_CACHE_LINE_SIZE)

/* A zero-copy memif transmits the buffers themselves, which must then be the port's own. */
static void find_out(struct port *port, const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = info->device ? rte_dev_devargs(info->device) : NULL;
	bool memif = info->driver_name && strcmp(info->driver_name, "net_memif") == 0;
	bool in_pieces = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

	port->shares_rx = memif && args && args->args && strstr(args->args, "zero-copy=yes");
	port->copies_tx = memif && in_pieces && !port->shares_rx;
}

const char *port_open(struct port *port)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;

	if (rte_eth_dev_count_avail() == 0)
		return "there is no port; give one to the EAL, such as --vdev net_memif0,...";
	if (rte_eth_dev_info_get(PORT_ID, &info) < 0)
		return "the port cannot be queried";
	find_out(port, &info);
	if (port->copies_tx)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	port->pool = rte_pktmbuf_pool_create("port", MBUFS, CACHE, 0, ROOM, SOCKET_ID_ANY);
	if (!port->pool)
		return "there is no memory for the packet buffers; give the EAL more (-m)";
	if (rte_eth_dev_configure(PORT_ID, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(PORT_ID, 0, RING, SOCKET_ID_ANY, NULL, port->pool) < 0 ||
	    rte_eth_tx_queue_setup(PORT_ID, 0, RING, SOCKET_ID_ANY, NULL) < 0 ||
	    rte_eth_dev_start(PORT_ID) < 0)
		return "the port cannot be opened";
	return NULL;
}

bool port_has_link(void)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(PORT_ID, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int port_wait_for_link(unsigned patience_ms, const volatile sig_atomic_t *stop)
{
	for (unsigned ms = 0; ms < patience_ms && !*stop; ms++) {
		if (port_has_link())
			return 0;
		rte_delay_us_sleep(1000);
	}
	return -1;
}

static void close_device(void *done)
{
	rte_eth_dev_stop(PORT_ID);
	rte_eth_dev_close(PORT_ID);
	atomic_store((_Atomic bool *)done, true);
}

/*
 * memif frees its regions when it is closed and, on the interrupt thread, when its peer has left:
 * both at once when the two ends leave together. So it is closed on that thread.
 */
void port_close(void)
{
	_Atomic bool done = false;

	if (rte_eal_alarm_set(1, close_device, &done))
		close_device(&done);
	while (!atomic_load(&done))
		rte_delay_us_sleep(100);
}
