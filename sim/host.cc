/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
#include "switch/hash.h"
#include "wire/icrc.h"
}

namespace sim
{

namespace
{

constexpr uint32_t FRAME_MAX = 9216, FIRST_ADDRESS = 0x0a620001; /* 10.98.0.1 */
constexpr unsigned TX_MAX = 32;
constexpr size_t ASKED = 4096; /* a host has fewer requests to answer at a time */

/* Where a frame of which only the headers are kept is put together again; the payload is zeros. */
alignas(64) uint8_t scratch[FRAME_MAX];

uint32_t flow_of(const struct ur_packet &p)
{
	uint64_t key = p.sport;

	for (unsigned i = 12; i < 16; i++)
		key = key << 8 | static_cast<uint8_t>(p.ip.src.b[i] ^ (p.ip.dst.b[i] * 31u));
	return static_cast<uint32_t>(ur_switch_hash(key, 0) >> 32);
}

uint32_t index_of(const struct ur_gid &gid)
{
	return (static_cast<uint32_t>(gid.b[12]) << 24 | static_cast<uint32_t>(gid.b[13]) << 16 |
		static_cast<uint32_t>(gid.b[14]) << 8 | gid.b[15]) -
	       FIRST_ADDRESS;
}

} // namespace

HostAttr::HostAttr()
{
	struct ur_engine_attr attr;

	ur_engine_attr_default(&attr);
	limits = attr.limits;
	limits.cm.max_ids = 0;
}

void *Memory::take(size_t bytes)
{
	size_t rounded = (bytes + 63) & ~static_cast<size_t>(63);
	void *block = std::aligned_alloc(64, rounded ? rounded : 64);

	if (!block)
		throw std::bad_alloc();
	blocks_.push_back(block);
	bytes_ += rounded;
	return std::memset(block, 0, rounded);
}

Memory::~Memory()
{
	for (void *block : blocks_)
		std::free(block);
}

Host::Host(uint32_t idx, const HostAttr &attr, uint64_t random, bool here) : idx_(idx), attr_(attr)
{
	struct ur_engine_attr a;
	const char *fault;

	wire_.set_from(this, 0);
	if (!here)
		return;
	UR_ASSERT(attr.tx_cap >= 1 && attr.tx_cap <= TX_MAX && idx < HOSTS_MAX);
	UR_ASSERT(attr.told == Told::NOTHING || !attr.whole_frames);
	if (attr.told != Told::NOTHING)
		asked_.resize(ASKED);
	ur_engine_attr_default(&a);
	mem_ = ur_mem_init(memory_.take(ur_mem_size(attr.max_mr)), attr.max_mr);
	a.limits = attr.limits;
	a.mem = mem_;
	a.random = random;
	a.window = attr.window;
	a.ackreq_every = attr.ackreq_every;
	a.keeps_ports = !attr.repath;
	a.no_plb = !attr.plb;
	a.qos = attr.qos;
	a.pacing = attr.pacing;
	fault = ur_engine_attr_check(&a);
	if (fault)
		ur_assert_fail(fault, __FILE__, __LINE__);
	engine_ = ur_engine_init(memory_.take(ur_engine_size(&a.limits)), &a, now_ns());
}

struct ur_gid Host::gid() const
{
	return ur_gid_from_ipv4(FIRST_ADDRESS + idx_);
}

void Host::mac(uint8_t out[6]) const
{
	uint32_t n = idx_ + 10;
	const uint8_t mac[6] = {2,
				0,
				static_cast<uint8_t>(n >> 24),
				static_cast<uint8_t>(n >> 16),
				static_cast<uint8_t>(n >> 8),
				static_cast<uint8_t>(n)};

	std::memcpy(out, mac, sizeof(mac));
}

/* ---- turns ---- */

/* Schedules a turn at that time, unless there is an earlier one. A later one remains scheduled. */
void Host::turn_at(uint64_t at_ns)
{
	if (at_ns >= wake_ns_)
		return;
	wake_ns_ = at_ns;
	call_at(host_own_context(idx_), at_ns, &Host::turn, this, at_ns);
}

void Host::kick()
{
	turn_at(now_ns() + attr_.turn_delay_ns);
}

void Host::turn(uint64_t at_ns)
{
	uint64_t now = now_ns(), next, resume;

	(void)at_ns;
	if (wake_ns_ > now)
		return; /* one that was overtaken by an earlier one */
	wake_ns_ = UINT64_MAX;
	if (ur_engine_next_deadline(engine_) <= now)
		ur_engine_expire(engine_, now);
	resume = wire_.attr().credit_bytes ? send_with_credits() : send_all();
	next = ur_engine_next_deadline(engine_);
	if (next < now)
		next = now;
	turn_at(next < resume ? next : resume);
}

/* ---- sending ---- */

/* Writes what is kept of a frame whose payload is not read. Payload that the engine reads is kept. */
static Frame *make_short_frame(const struct ur_tx &tx, const struct ur_packet &p)
{
	bool read = !(p.op & (UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_RESP)) || p.bth.dqpn.v < 2;
	Frame *f = take_frame(tx.hdr_len + (read ? tx.payload_len : 0u));
	uint8_t *at = f->bytes + tx.hdr_len;

	std::memcpy(f->bytes, tx.hdr, tx.hdr_len);
	for (unsigned i = 0; read && i < tx.frag_cnt; i++) {
		std::memcpy(at, tx.frag[i].base, tx.frag[i].length);
		at += tx.frag[i].length;
	}
	return f;
}

/* What the network needs of the headers, beside addresses. */
void Host::note_headers(Frame *f, const struct ur_packet &p)
{
	f->asks = p.op & UR_OP_XTH;
	f->stamp = f->asks ? p.xth.stamp : 0;
	if (p.op & UR_OP_XAETH && !asked_.empty()) {
		const Asked &a = asked(f->dst, p.xaeth.echo);

		f->told_ns = a.src == f->dst && a.stamp == p.xaeth.echo ? a.ns : 0;
	}
}

Frame *Host::make_frame(const struct ur_tx &tx)
{
	struct ur_packet p;
	Frame *f;

	std::memcpy(scratch, tx.hdr, tx.hdr_len);
	UR_ASSERT(ur_packet_decode(scratch, ur_tx_bytes(&tx), &p) == UR_DROP_NONE &&
		  p.frame_len == ur_tx_bytes(&tx));
	if (attr_.whole_frames) {
		f = take_frame(ur_tx_bytes(&tx));
		ur_tx_write(&tx, f->bytes);
	} else {
		f = make_short_frame(tx, p);
	}
	f->len = ur_tx_bytes(&tx);
	f->sent_ns = now_ns();
	f->src = idx_;
	f->data = tx.payload_len;
	f->dst = index_of(p.ip.dst);
	f->flow = flow_of(p);
	note_headers(f, p);
	return f;
}

void Host::start(Frame *f)
{
	uint64_t now = now_ns();
	bool lose = on_send && on_send(*f);

	port_free_ns_ = wire_.send(f, port_free_ns_ > now ? port_free_ns_ : now, lose);
}

/* Sends until the engine has nothing more or the transmit ring is full. Returns when to go on. */
uint64_t Host::send_all()
{
	static uint8_t hdr[TX_MAX][UR_HDR_MAX];
	static struct ur_tx tx[TX_MAX];
	uint64_t now = now_ns();
	unsigned n;

	/* A full ring stays full, even if frames arrive meanwhile. */
	if (now < blocked_until_ns_)
		return blocked_until_ns_;
	do {
		for (unsigned i = 0; i < attr_.tx_cap; i++)
			tx[i].hdr = hdr[i];
		n = ur_engine_output(engine_, tx, attr_.tx_cap, now);
		for (unsigned i = 0; i < n; i++)
			start(make_frame(tx[i]));
		if (n && port_free_ns_ > now + attr_.backlog_ns) {
			blocked_until_ns_ = port_free_ns_ - attr_.backlog_ns / 2;
			return blocked_until_ns_;
		}
	} while (n == attr_.tx_cap);
	return UINT64_MAX;
}

/* Packets stay in the engine, where lanes and pacing decide about them, until the port can send one. */
uint64_t Host::send_with_credits()
{
	static uint8_t hdr[UR_HDR_MAX];
	struct ur_tx tx;
	uint64_t now = now_ns();

	for (;;) {
		if (now < port_free_ns_)
			return port_free_ns_;
		if (wait_.empty()) {
			Frame *f;

			tx.hdr = hdr;
			if (!ur_engine_output(engine_, &tx, 1, now))
				return UINT64_MAX;
			f = make_frame(tx);
			wait_.push(f);
			waiting++;
			waiting_bytes += f->len;
		}
		if (!wire_.has_credit(wait_.front()->vl, wait_.front()->len))
			return UINT64_MAX; /* receive_credit() goes on */
		waiting--;
		waiting_bytes -= wait_.front()->len;
		start(wait_.pop());
	}
}

void Host::receive_credit(unsigned port, unsigned vl, uint32_t bytes)
{
	(void)port;
	wire_.add_credit(vl, bytes);
	if (!wait_.empty() && now_ns() >= port_free_ns_)
		turn_at(now_ns());
}

/* ---- receiving ---- */

/* A request has arrived: its answer is to tell its delay. */
void Host::note_asked(const Frame &f)
{
	uint64_t ns = attr_.told == Told::ONE_WAY ? now_ns() - f.sent_ns : f.wait_ns;

	if (f.asks && !asked_.empty())
		asked(f.src, f.stamp) = {
			f.src, f.stamp,
			static_cast<uint32_t>(ns ? std::min<uint64_t>(ns, UINT32_MAX) : 1)};
}

/* Of an answer whose request is not known any more the round trip must not count either. */
static void tell(struct ur_packet *p, const Frame &f, uint64_t now_ns)
{
	uint32_t away = ur_stamp_since(ur_stamp(now_ns), ur_stamp_of(p->xaeth.echo));
	uint32_t told = f.told_ns >> UR_STAMP_SHIFT;

	told = told ? told : 1;
	p->xaeth.residence = f.told_ns && told <= away ? away - told : UINT32_MAX;
}

enum ur_drop Host::input(const Frame &f)
{
	struct ur_packet p;
	enum ur_drop drop;
	uint64_t now = now_ns();

	if (attr_.whole_frames) {
		if (ur_engine_input_predicted(engine_, f.bytes, f.len, now, &drop))
			return drop;
		return ur_engine_input_frame(engine_, f.bytes, f.len, now);
	}
	std::memcpy(scratch, f.bytes, f.kept);
	drop = ur_packet_decode(scratch, f.len, &p);
	if (drop == UR_DROP_NONE && p.op & UR_OP_XAETH && !asked_.empty())
		tell(&p, f, now);
	return drop == UR_DROP_NONE ? ur_engine_input(engine_, &p, now) : drop;
}

void Host::receive(Frame *f, unsigned port)
{
	(void)port;
	received++;
	received_bytes += f->len;
	if (on_arrival)
		on_arrival(*f);
	note_asked(*f);
	if (f->dst != idx_)
		bad++;
	else if (input(*f) != UR_DROP_NONE)
		dropped_by_engine++;
	/* A host takes what arrives, at the speed of its link. */
	in_->return_credit(f->vl, f->len);
	give_frame(f);
	if (on_input)
		on_input();
	kick();
}

void Host::validate() const
{
	UR_ASSERT(bad == 0);
	UR_ASSERT(waiting <= 1 && waiting_bytes == wait_.bytes());
}

} // namespace sim
