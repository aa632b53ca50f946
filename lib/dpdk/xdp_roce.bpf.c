/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XDP program of an interface that is shared with the kernel: RoCEv2 packets go to the AF_XDP socket
 * of the queue on which they arrived, everything else to the kernel. If the queue has no socket, for
 * example because the endpoint is gone, the kernel gets all packets. Compiled for BPF and embedded in
 * the library (xdp_prog.c).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ROCE_PORT  4791
#define FRAGMENT   0x3fff /* more fragments, or not the first */
#define QUEUES_MAX 64

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, QUEUES_MAX);
} xsks_map SEC(".maps"); /* the name that DPDK's driver looks for */

/* What follows the IP header at p, as UDP. */
static __always_inline int is_roce(const void *p, const void *end)
{
	const struct udphdr *udp = p;

	return (const void *)(udp + 1) <= end && udp->dest == bpf_htons(ROCE_PORT);
}

static __always_inline int is_roce4(const void *p, const void *end)
{
	const struct iphdr *ip = p;

	if ((const void *)(ip + 1) > end || ip->protocol != IPPROTO_UDP || ip->ihl != 5 ||
	    ip->frag_off & bpf_htons(FRAGMENT))
		return 0;
	return is_roce(ip + 1, end);
}

static __always_inline int is_roce6(const void *p, const void *end)
{
	const struct ipv6hdr *ip = p;

	if ((const void *)(ip + 1) > end || ip->nexthdr != IPPROTO_UDP)
		return 0;
	return is_roce(ip + 1, end);
}

SEC("xdp")
int uroce_xdp(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	int roce;

	if ((const void *)(eth + 1) > end)
		return XDP_PASS;
	roce = eth->h_proto == bpf_htons(ETH_P_IP)     ? is_roce4(eth + 1, end)
	       : eth->h_proto == bpf_htons(ETH_P_IPV6) ? is_roce6(eth + 1, end)
						       : 0;
	return roce ? (int)bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS) : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
