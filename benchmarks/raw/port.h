/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PORT_H
#define BENCH_PORT_H

#include <signal.h>
#include <stdbool.h>

#include <rte_mempool.h>

/*
 * The port of a program that uses DPDK alone: the first device of the EAL, one queue each way. Rings
 * and packet buffers are what lib/dpdk/port.c gives a memif with the files of pmd-config.
 *
 * Thread class: one thread.
 */
#define PORT_ID		 0
#define PORT_FRAME_BYTES 4218 /* the longest frame: an MTU of 4200, Ethernet and a tag */

struct port {
	struct rte_mempool *pool;
	bool copies_tx; /* a TX burst copies frames in several pieces before it returns */
	bool shares_rx; /* received frames lie where the peer has written them */
};

/* Opens and starts the port. Returns NULL, or a sentence that says why it failed. */
const char *port_open(struct port *port);
/* Waits for the peer. Returns 0, or -1 if it has not come in `patience_ms` or *stop is set. */
int port_wait_for_link(unsigned patience_ms, const volatile sig_atomic_t *stop);
/* True while the peer is there. */
bool port_has_link(void);
/* After this the program exits: rte_eal_cleanup() would unmap what the interrupt thread still uses. */
void port_close(void);

#endif
