/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc/cc_priv.h"
#include "cc/swift.h"

/*
 * Swift (Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the
 * Datacenter, SIGCOMM 2020, section 3): a window that keeps the delay near a target, by additive
 * increase and, once per round trip, multiplicative decrease. Below one packet a gap between packets
 * takes the place of the window. Of the paper's two windows only that of the fabric is here: the
 * residence at the peer is not part of the delay. A flow is all traffic to one destination.
 *
 * docs/design/pacing.md says where this differs from the paper. Divisions: one per decrease, one per
 * round trip for the target, and one per acknowledgement below one packet, where these are rare.
 */
#define ONE	     UR_SWIFT_ONE
#define AI	     ONE	   /* additive increase, packets per round trip */
#define STEP_SHIFT   3		   /* the window grows by eighths of that */
#define BETA	     205	   /* 0.8, of 256: decrease per excess delay */
#define MDF_MAX	     128	   /* 0.5, of 256: the largest decrease */
#define CWND_MIN     (ONE / 1000)  /* packets */
#define CWND_MAX     (ONE * 32767) /* packets */
#define RETX_RESET   5		   /* timeouts in a row after which cwnd is CWND_MIN */
#define QUEUE_NS     25000	   /* queue beyond a path that exceeds the configured base */
#define FS_RANGE_NS  125000	   /* the most that flow scaling adds */
#define FS_MIN	     (ONE / 10)	   /* packets: full flow scaling up to here */
#define FS_MAX	     (ONE * 100)   /* packets: no flow scaling from here on */
#define FS_INV_MIN   26		   /* 256 / sqrt(100) */
#define FS_INV_MAX   810	   /* 256 / sqrt(0.1) */
#define TIMEOUT_NS   1000000	   /* timeouts of several queue pairs within this count once */
#define PATH_AGAIN   4		   /* decreases at CWND_MIN that show a longer path */
#define UNLIMITED_NS 1000000000	   /* without a half full window, after which there is none */
#define LEAST_COST   8000	   /* ns per byte: a gap is no longer than at 1 Mb/s */

UR_CC_STATE(ur_cc_swift)

/* ---- target ---- */

/* CC-SWIFT-03. 256 / sqrt(cwnd) between FS_MIN and FS_MAX; computes the square root bit by bit. */
static uint32_t inverse_root(uint32_t cwnd)
{
	uint32_t root = 0;

	if (cwnd <= FS_MIN)
		return FS_INV_MAX;
	if (cwnd >= FS_MAX)
		return FS_INV_MIN;
	for (uint32_t bit = 1 << 11; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= cwnd)
			root += bit;
	/* cwnd counts 1/65536: its root counts 1/256. */
	return 65536 / root;
}

/*
 * The base target is configured, for all hops of the path together. The least delay seen could take
 * the place of the paper's hops; but a flow that starts while a queue stands takes the queue for the
 * path, and gets all of the bandwidth (docs/design/pacing.md).
 */
static uint64_t base_of(const struct ur_cc *t, const struct ur_cc_swift *s)
{
	uint64_t base = s->path_ns ? s->path_ns + QUEUE_NS : 0;

	return t->attr.target_ns > base ? t->attr.target_ns : base;
}

/* The more flows share a bottleneck, the more its queue varies. */
static void set_target(const struct ur_cc *t, struct ur_cc_swift *s, uint64_t now_ns)
{
	uint64_t flows = (uint64_t)FS_RANGE_NS * (inverse_root(s->cwnd) - FS_INV_MIN) /
			 (FS_INV_MAX - FS_INV_MIN);
	uint64_t target = base_of(t, s) + flows;

	s->target_ns = target < UINT32_MAX ? (uint32_t)target : UINT32_MAX;
	s->target_at = now_ns;
}

/* ---- window ---- */

/* Sets window and gap of the entry from cwnd. CC-SWIFT-02 */
static void apply(struct ur_cc_dest *d, uint64_t now_ns)
{
	const struct ur_cc_swift *s = state_of(d);
	uint64_t gap, most = (uint64_t)LEAST_COST * d->packet;

	if (s->cwnd >= ONE) {
		d->window = ((uint64_t)s->cwnd * d->packet) >> 16;
		d->gap_ns = 0;
		d->open_ns = 0;
		return;
	}
	d->window = d->packet;
	gap = (d->avg8_ns / 8 << 16) / s->cwnd;
	d->gap_ns = (uint32_t)(gap < most ? gap : most);
	if (d->open_ns == 0)
		d->open_ns = now_ns;
	else if (d->open_ns > now_ns + d->gap_ns)
		d->open_ns = now_ns + d->gap_ns;
}

/* The bytes in flight become the first window. */
static void throttle(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);
	uint64_t cwnd = (d->in_flight << 16) >> __builtin_ctz(d->packet);

	if (d->throttled)
		return;
	ur_cc_throttle(t, d, now_ns);
	d->open_ns = 0;
	s->cwnd = cwnd < ONE ? ONE : cwnd < CWND_MAX ? (uint32_t)cwnd : CWND_MAX;
	s->acked = 0;
	s->stuck = 0;
	s->limited_ns = now_ns;
	set_target(t, s, now_ns);
}

/* CC-SWIFT-01. Cuts the window by part / 256, at most once in least_ns. False: it did not. */
static bool decrease(struct ur_cc *t, struct ur_cc_dest *d, uint32_t part, uint64_t least_ns,
		     uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);

	if (s->decrease_ns && now_ns - s->decrease_ns < least_ns)
		return false;
	part = part < MDF_MAX ? part : MDF_MAX;
	s->cwnd -= (uint32_t)(((uint64_t)s->cwnd * part) >> 8);
	if (s->cwnd < CWND_MIN)
		s->cwnd = CWND_MIN;
	s->acked = 0;
	s->decrease_ns = now_ns;
	set_target(t, s, now_ns);
	apply(d, now_ns);
	return true;
}

/* CC-SWIFT-05. Whether half of the window was used, including the bytes just acknowledged. */
static bool is_limited(const struct ur_cc_dest *d, uint64_t bytes)
{
	return 2 * (d->in_flight + bytes) >= d->window;
}

/* Adds AI packets for each window acknowledged, in steps. */
static void grow(struct ur_cc_swift *s, uint64_t step_bytes, uint64_t bytes)
{
	s->acked += bytes;
	for (unsigned i = 0; i < 1 << STEP_SHIFT && s->acked >= step_bytes; i++) {
		s->acked -= step_bytes;
		s->cwnd += AI >> STEP_SHIFT;
	}
	if (s->acked >= step_bytes)
		s->acked = 0;
	if (s->cwnd > CWND_MAX)
		s->cwnd = CWND_MAX;
}

static void increase(struct ur_cc_dest *d, uint64_t bytes, uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);

	s->stuck = 0;
	if (s->cwnd < ONE) {
		uint64_t cwnd = s->cwnd + ((bytes * AI) >> __builtin_ctz(d->packet));

		/* From one packet on it grows by round trips. */
		s->cwnd = cwnd < ONE ? (uint32_t)cwnd : ONE;
		s->acked = 0;
	} else {
		/* A window that the application does not use carries no information. */
		if (!is_limited(d, bytes))
			return;
		grow(s, d->window >> STEP_SHIFT, bytes);
	}
	apply(d, now_ns);
}

/* ---- path ---- */

/*
 * CC-SWIFT-04. If the delay persists although next to nothing is sent, it is not a queue of this
 * sender. The least of these delays is taken for that of the path, in steps that at most double the
 * base, because the queue may be that of other senders.
 */
static void learn_path(struct ur_cc *t, struct ur_cc_dest *d, uint32_t rtt_ns, uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);
	uint64_t most = 2 * base_of(t, s);

	if (s->cwnd > CWND_MIN) {
		s->stuck = 0;
		return;
	}
	if (s->stuck == 0 || rtt_ns < s->floor_ns)
		s->floor_ns = rtt_ns;
	if (++s->stuck < PATH_AGAIN)
		return;
	s->stuck = 0;
	s->path_ns = s->floor_ns < most ? s->floor_ns : (uint32_t)most;
	set_target(t, s, now_ns);
	ur_cc_count_reseed(t, d);
}

/* ---- events ---- */

/* Packets that were sent twice give no delay, but they do arrive. The last delay is valid for a while. */
static void on_unmeasured_ack(struct ur_cc_dest *d, uint64_t bytes, uint64_t now_ns)
{
	const struct ur_cc_swift *s = state_of(d);
	uint64_t valid = 4 * (uint64_t)d->last_ns;

	if (!d->throttled)
		return;
	if (d->last_ns < s->target_ns ||
	    now_ns - s->sample_ns >= (valid > TIMEOUT_NS ? valid : TIMEOUT_NS))
		increase(d, bytes, now_ns);
}

static void on_ack(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		   uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);
	uint32_t rtt = ack->delay_ns;

	s->timeouts = 0;
	if (!rtt) {
		on_unmeasured_ack(d, ack->bytes, now_ns);
		return;
	}
	s->sample_ns = now_ns;
	if (rtt < s->path_ns)
		s->path_ns = rtt;
	if (!d->throttled) {
		if (rtt <= base_of(t, s))
			return;
		throttle(t, d, now_ns);
	}
	if (s->cwnd < ONE || is_limited(d, ack->bytes))
		s->limited_ns = now_ns;
	if (now_ns - s->target_at >= rtt)
		set_target(t, s, now_ns);
	if (rtt < s->target_ns) {
		increase(d, ack->bytes, now_ns);
		if (now_ns - s->limited_ns >= UNLIMITED_NS)
			ur_cc_open(t, d);
		return;
	}
	if (decrease(t, d, BETA * (uint64_t)(rtt - s->target_ns) / rtt, rtt, now_ns)) {
		ur_cc_count_outlier(t, d);
		learn_path(t, d, rtt, now_ns);
	}
}

/* CC-SWIFT-01 */
static void on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	(void)t, (void)bytes;
	if (d->gap_ns)
		d->open_ns = now_ns + d->gap_ns;
}

/* CC-LOSS-01 */
static void on_loss(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	state_of(d)->timeouts = 0;
	throttle(t, d, now_ns);
	decrease(t, d, MDF_MAX, d->avg8_ns / 8, now_ns);
}

/* CC-LOSS-02 */
static void on_timeout(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	struct ur_cc_swift *s = state_of(d);
	uint64_t rtt = d->avg8_ns / 8;

	throttle(t, d, now_ns);
	if (!decrease(t, d, MDF_MAX, rtt > TIMEOUT_NS ? rtt : TIMEOUT_NS, now_ns))
		return;
	if (++s->timeouts < RETX_RESET)
		return;
	s->timeouts = RETX_RESET;
	s->cwnd = CWND_MIN;
	set_target(t, s, now_ns);
	apply(d, now_ns);
}

const struct ur_cc_ops ur_cc_swift = {
	.window = true,
	.on_send = on_send,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_timeout = on_timeout,
};
