/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drops untagged, whole RoCEv2 packets to the addresses in the map, and counts them (ingress_drop.h).
 * Compiled for BPF and embedded in the library (ingress_drop.c). Headers are copied, because those of a packet that another
 * process of this host has sent lie in pages that BPF cannot address directly.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ROCE_PORT     4791
#define FRAGMENT      0x3fff /* more fragments, or not the first */
#define ADDRESSES_MAX 64

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct in6_addr); /* IPv4 as ::ffff:a.b.c.d */
	__type(value, __u64);	      /* packets dropped */
	__uint(max_entries, ADDRESSES_MAX);
} addresses SEC(".maps");

struct udp4 {
	struct iphdr ip;
	struct udphdr udp;
};

struct udp6 {
	struct ipv6hdr ip;
	struct udphdr udp;
};

static __always_inline int is_roce4(struct __sk_buff *skb, struct in6_addr *dst)
{
	struct udp4 h;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &h, sizeof(h)) != 0 || h.ip.version != 4 ||
	    h.ip.ihl != 5 || h.ip.protocol != IPPROTO_UDP || h.ip.frag_off & bpf_htons(FRAGMENT))
		return 0;
	dst->s6_addr32[0] = dst->s6_addr32[1] = 0;
	dst->s6_addr32[2] = bpf_htonl(0xffff);
	dst->s6_addr32[3] = h.ip.daddr;
	return h.udp.dest == bpf_htons(ROCE_PORT);
}

static __always_inline int is_roce6(struct __sk_buff *skb, struct in6_addr *dst)
{
	struct udp6 h;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &h, sizeof(h)) != 0 || h.ip.version != 6 ||
	    h.ip.nexthdr != IPPROTO_UDP)
		return 0;
	*dst = h.ip.daddr;
	return h.udp.dest == bpf_htons(ROCE_PORT);
}

SEC("tc")
int uroce_drop(struct __sk_buff *skb)
{
	struct in6_addr dst;
	__u64 *dropped;
	int roce;

	if (skb->vlan_present)
		return TC_ACT_UNSPEC;
	roce = skb->protocol == bpf_htons(ETH_P_IP)	? is_roce4(skb, &dst)
	       : skb->protocol == bpf_htons(ETH_P_IPV6) ? is_roce6(skb, &dst)
							: 0;
	if (!roce)
		return TC_ACT_UNSPEC;
	dropped = bpf_map_lookup_elem(&addresses, &dst);
	if (!dropped)
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(dropped, 1);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
