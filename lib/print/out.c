/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "print/out.h"

struct ur_out ur_out(char *buf, size_t cap)
{
	if (cap)
		buf[0] = '\0';
	return (struct ur_out){.buf = buf, .cap = cap};
}

void ur_outf(struct ur_out *o, const char *fmt, ...)
{
	size_t room = o->cap - o->len;
	va_list args;
	int want;

	if (!room)
		return;
	va_start(args, fmt);
	want = vsnprintf(o->buf + o->len, room, fmt, args);
	va_end(args);
	if (want > 0)
		o->len += (size_t)want < room ? (size_t)want : room - 1;
}

void ur_out_gid(struct ur_out *o, const struct ur_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	if (ur_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->b + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid->b, text, sizeof(text));
	ur_outf(o, "%s", text);
}
