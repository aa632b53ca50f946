/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bsd/string.h>

#include "dpdk/shared.h"
#include "wire/bytes.h"
#include "questions.h"
#include "wire/packet.h"

#define POLL_NS UINT64_C(10000000)
#define GAP_NS                                                                                     \
	75000 /* between two looks, each of which is many system calls; frames wait meanwhile */
#define ARP_BYTES   28
#define ARP_REQUEST 1
#define ARP_REPLY   2

struct kernel {
	struct ur_shared *shared;
	uint8_t mac[6];
	struct ur_gid address;
	struct questions questions;
	uint64_t poll_ns, next_ns; /* of the poll; of the next look for an answer */
};

static bool read_mac(const char *ifname, uint8_t mac[6])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {0};
	bool ok;

	strlcpy(req.ifr_name, ifname, sizeof(req.ifr_name));
	ok = fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &req) == 0;
	if (fd >= 0)
		close(fd);
	memcpy(mac, req.ifr_hwaddr.sa_data, 6);
	return ok;
}

static bool read_address(struct kernel *k)
{
	struct ur_shared_addrs a;

	ur_shared_addrs(k->shared, &a);
	for (unsigned i = 0; i < a.cnt; i++)
		if (ur_gid_is_ipv4(&a.gid[i])) {
			k->address = a.gid[i];
			return true;
		}
	return false;
}

struct kernel *kernel_open(const char *ifname, char *err, size_t cap)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	k->shared = ur_shared_open(ifname, err, cap);
	if (k->shared && read_mac(ifname, k->mac) && read_address(k))
		return k;
	if (k->shared)
		snprintf(err, cap, "%s has no IPv4 address", ifname);
	kernel_close(k);
	return NULL;
}

bool kernel_hold(struct kernel *k, char *err, size_t cap)
{
	return ur_shared_hold(k->shared, true, err, cap) == 0; /* by af_packet: switch/device.c */
}

void kernel_close(struct kernel *k)
{
	if (k->shared)
		ur_shared_close(k->shared);
	free(k);
}

uint32_t kernel_address(const struct kernel *k)
{
	return ur_load32(k->address.b + 12);
}

void kernel_mac(const struct kernel *k, uint8_t mac[6])
{
	memcpy(mac, k->mac, 6);
}

void kernel_ask(struct kernel *k, const uint8_t *frame, uint32_t len, uint8_t client,
		uint64_t now_ns)
{
	const uint8_t *arp = frame + UR_ETH_BYTES;
	uint32_t target;

	if (len < UR_ETH_BYTES + ARP_BYTES || ur_load16(frame + 12) != UR_ETHERTYPE_ARP ||
	    ur_load16(arp + 6) != ARP_REQUEST)
		return;
	target = ur_load32(arp + 24);
	if (target && target != kernel_address(k))
		questions_add(&k->questions, target, client, now_ns);
}

/* As from the neighbour itself. */
static void write_reply(const struct kernel *k, uint8_t *frame, uint32_t target,
			const uint8_t mac[6])
{
	static const uint8_t ethernet_ip4[6] = {0, 1, 8, 0, 6, 4};
	uint8_t *arp = frame + UR_ETH_BYTES;

	memset(frame, 0, KERNEL_FRAME);
	memcpy(frame, k->mac, 6);
	memcpy(frame + 6, mac, 6);
	ur_store16(frame + 12, UR_ETHERTYPE_ARP);
	memcpy(arp, ethernet_ip4, 6);
	ur_store16(arp + 6, ARP_REPLY);
	memcpy(arp + 8, mac, 6);
	ur_store32(arp + 14, target);
	memcpy(arp + 18, k->mac, 6);
	memcpy(arp + 24, k->address.b + 12, 4);
}

bool kernel_is_asked(const struct kernel *k, uint64_t now_ns)
{
	return questions_are_due(&k->questions, now_ns);
}

bool kernel_wants_answer(const struct kernel *k, uint64_t now_ns)
{
	return now_ns >= k->next_ns && kernel_is_asked(k, now_ns);
}

/* One look, and the next not before GAP_NS: the questions of one client do not delay the frames of others (UROCED-KERNEL-02). */
bool kernel_answer(struct kernel *k, uint8_t *frame, uint64_t now_ns)
{
	struct question *q =
		kernel_wants_answer(k, now_ns) ? questions_due(&k->questions, now_ns) : NULL;
	struct ur_gid dst;
	uint8_t mac[6];
	int rc;

	if (!q)
		return false;
	k->next_ns = now_ns + GAP_NS;
	dst = ur_gid_from_ipv4(q->target);
	rc = ur_shared_resolve(k->shared, &k->address, &dst, mac, now_ns);
	if (!rc)
		write_reply(k, frame, q->target, mac);
	if (rc != -EAGAIN || now_ns >= q->until_ns)
		questions_remove(&k->questions, q);
	return !rc;
}

void kernel_poll(struct kernel *k, uint64_t now_ns)
{
	if (now_ns < k->poll_ns)
		return;
	k->poll_ns = now_ns + POLL_NS;
	ur_shared_poll(k->shared, now_ns);
}
