/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The FIFO that a subnet manager holds open (umad_get_issm_path()). Opening a FIFO for reading without blocking
 * succeeds at once; inotify says that it happened. Opening the FIFO for writing then succeeds exactly while it has
 * a reader, and that end reports POLLERR when the last reader is gone.
 */
#ifndef HCA_ISSM_H
#define HCA_ISSM_H

#include <stdbool.h>

struct issm {
	char path[108];
	int inotify; /* poll for reading, then call issm_update() */
	int writer;  /* -1: no reader. Poll for errors, then call issm_update() */
};

/* Makes the FIFO; 0, or a negative errno. */
int issm_open(struct issm *s, const char *path);
void issm_close(struct issm *s);
/* True while a program holds the FIFO open. */
bool issm_update(struct issm *s);

#endif
