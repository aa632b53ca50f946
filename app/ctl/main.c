/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "output.h"
#include "wire/assert.h"

_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "uroce-ctl: %s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}

int main(int argc, char **argv)
{
	static bool (*const commands[])(struct ctl_session * s) = {
#define X(name, words, least, most, meaning) [CTL_##name] = ctl_cmd_##name,
		CTL_COMMANDS(X)
#undef X
	};
	static struct ctl_options options;
	static struct ctl_session session;
	char err[512];
	bool ok;

	switch (ctl_options_parse(&options, argc, argv, err, sizeof(err))) {
	case CTL_PARSE_HELP:
		ctl_options_help(stdout);
		return CTL_EXIT_OK;
	case CTL_PARSE_USAGE:
		fprintf(stderr, "uroce-ctl: %s\n", err);
		return CTL_EXIT_USAGE;
	case CTL_PARSE_OK:
		break;
	}
	if (ctl_needs_no_fabric(&options)) {
		ctl_list_registers();
		return CTL_EXIT_OK;
	}
	ok = ctl_open(&session, &options) && (!options.load_routes || ctl_load_routes(&session)) &&
	     commands[options.command](&session);
	ctl_close(&session);
	return ok ? CTL_EXIT_OK : CTL_EXIT_ERROR;
}
