/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc/cc_priv.h"
#include "cc/cmdpd.h"

/*
 * CMDPD: congestion control by the deflection of packet delay (docs/design/pacing.md). A deflection is
 * Tdelay / Average_delay. As Average_delay = sum / cnt, Tdelay * cnt is compared with init * sum.
 */
#define EWMA_SHIFT   3	       /* cnt stays 8: a sample counts an eighth */
#define CNT_MAX	     (1 << 20) /* init * sum < 2^8 * 2^20 * 2^32 */
#define OUTLIERS_MAX 32
#define GAPS_MAX     10

UR_CC_STATE(ur_cc_cmdpd)

static void seed(struct ur_cc *t, struct ur_cc_dest *d, uint32_t delay_ns)
{
	struct ur_cc_cmdpd *c = state_of(d);

	c->cnt = t->attr.ewma ? 1 << EWMA_SHIFT : 1;
	c->sum_ns = (uint64_t)delay_ns * c->cnt;
	c->outliers = 0;
	ur_cc_open(t, d);
}

static void average(struct ur_cc_cmdpd *c, bool ewma, uint32_t delay_ns)
{
	if (ewma) {
		c->sum_ns += delay_ns - (c->sum_ns >> EWMA_SHIFT);
		return;
	}
	c->sum_ns += delay_ns;
	/* PACE-CMDPD-05 */
	if (++c->cnt == CNT_MAX) {
		c->sum_ns >>= 1;
		c->cnt >>= 1;
	}
}

static void outlier(struct ur_cc *t, struct ur_cc_dest *d, uint32_t delay_ns, uint64_t now_ns)
{
	struct ur_cc_cmdpd *c = state_of(d);

	ur_cc_count_outlier(t, d);
	if (c->outliers++ == 0)
		c->since_ns = now_ns;
	/* PACE-CMDPD-03 */
	if (c->outliers == OUTLIERS_MAX ||
	    (c->outliers > 1 && now_ns - c->since_ns >= GAPS_MAX * (uint64_t)d->gap_ns)) {
		ur_cc_count_reseed(t, d);
		seed(t, d, delay_ns);
		return;
	}
	ur_cc_throttle(t, d, now_ns);
	/* Average_delay * Send_ctrl_para is Tdelay. */
	if (d->open_ns > now_ns + delay_ns)
		d->open_ns = now_ns + delay_ns;
	d->gap_ns = delay_ns;
}

static void on_ack(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		   uint64_t now_ns)
{
	struct ur_cc_cmdpd *c = state_of(d);
	uint64_t scaled = (uint64_t)ack->delay_ns * c->cnt;
	bool low = scaled < t->attr.init0 * c->sum_ns;

	if (!c->cnt) {
		seed(t, d, ack->delay_ns);
		return;
	}
	/* PACE-CMDPD-01 */
	if (scaled > t->attr.init1 * c->sum_ns) {
		outlier(t, d, ack->delay_ns, now_ns);
		return;
	}
	/* PACE-CMDPD-02 */
	if (low || t->attr.release)
		ur_cc_open(t, d);
	c->outliers = 0;
	if (low || !t->attr.keep_average)
		average(c, t->attr.ewma, ack->delay_ns);
}

/* PACE-CMDPD-04 */
static void on_send(struct ur_cc *t, struct ur_cc_dest *d, uint32_t bytes, uint64_t now_ns)
{
	(void)t, (void)bytes;
	d->open_ns = now_ns + d->gap_ns;
}

static uint64_t average_ns(const struct ur_cc_dest *d)
{
	const struct ur_cc_cmdpd *c = (const void *)d->state;

	return c->sum_ns / c->cnt;
}

const struct ur_cc_ops ur_cc_cmdpd = {
	.on_send = on_send,
	.on_ack = on_ack,
	.average_ns = average_ns,
};
