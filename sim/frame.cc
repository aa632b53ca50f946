/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <memory>
#include <vector>

#include "wire/assert.h"
#include "wire/packet.h"

namespace sim
{

namespace
{

constexpr uint32_t SMALL = UR_HDR_MAX, LARGE = 9216;

Frame *unused[2];			     /* small ones and large ones */
std::vector<std::unique_ptr<uint8_t[]>> all; /* so that those in events can be found at exit */
size_t taken;

} // namespace

Frame *take_frame(uint32_t kept)
{
	unsigned large = kept > SMALL;
	Frame *f = unused[large];

	UR_ASSERT(kept <= LARGE);
	if (f) {
		unused[large] = f->next;
	} else {
		all.emplace_back(new uint8_t[sizeof(Frame) + (large ? LARGE : SMALL)]);
		f = reinterpret_cast<Frame *>(all.back().get());
	}
	*f = Frame();
	f->kept = kept;
	f->bytes = reinterpret_cast<uint8_t *>(f + 1);
	taken++;
	return f;
}

void give_frame(Frame *f)
{
	unsigned large = f->kept > SMALL;

	f->next = unused[large];
	unused[large] = f;
	taken--;
}

size_t frames_taken()
{
	return taken;
}

void FrameQueue::push(Frame *f)
{
	f->next = nullptr;
	if (tail_)
		tail_->next = f;
	else
		head_ = f;
	tail_ = f;
	bytes_ += f->len;
}

Frame *FrameQueue::pop()
{
	Frame *f = head_;

	head_ = f->next;
	if (!head_)
		tail_ = nullptr;
	bytes_ -= f->len;
	return f;
}

} // namespace sim
