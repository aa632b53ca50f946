/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config.h"
#include "edge/config_value.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include <bsd/string.h>

#define NAME_MAX_BYTES 64 /* of a section or a key, NUL included */

const char *const ur_config_sections[] = {"eal",       "port",	    "address",	  "worker",
					  "transport", "qos",	    "pacing",	  "capture",
					  "impair",    "admission", "management", "forwarding"};
#define SECTIONS_CNT (sizeof(ur_config_sections) / sizeof(ur_config_sections[0]))
const size_t ur_config_sections_cnt = SECTIONS_CNT;
_Static_assert(SECTIONS_CNT <= UR_CONFIG_SECTIONS_MAX, "raise UR_CONFIG_SECTIONS_MAX");

int ur_config_fail(char *err, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, cap, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int ur_config_section_index(const char *name)
{
	for (size_t i = 0; i < SECTIONS_CNT; i++)
		if (strcmp(ur_config_sections[i], name) == 0)
			return (int)i;
	return -1;
}

const struct ur_config_key *ur_config_find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < ur_config_keys_cnt; i++)
		if (strcmp(ur_config_keys[i].section, section) == 0 &&
		    strcmp(ur_config_keys[i].key, name) == 0)
			return &ur_config_keys[i];
	return NULL;
}

void ur_config_list_sections(char *buf, size_t cap)
{
	buf[0] = '\0';
	for (size_t i = 0; i < SECTIONS_CNT; i++) {
		strlcat(buf, i != 0 ? ", [" : "[", cap);
		strlcat(buf, ur_config_sections[i], cap);
		strlcat(buf, "]", cap);
	}
}

void ur_config_list_keys(const char *section, char *buf, size_t cap)
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

int ur_config_value_error(const struct ur_config_key *key, const char *value, const char *where,
			  char *err, size_t cap)
{
	char allowed[256];

	ur_config_allowed(key, allowed, sizeof(allowed));
	return ur_config_fail(err, cap, "%s: [%s] %s: \"%s\" is not %s; allowed: %s", where,
			      key->section, key->key, value, ur_config_noun(key), allowed);
}

void ur_config_init(struct ur_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	for (size_t i = 0; i < ur_config_keys_cnt; i++)
		ur_config_value(&ur_config_keys[i], ur_config_keys[i].def, cfg);
}

int ur_config_set(struct ur_config *cfg, const char *section_dot_key, const char *value, char *err,
		  size_t err_cap)
{
	const char *dot = strchr(section_dot_key, '.');
	const struct ur_config_key *key;
	struct ur_config_neighbors kept;
	char section[NAME_MAX_BYTES];
	char list[640];

	if (dot == NULL || (size_t)(dot - section_dot_key) >= sizeof(section))
		return ur_config_fail(
			err, err_cap,
			"--set: \"%s\" is not a key; allowed: section.key, such as port.mtu",
			section_dot_key);
	memcpy(section, section_dot_key, (size_t)(dot - section_dot_key));
	section[dot - section_dot_key] = '\0';
	if (ur_config_section_index(section) < 0) {
		ur_config_list_sections(list, sizeof(list));
		return ur_config_fail(err, err_cap, "--set: [%s] is not a section; allowed: %s",
				      section, list);
	}
	key = ur_config_find_key(section, dot + 1);
	if (key == NULL) {
		ur_config_list_keys(section, list, sizeof(list));
		return ur_config_fail(err, err_cap, "--set: [%s] %s: is not a key; allowed: %s",
				      section, dot + 1, list);
	}
	kept = cfg->address.neighbors;
	if (key->kind == UR_KIND_NEIGH)
		memset(&cfg->address.neighbors, 0, sizeof(cfg->address.neighbors));
	if (!ur_config_value(key, value, cfg)) {
		cfg->address.neighbors = kept;
		return ur_config_value_error(key, value, "--set", err, err_cap);
	}
	cfg->line[key - ur_config_keys] = UINT32_MAX;
	return 0;
}

/* Sets a key that neither the file nor an earlier argument has set. */
static int set_default(struct ur_config *cfg, char *name, const char *value, char *err,
		       size_t err_cap)
{
	char *dot = strchr(name, '.');
	const struct ur_config_key *key = NULL;
	int rc;

	if (dot != NULL) {
		*dot = '\0';
		if (ur_config_is_given(cfg, name, dot + 1))
			return 0;
		key = ur_config_find_key(name, dot + 1);
		*dot = '.';
	}
	rc = ur_config_set(cfg, name, value, err, err_cap);
	if (rc == 0 && key != NULL)
		cfg->line[key - ur_config_keys] = 0;
	return rc;
}

int ur_config_set_arg(struct ur_config *cfg, const char *arg, char *err, size_t err_cap)
{
	char name[2 * NAME_MAX_BYTES];
	const char *eq = strchr(arg, '=');
	size_t len = eq != NULL ? (size_t)(eq - arg) : 0;

	if (len == 0 || len >= sizeof(name))
		return ur_config_fail(
			err, err_cap,
			"--set: \"%s\" is not an assignment; allowed: section.key=value", arg);
	memcpy(name, arg, len);
	name[len] = '\0';
	if (name[len - 1] != '?')
		return ur_config_set(cfg, name, eq + 1, err, err_cap);
	name[len - 1] = '\0';
	return set_default(cfg, name, eq + 1, err, err_cap);
}

bool ur_config_is_given(const struct ur_config *cfg, const char *section, const char *name)
{
	const struct ur_config_key *key = ur_config_find_key(section, name);

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
	const struct ur_config_key *key = ur_config_find_key(section, name);
	uint32_t line = key != NULL ? cfg->line[key - ur_config_keys] : 0;
	int sec = ur_config_section_index(section);

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
