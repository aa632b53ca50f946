/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config.h"
#include "edge/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <rte_cfgfile.h>

#define FILE_MAX_BYTES (1u << 20)
/* rte_cfgfile reads a line into a buffer of this size, newline and NUL included */
#define LINE_MAX_BYTES (CFG_NAME_LEN + CFG_VALUE_LEN + 4 - 2)
#define COMMENT	       '#'

_Static_assert(UR_CONFIG_TEXT == CFG_VALUE_LEN, "values are as long as rte_cfgfile allows");

/*
 * rte_cfgfile reports neither line numbers nor duplicates and skips lines that it does not understand, so
 * the text is scanned here as well, line by line with rte_cfgfile's own rules.
 */
struct scan {
	const char *next, *end;
	unsigned line; /* number of the line in `text`, from 1 */
	char text[LINE_MAX_BYTES + 1];
	char *name, *value; /* value NULL: a section */
	const char *wrong;  /* an invalid line: the rest of the message */
};

static char *strip(char *s)
{
	size_t len;

	while (isspace((unsigned char)*s))
		s++;
	len = strlen(s);
	while (len != 0 && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* Splits the current line, which is neither empty nor too long. */
static void scan_line(struct scan *s, char *text)
{
	char *end;

	if (*text != '[') {
		end = strchr(text, '=');
		if (end == NULL) {
			s->wrong = "is neither \"[section]\" nor \"key = value\"; comments start "
				   "with #";
			return;
		}
		*end = '\0';
		s->name = strip(text);
		s->value = strip(end + 1);
		if (strlen(s->value) >= UR_CONFIG_TEXT)
			s->wrong = "has a value longer than 255 characters";
		return;
	}
	end = strchr(text, ']');
	if (end == NULL || *strip(end + 1) != '\0') {
		s->wrong = "is not a section; write [name] on a line of its own";
		return;
	}
	*end = '\0';
	s->name = strip(text + 1);
}

/* Goes to the next line that is not empty. Returns false at the end of the file. */
static bool scan_next(struct scan *s)
{
	s->name = s->value = NULL;
	s->wrong = NULL;
	while (s->next < s->end) {
		const char *nl = memchr(s->next, '\n', (size_t)(s->end - s->next));
		size_t len = (size_t)((nl != NULL ? nl : s->end) - s->next);
		const char *from = s->next;
		char *text, *comment;

		s->next += len + (nl != NULL);
		s->line++;
		if (len > LINE_MAX_BYTES) {
			s->wrong = "is longer than 322 characters";
			return true;
		}
		if (memchr(from, '\0', len) != NULL) {
			s->wrong = "contains a NUL byte";
			return true;
		}
		memcpy(s->text, from, len);
		s->text[len] = '\0';
		comment = strchr(s->text, COMMENT);
		if (comment != NULL && (comment == s->text || comment[-1] != '\\'))
			*comment = '\0';
		text = strip(s->text);
		if (*text == '\0')
			continue;
		scan_line(s, text);
		return true;
	}
	return false;
}

/* Checks lines, names and repetition; records the line of each key. */
static int lint(const char *path, const char *text, size_t len, struct ur_config *cfg, char *err,
		size_t cap)
{
	struct scan s = {.next = text, .end = text + len};
	const char *section = NULL;
	char list[640];

	while (scan_next(&s)) {
		const struct ur_config_key *key;

		if (s.wrong != NULL)
			return ur_config_fail(err, cap, "%s:%u: the line %s", path, s.line,
					      s.wrong);
		if (s.value == NULL) {
			int i = ur_config_section_index(s.name);

			if (i < 0) {
				ur_config_list_sections(list, sizeof(list));
				return ur_config_fail(err, cap,
						      "%s:%u: [%s] is not a section; allowed: %s",
						      path, s.line, s.name, list);
			}
			if (cfg->section_line[i] != 0)
				return ur_config_fail(
					err, cap,
					"%s:%u: [%s] appears twice, first in line %u; "
					"allowed: each section once",
					path, s.line, s.name, cfg->section_line[i]);
			cfg->section_line[i] = s.line;
			section = ur_config_sections[i];
			continue;
		}
		if (section == NULL) {
			ur_config_list_sections(list, sizeof(list));
			return ur_config_fail(
				err, cap, "%s:%u: \"%s\" is in no section; allowed before it: %s",
				path, s.line, s.name, list);
		}
		key = ur_config_find_key(section, s.name);
		if (key == NULL) {
			ur_config_list_keys(section, list, sizeof(list));
			return ur_config_fail(err, cap, "%s:%u: [%s] %s: is not a key; allowed: %s",
					      path, s.line, section, s.name, list);
		}
		if (cfg->line[key - ur_config_keys] == 0)
			cfg->line[key - ur_config_keys] = s.line;
		else if (key->kind != UR_KIND_NEIGH)
			return ur_config_fail(err, cap,
					      "%s:%u: [%s] %s: appears twice, first in line %u; "
					      "allowed: each key once",
					      path, s.line, section, s.name,
					      cfg->line[key - ur_config_keys]);
	}
	return 0;
}

/* The line of the nth (from 0) time that a key is set; the text has passed lint(). */
static unsigned nth_line(const char *text, size_t len, const struct ur_config_key *key,
			 unsigned nth)
{
	struct scan s = {.next = text, .end = text + len};
	bool inside = false;

	while (scan_next(&s)) {
		if (s.value == NULL)
			inside = strcmp(s.name, key->section) == 0;
		else if (inside && strcmp(s.name, key->key) == 0 && nth-- == 0)
			return s.line;
	}
	return 0;
}

static int read_file(const char *path, char **text, size_t *len, char *err, size_t cap)
{
	FILE *f = fopen(path, "r");
	int why = f == NULL ? errno : 0;

	*text = NULL;
	if (f != NULL) {
		*text = malloc(FILE_MAX_BYTES);
		*len = *text != NULL ? fread(*text, 1, FILE_MAX_BYTES, f) : 0;
		if (*text == NULL)
			why = ENOMEM;
		else if (ferror(f))
			why = errno;
		else if (*len == FILE_MAX_BYTES)
			why = EFBIG;
		fclose(f);
	}
	if (why != 0) {
		ur_config_fail(err, cap, "%s: cannot be read: %s%s", path, strerror(why),
			       why == ENOENT ? "; examples are in pmd-config/" : "");
		free(*text);
		return -why;
	}
	return 0;
}

/* Takes the values of one section from rte_cfgfile. */
static int take_section(struct rte_cfgfile *file, const char *section, const char *text, size_t len,
			struct ur_config *cfg, char *err, size_t cap)
{
	int n = rte_cfgfile_section_num_entries(file, section);
	struct rte_cfgfile_entry *entry;
	unsigned neighbor = 0;
	int rc = 0;

	if (n <= 0)
		return 0;
	entry = calloc((size_t)n, sizeof(*entry));
	if (entry == NULL)
		return -ENOMEM;
	n = rte_cfgfile_section_entries(file, section, entry, n);
	for (int i = 0; i < n && rc == 0; i++) {
		const struct ur_config_key *key = ur_config_find_key(section, entry[i].name);
		unsigned nth = key != NULL && key->kind == UR_KIND_NEIGH ? neighbor++ : 0;
		char where[UR_CONFIG_TEXT + 16];

		if (key == NULL) {
			rc = ur_config_fail(err, cap, "%s: [%s] %s: is not a key", cfg->file,
					    section, entry[i].name);
		} else if (!ur_config_value(key, entry[i].value, cfg)) {
			snprintf(where, sizeof(where), "%s:%u", cfg->file,
				 nth_line(text, len, key, nth));
			rc = ur_config_value_error(key, entry[i].value, where, err, cap);
		}
	}
	free(entry);
	return rc;
}

/* A bare name that is not a file here is searched among the installed ones. */
static const char *find_file(const char *name, char *installed, size_t cap)
{
	if (strchr(name, '/') != NULL || access(name, F_OK) == 0)
		return name;
	snprintf(installed, cap, "%s/%s", UR_PMD_CONFIG_DIR, name);
	return access(installed, F_OK) == 0 ? installed : name;
}

int ur_config_load(const char *name, struct ur_config *out, char *err, size_t err_cap)
{
	static const struct rte_cfgfile_parameters params = {.comment_character = COMMENT};
	struct rte_cfgfile *file = NULL;
	struct ur_config cfg;
	char *text, installed[UR_CONFIG_TEXT];
	const char *path;
	size_t len = 0;
	int rc;

	ur_config_init(&cfg);
	if (!name) {
		*out = cfg;
		return 0;
	}
	path = find_file(name, installed, sizeof(installed));
	strlcpy(cfg.file, path, sizeof(cfg.file));
	rc = read_file(path, &text, &len, err, err_cap);
	if (rc != 0)
		return rc;
	rc = lint(path, text, len, &cfg, err, err_cap);
	if (rc == 0) {
		file = rte_cfgfile_load_with_params(path, CFG_FLAG_EMPTY_VALUES, &params);
		if (file == NULL)
			rc = ur_config_fail(err, err_cap, "%s: cannot be read as an INI file",
					    path);
	}
	for (size_t i = 0; i < ur_config_sections_cnt && rc == 0; i++)
		rc = take_section(file, ur_config_sections[i], text, len, &cfg, err, err_cap);
	if (file != NULL)
		rte_cfgfile_close(file);
	free(text);
	if (rc == 0)
		*out = cfg;
	return rc;
}
