/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lanes.h"
#include "manager/qos.h"
#include "names.h"
#include "output.h"

/* From targets of service levels to the tables of a port. */

static const char *const modes[] = {
	[UR_VL_IBA] = "iba", [UR_VL_MEASURED] = "measured", [UR_VL_STRICT] = "strict"};

/* ---- targets ---- */

/* "3=25" or "3=25,40": service level, percent, microseconds. */
static bool parse_target(const char *text, struct ur_qos_target *target)
{
	unsigned sl;
	double percent, us = 0;
	int len = 0, longer = 0;

	if (sscanf(text, "%2u=%lf%n,%lf%n", &sl, &percent, &len, &us, &longer) < 2 ||
	    text[longer ? longer : len] || sl > 15 || !(percent > 0 && percent <= 100) ||
	    !(us >= 0 && us < 1e7))
		return ctl_complain(
			"'%s' is not a target: SL=PERCENT or SL=PERCENT,MICROSECONDS, such as 3=25,40",
			text);
	*target = (struct ur_qos_target){.sl = (uint8_t)sl,
					 .share = (uint32_t)(percent * UR_QOS_ALL / 100 + 0.5),
					 .bound_ns = (uint64_t)(us * 1000)};
	return true;
}

static bool make_task(const struct ctl_options *o, struct ur_qos_task *t)
{
	*t = (struct ur_qos_task){
		.bps = (uint64_t)(o->rate_gbps * 1e9),
		.tolerance = (uint32_t)(o->tolerance * UR_QOS_ALL / 100),
		.cnt = (uint8_t)(o->words_cnt - 1),
	};
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(o->mode, modes[i]))
			t->mode = (enum ur_vl_mode)i;
	while (1u << t->mtu_shift < o->mtu)
		t->mtu_shift++;
	if (o->words_cnt - 1 > UR_VL_CNT)
		return ctl_complain("there are 1 to %d targets", UR_VL_CNT);
	for (unsigned i = 0; i < t->cnt; i++)
		if (!parse_target(o->words[1 + i], &t->target[i]))
			return false;
	if (1u << t->mtu_shift != o->mtu)
		return ctl_complain("--mtu: %llu is none of 256, 512, 1024, 2048, 4096",
				    (unsigned long long)o->mtu);
	if (!ur_qos_check(t))
		return true;
	return ctl_complain("%s%s", ur_qos_check(t),
			    t->bps ? "" : "; the port's rate is given with --rate");
}

/* ---- what comes out ---- */

static void print_tables(const struct ur_qos_solution *s, const char *mode)
{
	char high[CTL_LANES_TABLE_BYTES], low[CTL_LANES_TABLE_BYTES];
	char sl2vl[CTL_LANES_SL2VL_BYTES];

	ctl_lanes_texts(&s->vl, high, low, sl2vl);
	printf("mode=%s\nhigh=%s\nlow=%s\nlimit=%u\nsl2vl=%s\n", mode, high, low, s->vl.high_limit,
	       sl2vl);
}

static json_t *print_lane(const struct ctl_options *o, const struct ur_qos_task *t,
			  const struct ur_qos_solution *s, unsigned lane)
{
	const struct ur_qos_target *target = lane < t->cnt ? &t->target[lane] : NULL;
	const struct ur_qos_got *g = &s->got[lane];
	json_t *j = json_pack("{s:i,s:s,s:f}", "lane", (int)lane, "table", g->high ? "high" : "low",
			      "percent", g->share * 100.0 / UR_QOS_ALL);
	char name[24] = "others";

	if (target) {
		snprintf(name, sizeof(name), "SL %u", target->sl);
		json_object_set_new(j, "sl", json_integer(target->sl));
		json_object_set_new(j, "target_percent",
				    json_real(target->share * 100.0 / UR_QOS_ALL));
	}
	if (g->wait_ns)
		json_object_set_new(j, "wait_us", json_real((double)g->wait_ns / 1000));
	if (!ctl_prints_text(o))
		return j;
	printf("%-6s  lane %2u, %-4s  %6.2f %%", name, lane, g->high ? "high" : "low",
	       g->share * 100.0 / UR_QOS_ALL);
	if (target)
		printf(" (target %.2f)", target->share * 100.0 / UR_QOS_ALL);
	if (g->wait_ns)
		printf("  waits at most %.2f us", (double)g->wait_ns / 1000);
	if (target && target->bound_ns)
		printf(" (target %.2f)", (double)target->bound_ns / 1000);
	putchar('\n');
	return j;
}

static bool solve(const struct ctl_options *o)
{
	char high[CTL_LANES_TABLE_BYTES], low[CTL_LANES_TABLE_BYTES];
	char sl2vl[CTL_LANES_SL2VL_BYTES];
	json_t *lanes;
	struct ur_qos_solution s;
	struct ur_qos_task t;
	bool ok;

	if (!make_task(o, &t))
		return false;
	lanes = json_array();
	ok = ur_qos_solve(&t, &s);
	if (ok && ctl_prints_text(o))
		print_tables(&s, o->mode);
	if (!ok && ctl_prints_text(o))
		puts("the nearest:");
	for (unsigned i = 0; i < s.lanes; i++)
		json_array_append_new(lanes, print_lane(o, &t, &s, i));
	ctl_lanes_texts(&s.vl, high, low, sl2vl);
	if (!ctl_json_write(o, json_pack("{s:b,s:s,s:i,s:s,s:s,s:i,s:s,s:o}", "solved", ok, "mode",
					 o->mode, "mtu", (int)o->mtu, "high", high, "low", low,
					 "limit", (int)s.vl.high_limit, "sl2vl", sl2vl, "lanes",
					 lanes)))
		return false;
	if (!ok && s.failed >= 0 && s.failed < t.cnt)
		return ctl_complain(
			"no tables do that in mode %s: service level %u would wait %.2f us, not %.2f",
			o->mode, t.target[s.failed].sl, (double)s.got[s.failed].wait_ns / 1000,
			(double)t.target[s.failed].bound_ns / 1000);
	return ok ||
	       ctl_complain("no tables give these shares within %g %%; give more with --tolerance",
			    o->tolerance);
}

/* ---- onto a port ---- */

static bool read_solution(const char *file, struct ur_vl_attr *vl, const char **mode, json_t **root)
{
	const char *high, *low, *sl2vl;
	json_error_t error;
	int limit, solved;

	*root = json_load_file(file, 0, &error);
	if (!*root)
		return ctl_complain("%s, line %d: %s", file, error.line, error.text);
	if (json_unpack(*root, "{s:b,s:s,s:s,s:s,s:i,s:s}", "solved", &solved, "mode", mode, "high",
			&high, "low", &low, "limit", &limit, "sl2vl", &sl2vl) ||
	    limit < 0 || limit > UINT8_MAX)
		return ctl_complain("%s is not what 'qos solve --json' writes", file);
	if (!solved)
		return ctl_complain("%s is no solution, but what is the nearest to one", file);
	vl->high_limit = (uint8_t)limit;
	return ctl_lanes_parse_table(high, vl->high, &vl->high_cnt) &&
	       ctl_lanes_parse_table(low, vl->low, &vl->low_cnt) &&
	       ctl_lanes_parse_sl2vl(sl2vl, vl->sl2vl);
}

static bool apply(struct ctl_session *s)
{
	const struct ctl_options *o = s->o;
	json_t *root = NULL;
	struct ur_vl_attr vl;
	const char *mode;
	uint32_t node;
	uint8_t port;
	bool ok;

	ok = ctl_lanes_of_words(s, &node, &port, &vl) &&
	     read_solution(o->words[3], &vl, &mode, &root) && ctl_lanes_write(s, node, port, &vl);
	if (ok && ctl_prints_text(o))
		printf("the port has the tables; its configuration must say vl_mode = %s, which cannot be read\n",
		       mode);
	if (ok)
		ok = ctl_json_write(o, json_pack("{s:b,s:s}", "applied", true, "mode", mode));
	json_decref(root);
	return ok;
}

bool ctl_cmd_qos(struct ctl_session *s)
{
	return strcmp(s->o->words[0], "solve") ? apply(s) : solve(s->o);
}
