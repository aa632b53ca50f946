/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_PROCESSES_H
#define UR_NS3_PROCESSES_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sim
{

class Cut;
class Network;

/*
 * The processes that share a simulation, on one machine or several. Each simulates one part of the network. A program is
 * linked with one.cc or with mpi.cc.
 */
class Processes
{
      public:
	/* Once, first of all. */
	static std::unique_ptr<Processes> begin(int *argc, char ***argv);
	virtual ~Processes() = default;

	virtual unsigned me() const = 0; /* [0, count()) */
	virtual unsigned count() const = 0;
	/* The way to the others; nullptr: there are none. */
	virtual Cut *cut() = 0;
	/*
	 * Simulates up to that time, which is included. Events of all processes happen as if one process had them all:
	 * parts affect each other after Network::delay_ns() at the earliest, and none is ahead of another by more.
	 */
	virtual void run(Network *net, uint64_t end_ns) = 0;
	/* Of all processes, in each of them. */
	virtual void sum(uint64_t *v, size_t cnt) = 0;
	virtual void most(uint64_t *v, size_t cnt) = 0;
};

} // namespace sim

#endif
