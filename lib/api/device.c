/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include "api/device.h"
#include "api/progress.h"
#include "api/pacing_attr.h"
#include "api/share.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "edge/mtu.h"
#include "edge/preflight.h"
#include "wire/assert.h"

#define TIME_WAIT_NS	 UINT64_C(1000000000)
#define IDLE_SPINS	 2000
#define IDLE_SLEEP_NS	 20000
#define NUMBERS_MAX	 256
#define BUSY_PATIENCE_MS 5000
#define BUSY_STEP_MS	 50
#define IMPAIR_HOLD	 1024 /* packets that [impair] keeps, of a direction */
#define LINK_HOLD	 4096 /* the same with a slow link */
#define STATUS_LIFE	 4    /* of what a peer said of its pool, in times fallback_ms */

/* Open endpoints of the process. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ur_device) devices = LIST_HEAD_INITIALIZER(devices);
static bool numbers[NUMBERS_MAX]; /* those that are taken */
static _Atomic bool exiting;
static pid_t owner; /* the process that opened them: a forked child has none of their threads */

uint64_t ur_device_random(void)
{
	uint64_t r;

	arc4random_buf(&r, sizeof(r));
	return r;
}

uint64_t ur_device_guid(const struct ur_device *dev)
{
	const uint8_t *m = dev->port.mac;

	return (uint64_t)(m[0] ^ 2) << 56 | (uint64_t)m[1] << 48 | (uint64_t)m[2] << 40 |
	       UINT64_C(0xfffe) << 24 | (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
}

void ur_device_count(struct ur_device *dev, uint32_t *count, int by)
{
	pthread_mutex_lock(&dev->lock);
	*count += (uint32_t)by;
	pthread_mutex_unlock(&dev->lock);
}

unsigned ur_device_progress(struct ur_device *dev)
{
	unsigned n = 0;

	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			n += ur_worker_poll(dev->workers[i]);
	return n;
}

static bool sleep_ns(long ns)
{
	struct timespec ts = {.tv_nsec = ns};

	return nanosleep(&ts, NULL) == 0;
}

bool ur_device_wait_a_bit(struct ur_device *dev, unsigned *idle)
{
	if (ur_device_progress(dev))
		*idle = 0;
	else if (dev->dedicated || ++*idle > IDLE_SPINS)
		return sleep_ns(IDLE_SLEEP_NS);
	return true;
}

/* Another thread may be faster, so asking first and reading then might block. */
static bool take_count(int fd)
{
	uint64_t one;
	struct iovec to = {&one, sizeof(one)};

	return preadv2(fd, &to, 1, -1, RWF_NOWAIT) == sizeof(one);
}

unsigned ur_device_take_counts(int fd, unsigned cnt)
{
	unsigned n = 0;

	while (n < cnt && take_count(fd))
		n++;
	return n;
}

int ur_device_wait_count(struct ur_device *dev, int fd)
{
	unsigned idle = 0;
	uint64_t one;

	if (!dev->dedicated && (fcntl(fd, F_GETFL) & O_NONBLOCK))
		ur_device_progress(dev);
	else
		while (!dev->dedicated) {
			if (take_count(fd))
				return 0;
			if (!ur_device_wait_a_bit(dev, &idle)) {
				errno = EINTR;
				return -1;
			}
		}
	return read(fd, &one, sizeof(one)) < 0 ? -1 : 0;
}

bool ur_device_waiter_enter(struct ur_waiters *w, pthread_mutex_t *lock)
{
	bool open;

	pthread_mutex_lock(lock);
	open = !w->closing;
	w->cnt += open;
	pthread_mutex_unlock(lock);
	return open;
}

bool ur_device_waiter_leave(struct ur_waiters *w, pthread_mutex_t *lock)
{
	bool closing;

	pthread_mutex_lock(lock);
	closing = w->closing;
	/* Under the lock: the object goes when the last one has let go of that. */
	if (!--w->cnt && closing)
		pthread_cond_signal(&w->left);
	pthread_mutex_unlock(lock);
	return closing;
}

void ur_device_waiters_close(struct ur_waiters *w, pthread_mutex_t *lock, int fd)
{
	uint64_t wakes;

	pthread_mutex_lock(lock);
	w->closing = true;
	wakes = w->cnt; /* one count wakes one reader, any number of counts every poller */
	if (wakes && write(fd, &wakes, sizeof(wakes)) < 0)
		UR_ASSERT(errno == EAGAIN);
	while (w->cnt)
		pthread_cond_wait(&w->left, lock);
	pthread_mutex_unlock(lock);
}

void ur_device_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked,
			 uint32_t got)
{
	pthread_mutex_lock(lock);
	while (*acked != got)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
}

static void nothing(void *arg, uint64_t now_ns)
{
}

void ur_device_quiesce(struct ur_device *dev)
{
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_call(dev->workers[i], nothing, NULL);
}

/* ---- open ---- */

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

static int load(struct ur_device *dev, const struct uroce_open_attr *attr, char *err, size_t cap)
{
	struct complaint c = {err, cap};
	int rc;

	rc = ur_config_load(attr->config, &dev->cfg, err, cap);
	for (const char *const *s = attr->set; !rc && s && *s; s++)
		rc = ur_config_set_arg(&dev->cfg, *s, err, cap);
	if (rc)
		return rc;
	ur_config_share(&dev->cfg);
	rc = ur_config_check(&dev->cfg, err, cap);
	if (rc)
		return rc;
	err[0] = '\0';
	return ur_preflight(&dev->cfg, complain, &c) ? -ENODEV : 0;
}

static void add_gid(struct ur_device *dev, struct ur_neigh_attr *n, const struct ur_gid *gid,
		    uint8_t len)
{
	dev->gids[dev->gid_cnt++] = *gid;
	dev->taken[dev->taken_cnt++] = *gid;
	n->addr[n->addr_cnt].gid = *gid;
	n->addr[n->addr_cnt++].prefix_len = len;
}

static bool is_set(const struct ur_gid *g)
{
	static const struct ur_gid none;

	return !ur_gid_eq(g, &none);
}

/* Of an endpoint that shares an interface it stays empty: the kernel has the neighbours. */
static void make_neigh(struct ur_device *dev)
{
	struct ur_neigh_attr a = {0};
	struct ur_gid ll = ur_neigh_link_local(dev->port.mac);

	memcpy(a.mac, dev->port.mac, 6);
	if (dev->shared) {
		ur_neigh_init(dev->neigh, &a);
		return;
	}
	a.has_vlan = dev->cfg.address.vlan != 0;
	a.vlan_tci = (uint16_t)dev->cfg.address.vlan;
	if (dev->cfg.address.ipv4.len)
		add_gid(dev, &a, &dev->cfg.address.ipv4.addr, dev->cfg.address.ipv4.len);
	if (dev->cfg.address.ipv6.len)
		add_gid(dev, &a, &dev->cfg.address.ipv6.addr, dev->cfg.address.ipv6.len);
	if (dev->cfg.address.link_local)
		add_gid(dev, &a, &ll, 64);
	a.gateway4 = dev->cfg.address.gateway4;
	a.has_gateway4 = is_set(&a.gateway4);
	a.gateway6 = dev->cfg.address.gateway6;
	a.has_gateway6 = is_set(&a.gateway6);
	ur_neigh_init(dev->neigh, &a);
	for (uint32_t i = 0; i < dev->cfg.address.neighbors.cnt; i++)
		ur_neigh_add_static(dev->neigh, &dev->cfg.address.neighbors.entry[i].addr,
				    dev->cfg.address.neighbors.entry[i].mac, 0);
	ur_mld_join(dev->neigh, ur_clock_ns(&dev->clock));
	ur_neigh_announce(dev->neigh);
}

static struct ur_impair_config impair_of(const struct ur_device *dev,
					 const struct ur_config_impair_dir *d)
{
	return (struct ur_impair_config){
		.seed = dev->cfg.impair.seed,
		.loss = ur_impair_chance(d->loss),
		.burst = ur_impair_chance(d->burst),
		.burst_packets = d->burst_packets,
		.burst_loss = ur_impair_chance(d->burst_loss),
		.duplicate = ur_impair_chance(d->duplicate),
		.reorder = ur_impair_chance(d->reorder),
		.corrupt = ur_impair_chance(d->corrupt),
		.ecn = ur_impair_chance(d->ecn),
		.reorder_gap = d->reorder_packets,
		.reorder_hold_ns = d->reorder_us * UINT64_C(1000),
		.delay_ns = d->delay_us * UINT64_C(1000),
		.jitter_ns = d->jitter_us * UINT64_C(1000),
		.link_gbps = d->rate_gbps / dev->worker_cnt,
		.link_queue_bytes = d->queue_kb << 10,
		.link_ecn_bytes = d->ecn_kb << 10,
		.hold_max = d->rate_gbps > 0 ? LINK_HOLD : IMPAIR_HOLD,
	};
}

static int open_port(struct ur_device *dev, char *err, size_t cap)
{
	struct ur_impair_config rx = impair_of(dev, &dev->cfg.impair.rx);
	struct ur_impair_config tx = impair_of(dev, &dev->cfg.impair.tx);
	static const uint8_t no_mac[6];
	struct ur_port_attr a = {
		.queue_cnt = dev->eal.queue_cnt,
		.rx_desc = (uint16_t)dev->cfg.port.rx_desc,
		.tx_desc = (uint16_t)dev->cfg.port.tx_desc,
		.mtu = (uint16_t)dev->cfg.port.mtu,
		.mbuf_cnt = dev->cfg.port.mbufs,
		.promiscuous = dev->cfg.port.promiscuous,
		.shared_rx = dev->cfg.port.zero_copy,
		.has_mac = memcmp(dev->cfg.address.mac, no_mac, 6) != 0,
		.mbuf_extra_cnt = 0,
	};
	int rc;

	if (ur_impair_active(&rx))
		a.mbuf_extra_cnt += 2 * rx.hold_max;
	if (ur_impair_active(&tx))
		a.mbuf_extra_cnt += 2 * tx.hold_max;
	memcpy(a.mac, dev->cfg.address.mac, 6);
	rc = ur_port_open(&dev->port, dev->eal.id, &a, err, cap);
	if (rc)
		return rc;
	if (dev->port.max_payload < 256) {
		snprintf(err, cap,
			 "port %s: MTU %u is too small for RoCEv2; it must be at least %u",
			 dev->port.name, dev->port.mtu, 256 + UR_ROCE_OVERHEAD_BYTES);
		return -EINVAL;
	}
	dev->mtu_shift = (uint8_t)__builtin_ctz(dev->port.max_payload);
	if (dev->cfg.transport.path_mtu) {
		uint8_t want = (uint8_t)__builtin_ctz(dev->cfg.transport.path_mtu);

		if (want > dev->mtu_shift) {
			snprintf(err, cap,
				 "port %s: path_mtu %u does not fit MTU %u; at most %u does",
				 dev->port.name, dev->cfg.transport.path_mtu, dev->port.mtu,
				 dev->port.max_payload);
			return -EINVAL;
		}
		dev->mtu_shift = want;
	}
	return 0;
}

static uint32_t pow2_at_most(uint32_t n)
{
	return 1u << (31 - __builtin_clz(n));
}

static int make_workers(struct ur_device *dev, char *err, size_t cap)
{
	uint32_t window =
		pow2_at_most(dev->cfg.transport.window < 4 ? 4 : dev->cfg.transport.window);
	struct ur_pacing_attr pacing;
	struct ur_adm_attr admission = {
		.mode = (enum ur_adm_mode)dev->cfg.admission.mode,
		.fallback_ns = dev->cfg.admission.fallback_ms * UINT64_C(1000000),
		.recall_ns = dev->cfg.admission.recall_us * UINT64_C(1000),
		.mark_life_ns = dev->cfg.admission.mark_ms * UINT64_C(1000000),
		.status_ns = dev->cfg.admission.fallback_ms * STATUS_LIFE * UINT64_C(1000000),
	};
	struct ur_worker_attr a = {
		.cnt = dev->worker_cnt,
		.peers = dev->workers,
		.port = &dev->port,
		.clock = &dev->clock,
		.rx_impair = impair_of(dev, &dev->cfg.impair.rx),
		.tx_impair = impair_of(dev, &dev->cfg.impair.tx),
		.capture = &dev->capture_hook,
		.gids = dev->taken,
		.gid_cnt = dev->taken_cnt,
		.vid = (uint16_t)dev->cfg.address.vlan,
		.dedicated = dev->dedicated,
		.rate_gbps = dev->cfg.port.rate_gbps / dev->worker_cnt,
		.attach_payload =
			dev->port.multi_seg_tx && dev->port.copies_tx && !dev->cfg.port.zero_copy,
		.engine =
			{
				.limits = {.max_qp = dev->cfg.transport.max_qp,
					   .workers = dev->worker_cnt,
					   .cm = {.max_ids = dev->cfg.transport.max_qp *
								     dev->worker_cnt +
							     16384,
						  .max_listeners = 512,
						  .max_pending = UR_CM_API_PENDING,
						  .max_sidr = UR_CM_API_SIDR,
						  .max_per_peer = UR_CM_API_PER_PEER,
						  .max_tx = 8192},
					   .reorder_slots = dev->cfg.transport.reorder_slots,
					   .reorder_slot_bytes = (uint16_t)(1u << dev->mtu_shift),
					   .reorder_contexts = dev->cfg.transport.reorder_contexts,
					   .read_gaps = dev->cfg.transport.read_gaps,
					   .ooo_contexts = dev->cfg.transport.ooo_contexts,
					   .rtx_contexts = dev->cfg.transport.recovery_contexts,
					   .spray_contexts = dev->cfg.transport.spray_contexts,
					   .destinations = dev->cfg.pacing.mode == UR_PACING_NONE
								   ? 0
								   : dev->cfg.pacing.destinations,
					   .admission = dev->cfg.admission.mode == UR_ADM_PLAIN
								? 0
								: dev->cfg.admission.peers,
					   .max_sge = (uint16_t)dev->cfg.transport.max_sge},
				.mem = dev->mem,
				.sink = ur_device_sink(dev),
				.time_wait_ns = TIME_WAIT_NS,
				.window = window,
				.ackreq_every = dev->cfg.transport.ack_coalesce,
				.mtu_shift = dev->mtu_shift,
				.pacing = &pacing,
				.admission = &admission,
				.qos = &dev->qos.engine,
			},
	};

	ur_qos_of_config(&dev->cfg, dev->mtu_shift, &dev->qos);
	dev->served_sls = ur_qos_served_sls(&dev->qos.engine);
	ur_sl_marks_publish(&dev->marks, &dev->qos.marks);
	for (uint16_t i = 0; i < dev->worker_cnt; i++) {
		a.idx = a.engine.limits.worker = i;
		a.neigh = i || dev->shared ? NULL : dev->neigh;
		a.engine.random = ur_device_random();
		pacing = ur_pacing_attr_of(&dev->cfg, dev->worker_cnt, ur_device_random());
		if (!i)
			a.engine.cm = ur_cm_api_attr(dev);
		a.lcore = dev->eal.lcore[i];
		dev->workers[i] = ur_worker_new(&a, err, cap);
		if (!dev->workers[i])
			return -ENOMEM;
	}
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (ur_worker_start(dev->workers[i])) {
			snprintf(err, cap, "worker %u could not be started on its lcore", i);
			return -EBUSY;
		}
	return 0;
}

/* No thread of ours touches the port after this. */
static void stop_threads(struct ur_device *dev)
{
	ur_progress_stop(dev, atomic_load(&exiting));
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (dev->workers[i])
			ur_worker_stop(dev->workers[i]);
}

/* exit() without uroce_close(): the ports are closed by an older handler, after this one. */
static void stop_all(void)
{
	struct ur_device *dev;

	atomic_store(&exiting, true);
	/* EDGE-FORK-01 */
	if (getpid() != owner)
		return;
	pthread_mutex_lock(&devices_lock);
	LIST_FOREACH(dev, &devices, link)
	stop_threads(dev);
	pthread_mutex_unlock(&devices_lock);
}

static void enlist(struct ur_device *dev)
{
	static bool registered;

	pthread_mutex_lock(&devices_lock);
	if (!registered)
		registered = atexit(stop_all) == 0;
	owner = getpid();
	LIST_INSERT_HEAD(&devices, dev, link);
	pthread_mutex_unlock(&devices_lock);
}

/* The lowest free number, so that whoever opens and closes for ever uses few names of telemetry. */
static void take_number(struct ur_device *dev)
{
	pthread_mutex_lock(&devices_lock);
	while (dev->number < NUMBERS_MAX - 1 && numbers[dev->number])
		dev->number++;
	numbers[dev->number] = true;
	pthread_mutex_unlock(&devices_lock);
}

static void tear_down(struct ur_device *dev)
{
	/* First: telemetry's thread asks the workers. */
	ur_stats_unregister(dev);
	stop_threads(dev);
	pthread_mutex_lock(&devices_lock);
	if (dev->port.open)
		LIST_REMOVE(dev, link);
	pthread_mutex_unlock(&devices_lock);
	if (atomic_load(&dev->capture_hook.current))
		uroce_capture_stop(&dev->ctx, NULL);
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_free(dev->workers[i]);
	ur_cm_api_free(dev);
	ur_port_close(&dev->port);
	ur_share_close(dev);
	if (dev->eal.queue_cnt)
		ur_eal_release(&dev->eal);
	ur_port_reap(); /* a ring's last frames are back */
	pthread_mutex_lock(&devices_lock);
	numbers[dev->number] = false;
	pthread_mutex_unlock(&devices_lock);
	if (dev->ctx.async_fd >= 0)
		close(dev->ctx.async_fd);
	free(dev->mem);
	free(dev->neigh);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->gid_lock);
	ur_slab_destroy(&dev->slab);
	pthread_mutex_destroy(&dev->async_lock);
	free(dev);
}

static uint16_t worker_cnt_of(const struct ur_device *dev)
{
	/* A QPN names its worker by a power of two of them. */
	return (uint16_t)pow2_at_most(dev->port.queue_cnt > UR_WORKERS_MAX ? UR_WORKERS_MAX
									   : dev->port.queue_cnt);
}

/* EDGE-REOPEN-01. The kernel lets go of a dead process's AF_XDP socket some time after it. */
static int open_way(struct ur_device *dev, char *err, size_t cap)
{
	for (unsigned ms = 0;; ms += BUSY_STEP_MS) {
		int rc = ur_eal_init(&dev->cfg, &dev->eal, err, cap);

		if (rc) {
			dev->eal.queue_cnt = 0;
			return rc;
		}
		rc = open_port(dev, err, cap);
		if (rc != -EBUSY || ms >= BUSY_PATIENCE_MS)
			return rc;
		ur_eal_release(&dev->eal);
		sleep_ns(BUSY_STEP_MS * 1000000);
	}
}

static int start(struct ur_device *dev, const struct uroce_open_attr *attr, char *err, size_t cap)
{
	int rc = load(dev, attr, err, cap);
	void *mem;

	if (rc)
		return rc;
	rc = ur_share_open(dev, err, cap);
	if (!rc)
		rc = open_way(dev, err, cap);
	if (dev->port.open)
		enlist(dev);
	if (!rc)
		rc = ur_share_hold(dev, err, cap);
	if (rc)
		return rc;
	ur_clock_start(&dev->clock);
	dev->dedicated = dev->eal.dedicated;
	mem = aligned_alloc(64, (ur_mem_size(dev->cfg.transport.max_mr) + 63) & ~(size_t)63);
	dev->mem = mem ? ur_mem_init(mem, dev->cfg.transport.max_mr) : NULL;
	dev->neigh = malloc(sizeof(*dev->neigh));
	if (!dev->mem || !dev->neigh || ur_cm_api_new(dev)) {
		snprintf(err, cap, "out of memory");
		return -ENOMEM;
	}
	make_neigh(dev);
	dev->worker_cnt = worker_cnt_of(dev);
	dev->ctx.num_comp_vectors = dev->worker_cnt;
	rc = make_workers(dev, err, cap);
	if (rc)
		return rc;
	rc = -ur_progress_start(dev);
	if (rc) {
		snprintf(err, cap, "no thread could be started: %s", strerror(-rc));
		return rc;
	}
	ur_stats_register(dev);
	if (dev->cfg.capture.file[0])
		rc = uroce_capture_start(&dev->ctx, dev->cfg.capture.file, dev->cfg.capture.filter,
					 dev->cfg.capture.max_mb * UINT64_C(1048576), err, cap);
	return rc > 0 ? -rc : rc;
}

struct ibv_context *uroce_open(const struct uroce_open_attr *attr, char *err, size_t err_bytes)
{
	struct ur_device *dev = aligned_alloc(64, (sizeof(*dev) + 63) & ~(size_t)63);
	int rc;

	if (!dev) {
		snprintf(err, err_bytes, "out of memory");
		errno = ENOMEM;
		return NULL;
	}
	memset(dev, 0, sizeof(*dev));
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->gid_lock, NULL);
	ur_slab_init(&dev->slab);
	pthread_mutex_init(&dev->async_lock, NULL);
	TAILQ_INIT(&dev->asyncs);
	take_number(dev);
	snprintf(dev->ibdev.name, sizeof(dev->ibdev.name), "uroce%u", dev->number);
	dev->ibdev.node_type = IBV_NODE_CA;
	dev->ibdev.transport_type = IBV_TRANSPORT_IB;
	dev->ctx.device = &dev->ibdev;
	dev->ctx.cmd_fd = -1;
	dev->ctx.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	dev->ctx.ops.poll_cq = uroce_poll_cq;
	dev->ctx.ops.req_notify_cq = uroce_req_notify_cq;
	dev->ctx.ops.post_send = uroce_post_send;
	dev->ctx.ops.post_recv = uroce_post_recv;
	dev->ctx.ops.post_srq_recv = uroce_post_srq_recv;
	if (dev->ctx.async_fd < 0) {
		rc = -errno;
		snprintf(err, err_bytes, "no event descriptor: %s", strerror(-rc));
	} else {
		rc = start(dev, attr, err, err_bytes);
	}
	if (rc) {
		tear_down(dev);
		errno = -rc;
		return NULL;
	}
	return &dev->ctx;
}

int uroce_close(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	const struct uroce_objects *o = &dev->objects;
	bool busy;

	/* The port, its threads and its peers' connections are the parent's. */
	if (getpid() != owner)
		return 0;
	pthread_mutex_lock(&dev->lock);
	busy = o->pds || o->mrs || o->cqs || o->srqs || o->qps || o->ahs || o->channels ||
	       o->cm_ids;
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	/* By a destructor: the port is gone already and the process soon will be. */
	if (!atomic_load(&exiting))
		tear_down(dev);
	return 0;
}

void uroce_config_help(FILE *out)
{
	ur_config_help(out);
}

unsigned uroce_progress(struct ibv_context *ctx)
{
	return ur_device_progress(ur_device(ctx));
}

bool uroce_is_inline(const struct ibv_context *ctx)
{
	return !((const struct ur_device *)ctx)->dedicated;
}

/* ---- queries ---- */

int uroce_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	struct ur_device *dev = ur_device(ctx);

	*a = (struct ibv_device_attr){
		.fw_ver = "uroce",
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.max_qp = (int)(dev->cfg.transport.max_qp * dev->worker_cnt),
		.max_qp_wr = 32768,
		.device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID,
		.max_sge = (int)dev->cfg.transport.max_sge,
		.max_sge_rd = (int)dev->cfg.transport.max_sge,
		.max_cq = (int)dev->cfg.transport.max_cq,
		.max_cqe = 1 << 20,
		.max_mr = (int)dev->cfg.transport.max_mr,
		.max_pd = (int)dev->cfg.transport.max_pd,
		.max_qp_rd_atom = (int)dev->cfg.transport.max_rd_atomic,
		.max_qp_init_rd_atom = (int)dev->cfg.transport.max_rd_atomic,
		.atomic_cap = IBV_ATOMIC_GLOB,
		.max_ah = 1 << 20,
		.max_srq = (int)dev->cfg.transport.max_srq,
		.max_srq_wr = 32768,
		.max_srq_sge = (int)dev->cfg.transport.max_sge,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	a->node_guid = htobe64(ur_device_guid(dev));
	a->sys_image_guid = a->node_guid;
	return 0;
}

static bool is_up(struct ur_device *dev)
{
	return dev->shared ? ur_shared_is_up(dev->shared) : ur_port_link_up(&dev->port);
}

/* A shared interface may get more addresses. */
static unsigned gid_table_len(const struct ur_device *dev)
{
	return dev->shared ? UR_GIDS_MAX : dev->gid_cnt;
}

int uroce_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *a)
{
	struct ur_device *dev = ur_device(ctx);

	if (port_num != 1)
		return EINVAL;
	*a = (struct ibv_port_attr){
		.state = is_up(dev) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = (enum ibv_mtu)(dev->mtu_shift - 7),
		.gid_tbl_len = (int)gid_table_len(dev),
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

int uroce_query_gid(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ur_device *dev = ur_device(ctx);

	struct ur_gid g;

	if (port_num != 1 || index < 0 || (unsigned)index >= gid_table_len(dev))
		return EINVAL;
	g = ur_device_gid(dev, (unsigned)index);
	memcpy(gid->raw, g.b, 16);
	return 0;
}

int uroce_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index, __be16 *pkey)
{
	if (port_num != 1 || index != 0)
		return EINVAL;
	*pkey = 0xffff;
	return 0;
}

struct count_call {
	struct ur_worker *worker;
	struct uroce_objects *objects;
};

static void count_on_worker(void *arg, uint64_t now_ns)
{
	struct count_call *c = arg;
	struct ur_engine *e = ur_worker_engine(c->worker);

	c->objects->qps_time_wait += ur_engine_objects(e, now_ns).time_wait;
	if (ur_engine_cm(e))
		c->objects->cm_connections = ur_cm_ids_in_use(ur_engine_cm(e));
}

int uroce_query_objects(struct ibv_context *ctx, struct uroce_objects *objects)
{
	struct ur_device *dev = ur_device(ctx);

	pthread_mutex_lock(&dev->lock);
	*objects = dev->objects;
	pthread_mutex_unlock(&dev->lock);
	objects->qps_time_wait = 0;
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct count_call c = {dev->workers[i], objects};

		ur_worker_call(dev->workers[i], count_on_worker, &c);
	}
	return 0;
}
