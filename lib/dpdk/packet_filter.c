/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/packet_filter.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <pcap/pcap.h>

#include "dpdk/descriptors.h"

#define SNAP_LEN 65535

static bool is_packet_socket(int fd, unsigned ifindex)
{
	struct sockaddr_ll addr = {0};
	socklen_t len = sizeof(addr);
	int domain = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){sizeof(domain)}) != 0 ||
	    domain != AF_PACKET)
		return false;
	return getsockname(fd, (struct sockaddr *)(void *)&addr, &len) == 0 &&
	       (unsigned)addr.sll_ifindex == ifindex;
}

struct search {
	unsigned ifindex;
	struct ur_packet_sockets *out;
};

static bool find(int fd, void *arg)
{
	const struct search *s = arg;

	if (is_packet_socket(fd, s->ifindex))
		s->out->fd[s->out->cnt++] = fd;
	return s->out->cnt < UR_PACKET_SOCKETS_MAX;
}

void ur_packet_sockets_find(unsigned ifindex, struct ur_packet_sockets *out)
{
	out->cnt = 0;
	ur_descriptors_visit(find, &(struct search){ifindex, out});
}

static bool contains(const struct ur_packet_sockets *s, int fd)
{
	for (unsigned i = 0; i < s->cnt; i++)
		if (s->fd[i] == fd)
			return true;
	return false;
}

/* struct bpf_insn of libpcap is struct sock_filter of the kernel. */
static int attach(int fd, const struct bpf_program *program)
{
	const struct sock_fprog p = {.len = (unsigned short)program->bf_len,
				     .filter = (struct sock_filter *)(void *)program->bf_insns};
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)) != 0)
		return -errno;
	/* Older kernels do not have this option; there the filter suffices. */
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	return 0;
}

int ur_packet_filter(unsigned ifindex, const struct ur_packet_sockets *before, const char *filter)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, SNAP_LEN);
	struct ur_packet_sockets now;
	struct bpf_program program;
	int n = 0, rc = 0;

	if (!pcap)
		return -ENOMEM;
	if (pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		pcap_close(pcap);
		return -EINVAL;
	}
	ur_packet_sockets_find(ifindex, &now);
	for (unsigned i = 0; i < now.cnt && !rc; i++) {
		if (contains(before, now.fd[i]))
			continue;
		rc = attach(now.fd[i], &program);
		n++;
	}
	pcap_freecode(&program);
	pcap_close(pcap);
	return rc ? rc : n;
}
