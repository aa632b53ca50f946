/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's side of the connection to uroce-hca. All functions may be called by any thread. Errors are negative
 * errnos.
 */
#ifndef UR_UMAD_CLIENT_H
#define UR_UMAD_CLIENT_H

#include <stddef.h>

#include "umad/message.h"

extern int ur_umad_debug_level;

/* Prints to stderr if umad_debug() was called with at least the level. */
void ur_umad_debug(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says once, on stderr, that there is no channel adapter, and how to start one. */
void ur_umad_explain_absence(void);

/* The directory of the sockets: $UROCE_UMAD_DIR or /run/uroce/umad. */
const char *ur_umad_dir(void);

/* A connection to the owner of the adapter, or a negative errno: -ENODEV if it does not run. */
int ur_umad_connect(const char *ca_name);

/* The adapter's description; 0, or a negative errno. */
int ur_umad_query(const char *ca_name, struct ur_umad_ca *ca);

/*
 * The name and port that a program means: NULL for the first adapter with an active port, else the first of all; port 0
 * for the only one. 0, or -ENODEV.
 */
int ur_umad_resolve(const char *ca_name, int port, struct ur_umad_ca *ca);

/* Names of the adapters that answer, sorted; their number. */
int ur_umad_list(char (*names)[UMAD_CA_NAME_LEN], int max);

/* Sends a message on an open port and waits for its answer on a socket of its own: the result's value. */
int ur_umad_ask(int fd, const void *message, size_t bytes);

#endif
