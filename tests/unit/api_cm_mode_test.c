/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <stdlib.h>

#include "api/qp_mode.h"

#define PORT 7471
#define IP_B "10.77.0.2"

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_cm_mode, .fini = teardown, .timeout = 240);

static void open_modes(const char *a, const char *b)
{
	/* Long lives of grants and refusals, in case the test is not scheduled for a while. */
	const char *const set_a[] = {"admission.recall_us=1000000", "admission.mark_ms=60000", a,
				     NULL};
	const char *const set_b[] = {"admission.recall_us=1000000", "admission.mark_ms=60000", b,
				     NULL};

	end_open(A, "ring-a.conf", set_a);
	end_open(B, "ring-b.conf", set_b);
}

struct pair {
	struct uroce_cm_id *listener, *a, *b;
	struct ibv_qp *qa, *qb;
	int accepted; /* result of uroce_cm_accept() */
	unsigned seen_len;
	uint8_t seen[256]; /* the private data that B received */
};

static uint8_t private_data[196];

static void request(struct pair *p, uint8_t req_len)
{
	struct uroce_conn_param param = end_param;
	struct uroce_cm_event *ev;

	memset(private_data, 0x5a, sizeof(private_data));
	param.private_data = private_data;
	param.private_data_len = req_len;
	p->listener = end_listen(B, PORT);
	p->a = end_id(A);
	if (!p->qa)
		p->qa = end_qp(A, IBV_QPT_RC);
	if (!p->qb)
		p->qb = end_qp(B, p->qa->qp_type);
	cr_assert_eq(end_try_connect(p->a, IP_B, PORT, p->qa, &param), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	p->b = ev->id;
	p->seen_len = ev->param.private_data_len;
	memcpy(p->seen, ev->param.private_data, p->seen_len);
	uroce_ack_cm_event(ev);
}

static void answer(struct pair *p, uint8_t rep_len)
{
	struct uroce_conn_param param = end_param;

	param.private_data = private_data;
	param.private_data_len = rep_len;
	p->accepted = uroce_cm_accept(p->b, p->qb, &param);
}

static void join(struct pair *p, uint8_t req_len, uint8_t rep_len)
{
	request(p, req_len);
	answer(p, rep_len);
	cr_assert_eq(p->accepted, 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

static void drop(struct pair *p)
{
	cr_expect_eq(uroce_cm_destroy_id(p->a), 0);
	cr_expect_eq(uroce_cm_destroy_id(p->b), 0);
	cr_expect_eq(uroce_destroy_qp(p->qa), 0);
	cr_expect_eq(uroce_destroy_qp(p->qb), 0);
	cr_expect_eq(uroce_cm_destroy_id(p->listener), 0);
}

static void expect_mode(struct ibv_qp *qp, enum uroce_qp_mode mode,
			enum uroce_qp_mode_reason reason)
{
	struct uroce_qp_mode_attr attr;

	cr_assert_eq(uroce_query_qp_mode(qp, &attr), 0);
	cr_expect_eq(attr.mode, mode, "%s, because %s", uroce_qp_mode_str(attr.mode),
		     uroce_qp_mode_reason_str(attr.reason));
	cr_expect_eq(attr.reason, reason, "%s", uroce_qp_mode_reason_str(attr.reason));
}

static void expect_both(struct pair *p, enum uroce_qp_mode mode, enum uroce_qp_mode_reason reason)
{
	expect_mode(p->qa, mode, reason);
	expect_mode(p->qb, mode, reason);
}

static void talk(struct pair *p)
{
	end_post_recv(B, p->qb, 2);
	end_post_send(A, p->qa, 3, "from a");
	cr_assert_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(B).wr_id, 2);
	cr_assert_str_eq((char *)B->buf, "from a");
}

static uint64_t counted(struct end *e, const char *word)
{
	char *json = uroce_counters_json(e->ctx), *modes, *at;
	char key[64];
	uint64_t n;

	cr_assert_not_null(json);
	snprintf(key, sizeof(key), "\"%s\": ", word);
	modes = strstr(json, "\"modes\"");
	cr_assert_not_null(modes);
	at = strstr(modes, key);
	cr_assert_not_null(at);
	n = strtoull(at + strlen(key), NULL, 10);
	free(json);
	return n;
}

/* ---- what both ends agree on ---- */

/* CM-EXT-02 */
Test(api_cm_mode, two_ends_left_to_themselves_agree)
{
	struct pair p = {0};

	open_modes(NULL, NULL);
	join(&p, 0, 0);
	expect_both(&p, UROCE_QP_MODE_EXTENDED, UROCE_MODE_REASON_AGREED);
	talk(&p);
	drop(&p);
}

/* CM-EXT-02, CM-EXT-03 */
Test(api_cm_mode, two_ends_that_want_extended_mode_get_it_and_no_byte_of_the_application_changes)
{
	struct pair p = {0};
	struct ibv_qp_attr before, a, b;
	struct uroce_cm_event *ev;
	uint8_t zeros[56] = {0};

	open_modes("transport.mode=extended", "transport.mode=extended");
	request(&p, 40);
	cr_assert_eq(p.seen_len, 56, "as without the block");
	cr_expect_arr_eq(p.seen, private_data, 40);
	cr_expect_arr_eq(p.seen + 40, zeros, 16);
	answer(&p, 180);
	cr_assert_eq(p.accepted, 0);
	ev = end_event(A, UROCE_CM_ESTABLISHED);
	cr_assert_eq(ev->param.private_data_len, 196);
	cr_expect_arr_eq(ev->param.private_data, private_data, 180);
	cr_expect_arr_eq((const uint8_t *)ev->param.private_data + 180, zeros, 16);
	uroce_ack_cm_event(ev);
	end_expect(B, UROCE_CM_ESTABLISHED);
	expect_both(&p, UROCE_QP_MODE_EXTENDED, UROCE_MODE_REASON_AGREED);
	cr_expect_eq(counted(A, "agreed"), 1);
	cr_expect_eq(counted(B, "agreed"), 1);
	cr_assert_eq(uroce_query_qp(p.qa, &before, ~0, NULL), 0);
	talk(&p);
	/* The next PSN of each side is the one that the other expects. */
	cr_assert_eq(uroce_query_qp(p.qa, &a, ~0, NULL), 0);
	cr_assert_eq(uroce_query_qp(p.qb, &b, ~0, NULL), 0);
	cr_expect_neq(a.sq_psn, before.sq_psn);
	cr_expect_eq(a.sq_psn, b.rq_psn);
	cr_expect_eq(b.sq_psn, a.rq_psn);
	drop(&p);
}

/* CM-EXT-02 */
Test(api_cm_mode, the_application_chooses_per_queue_pair)
{
	const struct uroce_qp_mode_attr want = {
		.mode = UROCE_QP_MODE_EXTENDED, .strict = true, .spray = 4};
	struct uroce_qp_mode_attr got;
	struct pair p = {0};

	open_modes(NULL, "transport.mode=gbn");
	p.qa = end_qp(A, IBV_QPT_RC);
	p.qb = end_qp(B, IBV_QPT_RC);
	cr_assert_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_MODE | UROCE_QP_STRICT), 0);
	cr_assert_eq(uroce_set_qp_mode(p.qb, &want, UROCE_QP_MODE), 0);
	join(&p, 0, 0);
	expect_both(&p, UROCE_QP_MODE_EXTENDED, UROCE_MODE_REASON_AGREED);
	uroce_query_qp_mode(p.qa, &got);
	cr_expect(got.strict);
	uroce_query_qp_mode(p.qb, &got);
	cr_expect_not(got.strict);
	drop(&p);
}

/* ---- falling back ---- */

/* CM-EXT-05 */
Test(api_cm_mode, a_peer_that_knows_nothing_of_extended_mode_gets_the_standard)
{
	struct pair p = {0};

	open_modes(NULL, "transport.mode=gbn"); /* like another implementation, it sends no block */
	join(&p, 0, 0);
	expect_mode(p.qa, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PEER);
	expect_mode(p.qb, UROCE_QP_MODE_GBN, UROCE_MODE_REASON_CHOSEN);
	cr_expect_eq(counted(A, "peer"), 1);
	talk(&p);
	drop(&p);
}

/* CM-EXT-05 */
Test(api_cm_mode, a_peer_that_offers_nothing_gets_no_answer)
{
	struct pair p = {0};

	open_modes("transport.mode=reorder", NULL);
	join(&p, 0, 0);
	expect_mode(p.qa, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_CHOSEN);
	expect_mode(p.qb, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PEER);
	talk(&p);
	drop(&p);
}

/* CM-EXT-01 */
Test(api_cm_mode, private_data_that_reaches_into_the_last_16_bytes_is_no_error)
{
	struct pair p = {0};

	open_modes(NULL, NULL);
	join(&p, 41, 0);
	cr_expect_arr_eq(p.seen, private_data, 41);
	expect_mode(p.qa, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PRIVATE_DATA);
	expect_mode(p.qb, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PEER);
	talk(&p);
	drop(&p);
}

/* CM-EXT-01 */
Test(api_cm_mode, private_data_of_the_answer_may_take_the_room_as_well)
{
	const struct uroce_qp_mode_attr automatic = {.mode = UROCE_QP_MODE_AUTO};
	struct pair p = {0};

	open_modes(NULL, NULL);
	p.qb = end_qp(B, IBV_QPT_RC);
	cr_assert_eq(uroce_set_qp_mode(p.qb, &automatic, UROCE_QP_MODE), 0);
	join(&p, 0, 181);
	expect_mode(p.qa, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PEER);
	expect_mode(p.qb, UROCE_QP_MODE_REORDER, UROCE_MODE_REASON_PRIVATE_DATA);
	talk(&p);
	drop(&p);
}

Test(api_cm_mode, unreliable_connections_have_one_mode)
{
	struct pair p = {0};

	open_modes("transport.mode=extended", "transport.mode=extended");
	p.qa = end_qp(A, IBV_QPT_UC);
	join(&p, 0, 0);
	expect_both(&p, UROCE_QP_MODE_GBN, UROCE_MODE_REASON_SERVICE);
	drop(&p);
}

/* ---- demands ---- */

/* CM-EXT-06 */
Test(api_cm_mode, a_required_mode_that_the_peer_lacks_ends_the_attempt_with_a_reason)
{
	struct pair p = {0};
	struct uroce_cm_event *ev;

	open_modes("transport.mode=extended", "transport.mode=reorder");
	request(&p, 0);
	answer(&p, 0);
	cr_assert_eq(p.accepted, 0);
	ev = end_event(A, UROCE_CM_UNREACHABLE);
	cr_expect_eq(ev->status, EPROTONOSUPPORT);
	uroce_ack_cm_event(ev);
	ev = end_event(B, UROCE_CM_REJECTED);
	cr_expect_eq(ev->status, 5, "unsupported request");
	uroce_ack_cm_event(ev);
	cr_expect_eq(end_state(p.qa), IBV_QPS_ERR);
	cr_expect_eq(end_state(p.qb), IBV_QPS_ERR);
	{
		struct uroce_qp_mode_attr attr;

		uroce_query_qp_mode(p.qa, &attr);
		cr_expect_eq(attr.reason, UROCE_MODE_REASON_PEER);
		cr_expect_not_null(
			strstr(uroce_qp_mode_reason_str(attr.reason), "[transport] mode"));
	}
	drop(&p);
}

/* CM-EXT-06 */
Test(api_cm_mode, a_demand_of_the_passive_side_is_refused_before_the_peer_is_answered)
{
	struct pair p = {0};
	struct uroce_cm_event *ev;

	open_modes("transport.mode=reorder", "transport.mode=extended");
	request(&p, 0);
	answer(&p, 0);
	cr_assert_eq(p.accepted, EPROTONOSUPPORT);
	cr_assert_eq(uroce_cm_reject(p.b, 5, NULL, 0), 0);
	ev = end_event(A, UROCE_CM_REJECTED);
	cr_expect_eq(ev->status, 5);
	uroce_ack_cm_event(ev);
	drop(&p);
}

/* CM-EXT-06 */
Test(api_cm_mode, a_demand_without_room_for_the_offer_cannot_be_met)
{
	struct pair p = {0};
	struct uroce_qp_mode_attr attr;

	open_modes("transport.mode=extended", NULL);
	request(&p, 56);
	answer(&p, 0);
	cr_assert_eq(p.accepted, 0);
	cr_expect_arr_eq(p.seen, private_data, 56);
	end_expect(A, UROCE_CM_UNREACHABLE);
	end_expect(B, UROCE_CM_REJECTED);
	uroce_query_qp_mode(p.qa, &attr);
	cr_expect_eq(attr.reason, UROCE_MODE_REASON_PRIVATE_DATA);
	drop(&p);
}

/* ---- the calls ---- */

Test(api_cm_mode, a_mode_is_chosen_in_time_and_within_its_range)
{
	struct uroce_qp_mode_attr want = {.mode = UROCE_QP_MODE_GBN};
	struct pair p = {0};
	struct ibv_qp *ud;

	open_modes(NULL, NULL);
	p.qa = end_qp(A, IBV_QPT_RC);
	ud = end_qp(A, IBV_QPT_UD);
	cr_expect_eq(uroce_set_qp_mode(ud, &want, UROCE_QP_MODE), EOPNOTSUPP);
	uroce_destroy_qp(ud);
	cr_expect_eq(uroce_set_qp_mode(p.qa, &want, 1 << 3), EINVAL);
	want.mode = (enum uroce_qp_mode)4;
	cr_expect_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_MODE), EINVAL);
	for (unsigned spray = 0; spray < 256; spray++) {
		bool good = !spray || (spray >= 2 && spray <= 16) || spray == UROCE_SPRAY_ALL;

		want.spray = (uint8_t)spray;
		cr_expect_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_SPRAY), good ? 0 : EINVAL,
			     "%u ports", spray);
	}
	want = (struct uroce_qp_mode_attr){.mode = UROCE_QP_MODE_REORDER, .spray = 2};
	cr_expect_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_MODE | UROCE_QP_SPRAY), EINVAL);
	expect_mode(p.qa, UROCE_QP_MODE_AUTO, UROCE_MODE_REASON_OPEN);
	request(&p, 0);
	want.mode = UROCE_QP_MODE_GBN;
	cr_expect_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_MODE), EBUSY);
	answer(&p, 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
	cr_expect_eq(uroce_set_qp_mode(p.qa, &want, UROCE_QP_MODE), EINVAL, "too late");
	drop(&p);
}

/* ---- admission ---- */

/* The value of `key` in object `of` of /uroce/admission; "" if there is none. */
static const char *told(struct end *e, const char *of, const char *key)
{
	static char value[64];
	char *json = uroce_counters_json(e->ctx), *at = strstr(json, "\"admission\": {");
	char *end = at ? strstr(at, "\n  }") : NULL, quoted[32];

	value[0] = '\0';
	if (end)
		*end = '\0';
	snprintf(quoted, sizeof(quoted), "\"%s\": {", of);
	at = at ? strstr(at, quoted) : NULL;
	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = at ? strstr(at, quoted) : NULL;
	if (at) {
		at += strlen(quoted);
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, ",\n"), at);
	}
	free(json);
	return value;
}

static void post_srq(struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)B->buf, 64, B->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	cr_assert_eq(uroce_post_srq_recv(srq, &wr, &bad), 0);
}

/* B has an SRQ. A sends before a receive is posted. */
static void overrun(const char *mode_a, const char *mode_b, struct pair *p, struct ibv_srq **srq)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qa = {.qp_type = IBV_QPT_RC, .cap = {4, 0, 1, 0, 0}};

	open_modes(mode_a, mode_b);
	*srq = uroce_create_srq(B->pd, &sa);
	cr_assert_not_null(*srq);
	qa.send_cq = qa.recv_cq = B->cq;
	qa.srq = *srq;
	p->qb = uroce_create_qp(B->pd, &qa);
	cr_assert_not_null(p->qb);
	join(p, 0, 0);
	expect_both(p, UROCE_QP_MODE_EXTENDED, UROCE_MODE_REASON_AGREED);
	end_post_send(A, p->qa, 3, "waits");
	for (unsigned i = 0; i < 200; i++)
		end_progress();
}

static void serve(struct pair *p, struct ibv_srq *srq)
{
	post_srq(srq, 2);
	cr_assert_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(B).wr_id, 2);
	drop(p);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

static struct uroce_counters counters_of(struct end *e)
{
	struct uroce_counters c;

	cr_assert_eq(uroce_query_counters(e->ctx, &c), 0);
	return c;
}

/* ADM-AGREE-01, CM-ADM-01 */
Test(api_cm_mode, two_ends_agree_on_a_pool_with_grants)
{
	uint64_t until = end_ms() + 10000;
	struct uroce_peer_pool peer;
	struct uroce_admission adm;
	struct uroce_pool pool;
	struct pair p = {0};
	struct ibv_srq *srq;

	overrun("admission.mode=intelligent", "admission.mode=intelligent", &p, &srq);
	while (strcmp(told(A, "peer0", "status"), "\"A\"") != 0) {
		cr_assert_lt(end_ms(), until, "A is not told");
		end_progress();
	}
	cr_assert_str_eq(told(B, "pool1", "status"), "\"A\"");
	cr_assert_str_eq(told(B, "pool1", "refused_a"), "1");
	cr_assert_geq(atoi(told(B, "pool1", "refused")), 1, "more when it was sent again");
	cr_assert_str_eq(told(A, "peer0", "address"), "\"10.77.0.2\"");
	cr_assert_str_eq(told(A, "peer0", "pool"), "1");
	cr_assert_str_eq(told(A, "peer0", "status"), "\"A\"");
	cr_assert_eq(uroce_query_admission(B->ctx, &adm, &pool, 1, NULL, 0), 0);
	cr_assert_str_eq(uroce_admission_mode_str(adm.mode), "intelligent");
	cr_assert_eq(adm.pools, 1);
	cr_assert_eq(adm.peer_pools, 0);
	cr_assert_eq(pool.name, 1);
	cr_assert_str_eq(uroce_pool_status_str(pool.status), "A");
	cr_assert_eq(pool.generation, 1);
	cr_assert_eq(pool.qps, 1);
	cr_assert_eq(pool.refused_a, 1);
	cr_assert_geq(pool.refused, 1u);
	cr_assert_eq(pool.accepted, 0);
	cr_assert_eq(uroce_query_admission(A->ctx, &adm, NULL, 0, &peer, 1), 0);
	cr_assert_eq(adm.pools, 0);
	cr_assert_eq(adm.peer_pools, 1);
	cr_assert_eq(peer.address.raw[15], 2);
	cr_assert_eq(peer.pool, 1);
	cr_assert_eq(peer.status, UROCE_POOL_A);
	cr_assert_eq(peer.qps, 1);
	serve(&p, srq);
	cr_assert_geq(counters_of(B).adm_refused, 1u);
	cr_assert_eq(counters_of(B).adm_accepted, 1);
	cr_assert_eq(counters_of(B).adm_grants_sent, 1);
	cr_assert_eq(counters_of(A).adm_grants_received, 1);
	cr_assert_eq(counters_of(A).adm_refused, 0);
}

/* The pool is in mode paper. */
static void agree_on_paper(const char *sender)
{
	struct uroce_admission adm;
	struct pair p = {0};
	struct ibv_srq *srq;

	overrun(sender, "admission.mode=paper", &p, &srq);
	cr_assert_eq(uroce_query_admission(B->ctx, &adm, NULL, 0, NULL, 0), 0);
	cr_assert_eq(adm.mode, UROCE_ADMISSION_PAPER);
	cr_assert_str_eq(uroce_admission_mode_str(adm.mode), "paper");
	serve(&p, srq);
	cr_assert_geq(counters_of(B).adm_refused, 1u);
	cr_assert_eq(counters_of(B).adm_accepted, 1);
	cr_assert_eq(counters_of(B).adm_grants_sent, 0);
	cr_assert_eq(counters_of(B).adm_notifies_sent, 2, "of A and of NB");
	cr_assert_eq(counters_of(A).adm_notifies_received, 2);
}

/* ADM-AGREE-01, CM-ADM-01, ADM-PAPER-01 */
Test(api_cm_mode, two_ends_agree_on_a_pool_in_mode_paper)
{
	agree_on_paper("admission.mode=paper");
}

/* ADM-AGREE-01, ADM-PAPER-01: it is the pool's mode that counts */
Test(api_cm_mode, a_sender_in_mode_intelligent_obeys_a_pool_in_mode_paper)
{
	agree_on_paper("admission.mode=intelligent");
}

Test(api_cm_mode, a_sender_in_mode_ab_obeys_a_pool_in_mode_paper)
{
	agree_on_paper("admission.mode=ab");
}

/* ADM-AGREE-01 */
Test(api_cm_mode, an_end_in_mode_plain_neither_sends_nor_gets_a_status)
{
	struct pair p = {0};
	struct ibv_srq *srq;

	overrun(NULL, "admission.mode=ab", &p, &srq);
	cr_assert_str_eq(told(B, "pool1", "qps"), "1");
	cr_assert_str_eq(told(B, "pool1", "refused"), "0", "it is not asked");
	cr_assert_str_eq(told(A, "peer0", "pool"), "");
	serve(&p, srq);
}
