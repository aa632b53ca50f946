/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_SCENARIO_H
#define INTEROP_SCENARIO_H

#include "session.h"

/*
 * Runs a scenario to its end at our end, over a link that was just connected, and tells the peer
 * when it fails. `note` gets what is worth printing of one that did not.
 */
bool run_scenario(struct session *s, char *note, size_t note_bytes);

#endif
