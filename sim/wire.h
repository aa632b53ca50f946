/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_WIRE_H
#define UR_NS3_WIRE_H

#include <cstdint>
#include <vector>

#include "clock.h"
#include "frame.h"
#include "random.h"
#include "vl/attr.h"

namespace sim
{

/* What a link is at its end: a host or a switch. */
class Device
{
      public:
	virtual ~Device() = default;
	/* Takes a frame that has arrived on a port. */
	virtual void receive(Frame *f, unsigned port) = 0;
	/* Takes back credits of the link that leaves by `port`: a frame has left the other end's buffer. */
	virtual void receive_credit(unsigned port, unsigned vl, uint32_t bytes) = 0;
	/* Of events that a frame causes which arrives on port 0; those of other ports follow (clock.h). */
	virtual Context context() const = 0;
};

/*
 * What one host tells another beside the network, after the delay of a link: numbers of queue pairs, what has been received.
 * Meanings are the receiver's (workload.cc, traffic.cc).
 */
struct Notice {
	uint32_t from, to; /* hosts */
	uint32_t kind, a, b;
};

class Wire;

/* The way to devices that another process simulates (processes.h). Everything arrives after the delay of a link at the earliest. */
class Cut
{
      public:
	virtual ~Cut() = default;
	/* The frame remains the caller's. */
	virtual void send_frame(const Wire &wire, uint64_t at_ns, const Frame &f) = 0;
	virtual void send_credit(const Wire &wire, uint64_t at_ns, unsigned vl, uint32_t bytes) = 0;
	virtual void send_notice(unsigned part, uint64_t at_ns, const Notice &n) = 0;
};

struct WireAttr {
	uint64_t bits_per_s = 10000000000u;
	/* If not 0, frames take whole flits, of so many bytes and one nanosecond each, and bits_per_s is not used. */
	uint32_t flit_bytes = 0;
	uint64_t delay_ns = 5000;
	/* A switch begins to forward when so many bytes have arrived; 0: the whole frame. */
	uint32_t cut_through_bytes = 0;
	/* Room of the other end for each lane, bytes: the credits of this end. 0: no credits. */
	uint32_t credit_bytes = 0;
};

/*
 * One direction of a link: the sending end's view. Credits are bytes of the other end's buffer, one account for
 * each lane, as in IBA 7.9 but in bytes instead of blocks of 64.
 */
class Wire
{
      public:
	void connect(const WireAttr &attr, Device *to, unsigned to_port, bool to_switch);

	/* Nanoseconds that a frame of that length takes. */
	uint64_t serialize_ns(uint32_t len) const;
	/* How long a frame takes by so many idle links with these attributes, all but the last one to a switch. */
	uint64_t cross_ns(uint32_t len, unsigned links) const;
	/* Bytes that leave in that time. */
	uint64_t bytes_in(uint64_t ns) const;

	bool has_credit(unsigned vl, uint32_t len) const
	{
		return !attr_.credit_bytes || credit_[vl] >= len;
	}
	/*
	 * Sends a frame, on its lane f->vl, from start_ns on. Takes its credits, which must be there. The frame belongs to
	 * the wire. `lose`: it never arrives, nor does it if the wire is down or loses it by chance; only a wire without
	 * credits loses frames. Returns when its last bit has left.
	 */
	uint64_t send(Frame *f, uint64_t start_ns, bool lose = false);
	/* Tells the sending end, after the delay of the wire, that room is free again. */
	void return_credit(unsigned vl, uint32_t bytes);
	/* Loses this part of all frames from now on, at random. */
	void set_loss(double part, uint64_t seed);
	/* While it is down, it loses all frames that are sent. */
	void set_down(bool down)
	{
		down_ = down;
	}
	bool is_down() const
	{
		return down_;
	}
	/* The sending end got credits back. */
	void add_credit(unsigned vl, uint32_t bytes);

	const WireAttr &attr() const
	{
		return attr_;
	}
	bool connected() const
	{
		return to_;
	}
	/* The sending end, which return_credit() reports to. */
	void set_from(Device *from, unsigned port)
	{
		from_ = from;
		from_port_ = port;
	}
	/* An end is another process's, which knows this wire by the same number. */
	void cut(Cut *cut, uint32_t number)
	{
		cut_ = cut;
		number_ = number;
	}
	uint32_t number() const
	{
		return number_;
	}
	/* What the other process has sent by it; the frame is the wire's. */
	void arrive_at(uint64_t at_ns, Frame *f);
	void credit_at(uint64_t at_ns, unsigned vl, uint32_t n);

	/* Of a wire that is cut, one process counts what is sent, the other what arrives. */
	uint64_t frames = 0, bytes = 0; /* sent, lost ones included */
	uint64_t lost = 0, lost_bytes = 0;
	uint64_t arrived = 0, arrived_bytes = 0;
	uint64_t flying = 0;  /* frames that this process will deliver */
	uint64_t busy_ns = 0; /* time in which a frame was being sent */

      private:
	void deliver(Frame *f);
	void give_credit(unsigned vl, uint32_t n);

	WireAttr attr_;
	Device *to_ = nullptr, *from_ = nullptr;
	unsigned to_port_ = 0, from_port_ = 0;
	bool to_switch_ = false, down_ = false;
	Cut *cut_ = nullptr; /* nullptr: both ends are here */
	uint32_t number_ = 0;
	uint64_t loss_ = 0; /* of 2^32 frames */
	Random random_ = Random(0);
	uint32_t credit_[UR_VL_CNT] = {};
};

} // namespace sim

#endif
