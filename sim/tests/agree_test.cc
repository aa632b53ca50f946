/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts and one switch send the same frames, at the same nanosecond, as in tests/sim. A case is run in both;
 * every frame that a host sends is compared, time and bytes.
 */
#include <criterion/criterion.h>

#include <cinttypes>
#include <string>
#include <vector>

#include "clock.h"
#include "load.h"
#include "network.h"
#include "wire/delay.h"

namespace
{

struct Sent {
	uint64_t at_ns;
	std::vector<uint8_t> bytes; /* those that the frame keeps */
	uint32_t len;
};

class ToHost : public sim::Router
{
      public:
	sim::Hop route(const sim::Switch &, unsigned, sim::Frame *f) override
	{
		return {static_cast<uint16_t>(f->dst), 0};
	}
};

/* The same case in ns-3. */
class World
{
      public:
	/* whole: frames have all their bytes, as in tests/sim */
	World(const struct load_case &c, uint64_t start_ns, bool whole = true)
	    : c_(c), whole_(whole)
	{
		sim::call_at(sim::NETWORK_CONTEXT, start_ns, &World::start, this);
		ns3::Simulator::Run();
		account = net_.validate();
		done = whole && !load_right(load_) ? -1 : load_done(load_);
		load_end(load_, sim::now_ns());
	}
	~World()
	{
		ns3::Simulator::Destroy();
	}

	std::vector<Sent> sent[2]; /* by each host */
	sim::Network::Account account;
	int done = 0;
	uint64_t dropped()
	{
		return net_.sw(0).dropped;
	}
	uint64_t marked()
	{
		return net_.sw(0).marked;
	}

      private:
	sim::HostAttr host_attr(const struct load_case &c)
	{
		sim::HostAttr a;

		a.limits = {};
		a.limits.max_qp = LOAD_MAX_QP;
		a.limits.workers = 1;
		a.limits.reorder_slots = 64;
		a.limits.reorder_slot_bytes = 4096;
		a.limits.reorder_contexts = a.limits.read_gaps = a.limits.spray_contexts = 4;
		a.limits.loss_slabs = 12;
		a.limits.loss_slabs_max = 64;
		a.limits.loss_slab_bytes = 48 << 10;
		a.limits.loss_first = 64;
		a.limits.max_sge = 4;
		a.limits.destinations = c.pacing ? 17 : 0;
		a.max_mr = LOAD_MAX_MR;
		a.window = LOAD_WINDOW;
		a.ackreq_every = LOAD_ACKREQ;
		a.pacing = c.pacing;
		a.whole_frames = whole_;
		return a;
	}

	void start()
	{
		struct load_end end[2];
		sim::SwitchAttr switch_attr;
		sim::WireAttr up, down;

		up.bits_per_s = c_.host_bps;
		up.delay_ns = c_.delay_ns;
		down.bits_per_s = c_.port_bps;
		down.delay_ns = 0;
		switch_attr.queue_bytes = c_.queue_bytes;
		switch_attr.ecn_bytes = c_.ecn_bytes;
		switch_attr.stamp_whole = true;
		net_.add_switch(2, switch_attr, &to_host_);
		for (unsigned i = 0; i < 2; i++) {
			sim::Host &h = net_.add_host(host_attr(c_), i + 1);

			net_.link_host(i, 0, i, up, down);
			h.on_send = [this](const sim::Frame &f) { return note(f); };
			end[i] = {h.engine(), h.mem(), h.gid(), {}};
			h.mac(end[i].mac);
		}
		load_ = load_start(&c_, end, sim::now_ns());
		for (unsigned i = 0; i < 2; i++)
			net_.host(i).kick();
	}

	bool note(const sim::Frame &f)
	{
		size_t n = sent[0].size() + sent[1].size();

		sent[f.src].push_back({sim::now_ns(), {f.bytes, f.bytes + f.kept}, f.len});
		return n < 64 && (c_.drop_mask >> n & 1);
	}

	struct load_case c_;
	bool whole_;
	sim::Network net_;
	ToHost to_host_;
	struct load *load_ = nullptr;
};

/* What the cases of a test have in common must have happened in some of them. */
struct Seen {
	size_t frames = 0;
	uint64_t dropped = 0, marked = 0;
	size_t asked = 0, told = 0; /* packets with D; answers with the delay of a switch */
};

void compare(const struct load_case &c, Seen *seen)
{
	struct reference *r = reference_run(&c);
	World w(c, reference_start_ns(r));
	struct reference_frame f;
	std::string where = std::string(c.name) + ":" + std::to_string(c.seed);
	int all = static_cast<int>(c.messages[0] + c.messages[1]);
	size_t n[2] = {};

	while (reference_next(r, &f)) {
		struct ur_packet p;

		/* Of what two hosts send in the same nanosecond, either may come first. */
		unsigned from = f.bytes[11] - 10u;
		size_t i = n[from]++;

		cr_assert_lt(i, w.sent[from].size(),
			     "%s: host %u sends %zu frames in ns-3, more in tests/sim",
			     where.c_str(), from, i);
		const Sent &s = w.sent[from][i];

		cr_assert(s.at_ns == f.at_ns && s.bytes.size() == f.len &&
				  memcmp(s.bytes.data(), f.bytes, f.len) == 0,
			  "%s: host %u, frame %zu: %zu bytes at %" PRIu64 " in ns-3, %u at %" PRIu64
			  " in tests/sim",
			  where.c_str(), from, i, s.bytes.size(), s.at_ns, f.len, f.at_ns);
		cr_assert_eq(ur_packet_decode(f.bytes, f.len, &p), UR_DROP_NONE);
		seen->asked += (p.bth.resv6 & UR_DELAY_ASK) != 0;
		seen->told += p.op & UR_OP_NDTH && p.ndth.hops == 1 && p.ndth.delay > 1;
	}
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(n[i], w.sent[i].size(),
			     "%s: host %u sends %zu frames in ns-3, %zu in tests/sim",
			     where.c_str(), i, w.sent[i].size(), n[i]);
	cr_assert_eq(reference_done(r), all, "%s: tests/sim has not finished", where.c_str());
	cr_assert_eq(w.done, all, "%s: ns-3 has not finished", where.c_str());
	cr_assert_eq(w.dropped(), reference_dropped(r), "%s: drops", where.c_str());
	cr_assert_eq(w.marked(), reference_marked(r), "%s: marks", where.c_str());
	cr_assert(w.account.held == 0 && w.account.flying == 0, "%s: frames are left",
		  where.c_str());
	seen->frames += n[0] + n[1];
	seen->dropped += w.dropped();
	seen->marked += w.marked();
	reference_free(r);
}

constexpr enum ur_mode MODES[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};

struct load_case base(const char *name, uint64_t seed, enum ur_mode mode)
{
	struct load_case c = {};

	c.name = name;
	c.seed = seed;
	c.mode = mode;
	c.op = LOAD_MIXED;
	c.messages[0] = 24;
	c.messages[1] = 24;
	c.message_bytes = 5000;
	c.host_bps = c.port_bps = 10000000000u;
	c.delay_ns = 5000;
	return c;
}

} // namespace

Test(agree, each_operation_without_loss)
{
	Seen seen;

	for (enum ur_mode mode : MODES)
		for (int op = LOAD_WRITE; op <= LOAD_MIXED; op++)
			for (unsigned both = 0; both < 2; both++) {
				struct load_case c =
					base("clean", static_cast<uint64_t>(op * 2) + both, mode);

				c.op = static_cast<enum load_op>(op);
				c.messages[1] = both ? 24 : 0;
				compare(c, &seen);
			}
	cr_assert_gt(seen.frames, 2000u);
}

Test(agree, frames_that_a_mask_loses)
{
	Seen seen;

	for (enum ur_mode mode : MODES)
		for (uint64_t seed = 0; seed < 40; seed++) {
			struct load_case c = base("masked", seed, mode);

			/* Few of the first frames, among them the very first ones. */
			c.drop_mask = (seed * UINT64_C(0x9e3779b97f4a7c15)) &
				      (seed * UINT64_C(0xbf58476d1ce4e5b9)) &
				      (seed * UINT64_C(0x94d049bb133111eb));
			c.drop_mask |= seed & 7;
			compare(c, &seen);
		}
	cr_assert_gt(seen.frames, 10000u);
}

Test(agree, a_slow_port_that_marks_and_drops)
{
	Seen seen;

	for (enum ur_mode mode : MODES)
		for (int algorithm = UR_CC_NONE; algorithm <= UR_CC_SWIFT; algorithm++) {
			struct load_case c = base("slow", static_cast<uint64_t>(algorithm), mode);
			struct ur_cc_attr pacing = {};

			pacing.mode = static_cast<enum ur_cc_mode>(algorithm);
			pacing.link_bps = c.host_bps;
			c.pacing = &pacing;
			c.op = LOAD_WRITE;
			c.messages[0] = c.messages[1] = LOAD_DEPTH;
			c.message_bytes = 20000;
			c.port_bps = 2500000000u;
			c.ecn_bytes = 20000;
			c.queue_bytes = 80000;
			compare(c, &seen);
		}
	cr_assert(seen.dropped && seen.marked, "no queue was ever full");
}

/* Probes ask for delay stamps, switches write them, and the answers tell: in both simulators. */
Test(agree, delays_that_the_switch_stamps)
{
	Seen seen;

	for (int algorithm = UR_CC_CMDPD; algorithm <= UR_CC_SWIFT; algorithm++) {
		struct load_case c =
			base("stamps", static_cast<uint64_t>(algorithm), UR_MODE_EXTENDED);
		struct ur_cc_attr pacing = {};

		pacing.mode = static_cast<enum ur_cc_mode>(algorithm);
		pacing.link_bps = c.host_bps;
		pacing.target_ns = 20000;
		c.pacing = &pacing;
		c.op = LOAD_WRITE;
		c.messages[0] = c.messages[1] = LOAD_DEPTH;
		c.message_bytes = 20000;
		c.port_bps = 2500000000u;
		c.queue_bytes = 80000;
		c.stamps = true;
		compare(c, &seen);
	}
	cr_assert_gt(seen.asked, 10u);
	cr_assert_gt(seen.told, 10u);
}

/* Payload that is only a length changes nothing but the payload. */
Test(agree, frames_without_payload_bytes)
{
	size_t frames = 0, shorter = 0;

	for (enum ur_mode mode : MODES)
		for (uint64_t seed = 0; seed < 8; seed++) {
			struct load_case c = base("payload", seed, mode);
			std::vector<Sent> whole[2], headers[2];

			c.drop_mask = seed;
			{
				World w(c, 1000000);
				whole[0] = w.sent[0];
				whole[1] = w.sent[1];
				cr_assert_eq(w.done, 48);
			}
			{
				World w(c, 1000000, false);
				headers[0] = w.sent[0];
				headers[1] = w.sent[1];
				cr_assert_eq(w.done, 48);
			}
			for (unsigned i = 0; i < 2; i++) {
				cr_assert_eq(whole[i].size(), headers[i].size());
				for (size_t n = 0; n < whole[i].size(); n++) {
					const Sent &a = whole[i][n], &b = headers[i][n];

					cr_assert(a.at_ns == b.at_ns && a.len == b.len &&
						  a.bytes.size() == a.len &&
						  b.bytes.size() < b.len &&
						  memcmp(a.bytes.data(), b.bytes.data(),
							 b.bytes.size()) == 0);
					shorter += a.bytes.size() > b.bytes.size() + 1000;
				}
				frames += whole[i].size();
			}
		}
	cr_assert_gt(frames, 4000u);
	cr_assert_gt(shorter, frames / 4);
}
