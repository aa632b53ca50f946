/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_XDP_H
#define UR_DPDK_XDP_H

/*
 * Detaches any XDP program from the interface, by one netlink message. Async-signal-safe.
 * Returns 0 when the message was sent, a negative errno otherwise.
 */
int ur_xdp_off(unsigned ifindex);

/*
 * Silences libbpf and libxdp, which print messages on stderr that are not errors, if the af_xdp driver
 * has loaded them. Errors are still reported by return values.
 */
void ur_xdp_quiet(void);

#endif
