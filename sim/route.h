/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_ROUTE_H
#define UR_NS3_ROUTE_H

#include <cstdint>
#include <vector>

#include "frame.h"

namespace sim
{

class Switch;

/* Where a frame leaves a switch: the port, and the lane of the next link. */
struct Hop {
	uint16_t port;
	uint8_t vl;
};

/* Decides the way of frames through all switches of a network. */
class Router
{
      public:
	virtual ~Router() = default;
	/* The way of a frame that is in switch `sw`. May note in the frame what later switches need. */
	virtual Hop route(const Switch &sw, unsigned idx, Frame *f) = 0;
};

} // namespace sim

#endif
