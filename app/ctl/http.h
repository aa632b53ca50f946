/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_HTTP_H
#define CTL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * The HTTP server of 'web', in a thread of its own. It answers GET and HEAD of a page that is part of the program, and of
 * texts that are given to it; a request never makes anything else happen. Requests are answered if their Host is the
 * address, or localhost: a page of somewhere else, whose name was made to lead here, gets nothing.
 *
 * Clients are not trusted: there are at most CTL_HTTP_CLIENTS at a time, each has CTL_HTTP_CLIENT_BYTES for its request and
 * CTL_HTTP_CLIENT_S seconds for everything.
 */
#define CTL_HTTP_CLIENTS      16
#define CTL_HTTP_CLIENT_BYTES 16384
#define CTL_HTTP_CLIENT_S     5

/* What changes: X(NAME, path) */
#define CTL_HTTP_TEXTS(X)                                                                          \
	X(FABRIC, "/fabric.json")                                                                  \
	X(FAULTS, "/faults.json")

enum ctl_http_text {
#define X(NAME, path) CTL_HTTP_##NAME,
	CTL_HTTP_TEXTS(X)
#undef X
		CTL_HTTP_TEXT_CNT
};

struct ctl_http;

/* "127.0.0.1:8080" or "[::1]:8080"; port 0: a free one. False: it is neither. */
bool ctl_http_parse(const char *text, struct sockaddr_storage *addr);

/* NULL: a sentence was printed. */
struct ctl_http *ctl_http_start(const char *listen_on);
/* "http://127.0.0.1:8080/" */
void ctl_http_url(const struct ctl_http *h, char *url, size_t bytes);
/* Replaces a text, which was allocated and belongs to the server from here on. NULL: there is no memory for one. */
void ctl_http_show(struct ctl_http *h, enum ctl_http_text which, char *text);
/* Closes all connections and ends the thread. Ignores NULL. */
void ctl_http_stop(struct ctl_http *h);

#endif
