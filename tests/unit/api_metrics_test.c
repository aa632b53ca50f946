/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <ctype.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_eal.h>

#include "cm/cm.h"
#include "edge/impair.h"
#include "edge/neigh.h"
#include "dpdk/port.h"
#include "dpdk/worker.h"

/*
 * Every counter of a list is visible everywhere: in the struct, in JSON, by telemetry, in the walk
 * over all metrics, and on the Prometheus page.
 */

static json_t *json;
static char *page;

static void take_page(struct ibv_context *const *ctx, size_t cnt)
{
	size_t bytes;
	FILE *out = open_memstream(&page, &bytes);

	cr_assert_not_null(out);
	cr_assert_eq(uroce_write_metrics(ctx, cnt, out), 0);
	cr_assert_eq(fclose(out), 0);
}

/* Two ends that have exchanged one message. The tests look at A. */
static void open_and_send(void)
{
	static const char *const set[] = {"impair.rx_delay_us=1", NULL};
	struct ibv_qp *a, *b;
	char *text;

	open_side(A, set);
	open_side(B, NULL);
	a = make_qp(A, IBV_QPT_RC);
	b = make_qp(B, IBV_QPT_RC);
	join(a, b, (struct join){0});
	post_recv(B, b, 1, 0, 64);
	post(A, a, 2, IBV_WR_SEND, 0, 64);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	expect_wc(B, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	progress_for(5);
	text = uroce_counters_json(A->ctx);
	json = json_loads(text, 0, NULL);
	cr_assert_not_null(json);
	free(text);
	take_page(&A->ctx, 1);
}

static void close_and_free(void)
{
	json_decref(json);
	free(page);
	close_both();
}

#define METRICS_TEST(name) PAIR_TEST(api_metrics, name, open_and_send, close_and_free)

/* ---- readers ---- */

static const char *lower(const char *name)
{
	static char out[48];

	snprintf(out, sizeof(out), "%s", name);
	for (char *c = out; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return out;
}

/* The number `name` in section of the JSON; `part` is a dictionary in it, or NULL. */
static uint64_t of_json(const char *section, const char *part, const char *name)
{
	const json_t *o = json_object_get(json, section);

	if (part)
		o = json_object_get(o, part);
	o = json_object_get(o, lower(name));
	cr_assert(json_is_integer(o), "no %s in %s of the JSON", name, section);
	return (uint64_t)json_integer_value(o);
}

static json_t *of_telemetry(const char *section)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	static char text[65536];
	json_t *answer, *one;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ssize_t n;

	cr_assert_geq(fd, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/dpdk_telemetry.v2",
		 rte_eal_get_runtime_dir());
	cr_assert_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0, "%s", un.sun_path);
	cr_assert_gt(read(fd, text, sizeof(text)), 0);
	snprintf(text, sizeof(text), "/uroce/%s", section);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	n = read(fd, text, sizeof(text) - 1);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	close(fd);
	answer = json_loads(text, 0, NULL);
	cr_assert_not_null(answer, "%s: %s", section, text);
	snprintf(text, sizeof(text), "/uroce/%s", section);
	one = json_incref(json_object_get(answer, text));
	json_decref(answer);
	return one;
}

/* The number after "uroce_NAME{...,LABEL}". If LABEL is "", only with the label of the port. */
static uint64_t of_page(const char *name, const char *label)
{
	char start[128], end[128];

	snprintf(start, sizeof(start), "\nuroce_%s{port=\"", lower(name));
	snprintf(end, sizeof(end), "\"%s%s} ", *label ? "," : "", label);
	for (const char *at = strstr(page, start); at; at = strstr(at + 1, start)) {
		const char *eol = strchr(at + 1, '\n'), *brace = strstr(at, "} ");

		if (brace && brace < eol && (size_t)(brace - at) > strlen(end) &&
		    !strncmp(brace + 2 - strlen(end), end, strlen(end)))
			return strtoull(brace + 2, NULL, 10);
	}
	cr_assert_fail("no uroce_%s{%s} on the page", name, label);
	return 0;
}

static unsigned count_in_page(const char *needle)
{
	unsigned n = 0;

	for (const char *at = strstr(page, needle); at; at = strstr(at + 1, needle))
		n++;
	return n;
}

/* The metric that a walk over all metrics looks for, and its value. */
struct wanted {
	const char *name, *unit, *help;
	enum uroce_metric_type type;
	unsigned found;
};

static int visit(void *arg, const struct uroce_metric *metric)
{
	struct wanted *w = arg;

	cr_expect_gt(metric->label_cnt, 0);
	cr_expect_str_eq(metric->labels[0].name, "port");
	if (strcmp(metric->name, lower(w->name)) != 0)
		return 0;
	w->found++;
	cr_expect_str_eq(metric->unit, w->unit);
	cr_expect_str_eq(metric->help, w->help);
	cr_expect_eq(metric->type, w->type);
	return 0;
}

static void expect_walk(const char *name, const char *unit, const char *help,
			enum uroce_metric_type type)
{
	struct wanted w = {name, unit, help, type, 0};

	cr_assert_eq(uroce_visit_metrics(A->ctx, visit, &w), 0);
	cr_expect_gt(w.found, 0, "no metric %s", name);
}

/* ---- lists ---- */

METRICS_TEST(every_counter_of_the_transport)
{
	json_t *workers = of_telemetry("workers"), *one = json_object_get(workers, "worker0");
	struct uroce_counters c;

	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	cr_assert_geq(c.tx_packets, 1);
#define X(name, unit, help)                                                                        \
	cr_expect_eq(of_json("workers", "worker0", #name), c.name, #name);                         \
	cr_expect_eq((uint64_t)json_integer_value(json_object_get(one, #name)), c.name, #name);    \
	cr_expect_eq(of_page(#name "_total", "worker=\"0\""), c.name, #name);                      \
	expect_walk(#name, unit, help, UROCE_METRIC_COUNTER);
	UROCE_TRANSPORT_COUNTERS(X)
#undef X
	json_decref(workers);
}

METRICS_TEST(every_counter_of_the_worker)
{
	json_t *workers = of_telemetry("workers"), *one = json_object_get(workers, "worker0");

#define X(name, type, unit, help)                                                                  \
	of_json("workers", "worker0", #name);                                                      \
	cr_expect(json_is_integer(json_object_get(one, #name)), #name);                            \
	of_page(UROCE_METRIC_##type == UROCE_METRIC_GAUGE ? #name : #name "_total",                \
		"worker=\"0\"");                                                                   \
	expect_walk(#name, unit, help, UROCE_METRIC_##type);
	UR_WORKER_COUNTERS(X)
#undef X
	json_decref(workers);
}

METRICS_TEST(every_reason_for_a_drop)
{
	uint64_t sum = 0;
	struct uroce_counters c;

#define X(NAME, help)                                                                              \
	if (UR_DROP_##NAME != UR_DROP_NONE) {                                                      \
		char label[80];                                                                    \
                                                                                                   \
		snprintf(label, sizeof(label), "worker=\"0\",reason=\"%s\"",                       \
			 ur_drop_name(UR_DROP_##NAME));                                            \
		cr_expect_eq(of_page("dropped_packets_total", label),                              \
			     of_json("drops", NULL, #NAME));                                       \
		sum += of_json("drops", NULL, #NAME);                                              \
	}
	UR_DROP_REASONS(X)
#undef X
	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	cr_expect_eq(c.dropped_packets, sum);
	cr_expect_eq(count_in_page("reason=\"none\""), 0, "an accepted packet is not dropped");
}

METRICS_TEST(every_counter_of_port_cm_and_neighbours)
{
#define X(name, unit, help)                                                                        \
	of_json("port", NULL, #name);                                                              \
	of_page("port_" #name "_total", "");                                                       \
	expect_walk("port_" #name, unit, help, UROCE_METRIC_COUNTER);
	UR_PORT_COUNTERS(X)
#undef X
#define X(name, unit, help)                                                                        \
	of_json("cm", NULL, #name);                                                                \
	of_page("cm_" #name "_total", "");                                                         \
	expect_walk("cm_" #name, unit, help, UROCE_METRIC_COUNTER);
	UR_CM_COUNTERS(X)
#undef X
#define X(name, unit, help)                                                                        \
	of_json("neigh", NULL, #name);                                                             \
	of_page("neigh_" #name "_total", "");                                                      \
	expect_walk("neigh_" #name, unit, help, UROCE_METRIC_COUNTER);
	UR_NEIGH_COUNTERS(X)
#undef X
#define X(NAME, help)                                                                              \
	do {                                                                                       \
		char label[80];                                                                    \
                                                                                                   \
		snprintf(label, sizeof(label), "verdict=\"%s\"", lower(#NAME));                    \
		cr_expect_eq(of_page("neigh_frames_total", label), of_json("neigh", NULL, #NAME)); \
	} while (0);
	UR_NEIGH_VERDICTS(X)
#undef X
}

METRICS_TEST(every_counter_of_impairment)
{
#define X(NAME, type, unit, help)                                                                  \
	cr_expect_eq(of_page(UROCE_METRIC_##type == UROCE_METRIC_GAUGE ? "impair_" #NAME           \
								       : "impair_" #NAME "_total", \
			     "worker=\"0\",direction=\"rx\""),                                     \
		     of_json("impair", "rx0", #NAME));                                             \
	expect_walk("impair_" #NAME, unit, help, UROCE_METRIC_##type);
	UR_IMPAIR_COUNTERS(X)
#undef X
	cr_expect_gt(of_page("impair_packets_total", "worker=\"0\",direction=\"rx\""), 0);
}

METRICS_TEST(every_number_of_lanes_pacing_objects_and_modes)
{
#define X(name, type, unit, help)                                                                  \
	cr_expect_eq(of_page(UROCE_METRIC_##type == UROCE_METRIC_GAUGE ? "lane_" #name             \
								       : "lane_" #name "_total",   \
			     "lane=\"14\""),                                                       \
		     of_json("lanes", "vl14", #name));                                             \
	expect_walk("lane_" #name, unit, help, UROCE_METRIC_##type);
	UROCE_LANE(X)
#undef X
#define X(name, type, unit, help) expect_walk("pacing_" #name, unit, help, UROCE_METRIC_##type);
	UROCE_PACING(X)
#undef X
#define X(name, unit, help)                                                                        \
	cr_expect_eq(of_page("objects", "type=\"" #name "\""), of_json("objects", NULL, #name));
	UROCE_OBJECTS(X)
#undef X
#define X(NAME, word, sentence)                                                                    \
	if (UROCE_MODE_REASON_##NAME != UROCE_MODE_REASON_OPEN)                                    \
		cr_expect_eq(of_page("qp_modes_total", "reason=\"" word "\""),                     \
			     of_json("modes", NULL, word));
	UROCE_QP_MODE_REASONS(X)
#undef X
	cr_expect_eq(of_page("objects", "type=\"cqs\""), 1);
}

/* ---- the page ---- */

/* A family of two endpoints has one header, followed by all of its metrics. */
METRICS_TEST(two_endpoints_on_one_page)
{
	struct ibv_context *both[] = {A->ctx, B->ctx};
	const char *first, *second, *head;

	free(page);
	take_page(both, 2);
	cr_expect_eq(count_in_page("# TYPE uroce_rx_packets_total "), 1);
	cr_expect_eq(count_in_page("\nuroce_rx_packets_total{"), 2);
	first = strstr(page, "\nuroce_rx_packets_total{");
	second = strstr(first + 1, "\nuroce_rx_packets_total{");
	head = strchr(first + 1, '#');
	cr_expect_lt(second, head);
	cr_expect_neq(strncmp(first, second, (size_t)(strchr(first + 1, ',') - first)), 0,
		      "both have one port's name");
}

static int stop_at_third(void *arg, const struct uroce_metric *metric)
{
	return ++*(int *)arg == 3 ? 42 : 0;
}

METRICS_TEST(a_visit_ends_the_walk)
{
	int cnt = 0;

	cr_expect_eq(uroce_visit_metrics(A->ctx, stop_at_third, &cnt), 42);
	cr_expect_eq(cnt, 3);
}

/* ---- the struct ---- */

/* The struct of a program may be shorter or longer than that of the library. */
METRICS_TEST(the_struct_may_have_another_length)
{
	struct {
		struct uroce_counters known;
		uint64_t more[2];
	} c;
	struct uroce_counters whole;

	memset(&c, 0xff, sizeof(c));
	cr_assert_eq(uroce_query_counters(A->ctx, &whole), 0);
	cr_assert_eq(uroce_query_counters_sized(A->ctx, &c.known, 8 * 7), 0);
	cr_expect_eq(memcmp(&c, &whole, 8 * 7), 0);
	cr_expect_eq(((uint64_t *)&c)[7], UINT64_MAX, "it wrote beyond what is known");
	cr_assert_eq(uroce_query_counters_sized(A->ctx, &c.known, sizeof(c)), 0);
	cr_expect_eq(memcmp(&c.known, &whole, sizeof(whole)), 0);
	cr_expect_eq(c.more[0], 0);
	cr_expect_eq(c.more[1], 0);
	cr_expect_eq(uroce_query_counters_sized(A->ctx, &c.known, 12), EINVAL);
}
