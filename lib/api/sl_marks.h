/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_SL_MARKS_H
#define UR_API_SL_MARKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "edge/config.h"
#include "wire/path.h"

struct ibv_ah_attr;
struct ur_device;

/* What packets of a service level (SL) carry for the network: DSCP, and priority in an 802.1Q tag.
 */
struct ur_sl_marks {
	uint8_t traffic_class; /* of those without a DSCP; its ECN bits of all */
	uint8_t dscp[16];      /* by SL, [0, 63]; 0: as traffic_class */
	uint8_t pcp[16];       /* by SL, [0, 7] */
};

/* The same for whoever makes a path, on any thread. */
struct ur_sl_marks_now {
	_Atomic uint8_t ecn;
	_Atomic uint16_t of_sl[16]; /* traffic class | priority << 8 */
};

void ur_sl_marks_of_config(const struct ur_config *cfg, struct ur_sl_marks *m);
void ur_sl_marks_to_config(const struct ur_sl_marks *m, struct ur_config *cfg);

/* What is made from now on has these. */
void ur_sl_marks_publish(struct ur_sl_marks_now *now, const struct ur_sl_marks *m);

/* Traffic class and tag of what the address vector names. */
void ur_sl_marks_put(const struct ur_device *dev, const struct ibv_ah_attr *av,
		     struct ur_path_attr *path);
/* The lowest SL that sends with such a DSCP; 0 when none does. */
uint8_t ur_sl_marks_sl_of_tos(const struct ur_device *dev, uint8_t tos);
/* The ECN bits of [qos] traffic_class. */
uint8_t ur_sl_marks_ecn(const struct ur_device *dev);

/* Marks a path that is made already; returns its traffic class. Thread class: its owner. */
uint8_t ur_sl_marks_renew(const struct ur_device *dev, const struct ibv_ah_attr *av,
			  struct ur_path *path);

/*
 * Marks what stands as was published: queue pairs of a worker (between two rounds of it), address
 * handles, while all workers pause, and what the connection manager sends. Thread class: control,
 * under the device's lock.
 */
void ur_sl_marks_renew_qps(struct ur_device *dev, unsigned worker);
void ur_sl_marks_renew_ahs(struct ur_device *dev);
void ur_sl_marks_renew_cm(struct ur_device *dev);

#endif
