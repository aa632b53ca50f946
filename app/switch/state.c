/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "file/replace_file.h"
#include "thread/thread.h"
#include "wire/vendor.h"

#define VERSION 1

/* ---- write ---- */

/* What is written: copied by the switch's thread, so that another one can take its time. */
struct state_copy {
	uint64_t guid;
	uint16_t lid;
	struct {
		bool enabled, has_vl;
		struct ur_vl_attr vl;
	} port[UR_SWITCH_PORTS_MAX];
	uint8_t lft[UR_SWITCH_LIDS];
	uint8_t eeprom[UR_EEPROM_BYTES];
};

struct state {
	struct node *node; /* options and names of ports only */
	pthread_t writer;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t changed;
	struct state_copy next; /* to be written, if `dirty` */
	bool dirty, closing;
	struct state_copy now; /* the writer's */
};

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

static json_t *port_json(const struct state *s, unsigned port)
{
	json_t *out = json_object();

	json_object_set_new(out, "name", json_string(s->node->port[port].dev->name));
	json_object_set_new(out, "enabled", json_boolean(s->now.port[port].enabled));
	if (s->now.port[port].has_vl)
		json_object_set_new(out, "vl", vl_json(&s->now.port[port].vl));
	return out;
}

static json_t *lft_json(const uint8_t *lft)
{
	json_t *out = json_array();

	for (unsigned lid = 1; lid < UR_SWITCH_LIDS; lid++)
		if (lft[lid] != UR_SWITCH_NO_PORT)
			json_array_append_new(out, json_pack("[i,i]", lid, lft[lid]));
	return out;
}

/* In hex, up to the last byte that is not erased. */
static json_t *eeprom_json(const uint8_t *eeprom)
{
	size_t len = UR_EEPROM_BYTES;
	char *hex;
	json_t *out;

	while (len && eeprom[len - 1] == 0xff)
		len--;
	hex = calloc(2 * len + 1, 1);
	for (size_t i = 0; hex && i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", eeprom[i]);
	out = json_string(hex ? hex : "");
	free(hex);
	return out;
}

static bool write_copy(const struct state *s)
{
	json_t *root = json_object(), *ports = json_array();
	char guid[24], *text;
	int rc = ENOMEM;

	for (unsigned i = 1; i <= s->node->port_cnt; i++)
		json_array_append_new(ports, port_json(s, i));
	snprintf(guid, sizeof(guid), "0x%016" PRIx64, s->now.guid);
	json_object_set_new(root, "version", json_integer(VERSION));
	json_object_set_new(root, "guid", json_string(guid));
	json_object_set_new(root, "lid", json_integer(s->now.lid));
	json_object_set_new(root, "ports", ports);
	json_object_set_new(root, "lft", lft_json(s->now.lft));
	json_object_set_new(root, "eeprom", eeprom_json(s->now.eeprom));
	text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (text)
		rc = ur_replace_file(s->node->options.common.state, text, strlen(text));
	free(text);
	if (rc)
		fprintf(stderr, "uroce-switch: --state: %s cannot be written: %s\n",
			s->node->options.common.state, strerror(rc));
	return rc == 0;
}

/* Waits for a second, or for the end. Under the lock. */
static void wait_to_retry(struct state *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	while (!s->closing && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
		;
}

/* What fails is tried again each second, and once more at the end. */
static void *write_changes(void *arg)
{
	struct state *s = arg;
	bool last, ok = true;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->dirty && ok && !s->closing)
			pthread_cond_wait(&s->changed, &s->lock);
		last = s->closing;
		if (!s->dirty && ok)
			break;
		if (s->dirty)
			s->now = s->next;
		s->dirty = false;
		pthread_mutex_unlock(&s->lock);
		ok = write_copy(s);
		pthread_mutex_lock(&s->lock);
		if (last && !ok)
			break;
		if (!ok)
			wait_to_retry(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

bool state_start(struct node *n, char *err, size_t cap)
{
	struct state *s;
	int rc;

	if (!n->options.common.state)
		return true;
	s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(err, cap, "out of memory");
		return false;
	}
	s->node = n;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	rc = ur_thread_start(&s->writer, NULL, write_changes, s);
	if (rc) {
		snprintf(err, cap, "no thread could be started: %s", strerror(rc));
		free(s);
		return false;
	}
	n->state = s;
	return true;
}

static void copy_state(const struct node *n, struct state_copy *c)
{
	c->guid = n->guid;
	c->lid = ur_switch_agent_lid(n->agent);
	for (unsigned i = 1; i <= n->port_cnt; i++) {
		const struct ur_vl_attr *vl = &ur_switch_port(n->sw, (uint8_t)i)->vl;

		/* Only what management has changed: the rest is the configuration's. */
		c->port[i].enabled = ur_switch_enabled(n->sw, (uint8_t)i);
		c->port[i].has_vl = memcmp(vl, &n->port[i].configured, sizeof(*vl)) != 0;
		c->port[i].vl = *vl;
	}
	for (uint16_t lid = 1; lid < UR_SWITCH_LIDS; lid++)
		c->lft[lid] = ur_switch_lft(n->sw, lid);
	memcpy(c->eeprom, n->eeprom, sizeof(c->eeprom));
}

void state_save(struct node *n)
{
	struct state *s = n->state;
	uint64_t changes = n->agent ? ur_switch_agent_changes(n->agent) : 0;

	if (!s || !n->agent || n->saved_changes == changes)
		return;
	n->saved_changes = changes;
	pthread_mutex_lock(&s->lock);
	copy_state(n, &s->next);
	s->dirty = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

void state_end(struct node *n)
{
	struct state *s = n->state;

	if (!s)
		return;
	state_save(n);
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->writer, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	n->state = NULL;
}

/* ---- read ---- */

static bool whole(json_t *j, unsigned limit, unsigned *out)
{
	json_int_t v = json_integer_value(j);

	if (!json_is_integer(j) || v < 0 || v >= limit)
		return false;
	*out = (unsigned)v;
	return true;
}

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
	unsigned v;

	if (!take_entries(json_object_get(j, "high"), vl->high, &vl->high_cnt) ||
	    !take_entries(json_object_get(j, "low"), vl->low, &vl->low_cnt) ||
	    json_array_size(sl2vl) != 16 || !whole(limit, 256, &v))
		return false;
	vl->high_limit = (uint8_t)v;
	for (unsigned sl = 0; sl < 16; sl++) {
		if (!whole(json_array_get(sl2vl, sl), 16, &v))
			return false;
		vl->sl2vl[sl] = (uint8_t)v;
	}
	return !ur_vl_attr_check(vl);
}

static bool take_port(struct node *n, uint8_t port, json_t *j)
{
	struct ur_switch_port_attr attr = *ur_switch_port(n->sw, port);
	json_t *vl = json_object_get(j, "vl"), *enabled = json_object_get(j, "enabled");

	if (!json_is_boolean(enabled))
		return false;
	ur_switch_set_enabled(n->sw, port, json_is_true(enabled));
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
		if (!isxdigit((unsigned char)hex[2 * i]) ||
		    sscanf(hex + 2 * i, "%2hhx", &n->eeprom[i]) != 1)
			return false;
	return true;
}

/* A file of an older version has none. */
static bool take_guid(struct node *n, json_t *root)
{
	json_t *guid = json_object_get(root, "guid");
	const char *text = json_string_value(guid);
	char *end;

	if (!guid)
		return true;
	if (!text || strlen(text) != 18 || strncmp(text, "0x", 2) != 0)
		return false;
	n->saved_guid = strtoull(text, &end, 16);
	return !*end;
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
	unsigned lid;

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
	if (!whole(json_object_get(root, "lid"), UR_SWITCH_LIDS, &lid) || !take_guid(n, root))
		return false;
	n->saved_lid = (uint16_t)lid;
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
	if (!n->options.common.state || access(n->options.common.state, F_OK) != 0)
		return true;
	root = json_load_file(n->options.common.state, 0, &error);
	if (!root) {
		snprintf(err, cap,
			 "--state: %s: line %d: %s; without the file, the switch starts "
			 "with its configuration",
			 n->options.common.state, error.line, error.text);
		return false;
	}
	ok = take(n, root, &why);
	if (!ok)
		snprintf(err, cap,
			 "--state: %s %s; without the file, the switch starts with its "
			 "configuration",
			 n->options.common.state, why);
	else if (n->cfg.forwarding.lids[0])
		printf("%sthe forwarding table is that of --state %s, not of [forwarding] lids\n",
		       node_prefix(n), n->options.common.state);
	json_decref(root);
	return ok;
}
