/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_STATE_H
#define SWITCH_STATE_H

#include "node.h"

/*
 * The file of --state: what management has set, so that a switch that is started again forwards as before, without a
 * manager. JSON; replaced as a whole.
 */

/*
 * Reads it into the switch and the E2PROM, before the agent is made. A file that is not there is no error.
 * False: a sentence in `err`.
 */
bool state_load(struct node *n, char *err, size_t cap);

/* Starts the thread that writes it: it may wait for the disk. Without --state these do nothing. */
bool state_start(struct node *n, char *err, size_t cap);
/* Has it written if something has changed. What cannot be written is tried again until it is. */
void state_save(struct node *n);
/* Waits until it is written. */
void state_end(struct node *n);

#endif
