/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PRINT_OUT_H
#define UR_PRINT_OUT_H

#include <stddef.h>

#include "wire/packet.h"

/* A bounded text that only grows: what does not fit is cut, the NUL is always there. */
struct ur_out {
	char *buf;
	size_t cap; /* bytes, NUL included */
	size_t len; /* bytes, without NUL; [0, cap) unless cap is 0 */
};

struct ur_out ur_out(char *buf, size_t cap);
void ur_outf(struct ur_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ur_out_gid(struct ur_out *o, const struct ur_gid *gid);

/* Extended mode, each with a space in front; nothing when the packet has no such header. */
void ur_out_xth(struct ur_out *o, const struct ur_packet *p);
/* XAETH, XRTH and bitmap. */
void ur_out_xaeth(struct ur_out *o, const struct ur_packet *p);

#endif
