/* SPDX-License-Identifier: BSD-3-Clause */
#include "workload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clock.h"
#include "random.h"

namespace sim
{

namespace
{

constexpr uint32_t PD = 1, FIRST_PSN = 100;
constexpr uint64_t IOVA = UINT64_C(1) << 40;

} // namespace

void Histogram::add(uint64_t ns)
{
	unsigned bits = 64u - static_cast<unsigned>(__builtin_clzll(ns | 1)), at;

	if (bits <= SHIFT + 1)
		at = static_cast<unsigned>(ns);
	else
		at = ((bits - SHIFT) << SHIFT) + static_cast<unsigned>(ns >> (bits - SHIFT - 1)) -
		     (1u << SHIFT);
	classes_[at]++;
	count_++;
	sum_ += ns;
	max_ = std::max(max_, ns);
}

uint64_t Histogram::quantile(double q) const
{
	uint64_t want = static_cast<uint64_t>(q * static_cast<double>(count_)), seen = 0;

	for (unsigned at = 0; count_ && at < 64u << SHIFT; at++) {
		unsigned octave = at >> SHIFT, rest = at & ((1u << SHIFT) - 1);

		seen += classes_[at];
		if (seen <= want && seen < count_)
			continue;
		if (octave < 2)
			return std::min<uint64_t>(at, max_);
		return std::min(
			((UINT64_C(1) << SHIFT) + rest + 1) * (UINT64_C(1) << (octave - 1)) - 1,
			max_);
	}
	return max_;
}

Workload::Workload(Network *net, Pattern *pattern, const WorkloadAttr &attr)
    : interval(attr.intervals), received_bytes(net->hosts()), sent_bytes(net->hosts()), net_(net),
      pattern_(pattern), attr_(attr), side_(net->hosts()), memory_(attr.message_bytes + 64u)
{
	for (unsigned h = 0; h < net->hosts(); h++)
		open_host(h);
}

void Workload::open_host(unsigned h)
{
	Host &host = net_->host(h);
	struct ur_cq_create cq = {};
	uint8_t *memory = memory_.data();

	memory += -reinterpret_cast<uintptr_t>(memory) & 63;
	side_[h].peer.resize(net_->hosts());
	cq.cqe = 2 * attr_.slots;
	cq.unarmed = true;
	side_[h].cq = ur_engine_create_cq(host.memory().take(ur_engine_cq_size(cq.cqe)), &cq);
	UR_ASSERT(ur_mem_register(host.mem(), PD, memory, attr_.message_bytes, IOVA,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, mix(h, 1),
				  &side_[h].key) == 0);
	host.on_input = [this, h] { poll(h); };
	host.on_arrival = [this, h](const Frame &f) { arrived(h, f); };
}

/* ---- queue pairs ---- */

struct ur_qp *Workload::create_qp(unsigned h)
{
	Host &host = net_->host(h);
	struct ur_qp_create c = {};
	struct ur_qp *qp;

	c.type = IBV_QPT_RC;
	c.pd = PD;
	c.send_cq = c.recv_cq = side_[h].cq;
	c.cap.max_send_wr = DEPTH;
	c.cap.max_recv_wr = 1;
	c.cap.max_send_sge = c.cap.max_recv_sge = 1;
	c.max_dest_rd_atomic = 1;
	c.random = mix(queue_pairs, h);
	c.rings = host.memory().take(ur_qp_rings_bytes(&c));
	UR_ASSERT(ur_engine_create_qp(host.engine(), &c, now_ns(), &qp) == 0);
	queue_pairs++;
	return qp;
}

void Workload::connect_end(unsigned from, unsigned to)
{
	Host &a = net_->host(from), &b = net_->host(to);
	struct ur_qp_connection c = {};

	c.path.src = a.gid();
	c.path.dst = b.gid();
	a.mac(c.path.smac);
	b.mac(c.path.dmac);
	c.path.tos = attr_.tos;
	c.dest_qpn = ur_engine_qpn(side_[to].peer[from].qp);
	c.path.sport = ur_path_sport(0, ur_engine_qpn(side_[from].peer[to].qp), c.dest_qpn);
	c.sq_psn = c.rq_psn = ur_psn(FIRST_PSN);
	c.path_mtu = attr_.mtu;
	c.access = IBV_ACCESS_REMOTE_WRITE;
	c.mode.mode = attr_.mode;
	c.mode.agreed.delay = attr_.stamps && attr_.mode == UR_MODE_EXTENDED;
	UR_ASSERT(ur_engine_connect_qp(a.engine(), side_[from].peer[to].qp, &c, now_ns()) == 0);
}

void Workload::connect(unsigned a, unsigned b)
{
	side_[a].peer[b].qp = create_qp(a);
	side_[b].peer[a].qp = create_qp(b);
	side_[a].peer[b].at_ns.resize(DEPTH);
	side_[b].peer[a].at_ns.resize(DEPTH);
	connect_end(a, b);
	connect_end(b, a);
}

/* ---- messages ---- */

void Workload::start()
{
	start_ns_ = now_ns();
	for (unsigned h = 0; h < net_->hosts(); h++) {
		for (uint32_t i = 0; i < attr_.slots; i++)
			next_message(h);
		net_->host(h).kick();
	}
}

void Workload::next_message(unsigned h)
{
	uint32_t dst = pattern_->next(h);
	Peer &peer = side_[h].peer[dst];

	UR_ASSERT(dst != h);
	if (!peer.qp)
		connect(h, dst);
	if (peer.outstanding == DEPTH)
		peer.pending++;
	else
		post(h, dst);
}

void Workload::post(unsigned h, unsigned dst)
{
	Peer &peer = side_[h].peer[dst];
	struct ibv_sge sge = {IOVA, attr_.message_bytes, side_[h].key};
	struct ibv_send_wr wr = {};

	wr.wr_id = dst;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = IOVA;
	wr.wr.rdma.rkey = side_[dst].key;
	UR_ASSERT(ur_engine_post_send(peer.qp, &wr) == 0);
	peer.at_ns[(peer.first + peer.outstanding++) % DEPTH] = now_ns();
	posted++;
	ur_engine_doorbell(net_->host(h).engine(), peer.qp, now_ns());
}

void Workload::poll(unsigned h)
{
	struct ibv_wc wc[16];
	unsigned n;

	while ((n = ur_engine_poll_cq(side_[h].cq, 16, wc)) > 0)
		for (unsigned i = 0; i < n; i++) {
			unsigned dst = static_cast<unsigned>(wc[i].wr_id);
			Peer &peer = side_[h].peer[dst];

			if (wc[i].status != IBV_WC_SUCCESS) {
				errors++;
				continue;
			}
			completed++;
			if (measured()) {
				message.add(now_ns() - peer.at_ns[peer.first]);
				sent_bytes[h] += attr_.message_bytes;
			}
			peer.first = (peer.first + 1) % DEPTH;
			peer.outstanding--;
			if (peer.pending) {
				peer.pending--;
				post(h, dst);
			}
			next_message(h);
		}
}

/* ---- measuring ---- */

bool Workload::measured() const
{
	uint64_t since = now_ns() - start_ns_;

	return since >= attr_.warm_ns && since < attr_.warm_ns + attr_.run_ns;
}

Workload::Interval *Workload::current()
{
	return &interval[(now_ns() - start_ns_ - attr_.warm_ns) * attr_.intervals / attr_.run_ns];
}

void Workload::arrived(unsigned h, const Frame &f)
{
	Interval *i;

	if (!f.data || !measured())
		return;
	i = current();
	i->packets++;
	i->payload_bytes += f.data;
	i->wait_sum_ns += f.wait_ns;
	i->wait_max_ns = std::max(i->wait_max_ns, f.wait_ns);
	received_bytes[h] += f.data;
	wait.add(f.wait_ns);
	one_way.add(now_ns() - f.sent_ns);
}

} // namespace sim
