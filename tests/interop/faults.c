/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"
#include "traffic.h"

/* A request that the peer must refuse. */
static const struct fault {
	const char *word;
	enum op op;
	unsigned len;
	bool past_end;	/* the range begins 8 bytes before the end of the region */
	bool bad_key;	/* a key of no region */
	bool local_key; /* the key of the receives' region, which has no remote rights */
	enum ibv_wc_status of_uroce, of_rxe; /* status if uroce, if rxe is the responder */
} faults[] = {
	{"key-write", OP_WRITE, 100, .bad_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"key-write-long", OP_WRITE, 9000, .bad_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"key-read", OP_READ, 5000, .bad_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"key-fadd", OP_FADD, 8, .bad_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"end-write", OP_WRITE, 3000, .past_end = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"end-read", OP_READ, 3000, .past_end = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"right-write", OP_WRITE, 100, .local_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	{"right-read", OP_READ, 100, .local_key = true, .of_uroce = IBV_WC_REM_ACCESS_ERR,
	 .of_rxe = IBV_WC_REM_ACCESS_ERR},
	/*
	 * By the IBA, a SEND that is too long for the receive is an invalid request. rxe reports a
	 * remote operational error.
	 */
	{"long-send", OP_SEND, 200, .of_uroce = IBV_WC_REM_INV_REQ_ERR,
	 .of_rxe = IBV_WC_REM_OP_ERR},
	{"long-send-packets", OP_SEND, 9000, .of_uroce = IBV_WC_REM_INV_REQ_ERR,
	 .of_rxe = IBV_WC_REM_OP_ERR},
};

enum { GOOD_BYTES = 64, GOOD_AT = 128, SHORT_RECEIVE = 100 };

static const struct fault *fault_of(const struct session *s)
{
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strcmp(s->spec.fault, faults[i].word) == 0)
			return &faults[i];
	return NULL;
}

bool expect_completion(struct session *s, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
		       struct ibv_wc *out)
{
	unsigned long long end = now_ms() + s->spec.stall * 1000ull;
	struct ibv_wc wc;
	int n = 0;

	while (n == 0 && now_ms() < end) {
		if (!poll_cq(s, cq, &wc, 1, &n))
			return false;
		if (n == 0 && device_progress(s->dev) == 0)
			usleep(50);
	}
	if (n == 0)
		return failed(s, "no completion of request %llu in %u s, '%s' is due",
			      (unsigned long long)id, s->spec.stall, V(wc_status_str)(status));
	if (out != NULL)
		*out = wc;
	return (wc.wr_id == id && wc.status == status) ||
	       failed(s, "request %llu: '%s'; due is request %llu: '%s'",
		      (unsigned long long)wc.wr_id, V(wc_status_str)(wc.status),
		      (unsigned long long)id, V(wc_status_str)(status));
}

static bool expect(struct session *s, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	return expect_completion(s, cq, id, status, NULL);
}

static bool expect_nothing(struct session *s, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	return poll_cq(s, cq, &wc, 1, &n) &&
	       (n == 0 ||
		failed(s, "a completion too many, of request %llu", (unsigned long long)wc.wr_id));
}

/* A signaled message of one piece, at the same offset of both regions. */
static struct message message(enum op op, size_t at, unsigned len)
{
	return (struct message){.op = op,
				.len = len,
				.local = at,
				.remote = at,
				.local_pieces = 1,
				.receive_pieces = 1,
				.signaled = true};
}

static bool post_faulty(struct session *s, const struct fault *f, uint64_t id)
{
	struct message m = message(f->op, 4096, f->len);
	struct remote good = s->remote;
	bool ok;

	if (f->past_end)
		m.remote = s->region_bytes - 8;
	if (f->bad_key)
		s->remote.rkey ^= 0x00ffff00;
	if (f->local_key)
		s->remote.rkey = s->remote_local_rkey;
	ok = post_message(s, &m, id);
	s->remote = good;
	return ok;
}

static bool refuse_target(struct session *s, const struct fault *f)
{
	struct message good = message(OP_WRITE, GOOD_AT, GOOD_BYTES);
	static struct plan plan;
	uint8_t *mem[REGIONS];

	plan_fill(&s->spec, false, 0, REGION_REMOTE, s->mem[REGION_REMOTE], s->region_bytes);
	if (f->op == OP_SEND && !post_receive(s, 7, 0, SHORT_RECEIVE, 1))
		return false;
	if (!meet(s, "ready") || !meet(s, "refused"))
		return false;
	for (unsigned i = 0; i < REGIONS; i++)
		plan_fill(&s->spec, i == REGION_LOCAL, 0, (enum region)i, mem[i] = s->image[i],
			  s->region_bytes);
	plan.m[0] = good;
	plan.cnt = 1;
	plan_apply(&s->spec, &plan, mem);
	return memcmp(s->mem[REGION_REMOTE], s->image[REGION_REMOTE], s->region_bytes) == 0 ||
	       failed(s, "a request that was refused changed memory");
}

static bool refuse_initiator(struct session *s, const struct fault *f)
{
	struct message good = message(OP_WRITE, GOOD_AT, GOOD_BYTES),
		       after = message(OP_WRITE, 0, 100);

	plan_fill(&s->spec, true, 0, REGION_LOCAL, s->mem[REGION_LOCAL], s->region_bytes);
	return meet(s, "ready") && post_message(s, &good, 1) && post_faulty(s, f, 2) &&
	       post_message(s, &after, 3) && expect(s, s->send_cq, 1, IBV_WC_SUCCESS) &&
	       expect(s, s->send_cq, 2, is_us("uroce") ? f->of_rxe : f->of_uroce) &&
	       expect(s, s->send_cq, 3, IBV_WC_WR_FLUSH_ERR) && expect_nothing(s, s->send_cq) &&
	       meet(s, "refused");
}

bool run_refused(struct session *s, char *note, size_t note_bytes)
{
	const struct fault *f = fault_of(s);

	if (f == NULL)
		return failed(s, "there is no fault '%s'", s->spec.fault);
	return session_connect(s) &&
	       (is_us(s->spec.from) ? refuse_initiator(s, f) : refuse_target(s, f)) &&
	       meet(s, "end");
}

bool run_rnr_exceeded(struct session *s, char *note, size_t note_bytes)
{
	struct message a = message(OP_SEND, 0, 2500), b = message(OP_SEND, 4096, 10);

	if (!session_connect(s))
		return false;
	if (is_peer(s->spec.from))
		return meet(s, "over") && expect_nothing(s, s->recv_cq);
	return post_message(s, &a, 1) && post_message(s, &b, 2) &&
	       expect(s, s->send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR) &&
	       expect(s, s->send_cq, 2, IBV_WC_WR_FLUSH_ERR) && meet(s, "over");
}

bool run_death(struct session *s, char *note, size_t note_bytes)
{
	struct message before = message(OP_WRITE, 0, 100), a = message(OP_WRITE, 0, 2500),
		       b = message(OP_READ, 4096, 100);
	int rc;

	if (!session_connect(s))
		return false;
	if (is_peer(s->spec.from)) {
		if (!meet(s, "alive"))
			return false;
		rc = V(destroy_qp)(s->qp);
		s->qp = NULL;
		return rc == 0 ? meet(s, "dead") && meet(s, "over")
			       : failed(s, "destroy_qp: %s", strerror(rc));
	}
	return post_message(s, &before, 1) && expect(s, s->send_cq, 1, IBV_WC_SUCCESS) &&
	       meet(s, "alive") && meet(s, "dead") && post_message(s, &a, 2) &&
	       post_message(s, &b, 3) && expect(s, s->send_cq, 2, IBV_WC_RETRY_EXC_ERR) &&
	       expect(s, s->send_cq, 3, IBV_WC_WR_FLUSH_ERR) && meet(s, "over");
}

bool run_vanish(struct session *s, char *note, size_t note_bytes)
{
	if (!session_connect(s))
		return false;
	if (!s->leads)
		_exit(0);
	s->peer_left = true;
	return cm_disconnect(s, false);
}

bool run_wrong_qkey(struct session *s, char *note, size_t note_bytes)
{
	struct message wrong = message(OP_SEND, 0, 100), right = message(OP_SEND, 4096, 300);

	if (!session_connect(s))
		return false;
	if (is_us(s->spec.from)) {
		s->qkey ^= 1;
		if (!meet(s, "ready") || !post_message(s, &wrong, 1) ||
		    !expect(s, s->send_cq, 1, IBV_WC_SUCCESS))
			return false;
		s->qkey ^= 1;
		return post_message(s, &right, 2) && expect(s, s->send_cq, 2, IBV_WC_SUCCESS) &&
		       meet(s, "over");
	}
	return post_receive(s, 1, 0, 300, 1) && post_receive(s, 2, 4096, 300, 1) &&
	       meet(s, "ready") && expect(s, s->recv_cq, 1, IBV_WC_SUCCESS) && meet(s, "over") &&
	       expect_nothing(s, s->recv_cq);
}
