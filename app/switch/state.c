/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "wire/vendor.h"

#define VERSION 1

/* ---- write ---- */

static json_t *entries_json(const struct ur_vl_entry *e, unsigned cnt)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < cnt; i++)
		json_array_append_new(out, json_pack("[i,i]", e[i].vl, e[i].weight));
	return out;
}

static json_t *vl_json(const struct ur_vl_attr *vl)
{
	json_t *sl2vl = json_array();

	for (unsigned sl = 0; sl < 16; sl++)
		json_array_append_new(sl2vl, json_integer(vl->sl2vl[sl]));
	return json_pack("{s:o,s:o,s:i,s:o}", "high", entries_json(vl->high, vl->high_cnt), "low",
			 entries_json(vl->low, vl->low_cnt), "high_limit", vl->high_limit, "sl2vl",
			 sl2vl);
}

/* Only what management has changed: the rest is the configuration's. */
static json_t *port_json(const struct node *n, uint8_t port)
{
	const struct ur_switch_port_attr *now = ur_switch_port(n->sw, port);
	json_t *out = json_object();

	json_object_set_new(out, "name", json_string(n->port[port].dev->name));
	json_object_set_new(out, "enabled", json_boolean(ur_switch_enabled(n->sw, port)));
	if (memcmp(&now->vl, &n->port[port].configured, sizeof(now->vl)) != 0)
		json_object_set_new(out, "vl", vl_json(&now->vl));
	return out;
}

static json_t *lft_json(const struct node *n)
{
	json_t *out = json_array();

	for (uint16_t lid = 1; lid < UR_SWITCH_LIDS; lid++)
		if (ur_switch_lft(n->sw, lid) != UR_SWITCH_NO_PORT)
			json_array_append_new(out,
					      json_pack("[i,i]", lid, ur_switch_lft(n->sw, lid)));
	return out;
}

/* In hex, up to the last byte that is not erased. */
static json_t *eeprom_json(const struct node *n)
{
	size_t len = UR_EEPROM_BYTES;
	char *hex;
	json_t *out;

	while (len && n->eeprom[len - 1] == 0xff)
		len--;
	hex = calloc(2 * len + 1, 1);
	for (size_t i = 0; hex && i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", n->eeprom[i]);
	out = json_string(hex ? hex : "");
	free(hex);
	return out;
}

/* The old file or the new one is there, whole and on the disk. Only its owner may read it. */
static bool replace_file(const json_t *root, const char *file)
{
	char made[UR_CONFIG_TEXT + 16];
	int fd;
	bool ok;

	snprintf(made, sizeof(made), "%s.%d", file, (int)getpid());
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	ok = json_dumpfd(root, fd, JSON_INDENT(1)) == 0 && fsync(fd) == 0;
	ok = close(fd) == 0 && ok && rename(made, file) == 0;
	if (!ok)
		unlink(made);
	return ok;
}

bool state_save(struct node *n)
{
	json_t *root = json_object(), *ports = json_array();
	uint64_t changes = ur_switch_agent_changes(n->agent);
	bool ok;

	for (unsigned i = 1; i <= n->port_cnt; i++)
		json_array_append_new(ports, port_json(n, (uint8_t)i));
	json_object_set_new(root, "version", json_integer(VERSION));
	json_object_set_new(root, "lid", json_integer(ur_switch_agent_lid(n->agent)));
	json_object_set_new(root, "ports", ports);
	json_object_set_new(root, "lft", lft_json(n));
	json_object_set_new(root, "eeprom", eeprom_json(n));
	ok = replace_file(root, n->options.state);
	json_decref(root);
	if (ok)
		n->saved_changes = changes;
	return ok;
}

/* ---- read ---- */

/* Whole numbers below `limit`. */
static bool pair(json_t *j, unsigned limit, unsigned second_limit, unsigned out[2])
{
	json_int_t a, b;

	if (json_unpack(j, "[I,I!]", &a, &b) != 0 || a < 0 || a >= limit || b < 0 ||
	    b >= second_limit)
		return false;
	out[0] = (unsigned)a;
	out[1] = (unsigned)b;
	return true;
}

static bool take_entries(json_t *j, struct ur_vl_entry *e, uint8_t *cnt)
{
	unsigned v[2];

	if (!json_is_array(j) || json_array_size(j) > UR_VL_ENTRIES)
		return false;
	*cnt = (uint8_t)json_array_size(j);
	for (unsigned i = 0; i < *cnt; i++) {
		if (!pair(json_array_get(j, i), UR_VL_CNT, 256, v))
			return false;
		e[i] = (struct ur_vl_entry){(uint8_t)v[0], (uint8_t)v[1]};
	}
	return true;
}

static bool take_vl(json_t *j, struct ur_vl_attr *vl)
{
	json_t *sl2vl = json_object_get(j, "sl2vl"), *limit = json_object_get(j, "high_limit");

	if (!take_entries(json_object_get(j, "high"), vl->high, &vl->high_cnt) ||
	    !take_entries(json_object_get(j, "low"), vl->low, &vl->low_cnt) ||
	    json_array_size(sl2vl) != 16 || !json_is_integer(limit))
		return false;
	vl->high_limit = (uint8_t)json_integer_value(limit);
	for (unsigned sl = 0; sl < 16; sl++)
		vl->sl2vl[sl] = (uint8_t)json_integer_value(json_array_get(sl2vl, sl));
	return !ur_vl_attr_check(vl);
}

static bool take_port(struct node *n, uint8_t port, json_t *j)
{
	struct ur_switch_port_attr attr = *ur_switch_port(n->sw, port);
	json_t *vl = json_object_get(j, "vl");

	ur_switch_set_enabled(n->sw, port, !json_is_false(json_object_get(j, "enabled")));
	if (!vl)
		return true;
	if (!take_vl(vl, &attr.vl))
		return false;
	ur_switch_set_port(n->sw, port, &attr, 0);
	return true;
}

static bool take_lft(struct node *n, json_t *lft)
{
	unsigned v[2];

	if (!json_is_array(lft))
		return false;
	for (uint16_t lid = 1; lid < UR_SWITCH_LIDS; lid++)
		ur_switch_set_lft(n->sw, lid, UR_SWITCH_NO_PORT);
	for (size_t i = 0; i < json_array_size(lft); i++) {
		if (!pair(json_array_get(lft, i), UR_SWITCH_LIDS, n->port_cnt + 1, v) || !v[0])
			return false;
		ur_switch_set_lft(n->sw, (uint16_t)v[0], (uint8_t)v[1]);
	}
	return true;
}

static bool take_eeprom(struct node *n, const char *hex)
{
	size_t len = hex ? strlen(hex) / 2 : 0;

	if (!hex || len > UR_EEPROM_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &n->eeprom[i]) != 1)
			return false;
	return true;
}

static bool same_ports(const struct node *n, json_t *ports)
{
	if (json_array_size(ports) != n->port_cnt)
		return false;
	for (unsigned i = 1; i <= n->port_cnt; i++) {
		const char *name =
			json_string_value(json_object_get(json_array_get(ports, i - 1), "name"));

		if (!name || strcmp(name, n->port[i].dev->name) != 0)
			return false;
	}
	return true;
}

static bool take(struct node *n, json_t *root, const char **why)
{
	json_t *ports = json_object_get(root, "ports");

	*why = "is not a state of uroce-switch";
	if (json_integer_value(json_object_get(root, "version")) != VERSION)
		return false;
	*why = "is of a switch with other ports";
	if (!same_ports(n, ports))
		return false;
	*why = "has a value that is not valid";
	for (unsigned i = 1; i <= n->port_cnt; i++)
		if (!take_port(n, (uint8_t)i, json_array_get(ports, i - 1)))
			return false;
	n->saved_lid = (uint16_t)json_integer_value(json_object_get(root, "lid"));
	return take_lft(n, json_object_get(root, "lft")) &&
	       take_eeprom(n, json_string_value(json_object_get(root, "eeprom")));
}

bool state_load(struct node *n, char *err, size_t cap)
{
	json_error_t error;
	const char *why;
	json_t *root;
	bool ok;

	memset(n->eeprom, 0xff, sizeof(n->eeprom));
	if (!n->options.state || access(n->options.state, F_OK) != 0)
		return true;
	root = json_load_file(n->options.state, 0, &error);
	if (!root) {
		snprintf(err, cap,
			 "--state: %s: line %d: %s; without the file, the switch starts "
			 "with its configuration",
			 n->options.state, error.line, error.text);
		return false;
	}
	ok = take(n, root, &why);
	if (!ok)
		snprintf(err, cap,
			 "--state: %s %s; without the file, the switch starts with its "
			 "configuration",
			 n->options.state, why);
	json_decref(root);
	return ok;
}
