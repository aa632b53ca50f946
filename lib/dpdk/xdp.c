/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/xdp.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

struct xdp_request {
	struct nlmsghdr nh;
	struct ifinfomsg ifi;
	struct nlattr xdp;
	struct nlattr fd_attr;
	int32_t fd;
};

int ur_xdp_off(unsigned ifindex)
{
	struct xdp_request req;
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (sock < 0)
		return -errno;
	memset(&req, 0, sizeof(req));
	req.nh.nlmsg_len = sizeof(req);
	req.nh.nlmsg_type = RTM_SETLINK;
	req.nh.nlmsg_flags = NLM_F_REQUEST;
	req.ifi.ifi_family = AF_UNSPEC;
	req.ifi.ifi_index = (int)ifindex;
	req.xdp.nla_type = IFLA_XDP | NLA_F_NESTED;
	req.xdp.nla_len = sizeof(req.xdp) + sizeof(req.fd_attr) + sizeof(req.fd);
	req.fd_attr.nla_type = IFLA_XDP_FD;
	req.fd_attr.nla_len = sizeof(req.fd_attr) + sizeof(req.fd);
	req.fd = -1;
	n = send(sock, &req, sizeof(req), 0);
	close(sock);
	return n == (ssize_t)sizeof(req) ? 0 : -EIO;
}

/* NULL disables the printer, whatever its type. Does not load the library. */
static void silence(const char *library, const char *setter)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	void *(*set_print)(void *);

	if (!handle)
		return;
	*(void **)&set_print = dlsym(handle, setter);
	if (set_print)
		set_print(NULL);
	dlclose(handle);
}

void ur_xdp_quiet(void)
{
	silence("libbpf.so.1", "libbpf_set_print");
	silence("libxdp.so.1", "libxdp_set_print");
}
