/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CLAIM_H
#define UR_EDGE_CLAIM_H

#include <sys/types.h>

/*
 * One endpoint a kernel interface: of two, each would get and answer the other's packets. Whoever
 * opens one holds an abstract unix socket named after the interface's index. The kernel keeps such
 * names apart by network namespace, as it does with indices; it needs no rights and no directory,
 * and lets go when the process ends, however it ends. Any thread.
 */

struct ur_claim_holder {
	pid_t pid;     /* as this process sees it; 0: not known */
	char name[64]; /* of its program, "" when not known */
};

/*
 * Returns a file descriptor: closing it gives the interface back. -EBUSY: it is held already, by an
 * endpoint of this process or by another one's, *holder. -ENODEV: there is no such interface. Or
 * another negative errno. What another process holds is waited for as long as that: it may be
 * dying.
 */
int ur_claim_interface(const char *ifname, unsigned patience_ms, struct ur_claim_holder *holder);

#endif
