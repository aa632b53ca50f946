/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"

struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pthread_mutex_lock(&dev->lock);
	if (dev->objects.pds >= dev->cfg.transport.max_pd) {
		pthread_mutex_unlock(&dev->lock);
		free(pd);
		errno = ENOMEM;
		return NULL;
	}
	dev->objects.pds++;
	pd->context = ctx;
	/* Handle 0 is nobody's; a number is not used again for a long time. */
	if (++dev->next_pd == 0)
		dev->next_pd = 1;
	pd->handle = dev->next_pd;
	pthread_mutex_unlock(&dev->lock);
	return pd;
}

int uroce_dealloc_pd(struct ibv_pd *pd)
{
	struct ur_device *dev = ur_device(pd->context);

	ur_device_count(dev, &dev->objects.pds, -1);
	free(pd);
	return 0;
}

/* The access bits that the table knows; zero-based is a matter of addresses. */
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
	rc = ur_mem_register(&dev->mem, pd->handle, addr, length, iova, rights(access),
			     ur_device_random(), &key);
	if (!rc)
		dev->objects.mrs++;
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

int uroce_rereg_mr(struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_mr *mr = UR_API(mr, base);
	struct ibv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : base->pd;
	int new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : mr->access;
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	uint64_t iova = moves ? (uintptr_t)addr : mr->iova;
	uint32_t key;
	int rc;

	if (new_access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	if (!moves) {
		addr = base->addr;
		length = base->length;
	}
	pthread_mutex_lock(&dev->lock);
	rc = ur_mem_suspend(&dev->mem, base->lkey);
	if (!rc) {
		ur_device_quiesce(dev);
		rc = ur_mem_reregister(&dev->mem, base->lkey, new_pd->handle, addr, length, iova,
				       rights(new_access), ur_device_random(), &key);
	}
	pthread_mutex_unlock(&dev->lock);
	if (rc)
		return -rc;
	base->pd = new_pd;
	base->addr = addr;
	base->length = length;
	base->lkey = base->rkey = key;
	mr->iova = iova;
	mr->access = new_access;
	return 0;
}

int uroce_dereg_mr(struct ibv_mr *mr)
{
	struct ur_device *dev = ur_device(mr->context);
	int rc;

	pthread_mutex_lock(&dev->lock);
	rc = ur_mem_suspend(&dev->mem, mr->lkey);
	if (!rc) {
		ur_device_quiesce(dev);
		rc = ur_mem_release(&dev->mem, mr->lkey);
		dev->objects.mrs--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (!rc)
		free(UR_API(mr, mr));
	return -rc;
}
