/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/device.h"

/* A group that the endpoint is in, as often as it was joined. Under the device's lock. */
struct ur_membership {
	LIST_ENTRY(ur_membership) link; /* in the device's */
	struct ur_gid group;
	unsigned refs;	   /* joins and attachments */
	unsigned attached; /* of these, attachments */
	int fd; /* on a shared interface: the socket by which the kernel is in the group; else -1 */
};

struct ur_api_attachment {
	LIST_ENTRY(ur_api_attachment) link; /* in the queue pair's */
	struct ur_membership *membership;
};

/* ---- membership ---- */

struct change {
	struct ur_device *dev;
	const struct ur_gid *group;
	int rc;
};

static void join_on_worker(void *arg, uint64_t now_ns)
{
	struct change *c = arg;

	c->rc = ur_neigh_join_group(c->dev->neigh, c->group, now_ns);
}

static void leave_on_worker(void *arg, uint64_t now_ns)
{
	struct change *c = arg;

	ur_neigh_leave_group(c->dev->neigh, c->group, now_ns);
	/* Many programs end next. */
	ur_worker_flush(c->dev->workers[0]);
}

/* MCAST-JOIN-01, MCAST-JOIN-02: by the endpoint's own IGMP and MLD, or by the kernel's. */
static int enter_group(struct ur_device *dev, struct ur_membership *m)
{
	struct change c = {dev, &m->group, -EIO};

	m->fd = -1;
	if (!dev->shared) {
		ur_worker_call(dev->workers[0], join_on_worker, &c);
		return c.rc;
	}
	m->fd = ur_shared_join(dev->shared, &m->group);
	return m->fd < 0 ? m->fd : 0;
}

static struct ur_membership *find(struct ur_device *dev, const struct ur_gid *group)
{
	struct ur_membership *m;

	LIST_FOREACH(m, &dev->memberships, link)
	if (ur_gid_eq(&m->group, group))
		return m;
	return NULL;
}

static int new_membership(struct ur_device *dev, const struct ur_gid *group,
			  struct ur_membership **to)
{
	struct ur_membership *m;
	int rc;

	if (dev->membership_cnt == UR_MCAST_GROUPS)
		return ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	m->group = *group;
	rc = enter_group(dev, m);
	if (rc) {
		free(m);
		return -rc;
	}
	LIST_INSERT_HEAD(&dev->memberships, m, link);
	dev->membership_cnt++;
	*to = m;
	return 0;
}

/* Under the device's lock. */
static int take_membership(struct ur_device *dev, const struct ur_gid *group,
			   struct ur_membership **to)
{
	int rc = 0;

	*to = find(dev, group);
	if (!*to &&
	    (!ur_gid_is_multicast(group) || ur_device_family_gid(dev, ur_gid_is_ipv4(group)) < 0))
		return EINVAL;
	if (!*to)
		rc = new_membership(dev, group, to);
	if (!rc)
		(*to)->refs++;
	return rc;
}

static void drop_membership(struct ur_device *dev, struct ur_membership *m)
{
	struct change c = {dev, &m->group, 0};

	if (--m->refs)
		return;
	if (m->fd >= 0)
		close(m->fd);
	else
		ur_worker_call(dev->workers[0], leave_on_worker, &c);
	LIST_REMOVE(m, link);
	dev->membership_cnt--;
	free(m);
}

int uroce_join_mcast(struct ibv_context *ctx, const union ibv_gid *gid)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_membership *m;
	struct ur_gid group;
	int rc;

	memcpy(group.b, gid->raw, sizeof(group.b));
	pthread_mutex_lock(&dev->lock);
	rc = take_membership(dev, &group, &m);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

int uroce_leave_mcast(struct ibv_context *ctx, const union ibv_gid *gid)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_membership *m;
	struct ur_gid group;
	int rc = EINVAL;

	memcpy(group.b, gid->raw, sizeof(group.b));
	pthread_mutex_lock(&dev->lock);
	m = find(dev, &group);
	if (m && m->refs > m->attached) {
		drop_membership(dev, m);
		rc = 0;
	}
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

/* ---- attachments ---- */

struct attach_call {
	struct ur_engine *engine;
	const struct ur_gid *group;
	struct ur_qpn qpn;
	bool skip_own;
	int rc;
};

static void attach_on_worker(void *arg, uint64_t now_ns)
{
	struct attach_call *c = arg;

	c->rc = ur_engine_attach(c->engine, c->group, c->qpn, c->skip_own);
}

static void detach_on_worker(void *arg, uint64_t now_ns)
{
	struct attach_call *c = arg;

	c->rc = ur_engine_detach(c->engine, c->group, c->qpn);
}

/* Memory is there: every engine has room for UR_ATTACHMENTS_MAX. */
static int on_every_worker(struct ur_device *dev, struct attach_call *c,
			   void (*fn)(void *arg, uint64_t now_ns))
{
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		c->engine = ur_worker_engine(dev->workers[i]);
		c->rc = -EIO;
		ur_worker_call(dev->workers[i], fn, c);
		if (c->rc)
			return -c->rc;
	}
	return 0;
}

static struct ur_api_attachment *find_attachment(const struct ur_api_qp *qp,
						 const struct ur_gid *group)
{
	struct ur_api_attachment *a;

	LIST_FOREACH(a, &qp->groups, link)
	if (ur_gid_eq(&a->membership->group, group))
		return a;
	return NULL;
}

bool ur_mcast_is_attached(const struct ur_api_qp *qp)
{
	return !LIST_EMPTY(&qp->groups);
}

static struct attach_call call_of(const struct ur_api_qp *qp, const struct ur_gid *group)
{
	return (struct attach_call){
		.group = group, .qpn = ur_qpn(qp->base.qp_num), .skip_own = qp->no_self_mcast};
}

/* Under the device's lock. */
static int attach(struct ur_device *dev, struct ur_api_qp *qp, const struct ur_gid *group)
{
	struct attach_call c = call_of(qp, group);
	struct ur_api_attachment *a;
	struct ur_membership *m;
	int rc;

	if (dev->attachment_cnt == UR_ATTACHMENTS_MAX || !(a = malloc(sizeof(*a))))
		return ENOMEM;
	rc = take_membership(dev, group, &m);
	if (rc) {
		free(a);
		return rc;
	}
	rc = m->attached < UR_MCAST_GROUP_QPS ? on_every_worker(dev, &c, attach_on_worker) : ENOMEM;
	if (rc) {
		drop_membership(dev, m);
		free(a);
		return rc;
	}
	m->attached++;
	dev->attachment_cnt++;
	a->membership = m;
	LIST_INSERT_HEAD(&qp->groups, a, link);
	return 0;
}

/* MCAST-ATTACH-01 */
int uroce_attach_mcast(struct ibv_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_qp *qp = UR_API(qp, base);
	struct ur_gid group;
	int rc = 0;

	(void)lid; /* Ethernet has none */
	if (base->qp_type != IBV_QPT_UD)
		return EINVAL;
	memcpy(group.b, gid->raw, sizeof(group.b));
	pthread_mutex_lock(&dev->lock);
	if (!find_attachment(qp, &group))
		rc = attach(dev, qp, &group);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

int uroce_detach_mcast(struct ibv_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_qp *qp = UR_API(qp, base);
	struct ur_api_attachment *a;
	struct attach_call c;
	struct ur_gid group;

	(void)lid;
	memcpy(group.b, gid->raw, sizeof(group.b));
	pthread_mutex_lock(&dev->lock);
	a = find_attachment(qp, &group);
	if (a) {
		c = call_of(qp, &group);
		LIST_REMOVE(a, link);
		dev->attachment_cnt--;
		on_every_worker(dev, &c, detach_on_worker);
		a->membership->attached--;
		drop_membership(dev, a->membership);
		free(a);
	}
	pthread_mutex_unlock(&dev->lock);
	return a ? 0 : EINVAL;
}

void ur_mcast_free(struct ur_device *dev)
{
	struct ur_membership *m;

	while ((m = LIST_FIRST(&dev->memberships))) {
		LIST_REMOVE(m, link);
		if (m->fd >= 0)
			close(m->fd);
		free(m);
	}
}
