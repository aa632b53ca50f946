/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool is_stdout(const char *file)
{
	return file && !strcmp(file, "-");
}

bool ctl_prints_text(const struct ctl_options *o)
{
	return !is_stdout(o->json) && !is_stdout(o->dot);
}

FILE *ctl_output_open(const char *file)
{
	FILE *out = is_stdout(file) ? stdout : fopen(file, "we");

	if (!out)
		ctl_complain("%s cannot be written: %s", file, strerror(errno));
	return out;
}

bool ctl_output_close(FILE *out, const char *file)
{
	bool ok = !fflush(out) && !ferror(out);

	if (out != stdout && fclose(out))
		ok = false;
	return ok || ctl_complain("%s was not written whole: %s", file, strerror(errno));
}

bool ctl_json_write(const struct ctl_options *o, json_t *root)
{
	FILE *out;
	bool ok;

	if (!o->json) {
		json_decref(root);
		return true;
	}
	out = ctl_output_open(o->json);
	ok = out && !json_dumpf(root, out, JSON_INDENT(2)) && fputc('\n', out) != EOF;
	json_decref(root);
	return out && ctl_output_close(out, o->json) && ok;
}

json_t *ctl_json_hex(uint64_t number)
{
	return json_sprintf("%#" PRIx64, number);
}
