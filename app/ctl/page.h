/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PAGE_H
#define CTL_PAGE_H

#include <stddef.h>

/* The files of page/, as scripts/gen_page puts them into the program. */
struct ctl_page {
	const char *path, *type;
	const unsigned char *data;
	size_t bytes;
};
extern const struct ctl_page ctl_page[];
extern const unsigned ctl_page_cnt;

#endif
