/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cm_priv.h"
#include "api/wait.h"
#include "dpdk/lease.h"

/* ---- channels ---- */

struct uroce_event_channel *uroce_create_event_channel(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	struct uroce_event_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
	if (ch->fd < 0) {
		free(ch);
		return NULL;
	}
	ch->ctx = ctx;
	ch->dev = dev;
	TAILQ_INIT(&ch->queue);
	pthread_cond_init(&ch->waiters.left, NULL);
	ur_context_count(ctx, &dev->objects.channels, 1);
	return ch;
}

int uroce_destroy_event_channel(struct uroce_event_channel *ch)
{
	struct ur_cm_api *cm = ch->dev->cm;
	uint32_t ids;

	pthread_mutex_lock(&cm->lock);
	ids = ch->ids;
	pthread_mutex_unlock(&cm->lock);
	/* Without ids there is no listener, so nothing is queued. */
	if (ids)
		return EBUSY;
	ur_device_waiters_close(&ch->waiters, &cm->lock, ch->fd);
	close(ch->fd);
	pthread_cond_destroy(&ch->waiters.left);
	ur_context_count(ch->ctx, &ch->dev->objects.channels, -1);
	free(ch);
	return 0;
}

int uroce_event_channel_fd(const struct uroce_event_channel *ch)
{
	return ch->fd;
}

/* ---- ids ---- */

struct ur_api_cm_id *ur_cm_api_id_new(struct uroce_event_channel *ch, void *user)
{
	struct ur_api_cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->base.context = ch->ctx;
	id->base.channel = ch;
	id->base.user = user;
	id->owner = UR_CM_OWNER_ID;
	id->dev = ch->dev;
	pthread_mutex_lock(&ch->dev->cm->lock);
	ch->ids++;
	pthread_mutex_unlock(&ch->dev->cm->lock);
	ur_context_count(ch->ctx, &ch->dev->objects.cm_ids, 1);
	return id;
}

void ur_cm_api_id_free(struct ur_api_cm_id *id)
{
	struct ur_device *dev = id->dev;

	ur_cm_api_purge(dev->cm, id);
	ur_cm_api_attach(id, NULL);
	pthread_mutex_lock(&dev->cm->lock);
	id->base.channel->ids--;
	pthread_mutex_unlock(&dev->cm->lock);
	ur_context_count(id->base.context, &dev->objects.cm_ids, -1);
	free(id);
}

int uroce_cm_create_id(struct uroce_event_channel *ch, void *user, struct uroce_cm_id **out)
{
	struct ur_api_cm_id *id = ur_cm_api_id_new(ch, user);

	if (!id)
		return ENOMEM;
	*out = &id->base;
	return 0;
}

/* CM-SIDR-01 */
static enum ur_cm_kind kind_of(bool sidr)
{
	return sidr ? UR_CM_KIND_SIDR : UR_CM_KIND_CONN;
}

static uint64_t service_of(bool sidr, uint16_t port)
{
	return ur_rdma_ip_service(sidr ? UR_RDMA_IP_UDP : UR_RDMA_IP_TCP, port);
}

static void stop_listening(struct ur_api_cm_id *id)
{
	struct ur_cm *core = ur_cm_api_core(id->dev);

	if (id->phase != UR_CM_LISTENING)
		return;
	ur_cm_unlisten(core, kind_of(id->sidr), service_of(id->sidr, id->port));
	id->phase = UR_CM_IDLE;
	id->sidr = false;
}

/* Afterwards the core has no pointer to the id. */
static void forget_on_worker(void *arg, uint64_t now_ns)
{
	struct ur_api_cm_id *id = arg;

	stop_listening(id);
	ur_cm_api_refuse(id->dev->cm, id, now_ns);
	if (id->handle.v)
		ur_cm_destroy(ur_cm_api_core(id->dev), id->handle, now_ns);
	id->handle.v = 0;
}

static void ignore_on_worker(void *arg, uint64_t now_ns)
{
	struct ur_api_cm_id *id = arg;

	(void)now_ns;
	ur_cm_ignore(ur_cm_api_core(id->dev), id->handle);
}

/* CM-BACKLOG-01 */
int uroce_cm_ignore(struct uroce_cm_id *base)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);

	if (id->phase != UR_CM_REQUESTED)
		return EINVAL;
	/* If the peer has given up meanwhile, this fails, and the id is destroyed all the same. */
	ur_cm_api_call(id->dev, ignore_on_worker, id);
	return uroce_cm_destroy_id(base);
}

static void release_listened(struct ur_api_cm_id *id)
{
	if (id->phase == UR_CM_LISTENING)
		uroce_cm_release_port(id->base.context, id->sidr, id->port);
}

int uroce_cm_destroy_id(struct uroce_cm_id *base)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_device *dev = id->dev;

	/* With this lock, no other thread is serving an event of this id. */
	pthread_mutex_lock(&dev->cm->serve);
	if (id->phase == UR_CM_CONNECTING || id->phase == UR_CM_CONNECTED)
		ur_cm_api_stop_qp(id);
	release_listened(id);
	ur_cm_api_call(dev, forget_on_worker, id);
	ur_cm_api_id_free(id);
	pthread_mutex_unlock(&dev->cm->serve);
	return 0;
}

/* ---- ports ---- */

static enum ur_lease_space space_of(bool datagrams)
{
	return datagrams ? UR_LEASE_UDP : UR_LEASE_TCP;
}

/* UROCED-PORTS-02 */
int uroce_cm_bind_port(struct ibv_context *ctx, bool datagrams, uint16_t *port)
{
	struct ur_device *dev = ur_device(ctx);

	if (!dev->lease)
		return 0;
	/* EDGE-FORK-02: the lease is the parent's. */
	return ur_worker_is_the_parents() ? EIO
					  : -ur_lease_bind(dev->lease, space_of(datagrams), port);
}

void uroce_cm_release_port(struct ibv_context *ctx, bool datagrams, uint16_t port)
{
	struct ur_device *dev = ur_device(ctx);

	if (dev->lease && !ur_worker_is_the_parents())
		ur_lease_unbind(dev->lease, space_of(datagrams), port);
}

/* ---- listeners ---- */

struct listen_call {
	struct ur_api_cm_id *id;
	bool sidr;
	uint16_t port;
	int rc;
};

static void listen_on_worker(void *arg, uint64_t now_ns)
{
	struct listen_call *l = arg;

	l->rc = ur_cm_listen(ur_cm_api_core(l->id->dev), kind_of(l->sidr),
			     service_of(l->sidr, l->port), &l->id->owner);
	if (l->rc)
		return;
	l->id->sidr = l->sidr;
	l->id->port = l->port;
	l->id->phase = UR_CM_LISTENING;
}

static int start_listening(struct uroce_cm_id *base, bool sidr, uint16_t port)
{
	struct listen_call l = {.id = ur_api_cm_id(base), .sidr = sidr, .port = port};
	int rc;

	if (l.id->phase != UR_CM_IDLE || !port)
		return EINVAL;
	rc = uroce_cm_bind_port(base->context, sidr, &port);
	if (rc)
		return rc;
	ur_cm_api_call(l.id->dev, listen_on_worker, &l);
	if (l.rc)
		uroce_cm_release_port(base->context, sidr, port);
	return l.rc == -EEXIST ? EADDRINUSE : -l.rc;
}

int uroce_cm_listen(struct uroce_cm_id *base, uint16_t port)
{
	return start_listening(base, false, port);
}

int uroce_cm_sidr_listen(struct uroce_cm_id *base, uint16_t port)
{
	return start_listening(base, true, port);
}

static void unlisten_on_worker(void *arg, uint64_t now_ns)
{
	stop_listening(arg);
}

int uroce_cm_unlisten(struct uroce_cm_id *base)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);

	if (id->phase != UR_CM_LISTENING)
		return EINVAL;
	release_listened(id);
	ur_cm_api_call(id->dev, unlisten_on_worker, id);
	return 0;
}

/* ---- addresses ---- */

void ur_cm_api_sockaddr(struct sockaddr_storage *to, const struct ur_gid *gid, uint16_t port)
{
	memset(to, 0, sizeof(*to));
	if (ur_gid_is_ipv4(gid)) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, gid->b + 12, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, gid->b, 16);
	}
}

static int gid_of(const struct sockaddr *sa, struct ur_gid *gid, uint16_t *port)
{
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		*gid = ur_gid_from_ipv4(ntohl(in.sin_addr.s_addr));
		*port = ntohs(in.sin_port);
		return 0;
	}
	if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		memcpy(gid->b, &in6.sin6_addr, 16);
		*port = ntohs(in6.sin6_port);
		return 0;
	}
	return EAFNOSUPPORT;
}

static bool is_link_local(const struct ur_gid *g)
{
	return g->b[0] == 0xfe && (g->b[1] & 0xc0) == 0x80;
}

/* Our address of the peer's family; of two IPv6 addresses, the one with the peer's scope. */
static int choose_source(struct ur_device *dev, const struct ur_gid *peer)
{
	static const struct ur_gid none;
	struct ur_gid preferred;
	int best = -1;

	if (dev->shared && ur_shared_source(dev->shared, peer, &preferred) == 0)
		best = ur_device_gid_index(dev, &preferred);
	if (best >= 0)
		return best;
	for (unsigned i = 0; i < UR_GIDS_MAX; i++) {
		struct ur_gid g = ur_device_gid(dev, i);

		if (ur_gid_eq(&g, &none) || ur_gid_is_ipv4(&g) != ur_gid_is_ipv4(peer))
			continue;
		if (best < 0 || is_link_local(&g) == is_link_local(peer))
			best = (int)i;
	}
	return best;
}

void uroce_cm_set_patience(struct uroce_cm_id *id, uint8_t refusals)
{
	ur_api_cm_id(id)->patience = refusals;
}

/* -1: the endpoint has it no more, or it cannot reach the peer. */
static int index_of(struct ur_device *dev, const struct sockaddr *sa, const struct ur_gid *peer)
{
	struct ur_gid gid;
	uint16_t port;

	if (gid_of(sa, &gid, &port) || ur_gid_is_ipv4(&gid) != ur_gid_is_ipv4(peer))
		return -1;
	return ur_device_gid_index(dev, &gid);
}

int uroce_cm_set_source(struct uroce_cm_id *base, const struct sockaddr *source)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_gid gid;
	uint16_t port;
	int rc = gid_of(source, &gid, &port);

	if (rc)
		return rc;
	if (id->phase != UR_CM_IDLE && id->phase != UR_CM_CLOSED)
		return EINVAL;
	if (ur_device_gid_index(id->dev, &gid) < 0)
		return EADDRNOTAVAIL;
	ur_cm_api_sockaddr(&id->source, &gid, port);
	return 0;
}

int ur_cm_api_route(struct ur_device *dev, const struct sockaddr *peer,
		    const struct sockaddr_storage *from, struct ibv_ah_attr *ah, uint16_t *port)
{
	struct ur_gid gid;
	int rc = gid_of(peer, &gid, port), source;

	if (rc)
		return rc;
	source = from->ss_family ? index_of(dev, (const struct sockaddr *)from, &gid)
				 : choose_source(dev, &gid);
	if (source < 0)
		return EADDRNOTAVAIL;
	*ah = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	ah->grh.sgid_index = (uint8_t)source;
	ah->grh.hop_limit = 64;
	memcpy(ah->grh.dgid.raw, gid.b, 16);
	return 0;
}

struct ur_gid ur_cm_api_dgid(const struct ibv_ah_attr *ah)
{
	struct ur_gid gid;

	memcpy(gid.b, ah->grh.dgid.raw, 16);
	return gid;
}
