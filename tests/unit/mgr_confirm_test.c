/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "manager/build.h"
#include "manager/confirm.h"
#include "mgmt/registers.h"
#include "wire/bytes.h"
#include "wire/smp.h"

/* Fault reports, and what their nodes say when they are asked. */
#define GUID UINT64_C(0x27572000000007)

/* A node: what it answers. */
struct node {
	uint64_t guid, count, cause, status, time_ns, value, limit;
	uint8_t state;
	bool no_value, refuses;
	int silent_from; /* the question from which on it does not answer */
	unsigned asked;
};

static struct ur_confirm confirm;
static struct ur_confirm_result result;

/* A node with three faults: the last one is a burst of errors at port 2. */
static struct node honest(void)
{
	return (struct node){
		.guid = GUID,
		.count = 3,
		.cause = UR_FAULT_ERROR_BURST | 2 << 8,
		.status = 1u << UR_FAULT_ERROR_BURST | 1u << UR_FAULT_LINK_DOWN,
		.time_ns = 5000,
		.value = 1000,
		.limit = 100,
		.state = UR_PORT_ACTIVE,
		.silent_from = UR_CONFIRM_QUESTIONS,
	};
}

static struct ur_fault burst(void)
{
	return (struct ur_fault){
		.severity = UR_SEVERITY_ERROR,
		.cause = UR_FAULT_ERROR_BURST,
		.port = 2,
		.sequence = 3,
		.time_ns = 5000,
		.value = 1000,
		.limit = 100,
		.node_guid = GUID,
	};
}

static struct ur_mgr_mad trap_of(const struct ur_fault *f)
{
	struct ur_notice head = {.type = 1, .producer = UR_VENDOR_OUI, .trap = UR_FAULT_NOTICE};
	struct ur_mgr_mad m = {0};

	m.bytes[3] = UR_MAD_METHOD_TRAP;
	ur_store64(m.bytes + 8, 77);
	ur_put_notice(m.bytes + UR_SMP_DATA, &head);
	ur_put_fault(m.bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, f);
	return m;
}

static bool add(const struct ur_fault *f)
{
	struct ur_mgr_mad m = trap_of(f);

	return ur_confirm_add(&confirm, &m);
}

static uint64_t value_of(const struct node *n, uint16_t address)
{
	uint8_t port;

	switch (ur_register_at(address, &port)) {
	case UR_NODE_FAULT_COUNT:
		return n->count;
	case UR_NODE_FAULT_CAUSE:
		return n->cause;
	case UR_NODE_FAULT_STATUS:
		return n->status;
	case UR_NODE_FAULT_TIME_NS:
		return n->time_ns;
	case UR_NODE_FAULT_VALUE:
		return n->value;
	case UR_NODE_FAULT_LIMIT:
		return n->limit;
	default:
		cr_assert(false, "register %#x is not asked for", address);
		return 0;
	}
}

/* The node's answer to a question, by the bytes of the request. */
static void answer(struct node *n, const struct ur_confirm_ask *ask)
{
	static const uint8_t path[UR_TOPO_PATH_MAX + 1] = {0, 1};
	struct ur_node_info info = {.node_guid = n->guid};
	struct ur_port_info port = {.state = n->state};
	struct ur_registers r;
	struct ur_mgr_mad m;
	uint8_t *data = m.bytes + UR_SMP_DATA;

	cr_assert_eq(ask->guid, GUID);
	ur_confirm_make(&confirm, ask, path, 1, &m);
	cr_assert_eq(m.bytes[3], UR_MAD_METHOD_GET);
	n->asked++;
	if ((int)ask->question >= n->silent_from) {
		ur_confirm_answer(&confirm, ask->entry, ask->question, NULL);
		return;
	}
	switch (ur_load16(m.bytes + 16)) {
	case UR_SMP_NODE_INFO:
		ur_put_node_info(data, &info);
		break;
	case UR_SMP_PORT_INFO:
		ur_put_port_info(data, &port);
		break;
	default:
		ur_get_registers(data, &r);
		r.value0 = value_of(n, r.address0);
		r.value1 = value_of(n, r.address1);
		ur_put_registers(data, &r);
	}
	if (n->refuses || (n->no_value && ask->question == UR_CONFIRM_VALUE))
		ur_store16(m.bytes + 4, UR_MAD_STATUS_VALUE);
	ur_confirm_answer(&confirm, ask->entry, ask->question, m.bytes);
}

static enum ur_confirm_verdict verdict(struct node *n)
{
	struct ur_confirm_ask ask;

	while (!ur_confirm_done(&confirm, &result)) {
		cr_assert(ur_confirm_next(&confirm, &ask), "nothing to ask, and no verdict");
		do
			answer(n, &ask);
		while (ur_confirm_next(&confirm, &ask));
	}
	return result.verdict;
}

/* What becomes of a report when the node is as it is. */
static enum ur_confirm_verdict of(const struct ur_fault *f, struct node n)
{
	enum ur_confirm_verdict v;

	ur_confirm_init(&confirm);
	cr_assert(add(f));
	v = verdict(&n);
	cr_assert_leq(n.asked, 3 * UR_CONFIRM_QUESTIONS);
	cr_assert_eq(confirm.confirmed + confirm.denied + confirm.silent, 1);
	cr_assert_not(ur_confirm_done(&confirm, &result));
	return v;
}

/* MGR-FAULT-01 */
Test(mgr_confirm, what_the_node_says_as_well_is_true)
{
	struct ur_fault f = burst();
	struct node n = honest();

	cr_assert_eq(of(&f, n), UR_CONFIRM_TRUE);
	cr_assert_eq(result.tid, 77);
	cr_assert_eq(result.report.value, 1000);
	cr_assert_eq(result.report.limit, 100);
	n.no_value = true;
	cr_assert_eq(of(&f, n), UR_CONFIRM_TRUE);
	cr_assert_eq(result.report.value, 0, "nobody has confirmed it");
}

/* MGR-FAULT-01: every field of a report, changed. */
Test(mgr_confirm, what_the_node_denies_is_none)
{
	struct ur_fault f[] = {burst(), burst(), burst(), burst(), burst(), burst(), burst()};
	unsigned i = 0;

	f[i].cause = UR_FAULT_LINK_DOWN;
	f[i++].severity = UR_SEVERITY_CRITICAL;
	f[i].cause = UR_FAULT_HOT;
	f[i++].severity = UR_SEVERITY_ERROR;
	f[i++].port = 1;
	f[i++].sequence = 4;
	f[i++].time_ns = 5001;
	f[i++].value = 1001;
	f[i++].limit = 99;
	for (i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		cr_assert_eq(of(&f[i], honest()), UR_CONFIRM_DENIED, "%u", i);
		cr_assert_eq(confirm.denied, 1);
	}
}

/* MGR-FAULT-01 */
Test(mgr_confirm, another_node_and_one_that_refuses_confirm_nothing)
{
	struct ur_fault f = burst();
	struct node n = honest();

	n.guid++;
	cr_assert_eq(of(&f, n), UR_CONFIRM_DENIED);
	n = honest();
	n.refuses = true;
	cr_assert_eq(of(&f, n), UR_CONFIRM_DENIED);
	for (int q = 0; q < UR_CONFIRM_PORT; q++) {
		n = honest();
		n.silent_from = q;
		cr_assert_eq(of(&f, n), UR_CONFIRM_SILENT, "%d", q);
		cr_assert_eq(confirm.silent, 1);
	}
}

/* MGR-FAULT-01: of an earlier fault the node has only the bit; port and time would be the sender's. */
Test(mgr_confirm, earlier_fault_is_denied_since_its_port_and_time_are_not_known)
{
	struct ur_fault f = {
		.severity = UR_SEVERITY_CRITICAL,
		.cause = UR_FAULT_LINK_DOWN,
		.port = 1,
		.sequence = 2,
		.time_ns = 4000,
		.node_guid = GUID,
	};

	cr_assert_eq(of(&f, honest()), UR_CONFIRM_DENIED);
	f.time_ns = 5000;
	cr_assert_eq(of(&f, honest()), UR_CONFIRM_DENIED);
	f = burst();
	f.sequence = 2;
	cr_assert_eq(of(&f, honest()), UR_CONFIRM_DENIED, "the last one, but for its number");
}

/* MGR-FAULT-01: PortInfo is the judge of a link. */
Test(mgr_confirm, link_must_be_as_the_report_says)
{
	struct ur_fault f = burst();
	struct node n = honest();

	f.cause = UR_FAULT_LINK_DOWN;
	f.severity = UR_SEVERITY_CRITICAL;
	n.cause = UR_FAULT_LINK_DOWN | 2 << 8;
	cr_assert_eq(of(&f, n), UR_CONFIRM_DENIED, "it is up");
	n.state = UR_PORT_DOWN;
	cr_assert_eq(of(&f, n), UR_CONFIRM_TRUE);
	f.cause = UR_FAULT_LINK_UP;
	f.severity = UR_SEVERITY_INFO;
	n.cause = UR_FAULT_LINK_UP | 2 << 8;
	n.status |= 1u << UR_FAULT_LINK_UP;
	cr_assert_eq(of(&f, n), UR_CONFIRM_DENIED, "it is down");
	n.state = UR_PORT_INIT;
	cr_assert_eq(of(&f, n), UR_CONFIRM_TRUE);
}

/* MGR-FAULT-01: an answer that is older than the fault denies nothing: the node is asked again. */
Test(mgr_confirm, change_between_two_answers_denies_nothing)
{
	struct ur_fault f = burst();
	struct node before = honest(), after = honest();
	struct ur_confirm_ask ask;

	ur_confirm_init(&confirm);
	cr_assert(add(&f));
	before.count = 2;
	before.cause = UR_FAULT_LINK_DOWN;
	while (ur_confirm_next(&confirm, &ask))
		answer(ask.question == UR_CONFIRM_LAST ? &before : &after, &ask);
	cr_assert_not(ur_confirm_done(&confirm, &result), "asked again");
	cr_assert_eq(verdict(&after), UR_CONFIRM_TRUE);
}

/* Questions that were cancelled are asked once more; late answers, and those to nothing, count for nothing. */
Test(mgr_confirm, cancelled_questions_are_asked_again)
{
	struct ur_fault f = burst();
	struct node n = honest();
	struct ur_confirm_ask ask;
	unsigned asked = 0;

	ur_confirm_init(&confirm);
	ur_confirm_answer(&confirm, 3, UR_CONFIRM_LAST, NULL);
	cr_assert(add(&f));
	while (ur_confirm_next(&confirm, &ask))
		asked++;
	cr_assert_eq(asked, 4, "no question about a port that the report is not about");
	ur_confirm_again(&confirm);
	ur_confirm_answer(&confirm, 0, UR_CONFIRM_LAST, NULL);
	cr_assert_not(ur_confirm_done(&confirm, &result));
	cr_assert_eq(verdict(&n), UR_CONFIRM_TRUE);
	ur_confirm_answer(&confirm, 0, UR_CONFIRM_LAST, NULL);
}

/* MGR-FAULT-02: room is bounded, for each node and for all; the rest is counted. */
Test(mgr_confirm, flood_is_bounded_and_counted)
{
	struct ur_fault f = burst();
	unsigned taken = 0;

	ur_confirm_init(&confirm);
	cr_assert(add(&f));
	cr_assert_not(add(&f), "the same waits");
	cr_assert_eq(confirm.dropped, 0);
	for (unsigned i = 1; i < 1000; i++) {
		f.sequence++;
		taken += add(&f);
	}
	cr_assert_eq(taken, UR_CONFIRM_NODE - 1);
	for (unsigned i = 0; i < 1000; i++) {
		f.node_guid++;
		taken += add(&f);
	}
	cr_assert_eq(taken, UR_CONFIRM_MAX - 1);
	cr_assert_eq(confirm.dropped, 1999 - taken);
}

/* MGR-FAULT-02: whatever the bytes. */
Test(mgr_confirm, hostile_traps_are_no_reports)
{
	struct ur_fault f = burst();
	struct ur_mgr_mad m = trap_of(&f);
	uint64_t rng = 1;

	ur_confirm_init(&confirm);
	for (unsigned i = 0; i < 200000; i++) {
		for (unsigned k = 0; k < 256; k += 8) {
			rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407;
			ur_store64(m.bytes + k, rng ^ rng >> 29);
		}
		m.bytes[3] = UR_MAD_METHOD_TRAP;
		cr_assert_not(ur_confirm_add(&confirm, &m), "%u", i);
	}
	m = trap_of(&f);
	m.bytes[3] = UR_MAD_METHOD_GET_RESP;
	cr_assert_not(ur_confirm_add(&confirm, &m));
	f.severity = UR_SEVERITY_CRITICAL;
	cr_assert_not(add(&f), "a severity that the cause has not");
	f = burst();
	f.cause = UR_FAULT_CNT;
	cr_assert_not(add(&f));
}
