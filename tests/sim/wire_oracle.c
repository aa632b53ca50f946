/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_oracle.h"

#include <stdlib.h>

#include "rng.h"
#include "wire/psn.h"

#define BUCKETS	   1024
#define RING	   4096 /* number of PSNs remembered, more than any window with its READs */
#define ATOMICS	   256
#define CREDIT_TOP 0x1e /* the largest credit code */

/* Flags of a PSN. */
enum {
	DATA = 1, /* of a SEND or WRITE packet */
	READ = 2,
	ATOMIC = 4,
	KIND = DATA | READ | ATOMIC,
	ARRIVED = 8,
	ENDS = 16, /* a message ends here; standard mode counts a READ at its first PSN */
	ANSWERED = 32,
};

struct entry {
	bool known;
	uint8_t flags;
	struct ur_psn psn;
	uint32_t ssn; /* extended mode */
};

struct end {
	struct end *next;
	struct sim_wire_end id;
	struct end *peer;
	bool connected;
	/* Requests sent to this end. */
	struct ur_psn nxt;	/* first PSN that was never sent */
	struct ur_psn frontier; /* all earlier PSNs have arrived */
	struct ur_psn newest;	/* newest PSN that has arrived, or first - 1 */
	bool counts;		/* `msgs` is known; in extended mode counting starts anywhere */
	uint32_t msgs;		/* messages that end before `frontier`, 24 bits */
	struct entry *ring;
	/* Answers of this end. */
	struct ur_psn answered; /* all READs and atomics before it have been answered */
	struct ur_psn acked;	/* everything before it has been acknowledged */
	bool answering;		/* a READ's First or Middle was the last response */
	bool nak_sent;
	struct ur_psn nak_psn; /* nak_sent: the sequence NAK sent last */
	bool has_msn;
	uint32_t msn;	    /* valid if has_msn: the last one */
	struct ur_psn epsn; /* has_msn, extended mode: the last one */
	bool has_lsn;
	struct ur_psn lsn; /* limit of the credits promised so far */
	struct {
		bool known;
		struct ur_psn psn;
		uint64_t value;
	} atomic[ATOMICS];
};

struct sim_wire {
	struct end *bucket[BUCKETS];
	uint64_t watched;
};

struct sim_wire *sim_wire_new(void)
{
	struct sim_wire *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	return w;
}

void sim_wire_free(struct sim_wire *w)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (w->bucket[i]) {
			struct end *e = w->bucket[i];

			w->bucket[i] = e->next;
			free(e->ring);
			free(e);
		}
	}
	free(w);
}

uint64_t sim_wire_watched(const struct sim_wire *w)
{
	return w->watched;
}

/* ---- ends ---- */

static struct end **bucket_of(struct sim_wire *w, unsigned ep, struct ur_qpn qpn)
{
	return &w->bucket[sim_mix((uint64_t)ep << 32 | qpn.v) % BUCKETS];
}

static struct end *find(struct sim_wire *w, unsigned ep, struct ur_qpn qpn)
{
	struct end *e = *bucket_of(w, ep, qpn);

	while (e && (e->id.ep != ep || e->id.qpn.v != qpn.v))
		e = e->next;
	return e;
}

static struct end *find_or_add(struct sim_wire *w, unsigned ep, struct ur_qpn qpn)
{
	struct end *e = find(w, ep, qpn), **bucket = bucket_of(w, ep, qpn);

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		abort();
	e->id.ep = ep;
	e->id.qpn = qpn;
	e->next = *bucket;
	*bucket = e;
	return e;
}

void sim_wire_connect(struct sim_wire *w, const struct sim_wire_end *end)
{
	struct end *e = find_or_add(w, end->ep, end->qpn);
	struct end *peer = find_or_add(w, end->peer_ep, end->peer_qpn);

	free(e->ring);
	*e = (struct end){
		.next = e->next,
		.id = *end,
		.peer = peer,
		.connected = end->type == IBV_QPT_RC || end->type == IBV_QPT_UC,
		.nxt = end->first,
		.frontier = end->first,
		.newest = ur_psn_add(end->first, UR_PSN_MASK),
		.counts = end->mode != UR_MODE_EXTENDED,
		.epsn = end->first,
		.answered = end->first,
		.acked = end->first,
	};
	peer->peer = e;
}

static struct entry *slot_of(struct end *e, struct ur_psn psn)
{
	if (!e->ring)
		e->ring = calloc(RING, sizeof(*e->ring));
	if (!e->ring)
		abort();
	return &e->ring[psn.v % RING];
}

/* The flags of the PSN, or 0. */
static unsigned flags_of(struct end *e, struct ur_psn psn)
{
	const struct entry *n = slot_of(e, psn);

	return n->known && ur_psn_eq(n->psn, psn) ? n->flags : 0;
}

static struct entry *note(struct end *e, struct ur_psn psn, unsigned kind)
{
	struct entry *n = slot_of(e, psn);

	if (!n->known || !ur_psn_eq(n->psn, psn) || (n->flags & KIND) != kind)
		*n = (struct entry){.known = true, .psn = psn, .flags = (uint8_t)kind};
	return n;
}

static bool is_ext(const struct end *e)
{
	return e->id.mode == UR_MODE_EXTENDED;
}

/* ---- requests ---- */

static bool is_request(const struct end *e, const struct ur_packet *p)
{
	return (p->op & (UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_REQ | UR_OP_ATOMIC)) &&
	       !(p->op & UR_OP_DETH) && is_ext(e) == !!(p->op & UR_OP_XTH);
}

static unsigned kind_of(const struct ur_packet *p)
{
	return p->op & UR_OP_READ_REQ ? READ : p->op & UR_OP_ATOMIC ? ATOMIC : DATA;
}

static uint32_t psns_of(const struct end *e, const struct ur_packet *p)
{
	uint64_t mtu = UINT64_C(1) << e->id.mtu_shift;

	if (is_ext(e) || !(p->op & UR_OP_READ_REQ) || !p->reth.length)
		return 1;
	return (uint32_t)((p->reth.length + mtu - 1) >> e->id.mtu_shift);
}

static bool ends_message(const struct end *e, const struct ur_packet *p)
{
	if (is_ext(e) && (p->op & UR_OP_READ_REQ))
		return p->xth.flags & UR_XTH_LAST_READ;
	return p->op & UR_OP_LAST;
}

/* Moves the frontier over the PSNs that have arrived without a gap. */
static void advance(struct end *e)
{
	unsigned flags;

	while ((flags = flags_of(e, e->frontier)) & ARRIVED) {
		if (is_ext(e))
			e->msgs =
				(slot_of(e, e->frontier)->ssn + !!(flags & ENDS) - 1) & UR_PSN_MASK;
		else
			e->msgs = (e->msgs + !!(flags & ENDS)) & UR_PSN_MASK;
		e->frontier = ur_psn_add(e->frontier, 1);
		e->counts = true;
	}
}

void sim_wire_arrived(struct sim_wire *w, unsigned ep, const struct ur_packet *p)
{
	struct end *e = find(w, ep, p->bth.dqpn);
	struct ur_psn psn = p->bth.psn;
	uint32_t psns;
	int32_t ahead;

	if (!e || !e->connected || e->id.type != IBV_QPT_RC || !is_request(e, p))
		return;
	ahead = ur_psn_diff(psn, e->frontier);
	psns = psns_of(e, p);
	if (ahead < 0)
		return;
	if (ahead + (int64_t)psns >
	    RING / 2) { /* not an honest peer; answers to it are not checked */
		e->connected = false;
		return;
	}
	if (ur_psn_lt(e->newest, psn))
		e->newest = psn;
	if (e->id.mode == UR_MODE_GBN && ahead)
		return;
	for (uint32_t i = 0; i < psns; i++) {
		struct entry *n = note(e, ur_psn_add(psn, i), kind_of(p));

		n->flags |= ARRIVED | (i == 0 && ends_message(e, p) ? ENDS : 0);
		n->ssn = is_ext(e) ? p->xth.ssn : 0;
	}
	advance(e);
}

static const char *check_request(struct end *e, const struct ur_packet *p)
{
	struct ur_psn psn = p->bth.psn;
	uint32_t psns = psns_of(e, p);
	int32_t ahead = ur_psn_diff(psn, e->nxt);
	unsigned known = flags_of(e, psn) & KIND;

	if (ahead > 0)
		return "a request skips a PSN";
	if (ahead < 0 && known && known != kind_of(p))
		return "a PSN is used again for a request of another kind";
	for (uint32_t i = 0; i < psns && i < RING / 2; i++)
		note(e, ur_psn_add(psn, i), kind_of(p));
	if (ur_psn_lt(e->nxt, ur_psn_add(psn, psns)))
		e->nxt = ur_psn_add(psn, psns);
	return NULL;
}

/* ---- answers ---- */

/* True if a READ or atomic before `end` has no answer yet. */
static bool lacks_answer(struct end *e, struct ur_psn end)
{
	for (; ur_psn_lt(e->answered, end); e->answered = ur_psn_add(e->answered, 1)) {
		unsigned flags = flags_of(e, e->answered);

		if ((flags & (READ | ATOMIC)) && !(flags & ANSWERED))
			return true;
	}
	return false;
}

static void tell(struct end *e, struct ur_psn end)
{
	if (ur_psn_lt(e->acked, end))
		e->acked = end;
}

static const char *check_msn(struct end *e, const struct ur_aeth *aeth)
{
	uint8_t kind = aeth->syndrome & UR_SYNDROME_KIND_MASK;
	uint8_t code = aeth->syndrome & UR_SYNDROME_VALUE_MASK;
	struct ur_psn msn = ur_psn(aeth->msn), top;

	if (e->has_msn && ur_psn_lt(msn, ur_psn(e->msn)))
		return "the MSN goes back";
	if (e->counts && ur_psn_lt(ur_psn(e->msgs), msn))
		return "the MSN counts a message that has not come";
	e->has_msn = true;
	e->msn = msn.v;
	if (kind != UR_SYNDROME_ACK || code == UR_CREDITS_NONE)
		return NULL;
	/* A credit code means at least its number of receives, and less than that of the next code. */
	top = ur_psn_add(msn, code < CREDIT_TOP ? ur_credits_decode(code + 1) - 1
						: ur_credits_decode(code));
	if (e->has_lsn && code < CREDIT_TOP && ur_psn_lt(top, e->lsn))
		return "credits are taken back";
	msn = ur_psn_add(msn, ur_credits_decode(code));
	if (!e->has_lsn || ur_psn_lt(e->lsn, msn))
		e->lsn = msn;
	e->has_lsn = true;
	return NULL;
}

static const char *check_atomic_value(struct end *e, const struct ur_packet *p)
{
	unsigned i = p->bth.psn.v % ATOMICS;

	if (e->atomic[i].known && ur_psn_eq(e->atomic[i].psn, p->bth.psn) &&
	    e->atomic[i].value != p->atomic_ack)
		return "an atomic is answered with another value";
	e->atomic[i].known = true;
	e->atomic[i].psn = p->bth.psn;
	e->atomic[i].value = p->atomic_ack;
	return NULL;
}

/* Checks a response, in either mode, to requests before `end`. */
static const char *check_response(struct end *e, const struct ur_packet *p, struct ur_psn end)
{
	unsigned kind = p->op & UR_OP_READ_RESP ? READ : ATOMIC;
	unsigned flags = flags_of(e, p->bth.psn);
	bool whole = !(p->op & UR_OP_READ_RESP) || (p->op & UR_OP_LAST) ||
		     p->payload_len == 1u << e->id.mtu_shift;

	if (!ur_psn_lt(p->bth.psn, end))
		return "a response to a request that has not come";
	if (flags && (flags & KIND) != kind)
		return "a response to a request of another kind";
	if (!whole)
		return "a response before the last is shorter than the PMTU";
	if (flags)
		slot_of(e, p->bth.psn)->flags |= ANSWERED;
	return kind == ATOMIC ? check_atomic_value(e, p) : NULL;
}

/* ---- answers of standard mode ---- */

static const char *check_ack(struct end *e, struct ur_psn psn)
{
	unsigned flags = flags_of(e, psn);

	if (!ur_psn_lt(psn, e->frontier))
		return "an ACK of what has not come";
	if (flags & (READ | ATOMIC))
		return "an ACK names a PSN of a READ or atomic";
	if (lacks_answer(e, psn))
		return "an ACK overtakes a response";
	if (e->answering)
		return "an ACK between the packets of an answer";
	tell(e, ur_psn_add(psn, 1));
	return NULL;
}

/* True if the packet ends a message of several packets; its ACK may be delayed (RC-RESP-ACK-08). */
static bool may_be_kept_back(struct end *e, struct ur_psn psn)
{
	unsigned before = flags_of(e, ur_psn_add(psn, UR_PSN_MASK));

	return flags_of(e, psn) & ENDS && (before & (DATA | ENDS)) == DATA;
}

static const char *check_seq_nak(struct end *e, struct ur_psn psn)
{
	bool kept_back = false;

	/* The PSN of the NAK may have arrived too early and have been dropped. */
	if (ur_psn_lt(e->newest, psn))
		return "a sequence NAK without a gap";
	if (e->id.mode == UR_MODE_GBN && e->nak_sent && ur_psn_eq(psn, e->nak_psn))
		return "a second sequence NAK for the same gap";
	for (struct ur_psn i = e->acked; ur_psn_lt(i, psn); i = ur_psn_add(i, 1))
		if (flags_of(e, i) & DATA) {
			if (kept_back || !may_be_kept_back(e, i))
				return "a sequence NAK before the ACK of what has come";
			kept_back = true;
		}
	e->nak_sent = true;
	e->nak_psn = psn;
	return NULL;
}

/* The request at `psn` was not executed and must be sent again; with go-back-N nothing after it was kept. */
static void take_back(struct end *e, struct ur_psn psn)
{
	while (ur_psn_lt(psn, e->frontier)) {
		struct entry *n;

		e->frontier = ur_psn_add(e->frontier, UR_PSN_MASK);
		n = slot_of(e, e->frontier);
		e->msgs = (e->msgs - !!(n->flags & ENDS)) & UR_PSN_MASK;
		if (e->id.mode == UR_MODE_GBN || ur_psn_eq(e->frontier, psn))
			n->flags &= (uint8_t)~ARRIVED;
	}
}

static const char *check_nak(struct end *e, const struct ur_packet *p)
{
	struct ur_psn psn = p->bth.psn;

	if (ur_psn_lt(e->frontier, psn))
		return "a NAK acknowledges what has not come";
	if (lacks_answer(e, psn))
		return "a NAK overtakes a response";
	if (p->aeth.syndrome == (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ))
		return check_seq_nak(e, psn);
	if ((p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_RNR_NAK)
		take_back(e, psn);
	return NULL;
}

static const char *check_standard(struct end *e, const struct ur_packet *p)
{
	const char *why;

	if (p->bth.opcode == UR_RC_ACKNOWLEDGE)
		return (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK
			       ? check_ack(e, p->bth.psn)
			       : check_nak(e, p);
	why = check_response(e, p, e->frontier);
	if (!why && lacks_answer(e, p->bth.psn))
		why = "a response overtakes another";
	tell(e, ur_psn_add(p->bth.psn, 1));
	e->answering = !(p->op & UR_OP_LAST);
	return why;
}

/* ---- answers of extended mode ---- */

static const char *check_bitmap(struct end *e, const struct ur_packet *p)
{
	struct ur_psn before = ur_psn_add(p->xaeth.epsn, p->op & UR_OP_BPTH ? p->bpth.offset : 0);

	for (uint32_t i = 0; i < p->payload_len * 8u; i++)
		if (ur_sack_bit(p->payload, i) &&
		    !(flags_of(e, ur_psn_add(before, i + 1)) & ARRIVED))
			return "a bitmap has a packet that has not arrived";
	return NULL;
}

static const char *check_extended(struct end *e, const struct ur_packet *p)
{
	struct ur_psn epsn = p->xaeth.epsn;
	bool is_ack = (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK;
	bool fatal = (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_NAK &&
		     p->aeth.syndrome != (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ);

	if (ur_psn_lt(e->frontier, epsn))
		return "an ePSN beyond what has come";
	if (ur_psn_lt(epsn, e->epsn))
		return "the ePSN goes back";
	e->epsn = epsn;
	if (p->op & UR_OP_XRTH)
		return check_response(e, p, epsn);
	if (!fatal && !ur_psn_eq(p->bth.psn, is_ack ? ur_psn_add(epsn, UR_PSN_MASK) : epsn))
		return "PSN and ePSN of an acknowledgement do not agree";
	return check_bitmap(e, p);
}

const char *sim_wire_sent(struct sim_wire *w, unsigned from, unsigned to, const struct ur_packet *p)
{
	struct end *e = find(w, to, p->bth.dqpn);
	const char *why;

	if (!e)
		return NULL;
	if (e->connected && is_request(e, p))
		return e->id.peer_ep == from ? check_request(e, p) : NULL;
	e = e->peer;
	if (!(p->op & UR_OP_RESPONSE) || !e || !e->connected || e->id.ep != from)
		return NULL;
	w->watched++;
	if (e->id.type != IBV_QPT_RC)
		return "an answer of a queue pair that is not RC";
	if (is_ext(e) != !!(p->op & UR_OP_XAETH))
		return "an answer of the other mode";
	if ((p->op & UR_OP_AETH) && (why = check_msn(e, &p->aeth)))
		return why;
	return is_ext(e) ? check_extended(e, p) : check_standard(e, p);
}
