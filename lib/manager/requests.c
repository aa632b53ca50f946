/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/requests.h"
#include "wire/assert.h"
#include "wire/bytes.h"
#include "wire/siphash.h"

/* Places in a MAD (IBA 13.4.3, 14.2.1.2) */
#define AT_CLASS	1
#define AT_METHOD	3
#define AT_STATUS	4
#define AT_HOP_COUNT	7
#define AT_TID		8
#define AT_ATTR_ID	16
#define AT_ATTR_MOD	20
#define AT_INITIAL_PATH 128
#define PATH_BYTES	64

#define CLASS_DIRECTED 0x81
#define METHOD_RESP    0x80
#define STATUS_BUSY    0x0001

#define STRETCH_MAX (64u * 256)

/* ---- table ---- */

size_t ur_requests_size(uint32_t window)
{
	return window * sizeof(struct ur_request);
}

void ur_requests_init(struct ur_requests *r, void *memory, const struct ur_requests_attr *attr)
{
	UR_ASSERT(attr->window && attr->window <= UR_REQUESTS_WINDOW_MAX && attr->timeout_ns);
	*r = (struct ur_requests){.attr = *attr, .slot = memory, .stretch = 256};
	if (r->attr.start > attr->window)
		r->attr.start = attr->window;
	r->limit = attr->start ? r->attr.start : attr->window;
	for (unsigned i = 0; i < PATH_BYTES; i++)
		r->least_ns[i] = UINT64_MAX;
	TAILQ_INIT(&r->free);
	TAILQ_INIT(&r->to_send);
	TAILQ_INIT(&r->waiting);
	memset(memory, 0, ur_requests_size(attr->window));
	for (uint32_t i = 0; i < attr->window; i++)
		TAILQ_INSERT_TAIL(&r->free, &r->slot[i], link);
}

/*
 * 48 bits that nothing but the seed predicts, whatever was seen before, and the number of the slot. Never 0, and never that
 * of the slot's last request. MGR-TID-01
 */
static uint64_t make_tid(struct ur_requests *r, const struct ur_request *q)
{
	uint64_t slot = (uint64_t)(q - r->slot), x;

	do {
		r->made++;
		x = ur_siphash(r->attr.seed, 0, &r->made, sizeof(r->made)) << 16 | slot;
	} while (x == q->tid || !(x >> 16));
	return x;
}

static void name(struct ur_requests *r, struct ur_request *q)
{
	q->tid = make_tid(r, q);
	ur_store64(q->mad.bytes + AT_TID, q->tid);
}

static void release(struct ur_requests *r, struct ur_request *q, bool timed_out)
{
	q->state = UR_REQUEST_FREE;
	q->last_timed_out = timed_out;
	/* The oldest is used next: late responses are recognized for as long as possible. */
	TAILQ_INSERT_TAIL(&r->free, q, link);
	r->open--;
}

bool ur_requests_post(struct ur_requests *r, const struct ur_mgr_mad *mad, uint64_t cookie,
		      uint64_t now_ns)
{
	struct ur_request *q = TAILQ_FIRST(&r->free);

	UR_ASSERT(mad->bytes[AT_CLASS] != CLASS_DIRECTED || mad->bytes[AT_HOP_COUNT] < PATH_BYTES);
	if (!q || !ur_requests_have_room(r))
		return false;
	TAILQ_REMOVE(&r->free, q, link);
	q->mad = *mad;
	q->cookie = cookie;
	q->posted_ns = now_ns;
	q->sendings = 0;
	q->state = UR_REQUEST_TO_SEND;
	name(r, q);
	TAILQ_INSERT_TAIL(&r->to_send, q, link);
	r->open++;
	return true;
}

void ur_requests_cancel_all(struct ur_requests *r)
{
	struct ur_request *q;

	while ((q = TAILQ_FIRST(&r->to_send)) != NULL) {
		TAILQ_REMOVE(&r->to_send, q, link);
		release(r, q, true);
	}
	while ((q = TAILQ_FIRST(&r->waiting)) != NULL) {
		TAILQ_REMOVE(&r->waiting, q, link);
		release(r, q, true);
	}
}

/* ---- sending ---- */

bool ur_requests_output(struct ur_requests *r, uint64_t now_ns, struct ur_mgr_mad *out)
{
	struct ur_request *q = TAILQ_FIRST(&r->to_send);

	if (!q)
		return false;
	TAILQ_REMOVE(&r->to_send, q, link);
	if (q->sendings++)
		r->counters.resent++;
	else
		r->counters.sent++;
	q->deadline_ns = now_ns + r->attr.timeout_ns;
	q->state = UR_REQUEST_WAITS;
	TAILQ_INSERT_TAIL(&r->waiting, q, link); /* the timeout is the same for all */
	*out = q->mad;
	return true;
}

uint64_t ur_requests_next_deadline(const struct ur_requests *r)
{
	const struct ur_request *q = TAILQ_FIRST(&r->waiting);

	return q ? q->deadline_ns : UINT64_MAX;
}

/* The window, not again before `pause_ns` has passed. */
static void shrink(struct ur_requests *r, uint64_t now_ns, uint64_t pause_ns)
{
	if (!r->attr.start || now_ns < r->cut_ns)
		return;
	r->limit -= r->limit / 8;
	r->limit = r->limit > r->attr.start ? r->limit : r->attr.start;
	r->cut_ns = now_ns + pause_ns;
}

/* MGR-RETRY-01 */
bool ur_requests_expire(struct ur_requests *r, uint64_t now_ns, struct ur_mgr_answer *answer)
{
	struct ur_request *q;

	while ((q = TAILQ_FIRST(&r->waiting)) != NULL && q->deadline_ns <= now_ns) {
		TAILQ_REMOVE(&r->waiting, q, link);
		shrink(r, now_ns, r->attr.timeout_ns);
		if (q->sendings <= r->attr.retries) {
			q->state = UR_REQUEST_TO_SEND;
			TAILQ_INSERT_TAIL(&r->to_send, q, link);
			continue;
		}
		r->counters.timed_out++;
		*answer = (struct ur_mgr_answer){.cookie = q->cookie,
						 .waited_ns = now_ns - q->posted_ns};
		release(r, q, true);
		return true;
	}
	return false;
}

/* ---- responses ---- */

/* A response has what its request had, but for the method, the status and the data. MGR-TID-02 */
static bool answers(const struct ur_request *q, const struct ur_mgr_mad *mad)
{
	const uint8_t *req = q->mad.bytes, *rsp = mad->bytes;

	if (rsp[AT_CLASS] != req[AT_CLASS] || q->mad.lid != mad->lid ||
	    memcmp(rsp + AT_ATTR_ID, req + AT_ATTR_ID, 2) != 0 ||
	    memcmp(rsp + AT_ATTR_MOD, req + AT_ATTR_MOD, 4) != 0)
		return false;
	return req[AT_CLASS] != CLASS_DIRECTED ||
	       (rsp[AT_HOP_COUNT] == req[AT_HOP_COUNT] &&
		!memcmp(rsp + AT_INITIAL_PATH + 1, req + AT_INITIAL_PATH + 1, req[AT_HOP_COUNT]));
}

/* Its next sending has a new TransactionID: by the old one the agent would repeat that it is busy. */
static void ask_later(struct ur_requests *r, struct ur_request *q)
{
	r->counters.busy++;
	name(r, q);
}

/* MGR-WINDOW-01. What was sent twice does not say which of the two was answered. */
static void adapt(struct ur_requests *r, const struct ur_request *q, uint64_t now_ns)
{
	const uint8_t *mad = q->mad.bytes;
	unsigned hops = mad[AT_CLASS] == CLASS_DIRECTED ? mad[AT_HOP_COUNT] : 0;
	uint64_t took = now_ns - (q->deadline_ns - r->attr.timeout_ns), stretch;

	if (!r->attr.start || q->sendings != 1)
		return;
	took += !took;
	if (took < r->least_ns[hops])
		r->least_ns[hops] = took;
	stretch = took * 256 / r->least_ns[hops];
	if (stretch > STRETCH_MAX)
		stretch = STRETCH_MAX;
	r->stretch = (uint32_t)((15 * r->stretch + stretch) / 16);
	if (r->stretch <= 2 * 256)
		r->limit += r->limit < r->attr.window;
	else
		shrink(r, now_ns, took);
}

bool ur_requests_input(struct ur_requests *r, const struct ur_mgr_mad *mad, uint64_t now_ns,
		       struct ur_mgr_answer *answer)
{
	uint64_t tid = ur_load64(mad->bytes + AT_TID);
	uint32_t slot = tid & 0xffff;
	struct ur_request *q;

	/* Get and Set are both answered by GetResp (IBA 13.4.5). */
	if (mad->bytes[AT_METHOD] != (METHOD_RESP | 1)) {
		r->counters.not_response++;
		return false;
	}
	if (slot >= r->attr.window || r->slot[slot].tid != tid || !tid) {
		r->counters.unknown++;
		return false;
	}
	q = &r->slot[slot];
	if (q->state == UR_REQUEST_FREE) {
		if (q->last_timed_out)
			r->counters.late++;
		else
			r->counters.repeated++;
		return false;
	}
	if (!q->sendings || !answers(q, mad)) {
		r->counters.mismatched++;
		return false;
	}
	if (ur_load16(mad->bytes + AT_STATUS) & STATUS_BUSY) {
		ask_later(r, q);
		return false;
	}
	if (q->state == UR_REQUEST_WAITS)
		TAILQ_REMOVE(&r->waiting, q, link);
	else
		TAILQ_REMOVE(&r->to_send, q, link); /* late, but before it is sent again */
	adapt(r, q, now_ns);
	r->counters.answered++;
	q->mad = *mad;
	*answer = (struct ur_mgr_answer){
		.cookie = q->cookie, .mad = &q->mad, .waited_ns = now_ns - q->posted_ns};
	release(r, q, false);
	return true;
}

/* ---- for tests ---- */

void ur_requests_validate(const struct ur_requests *r)
{
	const struct ur_request *q;
	uint64_t before = 0;
	uint32_t free = 0, open = 0;

	TAILQ_FOREACH(q, &r->free, link)
	{
		UR_ASSERT(q->state == UR_REQUEST_FREE);
		free++;
	}
	TAILQ_FOREACH(q, &r->to_send, link)
	{
		UR_ASSERT(q->state == UR_REQUEST_TO_SEND && q->sendings <= r->attr.retries);
		open++;
	}
	TAILQ_FOREACH(q, &r->waiting, link)
	{
		UR_ASSERT(q->state == UR_REQUEST_WAITS && q->deadline_ns >= before);
		UR_ASSERT(q->sendings && q->sendings <= 1 + r->attr.retries);
		before = q->deadline_ns;
		open++;
	}
	UR_ASSERT(open == r->open && free + open == r->attr.window);
	UR_ASSERT(r->counters.sent >= r->counters.answered + r->counters.timed_out);
}
