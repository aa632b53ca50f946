/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/mgmt.h"

#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_mempool.h>

#include "dpdk/worker.h"
#include "edge/pacing_attr.h"
#include "engine/query.h"
#include "file/replace_file.h"
#include "thread/thread.h"

#define ROUNDS_MIN 100
#define RETRY_S	   1	     /* after a write that failed */
#define STATS_NS   100000000 /* between looks at the driver's counters */

/* ---- the file ---- */

/* Waits for a second, or until it is closed. */
static void wait_to_retry(struct ur_mgmt *m)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RETRY_S;
	while (!m->closing && pthread_cond_timedwait(&m->changed, &m->lock, &until) != ETIMEDOUT)
		;
}

/* Writes the file after each change, until it is closed. What fails is tried again, and once more at the end. */
static void *write_changes(void *arg)
{
	struct ur_mgmt *m = arg;
	uint8_t *copy = malloc(UR_EEPROM_BYTES);

	pthread_mutex_lock(&m->lock);
	for (;;) {
		bool last;
		int rc = ENOMEM;

		while (!m->dirty && !m->closing)
			pthread_cond_wait(&m->changed, &m->lock);
		last = m->closing;
		if (!m->dirty)
			break;
		m->dirty = false;
		if (copy) {
			memcpy(copy, m->eeprom, UR_EEPROM_BYTES);
			pthread_mutex_unlock(&m->lock);
			rc = ur_replace_file(m->file, copy, UR_EEPROM_BYTES);
			pthread_mutex_lock(&m->lock);
		}
		m->write_errno = rc;
		m->dirty |= rc != 0;
		if (rc && last)
			break;
		if (rc)
			wait_to_retry(m);
	}
	pthread_mutex_unlock(&m->lock);
	free(copy);
	return NULL;
}

/* 0, or an errno value. */
static int load(struct ur_mgmt *m)
{
	int fd = open(m->file, O_RDONLY | O_CLOEXEC);
	uint8_t more;
	size_t n = 0;
	ssize_t got;

	memset(m->eeprom, 0xff, UR_EEPROM_BYTES);
	if (fd < 0)
		return errno == ENOENT ? 0 : errno;
	while ((got = read(fd, m->eeprom + n, UR_EEPROM_BYTES - n)) > 0)
		n += (size_t)got;
	if (got == 0 && n == UR_EEPROM_BYTES)
		got = read(fd, &more, 1);
	close(fd);
	if (got < 0)
		return EIO;
	return n == UR_EEPROM_BYTES && got == 0 ? 0 : EFBIG;
}

static int open_eeprom(struct ur_mgmt *m, const struct ur_config *cfg, char *err, size_t cap)
{
	char where[UR_CONFIG_TEXT * 2];
	int rc;

	strlcpy(m->file, cfg->management.eeprom, sizeof(m->file));
	m->eeprom = malloc(UR_EEPROM_BYTES);
	if (!m->eeprom) {
		snprintf(err, cap, "no memory for the E2PROM");
		return -ENOMEM;
	}
	rc = load(m);
	if (rc == 0)
		rc = ur_thread_start(&m->writer, NULL, write_changes, m);
	if (rc == 0)
		return 0;
	ur_config_where(cfg, "management", "eeprom", where, sizeof(where));
	if (rc == EFBIG)
		snprintf(err, cap,
			 "%s\"%s\" does not have the %d bytes of an E2PROM; name another "
			 "file, or remove it to begin anew",
			 where, m->file, UR_EEPROM_BYTES);
	else
		snprintf(err, cap, "%s\"%s\" cannot be read: %s", where, m->file, strerror(rc));
	free(m->eeprom);
	m->eeprom = NULL;
	return -rc;
}

int ur_mgmt_open(struct ur_mgmt *m, const struct ur_config *cfg, struct ur_port *port,
		 struct ur_worker **workers, uint16_t worker_cnt, char *err, size_t cap)
{
	*m = (struct ur_mgmt){.port = port, .workers = workers, .worker_cnt = worker_cnt};
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->changed, NULL);
	return cfg->management.eeprom[0] ? open_eeprom(m, cfg, err, cap) : 0;
}

void ur_mgmt_close(struct ur_mgmt *m)
{
	if (!m->port)
		return;
	if (m->eeprom) {
		pthread_mutex_lock(&m->lock);
		m->closing = true;
		pthread_cond_signal(&m->changed);
		pthread_mutex_unlock(&m->lock);
		pthread_join(m->writer, NULL);
		free(m->eeprom);
	}
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	*m = (struct ur_mgmt){0};
}

static uint8_t eeprom_load(void *ctx, uint16_t address)
{
	return ((const struct ur_mgmt *)ctx)->eeprom[address]; /* only this thread changes it */
}

static void eeprom_store(void *ctx, uint16_t address, uint8_t value)
{
	struct ur_mgmt *m = ctx;

	pthread_mutex_lock(&m->lock);
	m->eeprom[address] = value;
	m->dirty = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* ---- the port ---- */

/* What the other workers counted, and what reached no engine. */
static void add_counters(void *ctx, struct ur_nma_counters *c)
{
	const struct ur_mgmt *m = ctx;

	for (uint16_t i = 0; i < m->worker_cnt; i++) {
		const struct ur_worker_counters *edge;
		const struct ur_counters *cnt;

		if (!m->workers[i])
			continue;
		edge = ur_worker_counters(m->workers[i]);
		c->rx_errors += edge->drops[UR_DROP_ICRC] + edge->drops[UR_DROP_TRUNCATED] +
				edge->drops[UR_DROP_IP_HEADER] + edge->drops[UR_DROP_LENGTH];
		c->tx_wait += edge->rate_waits;
		c->overruns += edge->handover_full + edge->no_mbuf;
		c->flow_control += edge->credit_silences;
		if (!i) /* the agent's own engine */
			continue;
		cnt = ur_engine_counters(ur_worker_engine(m->workers[i]));
		c->tx_bytes += cnt->tx_bytes;
		c->rx_bytes += cnt->rx_bytes;
		c->tx_packets += cnt->tx_packets;
		c->rx_packets += cnt->rx_packets;
		c->retransmitted += cnt->retransmitted_packets;
		c->timeouts += cnt->local_ack_timeout_err;
	}
	c->overruns += atomic_load_explicit(&m->overruns, memory_order_relaxed);
	c->tx_discards += atomic_load_explicit(&m->tx_discards, memory_order_relaxed);
	c->symbol_errors += atomic_load_explicit(&m->damaged, memory_order_relaxed);
}

static void read_driver_counters(struct ur_mgmt *m)
{
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(m->port->id, &stats))
		return;
	atomic_store(&m->overruns, stats.imissed + stats.rx_nombuf);
	atomic_store(&m->tx_discards, stats.oerrors);
	atomic_store(&m->damaged, stats.ierrors);
}

/*
 * The load of worker 0: its rounds that moved a packet, of all since the last time. Too few say nothing yet.
 */
static uint64_t load_now(struct ur_mgmt *m)
{
	const struct ur_worker_rounds *now = ur_worker_rounds(m->workers[0]);
	uint64_t all = now->all - m->rounds.all;

	if (all >= ROUNDS_MIN) {
		m->load = (now->busy - m->rounds.busy) * 1000 / all;
		m->rounds = *now;
	}
	return m->load;
}

static void get_gauges(void *ctx, struct ur_nma_gauges *g)
{
	struct ur_mgmt *m = ctx;

	for (uint16_t i = 0; i < m->port->queue_cnt; i++) {
		const struct rte_mempool *pool = m->port->pool[i];
		uint64_t used;

		if (!pool)
			continue;
		used = rte_mempool_in_use_count(pool) * UINT64_C(1000) / pool->size;
		g->mempool = used > g->mempool ? used : g->mempool;
	}
	for (uint16_t i = 0; i < m->worker_cnt; i++) {
		uint64_t fill = m->workers[i] ? ur_worker_ring_fill(m->workers[i]) : 0;

		g->ring = fill > g->ring ? fill : g->ring;
	}
	if (m->workers[0])
		g->load = load_now(m);
}

static void set_lid(void *ctx, uint8_t port, uint16_t lid, uint8_t lmc)
{
	struct ur_mgmt *m = ctx;

	(void)port;
	pthread_mutex_lock(&m->lock);
	m->lid = (struct ur_mgmt_lid){lid, lmc};
	pthread_mutex_unlock(&m->lock);
}

/* A port without filters takes every address, and its driver refuses to add one. */
static void filter(struct ur_mgmt *m, struct ur_mgmt_lid lid)
{
	struct rte_ether_addr mac = {{0x02, 0x4c, 0x49, 0x44, 0, 0}};

	for (unsigned i = 0; m->filtered.lid && i < 1u << m->filtered.lmc; i++) {
		ur_store16(mac.addr_bytes + 4, (uint16_t)(m->filtered.lid + i));
		(void)rte_eth_dev_mac_addr_remove(m->port->id, &mac);
	}
	for (unsigned i = 0; lid.lid && i < 1u << lid.lmc; i++) {
		ur_store16(mac.addr_bytes + 4, (uint16_t)(lid.lid + i));
		(void)rte_eth_dev_mac_addr_add(m->port->id, &mac, 0);
	}
}

/* MGMT-WORKER-01 */
void ur_mgmt_serve_port(struct ur_mgmt *m, uint64_t now_ns)
{
	struct ur_mgmt_lid lid;

	pthread_mutex_lock(&m->lock);
	lid = m->lid;
	pthread_mutex_unlock(&m->lock);
	if (lid.lid != m->filtered.lid || lid.lmc != m->filtered.lmc) {
		filter(m, lid);
		pthread_mutex_lock(&m->lock);
		m->filtered = lid;
		pthread_mutex_unlock(&m->lock);
	}
	if (now_ns < m->stats_next_ns)
		return;
	m->stats_next_ns = now_ns + STATS_NS;
	read_driver_counters(m);
}

/* ---- VL tables ---- */

static void set_vl(void *ctx, const struct ur_vl_attr *vl)
{
	struct ur_mgmt *m = ctx;

	pthread_mutex_lock(&m->lock);
	m->vl = *vl;
	m->vl_sets++;
	pthread_mutex_unlock(&m->lock);
}

static uint64_t pending_vl(struct ur_mgmt *m, struct ur_vl_attr *vl)
{
	uint64_t number;

	pthread_mutex_lock(&m->lock);
	number = m->vl_sets == m->vl_done ? 0 : m->vl_sets;
	if (number)
		*vl = m->vl;
	pthread_mutex_unlock(&m->lock);
	return number;
}

static bool get_pending_vl(void *ctx, struct ur_vl_attr *vl)
{
	return pending_vl(ctx, vl) != 0;
}

uint64_t ur_mgmt_begin_vl(struct ur_mgmt *m, struct ur_vl_attr *vl)
{
	return pending_vl(m, vl);
}

void ur_mgmt_end_vl(struct ur_mgmt *m, uint64_t number)
{
	pthread_mutex_lock(&m->lock);
	m->vl_done = number;
	pthread_mutex_unlock(&m->lock);
}

struct ur_engine_mgmt_attr ur_mgmt_attr_of(struct ur_mgmt *m, const struct ur_config *cfg,
					   uint64_t node_guid, uint64_t seed)
{
	static const struct ur_engine_mgmt_ops plain = {.add_counters = add_counters,
							.get_gauges = get_gauges,
							.set_vl = set_vl,
							.pending_vl = get_pending_vl,
							.set_lid = set_lid};
	static const struct ur_engine_mgmt_ops with_eeprom = {.add_counters = add_counters,
							      .get_gauges = get_gauges,
							      .set_vl = set_vl,
							      .pending_vl = get_pending_vl,
							      .set_lid = set_lid,
							      .eeprom_load = eeprom_load,
							      .eeprom_store = eeprom_store};
	struct ur_engine_mgmt_attr a = {
		.config = {.m_key = cfg->management.m_key,
			   .protect = (uint8_t)cfg->management.protect,
			   .lease_s = (uint16_t)cfg->management.lease_s,
			   .open = cfg->management.open,
			   .ask_neighbours = cfg->management.ask_neighbours},
		.node_guid = node_guid,
		.link_bps = ur_cc_link_of(cfg, cfg->port.rate_gbps, 1),
		.seed = seed,
		.ops = m->eeprom ? &with_eeprom : &plain,
		.ctx = m,
	};
	char host[sizeof(a.description)] = "";

	memcpy(a.mac, m->port->mac, sizeof(a.mac));
	if (cfg->management.description[0]) {
		strlcpy(a.description, cfg->management.description, sizeof(a.description));
	} else {
		(void)gethostname(host, sizeof(host) - 1);
		snprintf(a.description, sizeof(a.description), "uroce %.50s", host);
	}
	return a;
}
