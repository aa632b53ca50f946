/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include <stddef.h>

#include "control.h"

/*
 * What joins a client and its server: the control connection, on which the client asks and the
 * server answers, and the connections of the session's queue pairs. The ends
 * exchange the addresses of UD queue pairs. Errors fail the session, with a sentence. One thread.
 */
struct perf_client;

#define PERF_LINK_TRANSIT_MAX 64 /* connections set up or torn down at once */

/* The state of a connection, of connect mode or of a session's queue pair. */
enum perf_link {
	PERF_LINK_NONE,
	PERF_LINK_CONNECTING,
	PERF_LINK_UP,
	PERF_LINK_CLOSING,
	PERF_LINK_DOWN,
};

/* The control connection. Close it also when it could not be opened. */
bool perf_link_open(struct perf_client *c);
void perf_link_close(struct perf_client *c);

/* Handles CM events and messages on the control connections of all clients. Call it often. */
void perf_link_events(struct perf_client *c);

/*
 * Sends a request and waits for the answer, while the traffic continues. False, after a sentence,
 * if no answer of the expected kind arrived in time.
 */
bool perf_link_ask(struct perf_client *c, enum perf_message kind, const void *payload, size_t bytes,
		   enum perf_message answer, struct perf_received *r);

/* Starts to connect a new queue pair idx, or to disconnect it; `links` has the progress. */
bool perf_link_connect(struct perf_client *c, uint32_t idx, uint32_t gen);
void perf_link_disconnect(struct perf_client *c, uint32_t idx);

/* Connects or disconnects all queue pairs of the session; returns when that is done. */
bool perf_link_connect_all(struct perf_client *c);
void perf_link_disconnect_all(struct perf_client *c);

#endif
