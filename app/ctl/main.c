/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "output.h"
#include "source.h"
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
		session.o = &options;
		return commands[options.command](&session) ? CTL_EXIT_OK : CTL_EXIT_ERROR;
	}
	if (options.m_key_file &&
	    !ctl_read_key(options.m_key_file, &options.m_key, err, sizeof(err))) {
		ctl_complain("--m-key-file: %s", err);
		return CTL_EXIT_ERROR;
	}
	ok = ctl_open(&session, &options) &&
	     (!options.source_routes || ctl_load_source_routes(&session)) &&
	     (!options.load_routes || ctl_load_routes(&session)) &&
	     commands[options.command](&session);
	ctl_close(&session);
	return ok ? CTL_EXIT_OK : CTL_EXIT_ERROR;
}
