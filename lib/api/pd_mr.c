/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"
#include "edge/random.h"

/* One more domain of either kind, without a handle. NULL and errno: ENOMEM. */
static struct ur_api_pd *new_pd(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_api_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pthread_mutex_lock(&dev->lock);
	if (dev->objects.pds >= dev->cfg.transport.max_pd) {
		pthread_mutex_unlock(&dev->lock);
		free(pd);
		errno = ENOMEM;
		return NULL;
	}
	ur_context_count_locked(ctx, &dev->objects.pds, 1);
	pthread_mutex_unlock(&dev->lock);
	pd->base.context = ctx;
	return pd;
}

struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx)
{
	/* One counter per process, so that objects of different endpoints are in different domains. */
	static _Atomic uint32_t last;
	struct ur_api_pd *pd = new_pd(ctx);

	if (!pd)
		return NULL;
	/* 0 is never a handle. A number is not used again for a long time. */
	do
		pd->base.handle = atomic_fetch_add(&last, 1) + 1;
	while (!pd->base.handle);
	return &pd->base;
}

/* TD-PARENT-01: with the handle of its protection domain it gives the same access, and denies the same. */
struct ibv_pd *uroce_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_api_pd *pd, *of = attr->pd ? UR_API(pd, attr->pd) : NULL;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!of || of->protection || of->base.context != ctx ||
	    (attr->td && attr->td->context != ctx)) {
		errno = EINVAL;
		return NULL;
	}
	pd = new_pd(ctx);
	if (!pd)
		return NULL;
	pd->base.handle = of->base.handle;
	pd->protection = of;
	pd->td = attr->td ? UR_API(td, attr->td) : NULL;
	pthread_mutex_lock(&dev->lock);
	of->refs++;
	if (pd->td)
		pd->td->refs++;
	pthread_mutex_unlock(&dev->lock);
	return &pd->base;
}

int uroce_dealloc_pd(struct ibv_pd *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_pd *pd = UR_API(pd, base);
	bool busy;

	pthread_mutex_lock(&dev->lock);
	busy = pd->refs != 0;
	if (!busy)
		ur_context_count_locked(base->context, &dev->objects.pds, -1);
	if (!busy && pd->protection)
		pd->protection->refs--;
	if (!busy && pd->td)
		pd->td->refs--;
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	free(pd);
	return 0;
}

/* The access bits that the table handles; IBV_ACCESS_ZERO_BASED only changes the addresses. */
_Static_assert(UROCE_ACCESS_REMOTE_INVALIDATE == UR_ACCESS_REMOTE_INVALIDATE, "passed through");

static uint32_t rights(int access)
{
	return (uint32_t)access & ~(uint32_t)IBV_ACCESS_ZERO_BASED;
}

struct ibv_mr *uroce_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access)
{
	struct ur_device *dev = ur_device(pd->context);
	struct ur_api_mr *mr = calloc(1, sizeof(*mr));
	uint32_t key;
	int rc;

	if (!mr)
		return NULL;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	pthread_mutex_lock(&dev->lock);
	rc = ur_mem_register(dev->mem, pd->handle, addr, length, iova, rights(access),
			     ur_random64(), &key);
	if (!rc) {
		ur_context_count_locked(pd->context, &dev->objects.mrs, 1);
		mr->base.lkey = key;
		LIST_INSERT_HEAD(&ur_context(pd->context)->mrs, mr, link);
		UR_API(pd, pd)->refs++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (rc) {
		free(mr);
		errno = -rc;
		return NULL;
	}
	mr->base = (struct ibv_mr){.context = pd->context,
				   .pd = pd,
				   .addr = addr,
				   .length = length,
				   .lkey = key,
				   .rkey = key};
	mr->iova = iova;
	mr->access = access;
	return &mr->base;
}

struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return uroce_reg_mr_iova(pd, addr, length, (uintptr_t)addr, access);
}

#define REREG_FLAGS                                                                                \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/*
 * The properties of the region after the change. Its iova is the address of its memory, unless the
 * flags say otherwise.
 */
static struct ur_api_mr changed(const struct ur_api_mr *mr, int flags, struct ibv_pd *pd,
				void *addr, size_t length, int access)
{
	struct ur_api_mr to = *mr;

	if (flags & IBV_REREG_MR_CHANGE_PD)
		to.base.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		to.base.addr = addr;
		to.base.length = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		to.access = access;
	if (to.access & IBV_ACCESS_ZERO_BASED)
		to.iova = 0;
	else if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) || (mr->access & IBV_ACCESS_ZERO_BASED))
		to.iova = (uintptr_t)to.base.addr;
	return to;
}

/*
 * No worker touches the region any more. EBUSY, and nothing has changed: windows are bound to it. A worker that began a
 * copy through a window, which another one unbinds at this moment, has ended it after the quiesce behind the count; a
 * window that is bound at this moment is seen after the first one, and what it has let begin ends with the second.
 */
static int stop_use(struct ur_device *dev, uint32_t key)
{
	int rc = ur_mem_suspend(dev->mem, key);

	for (unsigned i = 0; !rc && i < 2; i++) {
		if (ur_mem_keep_bound(dev->mem, key))
			return -EBUSY;
		ur_device_quiesce(dev);
	}
	return rc;
}

int uroce_rereg_mr(struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_mr *mr = UR_API(mr, base), to;
	uint32_t key;
	int rc;

	if ((flags & ~REREG_FLAGS) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != base->context)))
		return EINVAL;
	to = changed(mr, flags, pd, addr, length, access);
	/* Checked first, so that a refused change leaves the region unchanged. */
	if (!ur_mem_sane(to.base.pd->handle, to.base.addr, to.base.length, to.iova,
			 rights(to.access)))
		return EINVAL;
	pthread_mutex_lock(&dev->lock);
	rc = stop_use(dev, base->lkey);
	if (!rc)
		rc = ur_mem_reregister(dev->mem, base->lkey, to.base.pd->handle, to.base.addr,
				       to.base.length, to.iova, rights(to.access), ur_random64(),
				       &key);
	if (!rc) {
		UR_API(pd, base->pd)->refs--;
		UR_API(pd, to.base.pd)->refs++;
		to.base.lkey = to.base.rkey = key;
		*mr = to;
	}
	pthread_mutex_unlock(&dev->lock);
	return -rc;
}

int uroce_dereg_mr(struct ibv_mr *mr)
{
	struct ur_device *dev = ur_device(mr->context);
	int rc;

	pthread_mutex_lock(&dev->lock);
	rc = stop_use(dev, mr->lkey);
	if (!rc) {
		rc = ur_mem_release(dev->mem, mr->lkey);
		ur_context_count_locked(mr->context, &dev->objects.mrs, -1);
		LIST_REMOVE(UR_API(mr, mr), link);
		UR_API(pd, mr->pd)->refs--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (!rc)
		free(UR_API(mr, mr));
	return -rc;
}
