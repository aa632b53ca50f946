/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_COUNTERS_H
#define UR_DPDK_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * The registry of queries to a running endpoint. Each entry is a path ("/uroce/port"),
 * a function that emits names and values, and a line of help. Two readers use the same list:
 * rte_telemetry (dpdk-telemetry.py: "/uroce/port,0") and JSON for programs. Path "/uroce/list"
 * lists all others and is always there.
 *
 * Thread class: every function here may be called by any thread at any time; the registry has a
 * mutex that no worker takes. Callbacks run on the calling thread (for example the telemetry thread)
 * under that mutex, beside running workers: they read counters, change nothing, do not block and
 * do not call the registry.
 */

/* Collects the values of a callback; valid during the call. */
struct ur_emit;

/*
 * Names are lower case letters, digits, '_' and '/'; any other character is sent as '_'. Values
 * past the reader's limits (256 names in one dictionary of rte_telemetry) are left out of
 * telemetry and show in JSON.
 */
void ur_emit_u64(struct ur_emit *e, const char *name, uint64_t value);
void ur_emit_str(struct ur_emit *e, const char *name, const char *value);
/* 16 bytes, an IPv4 address as a mapped one. */
void ur_emit_address(struct ur_emit *e, const char *name, const uint8_t address[16]);

/* Begins a nested dictionary, at most UR_EMIT_DEPTH deep; ur_emit_end() ends it. */
#define UR_EMIT_DEPTH 4
void ur_emit_begin(struct ur_emit *e, const char *name);
void ur_emit_end(struct ur_emit *e);

/* values[i] under name(i), for i in [0, n): the shape of counters made from an X-macro. */
void ur_emit_array(struct ur_emit *e, const char *(*name)(unsigned idx), const uint64_t *values,
		   unsigned n);

/*
 * Emits the values that `params` names (the text after the comma, "" if there is none). Returns 0, or a
 * negative errno if the parameters name nothing (then the emitted values are discarded).
 */
typedef int (*ur_counters_fn)(struct ur_emit *e, const char *params, void *ctx);

/*
 * Adds `path` ("/uroce/qp": a slash, then letters, digits, '_' and '/', at most 47 characters).
 * `help` is one line. Strings are copied; `ctx` must live until the entry is unregistered.
 * Returns 0; -EEXIST when the path is taken, -EINVAL for a bad path, -ENOSPC when the table (64
 * entries) is full. Works with and without telemetry in the EAL.
 */
int ur_counters_register(const char *path, ur_counters_fn fn, void *ctx, const char *help);

/* Removes the entry; when it returns no callback of it runs. Unknown paths are ignored. */
void ur_counters_unregister(const char *path);

/*
 * Returns the answer to `request` ("/uroce/qp,17") as a JSON object, which the caller releases with
 * json_decref(). NULL: the path or its parameters name nothing, or memory is out.
 */
json_t *ur_counters_json(const char *request);

/* Returns the answers of all entries that need no parameters, as {"/uroce/port": {...}, ...}; or NULL. */
json_t *ur_counters_json_all(void);

#endif
