/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_OPTIONS_H
#define UR_NS3_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace sim
{

/* What uroce-ns3 is told; --help has the meanings. */
struct Options {
	std::string topology = "tree", queues = "output";
	std::string routing; /* read_options() fills in the default of the topology */
	std::string pattern = "uniform_random", pacing = "none";
	uint32_t k = 4, n = 4, p = 2, a = 4, h = 2;
	std::string source = "stamps";
	uint32_t init0 = 8, init1 = 16, target_ns = 0;
	bool ewma = false, keep_average = false, release = false;
	bool lossless = true, oracle = false, dependencies = false, repath = true, plb = true;
	bool sparse_first = true;
	uint32_t flit_bytes = 32, delay_ns = 50, buffer_bytes = 16384, cut_through_bytes = 64;
	uint64_t bits_per_s = 0, queue_bytes = 0, ecn_bytes = 0;
	double loss = 0; /* per cent */
	uint32_t down_links = 0, paths = 1;
	uint64_t down_at_ns = 0, down_for_ns = 0, down_every_ns = 0, reroute_ns = 0;
	double load = 50; /* per cent */
	uint64_t drain_ns = 0;
	uint32_t max_qp = 0, flows = 1;
	uint32_t slots = 64, message_bytes = 2048, ackreq_every = 1, turn_ns = 10, window = 128;
	uint64_t warm_ns = 100000, run_ns = 1000000, seed = 1;
	uint32_t intervals = 20;
	std::string mode = "extended";

	/* Of every link. */
	uint64_t link_bps() const
	{
		return flit_bytes ? flit_bytes * UINT64_C(8000000000) : bits_per_s;
	}
};

/* Ends the program with status 2 and a sentence. */
[[noreturn]] void wrong(const std::string &what);

/* Reads the arguments. Ends the program if a number is out of its range. */
Options read_options(int argc, char **argv);

template <typename T> T named(const std::string &name, const std::vector<const char *> &names)
{
	for (size_t i = 0; i < names.size(); i++)
		if (name == names[i])
			return static_cast<T>(i);
	wrong("'" + name + "' is none of the choices");
}

} // namespace sim

#endif
