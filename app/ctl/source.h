/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SOURCE_H
#define CTL_SOURCE_H

#include "session.h"

/*
 * The table of source routes: by which ports a request leaves each node on its way, and its response on the way back.
 * As JSON: a list of {"node", "guid", "description", "there": [port, ...], "back": [port, ...]}. What is loaded needs "guid" and "there".
 */

/* The routes of the table --source-routes are used from now on. False: a sentence was printed. */
bool ctl_load_source_routes(struct ctl_session *s);

/*
 * Prints the directed routes to all nodes, and back. With --source-routes each node of the table is asked by its route.
 * False: a sentence was printed.
 */
bool ctl_source_routes(struct ctl_session *s);

#endif
