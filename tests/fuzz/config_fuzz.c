/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create() */

#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "edge/config.h"
#include "fuzz.h"

/*
 * Takes any bytes as a configuration file. Either the file is refused with one sentence that names
 * a line, and nothing is written; or it means the same as its lines given one by one to --set. Then
 * single lines are tried as arguments of --set.
 */
#define UNTOUCHED 0xa5

static char path[64];

/* An error message must be a sentence and, for a file, name the line. */
static void check_sentence(const char *err, size_t cap, const char *before)
{
	size_t len = strnlen(err, cap);

	FUZZ_CHECK(len > 0 && len < cap);
	FUZZ_CHECK(!memchr(err, '\n', len));
	if (before)
		FUZZ_CHECK(strncmp(err, before, strlen(before)) == 0);
}

static void check_refused(const struct ur_config *cfg, const char *err, size_t cap)
{
	const uint8_t *b = (const uint8_t *)cfg;
	char before[sizeof(path) + 2];

	for (size_t i = 0; i < sizeof(*cfg); i++)
		FUZZ_CHECK(b[i] == UNTOUCHED);
	snprintf(before, sizeof(before), "%s:", path);
	check_sentence(err, cap, before);
	FUZZ_CHECK(isdigit((unsigned char)err[strlen(before)]));
}

static char *trim(char *s)
{
	size_t len;

	while (isspace((unsigned char)*s))
		s++;
	len = strlen(s);
	while (len && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/*
 * Applies an accepted file line by line. Returns false if the file has neighbours, which
 * accumulate, or an escaped comment sign.
 */
static bool by_lines(char *text, struct ur_config *cfg)
{
	char *rest = text, *line, section[64] = "", name[256], err[1024];

	if (strstr(text, "\\#"))
		return false;
	ur_config_init(cfg);
	while ((line = strsep(&rest, "\n"))) {
		char *comment = strchr(line, '#'), *eq;

		if (comment)
			*comment = '\0';
		line = trim(line);
		if (!*line)
			continue;
		if (*line == '[') {
			*strchr(line, ']') = '\0';
			snprintf(section, sizeof(section), "%s", trim(line + 1));
			continue;
		}
		eq = strchr(line, '=');
		*eq = '\0';
		line = trim(line);
		if (strcmp(line, "neighbor") == 0)
			return false;
		snprintf(name, sizeof(name), "%s.%s", section, line);
		FUZZ_CHECK(ur_config_set(cfg, name, trim(eq + 1), err, sizeof(err)) == 0);
	}
	return true;
}

/* Keeps only the values. */
static void forget_where(struct ur_config *cfg)
{
	memset(cfg->file, 0, sizeof(cfg->file));
	memset(cfg->line, 0, sizeof(cfg->line));
	memset(cfg->section_line, 0, sizeof(cfg->section_line));
}

static void check_accepted(struct ur_config *cfg, char *text)
{
	static struct ur_config other;
	char err[1024] = "";
	int rc;

	/* libpcap would check the filter, and might ask the network for names. */
	cfg->capture.filter[0] = '\0';
	rc = ur_config_check(cfg, err, sizeof(err));
	FUZZ_CHECK(rc == 0 || rc == -22);
	if (rc)
		check_sentence(err, sizeof(err), NULL);
	if (!by_lines(text, &other))
		return;
	other.capture.filter[0] = '\0';
	forget_where(&other);
	forget_where(cfg);
	FUZZ_CHECK(memcmp(&other, cfg, sizeof(other)) == 0);
}

/* Each line as an argument of --set: it is applied, or refused without a change. */
static void set_lines(char *text)
{
	static struct ur_config cfg, before;
	char *rest = text, *line, err[1024];

	ur_config_init(&cfg);
	while ((line = strsep(&rest, "\n"))) {
		before = cfg;
		err[0] = '\0';
		if (ur_config_set_arg(&cfg, line, err, sizeof(err)) == 0)
			continue;
		check_sentence(err, sizeof(err), "--set: ");
		FUZZ_CHECK(memcmp(&before, &cfg, sizeof(cfg)) == 0);
	}
}

static char *copy_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ur_config cfg;
	char err[1024] = "", *text = copy_of(data, size);
	int fd = memfd_create("config", 0);

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(&cfg, UNTOUCHED, sizeof(cfg));
	if (ur_config_load(path, &cfg, err, sizeof(err)) == 0)
		check_accepted(&cfg, text);
	else
		check_refused(&cfg, err, sizeof(err));
	free(text);
	text = copy_of(data, size);
	set_lines(text);
	free(text);
	close(fd);
	return 0;
}
