/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>

#include "rdmacm/cm.h"

/*
 * Multicast over RoCE has no subnet administrator that is asked: a join takes effect by IGMP or MLD, and its event follows at
 * once. The group's address is its MGID; its queue pair is attached as a full member.
 */

#define GROUP_QPN 0xffffff /* IBA 9.6.1.2 */

struct ur_cm_join {
	LIST_ENTRY(ur_cm_join) link; /* in the id's */
	union ibv_gid group;
	bool member;	   /* not only to send */
	struct ibv_qp *qp; /* attached to the group, or NULL */
};

/* False: no address of a group. */
static bool group_of(const struct sockaddr *addr, union ibv_gid *group)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr->sa_family == AF_IB)
		memcpy(group->raw, &((const struct sockaddr_ib *)(const void *)addr)->sib_addr, 16);
	else if (addr->sa_family == AF_INET || addr->sa_family == AF_INET6)
		*group = ur_cm_gid(addr);
	else
		return false;
	return group->raw[0] == 0xff ||
	       (!memcmp(group->raw, mapped, sizeof(mapped)) && group->raw[12] >> 4 == 0xe);
}

static int enter_group(struct ur_cm_id *id, struct ur_cm_join *j)
{
	int rc;

	if (!j->member)
		return 0;
	rc = uroce_join_mcast(id->dev->verbs, &j->group);
	if (rc || !id->id.qp)
		return rc;
	rc = ibv_attach_mcast(id->id.qp, &j->group, 0);
	if (rc)
		uroce_leave_mcast(id->dev->verbs, &j->group);
	else
		j->qp = id->id.qp;
	return rc;
}

static void leave_group(struct ur_cm_id *id, struct ur_cm_join *j)
{
	if (j->qp && j->qp == id->id.qp)
		ibv_detach_mcast(j->qp, &j->group, 0);
	if (j->member)
		uroce_leave_mcast(id->dev->verbs, &j->group);
}

static void forget(struct ur_cm_id *id, struct ur_cm_join *j)
{
	LIST_REMOVE(j, link);
	ur_cm_purge_join(id, j);
	free(j);
}

void ur_cm_leave_groups(struct ur_cm_id *id)
{
	struct ur_cm_join *j;

	while ((j = LIST_FIRST(&id->joins))) {
		leave_group(id, j);
		forget(id, j);
	}
}

void ur_cm_detach_groups(struct ur_cm_id *id)
{
	struct ur_cm_join *j;

	LIST_FOREACH(j, &id->joins, link)
	{
		if (j->qp && j->qp == id->id.qp)
			ibv_detach_mcast(j->qp, &j->group, 0);
		j->qp = NULL;
	}
}

/* NULL: no memory. */
static struct ur_cm_event *event_of(struct ur_cm_id *id, const struct ur_cm_join *j, void *context,
				    int gid_index)
{
	struct ur_cm_event *e = ur_cm_new_event(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct rdma_ud_param *ud;

	if (!e)
		return NULL;
	ud = &e->ev.param.ud;
	e->join = j;
	ud->private_data = context;
	ud->qp_num = GROUP_QPN;
	ud->qkey = RDMA_UDP_QKEY;
	ud->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	ud->ah_attr.grh.dgid = j->group;
	ud->ah_attr.grh.sgid_index = (uint8_t)gid_index;
	ud->ah_attr.grh.hop_limit = 64;
	ud->ah_attr.grh.traffic_class = id->tos;
	return e;
}

/* Under the lock. The event is made first: a join that reports nothing would never end. */
static int enter_and_report(struct ur_cm_id *id, struct ur_cm_join *j, void *context, int gid_index)
{
	struct ur_cm_event *e = event_of(id, j, context, gid_index);
	int rc = e ? enter_group(id, j) : ENOMEM;

	if (rc) {
		free(e);
		return rc;
	}
	LIST_INSERT_HEAD(&id->joins, j, link);
	ur_cm_put(e);
	return 0;
}

static int join(struct ur_cm_id *id, const union ibv_gid *group, bool member, void *context)
{
	struct ur_cm_join *j;
	int index, rc, state;

	if (!ur_cm_device_of(&id->id.route.addr.src_addr, &index))
		return ENODEV;
	j = calloc(1, sizeof(*j));
	if (!j)
		return ENOMEM;
	j->group = *group;
	j->member = member;
	state = ur_cm_enter();
	rc = enter_and_report(id, j, context, index);
	ur_cm_leave(state);
	if (rc)
		free(j);
	return rc;
}

int rdma_join_multicast_ex(struct rdma_cm_id *base, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	struct ur_cm_id *id = ur_cm_id(base);
	uint32_t flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	union ibv_gid group;
	int rc;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)
		flags = attr->join_flags;
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED || flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return ur_cm_fail(ENOTSUP);
	if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) || !group_of(attr->addr, &group) ||
	    !id->dev || id->id.ps != RDMA_PS_UDP ||
	    (id->state != UR_CM_BOUND && id->state != UR_CM_ADDR_RESOLVED))
		return ur_cm_fail(EINVAL);
	rc = join(id, &group, flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
	return rc ? ur_cm_fail(rc) : ur_cm_complete(id);
}

int rdma_join_multicast(struct rdma_cm_id *base, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
					       .addr = addr};

	return rdma_join_multicast_ex(base, &attr, context);
}

int rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct ur_cm_id *id = ur_cm_id(base);
	union ibv_gid group;
	struct ur_cm_join *j = NULL;
	int state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (!group_of(addr, &group))
		return ur_cm_fail(EADDRNOTAVAIL);
	state = ur_cm_enter();
	LIST_FOREACH(j, &id->joins, link)
	if (!memcmp(&j->group, &group, sizeof(group)))
		break;
	if (j) {
		leave_group(id, j);
		forget(id, j);
	}
	ur_cm_leave(state);
	return ur_cm_fail(j ? 0 : EADDRNOTAVAIL);
}
