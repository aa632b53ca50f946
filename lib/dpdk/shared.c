/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/shared.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpdk/counters.h"
#include "dpdk/ingress_drop.h"
#include "dpdk/rtnl.h"
#include "dpdk/udp_hold.h"

#define ASK_AGAIN_NS	   UINT64_C(1000000000) /* between two requests for a lost neighbour */
#define RESOLVE_TIMEOUT_NS UINT64_C(5000000000) /* the kernel gives up after three seconds */
#define BURST		   32			/* destinations that one poll looks up again */
#define MONITOR_BURST	   64

/* A destination and its next hop. */
struct entry {
	struct ur_gid dst, src, hop;
	uint8_t mac[6];
	bool has_mac;
	bool mapped;	   /* group, broadcast or own address, which needs no neighbour */
	bool has_hop;	   /* the next hop is the kernel's; otherwise mac was learned from dst */
	bool lost;	   /* the kernel has no usable neighbour (any more) */
	bool asking;	   /* the kernel was asked to resolve it */
	bool dirty;	   /* the route may have changed */
	uint64_t asked_ns; /* time of that request */
	uint64_t used;	   /* s->uses at the last use */
};

struct ur_shared {
	char ifname[IF_NAMESIZE];
	unsigned ifindex;
	struct ur_udp_hold hold;
	int monitor;
	_Atomic uint32_t generation;

	pthread_mutex_t lock; /* all below; held while the kernel is asked */
	struct ur_rtnl_link link;
	struct ur_shared_addrs addrs;
	bool addrs_dirty, link_changed;
	struct ur_ingress_drop drop; /* of the addresses; may be closed */
	bool attention;		     /* an entry may be dirty or lost */
	struct entry *entry;
	unsigned entry_cnt, entry_cap;
	uint64_t uses;
#define X(name, unit, help) uint64_t name##_cnt;
	UR_SHARED_COUNTERS(X)
#undef X
};

/* ---- addresses ---- */

static bool is_zero(const struct ur_gid *g)
{
	static const struct ur_gid zero;

	return ur_gid_eq(g, &zero);
}

static bool contains(const struct ur_gid *list, unsigned n, const struct ur_gid *g)
{
	for (unsigned i = 0; i < n; i++)
		if (ur_gid_eq(&list[i], g))
			return true;
	return false;
}

bool ur_shared_place(struct ur_shared_addrs *table, const struct ur_gid *have, unsigned n)
{
	bool changed = false;

	for (unsigned i = 0; i < table->cnt; i++)
		if (!is_zero(&table->gid[i]) && !contains(have, n, &table->gid[i])) {
			table->gid[i] = (struct ur_gid){0};
			changed = true;
		}
	for (unsigned i = 0; i < n; i++) {
		unsigned at = 0;

		if (contains(table->gid, table->cnt, &have[i]))
			continue;
		while (at < table->cnt && !is_zero(&table->gid[at]))
			at++;
		if (at == UR_SHARED_ADDRS_MAX)
			break;
		table->gid[at] = have[i];
		table->cnt = at < table->cnt ? table->cnt : at + 1;
		changed = true;
	}
	return changed;
}

/* ---- the kernel's copies of packets ---- */

/*
 * Makes the program drop what is sent to the current addresses, and no longer what is sent to addresses that are only in
 * `before`. One that cannot be added costs time: the held socket drops its copies.
 */
static void follow_addrs(struct ur_shared *s, const struct ur_shared_addrs *before)
{
	const struct ur_shared_addrs *now = &s->addrs;

	if (!s->drop.object)
		return;
	for (unsigned i = 0; i < before->cnt; i++)
		if (!is_zero(&before->gid[i]) && !contains(now->gid, now->cnt, &before->gid[i])) {
			s->copies_dropped_cnt += ur_ingress_drop_count(&s->drop, &before->gid[i]);
			ur_ingress_drop_remove(&s->drop, &before->gid[i]);
		}
	for (unsigned i = 0; i < now->cnt; i++)
		if (!is_zero(&now->gid[i]) && !contains(before->gid, before->cnt, &now->gid[i]))
			ur_ingress_drop_add(&s->drop, &now->gid[i]);
}

/* SHARED-INGRESS-01 */
static void start_drop(struct ur_shared *s)
{
	static const struct ur_shared_addrs none;

	pthread_mutex_lock(&s->lock);
	if (ur_ingress_drop_open(&s->drop) == 0) {
		follow_addrs(s, &none);
		if (ur_ingress_drop_attach(&s->drop, s->ifindex))
			ur_ingress_drop_close(&s->drop);
	}
	pthread_mutex_unlock(&s->lock);
}

/* With those of addresses that are gone. */
static uint64_t copies_dropped(const struct ur_shared *s)
{
	uint64_t n = s->copies_dropped_cnt;

	for (unsigned i = 0; s->drop.object && i < s->addrs.cnt; i++)
		n += ur_ingress_drop_count(&s->drop, &s->addrs.gid[i]);
	return n;
}

/* ---- addresses, read from the kernel ---- */

/* SHARED-ADDR-01 */
static int read_addrs(struct ur_shared *s, bool *changed)
{
	struct ur_rtnl_addr addr[4 * UR_SHARED_ADDRS_MAX];
	struct ur_gid have[4 * UR_SHARED_ADDRS_MAX];
	struct ur_shared_addrs before = s->addrs;
	unsigned max = sizeof(addr) / sizeof(addr[0]), n = 0;
	int cnt = ur_rtnl_get_addrs(s->ifindex, addr, max);

	if (cnt < 0)
		return cnt;
	for (unsigned i = 0; i < (unsigned)cnt && i < max; i++)
		if (addr[i].usable && !is_zero(&addr[i].gid))
			have[n++] = addr[i].gid;
	if (ur_shared_place(&s->addrs, have, n)) {
		follow_addrs(s, &before);
		*changed = true;
	}
	return 0;
}

static bool has_addr(const struct ur_shared *s)
{
	for (unsigned i = 0; i < s->addrs.cnt; i++)
		if (!is_zero(&s->addrs.gid[i]))
			return true;
	return false;
}

void ur_shared_addrs(struct ur_shared *s, struct ur_shared_addrs *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->addrs;
	pthread_mutex_unlock(&s->lock);
}

bool ur_shared_is_up(struct ur_shared *s)
{
	bool up;

	pthread_mutex_lock(&s->lock);
	up = s->link.up && has_addr(s);
	pthread_mutex_unlock(&s->lock);
	return up;
}

/* ---- multicast ---- */

static int join4(int fd, unsigned ifindex, const struct ur_gid *group)
{
	struct ip_mreqn m = {.imr_ifindex = (int)ifindex};

	memcpy(&m.imr_multiaddr, group->b + 12, 4);
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
}

static int join6(int fd, unsigned ifindex, const struct ur_gid *group)
{
	struct ipv6_mreq m = {.ipv6mr_interface = ifindex};

	memcpy(&m.ipv6mr_multiaddr, group->b, 16);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m));
}

/* MCAST-JOIN-02. A socket for each group, because the kernel limits the groups of one. */
int ur_shared_join(const struct ur_shared *s, const struct ur_gid *group)
{
	bool v4 = ur_gid_is_ipv4(group);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = v4 ? join4(fd, s->ifindex, group) : join6(fd, s->ifindex, group);
	if (!rc)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* ---- destinations ---- */

static struct entry *find(struct ur_shared *s, const struct ur_gid *src, const struct ur_gid *dst)
{
	for (unsigned i = 0; i < s->entry_cnt; i++) {
		struct entry *e = &s->entry[i];

		if (ur_gid_eq(&e->dst, dst) && (!src || ur_gid_eq(&e->src, src)))
			return e;
	}
	return NULL;
}

static struct entry *oldest(struct ur_shared *s)
{
	struct entry *best = NULL;

	for (unsigned i = 0; i < s->entry_cnt; i++)
		if (!best || s->entry[i].used < best->used)
			best = &s->entry[i];
	return best;
}

static bool grow(struct ur_shared *s)
{
	unsigned cap = s->entry_cap ? 2 * s->entry_cap : 16;
	struct entry *more;

	if (cap > UR_SHARED_ENTRIES_MAX)
		return false;
	more = realloc(s->entry, cap * sizeof(*more));
	if (!more)
		return false;
	s->entry = more;
	s->entry_cap = cap;
	return true;
}

/* An empty entry for the pair; NULL: no memory for even one. */
static struct entry *new_entry(struct ur_shared *s, const struct ur_gid *src,
			       const struct ur_gid *dst)
{
	struct entry *e;

	if (s->entry_cnt < s->entry_cap || grow(s)) {
		e = &s->entry[s->entry_cnt++];
	} else {
		e = oldest(s);
		s->evicted_cnt += e != NULL;
	}
	if (e)
		*e = (struct entry){.src = *src, .dst = *dst};
	return e;
}

static void set_mac(struct ur_shared *s, struct entry *e, const uint8_t mac[6])
{
	bool moved = e->has_mac && memcmp(e->mac, mac, 6) != 0;

	memcpy(e->mac, mac, 6);
	e->has_mac = true;
	e->lost = e->asking = false;
	if (!moved)
		return;
	s->moved_cnt++;
	atomic_fetch_add_explicit(&s->generation, 1, memory_order_release);
}

/* Asks the kernel for the route. SHARED-ROUTE-01 */
static int find_hop(struct ur_shared *s, struct entry *e)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct ur_rtnl_route route;
	uint8_t group[6];
	int rc = ur_rtnl_get_route(s->ifindex, &e->src, &e->dst, &route);

	if (rc)
		return rc;
	if (route.type == UR_RTNL_UNICAST && route.oif != s->ifindex)
		return -ENETUNREACH;
	e->mapped = route.type != UR_RTNL_UNICAST;
	e->hop = route.has_gateway ? route.gateway : e->dst;
	e->has_hop = true;
	switch (route.type) {
	case UR_RTNL_LOCAL:
		set_mac(s, e, s->link.mac);
		break;
	case UR_RTNL_MULTICAST:
		ur_gid_group_mac(&e->dst, group);
		set_mac(s, e, group);
		break;
	case UR_RTNL_BROADCAST:
		set_mac(s, e, broadcast);
		break;
	case UR_RTNL_UNICAST:
	case UR_RTNL_UNREACHABLE:
		break;
	}
	return 0;
}

/* Takes the kernel's entry of the next hop. Returns whether it can be used. */
static bool take_neigh(struct ur_shared *s, struct entry *e, struct ur_rtnl_neigh *neigh)
{
	int rc = ur_rtnl_get_neigh(s->ifindex, &e->hop, neigh);

	if (rc)
		*neigh = (struct ur_rtnl_neigh){0};
	if (neigh->has_mac)
		set_mac(s, e, neigh->mac);
	else
		e->lost = true;
	return neigh->has_mac;
}

/* SHARED-NEIGH-01 */
static void ask_kernel(struct ur_shared *s, struct entry *e, uint64_t now_ns)
{
	e->asked_ns = now_ns;
	s->asked_cnt++;
	if (ur_rtnl_use_neigh(s->ifindex, &e->hop) == 0)
		return;
	/* Without CAP_NET_ADMIN. A datagram to the destination makes the kernel resolve the next hop. */
	s->asked_by_udp_cnt++;
	ur_udp_hold_poke(&s->hold, s->ifindex, &e->dst);
}

static int resolve(struct ur_shared *s, struct entry *e, uint64_t now_ns)
{
	struct ur_rtnl_neigh neigh;
	int rc = 0;

	if (e->has_hop && e->has_mac && !e->lost)
		return 0;
	if (!e->has_hop || !e->asking)
		rc = find_hop(s, e);
	if (rc || e->mapped)
		return rc;
	if (take_neigh(s, e, &neigh)) {
		/* The kernel does not see the endpoint's packets, so they confirm no neighbour. */
		if (neigh.stale)
			ask_kernel(s, e, now_ns);
		return 0;
	}
	if (!e->asking) {
		ask_kernel(s, e, now_ns);
		e->asking = true;
		return -EAGAIN;
	}
	if (!neigh.failed && now_ns - e->asked_ns < RESOLVE_TIMEOUT_NS)
		return -EAGAIN;
	e->asking = false;
	return -EHOSTUNREACH;
}

int ur_shared_resolve(struct ur_shared *s, const struct ur_gid *src, const struct ur_gid *dst,
		      uint8_t mac[6], uint64_t now_ns)
{
	struct entry *e;
	int rc = -ENOMEM;

	pthread_mutex_lock(&s->lock);
	e = find(s, src, dst);
	if (!e)
		e = new_entry(s, src, dst);
	if (e) {
		e->used = ++s->uses;
		rc = resolve(s, e, now_ns);
		if (!rc)
			memcpy(mac, e->mac, 6);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void ur_shared_learn(struct ur_shared *s, const struct ur_gid *src, const struct ur_gid *dst,
		     const uint8_t mac[6])
{
	struct entry *e;

	pthread_mutex_lock(&s->lock);
	e = find(s, src, dst);
	if (!e) {
		e = new_entry(s, src, dst);
		if (e)
			set_mac(s, e, mac);
		/* Valid until the kernel has an entry. */
		if (e)
			e->dirty = s->attention = true;
	}
	if (e)
		e->used = ++s->uses;
	pthread_mutex_unlock(&s->lock);
}

int ur_shared_source(struct ur_shared *s, const struct ur_gid *dst, struct ur_gid *src)
{
	struct ur_rtnl_route route;
	int rc = ur_rtnl_get_route(s->ifindex, NULL, dst, &route);

	if (rc)
		return rc;
	if (!route.has_src)
		return -ENETUNREACH;
	*src = route.src;
	return 0;
}

bool ur_shared_lookup(struct ur_shared *s, const struct ur_gid *dst, uint8_t mac[6])
{
	const struct entry *e;
	bool known;

	pthread_mutex_lock(&s->lock);
	e = find(s, NULL, dst);
	known = e && e->has_mac && !e->mapped;
	if (known)
		memcpy(mac, e->mac, 6);
	pthread_mutex_unlock(&s->lock);
	return known;
}

uint32_t ur_shared_generation(const struct ur_shared *s)
{
	return atomic_load_explicit(&s->generation, memory_order_acquire);
}

/* ---- changes ---- */

static void on_neigh(struct ur_shared *s, const struct ur_rtnl_msg *msg)
{
	for (unsigned i = 0; i < s->entry_cnt; i++) {
		struct entry *e = &s->entry[i];

		if (!e->has_hop || e->mapped || !ur_gid_eq(&e->hop, &msg->neigh.gid))
			continue;
		if (!msg->gone && msg->neigh.has_mac)
			set_mac(s, e, msg->neigh.mac);
		else
			e->lost = s->attention = true; /* the last address stays in use */
	}
}

static void all_dirty(struct ur_shared *s)
{
	for (unsigned i = 0; i < s->entry_cnt; i++)
		s->entry[i].dirty = true;
	s->attention = s->entry_cnt;
}

static void on_link(struct ur_shared *s, const struct ur_rtnl_msg *msg)
{
	bool up = msg->link.up && !msg->gone;

	s->link_changed |= up != s->link.up;
	s->link.up = up;
}

static void on_change(void *arg, const struct ur_rtnl_msg *msg)
{
	struct ur_shared *s = arg;

	switch (msg->kind) {
	case UR_RTNL_LINK:
		if (msg->link.ifindex == s->ifindex)
			on_link(s, msg);
		break;
	case UR_RTNL_ADDR:
		if (msg->addr.ifindex == s->ifindex)
			s->addrs_dirty = true;
		break;
	case UR_RTNL_ROUTE:
		all_dirty(s);
		break;
	case UR_RTNL_NEIGH:
		if (msg->neigh.ifindex == s->ifindex)
			on_neigh(s, msg);
		break;
	case UR_RTNL_OTHER:
		break;
	}
}

/* Messages about changes were lost: reads everything again. SHARED-MONITOR-01 */
static void resync(struct ur_shared *s)
{
	struct ur_rtnl_link link;

	s->resynced_cnt++;
	s->addrs_dirty = true;
	all_dirty(s);
	if (ur_rtnl_get_link(s->ifindex, &link))
		link = (struct ur_rtnl_link){0};
	s->link_changed |= link.up != s->link.up;
	s->link.up = link.up;
}

/*
 * Looks up a destination whose route may have changed. If there is no route any more, its last next hop
 * stays.
 */
static void refresh(struct ur_shared *s, struct entry *e)
{
	struct ur_rtnl_neigh neigh;

	s->refreshed_cnt++;
	e->dirty = false;
	if (find_hop(s, e) == 0 && !e->mapped)
		take_neigh(s, e, &neigh);
}

/* Whether to ask the kernel although no thread waits, because paths may use the entry. */
static bool is_wanted_back(const struct entry *e)
{
	/* An entry that never had an address is handled by the thread that resolves it. */
	return e->lost && e->has_mac && e->has_hop && !e->mapped;
}

static void attend(struct ur_shared *s, uint64_t now_ns)
{
	unsigned asked = 0;

	s->attention = false;
	for (unsigned i = 0; i < s->entry_cnt; i++) {
		struct entry *e = &s->entry[i];

		if (e->dirty && asked < BURST) {
			refresh(s, e);
			asked++;
		}
		if (is_wanted_back(e) && asked < BURST &&
		    (!e->asked_ns || now_ns - e->asked_ns >= ASK_AGAIN_NS)) {
			ask_kernel(s, e, now_ns);
			asked++;
		}
		s->attention |= e->dirty || is_wanted_back(e);
	}
}

bool ur_shared_poll(struct ur_shared *s, uint64_t now_ns)
{
	bool changed = false;

	pthread_mutex_lock(&s->lock);
	if (ur_rtnl_monitor_read(s->monitor, MONITOR_BURST, on_change, s) < 0)
		resync(s);
	if (s->addrs_dirty && read_addrs(s, &changed) == 0)
		s->addrs_dirty = false;
	if (s->attention)
		attend(s, now_ns);
	changed |= s->link_changed;
	s->link_changed = false;
	pthread_mutex_unlock(&s->lock);
	return changed;
}

void ur_shared_emit(struct ur_shared *s, struct ur_emit *e)
{
	struct ur_shared_counters c;

	pthread_mutex_lock(&s->lock);
	ur_emit_u64(e, "destinations", s->entry_cnt);
	pthread_mutex_unlock(&s->lock);
	ur_shared_read_counters(s, &c);
#define X(name, unit, help) ur_emit_u64(e, #name, c.name);
	UR_SHARED_COUNTERS(X)
#undef X
}

void ur_shared_read_counters(struct ur_shared *s, struct ur_shared_counters *out)
{
	pthread_mutex_lock(&s->lock);
#define X(name, unit, help) out->name = s->name##_cnt;
	UR_SHARED_COUNTERS(X)
#undef X
	out->copies_dropped = copies_dropped(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- open, close ---- */

static int start(struct ur_shared *s, char *err, size_t cap)
{
	const char *dev = s->ifname;
	bool changed = false;
	int rc = ur_rtnl_get_link(s->ifindex, &s->link);

	if (rc) {
		snprintf(err, cap, "the interface %s cannot be read from the kernel: %s", dev,
			 strerror(-rc));
		return rc;
	}
	if (!s->link.ethernet) {
		snprintf(err, cap,
			 "the interface %s is not Ethernet: it has no MAC address of a station",
			 dev);
		return -ENODEV;
	}
	s->monitor = ur_rtnl_monitor_open();
	if (s->monitor < 0) {
		snprintf(err, cap,
			 "changes of the interface %s cannot be received from the kernel: %s", dev,
			 strerror(-s->monitor));
		return s->monitor;
	}
	rc = read_addrs(s, &changed);
	if (rc) {
		snprintf(err, cap, "the addresses of the interface %s cannot be read: %s", dev,
			 strerror(-rc));
		return rc;
	}
	if (!has_addr(s)) {
		snprintf(err, cap,
			 "the interface %s has no address to share; `ip addr add 10.77.0.1/24 dev "
			 "%s` gives it one, with the network's own numbers",
			 dev, dev);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

int ur_shared_hold(struct ur_shared *s, bool copies, char *err, size_t cap)
{
	int rc = ur_udp_hold_open(&s->hold, s->ifname);

	if (!rc && copies)
		start_drop(s);
	if (rc == -EADDRINUSE)
		snprintf(err, cap,
			 "UDP port %u of the interface %s is taken: by the kernel's own RoCE "
			 "(`rdma link` shows it, `modprobe -r rdma_rxe` ends it) or by a program "
			 "that `ss -ulnp sport = :%u` names",
			 UR_ROCE_UDP_PORT, s->ifname, UR_ROCE_UDP_PORT);
	else if (rc)
		snprintf(err, cap, "UDP port %u of the interface %s cannot be held: %s",
			 UR_ROCE_UDP_PORT, s->ifname, strerror(-rc));
	return rc;
}

struct ur_shared *ur_shared_open(const char *ifname, char *err, size_t cap)
{
	struct ur_shared *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s) {
		snprintf(err, cap, "out of memory");
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->monitor = -1;
	s->hold = (struct ur_udp_hold){.fd4 = -1, .fd6 = -1};
	snprintf(s->ifname, sizeof(s->ifname), "%s", ifname);
	s->ifindex = if_nametoindex(ifname);
	if (s->ifindex) {
		rc = start(s, err, cap);
	} else {
		snprintf(err, cap,
			 "there is no interface %s in this network namespace; `ip link` lists "
			 "them",
			 ifname);
		rc = -ENODEV;
	}
	if (!rc)
		return s;
	ur_shared_close(s);
	errno = -rc;
	return NULL;
}

void ur_shared_close(struct ur_shared *s)
{
	if (!s)
		return;
	if (s->monitor >= 0)
		close(s->monitor);
	ur_ingress_drop_close(&s->drop);
	ur_udp_hold_close(&s->hold);
	pthread_mutex_destroy(&s->lock);
	free(s->entry);
	free(s);
}
