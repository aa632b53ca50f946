/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SOURCE_H
#define CTL_SOURCE_H

#include "session.h"

/* Prints the directed routes to all nodes, and back. False: a sentence was printed. */
bool ctl_source_routes(struct ctl_session *s);

#endif
