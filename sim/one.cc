/* SPDX-License-Identifier: BSD-3-Clause */
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "clock.h"
#include "processes.h"

namespace sim
{

namespace
{

class One : public Processes
{
      public:
	unsigned me() const override
	{
		return 0;
	}
	unsigned count() const override
	{
		return 1;
	}
	Cut *cut() override
	{
		return nullptr;
	}
	void run(Network *, uint64_t end_ns) override
	{
		ns3::Simulator::Stop(ns3::NanoSeconds(end_ns - now_ns()));
		ns3::Simulator::Run();
	}
	void sum(uint64_t *, size_t) override
	{
	}
	void most(uint64_t *, size_t) override
	{
	}
};

} // namespace

std::unique_ptr<Processes> Processes::begin(int *, char ***)
{
	return std::make_unique<One>();
}

} // namespace sim
