/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cm.h"

static struct ur_cm_device devices[UR_CM_DEVICES_MAX];
static unsigned device_cnt;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool forked;

/* EDGE-FORK-03. In a child of fork(): a thread that it does not have may hold the locks. */
static void note_fork(void)
{
	bool inside = pthread_mutex_trylock(&open_lock);

	if (!inside)
		pthread_mutex_unlock(&open_lock);
	forked = forked || inside || device_cnt;
	ur_cm_renew_lock();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, note_fork);
}

bool ur_cm_is_child(void)
{
	return forked;
}

static void open_device(struct ibv_device *device)
{
	struct ur_cm_device *d = &devices[device_cnt];

	d->verbs = ibv_open_device(device);
	if (!d->verbs)
		return;
	d->channel = uroce_create_event_channel(d->verbs);
	d->pd = d->channel ? ibv_alloc_pd(d->verbs) : NULL;
	if (d->pd) {
		device_cnt++;
		return;
	}
	if (d->channel)
		uroce_destroy_event_channel(d->channel);
	ibv_close_device(d->verbs);
}

static bool open_all(void)
{
	int cnt = 0;
	struct ibv_device **list = ibv_get_device_list(&cnt);

	for (int i = 0; i < cnt && device_cnt < UR_CM_DEVICES_MAX; i++)
		open_device(list[i]);
	ibv_free_device_list(list);
	errno = device_cnt ? ur_cm_start_pump() : ENODEV;
	return !errno;
}

bool ur_cm_open_devices(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool ok;

	/* Its parent may have been inside. */
	if (forked) {
		errno = EIO;
		return false;
	}
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&open_lock);
	ok = device_cnt || open_all();
	pthread_mutex_unlock(&open_lock);
	return ok;
}

struct ur_cm_device *ur_cm_devices(unsigned *cnt)
{
	*cnt = device_cnt;
	return devices;
}

/* ---- addresses ---- */

/* Annex A17: an IPv4 address is a GID as an IPv4-mapped IPv6 address. */
union ibv_gid ur_cm_gid(const struct sockaddr *addr)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (addr->sa_family == AF_INET)
		memcpy(&gid.raw[12], &((const struct sockaddr_in *)addr)->sin_addr, 4);
	else
		memcpy(gid.raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
	return gid;
}

static bool is_mapped(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

void ur_cm_address(struct ur_cm_device *dev, int gid_index, struct sockaddr_storage *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	union ibv_gid gid = {0};

	ibv_query_gid(dev->verbs, 1, gid_index, &gid);
	memset(to, 0, sizeof(*to));
	if (is_mapped(&gid)) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, &gid.raw[12], 4);
	} else {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, gid.raw, 16);
	}
}

bool ur_cm_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return !((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

bool ur_cm_is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static unsigned common_bits(const union ibv_gid *a, const union ibv_gid *b)
{
	unsigned i = 0;

	while (i < 128 && !((a->raw[i / 8] ^ b->raw[i / 8]) & 0x80 >> i % 8))
		i++;
	return i;
}

/* The entry with the most bits in common, at least `least`. */
static struct ur_cm_device *closest(const union ibv_gid *to, unsigned least, int *gid_index)
{
	struct ur_cm_device *best = NULL;
	static const union ibv_gid none;
	union ibv_gid gid;

	for (unsigned d = 0; d < device_cnt; d++) {
		for (int i = 0; !ibv_query_gid(devices[d].verbs, 1, i, &gid); i++) {
			unsigned bits = common_bits(&gid, to);

			/* An IPv4 address does not reach an IPv6 one. */
			if (!memcmp(&gid, &none, sizeof(gid)) || is_mapped(&gid) != is_mapped(to) ||
			    bits < least)
				continue;
			least = bits + 1;
			best = &devices[d];
			*gid_index = i;
		}
	}
	return best;
}

/* The first address of the family, for the host itself. */
static struct ur_cm_device *first_of(const struct sockaddr *addr, int *gid_index)
{
	union ibv_gid any = addr->sa_family == AF_INET
				    ? (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff}}
				    : (union ibv_gid){0};

	return closest(&any, 0, gid_index);
}

struct ur_cm_device *ur_cm_device_of(const struct sockaddr *addr, int *gid_index)
{
	union ibv_gid gid = ur_cm_gid(addr);

	if (ur_cm_is_loopback(addr))
		return first_of(addr, gid_index);
	return closest(&gid, 128, gid_index);
}

struct ur_cm_device *ur_cm_device_towards(const struct sockaddr *peer, int *gid_index)
{
	union ibv_gid gid = ur_cm_gid(peer);

	if (ur_cm_is_loopback(peer))
		return first_of(peer, gid_index);
	return closest(&gid, 0, gid_index);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list;

	if (num_devices)
		*num_devices = 0;
	if (!ur_cm_open_devices())
		return NULL;
	list = calloc(device_cnt + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (unsigned i = 0; i < device_cnt; i++)
		list[i] = devices[i].verbs;
	if (num_devices)
		*num_devices = (int)device_cnt;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
