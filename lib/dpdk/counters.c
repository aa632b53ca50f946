/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/counters.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>

#include "dpdk/compat.h"
#include "wire/packet.h"

#define ENTRY_CNT  64
#define PATH_BYTES 48
#define HELP_BYTES 128

struct entry {
	char path[PATH_BYTES];
	char help[HELP_BYTES];
	ur_counters_fn fn; /* NULL: free, or unregistered */
	void *ctx;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry registry[ENTRY_CNT];

/* One reader: exactly one of the two stacks is in use; level [0, depth] are open. */
struct ur_emit {
	struct rte_tel_data *tel[UR_EMIT_DEPTH];
	json_t *json[UR_EMIT_DEPTH];
	char name[UR_EMIT_DEPTH][RTE_TEL_MAX_STRING_LEN];
	unsigned depth;
	unsigned too_deep; /* begins that were refused, to match their ends */
};

static void clean_name(char *dst, const char *src)
{
	size_t i;

	for (i = 0; src[i] && i < RTE_TEL_MAX_STRING_LEN - 1; i++) {
		char c = src[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/'))
			c = '_';
		dst[i] = c;
	}
	dst[i] = '\0';
}

void ur_emit_u64(struct ur_emit *e, const char *name, uint64_t value)
{
	char clean[RTE_TEL_MAX_STRING_LEN];

	if (e->too_deep)
		return;
	clean_name(clean, name);
	if (e->json[0])
		json_object_set_new(e->json[e->depth], clean, json_integer((json_int_t)value));
	else if (e->tel[e->depth])
		rte_tel_data_add_dict_uint(e->tel[e->depth], clean, value);
}

void ur_emit_str(struct ur_emit *e, const char *name, const char *value)
{
	char clean[RTE_TEL_MAX_STRING_LEN];

	if (e->too_deep)
		return;
	clean_name(clean, name);
	if (e->json[0])
		json_object_set_new(e->json[e->depth], clean, json_string(value));
	else if (e->tel[e->depth])
		rte_tel_data_add_dict_string(e->tel[e->depth], clean, value);
}

void ur_emit_address(struct ur_emit *e, const char *name, const uint8_t address[16])
{
	char text[INET6_ADDRSTRLEN];
	struct ur_gid gid;

	memcpy(gid.b, address, sizeof(gid.b));
	if (ur_gid_is_ipv4(&gid))
		inet_ntop(AF_INET, gid.b + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid.b, text, sizeof(text));
	ur_emit_str(e, name, text);
}

void ur_emit_begin(struct ur_emit *e, const char *name)
{
	unsigned level = e->depth + 1;

	if (e->too_deep || level == UR_EMIT_DEPTH) {
		e->too_deep++;
		return;
	}
	clean_name(e->name[level], name);
	if (e->json[0]) {
		e->json[level] = json_object();
	} else {
		e->tel[level] = rte_tel_data_alloc();
		if (e->tel[level])
			rte_tel_data_start_dict(e->tel[level]);
	}
	e->depth = level;
}

void ur_emit_end(struct ur_emit *e)
{
	unsigned level = e->depth;

	if (e->too_deep) {
		e->too_deep--;
		return;
	}
	if (level == 0)
		return;
	e->depth = level - 1;
	if (e->json[0]) {
		json_object_set_new(e->json[e->depth], e->name[level], e->json[level]);
	} else if (e->tel[level]) {
		if (!e->tel[e->depth] ||
		    rte_tel_data_add_dict_container(e->tel[e->depth], e->name[level], e->tel[level],
						    0) < 0)
			rte_tel_data_free(e->tel[level]);
	}
}

void ur_emit_array(struct ur_emit *e, const char *(*name)(unsigned idx), const uint64_t *values,
		   unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ur_emit_u64(e, name(i), values[i]);
}

static int emit_list(struct ur_emit *e, const char *params, void *ctx)
{
	(void)params;
	(void)ctx;
	for (unsigned i = 0; i < ENTRY_CNT; i++)
		if (registry[i].fn)
			ur_emit_str(e, registry[i].path, registry[i].help);
	return 0;
}

static const struct entry list_entry = {"/uroce/list", "lists all queries", emit_list, NULL};

/* The entry of a path that is in use, NULL when there is none; under the lock. */
static const struct entry *find(const char *path, size_t len)
{
	if (len == strlen(list_entry.path) && memcmp(path, list_entry.path, len) == 0)
		return &list_entry;
	for (unsigned i = 0; i < ENTRY_CNT; i++)
		if (registry[i].fn && strlen(registry[i].path) == len &&
		    memcmp(registry[i].path, path, len) == 0)
			return &registry[i];
	return NULL;
}

static void close_levels(struct ur_emit *e)
{
	e->too_deep = 0;
	while (e->depth)
		ur_emit_end(e);
}

static int telemetry_answer(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct ur_emit e = {.tel = {d}};
	const struct entry *entry;
	int rc = -ENOENT;

	rte_tel_data_start_dict(d);
	pthread_mutex_lock(&registry_lock);
	entry = find(cmd, strlen(cmd));
	if (entry)
		rc = entry->fn(&e, params ? params : "", entry->ctx);
	pthread_mutex_unlock(&registry_lock);
	close_levels(&e);
	return rc;
}

static json_t *json_answer(const struct entry *entry, const char *params)
{
	struct ur_emit e = {.json = {json_object()}};
	int rc;

	if (!e.json[0])
		return NULL;
	rc = entry->fn(&e, params, entry->ctx);
	close_levels(&e);
	if (rc < 0) {
		json_decref(e.json[0]);
		return NULL;
	}
	return e.json[0];
}

static bool path_ok(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && len > 1 && len < PATH_BYTES &&
	       strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/") ==
		       len;
}

static int register_locked(const char *path, ur_counters_fn fn, void *ctx, const char *help)
{
	struct entry *slot = NULL;

	if (find(path, strlen(path)))
		return -EEXIST;
	for (unsigned i = 0; i < ENTRY_CNT && !slot; i++)
		if (!registry[i].fn)
			slot = &registry[i];
	if (!slot)
		return -ENOSPC;
	snprintf(slot->path, sizeof(slot->path), "%s", path);
	snprintf(slot->help, sizeof(slot->help), "%s", help);
	slot->ctx = ctx;
	slot->fn = fn;
	return 0;
}

int ur_counters_register(const char *path, ur_counters_fn fn, void *ctx, const char *help)
{
	static bool list_known;
	bool first = false;
	int rc;

	if (!path_ok(path) || !fn || !help)
		return -EINVAL;
	pthread_mutex_lock(&registry_lock);
	rc = register_locked(path, fn, ctx, help);
	if (rc == 0) {
		first = !list_known;
		list_known = true;
	}
	pthread_mutex_unlock(&registry_lock);
	if (rc == 0) {
		/* Telemetry cannot remove a path, so one that is registered again is known already. */
		if (first)
			rte_telemetry_register_cmd(list_entry.path, telemetry_answer,
						   list_entry.help);
		rte_telemetry_register_cmd(path, telemetry_answer, help);
	}
	return rc;
}

void ur_counters_unregister(const char *path)
{
	pthread_mutex_lock(&registry_lock);
	for (unsigned i = 0; i < ENTRY_CNT; i++)
		if (registry[i].fn && strcmp(registry[i].path, path) == 0)
			registry[i].fn = NULL;
	pthread_mutex_unlock(&registry_lock);
}

json_t *ur_counters_json(const char *request)
{
	const char *comma = strchr(request, ',');
	size_t len = comma ? (size_t)(comma - request) : strlen(request);
	const struct entry *entry;
	json_t *json = NULL;

	pthread_mutex_lock(&registry_lock);
	entry = find(request, len);
	if (entry)
		json = json_answer(entry, comma ? comma + 1 : "");
	pthread_mutex_unlock(&registry_lock);
	return json;
}

json_t *ur_counters_json_all(void)
{
	json_t *all = json_object();

	if (!all)
		return NULL;
	pthread_mutex_lock(&registry_lock);
	for (unsigned i = 0; i < ENTRY_CNT; i++) {
		json_t *one = registry[i].fn ? json_answer(&registry[i], "") : NULL;

		if (one)
			json_object_set_new(all, registry[i].path, one);
	}
	pthread_mutex_unlock(&registry_lock);
	return all;
}
