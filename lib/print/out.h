/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PRINT_OUT_H
#define UR_PRINT_OUT_H

#include <stddef.h>

#include "wire/packet.h"

/*
 * A text in the caller's buffer that functions append to. Text that does not fit is cut; the text
 * always ends with NUL unless cap is 0. Thread class: a value on the caller's stack.
 */
struct ur_out {
	char *buf;
	size_t cap; /* bytes, NUL included */
	size_t len; /* bytes, without NUL; [0, cap) unless cap is 0 */
};

struct ur_out ur_out(char *buf, size_t cap);
void ur_outf(struct ur_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ur_out_gid(struct ur_out *o, const struct ur_gid *gid);

/* Appends " XTH{...}"; nothing if the packet has no such header. */
void ur_out_xth(struct ur_out *o, const struct ur_packet *p);
/* Appends XAETH, XRTH and bitmap, as far as the packet has them, each after a space. */
void ur_out_xaeth(struct ur_out *o, const struct ur_packet *p);

#endif
