/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_KEEP_H
#define UROCED_KEEP_H

#include "lease.h"

/*
 * The file of --leases: a line "ADDRESS UID SECRET" for each lease and each address in quarantine, so that a daemon that is
 * started again keeps addresses for the processes that have them. With one address for all, the number of a client in the place
 * of the address: 0.0.0.N. Only its owner may read it.
 */

/* NULL, or what is wrong (static, or strerror()'s). A file that is not there is not wrong. */
const char *keep_read(const char *file, struct lease_table *t, uint64_t now_ns);
/* To be freed; NULL: no memory. */
char *keep_text(const struct lease_table *t, size_t *len);

#endif
