/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/fanout.h"

#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/if_packet.h>

#include "dpdk/driver_call.h"

#define DRIVER "librte_net_af_packet.so"

#define TYPE_SHIFT 16
#define NAME_MASK  0xffffu

static __thread struct {
	unsigned queue_cnt; /* 0: no device is being created */
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

/* EDGE-FANOUT-01: the first socket requests an unused number, the others use the same. */
static int join(int fd, uint32_t type)
{
	uint32_t arg = type | (uint32_t)PACKET_FANOUT_FLAG_UNIQUEID << TYPE_SHIFT;
	socklen_t len = sizeof(arg);

	if (group.queue_cnt == 1)
		return 0;
	if (group.named) {
		arg = type | group.name;
		return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg));
	}
	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)) != 0 ||
	    getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, &len) != 0)
		return -1;
	group.name = arg & NAME_MASK;
	group.named = true;
	return 0;
}

/* Replaces setsockopt() in the driver. */
static int set_option(int fd, int level, int option, const void *value, socklen_t len)
{
	if (group.queue_cnt && level == SOL_PACKET && option == PACKET_FANOUT &&
	    len == sizeof(uint32_t))
		return join(fd, *(const uint32_t *)value & ~NAME_MASK);
	return setsockopt(fd, level, option, value, len);
}

/*
 * Replaces ioctl() in the driver. EDGE-FLAGS-01: the flags of an interface belong to the system.
 * The driver may set promiscuous mode, if the process has the right, but must not clear any flag.
 */
static int control(int fd, unsigned long request, ...)
{
	struct ifreq now, *want;
	va_list ap;

	va_start(ap, request);
	want = va_arg(ap, struct ifreq *);
	va_end(ap);
	if (request == SIOCSIFFLAGS) {
		now = *want;
		if (ioctl(fd, SIOCGIFFLAGS, &now) == 0 && !(want->ifr_flags & ~now.ifr_flags))
			return 0;
	}
	return ioctl(fd, request, want);
}

void ur_fanout_start(void)
{
	ur_driver_call_replace(DRIVER, "setsockopt", (ur_driver_fn)set_option);
	ur_driver_call_replace(DRIVER, "ioctl", (ur_driver_fn)control);
}
