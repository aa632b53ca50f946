/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"

/* Thread domains. Parent domains, which are what uses them, are in pd_mr.c. */

struct ibv_td *uroce_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct ur_api_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->base.context = ctx;
	ur_context_count(ctx, &ur_device(ctx)->objects.tds, 1);
	return &td->base;
}

int uroce_dealloc_td(struct ibv_td *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_td *td = UR_API(td, base);
	bool busy;

	pthread_mutex_lock(&dev->lock);
	busy = td->refs != 0;
	if (!busy)
		ur_context_count_locked(base->context, &dev->objects.tds, -1);
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	free(td);
	return 0;
}
