/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMPP (IBA 13.6): a message in segments, each a MAD with the message's headers. The receiver's ACKs say which
 * segments have arrived and up to which the sender may go on. Times and window as Linux has them, for want of a
 * packet lifetime. UMAD-RMPP-01
 */
#include "umad/mux_priv.h"

#include <stdlib.h>
#include <string.h>

/* Offsets, bytes. */
#define RMPP_VERSION 24
#define RMPP_TYPE    25
#define RMPP_FLAGS   26 /* the lower three bits; the others are the response time */
#define RMPP_STATUS  27
#define RMPP_SEGMENT 28
#define RMPP_LENGTH  32 /* DATA: PayloadLength; ACK: NewWindowLast */
#define RMPP_END     36

#define TYPE_DATA  1
#define TYPE_ACK   2
#define TYPE_ABORT 4

#define FLAG_ACTIVE 1
#define FLAG_FIRST  2
#define FLAG_LAST   4
#define FLAGS	    7

#define STATUS_TOO_LONG 118 /* T2L: total time too long */

#define PAYLOAD_BYTES  220 /* PayloadLength counts class header and data */
#define WINDOW	       16  /* segments; fits in the management queue of every port on the way */
#define ACK_MS	       2000
#define SEGMENT_MS     40000
#define COMPLETE_MS    10000
#define ASSEMBLIES_MAX 256

unsigned mux_header_bytes(uint8_t mgmt_class)
{
	switch (mgmt_class) {
	case 0x03: /* subnet administration */
		return 56;
	case 0x06: /* device management, device administration, boot management, BIS */
	case 0x10:
	case 0x11:
	case 0x12:
		return 64;
	default:
		return mgmt_class >= 0x30 && mgmt_class <= 0x4f ? 40 : MAD_HDR_BYTES;
	}
}

bool mux_rmpp_is_active(const uint8_t *mad)
{
	return mux_header_bytes(mad[MAD_CLASS]) > MAD_HDR_BYTES &&
	       (mad[RMPP_FLAGS] & FLAG_ACTIVE) != 0;
}

static void set_flags(uint8_t *mad, unsigned flags)
{
	mad[RMPP_FLAGS] = (uint8_t)((mad[RMPP_FLAGS] & ~FLAGS) | flags);
}

bool mux_rmpp_begins(const uint8_t *mad)
{
	return !mux_rmpp_is_active(mad) ||
	       (mad[RMPP_TYPE] == TYPE_DATA && ur_load32(mad + RMPP_SEGMENT) == 1);
}

void mux_rmpp_end(uint8_t *mad)
{
	if (mux_rmpp_is_active(mad))
		set_flags(mad, 0);
}

static void send_segment(struct mux *m, const struct mux_transfer *t, uint32_t n)
{
	unsigned header = mux_header_bytes(t->mad[MAD_CLASS]);
	uint32_t room = UR_UMAD_MAD_BYTES - header, data = t->length - header;
	uint32_t from = (n - 1) * room, bytes = data - from < room ? data - from : room;
	uint8_t mad[UR_UMAD_MAD_BYTES] = {0};
	unsigned flags = FLAG_ACTIVE;
	uint32_t payload = 0;

	memcpy(mad, t->mad, header);
	memcpy(mad + header, t->mad + header + from, bytes);
	mad[RMPP_VERSION] = 1;
	mad[RMPP_TYPE] = TYPE_DATA;
	mad[RMPP_STATUS] = 0;
	if (n == 1) {
		flags |= FLAG_FIRST;
		payload = t->segments * (PAYLOAD_BYTES - room) + data;
	}
	if (n == t->segments) {
		flags |= FLAG_LAST;
		payload = PAYLOAD_BYTES - room + bytes;
	}
	set_flags(mad, flags);
	ur_store32(mad + RMPP_SEGMENT, n);
	ur_store32(mad + RMPP_LENGTH, payload);
	m->ops->send(m->arg, mad, &t->umad.addr);
}

static void send_window(struct mux *m, struct mux_transfer *t, uint64_t now)
{
	while (t->next <= t->segments && t->next <= t->window)
		send_segment(m, t, t->next++);
	t->deadline = now + ACK_MS * MS_NS;
}

void mux_rmpp_start(struct mux *m, struct mux_transfer *t, uint64_t now)
{
	uint32_t header = mux_header_bytes(t->mad[MAD_CLASS]);
	uint32_t room = UR_UMAD_MAD_BYTES - header;

	t->segments = (t->length - header + room - 1) / room;
	if (t->segments == 0)
		t->segments = 1;
	t->acked = 0;
	t->next = 1;
	t->window = 1; /* the first ACK opens it */
	send_window(m, t, now);
}

void mux_rmpp_resend(struct mux *m, struct mux_transfer *t, uint64_t now)
{
	t->next = t->acked + 1;
	send_window(m, t, now);
}

/* An ACK, STOP or ABORT, to the sender. Several programs of other hosts may use the same TransactionID. */
static struct mux_transfer *find_sender(struct mux *m, const struct mux_program *p,
					const uint8_t *mad, const struct ib_mad_addr *from)
{
	struct mux_transfer *t;

	TAILQ_FOREACH(t, &m->transfers, link)
	if (t->segments != 0 && t->program == p && t->umad.addr.lid == from->lid &&
	    t->mad[MAD_CLASS] == mad[MAD_CLASS] &&
	    ur_load64(t->mad + MAD_TID) == ur_load64(mad + MAD_TID))
		return t;
	return NULL;
}

static void input_ack(struct mux *m, struct mux_transfer *t, const uint8_t *mad, uint64_t now)
{
	uint32_t acked = ur_load32(mad + RMPP_SEGMENT), window = ur_load32(mad + RMPP_LENGTH);

	if (acked >= t->next || window < acked) {
		m->counters.rmpp_invalid++;
		return;
	}
	if (acked < t->acked)
		return; /* an old one */
	if (acked > t->acked)
		t->retries_left = t->umad.retries;
	t->acked = acked;
	if (window > t->window)
		t->window = window;
	if (t->acked < t->segments) {
		send_window(m, t, now);
		return;
	}
	t->segments = 0;
	if (t->waits)
		mux_await_response(t, now);
	else
		mux_end_transfer(m, t);
}

static void input_control(struct mux *m, struct mux_program *p, const uint8_t *mad,
			  const struct ib_mad_addr *from, uint64_t now)
{
	struct mux_transfer *t = find_sender(m, p, mad, from);

	if (t == NULL) {
		m->counters.rmpp_invalid++;
	} else if (mad[RMPP_TYPE] == TYPE_ACK) {
		input_ack(m, t, mad, now);
	} else {
		m->counters.rmpp_aborted++;
		mux_end_transfer(m, t);
	}
}

/* Answers a DATA packet, of which the assembly keeps the headers. */
static void answer(struct mux *m, const uint8_t *headers, const struct ib_mad_addr *to,
		   unsigned type, unsigned status, uint32_t segment, uint32_t window)
{
	uint8_t mad[UR_UMAD_MAD_BYTES] = {0};

	memcpy(mad, headers, mux_header_bytes(headers[MAD_CLASS]));
	mad[MAD_METHOD] ^= MAD_RESPONSE;
	mad[RMPP_VERSION] = 1;
	mad[RMPP_TYPE] = (uint8_t)type;
	mad[RMPP_STATUS] = (uint8_t)status;
	set_flags(mad, FLAG_ACTIVE);
	ur_store32(mad + RMPP_SEGMENT, segment);
	ur_store32(mad + RMPP_LENGTH, window);
	m->ops->send(m->arg, mad, to);
}

void mux_end_assembly(struct mux *m, struct mux_assembly *a)
{
	TAILQ_REMOVE(&m->assemblies, a, link);
	free(a->mad);
	free(a->have);
	free(a);
}

void mux_expire_assembly(struct mux *m, struct mux_assembly *a)
{
	if (a->mad != NULL) {
		m->counters.rmpp_aborted++;
		answer(m, a->mad, &a->umad.addr, TYPE_ABORT, STATUS_TOO_LONG, 0, 0);
	}
	mux_end_assembly(m, a);
}

static struct mux_assembly *find_assembly(struct mux *m, const struct mux_program *p,
					  const uint8_t *mad, const struct ib_mad_addr *from)
{
	struct mux_assembly *a;

	TAILQ_FOREACH(a, &m->assemblies, link)
	if (a->program == p && a->tid == ur_load64(mad + MAD_TID) &&
	    a->mgmt_class == mad[MAD_CLASS] && a->umad.addr.lid == from->lid)
		return a;
	return NULL;
}

/* Makes room for the segments up to the window's end, which grows with what has arrived. */
static bool make_room(struct mux_assembly *a, unsigned header)
{
	size_t room = UR_UMAD_MAD_BYTES - header;
	uint8_t *mad, *have;

	if (a->window <= a->room)
		return true;
	if (header + a->window * room > UR_UMAD_MAX_BYTES)
		return false;
	mad = realloc(a->mad, header + a->window * room);
	if (mad == NULL)
		return false;
	a->mad = mad;
	have = realloc(a->have, a->window + 1);
	if (have == NULL)
		return false;
	memset(have + a->room + 1, 0, a->window - a->room);
	a->have = have;
	a->room = a->window;
	return true;
}

static struct mux_assembly *start_assembly(struct mux *m, struct mux_program *p, unsigned agent,
					   const uint8_t *mad, const struct ib_mad_addr *from)
{
	unsigned header = mux_header_bytes(mad[MAD_CLASS]), cnt = 0;
	struct mux_assembly *a;

	TAILQ_FOREACH(a, &m->assemblies, link)
	cnt++;
	if (cnt >= ASSEMBLIES_MAX)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->program = p;
	a->umad.agent_id = agent;
	a->umad.addr = *from;
	a->tid = ur_load64(mad + MAD_TID);
	a->mgmt_class = mad[MAD_CLASS];
	a->window = 1 + WINDOW;
	TAILQ_INSERT_TAIL(&m->assemblies, a, link);
	if (!make_room(a, header)) {
		mux_end_assembly(m, a);
		return NULL;
	}
	memcpy(a->mad, mad, header);
	return a;
}

static void complete(struct mux *m, struct mux_assembly *a, uint64_t now)
{
	unsigned header = mux_header_bytes(a->mgmt_class);
	uint32_t room = UR_UMAD_MAD_BYTES - header;
	uint32_t in_last = a->last_payload - (PAYLOAD_BYTES - room);
	struct mux_transfer *t =
		mux_find_request(m, a->program, a->tid, a->mgmt_class, a->umad.addr.lid);

	/* A PayloadLength that is impossible: the whole segment, as in Linux. */
	if (a->last_payload < PAYLOAD_BYTES - room || in_last > room)
		in_last = room;
	if (t != NULL)
		mux_end_transfer(m, t);
	mux_deliver(m, a->program, &a->umad, a->mad, header + (a->last - 1) * room + in_last);
	free(a->mad);
	a->mad = NULL;
	a->deadline = now + COMPLETE_MS * MS_NS;
}

/* Notes a segment; false if it does not fit the message. */
static bool keep_segment(struct mux_assembly *a, const uint8_t *mad)
{
	unsigned header = mux_header_bytes(mad[MAD_CLASS]);
	size_t room = UR_UMAD_MAD_BYTES - header;
	uint32_t n = ur_load32(mad + RMPP_SEGMENT);
	bool last = (mad[RMPP_FLAGS] & FLAG_LAST) != 0;

	if (n == 0 || n > a->window || (a->last != 0 && (n > a->last || (last && n != a->last))))
		return false;
	if (last) {
		a->last = n;
		a->last_payload = ur_load32(mad + RMPP_LENGTH);
	}
	memcpy(a->mad + header + (n - 1) * room, mad + header, room);
	a->have[n] = 1;
	while (a->received < a->room && a->have[a->received + 1])
		a->received++;
	return a->last == 0 || a->received <= a->last;
}

static void input_data(struct mux *m, struct mux_program *p, unsigned agent, const uint8_t *mad,
		       const struct ib_mad_addr *from, uint64_t now)
{
	struct mux_assembly *a = find_assembly(m, p, mad, from);
	struct mux_transfer *t =
		mux_find_request(m, p, ur_load64(mad + MAD_TID), mad[MAD_CLASS], from->lid);
	uint32_t before;

	if (a != NULL && a->mad == NULL) { /* our last ACK was lost */
		answer(m, mad, from, TYPE_ACK, 0, a->last, a->last);
		return;
	}
	if (t == NULL || (mad[MAD_METHOD] & MAD_RESPONSE) == 0) {
		m->counters.rmpp_invalid++;
		return;
	}
	if (a == NULL)
		a = start_assembly(m, p, agent, mad, from);
	if (a == NULL)
		return;
	before = a->received;
	a->deadline = now + SEGMENT_MS * MS_NS;
	mux_await_response(t, now); /* it is on its way */
	if (!keep_segment(a, mad)) {
		m->counters.rmpp_invalid++;
		return;
	}
	if (a->received == a->last) {
		answer(m, a->mad, from, TYPE_ACK, 0, a->last, a->last);
		complete(m, a, now);
		return;
	}
	if (a->received == a->window) {
		a->window += WINDOW;
		if (!make_room(a, mux_header_bytes(mad[MAD_CLASS]))) {
			mux_expire_assembly(m, a);
			return;
		}
	}
	/* The first opens the window, the last of each window moves it; a repeated one asks for the ACK. */
	if (a->received == before || a->received == 1 || a->received + WINDOW == a->window)
		answer(m, a->mad, from, TYPE_ACK, 0, a->received, a->window);
}

void mux_rmpp_input(struct mux *m, struct mux_program *p, unsigned agent, const uint8_t *mad,
		    const struct ib_mad_addr *from, uint64_t now)
{
	if (mad[RMPP_TYPE] == TYPE_DATA)
		input_data(m, p, agent, mad, from, now);
	else
		input_control(m, p, mad, from, now);
}
