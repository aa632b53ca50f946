/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cm.h"

/* All ids of the process. Under the lock. */
static LIST_HEAD(, ur_cm_id) ids = LIST_HEAD_INITIALIZER(ids);

/* ---- create and destroy ---- */

struct ur_cm_id *ur_cm_new_id(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps)
{
	struct ur_cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	LIST_INSERT_HEAD(&ids, id, link);
	ur_cm_use_channel(ur_cm_channel(channel), 1);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **base, void *context,
		   enum rdma_port_space ps)
{
	bool sync = !channel;
	struct ur_cm_id *id;
	int state;

	if (!ur_cm_open_devices())
		return -1;
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return ur_cm_fail(ENODEV);
	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	state = ur_cm_enter();
	id = ur_cm_new_id(channel, context, ps);
	ur_cm_leave(state);
	if (!id) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return ur_cm_fail(ENOMEM);
	}
	id->sync = sync;
	*base = &id->id;
	return 0;
}

void ur_cm_abandon_id(struct ur_cm_id *id)
{
	/* First: then no event of them is queued any more. */
	ur_cm_release_ports(id);
	ur_cm_unhold_port(id);
	if (id->cm)
		uroce_cm_destroy_id(id->cm);
	id->cm = NULL;
	ur_cm_cancel_resolve(id);
	ur_cm_leave_groups(id);
	ur_cm_purge(id);
	id->state = UR_CM_ENDED;
}

static bool is_on(const struct ur_cm_id *id, const void *ch)
{
	return id->id.channel == &((const struct ur_cm_channel *)ch)->base &&
	       id->state != UR_CM_ENDED;
}

void ur_cm_abandon_ids(const struct ur_cm_channel *ch)
{
	struct ur_cm_id *id;

	while ((id = ur_cm_find_id(is_on, ch)))
		ur_cm_abandon_id(id);
}

void ur_cm_drop_id(struct ur_cm_id *id)
{
	LIST_REMOVE(id, link);
	ur_cm_abandon_id(id);
	ur_cm_use_channel(ur_cm_channel(id->id.channel), -1);
	free(id);
}

struct ur_cm_id *ur_cm_find_id(bool (*f)(const struct ur_cm_id *id, const void *arg),
			       const void *arg)
{
	struct ur_cm_id *id;

	LIST_FOREACH(id, &ids, link)
	if (f(id, arg))
		return id;
	return NULL;
}

void ur_cm_use_device(struct ur_cm_id *id, struct ur_cm_device *dev)
{
	id->dev = dev;
	id->id.verbs = dev->verbs;
	id->id.pd = dev->pd;
	id->id.port_num = 1;
}

/* ---- options ---- */

int rdma_set_option(struct rdma_cm_id *base, int level, int optname, void *optval, size_t optlen)
{
	struct ur_cm_id *id = ur_cm_id(base);

	if (level != RDMA_OPTION_ID)
		return ur_cm_fail(ENOSYS);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != 1)
			return ur_cm_fail(EINVAL);
		id->tos = *(uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (optlen != sizeof(int))
			return ur_cm_fail(EINVAL);
		id->reuse = *(int *)optval != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (optlen != sizeof(int) || (id->state != UR_CM_IDLE && id->state != UR_CM_BOUND))
			return ur_cm_fail(EINVAL);
		id->afonly = *(int *)optval != 0;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != 1 || *(uint8_t *)optval > 31)
			return ur_cm_fail(EINVAL);
		id->ack_timeout = *(uint8_t *)optval;
		return 0;
	default:
		return ur_cm_fail(ENOSYS);
	}
}
