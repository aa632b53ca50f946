/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_XDP_H
#define UR_DPDK_XDP_H

/*
 * Detaches whatever XDP program is on the interface, by one netlink message. Async-signal-safe.
 * Returns 0 when the message was sent, a negative errno otherwise.
 */
int ur_xdp_off(unsigned ifindex);

/*
 * Silences libbpf and libxdp, which print on stderr what is no error, where the af_xdp driver has
 * loaded them; does nothing elsewhere. What goes wrong still comes back as a return value.
 */
void ur_xdp_quiet(void);

#endif
