/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/wait.h"
#include "api/follow.h"

#define ECN_MASK 3 /* both bits set: CE */

/* ---- path resolution ---- */

struct resolve {
	struct ur_neigh *neigh;
	struct ur_gid dst;
	uint8_t mac[6];
	int rc;
};

static void resolve_on_worker(void *arg, uint64_t now_ns)
{
	struct resolve *r = arg;

	r->rc = ur_neigh_resolve(r->neigh, &r->dst, r->mac, now_ns);
}

/* Waits until the neighbour has answered; EHOSTUNREACH if it does not. */
static int ask(struct ur_device *dev, struct resolve *r)
{
	unsigned idle = 0;

	for (;;) {
		ur_worker_call(dev->workers[0], resolve_on_worker, r);
		if (r->rc != -EAGAIN)
			return r->rc ? EHOSTUNREACH : 0;
		ur_device_wait_a_bit(dev, &idle);
	}
}

/* Asks the kernel instead, on the calling thread. */
static int ask_kernel(struct ur_device *dev, const struct ur_gid *src, struct resolve *r)
{
	unsigned idle = 0;

	for (;;) {
		r->rc = ur_shared_resolve(dev->shared, src, &r->dst, r->mac,
					  ur_clock_ns(&dev->clock));
		if (r->rc != -EAGAIN)
			return r->rc ? EHOSTUNREACH : 0;
		ur_device_wait_a_bit(dev, &idle);
	}
}

static int find_mac(struct ur_device *dev, const struct ur_gid *src, const uint8_t *dmac,
		    struct resolve *r)
{
	if (!dmac)
		return dev->shared ? ask_kernel(dev, src, r) : ask(dev, r);
	memcpy(r->mac, dmac, 6);
	if (dev->shared)
		ur_shared_learn(dev->shared, src, &r->dst, dmac);
	return 0;
}

int ur_device_resolve(struct ur_device *dev, const struct ibv_ah_attr *attr, const uint8_t *dmac,
		      struct ur_qpn lqpn, struct ur_qpn rqpn, struct ur_path_attr *path)
{
	struct resolve r = {.neigh = dev->neigh, .rc = -EIO};
	struct ur_gid src = ur_device_gid(dev, attr->grh.sgid_index);
	int rc;

	if (!attr->is_global || attr->port_num != 1 || ur_device_gid_index(dev, &src) < 0 ||
	    attr->sl > 15 || !ur_device_serves(dev, attr->sl))
		return EINVAL;
	memcpy(r.dst.b, attr->grh.dgid.raw, 16);
	if (ur_gid_is_ipv4(&r.dst) != ur_gid_is_ipv4(&src))
		return EINVAL;
	rc = find_mac(dev, &src, dmac, &r);
	if (rc)
		return rc;
	*path = (struct ur_path_attr){
		.src = src,
		.dst = r.dst,
		.ttl = attr->grh.hop_limit,
		.flow_label = attr->grh.flow_label & 0xfffff,
		.sport = ur_path_sport(attr->grh.flow_label, lqpn, rqpn),
	};
	ur_dscp_map_set_attr(dev, attr, path);
	memcpy(path->smac, dev->port.mac, 6);
	memcpy(path->dmac, r.mac, 6);
	return 0;
}

/* ---- address handles ---- */

/* Under the lock, because the DSCP/PCP map may have changed since the path was resolved. */
static void enlist(struct ur_device *dev, struct ur_api_ah *ah, struct ur_path_attr *path)
{
	pthread_mutex_lock(&dev->lock);
	ur_dscp_map_set_attr(dev, &ah->attr, path);
	ur_path_init(&ah->ah.path, path);
	LIST_INSERT_HEAD(&dev->ahs, ah, link);
	ur_context_count_locked(ah->base.context, &dev->objects.ahs, 1);
	UR_API(pd, ah->ah.verbs.pd)->refs++;
	pthread_mutex_unlock(&dev->lock);
}

static void delist(struct ur_device *dev, struct ur_api_ah *ah)
{
	pthread_mutex_lock(&dev->lock);
	LIST_REMOVE(ah, link);
	ur_context_count_locked(ah->base.context, &dev->objects.ahs, -1);
	UR_API(pd, ah->ah.verbs.pd)->refs--;
	pthread_mutex_unlock(&dev->lock);
}

struct ibv_ah *uroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ur_device *dev = ur_device(pd->context);
	struct ur_api_ah *ah = calloc(1, sizeof(*ah));
	uint32_t generation = ur_follow_generation(dev);
	struct ur_path_attr path;
	int rc;

	if (!ah)
		return NULL;
	rc = ur_device_resolve(dev, attr, NULL, ur_qpn(0), ur_qpn(0), &path);
	if (rc) {
		free(ah);
		errno = rc;
		return NULL;
	}
	ah->ah.verbs = (struct ibv_ah){.context = pd->context, .pd = pd};
	ah->ah.pd = pd->handle;
	ah->ah.sl = attr->sl;
	ah->attr = *attr;
	enlist(dev, ah, &path);
	ur_follow_since(dev, generation);
	return &ah->ah.verbs;
}

struct forget_ah {
	struct ur_engine *engine;
	const struct ur_ah *ah;
};

static void forget_on_worker(void *arg, uint64_t now_ns)
{
	struct forget_ah *f = arg;

	ur_engine_forget_ah(f->engine, f->ah);
}

int uroce_destroy_ah(struct ibv_ah *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_ah *ah = UR_API(ah, base);

	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct forget_ah f = {ur_worker_engine(dev->workers[i]), &ah->ah};

		ur_worker_call(dev->workers[i], forget_on_worker, &f);
	}
	delist(dev, ah);
	free(ah);
	return 0;
}

int uroce_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
			  struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ur_device *dev = ur_device(ctx);
	const uint8_t *b = (const uint8_t *)grh;
	struct ur_gid src, dst;
	bool v6 = b[0] >> 4 == 6;
	int index;

	if (!(wc->wc_flags & IBV_WC_GRH) || port_num != 1)
		return EINVAL;
	if (v6) {
		memcpy(src.b, b + 8, 16);
		memcpy(dst.b, b + 24, 16);
	} else {
		uint32_t s, d;

		memcpy(&s, b + 32, 4);
		memcpy(&d, b + 36, 4);
		src = ur_gid_from_ipv4(__builtin_bswap32(s));
		dst = ur_gid_from_ipv4(__builtin_bswap32(d));
	}
	*attr = (struct ibv_ah_attr){.is_global = 1, .port_num = port_num};
	memcpy(attr->grh.dgid.raw, src.b, 16);
	attr->grh.hop_limit = 64;
	attr->grh.traffic_class = v6 ? (uint8_t)(b[0] << 4 | b[1] >> 4) : b[21];
	/* The datagram's CE mark must not be copied to the answer. */
	if ((attr->grh.traffic_class & ECN_MASK) == ECN_MASK)
		attr->grh.traffic_class &= (uint8_t)~1u;
	/* The answer has the datagram's service level, if an SL has its DSCP. */
	attr->sl = ur_dscp_map_sl_of_tos(dev, attr->grh.traffic_class);
	if (!ur_device_serves(dev, attr->sl))
		attr->sl = 0;
	if (v6)
		attr->grh.flow_label = (uint32_t)(b[1] & 0xf) << 16 | (uint32_t)b[2] << 8 | b[3];
	/* The answer to what was sent to a group comes from an address of the group's family. */
	index = ur_gid_is_multicast(&dst) ? ur_device_family_gid(dev, ur_gid_is_ipv4(&dst))
					  : ur_device_gid_index(dev, &dst);
	if (index < 0)
		return EINVAL;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}
