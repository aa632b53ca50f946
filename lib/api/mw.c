/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"
#include "edge/random.h"

struct ibv_mw *uroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ur_device *dev = ur_device(pd->context);
	struct ur_api_mw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	pthread_mutex_lock(&dev->lock);
	rc = ur_window_alloc(dev->mem, pd->handle, type == IBV_MW_TYPE_2, ur_random64(),
			     &mw->base.rkey);
	if (!rc) {
		LIST_INSERT_HEAD(&ur_context(pd->context)->mws, mw, link);
		ur_context_count_locked(pd->context, &dev->objects.mws, 1);
		UR_API(pd, pd)->refs++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (rc) {
		free(mw);
		errno = -rc;
		return NULL;
	}
	mw->base.context = pd->context;
	mw->base.pd = pd;
	mw->base.handle = mw->base.rkey >> UR_WINDOW_TAG_BITS;
	mw->base.type = type;
	return &mw->base;
}

int uroce_dealloc_mw(struct ibv_mw *mw)
{
	struct ur_device *dev = ur_device(mw->context);

	pthread_mutex_lock(&dev->lock);
	ur_window_suspend(dev->mem, mw->rkey);
	ur_device_quiesce(dev);
	ur_window_free(dev->mem, mw->rkey);
	ur_context_count_locked(mw->context, &dev->objects.mws, -1);
	UR_API(pd, mw->pd)->refs--;
	LIST_REMOVE(UR_API(mw, mw), link);
	pthread_mutex_unlock(&dev->lock);
	free(UR_API(mw, mw));
	return 0;
}

int uroce_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags};
	struct ibv_send_wr *bad;
	int rc;

	if (mw->type != IBV_MW_TYPE_1 || (bind->bind_info.length && !bind->bind_info.mr) ||
	    qp->pd->handle != mw->pd->handle)
		return EINVAL;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	rc = uroce_post_send(qp, &wr, &bad);
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}
