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

/*
 * What an event belongs to: a device, and what of it (ns-3's context of an event). Events of one nanosecond happen in the
 * order of their contexts, and those of one context in the order in which they were scheduled (order.h). Devices affect
 * each other after the delay of a link at the earliest, so a run does not depend on which process schedules what.
 */
using Context = uint32_t;

constexpr Context NETWORK_CONTEXT = 0; /* what changes the network itself comes first */

/* Of a device: events that a frame or a credit causes which has arrived on a port, then the device's own. */
constexpr Context CREDIT_SLOT = 0x100;
constexpr unsigned PORTS_MAX = 0x100, HOSTS_MAX = 0x7ffe, SWITCHES_MAX = (1 << 21) - 1;

constexpr Context switch_context(uint32_t idx)
{
	return (idx + 1) << 10;
}
constexpr Context switch_own_context(uint32_t idx)
{
	return switch_context(idx) | 0x3ff;
}
constexpr Context host_context(uint32_t idx)
{
	return UINT32_C(1) << 31 | idx << 16;
}
/* A notice from another host (Network::tell()). */
constexpr Context notice_context(uint32_t idx, uint32_t from)
{
	return host_context(idx) | (0x200 + from);
}
constexpr Context host_own_context(uint32_t idx)
{
	return host_context(idx) | 0xffff;
}

/* Calls (object->*method)(args...) at that time, which is now or later. */
template <typename Method, typename Object, typename... Args>
inline void call_at(Context context, uint64_t at_ns, Method method, Object *object, Args... args)
{
	ns3::Simulator::ScheduleWithContext(context, ns3::NanoSeconds(at_ns - now_ns()), method,
					    object, args...);
}

} // namespace sim

#endif
