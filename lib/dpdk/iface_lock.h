/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_IFACE_LOCK_H
#define UR_DPDK_IFACE_LOCK_H

#include <sys/types.h>

/*
 * The interface lock, which admits only one endpoint per kernel interface: each of two would
 * receive and answer the other's packets. The holder has an abstract unix socket whose name
 * contains the index of the interface. Such names are separate in each network namespace, like
 * indices; they need no rights and no directory, and the kernel releases them when the process ends
 * in any way.
 *
 * Thread class: any.
 */

struct ur_iface_holder {
	pid_t pid;     /* in the PID namespace of this process; 0: unknown */
	char name[64]; /* name of its program; "": unknown */
};

/*
 * Locks an interface. Returns a file descriptor, which the caller closes to release the lock.
 * -EBUSY: *holder has the lock, which may be this process. -ENODEV: there is no such interface.
 * Other failures are negative errno values. If another process has the lock, waits up to `wait_ms`
 * milliseconds, because that process may be ending.
 */
int ur_iface_lock(const char *ifname, unsigned wait_ms, struct ur_iface_holder *holder);

#endif
