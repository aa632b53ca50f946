/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_FLOW_H
#define CTL_FLOW_H

#include "session.h"
#include "wire/vendor.h"

/*
 * The paths of RoCE packets to an address. Each switch on the way says by which port it would forward them, so that its hash
 * and its tables are its own matter.
 */

/* A node is left by that port. False: it leads nowhere; a sentence was printed. */
typedef bool ctl_flow_leave(void *ctx, uint32_t node, uint8_t port);

/* An IPv4 or IPv6 address. False: it is neither. */
bool ctl_flow_address(const char *text, struct ur_route *question);

/* The path of packets with question->sport, hop by hop, up to the first node that is no switch. */
bool ctl_flow_trace(struct ctl_session *s, uint32_t from, const struct ur_route *question,
		    ctl_flow_leave *leave, void *ctx);

/* All paths, whatever the source port: each link once. Returns how many there are; 0: a sentence was printed. */
uint32_t ctl_flow_all(struct ctl_session *s, uint32_t from, const struct ur_route *question,
		      ctl_flow_leave *leave, void *ctx);

#endif
