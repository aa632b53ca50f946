/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "switch/stamp.h"
#include "wire/bytes.h"
#include "wire/assert.h"
#include "wire/icrc.h"
#include "wire/path.h"

#define FRAME_MAX      9216
#define TX_BATCH_MAX   32
#define TX_BACKLOG_NS  20000 /* limit of the link's backlog, above which frames stay in the engine */
#define IDLE_TURNS_MAX 1000  /* turns in a row at the same time that count as a livelock */
#define PRINTED_FRAMES 60

static struct sim *current; /* the simulation that an assertion of the core belongs to */

/* ---- failures ---- */

static void report(struct sim *s)
{
	const char *frames = getenv("UROCE_SIM_FRAMES");
	char file[160];

	if (!s)
		return;
	sim_trace_print(&s->trace, stderr,
			frames ? (uint32_t)strtoul(frames, NULL, 0) : PRINTED_FRAMES);
	snprintf(file, sizeof(file), "sim-%s-%" PRIu64 ".pcap", s->attr.name, s->attr.number);
	fprintf(stderr, "at %.3f us, after %" PRIu64 " events; %s %s\n", (double)s->now_ns / 1000,
		s->events, sim_trace_write(&s->trace, file) ? "frames are in" : "cannot write",
		file);
	fprintf(stderr, "replay: UROCE_SIM_REPLAY=%s:%" PRIu64 "\n", s->attr.name, s->attr.number);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "FAILED %s:%" PRIu64 ": ", s->attr.name, s->attr.number);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	report(s);
	abort();
}

void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "FAILED: assertion %s at %s:%d\n", expr, file, line);
	report(current);
	abort();
}

bool sim_replaying(void)
{
	return getenv("UROCE_SIM_REPLAY") != NULL;
}

bool sim_replay(const char *name, uint64_t *number)
{
	const char *want = getenv("UROCE_SIM_REPLAY");
	size_t len = strlen(name);

	if (!want || strncmp(want, name, len) != 0 || want[len] != ':')
		return false;
	*number = strtoull(want + len + 1, NULL, 0);
	return true;
}

const char *sim_mode_case(enum ur_mode mode, const char *name)
{
	static const char *const names[] = {
#define X(NAME, text) #text,
		UR_MODES(X)
#undef X
	};
	static char buf[96];

	snprintf(buf, sizeof(buf), "%s.%s", names[mode], name);
	return buf;
}

/* ---- the heap of events ---- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct sim *s, struct sim_event ev)
{
	unsigned i = s->heap_cnt++;

	if (s->heap_cnt > s->heap_cap) {
		s->heap_cap = s->heap_cap ? s->heap_cap * 2 : 64;
		s->heap = realloc(s->heap, s->heap_cap * sizeof(*s->heap));
		if (!s->heap)
			abort();
	}
	ev.order = s->order++;
	for (; i && earlier(&ev, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = ev;
}

static struct sim_event pop(struct sim *s)
{
	struct sim_event top = s->heap[0], last = s->heap[--s->heap_cnt];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= s->heap_cnt)
			break;
		if (child + 1 < s->heap_cnt && earlier(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!earlier(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

/* Schedules a turn at that time, unless there is an earlier one. A later one remains scheduled. */
static void turn_at(struct sim_ep *ep, uint64_t at_ns)
{
	if (at_ns >= ep->wake_ns)
		return;
	ep->wake_ns = at_ns;
	push(ep->sim, (struct sim_event){.at_ns = at_ns, .kind = SIM_EVENT_TURN, .ep = ep});
}

void sim_kick(struct sim_ep *ep)
{
	turn_at(ep, ep->sim->now_ns + ep->turn_delay_ns);
}

void sim_call_at(struct sim *s, uint64_t at_ns, void (*fn)(struct sim *s, void *arg), void *arg)
{
	push(s, (struct sim_event){.at_ns = at_ns, .kind = SIM_EVENT_CALL, .call = fn, .arg = arg});
}

/* ---- frames ---- */

uint32_t sim_build_frame(const struct ur_tx *tx, uint8_t *out)
{
	uint32_t len = ur_tx_write(tx, out);

	UR_ASSERT(len == ur_tx_bytes(tx) && tx->frag_cnt <= UR_FRAGS_MAX && tx->pad < 4);
	return len;
}

void sim_reseal(uint8_t *frame, const struct ur_packet *p)
{
	ur_icrc_append(frame + p->l3_off, (size_t)(p->icrc_off - p->l3_off), p->ip.v6);
}

/* False: the frame is lost because it is stamped. */
static bool stamp(struct sim_ep *to, uint8_t *frame, uint32_t len, uint64_t ns)
{
	struct ur_switch_stamp st;

	if (to->in.attr.stamps == SIM_STAMPS_NONE || !ur_switch_stamp_begin(frame, len, &st))
		return true;
	to->in.stamped++;
	ur_switch_stamp_set(frame, &st, ns);
	if (to->in.attr.stamps == SIM_STAMPS_LIES)
		ur_store16(frame + st.udp_off + 6, (uint16_t)sim_rand(&to->sim->rng));
	return to->in.attr.stamps != SIM_STAMPS_LOST;
}

/* Queues a frame at the port of the switch that leads to the endpoint. */
static void pass_port(struct sim_ep *to, uint8_t *frame, uint32_t len)
{
	struct sim *s = to->sim;
	struct ur_packet p;
	uint64_t at_ns;
	bool ecn;

	if (!sim_port_pass(&to->in, len, s->now_ns, &at_ns, &ecn) ||
	    !stamp(to, frame, len, at_ns - s->now_ns)) {
		free(frame);
		return;
	}
	if (ecn && ur_packet_decode(frame, len, &p) == UR_DROP_NONE)
		sim_mark_ecn(frame, &p);
	push(s, (struct sim_event){.at_ns = at_ns,
				   .kind = SIM_EVENT_FRAME,
				   .ep = to,
				   .frame = frame,
				   .len = len});
}

static void deliver_at(struct sim_ep *to, uint64_t at_ns, const uint8_t *frame, uint32_t len,
		       bool corrupt)
{
	uint8_t *copy = malloc(len);

	if (!copy)
		abort();
	memcpy(copy, frame, len);
	if (corrupt)
		sim_corrupt(&to->sim->rng, copy, len);
	push(to->sim, (struct sim_event){.at_ns = at_ns,
					 .kind = to->in.attr.bits_per_s ? SIM_EVENT_ARRIVAL
									: SIM_EVENT_FRAME,
					 .ep = to,
					 .frame = copy,
					 .len = len});
}

void sim_inject_at(struct sim_ep *to, uint64_t at_ns, const uint8_t *frame, uint32_t len)
{
	deliver_at(to, at_ns, frame, len, false);
}

void sim_inject(struct sim_ep *to, const uint8_t *frame, uint32_t len)
{
	sim_inject_at(to, to->sim->now_ns, frame, len);
}

void sim_stall(struct sim_ep *ep, uint64_t ns)
{
	uint64_t until = ep->sim->now_ns + ns;

	if (until > ep->stalled_until_ns)
		ep->stalled_until_ns = until;
}

static bool masked(struct sim *s, const struct ur_packet *p)
{
	unsigned n = s->counted;

	if (s->mask_counts && !s->mask_counts(p))
		return false;
	s->counted++;
	return n < 64 && (s->drop_mask >> n & 1);
}

struct sim_ep *sim_destination(struct sim *s, const struct ur_packet *p)
{
	for (unsigned i = 0; i < s->attr.eps; i++)
		if (ur_gid_eq(&p->ip.dst, &s->ep[i].gid4) || ur_gid_eq(&p->ip.dst, &s->ep[i].gid6))
			return &s->ep[i];
	return NULL;
}

/* Sends a frame from an endpoint. Returns the time at which its link is free again. */
static uint64_t transmit(struct sim_ep *ep, uint8_t *frame, uint32_t len)
{
	struct sim *s = ep->sim;
	struct ur_packet p;
	struct sim_ep *to;
	struct sim_fate fate;
	uint64_t left_ns = s->now_ns;
	bool ecn;
	enum sim_trace_fate traced = SIM_TRACE_SENT;
	enum sim_verdict verdict = SIM_PASS;
	enum ur_drop drop = ur_packet_decode(frame, len, &p);
	const char *why;

	SIM_CHECK(s, drop == UR_DROP_NONE, "endpoint %u sent a malformed frame: %s", ep->idx,
		  ur_drop_text(drop));
	SIM_CHECK(s, p.frame_len == len, "endpoint %u sent %u bytes, its headers say %u", ep->idx,
		  len, p.frame_len);
	to = sim_destination(s, &p);
	SIM_CHECK(s, to, "endpoint %u sent to an unknown address", ep->idx);
	ep->tx_frames++;
	why = s->wire ? sim_wire_sent(s->wire, ep->idx, to->idx, &p) : NULL;
	if (ep->out.attr.bits_per_s)
		sim_port_pass(&ep->out, len, s->now_ns, &left_ns, &ecn);
	fate = sim_link_send(&ep->link[to->idx], &s->rng, len, left_ns);
	if (masked(s, &p))
		verdict = SIM_DROP;
	else if (s->hook)
		verdict = s->hook(s, ep, frame, len, &p);
	if (verdict != SIM_PASS)
		fate.copies = 0;
	if (fate.ecn)
		sim_mark_ecn(frame, &p);
	if (verdict == SIM_KEEP)
		traced = SIM_TRACE_HELD;
	else if (!fate.copies)
		traced = SIM_TRACE_LOST;
	else if (fate.corrupt[0])
		traced = SIM_TRACE_CORRUPT;
	else if (fate.copies > 1)
		traced = SIM_TRACE_DUP;
	ep->lost_frames += traced == SIM_TRACE_LOST;
	if (!s->attr.fast)
		sim_trace_add(&s->trace, s->now_ns, frame, len, traced);
	SIM_CHECK(s, !why, "endpoint %u: %s", ep->idx, why);
	for (unsigned i = 0; i < fate.copies; i++)
		deliver_at(to, fate.at_ns[i], frame, len, fate.corrupt[i]);
	return ep->link[to->idx].busy_until_ns;
}

void sim_send(struct sim_ep *from, uint8_t *frame, uint32_t len)
{
	transmit(from, frame, len);
}

static void receive(struct sim_ep *ep, const uint8_t *frame, uint32_t len)
{
	struct ur_packet p;

	if (ur_packet_decode(frame, len, &p) != UR_DROP_NONE || !ur_icrc_ok(frame, &p)) {
		ep->rx_bad_icrc++;
		return;
	}
	if (sim_destination(ep->sim, &p) != ep)
		return;
	ep->rx_frames++;
	if (ep->intercept) {
		ep->intercept(ep, &p, frame, len);
		return;
	}
	if (ep->sim->wire)
		sim_wire_arrived(ep->sim->wire, ep->idx, &p);
	if (!ur_engine_input_predicted(ep->engine, frame, len, ep->sim->now_ns, &ep->last_drop))
		ep->last_drop = ur_engine_input(ep->engine, &p, ep->sim->now_ns);
	if (ep->last_drop != UR_DROP_NONE)
		ep->rx_dropped++;
	sim_kick(ep);
}

/* ---- an endpoint's loop ---- */

static void expire(struct sim_ep *ep)
{
	struct sim *s = ep->sim;
	if (ep->last_turn_ns != s->now_ns || ep->last_turn_frames != ep->tx_frames)
		ep->idle_turns = 0;
	ep->last_turn_ns = s->now_ns;
	ep->last_turn_frames = ep->tx_frames;
	SIM_CHECK(s, ep->idle_turns++ < IDLE_TURNS_MAX, "endpoint %u spins: deadline %" PRIu64,
		  ep->idx, ur_engine_next_deadline(ep->engine));
	if (ur_engine_next_deadline(ep->engine) <= s->now_ns)
		ur_engine_expire(ep->engine, s->now_ns);
}

/* True if a ready list has a queue whose gate is open. */
static bool any_is_ready(const struct ur_emux *x)
{
	const struct ur_sched_node *n;

	for (uint32_t lanes = x->ready_lanes; lanes; lanes &= lanes - 1)
		for (unsigned p = 0; p < UR_EMUX_PRIORITIES; p++)
			TAILQ_FOREACH(n, &x->ready[__builtin_ctz(lanes)][p].ready, link)
			{
				const struct ur_emux_queue *q = (const void *)n;

				if (!(q->gate && q->gate->closed))
					return true;
			}
	return false;
}

/* Calls output of an endpoint, and lets the oracle of scheduling check it. */
static unsigned output(struct sim_ep *ep, struct ur_tx *tx)
{
	struct sim *s = ep->sim;
	const struct ur_core *core = ur_engine_core(ep->engine);
	bool could = s->on_output && any_is_ready(&core->emux);
	unsigned n = ur_engine_output(ep->engine, tx, ep->tx_cap, s->now_ns);

	SIM_CHECK(s, n <= ep->tx_cap, "output returned %u of %u", n, ep->tx_cap);
	SIM_CHECK(s, core->cnt.sched_blind_visits == 0, "endpoint %u: a turn without a packet",
		  ep->idx);
	SIM_CHECK(s,
		  n == ep->tx_cap ||
			  !(core->emux.ready_cnt || core->acks.ready_cnt || core->cnps.ready_cnt),
		  "endpoint %u stops after %u packets, %u queues are ready", ep->idx, n,
		  core->emux.ready_cnt);
	if (!s->attr.fast)
		ur_emux_validate(&core->emux);
	if (s->on_output)
		s->on_output(s, ep, could, n);
	return n;
}

/* Sends until the engine has nothing more or the link's backlog is full. Returns when to continue. */
static uint64_t send_all(struct sim_ep *ep)
{
	static uint8_t hdr[TX_BATCH_MAX][UR_HDR_MAX];
	static struct ur_tx tx[TX_BATCH_MAX];
	static uint8_t frame[FRAME_MAX];
	struct sim *s = ep->sim;
	unsigned n;

	/* A full transmit ring stays full, even if frames arrive meanwhile. */
	if (s->now_ns < ep->blocked_until_ns)
		return ep->blocked_until_ns;
	do {
		for (unsigned i = 0; i < ep->tx_cap; i++)
			tx[i].hdr = hdr[i];
		n = output(ep, tx);
		for (unsigned i = 0; i < n; i++) {
			uint64_t free_ns = transmit(ep, frame, sim_build_frame(&tx[i], frame));

			if (i == n - 1 && free_ns > s->now_ns + TX_BACKLOG_NS) {
				ep->blocked_until_ns = free_ns - TX_BACKLOG_NS / 2;
				return ep->blocked_until_ns;
			}
		}
	} while (n == ep->tx_cap);
	return UR_NEVER;
}

/* The control thread adds memory for contexts some time after it is wanted. */
static void grow(struct sim_ep *ep)
{
	uint32_t wanted = ur_engine_wanted_slabs(ep->engine);
	uint64_t now_ns = ep->sim->now_ns;
	void *memory;

	if (!wanted || ep->loss_growths == SIM_GROWTHS) {
		ep->grow_ns = UR_NEVER;
		return;
	}
	if (ep->grow_ns == UR_NEVER)
		ep->grow_ns = now_ns + SIM_GROWTH_NS;
	if (now_ns < ep->grow_ns)
		return;
	memory = sim_memory_take((size_t)wanted * ep->sim->attr.loss.bytes);
	ep->loss_memory[ep->loss_growths++] = memory;
	SIM_CHECK(ep->sim, ur_engine_add_slabs(ep->engine, memory, wanted) == wanted,
		  "endpoint %u does not take the slabs that it wants", ep->idx);
	ep->grow_ns = UR_NEVER;
}

static void turn(struct sim_ep *ep)
{
	uint64_t next, resume;

	if (ep->wake_ns > ep->sim->now_ns)
		return; /* one that was overtaken by an earlier one */
	ep->wake_ns = UR_NEVER;
	expire(ep);
	grow(ep);
	resume = send_all(ep);
	next = ur_engine_next_deadline(ep->engine);
	if (next <= ep->sim->now_ns)
		next = ep->sim->now_ns;
	turn_at(ep, next < resume ? next : resume);
}

/* ---- running ---- */

static void validate(struct ur_qp *qp, void *ctx)
{
	(void)ctx;
	ur_qp_validate(qp);
}

/* Postpones an event of an endpoint that does not run at the moment. Frames come before the turn. */
static bool postponed(struct sim_event *ev)
{
	struct sim_ep *ep = ev->ep;

	if (!ep || ev->kind == SIM_EVENT_ARRIVAL || ep->stalled_until_ns <= ev->at_ns)
		return false;
	ev->at_ns = ep->stalled_until_ns;
	if (ev->kind == SIM_EVENT_TURN) {
		if (ep->wake_ns <= ep->sim->now_ns)
			ep->wake_ns = ++ev->at_ns;
		else
			return true; /* was overtaken by an earlier one */
	}
	push(ep->sim, *ev);
	return true;
}

static void step(struct sim *s)
{
	struct sim_event ev = pop(s);

	s->now_ns = ev.at_ns;
	if (postponed(&ev))
		return;
	s->events++;
	switch (ev.kind) {
	case SIM_EVENT_ARRIVAL:
		pass_port(ev.ep, ev.frame, ev.len);
		break;
	case SIM_EVENT_FRAME:
		receive(ev.ep, ev.frame, ev.len);
		free(ev.frame);
		break;
	case SIM_EVENT_TURN:
		turn(ev.ep);
		break;
	case SIM_EVENT_CALL:
		ev.call(s, ev.arg);
		break;
	}
	for (unsigned i = 0; i < s->attr.eps && !s->attr.fast; i++)
		ur_engine_for_each_qp(s->ep[i].engine, validate, NULL);
	if (s->after)
		s->after(s, s->after_arg);
}

bool sim_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns)
{
	uint64_t end_ns = s->now_ns + limit_ns;

	while (!(done && done(arg))) {
		if (!s->heap_cnt)
			return !done;
		if (s->heap[0].at_ns > end_ns) {
			s->now_ns = end_ns;
			return false;
		}
		step(s);
	}
	return true;
}

void sim_must_run(struct sim *s, bool (*done)(void *arg), void *arg, uint64_t limit_ns)
{
	SIM_CHECK(s, sim_run(s, done, arg, limit_ns), "no end within %.3f ms",
		  (double)limit_ns / 1e6);
}

void sim_sleep(struct sim *s, uint64_t ns)
{
	uint64_t end_ns = s->now_ns + ns;

	sim_run(s, NULL, NULL, ns);
	s->now_ns = end_ns;
}

/* ---- creating and freeing ---- */

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	struct sim_ep *ep = ctx;

	SIM_CHECK(ep->sim, ep->async_cnt < SIM_ASYNC_MAX, "a storm of asynchronous events");
	ep->async[ep->async_cnt++] = (struct sim_async){type, user};
}

static void on_completion(void *ctx, struct ur_cq *cq)
{
	(void)ctx;
	++*(unsigned *)cq->user; /* the first member of every sim_cq */
}

static void on_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct sim_ep *ep = ctx;

	(void)cq, (void)wc, (void)solicited;
	sim_fail(ep->sim, "a completion for another worker, and there is only one");
}

static void on_cm(void *ctx, const struct ur_cm_event *ev)
{
	struct sim_ep *ep = ctx;

	(void)ev;
	sim_fail(ep->sim, "a connection manager event without a connection");
}

static uint32_t loss_first(const struct sim_attr *a)
{
	const char *first = getenv("UROCE_LOSS_FIRST");

	return a->loss.first ? a->loss.first : first ? (uint32_t)atoi(first) : 64;
}

static void ep_init(struct sim *s, unsigned idx)
{
	const struct sim_attr *a = &s->attr;
	struct sim_ep *ep = &s->ep[idx];
	struct ur_engine_attr attr = {
		.limits = {.max_qp = a->max_qp,
			   .workers = 1,
			   .worker = 0,
			   .cm = {.max_ids = 4, .max_listeners = 1, .max_pending = 2, .max_tx = 20},
			   .reorder_slots = a->reorder_slots,
			   .reorder_slot_bytes = 4096,
			   .reorder_contexts = a->contexts,
			   .read_gaps = a->contexts,
			   .loss_slabs = a->loss.slabs,
			   .loss_slabs_max = a->loss.max,
			   .loss_slab_bytes = a->loss.bytes,
			   .loss_first = loss_first(a),
			   .spray_contexts = a->contexts,
			   .admission = a->admission ? 8 : 0,
			   .destinations = a->pacing ? SIM_EP_MAX : 0,
			   .max_sge = 4},
		.sink = {.ctx = ep,
			 .completion = on_completion,
			 .async = on_async,
			 .cross_worker = on_cross_worker},
		.cm = {.ca_guid = idx + 1,
		       .seed = sim_rand(&s->rng),
		       .timewait_ns = SIM_MS(100),
		       .sink = on_cm,
		       .sink_ctx = ep},
		.random = sim_rand(&s->rng),
		.time_wait_ns = a->time_wait_ns,
		.window = a->window,
		.ackreq_every = a->ackreq_every,
		.mtu_shift = 12,
		.qos = a->qos,
		.admission = a->admission,
		.pacing = a->pacing,
	};

	ep->sim = s;
	ep->idx = idx;
	ep->wake_ns = ep->grow_ns = UR_NEVER;
	ep->turn_delay_ns = a->turn_delay_ns;
	ep->tx_cap = a->tx_cap;
	ep->last_turn_ns = UR_NEVER;
	memcpy(ep->mac, (const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(idx + 10)}, 6);
	ep->gid4 = ur_gid_from_ipv4(0x0a620001 + idx);
	ep->gid6 = (struct ur_gid){{0xfd, 0x55, [15] = (uint8_t)(idx + 1)}};
	for (unsigned i = 0; i < a->eps; i++)
		ep->link[i].attr = a->link;
	ep->mem = ur_mem_init(sim_memory_take(ur_mem_size(a->max_mr)), a->max_mr);
	attr.mem = ep->mem;
	ep->engine_memory = sim_memory_take(ur_engine_size(&attr.limits));
	ep->engine = ur_engine_init(ep->engine_memory, &attr, s->now_ns);
}

struct sim_attr sim_defaults(const char *name, uint64_t number)
{
	return (struct sim_attr){
		.name = name,
		.number = number,
		.seed = number,
		.eps = 2,
		.max_qp = 8,
		.max_mr = 64,
		.window = 128,
		.ackreq_every = 16,
		.contexts = 4,
		.loss = {.slabs = 12, .max = 64, .bytes = 48 << 10},
		.reorder_slots = 64,
		.time_wait_ns = SIM_MS(10),
		.turn_delay_ns = 200,
		.tx_cap = 8,
		.link = {.bits_per_s = 10000000000u, .delay_ns = 5000},
	};
}

struct sim *sim_new(const struct sim_attr *attr)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->attr = *attr;
	s->wire = attr->fast || attr->unwatched ? NULL : sim_wire_new();
	if (s->attr.tx_cap > TX_BATCH_MAX)
		s->attr.tx_cap = TX_BATCH_MAX;
	s->rng.state = sim_mix(attr->seed + 1);
	s->now_ns = SIM_US(1000) + sim_below(&s->rng, 5000);
	current = s;
	for (unsigned i = 0; i < attr->eps; i++)
		ep_init(s, i);
	return s;
}

/* All contexts and kept packets must be back in the pools after the last QP has been destroyed. */
static void check_pools(struct sim_ep *ep)
{
	const struct ur_core *core = ur_engine_core(ep->engine);
	struct sim *s = ep->sim;
	const struct {
		const char *what;
		uint32_t there, all;
	} pools[] = {
		{"out-of-order contexts", core->ooo.held_cnt, 0},
		{"recovery contexts", core->rtx.held_cnt, 0},
		{"slabs of contexts", core->loss.free_cnt, core->loss.cnt},
		{"sets of paths", core->spray.free_cnt, core->spray.cnt},
		{"reorder contexts", core->reorder.contexts_free, core->reorder.context_cnt},
		{"reorder slots", core->reorder.slots_free, core->reorder.slot_cnt},
		{"read gaps", core->read_gaps.free_cnt, core->read_gaps.cnt},
	};

	if (ur_engine_objects(ep->engine, s->now_ns).qps)
		return;
	for (unsigned i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		SIM_CHECK(s, pools[i].there == pools[i].all, "endpoint %u: %u of %u %s came back",
			  ep->idx, pools[i].there, pools[i].all, pools[i].what);
}

void sim_free(struct sim *s)
{
	for (unsigned i = 0; i < s->attr.eps; i++)
		check_pools(&s->ep[i]);
	while (s->heap_cnt)
		free(pop(s).frame);
	for (unsigned i = 0; i < s->attr.eps; i++) {
		while (s->ep[i].loss_growths)
			sim_memory_give(s->ep[i].loss_memory[--s->ep[i].loss_growths]);
		sim_memory_give(s->ep[i].engine_memory);
		sim_memory_give(s->ep[i].mem);
	}
	free(s->heap);
	sim_trace_free(&s->trace);
	if (s->wire)
		sim_wire_free(s->wire);
	current = NULL;
	free(s);
}
