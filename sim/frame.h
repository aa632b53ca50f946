/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_FRAME_H
#define UR_NS3_FRAME_H

#include <cstddef>
#include <cstdint>

#include "wire/tx.h"

namespace sim
{

/*
 * A frame on its way from one host to another. Either all its bytes are kept, or only its headers: then the
 * payload is a length, and neither copied nor read. A frame has one owner at a time: a host, a queue of a
 * switch, or an event.
 */
struct Frame {
	Frame *next;	   /* in a queue */
	uint64_t sent_ns;  /* when its host passed it to the port */
	uint64_t in_ns;	   /* when it arrived at the switch where it is */
	uint64_t wait_ns;  /* time in switches so far: arrival to departure */
	uint32_t len;	   /* bytes, Ethernet header to ICRC */
	uint32_t kept;	   /* bytes kept of them */
	uint32_t src, dst; /* hosts */
	uint32_t flow;	   /* what ECMP distinguishes: a hash of addresses and ports */
	uint32_t via;	   /* the router's: a detour; 0: none */
	uint16_t in_port;  /* of the switch where it is */
	uint8_t vl;	   /* lane of the link that it was received on, [0, UR_VL_CNT) */
	uint8_t hops;	   /* switches entered */
	uint16_t data;	   /* bytes of payload */
	bool asks;	   /* a request of extended mode: */
	uint32_t stamp;	   /* when it was sent, as it says itself */
	uint32_t told_ns; /* an answer: the delay that its receiver is to hear, see Told; 0: none */
	uint8_t *bytes;	  /* [0, kept) */
};

/* Takes frames from a pool, and gives them back. A process has one pool; it is never made smaller. */
Frame *take_frame(uint32_t kept);
void give_frame(Frame *f);

/* Frames that are taken at the moment. */
size_t frames_taken();

/* A first-in first-out queue. */
class FrameQueue
{
      public:
	bool empty() const
	{
		return !head_;
	}
	Frame *front() const
	{
		return head_;
	}
	void push(Frame *f);
	Frame *pop();
	uint64_t bytes() const
	{
		return bytes_;
	}

      private:
	Frame *head_ = nullptr, *tail_ = nullptr;
	uint64_t bytes_ = 0;
};

} // namespace sim

#endif
