/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include "api/device.h"
#include "api/progress.h"
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

#include "dpdk/assemble.h"
#include "edge/config_attr.h"
#include "wire/assert.h"

#define IDLE_SPINS    2000
#define IDLE_SLEEP_NS 20000
#define NUMBERS_MAX   256

/* Open endpoints of the process. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ur_device) devices = LIST_HEAD_INITIALIZER(devices);
static bool numbers[NUMBERS_MAX]; /* numbers in use */
static _Atomic bool exiting;
static pid_t owner; /* the process that opened them; a forked child does not have their threads */

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

void ur_device_close_bursts(struct ur_device *dev)
{
	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			ur_worker_close_burst(dev->workers[i]);
}

void ur_device_stop_gathering(struct ur_device *dev)
{
	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			ur_worker_stop_gathering(dev->workers[i]);
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

/* Does not block. Polling before a blocking read would not do: another thread may take the count. */
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
	/* Under the lock, because the object is freed once the last waiter has released it. */
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
	wakes = w->cnt; /* one count per reader; a single one wakes all pollers */
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

/* For a shared interface the table stays empty, because the kernel has the neighbours. */
static void make_neigh(struct ur_device *dev)
{
	struct ur_neigh_attr a = {0};

	if (dev->shared) {
		memcpy(a.mac, dev->port.mac, 6);
		ur_neigh_init(dev->neigh, &a);
		return;
	}
	a = ur_neigh_attr_of(&dev->cfg, dev->port.mac);
	for (unsigned i = 0; i < a.addr_cnt; i++)
		dev->gids[i] = dev->taken[i] = a.addr[i].gid;
	dev->gid_cnt = dev->taken_cnt = a.addr_cnt;
	ur_neigh_open(dev->neigh, &a, &dev->cfg, ur_clock_ns(&dev->clock));
}

static int make_workers(struct ur_device *dev, char *err, size_t cap)
{
	struct ur_assembly a = {
		.cfg = &dev->cfg,
		.eal = &dev->eal,
		.port = &dev->port,
		.clock = &dev->clock,
		.neigh = dev->shared ? NULL : dev->neigh,
		.mem = dev->mem,
		.capture = &dev->capture_hook,
		.gids = dev->taken,
		.gid_cnt = dev->taken_cnt,
		.worker_cnt = dev->worker_cnt,
		.mtu_shift = dev->mtu_shift,
		.sink = ur_device_sink(dev),
		.cm = ur_cm_api_attr(dev),
		.cm_limits = {.max_listeners = 512,
			      .max_pending = UR_CM_API_PENDING,
			      .max_sidr = UR_CM_API_SIDR,
			      .max_per_peer = UR_CM_API_PER_PEER,
			      .max_tx = 8192},
		.qos = &dev->qos.engine,
	};

	ur_qos_of_config(&dev->cfg, dev->mtu_shift, &dev->qos);
	dev->served_sls = ur_qos_served_sls(&dev->qos.engine);
	ur_dscp_map_publish(&dev->dscp_map, &dev->qos.dscp_map);
	if (dev->cfg.management.agent) {
		int rc = ur_mgmt_open(&dev->mgmt, &dev->cfg, &dev->port, dev->workers,
				      dev->worker_cnt, err, cap);

		if (rc)
			return rc;
		a.mgmt = &dev->mgmt;
	}
	return ur_assemble_workers(&a, dev->workers, err, cap);
}

/* After this no thread of the endpoint uses the port. */
static void stop_threads(struct ur_device *dev)
{
	ur_progress_stop(dev, atomic_load(&exiting));
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (dev->workers[i])
			ur_worker_stop(dev->workers[i]);
}

/* For exit() without uroce_close(). An older exit handler closes the ports after this one. */
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

/* Takes the lowest free number, so that repeated opening and closing needs few telemetry names. */
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
	/* First, because telemetry's thread calls the workers. */
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
	ur_mgmt_close(&dev->mgmt);
	ur_port_close(&dev->port);
	ur_share_close(dev);
	if (dev->eal.queue_cnt)
		ur_eal_release(&dev->eal);
	ur_port_reap(); /* the last frames of a ring have been returned */
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

static int start(struct ur_device *dev, const struct uroce_open_attr *attr, char *err, size_t cap)
{
	int rc = ur_assemble_config(&dev->cfg, attr->config, attr->set, err, cap);
	void *mem;

	if (rc)
		return rc;
	ur_share_choose_driver(dev);
	rc = ur_share_open(dev, err, cap);
	if (!rc)
		rc = ur_assemble_port(&dev->cfg, &dev->eal, &dev->port, &dev->mtu_shift, err, cap);
	if (rc && ur_share_fall_back(dev, rc, err))
		rc = ur_assemble_port(&dev->cfg, &dev->eal, &dev->port, &dev->mtu_shift, err, cap);
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
	dev->worker_cnt = ur_assemble_worker_cnt(&dev->port);
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

	/* The port, its threads and the connections belong to the parent. */
	if (getpid() != owner)
		return 0;
	pthread_mutex_lock(&dev->lock);
	busy = o->pds || o->mrs || o->cqs || o->srqs || o->qps || o->ahs || o->channels ||
	       o->cm_ids;
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	/* In a destructor during exit() the port is closed already, and the process ends soon. */
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

/* A shared interface may get more addresses later. */
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
