/* SPDX-License-Identifier: BSD-3-Clause */
#include "order.h"

#include <algorithm>

#include <ns3/object-factory.h>
#include <ns3/simulator.h>

#include "wire/assert.h"

namespace sim
{

namespace
{

OrderScheduler *in_use; /* the simulator keeps it to itself */

} // namespace

NS_OBJECT_ENSURE_REGISTERED(OrderScheduler);

ns3::TypeId OrderScheduler::GetTypeId()
{
	static ns3::TypeId id = ns3::TypeId("sim::OrderScheduler")
					.SetParent<ns3::Scheduler>()
					.AddConstructor<OrderScheduler>();

	return id;
}

OrderScheduler::OrderScheduler()
{
	in_use = this;
}

OrderScheduler::~OrderScheduler()
{
	if (in_use == this)
		in_use = nullptr;
}

void OrderScheduler::use()
{
	ns3::ObjectFactory factory;

	factory.SetTypeId(GetTypeId());
	ns3::Simulator::SetScheduler(factory);
	UR_ASSERT(in_use);
}

uint64_t OrderScheduler::next_ns()
{
	return in_use && !in_use->IsEmpty() ? in_use->PeekNext().key.m_ts : UINT64_MAX;
}

bool OrderScheduler::Later::operator()(const Event &a, const Event &b) const
{
	if (a.key.m_ts != b.key.m_ts)
		return a.key.m_ts > b.key.m_ts;
	if (a.key.m_context != b.key.m_context)
		return a.key.m_context > b.key.m_context;
	return a.key.m_uid > b.key.m_uid;
}

void OrderScheduler::Insert(const Event &event)
{
	heap_.push(event);
}

bool OrderScheduler::IsEmpty() const
{
	return heap_.empty();
}

ns3::Scheduler::Event OrderScheduler::PeekNext() const
{
	return heap_.top();
}

ns3::Scheduler::Event OrderScheduler::RemoveNext()
{
	Event event = heap_.top();

	heap_.pop();
	return event;
}

void OrderScheduler::Remove(const Event &event)
{
	std::vector<Event> &events = heap_.events();
	auto found = std::find_if(events.begin(), events.end(), [&event](const Event &e) {
		return e.key.m_uid == event.key.m_uid;
	});

	UR_ASSERT(found != events.end());
	*found = events.back();
	events.pop_back();
	std::make_heap(events.begin(), events.end(), Later());
}

} // namespace sim
