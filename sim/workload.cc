/* SPDX-License-Identifier: BSD-3-Clause */
#include "workload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clock.h"
#include "random.h"
#include "wire/path.h"

namespace sim
{

namespace
{

constexpr uint32_t PD = 1, FIRST_PSN = 100;
constexpr uint64_t IOVA = UINT64_C(1) << 40;

/* Frames without payload: of a WRITE without RETH, and an ACK; in mode extended, of a WRITE and an ACK. */
constexpr uint32_t WRITE_BYTES = UR_PATH_MIN_BYTES + UR_BTH_BYTES + UR_ICRC_BYTES;
constexpr uint32_t ACK_BYTES = WRITE_BYTES + UR_AETH_BYTES;
constexpr uint32_t EXT_WRITE_BYTES = WRITE_BYTES + UR_XTH_BYTES + UR_RETH_BYTES;
constexpr uint32_t EXT_ACK_BYTES = ACK_BYTES + UR_XAETH_BYTES;
constexpr uint32_t CQ_DEPTH = 256; /* one frame completes at most a send queue */

/* Kinds of notices: a queue pair is there, with its number and the key of its host's memory; those of traffic follow. */
constexpr uint32_t OPENED = 0, OF_TRAFFIC = 1;

/* OPENED: the number is a QPN, with that of the flow above it. */
unsigned flow_of(const Notice &n)
{
	return n.a >> 24;
}

} // namespace

Workload::Workload(Network *net, Topology *topology, Traffic *traffic, const WorkloadAttr &attr)
    : interval(attr.intervals), received_bytes(net->hosts()), sent_bytes(net->hosts()), net_(net),
      topology_(topology), traffic_(traffic), attr_(attr), side_(net->hosts()),
      memory_(traffic->most_bytes() + 64u)
{
	for (unsigned h = 0; h < net->hosts(); h++)
		open_host(h);
}

void Workload::open_host(unsigned h)
{
	Host &host = net_->host(h);
	struct ur_cq_create cq = {};
	uint8_t *memory = memory_.data();

	if (!host.is_here())
		return;
	memory += -reinterpret_cast<uintptr_t>(memory) & 63;
	side_[h].peer.resize(index(net_->hosts(), 0));
	cq.cqe = CQ_DEPTH;
	cq.unarmed = true;
	side_[h].cq = ur_engine_create_cq(host.memory().take(ur_engine_cq_size(cq.cqe)), &cq);
	UR_ASSERT(ur_mem_register(host.mem(), PD, memory, traffic_->most_bytes(), IOVA,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, mix(h, 1),
				  &side_[h].key) == 0);
	host.on_input = [this, h] { poll(h); };
	host.on_arrival = [this, h](const Frame &f) { arrived(h, f); };
	host.on_notice = [this, h](const Notice &n) { noticed(h, n); };
}

/* ---- queue pairs ---- */

struct ur_qp *Workload::create_qp(unsigned h, size_t index)
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
	c.random = mix(static_cast<uint64_t>(index) << 32 | h, 2);
	c.rings = host.memory().take(ur_qp_rings_bytes(&c));
	UR_ASSERT(ur_engine_create_qp(host.engine(), &c, now_ns(), &qp) == 0);
	queue_pairs++;
	return qp;
}

void Workload::open_peer(unsigned h, unsigned peer, unsigned flow)
{
	std::unique_ptr<Peer> &p = side_[h].peer[index(peer, flow)];

	p = std::make_unique<Peer>();
	p->qp = create_qp(h, index(peer, flow));
	net_->tell({h, peer, OPENED, flow << 24 | ur_engine_qpn(p->qp).v, side_[h].key});
}

/* The other host's queue pair is there. */
void Workload::connect(unsigned h, const Notice &n)
{
	Host &a = net_->host(h), &b = net_->host(n.from);
	size_t at = index(n.from, flow_of(n));
	Peer &peer = *side_[h].peer[at];
	struct ur_qp_connection c = {};

	c.path.src = a.gid();
	c.path.dst = b.gid();
	a.mac(c.path.smac);
	b.mac(c.path.dmac);
	c.path.tos = attr_.tos;
	c.dest_qpn = ur_qpn(n.a & 0xffffff);
	c.path.sport = ur_path_sport(0, ur_engine_qpn(peer.qp), c.dest_qpn);
	c.sq_psn = c.rq_psn = ur_psn(FIRST_PSN);
	c.path_mtu = attr_.mtu;
	c.access = IBV_ACCESS_REMOTE_WRITE;
	c.mode.mode = attr_.mode;
	c.mode.paths = attr_.paths;
	c.mode.agreed.delay = attr_.stamps && attr_.mode == UR_MODE_EXTENDED;
	UR_ASSERT(ur_engine_connect_qp(a.engine(), peer.qp, &c, now_ns()) == 0);
	peer.key = n.b;
	peer.connected = true;
	for (Message &m : peer.queue)
		begin(&m);
	while (peer.posted < DEPTH && peer.posted < peer.queue.size())
		post(h, at);
}

void Workload::noticed(unsigned h, const Notice &n)
{
	if (n.kind >= OF_TRAFFIC) {
		traffic_->told(h, n.kind - OF_TRAFFIC, n.a);
		return;
	}
	if (!side_[h].peer[index(n.from, flow_of(n))])
		open_peer(h, n.from, flow_of(n));
	connect(h, n);
}

void Workload::tell(uint32_t from, uint32_t to, uint32_t kind, uint32_t tag)
{
	net_->tell({from, to, OF_TRAFFIC + kind, tag, 0});
}

/* ---- messages ---- */

void Workload::start()
{
	start_ns_ = now_ns();
	traffic_->start(this);
}

/* Of the flows to a host, the first with the fewest bytes before a new message. */
unsigned Workload::idlest(unsigned src, unsigned dst) const
{
	unsigned best = 0;
	uint64_t least = UINT64_MAX;

	for (unsigned flow = 0; flow < attr_.flows && least; flow++) {
		const Peer *peer = side_[src].peer[index(dst, flow)].get();
		uint64_t bytes = peer ? peer->bytes : 0;

		if (bytes < least) {
			least = bytes;
			best = flow;
		}
	}
	return best;
}

void Workload::send(uint32_t src, uint32_t dst, uint32_t bytes, uint32_t tag)
{
	UR_ASSERT(dst != src && bytes <= traffic_->most_bytes());
	unsigned flow = idlest(src, dst);
	size_t at = index(dst, flow);

	if (!side_[src].peer[at])
		open_peer(src, dst, flow);
	Peer &peer = *side_[src].peer[at];

	peer.queue.push_back({bytes, tag, 0});
	peer.bytes += bytes;
	if (!peer.connected)
		return;
	begin(&peer.queue.back());
	if (peer.posted < DEPTH)
		post(src, at);
}

/* From now on it takes time. */
void Workload::begin(Message *m)
{
	m->at_ns = now_ns();
	if (!traffic_->is_open() || !is_measured(now_ns()))
		return;
	due_++;
	offered_bytes += m->bytes;
}

void Workload::post(unsigned h, size_t index)
{
	Peer &peer = *side_[h].peer[index];
	struct ibv_sge sge = {IOVA, peer.queue[peer.posted].bytes, side_[h].key};
	struct ibv_send_wr wr = {};

	wr.wr_id = index;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = IOVA;
	wr.wr.rdma.rkey = peer.key;
	UR_ASSERT(ur_engine_post_send(peer.qp, &wr) == 0);
	peer.posted++;
	posted++;
	ur_engine_doorbell(net_->host(h).engine(), peer.qp, now_ns());
	net_->host(h).kick();
}

void Workload::record(unsigned h, unsigned dst, const Message &m)
{
	uint64_t ns = now_ns() - m.at_ns;

	completed++;
	if (is_measured(now_ns()))
		sent_bytes[h] += m.bytes;
	if (!is_measured(traffic_->is_open() ? m.at_ns : now_ns()))
		return;
	if (traffic_->is_open())
		completed_bytes += m.bytes;
	message.add(ns);
	add_slowdown(h, dst, m);
}

void Workload::add_slowdown(unsigned h, unsigned dst, const Message &m)
{
	slowdown.add((now_ns() - m.at_ns) * 1000 / ideal_ns(h, dst, m.bytes));
}

void Workload::end()
{
	for (unsigned h = 0; traffic_->is_open() && h < net_->hosts(); h++)
		for (size_t i = 0; i < side_[h].peer.size(); i++) {
			const Peer *peer = side_[h].peer[i].get();

			if (!peer || !peer->connected)
				continue;
			for (const Message &m : peer->queue)
				if (is_measured(m.at_ns))
					add_slowdown(h, static_cast<unsigned>(i / attr_.flows), m);
		}
}

void Workload::complete(unsigned h, const struct ibv_wc &wc)
{
	size_t at = static_cast<size_t>(wc.wr_id);
	unsigned dst = static_cast<unsigned>(at / attr_.flows);
	Peer &peer = *side_[h].peer[at];
	Message m = peer.queue.front();

	if (wc.status != IBV_WC_SUCCESS) {
		errors++; /* and nothing more to this host */
		return;
	}
	peer.queue.pop_front();
	peer.posted--;
	peer.bytes -= m.bytes;
	record(h, dst, m);
	if (peer.queue.size() > peer.posted)
		post(h, at);
	traffic_->completed(h, dst, m.tag);
}

void Workload::poll(unsigned h)
{
	struct ibv_wc wc[16];
	unsigned n;

	while ((n = ur_engine_poll_cq(side_[h].cq, 16, wc)) > 0)
		for (unsigned i = 0; i < n; i++)
			complete(h, wc[i]);
}

/* ---- measuring ---- */

bool Workload::is_measured(uint64_t at_ns) const
{
	uint64_t since = at_ns - start_ns_;

	return since >= attr_.warm_ns && since < attr_.warm_ns + attr_.run_ns;
}

/*
 * Frames leave one after the other, and the acknowledgement of the last one comes back. Links have the same rate, so
 * frames of a message do not wait for each other on the way.
 */
uint64_t Workload::ideal_ns(uint32_t src, uint32_t dst, uint32_t bytes) const
{
	const Wire &wire = net_->host(src).out();
	bool extended = attr_.mode == UR_MODE_EXTENDED;
	uint32_t mtu = 128u << attr_.mtu, more = (bytes - 1) / mtu, last = bytes - more * mtu;
	uint32_t headers = extended ? EXT_WRITE_BYTES : WRITE_BYTES;
	uint32_t ack = extended ? EXT_ACK_BYTES : ACK_BYTES;
	/* A message of standard modes has one RETH, and one of extended mode one in each packet. */
	uint32_t reth = extended ? 0 : UR_RETH_BYTES;
	unsigned links = topology_->distance(src, dst) + 1;

	return more * wire.serialize_ns(mtu + headers) +
	       wire.cross_ns(((last + 3) & ~3u) + headers + reth, links) +
	       wire.cross_ns(ack, links) + net_->host(src).turn_delay_ns() +
	       net_->host(dst).turn_delay_ns();
}

Workload::Interval *Workload::current()
{
	return &interval[(now_ns() - start_ns_ - attr_.warm_ns) * attr_.intervals / attr_.run_ns];
}

void Workload::gather(Processes *all)
{
	for (Interval &i : interval) {
		all->sum(&i.packets, 1);
		all->sum(&i.payload_bytes, 1);
		all->sum(&i.wait_sum_ns, 1);
		all->most(&i.wait_max_ns, 1);
	}
	all->sum(received_bytes.data(), received_bytes.size());
	all->sum(sent_bytes.data(), sent_bytes.size());
	for (Histogram *h : {&wait, &one_way, &message, &slowdown})
		h->gather(all);
	for (uint64_t *v :
	     {&completed, &errors, &posted, &queue_pairs, &due_, &offered_bytes, &completed_bytes})
		all->sum(v, 1);
}

void Workload::arrived(unsigned h, const Frame &f)
{
	Interval *i;

	if (!f.data || !is_measured(now_ns()))
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
