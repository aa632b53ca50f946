/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FABRIC_SHAPE_H
#define UR_FABRIC_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

/*
 * Fabrics of known shapes. Node 0 is always an endpoint, the place of a manager.
 *
 *   line:N         N switches in a row, endpoints at both ends
 *   ring:N         N switches in a ring with an endpoint each
 *   fattree:K      the fat tree of K-port switches: 5 K^2 / 4 switches, K^3 / 4 endpoints (K even, 2 to 48)
 *   random:N,SEED  N switches and as many endpoints; loops, double links, links of a port to itself, nodes apart
 *   tianhe2        5856 switches of 24 ports, 18 304 endpoints: the numbers and levels of Tianhe-2's tree
 *
 * Anything else is the name of a file with lines
 *
 *   switch NAME PORTS | endpoint NAME [PORTS] | link NAME PORT NAME PORT | # comment
 *
 * Returns NULL, and `err` has a sentence that says why. The fabric is not started yet.
 */
struct ur_fabric *ur_fabric_of_shape(const char *shape, const struct ur_fabric_attr *attr,
				     char *err, size_t err_bytes);

/* The paper's figures: 0.876 us to and fro over a hop, 5.96 us in the agent.. */
#define UR_FABRIC_PAPER_HOP_NS	   438
#define UR_FABRIC_PAPER_PROCESS_NS 5960

#endif
