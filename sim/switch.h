/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_SWITCH_H
#define UR_NS3_SWITCH_H

#include <cstdint>
#include <vector>

#include "route.h"
#include "vl/attr.h"
#include "wire.h"

extern "C" {
#include "vl/vl.h"
}

namespace sim
{

struct SwitchAttr {
	/*
	 * Where frames wait. Output: in one queue for each output and lane, however many inputs fill it at a time.
	 * Input: in one queue for each input and lane; an input sends one frame at a time, and a frame that cannot
	 * leave holds up those behind it.
	 */
	enum Queues { OUTPUT, INPUT } queues = OUTPUT;
	unsigned vls = 1; /* lanes in use, [1, UR_VL_CNT] */
	uint64_t queue_bytes =
		0; /* output: depth of a lane above which frames are dropped; 0: never */
	uint64_t ecn_bytes =
		0; /* output: depth of a lane above which frames are marked; 0: never */
	struct ur_vl_attr vl_attr; /* of each output */
	bool stamp_whole = false;  /* stamps count until the last bit has left, as in tests/sim */
	SwitchAttr()
	{
		ur_vl_attr_default(&vl_attr);
	}
};

/*
 * A switch with ports [0, ports). A frame that has entered a lane of a port takes room there until its last bit has
 * left the switch; then the port's link gets the credits back. Lanes of an output take turns by lib/vl.
 */
class Switch : public Device
{
      public:
	Switch(unsigned idx, unsigned ports, const SwitchAttr &attr, Router *router);

	/* The direction of a port's link that leaves this switch, and the one that arrives. */
	Wire &out(unsigned port)
	{
		return out_[port].wire;
	}
	void set_in(unsigned port, Wire *wire)
	{
		in_[port].wire = wire;
	}

	void receive(Frame *f, unsigned port) override;
	void receive_credit(unsigned port, unsigned vl, uint32_t bytes) override;
	Context context() const override
	{
		return switch_context(idx_);
	}

	unsigned ports() const
	{
		return static_cast<unsigned>(out_.size());
	}
	/* Bytes queued for an output and its lane, whichever queue they are in: what a router may look at. */
	uint64_t queued_bytes(unsigned port) const
	{
		return out_[port].queued_bytes;
	}

	/* Asserts that what has arrived has left, was dropped, or is here. */
	void validate() const;

	uint64_t frames_in = 0, frames_out = 0, dropped = 0, dropped_bytes = 0, marked = 0;
	uint64_t held = 0, held_bytes = 0; /* frames in queues */
	uint64_t sending_bytes =
		0; /* of frames that have begun to leave; their room is still taken */

      private:
	struct In {
		Wire *wire = nullptr;
		std::vector<FrameQueue> lane; /* Queues::INPUT */
		std::vector<uint32_t> used;   /* bytes of each lane's room that are taken */
		std::vector<bool> shown; /* Queues::INPUT: the lane's first frame has a route */
		bool busy = false;	 /* Queues::INPUT: a frame is being sent */
	};
	struct Out {
		Wire wire;
		struct ur_vl vl;
		std::vector<FrameQueue> lane;	 /* Queues::OUTPUT */
		std::vector<uint64_t> lane_ns;	 /* time that the lane's frames will take */
		std::vector<uint64_t> lane_sent; /* when the last bit of its last frame leaves */
		std::vector<uint64_t>
			wanted; /* Queues::INPUT: bit (input, lane): its first frame is for here */
		std::vector<unsigned> turn; /* of each lane, the bit after the last one served */
		uint64_t queued_bytes = 0;
		bool busy = false;
	};

	void queue_at_output(Frame *f, Hop hop);
	void show_first(unsigned in, unsigned lane);
	/* The next frame of a lane of an output; nullptr: there is none that has credits. */
	Frame *candidate(Out &o, unsigned vl, unsigned *bit);
	void send_next(unsigned port);
	void sent(unsigned port, unsigned in_port, unsigned in_vl, uint32_t bytes);
	void drop(Frame *f);
	void release(unsigned in_port, unsigned in_vl, uint32_t bytes);
	unsigned words() const
	{
		return static_cast<unsigned>((in_.size() * attr_.vls + 63) / 64);
	}

	unsigned idx_;
	SwitchAttr attr_;
	Router *router_;
	std::vector<In> in_;
	std::vector<Out> out_;
};

} // namespace sim

#endif
