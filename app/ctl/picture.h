/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PICTURE_H
#define CTL_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "manager/topology.h"

/*
 * Where the nodes of a fabric are in a picture: in rows by their distance from the endpoints, and in a row so that links
 * cross less. It depends on the graph and its names, not on the order of discovery, so that it is the same in each run.
 */
#define CTL_PICTURE_NODES 500 /* of a larger fabric only the switches are shown */

struct ctl_place {
	bool shown;
	uint32_t rank; /* row: 0 are the endpoints */
	uint32_t at;   /* in its row, from the left */
	double x, y;   /* 0 to 1, from the upper left corner */
};

struct ctl_picture {
	struct ctl_place *place; /* by number of the node */
	uint32_t *order;	 /* [0, shown): the nodes that are shown, row by row from the top */
	uint32_t shown, ranks;
	uint32_t widest;   /* nodes of the longest row */
	bool no_endpoints; /* the fabric is large: only switches are shown */
};

/* False: there is no memory. ctl_picture_free() is called either way. */
bool ctl_picture_make(struct ctl_picture *p, const struct ur_topo *t);
void ctl_picture_free(struct ctl_picture *p);

#endif
