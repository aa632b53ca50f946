/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <string.h>

#include "rsocket/iov.h"

#define VECTORS_MAX 1024 /* as in Linux */

int ur_rs_iov(const struct iovec *iov, size_t cnt, struct ur_rs_iov *to)
{
	size_t bytes = 0;

	if (cnt > VECTORS_MAX)
		return EMSGSIZE;
	for (size_t i = 0; i < cnt; i++) {
		if (iov[i].iov_len > SSIZE_MAX - bytes)
			return EINVAL;
		bytes += iov[i].iov_len;
	}
	*to = (struct ur_rs_iov){.at = iov, .bytes = bytes};
	return 0;
}

/* The next bytes that lie together, at most n of them. */
static uint8_t *next(struct ur_rs_iov *v, size_t *n)
{
	size_t room;
	uint8_t *p;

	while (v->skip == v->at->iov_len) {
		v->at++;
		v->skip = 0;
	}
	p = (uint8_t *)v->at->iov_base + v->skip;
	room = v->at->iov_len - v->skip;
	if (*n > room)
		*n = room;
	v->skip += *n;
	v->bytes -= *n;
	return p;
}

void ur_rs_iov_get(struct ur_rs_iov *v, void *to, size_t n)
{
	for (size_t part = n; n; n -= part, part = n) {
		const uint8_t *p = next(v, &part);

		memcpy(to, p, part);
		to = (uint8_t *)to + part;
	}
}

void ur_rs_iov_put(struct ur_rs_iov *v, const void *from, size_t n)
{
	for (size_t part = n; n; n -= part, part = n) {
		uint8_t *p = next(v, &part);

		memcpy(p, from, part);
		from = (const uint8_t *)from + part;
	}
}
