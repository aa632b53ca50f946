/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_HTTP_SERVER_H
#define APP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <microhttpd.h>

/*
 * An HTTP server in a thread of its own, by libmicrohttpd: the page of 'uroce-ctl web', and 'uroce-perf --metrics'. What is
 * answered is the caller's matter.
 *
 * Clients are not trusted: a connection beyond `clients` is refused, and each has `client_bytes` for its request and
 * `client_s` seconds for everything, however slowly bytes arrive.
 *
 * Thread class: the functions below, the main thread.
 */
struct http_server;

struct http_server_attr {
	struct sockaddr_storage addr; /* IPv4 or IPv6; port 0: a free one */
	/*
	 * Wait by epoll, not by select. With epoll the library misses the end of a connection that was closed before it was
	 * accepted; with select descriptors must be below FD_SETSIZE.
	 */
	bool epoll;
	unsigned clients;
	size_t client_bytes;
	unsigned client_s;
	/* Queues a response. Called by the server's thread. */
	enum MHD_Result (*answer)(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method);
	void *ctx;
};

/* 0, or a positive errno and *server is NULL. The thread blocks all signals. */
int http_server_start(struct http_server **server, const struct http_server_attr *attr);

/* The TCP port on which it listens. */
uint16_t http_server_port(const struct http_server *server);

/* Closes all connections and ends the thread. Ignores NULL. */
void http_server_stop(struct http_server *server);

#endif
