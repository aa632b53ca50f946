/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PACE_H
#define CTL_PACE_H

#include "session.h"

/* Time and input of the commands that run until they are ended: 'top' and 'web'. */

/* From now on SIGINT and SIGTERM end waiting, and ctl_is_ended() is true after one of them. */
void ctl_catch_signals(void);
bool ctl_is_ended(void);

/*
 * Lets time pass until `until_ns` on the clock of the fabric. A model's clock is made to run with the real one. Returns
 * earlier, with the character, if one can be read from `fd` (-1: none); otherwise 0. At the end of that input: 'q'.
 */
int ctl_pace(struct ctl_session *s, uint64_t until_ns, int fd);

/* When the next pass is due: a step after the last one was, or after now, so that those that were missed are left out. */
uint64_t ctl_next_due(struct ctl_session *s, uint64_t due, double step_s);

#endif
