/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/port.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "dpdk/memif_guard.h"
#include "dpdk/memif_wake.h"
#include "edge/mtu.h"
#include "dpdk/xdp.h"

#define MEMIF_LINGER_US	  20000
#define DESC_DEFAULT	  256
#define BURST_ROOM	  256  /* mbufs that a worker holds, cache included */
#define XDP_DESC	  512  /* its own default of 2048 pages a ring leaves every cache */
#define XDP_FILL	  2048 /* mbufs the driver puts in the fill ring, whatever the ring's size */
#define XDP_HEADROOM	  256  /* what the kernel keeps in front of a frame */
#define VNET_HEADER_BYTES 12   /* struct virtio_net_hdr_mrg_rxbuf */
#define AF_PACKET_FRAMESZ 2048 /* of the driver, when framesz= is not given */

#define ORPHAN_PATIENCE_MS 1000

/* Properties of drivers that ethdev does not report. */
enum quirk {
	QUIRK_KERNEL_MTU = 1,  /* the kernel interface's MTU counts; the device's is only a label */
	QUIRK_NO_LINK_MTU = 2, /* a frame passes when the buffers hold it */
	QUIRK_PAGE = 4,	       /* an mbuf with all its headers must fit in a page */
	QUIRK_FRAMESZ = 8,     /* the ring's slot size is a device argument */
	QUIRK_COPIES = 16,     /* a TX burst copies frames (memif: unless it is zero-copy) */
	QUIRK_KERNEL_MAC = 32, /* the device's MAC is the kernel's, at the other end of the link */
	QUIRK_VNET_HEADER = 64, /* the driver counts virtio's header as part of the frame */
	QUIRK_SYSCALL = 128,	/* a TX burst is a system call */
};

static const struct {
	const char *driver;
	unsigned quirks;
} quirk_table[] = {
	{"net_af_packet", QUIRK_KERNEL_MTU | QUIRK_FRAMESZ | QUIRK_COPIES | QUIRK_SYSCALL},
	{"net_af_xdp", QUIRK_KERNEL_MTU | QUIRK_PAGE | QUIRK_SYSCALL},
	{"net_memif", QUIRK_NO_LINK_MTU | QUIRK_COPIES},
	{"net_ring", QUIRK_NO_LINK_MTU},
	{"net_null", QUIRK_NO_LINK_MTU},
	{"net_pcap", QUIRK_NO_LINK_MTU},
	{"net_tap", QUIRK_KERNEL_MAC | QUIRK_SYSCALL},
	{"net_virtio", QUIRK_VNET_HEADER},
};

/* The state of opening a port. */
struct opening {
	struct ur_port *port;
	const struct ur_port_attr *attr;
	struct rte_eth_dev_info info;
	unsigned quirks;
	uint16_t set_mtu;   /* to configure; 0: do not change it */
	uint32_t data_room; /* of an mbuf, headroom included */
	char *err;
	size_t cap;
};

static struct ur_port *open_ports[RTE_MAX_ETHPORTS];
static pid_t owner; /* the process that opened them */

static int __attribute__((format(printf, 3, 4)))
fail(const struct opening *o, int rc, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!o->cap)
		return rc;
	n = snprintf(o->err, o->cap, "port %s (%s): ", o->port->name, o->port->driver);
	if (n < 0 || (size_t)n >= o->cap)
		return rc;
	va_start(ap, fmt);
	vsnprintf(o->err + n, o->cap - (size_t)n, fmt, ap);
	va_end(ap);
	return rc;
}

static int identify(struct opening *o, uint16_t id)
{
	struct ur_port *p = o->port;
	int rc;

	p->id = id;
	snprintf(p->name, sizeof(p->name), "%u", id);
	snprintf(p->driver, sizeof(p->driver), "no driver");
	if (!rte_eth_dev_is_valid_port(id))
		return fail(o, -ENODEV,
			    "no such port; was the device given to the EAL (--vdev, -a)?");
	rc = rte_eth_dev_info_get(id, &o->info);
	if (rc < 0)
		return fail(o, rc, "cannot be queried: %s", rte_strerror(-rc));
	rte_eth_dev_get_name_by_port(id, p->name);
	snprintf(p->driver, sizeof(p->driver), "%s",
		 o->info.driver_name ? o->info.driver_name : "?");
	for (size_t i = 0; i < RTE_DIM(quirk_table); i++)
		if (strcmp(p->driver, quirk_table[i].driver) == 0)
			o->quirks = quirk_table[i].quirks;
	if (o->info.if_index) {
		char name[IF_NAMESIZE];

		if (if_indextoname(o->info.if_index, name))
			snprintf(p->ifname, sizeof(p->ifname), "%s", name);
	}
	if (open_ports[id])
		return fail(o, -EBUSY, "is open already");
	return 0;
}

/* A number among the device's arguments ("framesz=8192"); `otherwise` when it is not there. */
static uint32_t device_arg(const struct opening *o, const char *key, uint32_t otherwise)
{
	const struct rte_devargs *da = o->info.device ? rte_dev_devargs(o->info.device) : NULL;
	const char *at = da ? da->args : NULL;
	size_t len = strlen(key);

	while (at && *at) {
		if (strncmp(at, key, len) == 0 && at[len] == '=')
			return (uint32_t)strtoul(at + len + 1, NULL, 10);
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return otherwise;
}

/* The kernel's MTU of an interface, 0 when it cannot be had. */
static uint16_t kernel_mtu(const char *ifname)
{
	struct ifreq req;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t mtu = 0;

	if (sock < 0)
		return 0;
	memset(&req, 0, sizeof(req));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%.*s", IFNAMSIZ - 1, ifname);
	if (ioctl(sock, SIOCGIFMTU, &req) == 0)
		mtu = (uint16_t)RTE_MIN(req.ifr_mtu, UINT16_MAX);
	close(sock);
	return mtu;
}

/* The largest data room with which an object of a mempool, its padding included, fits in a page. */
static uint32_t page_data_room(void)
{
	uint32_t page = (uint32_t)getpagesize(), room = page;
	struct rte_mempool_objsz size;

	do {
		room -= RTE_CACHE_LINE_SIZE;
		rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + room, 0, &size);
	} while (size.total_size > page);
	return room;
}

/* The largest MTU that rte_eth_dev_configure() will take, by its own rule. */
static uint32_t device_max_mtu(const struct rte_eth_dev_info *info)
{
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (info->max_rx_pktlen <= overhead)
		return info->max_mtu;
	return RTE_MIN((uint32_t)info->max_mtu, info->max_rx_pktlen - overhead);
}

/* The IP bytes that the link itself can carry, without regard to buffers. */
static int link_mtu(struct opening *o, uint16_t *out)
{
	uint16_t want = o->attr->mtu, have;

	if (o->quirks & QUIRK_NO_LINK_MTU) {
		*out = want ? want : UR_VIRTUAL_MTU;
		return 0;
	}
	if ((o->quirks & QUIRK_KERNEL_MTU) && o->port->ifname[0]) {
		have = kernel_mtu(o->port->ifname);
		if (have && want > have)
			return fail(o, -EMSGSIZE,
				    "the interface's MTU is %u and %u is needed; "
				    "`ip link set dev %s mtu %u` fixes it",
				    have, want, o->port->ifname, want);
		if (have) {
			*out = want ? want : have;
			return 0;
		}
	}
	if (rte_eth_dev_get_mtu(o->port->id, &have) < 0)
		have = RTE_ETHER_MTU;
	if (!want || want == have) {
		*out = have;
		return 0;
	}
	if (want > device_max_mtu(&o->info))
		return fail(o, -EMSGSIZE, "an MTU of %u is needed and the device supports %u", want,
			    device_max_mtu(&o->info));
	o->set_mtu = want;
	*out = want;
	return 0;
}

/* Makes the MTU fit in what one slot of the driver's ring holds. */
static int fit_slot(struct opening *o, uint16_t *mtu, uint32_t slot_bytes, const char *why)
{
	uint32_t fits = slot_bytes - UR_FRAME_OVERHEAD_BYTES;

	if (*mtu <= fits)
		return 0;
	if (o->attr->mtu)
		return fail(o, -EMSGSIZE, "an MTU of %u is needed and %s leaves %u", o->attr->mtu,
			    why, fits);
	*mtu = (uint16_t)fits;
	return 0;
}

static int choose_sizes(struct opening *o)
{
	struct ur_port *p = o->port;
	uint32_t framesz = 0, frame, room;
	uint16_t mtu = 0;
	int rc = link_mtu(o, &mtu);

	if (rc == 0 && (o->quirks & QUIRK_FRAMESZ)) {
		framesz = device_arg(o, "framesz", AF_PACKET_FRAMESZ);
		rc = framesz > 256 ? fit_slot(o, &mtu, framesz - UR_TPACKET_BYTES, "framesz")
				   : fail(o, -EINVAL, "framesz=%u is too small", framesz);
	}
	if (rc == 0 && (o->quirks & QUIRK_PAGE))
		rc = fit_slot(o, &mtu, page_data_room() - RTE_PKTMBUF_HEADROOM - XDP_HEADROOM,
			      "a buffer of one page");
	if (rc < 0)
		return rc;
	frame = mtu + UR_FRAME_OVERHEAD_BYTES;
	room = RTE_MAX(o->attr->mbuf_room_bytes, RTE_MAX(frame, framesz));
	room = RTE_MAX(room, o->info.min_rx_bufsize);
	if (o->quirks & QUIRK_VNET_HEADER)
		room += VNET_HEADER_BYTES;
	o->data_room = RTE_ALIGN_CEIL(room + RTE_PKTMBUF_HEADROOM, RTE_CACHE_LINE_SIZE);
	if (o->quirks & QUIRK_PAGE)
		o->data_room = page_data_room();
	if (o->data_room > UINT16_MAX)
		return fail(o, -EINVAL, "mbufs of %u bytes are too large, 65535 is the most",
			    o->data_room);
	p->evict = o->attr->evict;
	p->mbuf_room_bytes = o->data_room - RTE_PKTMBUF_HEADROOM;
	p->mtu = mtu;
	p->max_frame_bytes = (uint16_t)RTE_MIN(frame, UINT16_MAX);
	p->max_payload = ur_mtu_payload(mtu);
	return 0;
}

static uint16_t desc_cnt(const struct opening *o, uint16_t wanted, uint16_t device_default)
{
	if (wanted)
		return wanted;
	if (o->quirks & QUIRK_PAGE)
		return XDP_DESC;
	return device_default ? device_default : DESC_DEFAULT;
}

static int configure(struct opening *o)
{
	struct ur_port *p = o->port;
	struct rte_eth_conf conf = {.rxmode = {.mtu = o->set_mtu}};
	uint16_t most = RTE_MIN(o->info.max_rx_queues, o->info.max_tx_queues);
	uint64_t hash = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
	int rc;

	most = RTE_MIN(most, UR_PORT_QUEUES_MAX);
	/* A power of two, like the number of workers: other queues would never be emptied. */
	p->queue_cnt = (uint16_t)rte_align32prevpow2(
		RTE_MIN(o->attr->queue_cnt ? o->attr->queue_cnt : 1, most));
	if (p->queue_cnt == 0)
		return fail(o, -ENODEV, "has no queue pair");
	p->multi_seg_tx = o->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->multi_seg_tx)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	hash &= o->info.flow_type_rss_offloads;
	if (p->queue_cnt > 1 && hash) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = hash;
		p->rss = true;
	}
	rc = rte_eth_dev_configure(p->id, p->queue_cnt, p->queue_cnt, &conf);
	if (rc < 0)
		return fail(o, rc, "refuses %u queue pairs with MTU %u: %s", p->queue_cnt, p->mtu,
			    rte_strerror(-rc));
	p->rx_desc = desc_cnt(o, o->attr->rx_desc, o->info.default_rxportconf.ring_size);
	p->tx_desc = desc_cnt(o, o->attr->tx_desc, o->info.default_txportconf.ring_size);
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &p->rx_desc, &p->tx_desc);
	return rc < 0 ? fail(o, rc, "cannot size its rings: %s", rte_strerror(-rc)) : 0;
}

/* Enough for rings and bursts, and of the form 2^k - 1, with which a mempool wastes no memory. */
static uint32_t pool_size(const struct opening *o)
{
	uint32_t need = o->port->rx_desc + o->port->tx_desc + BURST_ROOM;

	if (o->attr->mbuf_cnt)
		return o->attr->mbuf_cnt;
	if (o->quirks & QUIRK_PAGE)
		need += XDP_FILL;
	return rte_align32pow2(need + o->attr->mbuf_extra_cnt + 1) - 1;
}

/*
 * While the other end of a ring has not taken the last frames of a closed port, their pool still holds
 * memory. Waits up to a second for that.
 */
static struct rte_mempool *make_pool(struct opening *o, uint16_t q, unsigned *waiting)
{
	static _Atomic unsigned generation; /* an orphan may still have the name */
	unsigned cache = RTE_MIN(o->port->mbuf_cnt / 8, 128u);
	struct rte_mempool *pool;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "ur_%u_%u_%u", o->port->id, q, generation++);
	for (unsigned ms = 0;; ms++) {
		*waiting = ur_port_reap();
		pool = rte_pktmbuf_pool_create(name, o->port->mbuf_cnt, cache, 0,
					       (uint16_t)o->data_room,
					       rte_eth_dev_socket_id(o->port->id));
		if (pool || rte_errno != ENOMEM || !*waiting || ms == ORPHAN_PATIENCE_MS)
			return pool;
		rte_delay_us_sleep(1000);
	}
}

static int make_pools(struct opening *o)
{
	struct ur_port *p = o->port;
	char others[96] = "";
	unsigned waiting;

	p->mbuf_cnt = pool_size(o);
	for (uint16_t q = 0; q < p->queue_cnt; q++) {
		int rc;

		p->pool[q] = make_pool(o, q, &waiting);
		if (p->pool[q])
			continue;
		rc = rte_errno ? -rte_errno : -ENOMEM;
		if (waiting)
			snprintf(others, sizeof(others),
				 "; pools of closed ports that wait for their last frames: %u",
				 waiting);
		return fail(o, rc,
			    "no memory for %u buffers of %u bytes for queue %u (%s%s); "
			    "give the EAL more (-m), or hugepages: "
			    "`sysctl -w vm.nr_hugepages=512`",
			    p->mbuf_cnt, o->data_room, q, rte_strerror(-rc), others);
	}
	return 0;
}

/*
 * A queue of an interface has one AF_XDP socket at a time. The driver reports "invalid argument" for
 * this as for everything, and cannot try again: its device has to be made anew.
 */
static int refuse_queue(const struct opening *o, uint16_t q, int rc)
{
	struct ur_port *p = o->port;

	if (rc == -EINVAL && (o->quirks & QUIRK_PAGE))
		return fail(o, -EBUSY,
			    "the kernel gives no AF_XDP socket for RX queue %u with mbufs of %u; "
			    "another process may have it",
			    q, o->data_room);
	return fail(o, rc, "RX queue %u with %u descriptors and mbufs of %u: %s", q, p->rx_desc,
		    o->data_room, rte_strerror(-rc));
}

static int start(struct opening *o)
{
	struct ur_port *p = o->port;
	int rc;

	for (uint16_t q = 0; q < p->queue_cnt; q++) {
		rc = rte_eth_rx_queue_setup(p->id, q, p->rx_desc, rte_eth_dev_socket_id(p->id),
					    NULL, p->pool[q]);
		if (rc < 0)
			return refuse_queue(o, q, rc);
		rc = rte_eth_tx_queue_setup(p->id, q, p->tx_desc, rte_eth_dev_socket_id(p->id),
					    NULL);
		if (rc < 0)
			return fail(o, rc, "TX queue %u with %u descriptors: %s", q, p->tx_desc,
				    rte_strerror(-rc));
	}
	if (o->attr->has_mac && !(o->quirks & QUIRK_KERNEL_MAC)) {
		struct rte_ether_addr mac;

		memcpy(mac.addr_bytes, o->attr->mac, 6);
		rc = rte_eth_dev_default_mac_addr_set(p->id, &mac);
		/* A link without a filter of its own (ring, memif, pcap) delivers any address. */
		if (rc < 0 && rc != -ENOTSUP)
			return fail(o, rc, "does not take the MAC address: %s", rte_strerror(-rc));
	}
	rc = rte_eth_dev_start(p->id);
	if (rc < 0)
		return fail(o, rc, "does not start: %s", rte_strerror(-rc));
	if (o->attr->promiscuous)
		(void)rte_eth_promiscuous_enable(p->id);
	/* Neighbour solicitations are multicast; this fails where all multicast is received anyway. */
	(void)rte_eth_allmulticast_enable(p->id);
	return 0;
}

/* EDGE-FORK-01. A child made by fork() has the port's descriptors and none of its threads. */
static void at_exit(void)
{
	if (getpid() == owner)
		ur_port_close_all();
}

static void remember(struct ur_port *port)
{
	static bool hooked;

	open_ports[port->id] = port;
	owner = getpid();
	if (!hooked)
		hooked = atexit(at_exit) == 0;
}

/*
 * Pools of closed ports whose packets are still held by the other end of a ring, which
 * shares our memory. They are freed when the last packet is back. Two endpoints may be closed at
 * the same time.
 */
static struct rte_mempool *orphans[64];
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned ur_port_reap(void)
{
	unsigned left = 0;

	pthread_mutex_lock(&orphans_lock);
	for (unsigned i = 0; i < RTE_DIM(orphans); i++) {
		if (orphans[i] && rte_mempool_full(orphans[i])) {
			rte_mempool_free(orphans[i]);
			orphans[i] = NULL;
		}
		left += orphans[i] != NULL;
	}
	pthread_mutex_unlock(&orphans_lock);
	return left;
}

static void free_pool(struct rte_mempool *pool, bool shared)
{
	unsigned i = 0;

	if (!pool || !shared || rte_mempool_full(pool)) {
		rte_mempool_free(pool);
		return;
	}
	pthread_mutex_lock(&orphans_lock);
	while (i < RTE_DIM(orphans) && orphans[i])
		i++;
	if (i < RTE_DIM(orphans))
		orphans[i] = pool;
	pthread_mutex_unlock(&orphans_lock);
}

struct closing {
	uint16_t id;
	atomic_bool done;
};

static void close_device(void *arg)
{
	struct closing *c = arg;

	rte_eth_dev_stop(c->id);
	rte_eth_dev_close(c->id);
	atomic_store(&c->done, true);
}

/*
 * memif frees its regions when it is closed, and on the interrupt thread when its peer has left:
 * at the same time when both ends leave together. So it is closed on that thread.
 */
static void release(struct ur_port *port)
{
	struct closing c = {.id = port->id};

	/* EDGE-OWED-01: closing memif would lose frames that its peer has not read yet, the last ACKs. */
	if (ur_port_is_memif(port))
		rte_delay_us_sleep(MEMIF_LINGER_US);
	if (!ur_port_is_memif(port) || rte_eal_alarm_set(1, close_device, &c) != 0)
		close_device(&c);
	while (!atomic_load(&c.done))
		rte_delay_us_sleep(100);
	for (unsigned q = 0; q < port->queue_cnt; q++) {
		/* af_xdp never returns the buffers that it has, but shares them with no other process. */
		free_pool(port->pool[q], strcmp(port->driver, "net_af_xdp") != 0);
		port->pool[q] = NULL;
	}
	ur_port_reap();
}

int ur_port_open(struct ur_port *port, uint16_t id, const struct ur_port_attr *attr, char *err,
		 size_t cap)
{
	struct ur_port made = {0};
	struct opening o = {.port = &made, .attr = attr, .err = err, .cap = cap};
	struct rte_ether_addr mac;
	int rc = identify(&o, id);

	if (rc == 0)
		rc = choose_sizes(&o);
	if (o.quirks & QUIRK_PAGE)
		ur_xdp_quiet();
	if (ur_port_is_memif(&made))
		ur_memif_wake_start();
	if (rc == 0)
		rc = configure(&o);
	if (rc < 0)
		return rc;
	rc = make_pools(&o);
	if (rc == 0)
		rc = start(&o);
	if (rc == 0 && rte_eth_macaddr_get(id, &mac) < 0)
		rc = fail(&o, -EIO, "does not report its MAC address");
	if (rc < 0) {
		release(&made);
		return rc;
	}
	memcpy(made.mac, attr->has_mac ? attr->mac : mac.addr_bytes, 6);
	/* Two ends with one address would take each other's packets for their own. */
	if (!attr->has_mac && (o.quirks & QUIRK_KERNEL_MAC))
		made.mac[5] ^= 1;
	made.xdp_ifindex = strcmp(made.driver, "net_af_xdp") == 0 ? o.info.if_index : 0;
	made.copies_tx = o.quirks & QUIRK_COPIES;
	made.tx_is_syscall = o.quirks & QUIRK_SYSCALL;
	if (ur_port_is_memif(&made))
		ur_memif_guard_start();
	made.open = true;
	*port = made;
	remember(port);
	return 0;
}

void ur_port_close(struct ur_port *port)
{
	if (!port->open)
		return;
	port->open = false;
	open_ports[port->id] = NULL;
	release(port);
}

void ur_port_close_all(void)
{
	for (unsigned i = 0; i < RTE_MAX_ETHPORTS; i++)
		if (open_ports[i])
			ur_port_close(open_ports[i]);
}

void ur_port_emergency(void)
{
	for (unsigned i = 0; i < RTE_MAX_ETHPORTS; i++)
		if (open_ports[i] && open_ports[i]->xdp_ifindex)
			ur_xdp_off(open_ports[i]->xdp_ifindex);
}

int ur_port_restart(const struct ur_port *port)
{
	int rc = rte_eth_dev_stop(port->id);

	return rc ? rc : rte_eth_dev_start(port->id);
}

bool ur_port_is_memif(const struct ur_port *port)
{
	return strcmp(port->driver, "net_memif") == 0;
}

bool ur_port_link_up(const struct ur_port *port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool ur_port_wait_link(const struct ur_port *port, unsigned timeout_ms)
{
	for (unsigned waited_ms = 0; !ur_port_link_up(port); waited_ms++) {
		if (waited_ms >= timeout_ms)
			return false;
		rte_delay_us_sleep(1000);
	}
	return true;
}

bool ur_port_read_counters(const struct ur_port *port, struct ur_port_counters *out)
{
	struct rte_eth_stats stats;

	*out = (struct ur_port_counters){0};
	if (rte_eth_stats_get(port->id, &stats) < 0)
		return false;
#define X(name, unit, help) out->name = stats.name;
	UR_PORT_COUNTERS(X)
#undef X
	return true;
}

static void emit_counters(const struct ur_port *port, struct ur_emit *e)
{
	struct ur_port_counters c;

	if (!ur_port_read_counters(port, &c))
		return;
#define X(name, unit, help) ur_emit_u64(e, #name, c.name);
	UR_PORT_COUNTERS(X)
#undef X
}

void ur_port_emit(const struct ur_port *port, struct ur_emit *e)
{
	const uint8_t *m = port->mac;
	char mac[18], evict[256];

	ur_evict_describe(&port->evict, evict, sizeof(evict));
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	ur_emit_str(e, "name", port->name);
	ur_emit_str(e, "driver", port->driver);
	ur_emit_str(e, "interface", port->ifname);
	ur_emit_str(e, "mac", mac);
	ur_emit_u64(e, "link_up", ur_port_link_up(port));
	ur_emit_u64(e, "queues", port->queue_cnt);
	ur_emit_u64(e, "mtu", port->mtu);
	ur_emit_u64(e, "pmtu", port->max_payload);
	ur_emit_u64(e, "evict", port->evict.on);
	ur_emit_str(e, "evict_reason", evict);
	emit_counters(port, e);
}

int ur_port_counters(struct ur_emit *e, const char *params, void *ctx)
{
	const struct ur_port *port = ctx;

	if (!port->open || (params[0] && strtoul(params, NULL, 10) != port->id))
		return -ENOENT;
	ur_port_emit(port, e);
	return 0;
}
