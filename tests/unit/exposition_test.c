/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/exposition.h"

/* Prometheus' text format 0.0.4, byte for byte. */

static char *text;
static size_t bytes;
static struct ur_exposition x;

static void start(void)
{
	x = (struct ur_exposition){.out = open_memstream(&text, &bytes)};
	cr_assert_not_null(x.out);
}

static void expect(const char *want)
{
	cr_assert_eq(fclose(x.out), 0);
	cr_expect_str_eq(text, want);
	free(text);
}

static int put(const char *name, enum uroce_metric_type type, const char *help,
	       const struct uroce_metric_label *labels, size_t label_cnt, uint64_t value)
{
	struct uroce_metric m = {.name = name,
				 .unit = "packets",
				 .help = help,
				 .type = type,
				 .labels = labels,
				 .label_cnt = label_cnt,
				 .value = value};

	return ur_exposition_write(&x, &m);
}

Test(exposition, a_counter_ends_in_total_and_a_gauge_does_not)
{
	start();
	cr_expect_eq(put("rx_packets", UROCE_METRIC_COUNTER, "packets received", NULL, 0, 7), 0);
	cr_expect_eq(put("lane_ready", UROCE_METRIC_GAUGE, "queues", NULL, 0, 0), 0);
	expect("# HELP uroce_rx_packets_total packets received\n"
	       "# TYPE uroce_rx_packets_total counter\n"
	       "uroce_rx_packets_total 7\n"
	       "# HELP uroce_lane_ready queues\n"
	       "# TYPE uroce_lane_ready gauge\n"
	       "uroce_lane_ready 0\n");
}

Test(exposition, a_family_has_one_head)
{
	const struct uroce_metric_label first[] = {{"port", "a"}, {"worker", "0"}};
	const struct uroce_metric_label second[] = {{"port", "a"}, {"worker", "1"}};

	start();
	put("rto", UROCE_METRIC_COUNTER, "timeouts", first, 2, 1);
	put("rto", UROCE_METRIC_COUNTER, "timeouts", second, 2, UINT64_MAX);
	expect("# HELP uroce_rto_total timeouts\n"
	       "# TYPE uroce_rto_total counter\n"
	       "uroce_rto_total{port=\"a\",worker=\"0\"} 1\n"
	       "uroce_rto_total{port=\"a\",worker=\"1\"} 18446744073709551615\n");
}

Test(exposition, a_name_that_begins_like_the_last_is_another_family)
{
	start();
	put("rx", UROCE_METRIC_GAUGE, "a", NULL, 0, 1);
	put("rx_total", UROCE_METRIC_GAUGE, "b", NULL, 0, 2);
	put("rx", UROCE_METRIC_COUNTER, "c", NULL, 0, 3);
	expect("# HELP uroce_rx a\n# TYPE uroce_rx gauge\nuroce_rx 1\n"
	       "# HELP uroce_rx_total b\n# TYPE uroce_rx_total gauge\nuroce_rx_total 2\n"
	       "uroce_rx_total 3\n");
}

Test(exposition, backslash_newline_and_quote_are_escaped)
{
	const struct uroce_metric_label label = {"port", "a\\b\n\"c\" \xc3\xa4"};

	start();
	put("rto", UROCE_METRIC_COUNTER, "a\\b\n\"c\" \xc3\xa4", &label, 1, 1);
	expect("# HELP uroce_rto_total a\\\\b\\n\"c\" \xc3\xa4\n"
	       "# TYPE uroce_rto_total counter\n"
	       "uroce_rto_total{port=\"a\\\\b\\n\\\"c\\\" \xc3\xa4\"} 1\n");
}

Test(exposition, a_file_that_cannot_be_written_is_an_error)
{
	x = (struct ur_exposition){.out = fopen("/dev/full", "w")};
	cr_assert_not_null(x.out);
	setvbuf(x.out, NULL, _IONBF, 0);
	cr_expect_eq(put("rto", UROCE_METRIC_COUNTER, "timeouts", NULL, 0, 1), EIO);
	fclose(x.out);
}
