/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FILE_REPLACE_FILE_H
#define UR_FILE_REPLACE_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Replaces a file: at any time, also after a crash, the old one or the new one is there, whole and on the disk. Only its
 * owner may read it. The new one is written as FILE.new beside it, which must not be another program's: a
 * link there is removed, not followed.
 *
 * Returns 0 or an errno value; then the old one is there still, or, if only its directory could not be synced, the new
 * one. It waits for the disk. Thread class: control.
 */
int ur_replace_file(const char *file, const void *bytes, size_t len);

/*
 * The same without a promise about the disk: whole after the end of any process, but after a crash of the machine it may be empty. A
 * busy disk makes it wait all the same. `mode`: its permissions, less the umask.
 */
int ur_replace_file_unsynced(const char *file, const void *bytes, size_t len, mode_t mode);

#endif
