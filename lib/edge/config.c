/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config.h"
#include "edge/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
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

static const char *const sections[] = {"eal", "port",	"address", "worker", "transport",
				       "qos", "pacing", "capture", "impair", "admission"};
#define SECTIONS_CNT (sizeof(sections) / sizeof(sections[0]))
_Static_assert(SECTIONS_CNT <= UR_CONFIG_SECTIONS_MAX, "raise UR_CONFIG_SECTIONS_MAX");

/*
 * rte_cfgfile gives neither line numbers nor duplicates and skips what it does not understand, so
 * the text is walked here as well, line by line with rte_cfgfile's own rules.
 */
struct scan {
	const char *next, *end;
	unsigned line; /* number of the line in `text`, from 1 */
	char text[LINE_MAX_BYTES + 1];
	char *name, *value; /* value NULL: a section */
	const char *wrong;  /* a line that cannot be: the rest of the sentence */
};

__attribute__((format(printf, 3, 4))) static int fail(char *err, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, cap, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

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

/* Goes to the next line that says something. Returns false at the end of the file. */
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

static int section_index(const char *name)
{
	for (size_t i = 0; i < SECTIONS_CNT; i++)
		if (strcmp(sections[i], name) == 0)
			return (int)i;
	return -1;
}

static const struct ur_config_key *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < ur_config_keys_cnt; i++)
		if (strcmp(ur_config_keys[i].section, section) == 0 &&
		    strcmp(ur_config_keys[i].key, name) == 0)
			return &ur_config_keys[i];
	return NULL;
}

static void list_sections(char *buf, size_t cap)
{
	buf[0] = '\0';
	for (size_t i = 0; i < SECTIONS_CNT; i++) {
		strlcat(buf, i != 0 ? ", [" : "[", cap);
		strlcat(buf, sections[i], cap);
		strlcat(buf, "]", cap);
	}
}

static void list_keys(const char *section, char *buf, size_t cap)
{
	buf[0] = '\0';
	for (size_t i = 0; i < ur_config_keys_cnt; i++) {
		if (strcmp(ur_config_keys[i].section, section) != 0)
			continue;
		if (buf[0] != '\0')
			strlcat(buf, ", ", cap);
		strlcat(buf, ur_config_keys[i].key, cap);
	}
}

/* Every complaint that is about lines, names and repetition; keeps the line of each key. */
static int lint(const char *path, const char *text, size_t len, struct ur_config *cfg, char *err,
		size_t cap)
{
	struct scan s = {.next = text, .end = text + len};
	const char *section = NULL;
	char list[640];

	while (scan_next(&s)) {
		const struct ur_config_key *key;

		if (s.wrong != NULL)
			return fail(err, cap, "%s:%u: the line %s", path, s.line, s.wrong);
		if (s.value == NULL) {
			int i = section_index(s.name);

			if (i < 0) {
				list_sections(list, sizeof(list));
				return fail(err, cap, "%s:%u: [%s] is not a section; allowed: %s",
					    path, s.line, s.name, list);
			}
			if (cfg->section_line[i] != 0)
				return fail(err, cap,
					    "%s:%u: [%s] appears twice, first in line %u; "
					    "allowed: each section once",
					    path, s.line, s.name, cfg->section_line[i]);
			cfg->section_line[i] = s.line;
			section = sections[i];
			continue;
		}
		if (section == NULL) {
			list_sections(list, sizeof(list));
			return fail(err, cap,
				    "%s:%u: \"%s\" is in no section; allowed before it: %s", path,
				    s.line, s.name, list);
		}
		key = find_key(section, s.name);
		if (key == NULL) {
			list_keys(section, list, sizeof(list));
			return fail(err, cap, "%s:%u: [%s] %s: is not a key; allowed: %s", path,
				    s.line, section, s.name, list);
		}
		if (cfg->line[key - ur_config_keys] == 0)
			cfg->line[key - ur_config_keys] = s.line;
		else if (key->kind != UR_KIND_NEIGH)
			return fail(err, cap,
				    "%s:%u: [%s] %s: appears twice, first in line %u; "
				    "allowed: each key once",
				    path, s.line, section, s.name, cfg->line[key - ur_config_keys]);
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

static int value_error(const struct ur_config_key *key, const char *value, const char *where,
		       char *err, size_t cap)
{
	char allowed[256];

	ur_config_allowed(key, allowed, sizeof(allowed));
	return fail(err, cap, "%s: [%s] %s: \"%s\" is not %s; allowed: %s", where, key->section,
		    key->key, value, ur_config_noun(key), allowed);
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
		fail(err, cap, "%s: cannot be read: %s", path, strerror(why));
		free(*text);
		return -why;
	}
	return 0;
}

/* Takes the values of one section out of rte_cfgfile's hands. */
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
		const struct ur_config_key *key = find_key(section, entry[i].name);
		unsigned nth = key != NULL && key->kind == UR_KIND_NEIGH ? neighbor++ : 0;
		char where[UR_CONFIG_TEXT + 16];

		if (key == NULL) {
			rc = fail(err, cap, "%s: [%s] %s: is not a key", cfg->file, section,
				  entry[i].name);
		} else if (!ur_config_value(key, entry[i].value, cfg)) {
			snprintf(where, sizeof(where), "%s:%u", cfg->file,
				 nth_line(text, len, key, nth));
			rc = value_error(key, entry[i].value, where, err, cap);
		}
	}
	free(entry);
	return rc;
}

void ur_config_init(struct ur_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	for (size_t i = 0; i < ur_config_keys_cnt; i++)
		ur_config_value(&ur_config_keys[i], ur_config_keys[i].def, cfg);
}

/* A bare name that is no file here is one of those that were installed. */
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
			rc = fail(err, err_cap, "%s: cannot be read as an INI file", path);
	}
	for (size_t i = 0; i < SECTIONS_CNT && rc == 0; i++)
		rc = take_section(file, sections[i], text, len, &cfg, err, err_cap);
	if (file != NULL)
		rte_cfgfile_close(file);
	free(text);
	if (rc == 0)
		*out = cfg;
	return rc;
}

int ur_config_set(struct ur_config *cfg, const char *section_dot_key, const char *value, char *err,
		  size_t err_cap)
{
	const char *dot = strchr(section_dot_key, '.');
	const struct ur_config_key *key;
	struct ur_config_neighbors kept;
	char section[CFG_NAME_LEN];
	char list[640];

	if (dot == NULL || (size_t)(dot - section_dot_key) >= sizeof(section))
		return fail(err, err_cap,
			    "--set: \"%s\" is not a key; allowed: section.key, such as port.mtu",
			    section_dot_key);
	memcpy(section, section_dot_key, (size_t)(dot - section_dot_key));
	section[dot - section_dot_key] = '\0';
	if (section_index(section) < 0) {
		list_sections(list, sizeof(list));
		return fail(err, err_cap, "--set: [%s] is not a section; allowed: %s", section,
			    list);
	}
	key = find_key(section, dot + 1);
	if (key == NULL) {
		list_keys(section, list, sizeof(list));
		return fail(err, err_cap, "--set: [%s] %s: is not a key; allowed: %s", section,
			    dot + 1, list);
	}
	kept = cfg->address.neighbors;
	if (key->kind == UR_KIND_NEIGH)
		memset(&cfg->address.neighbors, 0, sizeof(cfg->address.neighbors));
	if (!ur_config_value(key, value, cfg)) {
		cfg->address.neighbors = kept;
		return value_error(key, value, "--set", err, err_cap);
	}
	cfg->line[key - ur_config_keys] = UINT32_MAX;
	return 0;
}

int ur_config_set_arg(struct ur_config *cfg, const char *arg, char *err, size_t err_cap)
{
	char name[2 * CFG_NAME_LEN];
	const char *eq = strchr(arg, '=');
	size_t len = eq != NULL ? (size_t)(eq - arg) : 0;

	if (len == 0 || len >= sizeof(name))
		return fail(err, err_cap,
			    "--set: \"%s\" is not an assignment; allowed: section.key=value", arg);
	memcpy(name, arg, len);
	name[len] = '\0';
	return ur_config_set(cfg, name, eq + 1, err, err_cap);
}

bool ur_config_is_given(const struct ur_config *cfg, const char *section, const char *name)
{
	const struct ur_config_key *key = find_key(section, name);

	return key != NULL && cfg->line[key - ur_config_keys] != 0;
}

/* For what arrives while this process waits for a CPU. */
#define SHARED_FRAMECNT 1024

void ur_config_share(struct ur_config *cfg)
{
	if (!ur_config_shares(cfg) || cfg->port.device[0] != '\0')
		return;
	strlcpy(cfg->port.device, cfg->port.dev, sizeof(cfg->port.device));
	if (!ur_config_is_given(cfg, "port", "driver"))
		cfg->port.driver = UR_DRIVER_AF_PACKET;
	if (!ur_config_is_given(cfg, "port", "framecnt"))
		cfg->port.framecnt = SHARED_FRAMECNT;
}

void ur_config_where(const struct ur_config *cfg, const char *section, const char *name, char *buf,
		     size_t cap)
{
	const struct ur_config_key *key = find_key(section, name);
	uint32_t line = key != NULL ? cfg->line[key - ur_config_keys] : 0;
	int sec = section_index(section);

	if (line == 0 && sec >= 0)
		line = cfg->section_line[sec];
	if (line == UINT32_MAX)
		snprintf(buf, cap, "--set: [%s] %s: ", section, name);
	else if (line != 0)
		snprintf(buf, cap, "%s:%u: [%s] %s: ", cfg->file, line, section, name);
	else
		snprintf(buf, cap, "%s%s[%s] %s: ", cfg->file, cfg->file[0] != '\0' ? ": " : "",
			 section, name);
}

const char *ur_driver_name(int driver)
{
	static const char *const name[] = {
#define X(id, word) word,
		UR_DRIVERS(X)
#undef X
	};

	return name[driver];
}

void ur_config_help(FILE *out)
{
	const char *section = "";

	fputs("# Every section and key with its default. This text is itself a configuration "
	      "file;\n"
	      "# any key may also be given on the command line as --set section.key=value.\n",
	      out);
	for (size_t i = 0; i < ur_config_keys_cnt; i++) {
		const struct ur_config_key *key = &ur_config_keys[i];
		char allowed[256];

		if (strcmp(section, key->section) != 0)
			fprintf(out, "\n[%s]\n", key->section);
		section = key->section;
		ur_config_allowed(key, allowed, sizeof(allowed));
		fprintf(out, "# %s\n# allowed: %s\n%s = %s\n", key->doc, allowed, key->key,
			key->def);
	}
}
