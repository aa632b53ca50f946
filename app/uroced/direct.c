/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "direct.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dpdk/fd_msg.h"
#include "edge/direct_ring.h"
#include "edge/mtu.h"
#include "wire/bytes.h"

/* As struct ur_lease_direct names it. */
static uint32_t name_of(const struct client *c)
{
	return c->guard.number ? c->guard.number : ur_load32(c->guard.ip4);
}

/* Zeroed, and as large as it is for ever. It may get holes: pages come back as they are touched. */
static int make_memory(size_t bytes)
{
	int fd = memfd_create("uroced-direct", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool give(const struct client *to, const struct client *other, uint32_t mtu, bool second,
		 int memory)
{
	struct ur_lease_direct d = {name_of(other), (uint16_t)(mtu + UR_FRAME_OVERHEAD_BYTES),
				    second};
	uint8_t out[UR_LEASE_DIRECT_BYTES];

	ur_lease_put_direct(&d, out);
	return ur_fd_msg_send(to->lease.fd, out, sizeof(out), &memory, 1);
}

static bool may_join(const struct client *c)
{
	return c->direct && c->lease.fd >= 0 && !c->parted_cnt &&
	       __builtin_popcountll(c->joined) < CLIENT_RINGS_MAX;
}

/* The client is to be told that this one has left. */
static void part(struct client *c, const struct client *from)
{
	c->parted[c->parted_cnt++] = name_of(from);
	direct_tell(c);
}

/* A client that does not read gets no end, and then the other one has none either. */
static void make_ring(struct client *a, unsigned a_at, struct client *b, unsigned b_at,
		      uint32_t mtu)
{
	int memory = make_memory(ur_direct_bytes(mtu + UR_FRAME_OVERHEAD_BYTES));
	bool has_a = memory >= 0 && give(a, b, mtu, false, memory);

	if (has_a && give(b, a, mtu, true, memory)) {
		a->joined |= UINT64_C(1) << b_at;
		b->joined |= UINT64_C(1) << a_at;
		a->rings++;
		b->rings++;
	} else if (has_a)
		part(a, b);
	if (memory >= 0)
		close(memory);
}

void direct_request(struct client *const *client, unsigned cnt, struct client *c, uint32_t to,
		    uint32_t mtu)
{
	unsigned own = client_number(client, c), i = 0;

	while (i < cnt && (client[i]->lease.fd < 0 || name_of(client[i]) != to))
		i++;
	if (i == cnt || i == own)
		return;
	c->requested |= UINT64_C(1) << i;
	if (client[i]->requested >> own & 1 && !(c->joined >> i & 1) && may_join(c) &&
	    may_join(client[i]))
		make_ring(c, own, client[i], i, mtu);
}

void direct_part(struct client *const *client, unsigned cnt, struct client *c)
{
	unsigned own = client_number(client, c);

	for (unsigned i = 0; i < cnt; i++) {
		if (client[i]->joined >> own & 1)
			part(client[i], c);
		client[i]->joined &= ~(UINT64_C(1) << own);
		client[i]->requested &= ~(UINT64_C(1) << own);
	}
	c->joined = c->requested = 0;
	c->parted_cnt = 0;
}

/* A client that does not read is told later, and gets no ring before. */
void direct_tell(struct client *c)
{
	while (c->parted_cnt) {
		struct ur_lease_direct d = {.client = c->parted[c->parted_cnt - 1]};
		uint8_t out[UR_LEASE_DIRECT_BYTES];

		ur_lease_put_direct(&d, out);
		if (!ur_fd_msg_send(c->lease.fd, out, sizeof(out), NULL, 0))
			return;
		c->parted_cnt--;
	}
}
