/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/rtnl.h"

#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#define NUD_WITH_MAC (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

/* An address of the family; false when it does not have that family's length. */
static bool take_gid(const struct nlattr *attr, unsigned family, struct ur_gid *out)
{
	const uint8_t *p = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);

	if (family == AF_INET && len == 4) {
		*out = ur_gid_from_ipv4((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
					(uint32_t)p[2] << 8 | p[3]);
		return true;
	}
	if (family == AF_INET6 && len == 16) {
		memcpy(out->b, p, 16);
		return true;
	}
	return false;
}

static bool take_u32(const struct nlattr *attr, uint32_t *out)
{
	if (mnl_attr_get_payload_len(attr) != sizeof(*out))
		return false;
	memcpy(out, mnl_attr_get_payload(attr), sizeof(*out));
	return true;
}

/* Of one station: not a group, not unknown. */
static bool take_mac(const struct nlattr *attr, uint8_t mac[6])
{
	static const uint8_t unknown[6];
	const uint8_t *p = mnl_attr_get_payload(attr);

	if (mnl_attr_get_payload_len(attr) != 6 || p[0] & 1 || memcmp(p, unknown, 6) == 0)
		return false;
	memcpy(mac, p, 6);
	return true;
}

/* The fixed part of a message, NULL when the message is shorter. */
static const void *fixed_part(const struct nlmsghdr *nlh, size_t size)
{
	return mnl_nlmsg_get_payload_len(nlh) >= size ? mnl_nlmsg_get_payload(nlh) : NULL;
}

/* IFLA_XDP: a nest in which the program has an id. */
static uint32_t take_xdp(const struct nlattr *nest)
{
	struct nlattr *attr;
	uint32_t id = 0;

	mnl_attr_for_each_nested(attr, nest)
	{
		if (mnl_attr_get_type(attr) == IFLA_XDP_PROG_ID)
			take_u32(attr, &id);
	}
	return id;
}

static bool parse_link(const struct nlmsghdr *nlh, struct ur_rtnl_link *link)
{
	const struct ifinfomsg *m = fixed_part(nlh, sizeof(*m));
	struct nlattr *attr;

	/* AF_BRIDGE reports the same interface as a port of a bridge. */
	if (!m || m->ifi_family != AF_UNSPEC || m->ifi_index <= 0)
		return false;
	*link = (struct ur_rtnl_link){.ifindex = (unsigned)m->ifi_index};
	link->up = (m->ifi_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
	mnl_attr_for_each(attr, nlh, sizeof(*m))
	{
		if (mnl_attr_get_type(attr) == IFLA_MTU)
			take_u32(attr, &link->mtu);
		else if (mnl_attr_get_type(attr) == IFLA_ADDRESS)
			link->ethernet = take_mac(attr, link->mac);
		else if (mnl_attr_get_type(attr) == IFLA_XDP)
			link->xdp_id = take_xdp(attr);
		else if (mnl_attr_get_type(attr) == IFLA_CARRIER_DOWN_COUNT)
			take_u32(attr, &link->downs);
	}
	return true;
}

static bool parse_addr(const struct nlmsghdr *nlh, struct ur_rtnl_addr *addr)
{
	const struct ifaddrmsg *m = fixed_part(nlh, sizeof(*m));
	bool local = false, any = false;
	struct nlattr *attr;
	struct ur_gid gid;
	uint32_t flags;

	if (!m)
		return false;
	flags = m->ifa_flags;
	*addr = (struct ur_rtnl_addr){.ifindex = m->ifa_index, .prefix_len = m->ifa_prefixlen};
	mnl_attr_for_each(attr, nlh, sizeof(*m))
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type == IFA_FLAGS)
			take_u32(attr, &flags);
		/* Of a point-to-point link IFA_ADDRESS is the other end's. */
		if ((type != IFA_LOCAL && (type != IFA_ADDRESS || local)) ||
		    !take_gid(attr, m->ifa_family, &gid))
			continue;
		addr->gid = gid;
		any = true;
		local = type == IFA_LOCAL;
	}
	addr->usable = !(flags & IFA_F_DADFAILED) &&
		       (!(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC);
	/* The same bit marks a temporary address of IPv6. */
	addr->secondary = flags & IFA_F_SECONDARY;
	return any && addr->prefix_len <= (m->ifa_family == AF_INET ? 32 : 128);
}

static enum ur_rtnl_route_type route_type(unsigned char type)
{
	switch (type) {
	case RTN_UNICAST:
		return UR_RTNL_UNICAST;
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return UR_RTNL_LOCAL;
	case RTN_BROADCAST:
		return UR_RTNL_BROADCAST;
	case RTN_MULTICAST:
		return UR_RTNL_MULTICAST;
	default:
		return UR_RTNL_UNREACHABLE;
	}
}

/* RTA_VIA: the family of the gateway, then its address. */
static bool take_via(const struct nlattr *attr, struct ur_gid *out)
{
	const uint8_t *p = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);
	uint16_t family;

	if (len != sizeof(family) + 16)
		return false;
	memcpy(&family, p, sizeof(family));
	if (family != AF_INET6)
		return false;
	memcpy(out->b, p + sizeof(family), 16);
	return true;
}

static bool parse_route(const struct nlmsghdr *nlh, struct ur_rtnl_route *route)
{
	const struct rtmsg *m = fixed_part(nlh, sizeof(*m));
	struct nlattr *attr;
	uint32_t oif = 0;

	if (!m || (m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return false;
	*route = (struct ur_rtnl_route){.type = route_type(m->rtm_type)};
	mnl_attr_for_each(attr, nlh, sizeof(*m))
	{
		switch (mnl_attr_get_type(attr)) {
		case RTA_OIF:
			take_u32(attr, &oif);
			break;
		case RTA_GATEWAY:
			route->has_gateway = take_gid(attr, m->rtm_family, &route->gateway);
			break;
		case RTA_VIA:
			route->has_gateway = take_via(attr, &route->gateway);
			break;
		case RTA_PREFSRC:
			route->has_src = take_gid(attr, m->rtm_family, &route->src);
			break;
		}
	}
	route->oif = oif;
	return true;
}

static bool parse_neigh(const struct nlmsghdr *nlh, struct ur_rtnl_neigh *neigh)
{
	const struct ndmsg *m = fixed_part(nlh, sizeof(*m));
	struct nlattr *attr;
	bool any = false;

	if (!m || m->ndm_ifindex <= 0)
		return false;
	*neigh = (struct ur_rtnl_neigh){.ifindex = (unsigned)m->ndm_ifindex};
	mnl_attr_for_each(attr, nlh, sizeof(*m))
	{
		if (mnl_attr_get_type(attr) == NDA_DST)
			any = take_gid(attr, m->ndm_family, &neigh->gid);
		else if (mnl_attr_get_type(attr) == NDA_LLADDR)
			neigh->has_mac = take_mac(attr, neigh->mac);
	}
	neigh->has_mac = neigh->has_mac && m->ndm_state & NUD_WITH_MAC;
	neigh->failed = m->ndm_state & NUD_FAILED;
	neigh->stale = m->ndm_state & NUD_STALE;
	return any;
}

enum ur_rtnl_kind ur_rtnl_parse(const struct nlmsghdr *nlh, struct ur_rtnl_msg *out)
{
	enum ur_rtnl_kind kind = UR_RTNL_OTHER;

	*out = (struct ur_rtnl_msg){.kind = UR_RTNL_OTHER};
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		kind = parse_link(nlh, &out->link) ? UR_RTNL_LINK : kind;
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		kind = parse_addr(nlh, &out->addr) ? UR_RTNL_ADDR : kind;
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		kind = parse_route(nlh, &out->route) ? UR_RTNL_ROUTE : kind;
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		kind = parse_neigh(nlh, &out->neigh) ? UR_RTNL_NEIGH : kind;
		break;
	}
	out->kind = kind;
	out->gone = nlh->nlmsg_type == RTM_DELLINK || nlh->nlmsg_type == RTM_DELADDR ||
		    nlh->nlmsg_type == RTM_DELROUTE || nlh->nlmsg_type == RTM_DELNEIGH;
	return kind;
}

/*
 * mnl_nlmsg_ok() takes a length above INT_MAX for a negative one, and accepts it. mnl_attr_for_each() goes to
 * the message's end with its padding, which must be there too; the kernel always sends it.
 */
static bool is_whole(const struct nlmsghdr *nlh, int left)
{
	return mnl_nlmsg_ok(nlh, left) && nlh->nlmsg_len <= (uint32_t)left &&
	       MNL_ALIGN(nlh->nlmsg_len) <= (uint32_t)left;
}

unsigned ur_rtnl_walk(const void *buf, size_t len, ur_rtnl_fn fn, void *arg)
{
	const struct nlmsghdr *nlh = buf;
	int left = len > INT32_MAX ? INT32_MAX : (int)len;
	struct ur_rtnl_msg msg;
	unsigned n = 0;

	for (; is_whole(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (ur_rtnl_parse(nlh, &msg) == UR_RTNL_OTHER)
			continue;
		fn(arg, &msg);
		n++;
	}
	return n;
}
