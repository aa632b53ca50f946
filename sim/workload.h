/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_WORKLOAD_H
#define UR_NS3_WORKLOAD_H

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "network.h"
#include "topology.h"
#include "traffic.h"

namespace sim
{

struct WorkloadAttr {
	enum ibv_mtu mtu = IBV_MTU_2048;
	enum ur_mode mode = UR_MODE_EXTENDED;
	uint8_t tos = 2;      /* ECT(0) */
	uint8_t paths = 1;    /* UDP source ports that a queue pair sprays over; mode extended */
	uint8_t flows = 1;    /* queue pairs to each peer at most, see Workload */
	bool stamps = true;   /* queue pairs agree on delay stamps */
	uint64_t warm_ns = 0; /* what happens before is not counted */
	uint64_t run_ns = 1000000; /* measured after that, in `intervals` equal parts */
	unsigned intervals = 20;
};

/*
 * Sends messages as WRITEs. Queue pairs are created at their first use: a host tells the other one the number of its own, and
 * connects it when it knows the other's. All hosts write from and to the same memory, which is never read.
 *
 * With several flows a message takes the queue pair to its destination that has the fewest bytes before it, so that a short message need
 * not wait for a long one, as where each message has a connection of its own. A flow has the same number at both ends.
 */
class Workload : public Sender
{
      public:
	struct Interval {
		uint64_t packets = 0, payload_bytes = 0;   /* with payload, arrived */
		uint64_t wait_sum_ns = 0, wait_max_ns = 0; /* in switches, of these packets */
	};

	/* The three must outlive it. */
	Workload(Network *net, Topology *topology, Traffic *traffic, const WorkloadAttr &attr);

	/* Starts every host; call it inside of the simulation's time, or before it. */
	void start();
	void send(uint32_t src, uint32_t dst, uint32_t bytes, uint32_t tag) override;
	bool is_here(uint32_t host) const override
	{
		return net_->host(host).is_here();
	}
	void tell(uint32_t from, uint32_t to, uint32_t kind, uint32_t tag) override;
	/* The run is over. Open traffic: what has not completed counts as slow as it is by now. */
	void end();
	/* Adds what is counted below in all processes. */
	void gather(Processes *all);

	/* How long a message takes when the network is idle, from send() to the acknowledgement. */
	uint64_t ideal_ns(uint32_t src, uint32_t dst, uint32_t bytes) const;

	std::vector<Interval> interval;
	std::vector<uint64_t> received_bytes; /* payload, of each host, while measured */
	std::vector<uint64_t>
		sent_bytes; /* payload of messages completed, of each host, while measured */
	Histogram wait;	    /* of packets with payload: time in switches */
	Histogram one_way;  /* of packets with payload: port to port */
	/*
	 * Of messages, from send() to completion: the time, and 1000 times what it is of the ideal time. Of those that
	 * complete while measured; where traffic is open, of those that were sent while measured. end() adds to `slowdown`.
	 */
	Histogram message, slowdown;
	uint64_t completed = 0, errors = 0; /* messages, from the start */
	uint64_t posted = 0;		    /* handed to queue pairs */
	uint64_t unfinished() const	    /* open traffic: sent while measured, not completed */
	{
		return due_ - message.count();
	}
	/* Open traffic: bytes of messages sent while measured; of those of them that have completed. */
	uint64_t offered_bytes = 0, completed_bytes = 0;
	uint64_t queue_pairs = 0;

      private:
	struct Message {
		uint32_t bytes, tag;
		uint64_t
			at_ns; /* when it was sent, or when the queue pair was connected if that was later */
	};
	struct Peer {
		struct ur_qp *qp = nullptr;
		bool connected = false;
		uint32_t key = 0;	   /* of the other host's memory; when connected */
		uint32_t posted = 0;	   /* of `queue`, the first are in the send queue */
		uint64_t bytes = 0;	   /* of `queue` */
		std::deque<Message> queue; /* not completed */
	};
	struct Side {
		struct ur_cq *cq = nullptr;
		uint32_t key = 0;
		std::vector<std::unique_ptr<Peer>> peer; /* by index(); made with the queue pair */
	};

	static constexpr uint32_t DEPTH = 8; /* of a send queue */

	void open_host(unsigned h);
	struct ur_qp *create_qp(unsigned h, size_t index);
	/* Of Side::peer. */
	size_t index(unsigned peer, unsigned flow) const
	{
		return static_cast<size_t>(peer) * attr_.flows + flow;
	}
	unsigned idlest(unsigned src, unsigned dst) const;
	void open_peer(unsigned h, unsigned peer, unsigned flow);
	void connect(unsigned h, const Notice &n);
	void noticed(unsigned h, const Notice &n);
	void begin(Message *m);
	void post(unsigned h, size_t index);
	void complete(unsigned h, const struct ibv_wc &wc);
	void record(unsigned h, unsigned dst, const Message &m);
	void poll(unsigned h);
	void arrived(unsigned h, const Frame &f);
	Interval *current();
	bool is_measured(uint64_t at_ns) const;
	void add_slowdown(unsigned h, unsigned dst, const Message &m);

	Network *net_;
	Topology *topology_;
	Traffic *traffic_;
	WorkloadAttr attr_;
	std::vector<Side> side_;
	std::vector<uint8_t> memory_; /* of all hosts */
	uint64_t start_ns_ = 0;
	uint64_t due_ = 0; /* messages of open traffic to be recorded */
};

} // namespace sim

#endif
