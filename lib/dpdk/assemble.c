/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets */
#endif
#include "dpdk/assemble.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>

#include "edge/config_attr.h"
#include "edge/mtu.h"
#include "edge/pacing_attr.h"
#include "edge/random.h"
#include "dpdk/preflight.h"

#define BUSY_PATIENCE_MS 5000
#define BUSY_STEP_MS	 50

/* ---- configuration ---- */

struct complaint {
	char *buf;
	size_t cap;
};

static void complain(void *arg, const struct ur_preflight_item *item)
{
	struct complaint *c = arg;

	if (!item->fatal || c->buf[0])
		return;
	snprintf(c->buf, c->cap, "%s%s%s", item->what, item->command[0] ? "; fix it with: " : "",
		 item->command);
}

int ur_assemble_config(struct ur_config *cfg, const char *file, const char *const *set,
		       struct ur_lease **lease, char *err, size_t cap)
{
	struct complaint c = {err, cap};
	int rc = ur_config_load(file, cfg, err, cap);

	for (const char *const *s = set; !rc && s && *s; s++)
		rc = ur_config_set_arg(cfg, *s, err, cap);
	if (!rc && ur_config_leases(cfg))
		rc = ur_config_check_lease(cfg, err, cap) ? -EINVAL
							  : ur_lease_open(cfg, lease, err, cap);
	if (rc)
		return rc;
	ur_config_share(cfg);
	rc = ur_config_check(cfg, err, cap);
	if (rc)
		return rc;
	err[0] = '\0';
	return ur_preflight(cfg, complain, &c) ? -ENODEV : 0;
}

/* ---- port ---- */

/* The CPU of worker 0; inline, that of the caller, which is likely to run the worker later. */
static unsigned receiving_cpu(const struct ur_eal_port *eal)
{
	if (eal->dedicated) {
		rte_cpuset_t cpus = rte_lcore_cpuset(eal->lcore[0]);

		for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &cpus))
				return cpu;
	}
	return (unsigned)RTE_MAX(sched_getcpu(), 0);
}

static struct ur_port_attr port_attr_of(const struct ur_config *cfg, uint16_t queue_cnt)
{
	static const uint8_t no_mac[6];
	struct ur_port_attr a = {
		.queue_cnt = queue_cnt,
		.rx_desc = (uint16_t)cfg->port.rx_desc,
		.tx_desc = (uint16_t)cfg->port.tx_desc,
		.mtu = (uint16_t)cfg->port.mtu,
		.mbuf_cnt = cfg->port.mbufs,
		.promiscuous = cfg->port.promiscuous,
		.has_mac = memcmp(cfg->address.mac, no_mac, 6) != 0,
	};

	for (int tx = 0; tx < 2; tx++) {
		struct ur_impair_config impair = ur_impair_config_of(cfg, tx, 1);

		if (ur_impair_active(&impair))
			a.mbuf_extra_cnt += 2 * impair.hold_max;
	}
	memcpy(a.mac, cfg->address.mac, 6);
	return a;
}

static int choose_mtu(const struct ur_config *cfg, const struct ur_port *port, uint8_t *mtu_shift,
		      char *err, size_t cap)
{
	uint8_t most, want;

	if (port->max_payload < 256) {
		snprintf(err, cap,
			 "port %s: MTU %u is too small for RoCEv2; it must be at least %u",
			 port->name, port->mtu, 256 + UR_ROCE_OVERHEAD_BYTES);
		return -EINVAL;
	}
	most = (uint8_t)__builtin_ctz(port->max_payload);
	want = cfg->transport.path_mtu ? (uint8_t)__builtin_ctz(cfg->transport.path_mtu) : most;
	if (want > most) {
		snprintf(err, cap, "port %s: path_mtu %u does not fit MTU %u; at most %u does",
			 port->name, cfg->transport.path_mtu, port->mtu, port->max_payload);
		return -EINVAL;
	}
	*mtu_shift = want;
	return 0;
}

int ur_assemble_port(const struct ur_config *cfg, struct ur_eal_port *eal, struct ur_port *port,
		     uint8_t *mtu_shift, char *err, size_t cap)
{
	const struct timespec nap = {.tv_nsec = BUSY_STEP_MS * 1000000};

	/* EDGE-REOPEN-01. The kernel releases the AF_XDP socket of a dead process some time later. */
	for (unsigned ms = 0;; ms += BUSY_STEP_MS) {
		struct ur_port_attr attr;
		int rc = ur_eal_init(cfg, eal, err, cap);

		if (rc) {
			eal->queue_cnt = 0;
			return rc;
		}
		attr = port_attr_of(cfg, eal->queue_cnt);
		attr.evict =
			ur_evict_decide(cfg->port.evict, cfg->port.zero_copy, receiving_cpu(eal));
		rc = ur_port_open(port, eal->id, &attr, err, cap);
		if (!rc)
			return choose_mtu(cfg, port, mtu_shift, err, cap);
		if (rc != -EBUSY || ms >= BUSY_PATIENCE_MS)
			return rc;
		ur_eal_release(eal);
		nanosleep(&nap, NULL);
	}
}

/* ---- workers ---- */

uint16_t ur_assemble_worker_cnt(const struct ur_port *port)
{
	unsigned most = port->queue_cnt > UR_WORKERS_MAX ? UR_WORKERS_MAX : port->queue_cnt;

	return (uint16_t)(1u << (31 - __builtin_clz(most)));
}

static struct ur_worker_attr worker_attr_of(const struct ur_assembly *a, struct ur_worker **workers)
{
	const struct ur_config *cfg = a->cfg;
	struct ur_worker_attr attr = {
		.cnt = a->worker_cnt,
		.peers = workers,
		.port = a->port,
		.clock = a->clock,
		.engine = ur_engine_attr_of(cfg, a->worker_cnt, a->mtu_shift),
		.rx_impair = ur_impair_config_of(cfg, false, a->worker_cnt),
		.tx_impair = ur_impair_config_of(cfg, true, a->worker_cnt),
		.capture = a->capture,
		.gids = a->gids,
		.gid_cnt = a->gid_cnt,
		.vid = (uint16_t)cfg->address.vlan,
		.no_loop = a->prefix.bits != 0,
		.dedicated = a->eal->dedicated,
		.attach_payload =
			a->port->multi_seg_tx && a->port->copies_tx && !cfg->port.zero_copy,
		.rate_gbps = cfg->port.rate_gbps / a->worker_cnt,
		.gather = cfg->worker.gather,
	};
	uint32_t max_ids = attr.engine.limits.cm.max_ids;

	attr.engine.limits.attachments = UR_ATTACHMENTS_MAX;
	attr.engine.limits.prefix = a->prefix;
	attr.engine.limits.cm = a->cm_limits;
	attr.engine.limits.cm.max_ids = max_ids;
	attr.engine.mem = a->mem;
	attr.engine.sink = a->sink;
	attr.engine.qos = a->qos;
	if (cfg->port.credits) {
		attr.credit = ur_credit_attr_of(cfg, ur_eal_rx_slots(cfg, a->port->rx_desc),
						(uint32_t)ur_random64());
		ur_credit_map_of(&a->qos->vl, cfg->qos.sl_dscp, cfg->qos.sl_pcp,
				 (uint8_t)cfg->qos.traffic_class, &attr.credit.map);
	}
	return attr;
}

int ur_assemble_workers(const struct ur_assembly *a, struct ur_worker **workers, char *err,
			size_t cap)
{
	struct ur_worker_attr attr = worker_attr_of(a, workers);
	struct ur_adm_attr admission = ur_adm_attr_of(a->cfg);
	struct ur_engine_mgmt_attr mgmt;
	struct ur_cc_attr pacing;
	const char *wrong = a->cfg->port.credits ? ur_credit_attr_check(&attr.credit) : NULL;

	if (wrong) {
		snprintf(err, cap,
			 "[port] credits: %s: the receive ring has %u slots; a larger "
			 "[port] framecnt or rx_desc helps",
			 wrong, ur_eal_rx_slots(a->cfg, a->port->rx_desc));
		return -EINVAL;
	}
	if (a->mgmt) {
		mgmt = ur_mgmt_attr_of(a->mgmt, a->cfg, a->cm.ca_guid, ur_random64());
		ur_engine_mgmt_limits_default(&attr.engine.limits.mgmt);
		attr.engine.mgmt = &mgmt;
	}
	attr.engine.admission = &admission;
	attr.engine.pacing = &pacing;
	for (uint16_t i = 0; i < a->worker_cnt; i++) {
		attr.idx = attr.engine.limits.worker = i;
		attr.neigh = i ? NULL : a->neigh;
		attr.lcore = a->eal->lcore[i];
		attr.engine.random = ur_random64();
		if (!i)
			attr.engine.cm = a->cm;
		pacing = ur_cc_attr_of(a->cfg, a->worker_cnt, ur_random64());
		workers[i] = ur_worker_new(&attr, err, cap);
		if (!workers[i])
			return -ENOMEM;
	}
	for (unsigned i = 0; i < a->worker_cnt; i++)
		if (ur_worker_start(workers[i])) {
			snprintf(err, cap, "worker %u could not be started on its lcore", i);
			return -EBUSY;
		}
	return 0;
}
