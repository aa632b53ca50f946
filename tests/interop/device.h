/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_DEVICE_H
#define INTEROP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "verbs.h"

/* The device under test, opened: uroce's endpoint (device_uroce.c), or rxe0 (device_rxe.c). */
struct device {
	struct ibv_context *ctx;
	unsigned gid_cnt;
};

/* `config` and `set` (NULL-terminated) are for uroce. On failure returns false, with a sentence on stderr. */
bool device_open(struct device *dev, const char *config, const char *const *set);
bool device_close(struct device *dev);

/* Runs the worker of an inline endpoint. Returns 0 if there was nothing to do. */
unsigned device_progress(struct device *dev);

/*
 * Text for matrix.py: what uroce's endpoint has lost by [impair] and sent again since the last
 * call. Empty without losses, and for rxe.
 */
void device_losses(struct device *dev, char *text, size_t bytes);

/* The index of the GID of this kind: "4" IPv4, "ll" IPv6 link-local, "6" global IPv6; -1: none. */
int device_gid(struct device *dev, const char *kind, union ibv_gid *gid);

#endif
