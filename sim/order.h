/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_ORDER_H
#define UR_NS3_ORDER_H

#include <cstdint>
#include <queue>
#include <vector>

#include <ns3/scheduler.h>

namespace sim
{

/*
 * An event list of ns-3: by time, then by context (clock.h), then in the order of scheduling. ns-3's own lists leave out the
 * context, so that what happens in one nanosecond depends on everything that was scheduled before, anywhere.
 */
class OrderScheduler : public ns3::Scheduler
{
      public:
	static ns3::TypeId GetTypeId();

	OrderScheduler();
	~OrderScheduler() override;

	/* Makes the simulator use it; call it before the first event. */
	static void use();
	/* The time of the next event; UINT64_MAX: there is none. */
	static uint64_t next_ns();

	void Insert(const Event &event) override;
	bool IsEmpty() const override;
	Event PeekNext() const override;
	Event RemoveNext() override;
	void Remove(const Event &event) override;

      private:
	struct Later {
		bool operator()(const Event &a, const Event &b) const;
	};
	struct Heap : public std::priority_queue<Event, std::vector<Event>, Later> {
		std::vector<Event> &events()
		{
			return c;
		}
	};

	Heap heap_;
};

} // namespace sim

#endif
