/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/eal_ring.h"
#include "edge/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bsd/string.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#define LINKS_MAX 16

static struct link {
	char name[32];
	uint16_t queue_cnt;
	char device[2][64];			  /* "" for a side that is not there */
	struct rte_ring *ring[2][UR_WORKERS_MAX]; /* ring[s]: what side s sends */
} links[LINKS_MAX];

static struct link *find_link(const char *name)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (strcmp(links[i].name, name) == 0)
			return &links[i];
	return NULL;
}

/* Returns the packets in a ring to the pool of the port that sent them, which waits for them. */
static void free_ring(struct rte_ring *ring)
{
	void *m;

	while (ring && rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

static void free_link(struct link *l)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned q = 0; q < l->queue_cnt; q++)
			free_ring(l->ring[i][q]);
	memset(l, 0, sizeof(*l));
}

static int make_link(struct link *l, const char *name, uint16_t queue_cnt, unsigned slots)
{
	strlcpy(l->name, name, sizeof(l->name));
	l->queue_cnt = queue_cnt;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned q = 0; q < queue_cnt; q++) {
			char ring[RTE_RING_NAMESIZE];

			snprintf(ring, sizeof(ring), "u_%s_%u%u", name, i, q);
			l->ring[i][q] = rte_ring_create(ring, slots, (int)rte_socket_id(),
							RING_F_SP_ENQ | RING_F_SC_DEQ);
			if (l->ring[i][q] == NULL) {
				int rc = -rte_errno;

				free_link(l);
				return rc;
			}
		}
	}
	return 0;
}

int ur_eal_ring_add(const char *name, uint16_t queue_cnt, unsigned slots, uint16_t *id,
		    char *device, size_t cap)
{
	struct link *l = find_link(name);
	char side_name[32];
	unsigned side;
	int rc;

	if (l == NULL) {
		l = find_link("");
		if (l == NULL)
			return -ENOSPC;
		rc = make_link(l, name, queue_cnt, slots);
		if (rc != 0)
			return rc;
	}
	if (l->queue_cnt != queue_cnt)
		return -EINVAL;
	side = l->device[0][0] == '\0' ? 0 : 1;
	if (l->device[side][0] != '\0')
		return -EBUSY;
	snprintf(side_name, sizeof(side_name), "%s_%c", name, side == 0 ? 'a' : 'b');
	rc = rte_eth_from_rings(side_name, l->ring[!side], queue_cnt, l->ring[side], queue_cnt,
				rte_socket_id());
	if (rc < 0) {
		rc = rte_errno != 0 ? -rte_errno : -EIO;
		if (l->device[!side][0] == '\0')
			free_link(l);
		return rc;
	}
	*id = (uint16_t)rc;
	rte_eth_dev_get_name_by_port(*id, l->device[side]);
	strlcpy(device, l->device[side], cap);
	return 0;
}

void ur_eal_ring_remove(const char *device)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct link *l = &links[i];

			if (l->name[0] == '\0' || strcmp(l->device[side], device) != 0)
				continue;
			rte_eal_hotplug_remove("vdev", device);
			l->device[side][0] = '\0';
			if (l->device[!side][0] == '\0')
				free_link(l);
			return;
		}
	}
}
