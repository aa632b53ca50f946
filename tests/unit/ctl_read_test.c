/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce-ctl among agents that are older than it: of a fabric in this process, the switch in the middle lacks registers that
 * later versions have, and refuses a request that names one of them.
 */
#include "ctl_place.h"
#include "fabric/shape.h"
#include "mgmt/registers.h"
#include "registers.h"
#include "scan.h"

#define PASSES	    3
#define LONG_PASSES 66 /* of long_loop */
#define PASS_NS	    100000000
#define GROWTH	    5 /* of SYMBOL_ERRORS at one port, with each pass */
#define DAMAGED	    1 /* its port */

static const enum ur_register_id newer[] = {UR_PORT_SYMBOL_ERRORS, UR_PORT_INTEGRITY,
					    UR_PORT_EXCESSIVE_OVERRUNS, UR_PORT_FLOW_CONTROL,
					    UR_PORT_LINK_RECOVERED};
#define NEWER (sizeof(newer) / sizeof(newer[0]))

static uint32_t old, young; /* two switches */
static uint64_t errors;	    /* SYMBOL_ERRORS of `young` */
static unsigned refusals;
static enum {
	STAYS_OLD,
	REPLACED,  /* by a newer agent, after the first pass */
	RESTARTED, /* the same, and the node has no values in the second pass */
	SWAPPED,   /* in the first pass another node is at its place, which has one port */
} story;
static uint64_t began_ns; /* half an interval before the first pass; 0: it has not begun */

/* ---- agents ---- */

static bool is_newer(uint16_t address)
{
	uint8_t port;
	enum ur_register_id id = ur_register_at(address, &port);

	for (unsigned i = 0; i < NEWER; i++)
		if (newer[i] == id)
			return true;
	return false;
}

/* From 0. */
static uint64_t pass_now(void)
{
	uint64_t now = ur_fabric_now(fabric);

	began_ns = began_ns ? began_ns : now - PASS_NS / 2;
	return (now - began_ns) / PASS_NS;
}

static bool lacks(uint16_t address)
{
	uint8_t port;

	if (story == SWAPPED)
		return !pass_now() && ur_register_at(address, &port) != UR_REGISTER_CNT && port > 1;
	return (story == STAYS_OLD || !pass_now()) && is_newer(address);
}

static void tamper(void *ctx, uint32_t node, uint8_t mad[UR_MAD_BYTES])
{
	struct ur_registers r;

	(void)ctx;
	if (ur_load16(mad + 16) != UR_SMP_REGISTERS || (node != old && node != young))
		return;
	ur_get_registers(mad + UR_SMP_DATA, &r);
	for (unsigned i = 0; i < r.count; i++) {
		uint16_t address = i ? r.address1 : r.address0;

		if (node == young && address == ur_register_address(UR_PORT_SYMBOL_ERRORS, DAMAGED))
			*(i ? &r.value1 : &r.value0) = errors += GROWTH;
		if (node == old && story == RESTARTED && pass_now() == 1) {
			ur_store16(mad + 4, UR_SMP_DIRECTION | UR_MAD_STATUS_METHOD);
			break;
		}
		if (node == young || !lacks(address))
			continue;
		refusals++;
		r.error = UR_VENDOR_ERROR_ADDRESS;
		r.entry = (uint8_t)i;
		r.value0 = r.value1 = 0;
		ur_store16(mad + 4, UR_SMP_DIRECTION | UR_MAD_STATUS_VALUE);
		break;
	}
	ur_put_registers(mad + UR_SMP_DATA, &r);
}

static void make_fabric(void)
{
	struct ur_fabric_attr attr = {.hop_ns = UR_FABRIC_PAPER_HOP_NS,
				      .process_ns = UR_FABRIC_PAPER_PROCESS_NS,
				      .seed = 1};
	char err[256];
	unsigned switches = 0;

	place_make_file();
	fabric = ur_fabric_of_shape("line:3", &attr, err, sizeof(err));
	cr_assert_not_null(fabric, "%s", err);
	for (uint32_t i = 0; i < ur_fabric_nodes(fabric); i++)
		if (ur_fabric_node(fabric, i)->is_switch)
			*(++switches == 2 ? &old : &young) = i;
	ur_fabric_set_tamper(fabric, tamper, NULL);
	place_start();
}

static void remove_file(void)
{
	unlink(file);
}

TestSuite(ctl_read, .init = make_fabric, .fini = remove_file);

/* ---- what a command writes: a line for each pass ---- */

static json_t *read_pass(FILE *f)
{
	json_error_t error;
	json_t *root = json_loadf(f, JSON_DISABLE_EOF_CHECK, &error);

	cr_assert_not_null(root, "%s", error.text);
	return root;
}

static bool is_of(const json_t *o, uint32_t node)
{
	char guid[32];

	snprintf(guid, sizeof(guid), "%#llx",
		 (unsigned long long)ur_fabric_node(fabric, node)->guid);
	return !strcmp(json_string_value(json_object_get(o, "guid")), guid);
}

/* How many registers of the node have a value, and how many are said to have none. */
static void count_values(json_t *list, uint32_t node, unsigned *known, unsigned *unknown)
{
	size_t i;
	json_t *o;

	*known = *unknown = 0;
	json_array_foreach(list, i, o)
	{
		if (!is_of(o, node))
			continue;
		*(json_object_get(o, "value") ? known : unknown) += 1;
	}
}

static bool counters_loop(struct ctl_session *s)
{
	bool ok = ctl_cmd_monitor(s);
	FILE *f = fopen(file, "r");
	unsigned known, unknown, all;

	cr_assert_not_null(f);
	for (unsigned i = 0; i < PASSES; i++) {
		json_t *root = read_pass(f), *list = json_object_get(root, "values");

		count_values(list, young, &all, &unknown);
		cr_expect(all && !unknown, "pass %u: %u, %u", i, all, unknown);
		count_values(list, old, &known, &unknown);
		cr_expect_eq(unknown, 0, "pass %u: the old agent is said to be silent", i);
		cr_expect_eq(known, all - NEWER * ur_fabric_node(fabric, old)->ports,
			     "pass %u: %u of %u registers", i, known, all);
		json_decref(root);
	}
	fclose(f);
	/* Once for each register: a refusal is remembered. */
	cr_expect_eq(refusals, NEWER * ur_fabric_node(fabric, old)->ports, "%u refusals", refusals);
	return ok;
}

/* MGR-READ-01 */
Test(ctl_read, an_older_agent_is_asked_for_what_it_has)
{
	const char *words[] = {"monitor", "loop",	"--count", "3", "--tiers",
			       "3",	  "--interval", "0.001",   NULL};

	cr_assert(place_run(counters_loop, words));
}

/* Of each pass: the registers of `old` that are known, and those of `young`, which lacks none. */
static unsigned read_known(FILE *f, unsigned *all)
{
	json_t *root = read_pass(f), *list = json_object_get(root, "values");
	unsigned known, unknown;

	count_values(list, young, all, &unknown);
	count_values(list, old, &known, &unknown);
	json_decref(root);
	return known;
}

static bool newer_agent(struct ctl_session *s)
{
	bool ok = ctl_cmd_monitor(s);
	unsigned known, all,
		from = story == REPLACED    ? CTL_SCAN_ASK_AGAIN
		       : story == RESTARTED ? 2
					    : 1;
	FILE *f = fopen(file, "r");

	cr_assert_not_null(f);
	for (unsigned i = 0; i < LONG_PASSES; i++) {
		known = read_known(f, &all);
		if (i >= from)
			cr_expect_eq(known, all, "pass %u: %u of %u", i, known, all);
		else
			cr_expect_lt(known, all, "pass %u", i);
	}
	fclose(f);
	return ok;
}

static const char *const long_loop[] = {"monitor", "loop",	 "--count", "66", "--tiers",
					"3",	   "--interval", "0.1",	    NULL};

/* MGR-READ-01 */
Test(ctl_read, an_agent_that_was_replaced_is_asked_again_after_a_while)
{
	story = REPLACED;
	cr_assert(place_run(newer_agent, long_loop));
}

/* MGR-READ-01 */
Test(ctl_read, an_agent_that_had_no_values_is_asked_again_at_once)
{
	story = RESTARTED;
	cr_assert(place_run(newer_agent, long_loop));
}

static bool swapped(struct ctl_session *s)
{
	bool ok = ctl_cmd_monitor(s);
	FILE *f = fopen(file, "r");
	unsigned first, second, all;

	cr_assert_not_null(f);
	first = read_known(f, &all);
	second = read_known(f, &all);
	cr_expect_geq(second, first + ur_fabric_node(fabric, old)->ports - 1, "%u, then %u", first,
		      second);
	fclose(f);
	return ok;
}

/* MGR-READ-01 */
Test(ctl_read, the_state_of_a_port_is_asked_for_in_each_pass)
{
	story = SWAPPED;
	cr_assert(place_run(swapped, long_loop));
}

static bool one_pair(struct ctl_session *s)
{
	(void)ctl_cmd_reg(s);
	return true;
}

/* MGR-READ-01 */
Test(ctl_read, a_register_is_read_beside_one_that_is_missing)
{
	const char *words[] = {"reg", "read", NULL, "symbol_errors:1", "rx_errors:1", NULL};
	json_error_t error;
	json_t *root;

	words[2] = ur_fabric_node(fabric, old)->name;
	cr_assert(freopen("/dev/null", "w", stderr));
	cr_assert(place_run(one_pair, words));
	root = json_load_file(file, 0, &error);
	cr_assert_not_null(root, "%s", error.text);
	cr_expect(json_object_get(root, "rx_errors:1"));
	cr_expect_null(json_object_get(root, "symbol_errors:1"));
	json_decref(root);
}

static bool errors_of_top(struct ctl_session *s)
{
	bool ok = ctl_cmd_top(s);
	FILE *f = fopen(file, "r");

	cr_assert_not_null(f);
	for (unsigned i = 0; i < PASSES; i++) {
		json_t *root = read_pass(f), *o;
		unsigned seen = 0;
		size_t k;

		cr_expect_eq(json_integer_value(json_object_get(root, "silent_nodes")), 0);
		json_array_foreach(json_object_get(root, "ports"), k, o)
		{
			json_int_t value = json_integer_value(json_object_get(o, "errors"));
			bool damaged = is_of(o, young) &&
				       json_integer_value(json_object_get(o, "port")) == DAMAGED;

			seen += damaged;
			cr_expect_eq(value, damaged ? i * GROWTH : 0, "pass %u: %lld", i,
				     (long long)value);
			cr_expect_str_neq(json_string_value(json_object_get(o, "state")), "silent");
		}
		cr_expect_eq(seen, 1);
		json_decref(root);
	}
	fclose(f);
	return ok;
}

/* What the device found to be damaged is an error as well, at agents that count it. */
Test(ctl_read, top_counts_damaged_packets_as_errors)
{
	const char *words[] = {"top", "--count", "3", "--interval", "0.001", NULL};

	cr_assert(place_run(errors_of_top, words));
}
