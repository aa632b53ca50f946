/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <arpa/inet.h>
#include <string.h>

#include "srq.h"

/*
 * Sending and checking by the plan (pattern.h). Message n of a queue pair owns slot n of each
 * ring: the sender fills its own slot, a WRITE lands in the receiver's, a READ fetches the peer's
 * and lands in the sender's. The receiver sees SENDs and immediate data; since RC is in order,
 * each of these proves that all plain WRITEs before it have landed, and these are then checked.
 */
#define UNTOUCHED 0xee /* what a READ's target holds before */

static enum perf_op op_of(const struct perf_session *s, struct perf_plan plan)
{
	return s->params.op == PERF_OP_SEND_INV ? PERF_OP_SEND_INV : plan.op;
}

/* Gathers or scatters `bytes` of a slot over params.sge pieces. */
static void pieces(struct perf_session *s, struct perf_qp *q, uint64_t n, uint64_t bytes,
		   struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	uint64_t at = (uintptr_t)q->mem + s->layout.tx + perf_slot(s, n);
	uint64_t cnt = bytes < s->params.sge ? 1 : s->params.sge;
	uint64_t each = cnt == 1 ? bytes : bytes / cnt;

	for (uint64_t i = 0; i < cnt; i++) {
		sge[i] = (struct ibv_sge){at + i * each,
					  (uint32_t)(i + 1 == cnt ? bytes - i * each : each),
					  s->mr->lkey};
	}
	wr->sg_list = sge;
	wr->num_sge = (int)cnt;
}

static void aim(struct perf_session *s, struct perf_qp *q, uint64_t n, enum perf_op op,
		struct ibv_send_wr *wr)
{
	switch (op) {
	case PERF_OP_READ:
		wr->wr.rdma.remote_addr = q->remote + s->layout.rd + perf_slot(s, n);
		wr->wr.rdma.rkey = s->remote_rkey;
		break;
	case PERF_OP_CAS:
		wr->wr.atomic.remote_addr = q->remote + PERF_AT_CAS;
		wr->wr.atomic.rkey = s->remote_rkey;
		wr->wr.atomic.compare_add = perf_cas_value(q->tx_key, q->cas_next);
		wr->wr.atomic.swap = perf_cas_value(q->tx_key, q->cas_next + 1);
		q->cas_next++;
		break;
	case PERF_OP_FETCH_ADD:
		wr->wr.atomic.remote_addr = s->remote_addr;
		wr->wr.atomic.rkey = s->remote_rkey;
		wr->wr.atomic.compare_add = 1;
		break;
	default:
		if (s->params.type == PERF_TYPE_UD) {
			wr->wr.ud.ah = q->ah;
			wr->wr.ud.remote_qpn = q->remote_qpn;
			wr->wr.ud.remote_qkey = q->remote_qkey;
		} else {
			wr->wr.rdma.remote_addr = q->remote + s->layout.wr + perf_slot(s, n);
			wr->wr.rdma.rkey = s->remote_rkey;
		}
	}
}

/* False when message n cannot be built yet: its key was not granted. */
static bool build(struct perf_session *s, struct perf_qp *q, uint64_t n, uint32_t i)
{
	struct perf_plan plan = perf_plan(&s->planner, q->tx_key, n);
	struct ibv_send_wr *wr = &s->tx_wr[i];
	enum perf_op op = op_of(s, plan);
	unsigned traits = perf_op_traits(op);
	uint8_t *slot = q->mem + s->layout.tx + perf_slot(s, n);
	uint32_t key = 0;

	if (op == PERF_OP_SEND_INV && (key = perf_granted(q, n)) == 0)
		return false;
	wr->opcode = perf_op_opcode(op);
	wr->send_flags = 0;
	wr->wr_id = perf_wr_id(PERF_WR_TX, q->idx, (uint32_t)(n + 1));
	pieces(s, q, n, plan.size, wr, s->tx_sge[i]);
	aim(s, q, n, op, wr);
	if (op == PERF_OP_SEND_INV)
		wr->invalidate_rkey = key;
	else
		wr->imm_data = htonl((uint32_t)n);
	if ((traits & PERF_T_SOURCE) == 0)
		memset(slot, UNTOUCHED, plan.size);
	else if (s->params.verify)
		perf_pattern_fill(slot, plan.size, perf_base(q->tx_key, n));
	if ((traits & PERF_T_SOURCE) != 0 && s->params.inline_bytes != 0 &&
	    plan.size <= s->params.inline_bytes)
		wr->send_flags |= IBV_SEND_INLINE;
	if (((n + 1) & (s->params.signal_every - 1)) == 0 || n + 1 == q->tx_limit) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		if (s->stamps != NULL)
			*perf_stamp(s, q, n) = s->now_ns;
	}
	return true;
}

static uint64_t cas_among(const struct perf_session *s, const struct perf_qp *q, uint64_t from,
			  uint64_t to)
{
	uint64_t cnt = 0;

	for (; from < to; from++)
		cnt += perf_plan(&s->planner, q->tx_key, from).op == PERF_OP_CAS;
	return cnt;
}

uint32_t perf_checked_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt)
{
	uint32_t built = 0, taken;

	while (built < cnt && build(s, q, q->tx_next + built, built))
		built++;
	if (built == 0)
		return 0;
	taken = perf_traffic_post(s, q, built);
	/* Messages that did not fit in the queue are built again later, at the same place in the chain. */
	if (taken < built)
		q->cas_next -= cas_among(s, q, q->tx_next + taken, q->tx_next + built);
	for (uint32_t i = 0; i < taken; i++) {
		if ((s->tx_wr[i].send_flags & IBV_SEND_SIGNALED) != 0)
			q->tx_signaled = q->tx_next + i + 1;
	}
	q->tx_next += taken;
	return taken;
}

static void wrong_bytes(struct perf_session *s, const struct perf_qp *q, const char *what,
			uint64_t n, uint64_t bytes, uint64_t at, uint8_t got, uint8_t want)
{
	perf_session_error(
		s,
		"%s: queue pair %u (generation %u), %s of message %llu, %llu bytes: at offset "
		"%llu there is 0x%02x instead of 0x%02x",
		s->server ? "server" : "client", q->idx, q->gen, what, (unsigned long long)n,
		(unsigned long long)bytes, (unsigned long long)at, got, want);
}

static void compare(struct perf_session *s, const struct perf_qp *q, const char *what, uint64_t n,
		    const uint8_t *got, uint64_t bytes, uint64_t base)
{
	size_t at = perf_pattern_check(got, bytes, base);

	s->stats.checked++;
	if (at != bytes)
		wrong_bytes(s, q, what, n, bytes, at, got[at], perf_pattern_byte(base, at));
}

static void check_cas(struct perf_session *s, struct perf_qp *q, uint64_t n, uint64_t result)
{
	uint64_t want = perf_cas_value(q->tx_key, q->cas_done++);

	s->stats.checked++;
	if (result != want)
		perf_session_error(s,
				   "queue pair %u, compare-and-swap %llu (message %llu) returned "
				   "0x%016llx instead of 0x%016llx",
				   q->idx, (unsigned long long)q->cas_done - 1,
				   (unsigned long long)n, (unsigned long long)result,
				   (unsigned long long)want);
}

/* Results of one queue pair rise; all results together are 0, 1, 2, ... each once. */
static void check_fetch_add(struct perf_session *s, struct perf_qp *q, uint64_t n, uint64_t result)
{
	s->stats.checked++;
	if (result + 1 <= q->fetch_last)
		perf_session_error(s,
				   "queue pair %u, fetch_add of message %llu returned %llu after "
				   "%llu had been returned",
				   q->idx, (unsigned long long)n, (unsigned long long)result,
				   (unsigned long long)q->fetch_last - 1);
	q->fetch_last = result + 1;
	s->fetch_cnt++;
	s->fetch_sum += result;
	s->fetch_squares += result * result;
}

void perf_checked_fetch_adds(struct perf_session *s, uint64_t word)
{
	uint64_t sum = 0, squares = 0;

	for (uint64_t i = 0; i < s->fetch_cnt; i++) {
		sum += i;
		squares += i * i;
	}
	if (!s->params.verify)
		return;
	if (word != s->fetch_cnt)
		perf_session_error(s, "after %llu fetch_adds of 1 the word is %llu",
				   (unsigned long long)s->fetch_cnt, (unsigned long long)word);
	if (sum != s->fetch_sum || squares != s->fetch_squares)
		perf_session_error(s,
				   "the results of %llu fetch_adds are not 0, 1, 2, ... each once",
				   (unsigned long long)s->fetch_cnt);
}

static void check_fetched(struct perf_session *s, struct perf_qp *q, uint64_t n,
			  struct perf_plan plan)
{
	const uint8_t *slot = q->mem + s->layout.tx + perf_slot(s, n);
	uint64_t key, value;

	switch (plan.op) {
	case PERF_OP_READ:
		key = perf_key(s->params.seed, q->idx, q->gen, s->server ? 2 : 3);
		compare(s, q, "the data read", n, slot, plan.size,
			perf_base(key, n & (s->params.slots - 1)));
		break;
	case PERF_OP_CAS:
	case PERF_OP_FETCH_ADD:
		memcpy(&value, slot, sizeof(value));
		if (plan.op == PERF_OP_CAS)
			check_cas(s, q, n, value);
		else
			check_fetch_add(s, q, n, value);
		break;
	default:
		break;
	}
}

static enum ibv_wc_opcode wc_opcode(enum perf_op op)
{
	switch (op) {
	case PERF_OP_WRITE:
	case PERF_OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case PERF_OP_READ:
		return IBV_WC_RDMA_READ;
	case PERF_OP_CAS:
		return IBV_WC_COMP_SWAP;
	case PERF_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

void perf_checked_complete(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
			   uint64_t done)
{
	struct perf_plan plan = {0};

	for (uint64_t n = q->tx_done; n < done; n++) {
		plan = perf_plan(&s->planner, q->tx_key, n);
		s->stats.bytes += plan.size;
		if (s->params.verify && (perf_op_traits(plan.op) & PERF_T_FETCH) != 0)
			check_fetched(s, q, n, plan);
	}
	if (wc->opcode != wc_opcode(op_of(s, plan)))
		perf_session_error(s,
				   "queue pair %u: the completion of message %llu, a %s, says "
				   "opcode %d",
				   q->idx, (unsigned long long)done - 1,
				   perf_op_name(op_of(s, plan)), (int)wc->opcode);
}

/* Checks plain WRITEs in [rx_next, to), which must have landed. Other messages there were lost. */
static void check_silent(struct perf_session *s, struct perf_qp *q, uint64_t to)
{
	for (; q->rx_next < to; q->rx_next++) {
		struct perf_plan plan = perf_plan(&s->planner, q->rx_key, q->rx_next);

		if ((perf_op_traits(plan.op) & PERF_T_RECV) != 0)
			perf_session_error(
				s, "queue pair %u: %s of message %llu was never received", q->idx,
				perf_op_name(plan.op), (unsigned long long)q->rx_next);
		else if (plan.op == PERF_OP_WRITE)
			compare(s, q, "the write", q->rx_next,
				q->mem + s->layout.wr + perf_slot(s, q->rx_next), plan.size,
				perf_base(q->rx_key, q->rx_next));
	}
}

/* RC: the next message of the plan that the receiver can see. */
static uint64_t number_in_order(struct perf_session *s, struct perf_qp *q)
{
	uint64_t n = q->rx_next;

	while ((perf_op_traits(perf_plan(&s->planner, q->rx_key, n).op) & PERF_T_RECV) == 0)
		n++;
	check_silent(s, q, n);
	return n;
}

/* UC and UD lose messages, so each one carries its number. UINT64_MAX if it has none. */
static uint64_t number_carried(const struct perf_qp *q, const struct ibv_wc *wc,
			       const uint8_t *data)
{
	const uint64_t back = 1024, ahead = 65536;
	uint64_t from = q->rx_next > back ? q->rx_next - back : 0;
	uint64_t n;

	if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
		return q->rx_next +
		       (uint64_t)(int64_t)(int32_t)(ntohl(wc->imm_data) - (uint32_t)q->rx_next);
	n = perf_pattern_find(data, q->rx_key, q->rx_next, ahead);
	return n != UINT64_MAX ? n : perf_pattern_find(data, q->rx_key, from, q->rx_next - from);
}

static bool number_of(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
		      const uint8_t *data, uint64_t *n)
{
	if (!s->lossy) {
		*n = number_in_order(s, q);
		q->rx_next = *n + 1;
		return true;
	}
	*n = number_carried(q, wc, data);
	if (*n == UINT64_MAX) {
		perf_session_error(s,
				   "queue pair %u: a message is none of those that may come after "
				   "message %llu; it begins with %02x %02x %02x %02x",
				   q->idx, (unsigned long long)q->rx_next, data[0], data[1],
				   data[2], data[3]);
		return false;
	}
	if (*n < q->rx_next) {
		s->stats.reordered++;
	} else {
		s->stats.missing += *n - q->rx_next;
		q->rx_next = *n + 1;
	}
	return true;
}

static void check_invalidated(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
			      uint64_t n)
{
	uint32_t victim = (uint32_t)n & (PERF_GRANTS - 1);
	struct ibv_mr *mr = q->victims[victim];
	uint32_t old = mr->rkey;
	int rc;

	if ((wc->wc_flags & IBV_WC_WITH_INV) == 0 || wc->invalidated_rkey != old)
		perf_session_error(s,
				   "queue pair %u: message %llu should have invalidated key 0x%x, "
				   "not 0x%x",
				   q->idx, (unsigned long long)n, old, wc->invalidated_rkey);
	rc = uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				    UROCE_ACCESS_REMOTE_INVALIDATE);
	if (rc != 0) {
		perf_session_fail(s, "cannot register an invalidated region again: %s",
				  strerror(rc));
		return;
	}
	if (mr->rkey == old)
		perf_session_error(s,
				   "queue pair %u: an invalidated region got the same key 0x%x "
				   "again",
				   q->idx, old);
	perf_grant(s, q, victim, n + PERF_GRANTS);
}

static const uint8_t *buffer_of(struct perf_session *s, const struct perf_qp *q, uint32_t slot)
{
	return s->srq != NULL ? (const uint8_t *)(uintptr_t)s->srq->at[slot]
			      : perf_session_rx_buffer(s, q->idx, slot);
}

void perf_checked_receive(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc,
			  uint32_t slot)
{
	uint32_t grh = s->params.type == PERF_TYPE_UD ? PERF_GRH_BYTES : 0;
	const uint8_t *data = buffer_of(s, q, slot) + grh;
	uint32_t bytes = wc->byte_len - grh;
	struct perf_plan plan;
	unsigned traits;
	bool write;
	uint64_t n;

	if (!number_of(s, q, wc, data, &n))
		return;
	plan = perf_plan(&s->planner, q->rx_key, n);
	plan.op = op_of(s, plan);
	traits = perf_op_traits(plan.op);
	write = (traits & PERF_T_WRITE) != 0;
	if ((wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != write ||
	    ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) != ((traits & PERF_T_IMM) != 0))
		perf_session_error(
			s,
			"queue pair %u: message %llu should be a %s, the completion says "
			"opcode %d, flags 0x%x",
			q->idx, (unsigned long long)n, perf_op_name(plan.op), (int)wc->opcode,
			wc->wc_flags);
	else if ((traits & PERF_T_IMM) != 0 && ntohl(wc->imm_data) != (uint32_t)n)
		perf_session_error(s, "queue pair %u: message %llu carries immediate data %u",
				   q->idx, (unsigned long long)n, ntohl(wc->imm_data));
	if (bytes != plan.size)
		perf_session_error(s, "queue pair %u: message %llu has %u bytes instead of %llu",
				   q->idx, (unsigned long long)n, bytes,
				   (unsigned long long)plan.size);
	else if (s->params.verify)
		compare(s, q, write ? "the write" : "the send", n,
			write ? q->mem + s->layout.wr + perf_slot(s, n) : data, bytes,
			perf_base(q->rx_key, n));
	if (plan.op == PERF_OP_SEND_INV)
		check_invalidated(s, q, wc, n);
}

void perf_checked_end(struct perf_session *s, const struct perf_end *end)
{
	struct perf_qp *q = &s->qps[end->idx];
	uint64_t word, want = perf_cas_value(q->rx_key, end->cas);

	if (!s->params.verify)
		return;
	if (q->rx_next > end->messages)
		perf_session_error(s, "queue pair %u: %llu messages were received, %llu were sent",
				   q->idx, (unsigned long long)q->rx_next,
				   (unsigned long long)end->messages);
	if (s->lossy) {
		if (q->rx_next < end->messages)
			s->stats.missing += end->messages - q->rx_next;
		q->rx_next = end->messages;
	} else {
		check_silent(s, q, end->messages);
	}
	if ((s->traits & PERF_T_ATOMIC) == 0)
		return;
	memcpy(&word, q->mem + PERF_AT_CAS, sizeof(word));
	if (word != want && (s->params.op == PERF_OP_CAS || s->params.op == PERF_OP_MIXED))
		perf_session_error(
			s,
			"queue pair %u: after %llu compare-and-swaps the word is 0x%016llx "
			"instead of 0x%016llx",
			q->idx, (unsigned long long)end->cas, (unsigned long long)word,
			(unsigned long long)want);
}
