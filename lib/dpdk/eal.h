/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_EAL_H
#define UR_DPDK_EAL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/config.h"

/*
 * Start-up of DPDK. A process has one EAL: the first ur_eal_init() starts it according to its
 * configuration, and every call adds one ethdev (so that one process may have several endpoints,
 * as the tests with driver = ring do). Later calls use the memory, lcores and PCI access
 * that the first one chose. Threads that it starts block all signals, and the calling thread keeps
 * its CPUs. A child made by fork() may only call exit(). All functions may be
 * called from any thread; they exclude one another.
 *
 * Counters: `dpdk-telemetry.py -f PREFIX`, PREFIX being ur_eal_prefix(). The socket is there with
 * and without hugepages and also with in_memory = yes.
 */

struct ur_eal_port {
	uint16_t id;	    /* of the ethdev, not yet configured: give it to ur_port_open() */
	uint16_t queue_cnt; /* queue pairs to ask for: worker.count */
	bool dedicated;	    /* worker i runs on lcore[i]; otherwise in the caller's thread */
	unsigned lcore[UR_WORKERS_MAX]; /* EAL lcores in [0, queue_cnt), taken until released */
	char device[64];		/* name of the EAL device */
	int driver;			/* enum ur_driver */
	int iface_lock; /* descriptor of the interface lock (iface_lock.h); -1: none */
	int xdp_prog;	/* descriptor of a shared interface's XDP program, or -1 */
};

/*
 * Checks the configuration, starts the EAL if necessary and makes the port. Returns 0, or a negative
 * errno with one sentence in `err` (which ends with DPDK's own reason in parentheses) and
 * no port added; if the EAL was started, it keeps running. -EBUSY: among others, another endpoint has
 * the kernel interface, and still has it after a second.
 */
int ur_eal_init(const struct ur_config *cfg, struct ur_eal_port *out, char *err, size_t err_cap);

#define UR_EAL_RING_SLOTS 1024 /* of driver ring, without framecnt */

/* Frames that can wait in the receive ring of a port of this configuration. `rx_desc`: the port's descriptors. */
uint32_t ur_eal_rx_slots(const struct ur_config *cfg, uint16_t rx_desc);

/* Releases the port, which was closed by ur_port_close(), and its lcores. */
void ur_eal_release(struct ur_eal_port *port);

/*
 * Ends the EAL after the last port was released; its runtime directory is removed at exit(). DPDK cannot
 * be started again in this process. Does nothing if it was never started.
 */
void ur_eal_cleanup(void);

/* Returns the CPUs that no dedicated worker of the first endpoint uses, if any. The EAL is running. */
void ur_eal_cpus(cpu_set_t *cpus);

/* File prefix of the running EAL, for dpdk-telemetry.py -f; "" when it is not running. */
const char *ur_eal_prefix(void);

/* Whether the EAL runs on hugepages. False when it is not running. */
bool ur_eal_hugepages(void);

/* MiB of hugepages that are free and can be mapped by this process now. */
uint64_t ur_eal_free_hugepages_mb(void);

/* The value for vm.nr_hugepages (2 MiB pages) with which `mb` MiB more than those in use are available.
 */
uint64_t ur_eal_nr_hugepages_for(uint32_t mb);

/*
 * The arguments that rte_eal_init() would get, separated by NULs in buf, for tests and messages:
 * argv[0] is "uroce". Returns argc, or a negative errno with a sentence in `err`.
 */
struct ur_eal_args {
	char buf[4096];
	char *argv[64];
	int argc;
	bool hugepages;
};
int ur_eal_args(const struct ur_config *cfg, struct ur_eal_args *args, char *err, size_t err_cap);

/*
 * The device string ("net_af_packet0,iface=veth0,...") for the port, `n` telling equal drivers
 * apart. Not for driver = ring, which has none. Returns 0, -ENAMETOOLONG or -ENODEV (the interface
 * is not there, its MTU is needed) with a sentence in `err`.
 */
int ur_eal_devargs(const struct ur_config *cfg, unsigned n, char *buf, size_t cap, char *err,
		   size_t err_cap);

#endif
