/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_DOZE_H
#define SWITCH_DOZE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * SWITCH-DOZE-01: a sleep of the program that something to do ends early. One for all switches of the process.
 * Thread class: the one that forwards.
 */

/*
 * From now on `fd` ends a doze when it becomes readable. It need not be read: only what comes after the last doze counts. Before
 * a descriptor that has a copy elsewhere is closed, it is forgotten. False: it is not watched.
 */
bool doze_watch(int fd);
void doze_forget(int fd);

/* Sleeps for `ns` nanoseconds, less than a second, or until there may be something to do: then true. */
bool doze(uint64_t ns);

#endif
