/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_DSCP_MAP_H
#define UR_API_DSCP_MAP_H

#include <stdatomic.h>
#include <stdint.h>

#include "edge/config.h"
#include "wire/path.h"

struct ibv_ah_attr;
struct ur_device;

/* The DSCP/PCP map: DSCP and 802.1Q priority of the packets of each service level (SL). */
struct ur_dscp_map {
	uint8_t traffic_class; /* for SLs without a DSCP; its ECN bits are for all SLs */
	uint8_t dscp[16];      /* by SL, [0, 63]; 0: that of traffic_class */
	uint8_t pcp[16];       /* by SL, [0, 7] */
};

/* The current map, readable by any thread that builds a path. */
struct ur_dscp_map_shared {
	_Atomic uint8_t ecn;
	_Atomic uint16_t of_sl[16]; /* traffic class | priority << 8 */
};

void ur_dscp_map_of_config(const struct ur_config *cfg, struct ur_dscp_map *m);
void ur_dscp_map_to_config(const struct ur_dscp_map *m, struct ur_config *cfg);

/* Publishes a map, for paths that are built from now on. */
void ur_dscp_map_publish(struct ur_dscp_map_shared *now, const struct ur_dscp_map *m);

/* Sets the traffic class and tag of a path for an address vector. */
void ur_dscp_map_set_attr(const struct ur_device *dev, const struct ibv_ah_attr *av,
			  struct ur_path_attr *path);
/* The lowest SL with this DSCP; 0 if there is none. */
uint8_t ur_dscp_map_sl_of_tos(const struct ur_device *dev, uint8_t tos);
/* The ECN bits of [qos] traffic_class. */
uint8_t ur_dscp_map_ecn(const struct ur_device *dev);

/* Updates an existing path from the map; returns its traffic class. Thread class: its owner. */
uint8_t ur_dscp_map_update_path(const struct ur_device *dev, const struct ibv_ah_attr *av,
				struct ur_path *path);

/*
 * Update existing paths from the published map: those of a worker's queue pairs (between two of its
 * rounds), of address handles (while all workers are paused), and of the connection manager. Thread
 * class: control, under the device's lock.
 */
void ur_dscp_map_update_qps(struct ur_device *dev, unsigned worker);
void ur_dscp_map_update_ahs(struct ur_device *dev);
void ur_dscp_map_update_cm(struct ur_device *dev);

#endif
