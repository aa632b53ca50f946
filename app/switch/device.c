/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bsd/string.h>

#include "dpdk/eal.h"
#include "dpdk/mbuf_source.h"
#include "dpdk/port.h"
#include "dpdk/preflight.h"
#include "dpdk/wake.h"
#include "doze.h"
#include "edge/mtu.h"

struct port_device {
	struct device dev;
	struct ur_eal_port eal;
	struct ur_port port;
	struct ur_mbuf_source source;
	uint64_t no_mbuf;
	struct ur_wake wake; /* descriptors of the driver */
	int query;	     /* socket to ask the kernel about the interface; -1: ask the driver */
};

static unsigned port_rx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct port_device *p = (struct port_device *)d;
	struct ur_pkt pkt[DEVICE_BURST];
	unsigned got = ur_mbuf_rx(&p->source, pkt, n);

	for (unsigned i = 0; i < got; i++)
		m[i] = pkt[i].handle;
	return got;
}

static unsigned port_tx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct port_device *p = (struct port_device *)d;

	return ur_port_tx(&p->port, 0, m, (uint16_t)n);
}

/* The drivers for kernel interfaces report a link that is always up. */
static bool port_link(struct device *d)
{
	struct port_device *p = (struct port_device *)d;
	struct ifreq req = {0};

	if (p->query < 0)
		return ur_port_link_up(&p->port);
	strlcpy(req.ifr_name, p->port.ifname, sizeof(req.ifr_name));
	return ioctl(p->query, SIOCGIFFLAGS, &req) == 0 && req.ifr_flags & IFF_UP &&
	       req.ifr_flags & IFF_RUNNING;
}

static void port_close(struct device *d)
{
	struct port_device *p = (struct port_device *)d;

	ur_port_close(&p->port);
	if (p->eal.queue_cnt)
		ur_eal_release(&p->eal);
	if (p->query >= 0)
		close(p->query);
	free(p);
}

static void port_counters(const struct device *d, struct ur_switch_device_counters *out)
{
	const struct port_device *p = (const struct port_device *)d;
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(p->port.id, &stats))
		return;
	out->device_damaged = stats.ierrors;
	out->device_overruns = stats.imissed + stats.rx_nombuf;
	out->device_unsent = stats.oerrors;
}

/* Those that report something else than frames, as when the interface goes down, are not needed while it is down. */
static bool port_interrupts(struct device *d, bool on)
{
	return ((struct port_device *)d)->wake.cnt;
}

static const struct device_ops port_ops = {.rx = port_rx,
					   .tx = port_tx,
					   .link = port_link,
					   .close = port_close,
					   .counters = port_counters,
					   .interrupts = port_interrupts};

/* Small rings are faster, but these take what arrives while another process has the CPU. */
#define KERNEL_FRAMECNT 512

static struct ur_config config_of(const struct switch_spec *s, const struct ur_config *base)
{
	static const int driver[SWITCH_KIND_CNT] = {
		[SWITCH_DEV] = UR_DRIVER_AF_PACKET, [SWITCH_XDP] = UR_DRIVER_AF_XDP,
		[SWITCH_TAP] = UR_DRIVER_TAP,	    [SWITCH_MEMIF] = UR_DRIVER_MEMIF,
		[SWITCH_PCI] = UR_DRIVER_PCI,
	};
	struct ur_config cfg = *base;

	cfg.bare = true;
	cfg.address.link_local = false;
	cfg.worker.mode = UR_WORKER_MODE_INLINE;
	cfg.worker.count = 1;
	cfg.port.driver = driver[s->kind];
	cfg.port.dev[0] = '\0';
	strlcpy(cfg.port.device, s->name, sizeof(cfg.port.device));
	cfg.port.role = UR_MEMIF_ROLE_NONE;
	if (s->kind == SWITCH_MEMIF)
		cfg.port.role = s->client ? UR_MEMIF_ROLE_CLIENT : UR_MEMIF_ROLE_SERVER;
	if (s->shares)
		strlcpy(cfg.port.dev, s->name, sizeof(cfg.port.dev));
	if (s->mtu)
		cfg.port.mtu = s->mtu;
	cfg.port.credits = switch_spec_credits(s, base->port.credits);
	if (s->kind == SWITCH_DEV && !cfg.port.framecnt && !cfg.port.credits)
		cfg.port.framecnt = KERNEL_FRAMECNT;
	return cfg;
}

struct complaint {
	char *text;
	size_t cap;
};

static void keep_first(void *arg, const struct ur_preflight_item *item)
{
	struct complaint *c = arg;

	if (item->fatal && !c->text[0])
		snprintf(c->text, c->cap, "%s%s%s", item->what,
			 item->command[0] ? "; fix it with: " : "", item->command);
}

static bool can_work(const struct ur_config *cfg, char *err, size_t cap)
{
	struct complaint c = {err, cap};

	if (ur_config_check(cfg, err, cap))
		return false;
	err[0] = '\0';
	return ur_preflight(cfg, keep_first, &c) == 0;
}

/* All or none: a frame may come to any of them. */
static void watch_all(struct port_device *p)
{
	for (unsigned i = 0; i < p->wake.cnt; i++)
		if (!doze_watch(p->wake.fd[i].fd))
			p->wake.cnt = 0;
}

static bool open_port(struct port_device *p, const struct switch_spec *s, struct ur_config *cfg,
		      uint32_t held, char *err, size_t cap)
{
	struct ur_port_attr attr = {
		.queue_cnt = 1,
		.rx_desc = (uint16_t)cfg->port.rx_desc,
		.tx_desc = (uint16_t)cfg->port.tx_desc,
		.mtu = (uint16_t)cfg->port.mtu,
		.mbuf_extra_cnt = held,
		.promiscuous = !s->shares,
	};
	struct ur_wake_before before;

	if (!can_work(cfg, err, cap))
		return false;
	ur_wake_note(&before);
	if (ur_eal_init(cfg, &p->eal, err, cap)) {
		p->eal.queue_cnt = 0;
		return false;
	}
	if (ur_port_open(&p->port, p->eal.id, &attr, err, cap))
		return false;
	ur_wake_find(&p->wake, &before, cfg);
	watch_all(p);
	if (s->kind == SWITCH_DEV || s->kind == SWITCH_XDP) {
		strlcpy(p->port.ifname, s->name, sizeof(p->port.ifname));
		p->query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		p->dev.ifindex = if_nametoindex(s->name);
	}
	return true;
}

struct device *device_open_port(const struct switch_spec *spec, const struct ur_config *base,
				uint32_t held, const struct ur_clock *clock, char *err, size_t cap)
{
	struct ur_config cfg = config_of(spec, base);
	struct port_device *p = calloc(1, sizeof(*p));
	char why[512];

	if (!p) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	p->query = -1;
	p->dev.ops = &port_ops;
	strlcpy(p->dev.name, spec->text, sizeof(p->dev.name));
	p->dev.name[strcspn(p->dev.name, ",")] = '\0';
	if (!open_port(p, spec, &cfg, held, why, sizeof(why))) {
		snprintf(err, cap, "%s: %s", p->dev.name, why);
		port_close(&p->dev);
		return NULL;
	}
	memcpy(p->dev.mac, p->port.mac, 6);
	p->dev.max_frame = p->port.max_frame_bytes;
	p->dev.rx_slots = ur_eal_rx_slots(&cfg, p->port.rx_desc);
	ur_mbuf_source_init(&p->source, &p->port, 0, clock, false, &p->no_mbuf);
	return &p->dev;
}

bool device_start_dpdk(const struct ur_config *base, char *err, size_t cap)
{
	static struct ur_eal_port never_opened;
	struct ur_config cfg = *base;

	if (ur_eal_prefix()[0])
		return true; /* for another switch of the process */
	cfg.bare = true;
	cfg.worker.mode = UR_WORKER_MODE_INLINE;
	cfg.worker.count = 1;
	cfg.port.driver = UR_DRIVER_RING;
	strlcpy(cfg.port.device, "uroce-switch", sizeof(cfg.port.device));
	return ur_eal_init(&cfg, &never_opened, err, cap) == 0;
}
