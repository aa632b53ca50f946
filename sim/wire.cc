/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include "wire/assert.h"

namespace sim
{

void Wire::connect(const WireAttr &attr, Device *to, unsigned to_port, bool to_switch)
{
	attr_ = attr;
	to_ = to;
	to_port_ = to_port;
	to_switch_ = to_switch;
	for (uint32_t &credit : credit_)
		credit = attr.credit_bytes;
}

uint64_t Wire::serialize_ns(uint32_t len) const
{
	if (attr_.flit_bytes)
		return (len + attr_.flit_bytes - 1) / attr_.flit_bytes;
	return static_cast<uint64_t>(len) * 8 * 1000000000u / attr_.bits_per_s;
}

uint64_t Wire::cross_ns(uint32_t len, unsigned links) const
{
	uint32_t shown = attr_.cut_through_bytes && attr_.cut_through_bytes < len
				 ? attr_.cut_through_bytes
				 : len;

	return (links - 1) * (serialize_ns(shown) + attr_.delay_ns) + serialize_ns(len) +
	       attr_.delay_ns;
}

void Wire::set_loss(double part, uint64_t seed)
{
	loss_ = static_cast<uint64_t>(part * 4294967296.0);
	random_ = Random(seed);
}

uint64_t Wire::bytes_in(uint64_t ns) const
{
	return attr_.flit_bytes ? ns * attr_.flit_bytes : ns * (attr_.bits_per_s / 1000000) / 8000;
}

uint64_t Wire::send(Frame *f, uint64_t start_ns, bool lose)
{
	uint64_t whole_ns = serialize_ns(f->len), shown_ns = whole_ns;

	lose = lose || down_ || (loss_ && random_.next() >> 32 < loss_);
	if (attr_.credit_bytes) {
		UR_ASSERT(credit_[f->vl] >= f->len && !lose);
		credit_[f->vl] -= f->len;
	}
	frames++;
	bytes += f->len;
	busy_ns += whole_ns;
	if (lose) {
		lost++;
		lost_bytes += f->len;
		give_frame(f);
		return start_ns + whole_ns;
	}
	if (to_switch_ && attr_.cut_through_bytes && attr_.cut_through_bytes < f->len)
		shown_ns = serialize_ns(attr_.cut_through_bytes);
	if (cut_) {
		cut_->send_frame(*this, start_ns + shown_ns + attr_.delay_ns, *f);
		give_frame(f);
	} else {
		arrive_at(start_ns + shown_ns + attr_.delay_ns, f);
	}
	return start_ns + whole_ns;
}

void Wire::arrive_at(uint64_t at_ns, Frame *f)
{
	flying++;
	call_at(to_->context() | to_port_, at_ns, &Wire::deliver, this, f);
}

void Wire::deliver(Frame *f)
{
	flying--;
	arrived++;
	arrived_bytes += f->len;
	to_->receive(f, to_port_);
}

void Wire::return_credit(unsigned vl, uint32_t n)
{
	if (!attr_.credit_bytes)
		return;
	if (cut_)
		cut_->send_credit(*this, now_ns() + attr_.delay_ns, vl, n);
	else
		credit_at(now_ns() + attr_.delay_ns, vl, n);
}

void Wire::credit_at(uint64_t at_ns, unsigned vl, uint32_t n)
{
	call_at(from_->context() | CREDIT_SLOT | from_port_, at_ns, &Wire::give_credit, this, vl,
		n);
}

void Wire::give_credit(unsigned vl, uint32_t n)
{
	from_->receive_credit(from_port_, vl, n);
}

void Wire::add_credit(unsigned vl, uint32_t n)
{
	credit_[vl] += n;
	UR_ASSERT(credit_[vl] <= attr_.credit_bytes);
}

} // namespace sim
