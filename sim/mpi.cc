/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that exchange messages by MPI, between windows of virtual time. No process begins a window before all have ended
 * the last one. A window begins with the next event of all processes and is as long as the delay of a link, so that nothing that
 * is sent in it arrives in it (conservative synchronization by a granted time window, as in ns-3's own distributed simulator, which
 * Debian's packages leave out).
 */
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "network.h"
#include "order.h"
#include "processes.h"

namespace sim
{

namespace
{

/* What crosses to another process; a frame is followed by the bytes that it keeps. */
struct Message {
	enum Kind { FRAME, CREDIT, NOTICE } kind;
	uint32_t wire;
	uint64_t at_ns;
	uint32_t vl, bytes; /* CREDIT */
	Notice notice;
	Frame frame;
};

using Bytes = std::vector<uint8_t>;

class Mpi : public Processes, public Cut
{
      public:
	Mpi(int *argc, char ***argv)
	{
		int me, count;

		MPI_Init(argc, argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &me);
		MPI_Comm_size(MPI_COMM_WORLD, &count);
		me_ = static_cast<unsigned>(me);
		out_.resize(static_cast<size_t>(count));
	}
	~Mpi() override
	{
		MPI_Finalize();
	}
	unsigned me() const override
	{
		return me_;
	}
	unsigned count() const override
	{
		return static_cast<unsigned>(out_.size());
	}
	Cut *cut() override
	{
		return this;
	}
	void run(Network *net, uint64_t end_ns) override;
	void sum(uint64_t *v, size_t cnt) override
	{
		MPI_Allreduce(MPI_IN_PLACE, v, static_cast<int>(cnt), MPI_UINT64_T, MPI_SUM,
			      MPI_COMM_WORLD);
	}
	void most(uint64_t *v, size_t cnt) override
	{
		MPI_Allreduce(MPI_IN_PLACE, v, static_cast<int>(cnt), MPI_UINT64_T, MPI_MAX,
			      MPI_COMM_WORLD);
	}

	void send_frame(const Wire &wire, uint64_t at_ns, const Frame &f) override
	{
		Message m = {};

		m.kind = Message::FRAME;
		m.wire = wire.number();
		m.at_ns = at_ns;
		m.frame = f;
		put(net_->part_of_receiver(m.wire), m, f.bytes, f.kept);
	}
	void send_credit(const Wire &wire, uint64_t at_ns, unsigned vl, uint32_t bytes) override
	{
		Message m = {};

		m.kind = Message::CREDIT;
		m.wire = wire.number();
		m.at_ns = at_ns;
		m.vl = vl;
		m.bytes = bytes;
		put(net_->part_of_sender(m.wire), m, nullptr, 0);
	}
	void send_notice(unsigned part, uint64_t at_ns, const Notice &n) override
	{
		Message m = {};

		m.kind = Message::NOTICE;
		m.at_ns = at_ns;
		m.notice = n;
		put(part, m, nullptr, 0);
	}

      private:
	void put(unsigned part, const Message &m, const uint8_t *more, uint32_t bytes);
	void exchange();
	void take(const Bytes &in);

	unsigned me_;
	Network *net_ = nullptr;
	std::vector<Bytes> out_; /* for each process */
};

void Mpi::put(unsigned part, const Message &m, const uint8_t *more, uint32_t bytes)
{
	const uint8_t *at = reinterpret_cast<const uint8_t *>(&m);
	Bytes &out = out_[part];

	UR_ASSERT(part != me_);
	out.insert(out.end(), at, at + sizeof(m));
	out.insert(out.end(), more, more + bytes);
}

/* Schedules what has come, in the order in which it was sent. */
void Mpi::take(const Bytes &in)
{
	for (size_t i = 0; i < in.size();) {
		Message m;

		std::memcpy(&m, &in[i], sizeof(m));
		i += sizeof(m);
		UR_ASSERT(m.at_ns > now_ns());
		if (m.kind == Message::NOTICE) {
			net_->notice_at(m.at_ns, m.notice);
		} else if (m.kind == Message::CREDIT) {
			net_->wire(m.wire).credit_at(m.at_ns, m.vl, m.bytes);
		} else {
			Frame *f = take_frame(m.frame.kept);
			uint8_t *bytes = f->bytes;

			*f = m.frame;
			f->bytes = bytes;
			std::memcpy(bytes, &in[i], f->kept);
			i += f->kept;
			net_->wire(m.wire).arrive_at(m.at_ns, f);
		}
	}
}

void Mpi::exchange()
{
	size_t n = out_.size();
	std::vector<int> sizes(n), incoming(n);
	std::vector<Bytes> in(n);
	std::vector<MPI_Request> requests;

	for (size_t i = 0; i < n; i++)
		sizes[i] = static_cast<int>(out_[i].size());
	MPI_Alltoall(sizes.data(), 1, MPI_INT, incoming.data(), 1, MPI_INT, MPI_COMM_WORLD);
	for (size_t i = 0; i < n; i++) {
		int peer = static_cast<int>(i);

		if (incoming[i]) {
			in[i].resize(static_cast<size_t>(incoming[i]));
			requests.emplace_back();
			MPI_Irecv(in[i].data(), incoming[i], MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &requests.back());
		}
		if (sizes[i]) {
			requests.emplace_back();
			MPI_Isend(out_[i].data(), sizes[i], MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &requests.back());
		}
	}
	MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
	for (size_t i = 0; i < n; i++) {
		out_[i].clear();
		take(in[i]);
	}
}

void Mpi::run(Network *net, uint64_t end_ns)
{
	net_ = net;
	UR_ASSERT(net->delay_ns() >= 1);
	for (;;) {
		uint64_t next = OrderScheduler::next_ns(), until;

		MPI_Allreduce(MPI_IN_PLACE, &next, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
		if (next > end_ns)
			break;
		until = std::min(end_ns, next + net->delay_ns() - 1);
		ns3::Simulator::Stop(ns3::NanoSeconds(until - now_ns()));
		ns3::Simulator::Run();
		exchange();
	}
}

} // namespace

std::unique_ptr<Processes> Processes::begin(int *argc, char ***argv)
{
	return std::make_unique<Mpi>(argc, argv);
}

} // namespace sim
