/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_CLOCK_H
#define UR_NS3_CLOCK_H

#include <cstdint>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

/* Virtual time is ns-3's, in nanoseconds, and begins at 0. */
namespace sim
{

inline uint64_t now_ns()
{
	return static_cast<uint64_t>(ns3::Simulator::Now().GetNanoSeconds());
}

/* Calls (object->*method)(args...) at that time, which is now or later. */
template <typename Method, typename Object, typename... Args>
inline void call_at(uint64_t at_ns, Method method, Object *object, Args... args)
{
	ns3::Simulator::Schedule(ns3::NanoSeconds(at_ns - now_ns()), method, object, args...);
}

} // namespace sim

#endif
