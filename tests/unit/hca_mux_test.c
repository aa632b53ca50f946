/* SPDX-License-Identifier: BSD-3-Clause */
/* The multiplexer: which program gets which MAD, timeouts and retries. */
#include <errno.h>

#include "hca_bed.h"
#include "wire/mad.h"
#include "wire/smp.h"

static char sm, tool, other; /* the programs */

/* UMAD-TID-01 */
Test(hca_mux, a_response_returns_to_the_program_that_asked)
{
	struct bed *b = bed_new();
	struct mux_program *s = mux_open(&b->mux, &sm), *t = mux_open(&b->mux, &tool);
	struct mux_program *o = mux_open(&b->mux, &other);
	int server = bed_register(b, s, BED_CLASS, METHOD_GET, 0), agent, unused;
	uint8_t mad[256];

	unused = bed_register(b, o, BED_CLASS, 0, 0);
	agent = bed_register(b, t, BED_CLASS, 0, 0);
	cr_assert_eq(server, 0);
	cr_assert_eq(unused, 0);
	cr_assert_eq(agent, 0);
	bed_request(mad, BED_CLASS, METHOD_GET, 0xffffffff12345678);
	bed_submit(b, t, agent, mad, 256, 100, 3);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 1);
	cr_assert_eq(b->given[0].program, &sm);
	cr_assert_eq(b->given[0].head.length, 256);
	cr_assert_eq(b->given[0].head.umad.addr.lid, htons(BED_LID));
	cr_assert_eq(ur_load32(b->given[0].mad + 12), 0x12345678);

	memcpy(mad, b->given[0].mad, 256);
	mad[3] |= 0x80;
	mad[200] = 42;
	bed_submit(b, s, server, mad, 256, 0, 0);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 2);
	cr_assert_eq(b->given[1].program, &tool);
	cr_assert_eq(b->given[1].head.umad.agent_id, (uint32_t)agent);
	cr_assert_eq(b->given[1].head.umad.status, 0);
	cr_assert_eq(b->given[1].mad[200], 42);
	cr_assert_eq(mux_deadline(&b->mux), MUX_NEVER);

	/* A second response is one too many. */
	bed_submit(b, s, server, mad, 256, 0, 0);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 2);
	cr_assert_eq(b->mux.counters.unmatched_responses, 1);
	bed_free(b);
}

/* UMAD-TID-02 */
Test(hca_mux, a_response_from_another_lid_is_none)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x04, 0, 0);
	struct ib_mad_addr from = {.lid = htons(BED_LID + 1)};
	uint8_t mad[256];

	bed_request(mad, 0x04, METHOD_GET, 0x77);
	bed_submit(b, t, agent, mad, 256, 100, 0);
	memcpy(mad, b->wire[0], 256);
	mad[3] |= 0x80;
	cr_assert(mux_input(&b->mux, mad, &from, b->now));
	cr_assert_eq(b->given_cnt, 0);
	cr_assert_eq(b->mux.counters.unmatched_responses, 1);
	from.lid = htons(BED_LID);
	cr_assert(mux_input(&b->mux, mad, &from, b->now));
	cr_assert_eq(b->given_cnt, 1);
	bed_free(b);
}

/* UMAD-TID-01 */
Test(hca_mux, the_upper_halves_of_transaction_ids_are_no_sequence)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	uint32_t last = 0;

	for (unsigned i = 0; i < UR_UMAD_AGENTS; i++) {
		int agent = bed_register(b, t, 0x04, 0, 0);
		uint32_t high = t->agents[agent].tid_high;

		cr_assert(high && (high - last > 1000 || i == 0));
		last = high;
	}
	bed_free(b);
}

/* UMAD-END-01 */
Test(hca_mux, a_program_has_a_bounded_number_of_requests_under_way)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x04, 0, 0);
	uint8_t mad[256];

	for (unsigned i = 0; i < MUX_TRANSFERS_MAX + 5; i++) {
		bed_request(mad, 0x04, METHOD_GET, i);
		bed_submit(b, t, agent, mad, 256, 100, 0);
		b->wire_tail = b->wire_head = 0; /* lost */
	}
	cr_assert_eq(t->transfers, MUX_TRANSFERS_MAX);
	cr_assert_eq(b->mux.counters.refused, 5);
	cr_assert_eq(mux_unregister(&b->mux, t, (uint32_t)agent), 0);
	cr_assert_eq(t->transfers, 0);
	bed_free(b);
}

Test(hca_mux, what_a_program_has_under_way_has_a_bounded_number_of_bytes)
{
	enum { LENGTH = 64 << 20 };
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x03, 2, 1);
	uint8_t *mad = calloc(1, LENGTH);

	cr_assert(agent >= 0 && mad);
	for (unsigned i = 0; i < 5; i++) {
		bed_request(mad, 0x03, METHOD_GET, i);
		mad[24] = 1; /* RMPP version, type DATA, active */
		mad[25] = 1;
		mad[26] = 1;
		bed_submit(b, t, agent, mad, LENGTH, 100, 0);
		b->wire_tail = b->wire_head = 0;
	}
	cr_assert_eq(t->transfers, MUX_BYTES_MAX / LENGTH);
	cr_assert_eq(t->bytes, MUX_BYTES_MAX);
	cr_assert_eq(b->mux.counters.refused, 3);
	cr_assert_eq(mux_unregister(&b->mux, t, (uint32_t)agent), 0);
	cr_assert_eq(t->bytes, 0);
	free(mad);
	bed_free(b);
}

/* UMAD-RETRY-01 */
Test(hca_mux, a_request_is_repeated_and_then_returned_with_etimedout)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x04, 0, 0);
	uint8_t mad[256];

	bed_request(mad, 0x04, METHOD_GET, 0x77);
	bed_submit(b, t, agent, mad, 256, 100, 2);
	for (unsigned sent = 1; sent <= 3; sent++) {
		cr_assert_eq(b->wire_tail, sent);
		cr_assert_arr_eq(b->wire[sent - 1], b->wire[0], 256);
		cr_assert_eq(b->given_cnt, 0);
		cr_assert_eq(mux_deadline(&b->mux), sent * 100 * MS);
		cr_assert(bed_wait(b));
	}
	cr_assert_eq(b->wire_tail, 3);
	cr_assert_eq(b->given_cnt, 1);
	cr_assert_eq(b->given[0].head.umad.status, ETIMEDOUT);
	cr_assert_eq(b->given[0].head.length, 24);
	cr_assert_eq(ur_load32(b->given[0].mad + 12), 0x77);
	cr_assert_eq(mux_deadline(&b->mux), MUX_NEVER);
	cr_assert_eq(b->mux.counters.retried, 2);
	bed_free(b);
}

/* UMAD-METHOD-01 */
Test(hca_mux, a_method_belongs_to_one_agent)
{
	struct bed *b = bed_new();
	struct mux_program *s = mux_open(&b->mux, &sm), *t = mux_open(&b->mux, &tool);
	uint8_t mad[256];
	int agent;

	agent = bed_register(b, s, 0x81, METHOD_GET, 0);
	cr_assert_eq(agent, 0);
	cr_assert_eq(bed_register(b, t, 0x81, METHOD_GET, 0), -EINVAL);
	cr_assert_eq(bed_register(b, t, 0x81, 2, 0), 0);
	cr_assert_eq(bed_register(b, t, 0x81, METHOD_GET, 2), -EINVAL);
	bed_request(mad, 0x81, METHOD_GET, 1);
	memcpy(b->wire[b->wire_tail++], mad, 256);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 1);
	cr_assert_eq(b->given[0].program, &sm);

	cr_assert_eq(mux_unregister(&b->mux, s, 0), 0);
	cr_assert_eq(mux_unregister(&b->mux, s, 0), -EINVAL);
	cr_assert_eq(mux_unregister(&b->mux, s, 99), -EINVAL);
	memcpy(b->wire[b->wire_tail++], mad, 256);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 1);
	cr_assert_eq(b->mux.counters.unmatched_requests, 1);
	cr_assert_eq(bed_register(b, t, 0x81, METHOD_GET, 0), 1);
	bed_free(b);
}

Test(hca_mux, vendor_classes_are_told_apart_by_oui)
{
	struct bed *b = bed_new();
	struct mux_program *s = mux_open(&b->mux, &sm);
	struct ur_umad_register r = {
		.mgmt_class = 0x32, .class_version = 2, .methods = {2}, .oui = 0x112233};
	uint8_t mad[256];

	cr_assert_eq(mux_register(&b->mux, s, &r), 0);
	r.oui = 0x112234;
	cr_assert_eq(mux_register(&b->mux, s, &r), 1);
	r.oui = 0;
	cr_assert_eq(mux_register(&b->mux, s, &r), -EINVAL);
	bed_request(mad, 0x32, METHOD_GET, 1);
	ur_store24(mad + 37, 0x112234);
	memcpy(b->wire[b->wire_tail++], mad, 256);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 1);
	cr_assert_eq(b->given[0].head.umad.agent_id, 1);
	bed_free(b);
}

/* UMAD-END-01 */
Test(hca_mux, a_program_that_leaves_leaves_nothing)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x04, METHOD_GET, 0);
	uint8_t mad[256];

	bed_request(mad, 0x04, METHOD_GET, 5);
	bed_submit(b, t, agent, mad, 256, 100, 2);
	mux_close(&b->mux, t);
	cr_assert_eq(mux_deadline(&b->mux), MUX_NEVER);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 0);
	t = mux_open(&b->mux, &other);
	cr_assert_eq(bed_register(b, t, 0x04, METHOD_GET, 0), 0);
	bed_free(b);
}

Test(hca_mux, what_a_program_may_not_send_is_counted)
{
	struct bed *b = bed_new();
	struct mux_program *t = mux_open(&b->mux, &tool);
	int agent = bed_register(b, t, 0x04, 0, 0);
	uint8_t mad[512] = {0};

	bed_request(mad, 0x04, METHOD_GET, 5);
	bed_submit(b, t, agent, mad, 24, 0, 0);
	bed_submit(b, t, agent, mad, 512, 0, 0);
	bed_submit(b, t, agent + 1, mad, 256, 0, 0);
	bed_submit(b, t, 1000, mad, 256, 0, 0);
	cr_assert_eq(b->mux.counters.refused, 4);
	cr_assert_eq(b->wire_tail, 0);
	for (unsigned i = 1; i < UR_UMAD_AGENTS; i++)
		cr_assert_eq(bed_register(b, t, 0x04, 0, 0), (int)i);
	cr_assert_eq(bed_register(b, t, 0x04, 0, 0), -ENOMEM);
	bed_free(b);
}

/* Status of the response to such a request that no program has registered for; -1: there is none. */
static int refusal(struct bed *b, unsigned mgmt_class, unsigned method, bool is_served)
{
	const struct ib_mad_addr from = {.lid = htons(BED_LID)};
	uint8_t mad[256], request[256];
	unsigned status;

	bed_request(mad, mgmt_class, method, 0x1234567890abcdef);
	memset(mad + 16, 0x5a, 8);
	ur_store24(mad + 37, 0x001405);
	memcpy(request, mad, sizeof(mad));
	cr_assert_not(mux_input(&b->mux, mad, &from, b->now));
	if (!mux_refuse(&b->mux, mad, is_served)) {
		cr_assert_eq(memcmp(mad, request, sizeof(mad)), 0);
		return -1;
	}
	cr_assert_eq(mad[3], method == UR_MAD_METHOD_SET ? UR_MAD_METHOD_GET_RESP : method | 0x80);
	status = ur_load16(mad + 4);
	cr_assert_eq(status & UR_SMP_DIRECTION, mgmt_class == 0x81 ? UR_SMP_DIRECTION : 0);
	memcpy(request + 3, mad + 3, 3);
	cr_assert_eq(memcmp(mad, request, sizeof(mad)), 0, "the rest is the request's");
	return (int)(status & ~(unsigned)UR_SMP_DIRECTION);
}

/* REQ: MGMT-STATUS-01 */
Test(hca_mux, what_no_program_serves_has_the_status_of_its_method)
{
	static const uint8_t answered[] = {UR_MAD_METHOD_GET,	    UR_MAD_METHOD_SET,
					   UR_MAD_METHOD_GET_TABLE, UR_MAD_METHOD_GET_TRACE_TABLE,
					   UR_MAD_METHOD_GET_MULTI, UR_MAD_METHOD_DELETE};
	static const uint8_t silent[] = {UR_MAD_METHOD_SEND,
					 UR_MAD_METHOD_TRAP,
					 UR_MAD_METHOD_REPORT,
					 UR_MAD_METHOD_TRAP_REPRESS,
					 0x00,
					 0x16,
					 0x7f};
	struct bed *b = bed_new();
	struct mux_program *p = mux_open(&b->mux, &sm);
	struct ur_umad_register ping = {
		.mgmt_class = 0x32, .class_version = 2, .methods = {4}, .oui = 0x001405};

	for (unsigned i = 0; i < sizeof(answered); i++) {
		cr_assert_eq(refusal(b, BED_CLASS, answered[i], false), UR_MAD_STATUS_BAD_VERSION);
		cr_assert_eq(refusal(b, 0x21, answered[i], false), UR_MAD_STATUS_BAD_VERSION);
		cr_assert_eq(refusal(b, UR_MAD_CLASS_PERF, answered[i], true),
			     UR_MAD_STATUS_METHOD);
		/* What the node leaves to programs of subnet management is an attribute. */
		cr_assert_eq(refusal(b, 0x81, answered[i], true),
			     i < 2 ? UR_MAD_STATUS_ATTRIBUTE : UR_MAD_STATUS_METHOD);
	}
	for (unsigned i = 0; i < sizeof(silent); i++)
		cr_assert_eq(refusal(b, BED_CLASS, silent[i], false), -1);
	/* A program serves another method of the class, or of another OUI, or asks only. */
	cr_assert_eq(bed_register(b, p, BED_CLASS, 0, 0), 0);
	cr_assert_eq(refusal(b, BED_CLASS, UR_MAD_METHOD_GET, false), UR_MAD_STATUS_BAD_VERSION);
	cr_assert_eq(bed_register(b, p, BED_CLASS, UR_MAD_METHOD_GET_TABLE, 0), 1);
	cr_assert_eq(refusal(b, BED_CLASS, UR_MAD_METHOD_GET, false), UR_MAD_STATUS_METHOD);
	cr_assert_eq(mux_register(&b->mux, p, &ping), 2);
	cr_assert_eq(refusal(b, 0x32, UR_MAD_METHOD_GET, false), UR_MAD_STATUS_METHOD);
	ping.oui = 0x001406;
	mux_unregister(&b->mux, p, 2);
	cr_assert_eq(mux_register(&b->mux, p, &ping), 2);
	cr_assert_eq(refusal(b, 0x32, UR_MAD_METHOD_GET, false), UR_MAD_STATUS_BAD_VERSION);
	bed_free(b);
}

Test(hca_mux, of_a_request_in_segments_the_first_is_refused)
{
	struct bed *b = bed_new();
	uint8_t mad[256];

	bed_request(mad, BED_CLASS, UR_MAD_METHOD_GET_MULTI, 1);
	memcpy(mad + 24, (const uint8_t[]){1, 1, 0x80 | 3, 0, 0, 0, 0, 2}, 8); /* DATA, segment 2 */
	cr_assert_not(mux_refuse(&b->mux, mad, false));
	mad[31] = 1;
	cr_assert(mux_refuse(&b->mux, mad, false));
	cr_assert_eq(mad[26], 0x80, "no part of an RMPP message");
	/* The ACK of a message of a program that has ended. */
	bed_request(mad, BED_CLASS, UR_MAD_METHOD_GET_TABLE, 1);
	memcpy(mad + 24, (const uint8_t[]){1, 2, 1, 0, 0, 0, 0, 1}, 8);
	cr_assert_not(mux_refuse(&b->mux, mad, false));
	bed_free(b);
}
