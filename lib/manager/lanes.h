/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_LANES_H
#define UR_MANAGER_LANES_H

#include "vl/blocks.h"

/*
 * The way from one configuration of a port's virtual lanes to another one. An agent takes one attribute at a time, half a
 * table or the mapping of service levels, and refuses what would leave no service level with a lane. Thread class: pure
 * functions.
 */
#define UR_LANES_DONE  (-1)
#define UR_LANES_SL2VL 0 /* SLtoVLMappingTable; 1 to 4: that block of VLArbitrationTable */

/*
 * What to write next: an attribute, whose content is that of *next, which is then the port's configuration.
 * UR_LANES_DONE: the tables and the mapping of `now` are those of `want`. Both are valid. Service levels with a lane
 * before and after have one meanwhile, if that can be. The limit is no concern. Calling it again with *next as `now` ends
 * after at most six steps. MGR-VL-01
 */
int ur_lanes_step(const struct ur_vl_attr *now, const struct ur_vl_attr *want,
		  struct ur_vl_attr *next);

#endif
