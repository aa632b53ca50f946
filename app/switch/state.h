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

/* False: it cannot be written; the old one is there still. */
bool state_save(struct node *n);

#endif
