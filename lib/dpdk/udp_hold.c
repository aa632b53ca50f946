/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/udp_hold.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/filter.h>

/* SHARED-HOLD-01: what arrives is dropped before it takes a place in the socket's queue. */
static int drop_all(int fd)
{
	struct sock_filter take_nothing = {.code = BPF_RET | BPF_K, .k = 0};
	const struct sock_fprog program = {.len = 1, .filter = &take_nothing};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* A socket of the family on the port and the interface, or a negative errno. */
static int hold(int family, const char *ifname)
{
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_UDP_PORT)};
	const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
					 .sin6_port = htons(UR_ROCE_UDP_PORT)};
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, rc;

	if (fd < 0)
		return -errno;
	rc = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, (socklen_t)strlen(ifname) + 1);
	if (!rc)
		rc = drop_all(fd);
	if (!rc && family == AF_INET6)
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (!rc)
		rc = family == AF_INET
			     ? bind(fd, (const struct sockaddr *)(const void *)&in, sizeof(in))
			     : bind(fd, (const struct sockaddr *)(const void *)&in6, sizeof(in6));
	if (!rc)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int ur_udp_hold_open(struct ur_udp_hold *h, const char *ifname)
{
	int fd4 = hold(AF_INET, ifname), fd6;

	if (fd4 < 0)
		return fd4;
	fd6 = hold(AF_INET6, ifname);
	if (fd6 < 0 && fd6 != -EAFNOSUPPORT) {
		close(fd4);
		return fd6;
	}
	*h = (struct ur_udp_hold){.fd4 = fd4, .fd6 = fd6 < 0 ? -1 : fd6};
	return 0;
}

void ur_udp_hold_close(struct ur_udp_hold *h)
{
	if (h->fd4 >= 0)
		close(h->fd4);
	if (h->fd6 >= 0)
		close(h->fd6);
	*h = (struct ur_udp_hold){.fd4 = -1, .fd6 = -1};
}

int ur_udp_hold_poke(const struct ur_udp_hold *h, unsigned ifindex, const struct ur_gid *dst)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_UDP_PORT)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(UR_ROCE_UDP_PORT),
				   .sin6_scope_id = ifindex};
	ssize_t n;

	memcpy(&in.sin_addr, dst->b + 12, 4);
	memcpy(&in6.sin6_addr, dst->b, 16);
	if (ur_gid_is_ipv4(dst))
		n = sendto(h->fd4, NULL, 0, MSG_DONTWAIT,
			   (const struct sockaddr *)(const void *)&in, sizeof(in));
	else if (h->fd6 >= 0)
		n = sendto(h->fd6, NULL, 0, MSG_DONTWAIT,
			   (const struct sockaddr *)(const void *)&in6, sizeof(in6));
	else
		return -EAFNOSUPPORT;
	return n < 0 ? -errno : 0;
}
