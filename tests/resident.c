/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LeakSanitizer reads all data of a program at its end, also the 10 MB of the sanitizers themselves, most of which were never
 * used. Here the kernel maps these pages all at once. One page fault for each would take longer than most tests in a virtual
 * machine that has no page tables of its own. A kernel before 5.14 refuses, which does no harm.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

extern char __bss_start, _end; /* of the linker */

__attribute__((constructor)) static void map_data(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)&__bss_start & ~(page - 1);

	madvise((void *)from, (uintptr_t)&_end - from, MADV_POPULATE_READ);
}
