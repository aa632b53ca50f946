/* SPDX-License-Identifier: BSD-3-Clause */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

void common_options_init(struct common_options *o)
{
	*o = (struct common_options){.interval_s = 1};
}

bool common_real(const char *text, double lo, double hi, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return *text && !*end && *out >= lo && *out <= hi;
}

static bool interval(struct common_options *o, const char *text, char *err, size_t cap)
{
	if (common_real(text, 0.01, 86400, &o->interval_s))
		return true;
	snprintf(err, cap, "--interval: \"%s\" is not a time; allowed: seconds from 0.01 to 86400",
		 text);
	return false;
}

static bool add_set(struct common_options *o, const char *text, char *err, size_t cap)
{
	if (o->set_cnt == COMMON_SETS_MAX) {
		snprintf(err, cap, "--set appears more than %d times", COMMON_SETS_MAX);
		return false;
	}
	o->set[o->set_cnt++] = text;
	return true;
}

bool common_options_take(struct common_options *o, int opt, const char *arg, enum parse *result,
			 char *err, size_t cap)
{
	*result = PARSE_OK;
	switch (opt) {
	case 'h':
		*result = PARSE_HELP;
		return true;
	case COMMON_HELP_CONFIG:
		*result = PARSE_HELP_CONFIG;
		return true;
	case COMMON_CONFIG:
		o->config = arg;
		return true;
	case COMMON_JSON:
		o->json = arg;
		return true;
	case COMMON_STATE:
		o->state = arg;
		return true;
	case COMMON_POLL:
		o->poll = true;
		return true;
	case COMMON_SET:
		*result = add_set(o, arg, err, cap) ? PARSE_OK : PARSE_USAGE;
		return true;
	case COMMON_INTERVAL:
		*result = interval(o, arg, err, cap) ? PARSE_OK : PARSE_USAGE;
		return true;
	default:
		return false;
	}
}
