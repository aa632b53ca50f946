/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter's sockets: programs that ask what the adapter is, or have its port open (lib/umad/message.h). The server
 * never waits for a program; what a program does not fetch is queued, up to a limit, and then dropped.
 */
#ifndef HCA_SERVER_H
#define HCA_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "listener.h"
#include "umad/mux.h"

struct pollfd;

#define HCA_CONNECTIONS_MAX 128
#define HCA_QUEUE_MAX	    65536	/* messages that one program has not fetched ... */
#define HCA_QUEUE_BYTES	    (64u << 20) /* ... and their bytes */

struct server_message {
	STAILQ_ENTRY(server_message) link;
	struct ur_umad_mad head;
	uint8_t mad[];
};

struct server;

struct server_conn {
	TAILQ_ENTRY(server_conn) link;
	struct server *server;
	int fd;
	bool dead;
	struct mux_program *program; /* NULL: the port is not open */
	STAILQ_HEAD(, server_message) queue;
	unsigned queued;
	size_t queued_bytes;
};

struct server {
	struct listener listener;
	struct mux *mux;
	void (*describe)(void *arg, struct ur_umad_ca *ca);
	void *arg;
	uint8_t *room; /* of UR_UMAD_INLINE bytes */
	TAILQ_HEAD(, server_conn) conns;
	unsigned conns_cnt;
	uint64_t dropped; /* messages that a program did not fetch in time */
};

/* Listens at the path. False: a phrase in `err`. */
bool server_open(struct server *s, const char *path, struct mux *mux,
		 void (*describe)(void *arg, struct ur_umad_ca *ca), void *arg, char *err,
		 size_t cap);
void server_close(struct server *s);

/* Fills in what to poll for; at most 1 + HCA_CONNECTIONS_MAX entries. Returns their number. */
unsigned server_poll_set(const struct server *s, struct pollfd *fds);
/* Serves what the poll found, with the entries as server_poll_set() made them. */
void server_serve(struct server *s, const struct pollfd *fds, uint64_t now);

/* For struct mux_ops: program is a struct server_conn. */
void server_deliver(void *program, const struct ur_umad_mad *head, const uint8_t *mad);

/* Whether a program has the port open. */
bool server_has_program(const struct server *s);

#endif
