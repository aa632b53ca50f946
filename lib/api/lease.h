/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_LEASE_H
#define UR_API_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/psn.h"

struct ur_device;

/* An endpoint whose port is leased from uroced ([port] dev = uroced). Without a lease these do nothing. */

/* What the endpoint's numbers begin with, because other processes have its address too; zero: none has. */
struct ur_qpn_prefix ur_lease_prefix_of(const struct ur_device *dev);

/*
 * UROCED-RELEASE-02. Call after the port failed to open. True: uroced was started again meanwhile and the lease is back; open the port again.
 * False: the lease was there all the time, and *rc and `err` are as they were; or it has not come back for seconds, all calls for
 * an endpoint together: *rc is -ETIMEDOUT, and `err` says so.
 */
bool ur_lease_regain(struct ur_device *dev, int *rc, char *err, size_t cap);

/* Waits until the port's link is up, but not for long: uroced may be busy. */
void ur_lease_wait_link(struct ur_device *dev);

/* The descriptor by which uroced wakes a thread that sleeps, or -1. Thread class: any. */
int ur_lease_wake_fd_of(const struct ur_device *dev);
/* Whether clients with direct rings are to have uroced wake it. Thread class: the one that sleeps at the port. */
void ur_lease_set_sleep(struct ur_device *dev, bool sleeps);

/* From now on the first worker uses direct rings, if it may; there is none yet. */
void ur_lease_begin_direct(struct ur_device *dev);
/* No ring is left. The workers have been stopped. */
void ur_lease_free_direct(struct ur_device *dev);

/*
 * UROCED-EVENT-01: follows the lease: raises IBV_EVENT_PORT_ERR and IBV_EVENT_PORT_ACTIVE, and connects the port again when
 * the daemon is there again. Thread class: the progress thread. Never waits for the device's lock.
 */
void ur_lease_follow(struct ur_device *dev, uint64_t now_ns);

#endif
