/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Double quotes are escaped in label values, but not in HELP lines. */
static void write_escaped(FILE *out, const char *text, bool label)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\')
			fputs("\\\\", out);
		else if (*text == '"' && label)
			fputs("\\\"", out);
		else
			putc(*text, out);
	}
}

static void write_head(FILE *out, const char *family, const struct uroce_metric *m)
{
	fprintf(out, "# HELP %s ", family);
	write_escaped(out, m->help, false);
	fprintf(out, "\n# TYPE %s %s\n", family,
		m->type == UROCE_METRIC_COUNTER ? "counter" : "gauge");
}

int ur_exposition_write(void *exposition, const struct uroce_metric *metric)
{
	struct ur_exposition *x = exposition;
	char family[UR_EXPOSITION_NAME];

	snprintf(family, sizeof(family), "uroce_%s%s", metric->name,
		 metric->type == UROCE_METRIC_COUNTER ? "_total" : "");
	if (strcmp(family, x->family) != 0) {
		write_head(x->out, family, metric);
		memcpy(x->family, family, sizeof(family));
	}
	fputs(family, x->out);
	for (size_t i = 0; i < metric->label_cnt; i++) {
		fprintf(x->out, "%c%s=\"", i ? ',' : '{', metric->labels[i].name);
		write_escaped(x->out, metric->labels[i].value, true);
		putc('"', x->out);
	}
	fprintf(x->out, "%s %" PRIu64 "\n", metric->label_cnt ? "}" : "", metric->value);
	return ferror(x->out) ? EIO : 0;
}
