/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/follow.h"

#include "api/device.h"

#define INTERVAL_NS UINT64_C(100000000)

uint32_t ur_follow_generation(const struct ur_device *dev)
{
	if (dev->shared)
		return ur_shared_generation(dev->shared);
	return atomic_load_explicit(&dev->neigh->generation, memory_order_acquire);
}

void ur_follow_since(struct ur_device *dev, uint32_t generation)
{
	if (generation != ur_follow_generation(dev))
		atomic_store(&dev->followed, generation);
}

void ur_follow_path(const struct ur_device *dev, struct ur_path *path)
{
	struct ur_gid dst;
	uint8_t mac[6];
	bool known;

	if (path->len < UR_PATH_MIN_BYTES)
		return;
	dst = ur_path_destination(path);
	known = dev->shared ? ur_shared_lookup(dev->shared, &dst, mac)
			    : ur_neigh_lookup(dev->neigh, &dst, mac);
	if (known)
		ur_path_set_dmac(path, mac);
}

static void follow_path(struct ur_path *path, const struct ibv_ah_attr *av, void *ctx)
{
	(void)av;
	ur_follow_path(ctx, path);
}

struct follow_call {
	struct ur_device *dev;
	unsigned worker;
};

/*
 * Pauses one worker after the other, by a call from each to the next: the table belongs to worker
 * 0, and all workers use address handles.
 */
static void follow_on_workers(void *arg, uint64_t now_ns)
{
	struct follow_call *c = arg;
	struct ur_device *dev = c->dev;
	struct ur_api_ah *ah;

	if (++c->worker < dev->worker_cnt) {
		ur_worker_call(dev->workers[c->worker], follow_on_workers, c);
		return;
	}
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_engine_for_each_path(ur_worker_engine(dev->workers[i]), follow_path, dev);
	LIST_FOREACH(ah, &dev->ahs, link)
	ur_follow_path(dev, &ah->ah.path);
	ur_cm_update_dscp(ur_engine_cm(ur_worker_engine(dev->workers[0])));
}

/* NEIGH-FOLLOW-01 */
void ur_follow_neighbours(struct ur_device *dev, uint64_t now_ns)
{
	uint32_t generation = ur_follow_generation(dev);
	struct follow_call c = {dev, 0};

	if (generation == atomic_load(&dev->followed) || now_ns < dev->follow_next_ns)
		return;
	/* If exit() has interrupted the holder of the lock, it waits for this thread. */
	if (pthread_mutex_trylock(&dev->lock))
		return;
	dev->follow_next_ns = now_ns + INTERVAL_NS;
	atomic_store(&dev->followed, generation);
	ur_worker_call(dev->workers[0], follow_on_workers, &c);
	pthread_mutex_unlock(&dev->lock);
}
