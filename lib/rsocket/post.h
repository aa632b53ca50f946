/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_POST_H
#define UR_RSOCKET_POST_H

#include "rsocket/socket.h"

/*
 * Work requests of a connection. Their wr_id has the kind of message in its high half; in the low one, the bytes of
 * the ring that are free again when it completes, or which control message it is.
 *
 * Under the socket's lock. Each call takes a work request of its kind, which the caller has seen to be free. A post that
 * fails ends the connection at the next look at it.
 */

/* A WRITE without a message; not on the wire. */
#define UR_RS_DIRECT 2

/* The next message of the stream: `bytes` that are in the ring from its head on. Takes a credit and a part of the target. */
void ur_rs_post_data(struct ur_rs *rs, uint32_t bytes);
/* The same bytes, to the peer's memory. */
void ur_rs_post_direct(struct ur_rs *rs, uint32_t bytes, uint64_t addr, uint32_t key);
/* An entry of the peer's table of maps. Takes a credit and room in the ring. */
void ur_rs_post_map(struct ur_rs *rs, const struct ur_rs_mapping *m);
void ur_rs_post_control(struct ur_rs *rs, enum ur_rs_control c);
/* Of so many bytes from the ring's head on, those before its end; the others are at its beginning. */
static inline uint32_t ur_rs_ring_part(const struct ur_rs *rs, uint32_t bytes)
{
	return ur_rs_within(bytes, 0, rs->opt.send_bytes - rs->link.head);
}

/* Copies a few bytes to the ring's head. */
void ur_rs_fill_ring(struct ur_rs *rs, const void *from, uint32_t bytes);
/* Grants the peer buffer space and credits, if they are worth a message and there is a work request for it. */
void ur_rs_grant(struct ur_rs *rs);

#endif
