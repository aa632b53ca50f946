/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_INGRESS_DROP_H
#define UR_DPDK_INGRESS_DROP_H

#include <stdint.h>

#include "wire/packet.h"

/*
 * Drops the kernel's own copy of each RoCEv2 packet before it passes netfilter, IP and UDP on its way to the
 * socket that would drop it (udp_hold.h). A BPF program on the interface's tcx ingress hook does it
 * (ingress_drop.bpf.c), behind the packet sockets, which have their copies by then. It drops untagged, whole UDP
 * datagrams to port 4791 of the given addresses and nothing else, so it takes nothing that the host forwards. An endpoint with
 * addresses of its own has it as well: there the kernel would look for a route and drop the packet.
 *
 * Needs Linux 6.6, a build with clang, and the right to load BPF programs (CAP_BPF and CAP_NET_ADMIN). The
 * program ends with its last descriptor, so a killed endpoint leaves nothing behind but what a child of fork() still has.
 *
 * Thread class: any, one at a time.
 */

struct bpf_object;

struct ur_ingress_drop {
	struct bpf_object *object; /* NULL: closed; the rest counts only otherwise */
	int map, program;	   /* descriptors, the object's */
	int link;		   /* a descriptor; -1: not attached */
};

/*
 * Loads the program without attaching it, so that addresses can be added first. 0, or a negative errno:
 * -EPERM without the right, -ENOTSUP if this build lacks the program. *d is closed then.
 */
int ur_ingress_drop_open(struct ur_ingress_drop *d);

/* Does nothing to one that is closed. */
void ur_ingress_drop_close(struct ur_ingress_drop *d);

/* 0, or a negative errno: -EINVAL before Linux 6.6. */
int ur_ingress_drop_attach(struct ur_ingress_drop *d, unsigned ifindex);

/* Adds the packets to an address, or removes them. 0 or a negative errno: -E2BIG beyond 64 addresses. */
int ur_ingress_drop_add(const struct ur_ingress_drop *d, const struct ur_gid *address);
int ur_ingress_drop_remove(const struct ur_ingress_drop *d, const struct ur_gid *address);

/* Packets to the address dropped since it was added; 0 if it is not there. */
uint64_t ur_ingress_drop_count(const struct ur_ingress_drop *d, const struct ur_gid *address);

#endif
