/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/fanout.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/if_packet.h>

#define TYPE_SHIFT 16
#define NAME_MASK  0xffffu

static __thread struct {
	unsigned queue_cnt; /* 0: no device is being made */
	bool named;
	uint32_t name;
} group;

void ur_fanout_begin(unsigned queue_cnt)
{
	group.queue_cnt = queue_cnt;
	group.named = false;
}

void ur_fanout_end(void)
{
	group.queue_cnt = 0;
}

static int set(int fd, int level, int option, const void *value, socklen_t len)
{
	return (int)syscall(SYS_setsockopt, fd, level, option, value, len);
}

/* EDGE-FANOUT-01: the first socket asks for an unused name, the others take the same. */
static int join(int fd, uint32_t type)
{
	uint32_t arg = type | (uint32_t)PACKET_FANOUT_FLAG_UNIQUEID << TYPE_SHIFT;
	socklen_t len = sizeof(arg);

	if (group.queue_cnt == 1)
		return 0;
	if (group.named) {
		arg = type | group.name;
		return set(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg));
	}
	if (set(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)) != 0 ||
	    getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, &len) != 0)
		return -1;
	group.name = arg & NAME_MASK;
	group.named = true;
	return 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	if (group.queue_cnt && level == SOL_PACKET && option == PACKET_FANOUT &&
	    len == sizeof(uint32_t))
		return join(fd, *(const uint32_t *)value & ~NAME_MASK);
	return set(fd, level, option, value, len);
}
