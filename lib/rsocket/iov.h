/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_IOV_H
#define UR_RSOCKET_IOV_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * A position in the buffers that a program gives to a call. It does not own them.
 *
 * Thread class: a value on the caller's stack.
 */
struct ur_rs_iov {
	const struct iovec *at;
	size_t skip;  /* bytes of *at that are done */
	size_t bytes; /* left in all */
};

/* Their beginning. EMSGSIZE: too many; EINVAL: more bytes than a call can return. */
int ur_rs_iov(const struct iovec *iov, size_t cnt, struct ur_rs_iov *to);
/* Copy the next n bytes, at most v->bytes, from the buffers or to them. */
void ur_rs_iov_get(struct ur_rs_iov *v, void *to, size_t n);
void ur_rs_iov_put(struct ur_rs_iov *v, const void *from, size_t n);

#endif
