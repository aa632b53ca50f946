/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* POLLRDHUP */
#include "link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#define HOP_MAC_HIGH 0x0180c200u /* 01-80-C2-00-00-0E */
#define HOP_MAC_LOW  0x000eu
#define LID_MAC	     0x024c4944u /* 02-4C-49-44-hh-ll */

#define UNIX_BPS                                                                                   \
	100000000000ull /* a socket has no speed; tools warn of links that are slower than their other end */

/* The speed that the interface's driver claims, or 0. */
static uint64_t interface_bps(const char *ifname)
{
	char path[64];
	long long mbps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", ifname);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%lld", &mbps) != 1 || mbps < 0)
		mbps = 0;
	fclose(f);
	return (uint64_t)mbps * 1000000;
}

/* To connect is retried: the other end may not have started. */
static bool connect_unix(struct link *l, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return false;
	}
	l->fd = fd;
	return true;
}

/*
 * Lets in what goes to the group of hop packets or to an address that stands for a LID. The interface may carry
 * other traffic, and its own kernel sees the same frames.
 */
static int filter_management(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LID_MAC, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HOP_MAC_HIGH, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HOP_MAC_LOW, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Frames of group and LID addresses are not for the interface's own address. */
static int listen_to_all(int fd, int ifindex)
{
	const struct packet_mreq all = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
}

static int open_interface(struct link *l, const char *ifname)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq ifr = {0};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0) {
		fprintf(stderr, "uroce-hca: cannot open a packet socket: %s%s\n", strerror(errno),
			errno == EPERM ? "; this needs root or CAP_NET_RAW" : "");
		return -1;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	at.sll_ifindex = (int)if_nametoindex(ifname);
	if (at.sll_ifindex == 0 || ioctl(fd, SIOCGIFHWADDR, &ifr) < 0) {
		fprintf(stderr, "uroce-hca: --link %s: there is no interface '%s'\n", l->name,
			ifname);
		close(fd);
		return -1;
	}
	memcpy(l->mac, ifr.ifr_hwaddr.sa_data, sizeof(l->mac));
	if (filter_management(fd) < 0 || listen_to_all(fd, at.sll_ifindex) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0) {
		fprintf(stderr, "uroce-hca: --link %s: %s\n", l->name, strerror(errno));
		close(fd);
		return -1;
	}
	l->fd = fd;
	/* Not of one that cannot be opened yet: link_reopen() tries again. */
	l->ifindex = (unsigned)at.sll_ifindex;
	l->bps = interface_bps(ifname);
	return 0;
}

int link_open(struct link *l, const char *name, const uint8_t mac[6])
{
	memset(l, 0, sizeof(*l));
	l->fd = -1;
	snprintf(l->name, sizeof(l->name), "%s", name);
	memcpy(l->mac, mac, sizeof(l->mac));
	if (strncmp(name, "unix:", 5) == 0 && name[5] != '\0' &&
	    strlen(name + 5) < sizeof(((struct sockaddr_un *)0)->sun_path)) {
		l->is_unix = true;
		l->bps = UNIX_BPS;
		connect_unix(l, name + 5);
		return 0;
	}
	if (strncmp(name, "eth:", 4) == 0 && name[4] != '\0' && strlen(name + 4) < IFNAMSIZ)
		return open_interface(l, name + 4);
	fprintf(stderr, "uroce-hca: --link: '%s' is neither eth:INTERFACE nor unix:PATH\n", name);
	return -1;
}

void link_close(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

bool link_reopen(struct link *l)
{
	unsigned ifindex;

	if (l->is_unix) {
		if (l->fd < 0)
			connect_unix(l, l->name + 5);
		return l->fd >= 0;
	}
	ifindex = if_nametoindex(l->name + 4);
	if (ifindex != 0 && ifindex != l->ifindex) {
		link_close(l);
		open_interface(l, l->name + 4);
	}
	return l->fd >= 0;
}

bool link_is_up(const struct link *l)
{
	struct ifreq ifr = {0};

	if (l->fd < 0 || l->is_unix)
		return l->fd >= 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", l->name + 4);
	/* Another interface may have got the name since the last look. */
	if (ioctl(l->fd, SIOCGIFINDEX, &ifr) < 0 || (unsigned)ifr.ifr_ifindex != l->ifindex)
		return false;
	return ioctl(l->fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_RUNNING) != 0;
}

void link_send(struct link *l, const uint8_t *frame, size_t len)
{
	if (l->fd >= 0)
		(void)!send(l->fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* An empty message reads like the end. */
static bool has_ended(const struct link *l)
{
	struct pollfd end = {.fd = l->fd, .events = POLLRDHUP};

	return poll(&end, 1, 0) == 1 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

size_t link_receive(struct link *l, uint8_t *frame, size_t room)
{
	ssize_t n;

	if (l->fd < 0)
		return 0;
	n = recv(l->fd, frame, room, MSG_DONTWAIT);
	if (n > 0)
		return (size_t)n;
	if (l->is_unix && (n == 0 ? has_ended(l) : errno != EAGAIN && errno != EINTR)) {
		close(l->fd);
		l->fd = -1;
	}
	return 0;
}
