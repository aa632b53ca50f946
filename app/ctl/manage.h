/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_MANAGE_H
#define CTL_MANAGE_H

#include "manager/election.h"
#include "manager/zones.h"
#include "session.h"

/* What 'manage run' and the commands to managers have in common. */

/* Of a manager's agent, by which managers find each other. */
#define CTL_MANAGER_NAME "uroce-ctl manager"

/* Reads the file of --zones. NULL: a sentence was printed. The caller frees it. */
struct ur_zones *ctl_zones_read(const struct ctl_options *o);

/* SMState in words. */
const char *ctl_manager_state(uint8_t state);

bool ctl_is_manager(const struct ur_topo *t, uint32_t node);

/* 'manage run ZONE': until it is interrupted. */
bool ctl_manage_run(struct ctl_session *s, const struct ur_zones *zones,
		    const struct ur_zone *zone);

#endif
