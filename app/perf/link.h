/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include <stddef.h>

#include "control.h"

/*
 * What joins a client and its server: the control connection, on which the client asks and the
 * server answers, and the connections of the session's queue pairs. Of datagrams' queue pairs each
 * side tells the other. What goes wrong fails the session, with a sentence. One thread.
 */
struct perf_client;

#define PERF_LINK_TRANSIT_MAX 64 /* connections set up or torn down at once */

/* A connection of connect mode or a queue pair's of a session: where it stands. */
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

/* Handles what came by CM and on the control connections, of all clients. Call it often. */
void perf_link_events(struct perf_client *c);

/*
 * Asks the server and waits for the answer, while the traffic goes on. False, after a sentence,
 * when there was none of the kind wanted within the time.
 */
bool perf_link_ask(struct perf_client *c, enum perf_message kind, const void *payload, size_t bytes,
		   enum perf_message answer, struct perf_received *r);

/* Starts to connect a new queue pair idx; to disconnect it. `links` tells when it has happened. */
bool perf_link_connect(struct perf_client *c, uint32_t idx, uint32_t gen);
void perf_link_disconnect(struct perf_client *c, uint32_t idx);

/* All queue pairs of the session; returns when it has happened. */
bool perf_link_connect_all(struct perf_client *c);
void perf_link_disconnect_all(struct perf_client *c);

#endif
