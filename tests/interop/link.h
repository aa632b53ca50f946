/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_LINK_H
#define INTEROP_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "device.h"

/*
 * Lines over TCP between the two programs of a scenario. While a program waits for a line, it runs
 * its endpoint. A line "fail REASON" is the peer's last; any wait then fails with that reason.
 */
struct link {
	int fd;
	struct device *dev;
	char buf[2048];
	size_t used;
	char peer_failure[512];
};

/* Connects to HOST:PORT. Retries for a while, because a guest may be slow to listen. */
bool link_connect(struct link *l, const char *host_port);
void link_close(struct link *l);

bool link_send(struct link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Waits at most `ms` milliseconds. 1: a line; 0: none yet; -1: there will be none. */
int link_recv(struct link *l, char *line, size_t cap, unsigned ms);

/* A failure of the peer that has already arrived, else NULL. Other lines are kept. */
const char *link_peer_failure(struct link *l);

unsigned long long now_ms(void);

#endif
