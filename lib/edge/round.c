/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/round.h"

#include <string.h>

#include "edge/cache.h"
#include "wire/icrc.h"
#include "wire/mad_path.h"

#define HEADERS_AHEAD 6	  /* frames between a prefetch and its use: of headers, */
#define QPS_AHEAD     2	  /* and of the state of their queue pairs */
#define SMALL_FRAME   256 /* bytes */
#define BEHIND_ROUNDS 16  /* rounds for which timers wait for packets that the source still holds */
#define VID_MASK      0xfff
#define EVICT_BYTES   1024 /* of a frame worth evicting: fewer lines are fetched while others are */

#define BURST UR_BURST

_Static_assert(sizeof(struct ur_pkt) <= 24, "descriptors are copied by the burst");
_Static_assert(UR_ROUND_TX_PENDING <= UR_IMPAIR_PKT_OUT, "one call lets all of them out");

/* Called once per burst, after the first: the accuracy of stamps and round trips depends on it. */
static void update_now(struct ur_round *r)
{
	if (r->ops->now_ns)
		ur_round_set_now(r, r->ops->now_ns(r->source));
}

static void free_one(struct ur_round *r, struct ur_pkt *pkt)
{
	r->ops->free(r->source, pkt, 1);
}

/* ---- receive ---- */

static bool is_ours(const struct ur_round *r, const struct ur_gid *dst)
{
	for (unsigned i = 0; i < r->gid_cnt; i++)
		if (ur_gid_eq(dst, &r->gids[i]))
			return true;
	return false;
}

/* EDGE-VLAN-01. A tag with VLAN id 0 carries a priority and names no VLAN. */
static bool is_our_vlan(const struct ur_round *r, const struct ur_packet *p,
			const struct ur_pkt *pkt)
{
	uint16_t tci = p->has_vlan ? p->vlan_tci : 0;

	if (__builtin_expect(pkt->has_tci, 0))
		tci = pkt->vlan_tci;
	return (tci & VID_MASK) == r->vid;
}

/*
 * PREDICT-EDGE-01. The engine takes the packet without decoding if it is the one that its queue pair expects: an
 * untagged IPv4 packet for one of our addresses, on a port that is in no VLAN. Any other frame has some other bytes
 * where that has its destination; the engine looks at the rest.
 */
static bool input_predicted(struct ur_round *r, const struct ur_pkt *pkt)
{
	enum ur_drop drop;

	if (r->vid || pkt->has_tci || pkt->len < UR_PATH_MIN_BYTES)
		return false;
	for (unsigned i = 0; i < r->gid_cnt; i++)
		if (memcmp(r->gids[i].b + 12, pkt->data + UR_ETH_BYTES + 16, 4) == 0 &&
		    ur_gid_is_ipv4(&r->gids[i]))
			return ur_engine_input_predicted(r->engine, pkt->data, pkt->len, r->now_ns,
							 &drop);
	return false;
}

/* True: the packet was not handed over and is to be freed. */
static bool hand_over(struct ur_round *r, unsigned to, const struct ur_pkt *pkt)
{
	if (!r->ops->hand_over || !r->ops->hand_over(r->source, to, pkt)) {
		r->cnt.handover_full++;
		return true;
	}
	r->cnt.handed_over++;
	return false;
}

/* Frames that are not RoCEv2 are for worker 0, which has the neighbours. */
static bool input_other(struct ur_round *r, const struct ur_pkt *pkt)
{
	if (r->idx)
		return hand_over(r, 0, pkt);
	r->cnt.other_frames++;
	if (r->neigh)
		ur_neigh_input(r->neigh, pkt->data, pkt->len, r->now_ns);
	return true;
}

/* The packet was taken in. */
static void evict(const struct ur_round *r, const struct ur_pkt *pkt)
{
	if (r->evict_rx && pkt->len >= EVICT_BYTES)
		ur_cache_evict(pkt->data, pkt->len);
}

/* By hop or LID (wire/mad_path.h); the agent decides whether it is for this endpoint. */
static bool is_management(const struct ur_packet *p)
{
	return p->bth.dqpn.v <= UR_GSI_QPN && ur_mad_is_mgmt_mac(p->dmac);
}

/* Of a packet to none of our addresses. A group without an attached queue pair is not ours either. */
static __attribute__((noinline)) enum ur_drop check_group(const struct ur_round *r,
							  const struct ur_gid *dst)
{
	if (!ur_gid_is_multicast(dst))
		return UR_DROP_DST_ADDR;
	return ur_engine_has_group(r->engine, dst) ? UR_DROP_NONE : UR_DROP_GROUP;
}

/*
 * MCAST-TOUR-01. Workers may have queue pairs of one group: the packet goes to worker 0, and from each worker to the next.
 * True: it is to be freed.
 */
static bool input_group(struct ur_round *r, const struct ur_pkt *pkt, const struct ur_packet *p)
{
	enum ur_drop drop;

	if (r->idx && !r->handed)
		return hand_over(r, 0, pkt);
	drop = ur_engine_input_group(r->engine, p, memcmp(p->smac, r->mac, 6) == 0, r->now_ns);
	return drop == UR_DROP_GROUP || r->idx + 1u == r->workers || hand_over(r, r->idx + 1u, pkt);
}

/* True: the packet is to be freed. False: another worker has it now. */
static bool input_decoded(struct ur_round *r, const struct ur_pkt *pkt)
{
	const uint8_t *frame = pkt->data;
	struct ur_packet p;
	enum ur_drop drop = ur_packet_decode(frame, pkt->len, &p);
	unsigned owner;
	bool management, group;

	if (drop == UR_DROP_NOT_ROCE)
		return input_other(r, pkt);
	/* Management by hop and LID is untagged in every VLAN, as other protocols of the link are. */
	management = drop == UR_DROP_NONE && is_management(&p);
	group = drop == UR_DROP_NONE && !management && !is_ours(r, &p.ip.dst);
	if (__builtin_expect(group, 0))
		drop = check_group(r, &p.ip.dst);
	if (drop == UR_DROP_NONE && !management && !is_our_vlan(r, &p, pkt))
		drop = UR_DROP_VLAN;
	if (drop == UR_DROP_NONE && !ur_icrc_ok(frame, &p))
		drop = UR_DROP_ICRC;
	if (drop != UR_DROP_NONE) {
		r->cnt.drops[drop]++;
		return true;
	}
	if (__builtin_expect(group, 0))
		return input_group(r, pkt, &p);
	owner = ur_qpn_worker(p.bth.dqpn, r->workers);
	if (owner != r->idx)
		return hand_over(r, owner, pkt);
	ur_engine_input(r->engine, &p, r->now_ns);
	evict(r, pkt);
	return true;
}

/* The same. */
static bool input_packet(struct ur_round *r, const struct ur_pkt *pkt)
{
	if (!input_predicted(r, pkt))
		return input_decoded(r, pkt);
	evict(r, pkt);
	return true;
}

/*
 * A small frame is fetched whole, because its ICRC is the first thing that is computed and needs every
 * line; of others the headers, and the CPU sees by itself that the next lines will be needed.
 */
static void prefetch_frame(const struct ur_pkt *pkt)
{
	uint32_t bytes = pkt->len <= SMALL_FRAME ? pkt->len : UR_HDR_MAX;

	for (uint32_t at = 0; at < bytes; at += 64)
		__builtin_prefetch(pkt->data + at);
}

static inline void prefetch_qp(struct ur_round *r, const struct ur_pkt *pkt)
{
	ur_engine_prefetch(r->engine, pkt->data, pkt->len);
}

/* Packets that are handed over leave gaps in pkts; the others move up and are freed together. */
static void input_burst(struct ur_round *r, struct ur_pkt *pkts, unsigned n)
{
	unsigned done = 0;

	/* First the headers, then the queue pairs that they name, then the packets themselves. */
	for (unsigned i = 0; i < n && i < HEADERS_AHEAD; i++)
		prefetch_frame(&pkts[i]);
	for (unsigned i = 0; i < n && i < QPS_AHEAD; i++)
		prefetch_qp(r, &pkts[i]);
	for (unsigned i = 0; i < n; i++) {
		if (i + HEADERS_AHEAD < n)
			prefetch_frame(&pkts[i + HEADERS_AHEAD]);
		if (i + QPS_AHEAD < n)
			prefetch_qp(r, &pkts[i + QPS_AHEAD]);
		if (!input_packet(r, &pkts[i]))
			continue;
		if (__builtin_expect(done != i, 0))
			pkts[done] = pkts[i];
		done++;
	}
	if (done)
		r->ops->free(r->source, pkts, done);
}

static void capture(struct ur_round *r, const struct ur_pkt *pkts, unsigned n,
		    enum ur_capture_dir dir)
{
	struct ur_capture *c = r->capture ? ur_capture_enter(r->capture, r->idx) : NULL;

	if (!c)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct iovec seg[8] = {{pkts[i].data, pkts[i].len}};
		unsigned cnt = 1;

		if (pkts[i].in_pieces)
			cnt = r->gather->segments(r->source, &pkts[i], seg, 8);
		ur_capture_segments(c, r->idx, seg, cnt, r->now_ns, dir);
	}
	ur_capture_leave(r->capture, r->idx);
}

/* A burst from the source; returns how many came. */
static unsigned receive_burst(struct ur_round *r)
{
	struct ur_pkt pkts[BURST], out[UR_ROUND_IMPAIR_BURST];
	unsigned n = r->ops->rx(r->source, pkts, BURST);

	update_now(r);
	ur_engine_port_dry(r->engine, r->dry_ns);
	if (n < BURST)
		r->dry_ns = r->now_ns;
	if (n) {
		r->cnt.rx_frames += n;
		capture(r, pkts, n, UR_CAPTURE_RX);
		if (__builtin_expect(r->credit != NULL, 0))
			ur_round_credit_received(r->credit, pkts, n, r->now_ns);
	}
	if (__builtin_expect(r->rx_impair != NULL, 0)) {
		unsigned left = ur_impair_pkt_run(r->rx_impair, pkts, n, out, UR_ROUND_IMPAIR_BURST,
						  r->now_ns);

		r->may_have_output |= left != 0;
		input_burst(r, out, left);
	} else if (n) {
		input_burst(r, pkts, n);
	}
	return n;
}

static unsigned take_loop(struct ur_round *r, struct ur_pkt *pkts)
{
	unsigned n = 0;

	while (n < BURST && r->loop_head != r->loop_tail)
		pkts[n++] = r->loop[r->loop_head++ % UR_ROUND_LOOPBACK];
	return n;
}

/* Takes in packets to ourselves, or those that other workers handed over: each has its own share of a round. */
static unsigned receive_inner(struct ur_round *r, bool handed)
{
	struct ur_pkt pkts[BURST];
	unsigned n, total = 0, bursts = 0;

	r->handed = handed;
	do {
		n = handed ? r->ops->take(r->source, pkts, BURST) : take_loop(r, pkts);
		if (n)
			input_burst(r, pkts, n);
		total += n;
	} while (n == BURST && ++bursts < UR_ROUND_BURSTS);
	r->handed = false;
	return total;
}

/*
 * Receives as much as a round can send; otherwise ACKs of many queue pairs would wait while their
 * timers run, and packets to ourselves would fill the ring. *more: the source may hold more.
 */
static unsigned receive(struct ur_round *r, bool *more)
{
	unsigned n, total = 0, bursts = 0;

	r->sent_since_rx = 0;
	do {
		n = receive_burst(r);
		total += n;
	} while (n == BURST && ++bursts < UR_ROUND_BURSTS);
	*more = n == BURST;
	if (r->loop_head != r->loop_tail)
		total += receive_inner(r, false);
	if (r->workers > 1)
		total += receive_inner(r, true);
	return total;
}

/* ---- send ---- */

/* No frame refers to a user's memory when the engine runs again. */
static void join(struct ur_round *r, struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (pkts[i].in_pieces)
			r->gather->join(r->source, &pkts[i]);
}

static void push_pending(struct ur_round *r)
{
	while (r->tx_head != r->tx_tail) {
		struct ur_pkt *left = &r->tx_pending[r->tx_head];
		unsigned n = r->ops->tx(r->source, left, (unsigned)(r->tx_tail - r->tx_head));

		r->cnt.tx_frames += n;
		r->tx_head = (uint16_t)(r->tx_head + n);
		if (!n) {
			if (!r->stuck_ns)
				r->stuck_ns = r->now_ns;
			join(r, left, (unsigned)(r->tx_tail - r->tx_head));
			return;
		}
		r->stuck_ns = 0;
	}
	r->tx_head = r->tx_tail = 0;
}

/*
 * A source whose link is down takes nothing. What the endpoint sends to itself does not wait for that link, as long as few
 * frames for others do.
 */
static bool is_blocked(const struct ur_round *r)
{
	if (__builtin_expect(r->tx_head == r->tx_tail, 1))
		return false;
	return !r->stuck_ns || r->now_ns < r->stuck_ns + UR_ROUND_STUCK_NS || r->tx_tail > BURST;
}

static bool loop_has_room(struct ur_round *r)
{
	bool room = r->loop_tail - r->loop_head < UR_ROUND_LOOPBACK;

	r->cnt.handover_full += !room;
	return room;
}

/* MCAST-LOOP-01: what is sent to a group that this endpoint is in comes back as a copy, since no switch returns it. */
static __attribute__((noinline, cold)) void loop_copy(struct ur_round *r, struct ur_pkt *pkt)
{
	struct ur_packet p;
	struct ur_pkt copy;

	if (!ur_engine_has_groups(r->engine))
		return;
	join(r, pkt, 1);
	if (ur_packet_decode(pkt->data, pkt->len, &p) != UR_DROP_NONE ||
	    !ur_engine_has_group(r->engine, &p.ip.dst) || !loop_has_room(r))
		return;
	if (!r->ops->alloc(r->source, &copy, 1)) {
		r->cnt.no_mbuf++;
		return;
	}
	memcpy(copy.data, pkt->data, pkt->len);
	copy.len = pkt->len;
	r->cnt.loopback++;
	r->loop[r->loop_tail++ % UR_ROUND_LOOPBACK] = copy;
}

/* Keeps packets to our own MAC address from the source. Returns how many others are in pkts. */
static unsigned loop_back(struct ur_round *r, struct ur_pkt *pkts, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (__builtin_expect(memcmp(pkts[i].data, r->mac, 6) != 0, 1)) {
			if (__builtin_expect(pkts[i].data[0] & 1, 0))
				loop_copy(r, &pkts[i]);
			if (kept != i)
				pkts[kept] = pkts[i];
			kept++;
			continue;
		}
		r->cnt.loopback++;
		if (!loop_has_room(r)) {
			free_one(r, &pkts[i]);
			continue;
		}
		join(r, &pkts[i], 1);
		r->loop[r->loop_tail++ % UR_ROUND_LOOPBACK] = pkts[i];
	}
	return kept;
}

/* Takes over n frames, at most BURST; there is room because output stops while it is_blocked(). */
static void transmit(struct ur_round *r, struct ur_pkt *pkts, unsigned n)
{
	struct ur_pkt *at = &r->tx_pending[r->tx_tail];

	if (__builtin_expect(!r->no_loop, 1))
		n = loop_back(r, pkts, n);
	if (__builtin_expect(r->credit != NULL, 0))
		ur_round_credit_sent(r->credit, pkts, n);
	if (__builtin_expect(ur_rate_limits(&r->rate), 0))
		for (unsigned i = 0; i < n; i++)
			ur_rate_sent(&r->rate, pkts[i].len, r->now_ns);
	if (__builtin_expect(r->tx_impair != NULL, 0))
		n = ur_impair_pkt_run(r->tx_impair, pkts, n, at,
				      (unsigned)(UR_ROUND_TX_PENDING - r->tx_tail), r->now_ns);
	else
		memcpy(at, pkts, n * sizeof(*at));
	if (!n)
		return;
	capture(r, at, n, UR_CAPTURE_TX);
	r->tx_tail = (uint16_t)(r->tx_tail + n);
	push_pending(r);
}

/* Only the slots that were used are touched: most rounds of an idle worker use none. */
static bool refill(struct ur_round *r)
{
	if (!r->spare_first)
		return true;
	if (!r->ops->alloc(r->source, r->spare, r->spare_first)) {
		r->cnt.no_mbuf++;
		return r->spare_first < BURST;
	}
	for (unsigned i = 0; i < r->spare_first; i++)
		r->tx[i].hdr = r->stage_tx ? r->stage[i] : r->spare[i].data;
	r->spare_first = 0;
	return true;
}

/*
 * A distant core has read the lines of this buffer. Headers that were written there field by field, and then
 * read for the ICRC, would wait until that core has given up each line. So each byte is stored once.
 */
static uint32_t write_staged(const struct ur_tx *tx, uint8_t *frame)
{
	uint32_t bytes = ur_tx_bytes(tx);

	if (bytes > UR_ROUND_STAGE)
		return ur_tx_write(tx, frame);
	ur_tx_write(tx, tx->hdr);
	memcpy(frame, tx->hdr, bytes);
	return bytes;
}

/* Payload, pad and ICRC behind the headers that the engine wrote. */
static void build(struct ur_round *r, struct ur_pkt *pkts, const struct ur_tx *tx, unsigned n)
{
	if (r->gather) {
		r->gather->build(r->source, pkts, tx, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		pkts[i].len = r->stage_tx ? write_staged(&tx[i], pkts[i].data)
					  : ur_tx_write(&tx[i], pkts[i].data);
}

/* Whether the link that rate_gbps emulates takes another packet. */
static bool link_is_free(struct ur_round *r)
{
	if (ur_rate_lets(&r->rate, r->now_ns))
		return true;
	r->rate.behind = ur_engine_wants_output(r->engine);
	r->cnt.rate_waits += r->rate.behind;
	return false;
}

/* CREDIT-GATE-02: a message about credits leaves behind everything that it counts as sent. */
static void output_credit(struct ur_round *r)
{
	struct ur_pkt pkt;

	if (!ur_credit_is_due(r->credit, r->now_ns) || r->tx_head != r->tx_tail)
		return;
	if (!r->ops->alloc(r->source, &pkt, 1)) {
		r->cnt.no_mbuf++;
		return;
	}
	ur_credit_output(r->credit, pkt.data, r->mac, r->now_ns);
	r->cnt.credit_sessions = r->credit->cnt.credit_sessions;
	r->cnt.credit_silences = r->credit->cnt.credit_silences;
	r->cnt.credit_wait_ns = r->credit->cnt.credit_wait_ns;
	r->cnt.credit_stalls = r->credit->cnt.credit_stalls;
	pkt.len = UR_CREDIT_BYTES;
	transmit(r, &pkt, 1);
}

/* EDGE-ACK-02 */
static bool acks_join(struct ur_round *r)
{
	return __builtin_expect(r->ack_wait.with_answer != 0, 0) && ur_engine_owes(r->engine) &&
	       ur_ack_wait_join(&r->ack_wait);
}

/* A full burst is no answer, and ACKs do not wait for the rest of it. */
static __attribute__((noinline)) unsigned output_acks_last(struct ur_round *r, struct ur_tx *tx,
							   unsigned cap)
{
	unsigned n = ur_engine_output_acks_last(r->engine, tx, cap, r->now_ns);

	if (n == cap)
		r->ack_wait.with_answer = 0;
	return n;
}

/*
 * A slow link gets one packet at a time, and ACKs must not wait behind requests that an application
 * keeps posting.
 */
static unsigned output(struct ur_round *r, bool posted)
{
	bool slow = ur_rate_limits(&r->rate), acks_last = !slow && acks_join(r);
	unsigned total = 0, n, cap;

	posted = posted && !acks_last && !ur_ack_wait_is_first(&r->ack_wait);
	if (posted)
		ur_ack_wait_posted(&r->ack_wait, ur_engine_owes(r->engine));
	else
		ur_ack_wait_over(&r->ack_wait);
	push_pending(r);
	if (r->tx_impair &&
	    ur_impair_next_deadline(ur_impair_pkt_impair(r->tx_impair)) <= r->now_ns)
		transmit(r, NULL, 0);
	if (__builtin_expect(r->credit != NULL, 0))
		output_credit(r);
	do {
		struct ur_pkt *pkts;
		struct ur_tx *tx;

		if (is_blocked(r) || !refill(r))
			break;
		pkts = &r->spare[r->spare_first];
		tx = &r->tx[r->spare_first];
		cap = (unsigned)(BURST - r->spare_first);
		/* The caller has set the time just now. */
		if (total)
			update_now(r);
		if (__builtin_expect(slow, 0)) {
			if (!link_is_free(r))
				break;
			cap = 1;
		}
		if (__builtin_expect(r->credit != NULL, 0))
			cap = ur_round_credit_gate(r->credit, r->engine, cap, r->now_ns);
		if (posted && !slow)
			n = ur_engine_output_posted(r->engine, tx, cap, r->now_ns);
		else if (__builtin_expect(acks_last && !total, 0))
			n = output_acks_last(r, tx, cap);
		else
			n = ur_engine_output(r->engine, tx, cap, r->now_ns);
		if (!n) {
			r->rate.behind = false;
			break;
		}
		build(r, pkts, tx, n);
		r->spare_first = (uint16_t)(r->spare_first + n);
		r->sent_since_rx += n;
		transmit(r, pkts, n);
		total += n;
	} while (n == cap && total < UR_ROUND_BURSTS * BURST);
	return total;
}

static bool neigh_waits(const struct ur_round *r)
{
	return r->neigh && r->neigh->out.head != r->neigh->out.tail;
}

/* ARP, ND and ping frames are few and not urgent. */
static void output_neigh(struct ur_round *r)
{
	while (neigh_waits(r) && r->tx_head == r->tx_tail && ur_rate_lets(&r->rate, r->now_ns)) {
		struct ur_pkt pkt;

		if (!r->ops->alloc(r->source, &pkt, 1)) {
			r->cnt.no_mbuf++;
			return;
		}
		pkt.len = (uint32_t)ur_neigh_output(r->neigh, pkt.data, r->frame_bytes);
		if (pkt.len)
			transmit(r, &pkt, 1);
		else
			free_one(r, &pkt);
	}
}

unsigned ur_round_output(struct ur_round *r, uint64_t now_ns, bool posted)
{
	unsigned n;

	ur_round_set_now(r, now_ns);
	n = output(r, posted);
	if (!posted && neigh_waits(r))
		output_neigh(r);
	return n;
}

/* ---- the round ---- */

/*
 * Runs after receive(), because a timer may be waiting for a packet that has just arrived; for the same
 * reason timers wait while the source may hold more. Runs once per tick, the resolution of timers.
 */
static void expire(struct ur_round *r, bool all_received)
{
	if (r->now_ns >> UR_ENGINE_TICK_SHIFT == r->tick)
		return;
	if (!all_received && r->behind++ < BEHIND_ROUNDS)
		return;
	r->behind = 0;
	r->tick = r->now_ns >> UR_ENGINE_TICK_SHIFT;
	if (ur_engine_next_deadline(r->engine) <= r->now_ns) {
		ur_engine_expire(r->engine, r->now_ns);
		r->may_have_output = true;
	}
	if (r->neigh && ur_neigh_next_deadline(r->neigh) <= r->now_ns) {
		ur_neigh_expire(r->neigh, r->now_ns);
		r->may_have_output = true;
	}
}

/*
 * Output comes before receive: an inline caller sees at once what was received, and what it posts in answer leaves
 * before the ACK (ack_wait.h), unless it waits for an event. If it stops calling, the endpoint's progress thread sends the ACK.
 */
static bool may_output(const struct ur_round *r)
{
	return ur_engine_wants_output(r->engine) || r->tx_head != r->tx_tail || r->tx_impair ||
	       r->credit || neigh_waits(r);
}

static bool may_keep_ack(const struct ur_round *r)
{
	return r->ack_wait.for_ns && ur_engine_owes_one_ack(r->engine) &&
	       r->tx_head == r->tx_tail && !r->tx_impair && !r->credit && !neigh_waits(r);
}

/* EDGE-ACK-01. The caller has set the time. */
static bool acks_wait(struct ur_round *r)
{
	return may_keep_ack(r) && ur_ack_wait_goes_on(&r->ack_wait, r->now_ns);
}

bool ur_round_keep_ack(struct ur_round *r)
{
	if (!acks_wait(r))
		return false;
	ur_ack_wait_kept(&r->ack_wait);
	return true;
}

/* EDGE-ACK-03 */
static __attribute__((noinline)) unsigned output_acks_of_event(struct ur_round *r)
{
	r->event_raised = false;
	if (!r->ack_wait.for_ns || !ur_engine_owes(r->engine))
		return 0;
	update_now(r);
	return output(r, false);
}

static unsigned run(struct ur_round *r, bool outputs)
{
	unsigned n = 0;
	bool more;

	r->may_have_output = false;
	if (outputs) {
		n = output(r, false);
		if (neigh_waits(r))
			output_neigh(r);
	}
	n += receive(r, &more);
	if (__builtin_expect(r->event_raised, 0))
		n += output_acks_of_event(r);
	if (r->ack_wait.for_ns && ur_engine_owes(r->engine))
		ur_ack_wait_owed(&r->ack_wait, r->now_ns);
	expire(r, !more);
	return n;
}

unsigned ur_round_run(struct ur_round *r, uint64_t now_ns)
{
	ur_round_set_now(r, now_ns);
	return run(r, may_output(r));
}

/* What is received is stamped when it is there, so a round that sends nothing looks at the clock once. */
unsigned ur_round_poll(struct ur_round *r)
{
	bool outputs = may_output(r);

	if (outputs) {
		update_now(r);
		outputs = !acks_wait(r);
	}
	return run(r, outputs);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t impair_deadline(const struct ur_impair_pkt *ip)
{
	return ip ? ur_impair_next_deadline(ur_impair_pkt_impair(ip)) : UINT64_MAX;
}

/* Timers are looked at once a tick. */
static uint64_t timer_deadline(const struct ur_round *r)
{
	uint64_t next_tick_ns = (r->tick + 1) << UR_ENGINE_TICK_SHIFT;
	uint64_t due_ns = ur_engine_next_deadline(r->engine);

	if (r->neigh)
		due_ns = earlier(due_ns, ur_neigh_next_deadline(r->neigh));
	return due_ns < next_tick_ns ? next_tick_ns : due_ns;
}

uint64_t ur_round_next_deadline(const struct ur_round *r)
{
	uint64_t due_ns = timer_deadline(r);

	if (r->may_have_output)
		return r->now_ns;
	if (ur_rate_limits(&r->rate) && (ur_engine_wants_output(r->engine) || neigh_waits(r)))
		due_ns = earlier(due_ns, r->rate.next_ns);
	if (r->credit)
		due_ns = earlier(due_ns, ur_credit_next_deadline(r->credit));
	due_ns = earlier(due_ns, impair_deadline(r->rx_impair));
	return earlier(due_ns, impair_deadline(r->tx_impair));
}
