/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "dpdk/xdp_prog.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "dpdk/rtnl.h"
#include "dpdk/xdp.h"

#define PROGRAM "uroce_xdp"

#if __has_include("dpdk/xdp_roce.inc")
#include "dpdk/xdp_roce.inc" /* static const unsigned char xdp_roce_object[] */
#else
static const unsigned char xdp_roce_object[1];
#endif

bool ur_xdp_prog_exists(void)
{
	return sizeof(xdp_roce_object) > 1;
}

int ur_xdp_prog_open(char *buf, size_t cap)
{
	int fd, rc;

	if (!ur_xdp_prog_exists())
		return -ENOTSUP;
	fd = memfd_create(PROGRAM, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, xdp_roce_object, sizeof(xdp_roce_object)) !=
	    (ssize_t)sizeof(xdp_roce_object)) {
		rc = errno ? -errno : -EIO;
		close(fd);
		return rc;
	}
	snprintf(buf, cap, "/proc/self/fd/%d", fd);
	return fd;
}

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static bool is_ours(uint32_t id)
{
	union bpf_attr get = {.prog_id = id}, ask = {0};
	struct bpf_prog_info info = {0};
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &get);
	bool ours;

	if (fd < 0)
		return false;
	ask.info.bpf_fd = (uint32_t)fd;
	ask.info.info_len = sizeof(info);
	ask.info.info = (uintptr_t)&info;
	ours = bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) == 0 &&
	       strncmp(info.name, PROGRAM, sizeof(info.name)) == 0;
	close(fd);
	return ours;
}

bool ur_xdp_prog_is_foreign(unsigned ifindex)
{
	struct ur_rtnl_link link;

	return ur_rtnl_get_link(ifindex, &link) == 0 && link.xdp_id && !is_ours(link.xdp_id);
}

/* SHARED-XDP-01 */
int ur_xdp_prog_reap(unsigned ifindex)
{
	struct ur_rtnl_link link;
	int rc = ur_rtnl_get_link(ifindex, &link);

	if (rc || !link.xdp_id || !is_ours(link.xdp_id))
		return rc;
	return ur_xdp_off(ifindex);
}
