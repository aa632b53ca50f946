/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_SCENARIO_H
#define INTEROP_SCENARIO_H

#include "session.h"

/*
 * Runs our end of a scenario over a new link. On failure it informs the peer. On success `note`
 * gets a text to print.
 */
bool run_scenario(struct session *s, char *note, size_t note_bytes);

#endif
