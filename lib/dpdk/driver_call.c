/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "dpdk/driver_call.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct search {
	const char *driver, *function;
	ur_driver_fn with;
	int rc;
};

/* The part of a shared object's dynamic section that is needed; the loader has set the addresses. */
struct object {
	const ElfW(Rela) * jumps;
	size_t jump_cnt;
	const ElfW(Sym) * symbols;
	const char *names;
};

static struct object read_dynamic(const ElfW(Dyn) * d)
{
	struct object o = {0};

	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_JMPREL:
			o.jumps = (const ElfW(Rela) *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			o.jump_cnt = d->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_SYMTAB:
			o.symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			o.names = (const char *)d->d_un.d_ptr;
			break;
		}
	}
	return o;
}

/* Whether the loader has made the place read-only, after it had filled the table in. */
static bool is_protected(const struct dl_phdr_info *info, uintptr_t at)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_GNU_RELRO &&
		    at - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return true;
	}
	return false;
}

static int write_slot(const struct dl_phdr_info *info, uintptr_t slot, ur_driver_fn with)
{
	uintptr_t page = (uintptr_t)getpagesize();
	void *at = (void *)(slot & ~(page - 1));
	bool sealed = is_protected(info, slot);

	if (sealed && mprotect(at, page, PROT_READ | PROT_WRITE) != 0)
		return -errno;
	memcpy((void *)slot, &with, sizeof(with));
	return sealed && mprotect(at, page, PROT_READ) != 0 ? -errno : 0;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct object o = {0};

	(void)size;
	if (strstr(info->dlpi_name, s->driver) == NULL)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			o = read_dynamic(
				(const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
	if (o.symbols == NULL || o.names == NULL)
		return 0;
	for (size_t i = 0; i < o.jump_cnt; i++) {
		const ElfW(Sym) *sym = &o.symbols[ELF64_R_SYM(o.jumps[i].r_info)];

		if (strcmp(o.names + sym->st_name, s->function) == 0)
			s->rc = write_slot(info, info->dlpi_addr + o.jumps[i].r_offset, s->with);
	}
	return 1;
}

int ur_driver_call_replace(const char *driver, const char *function, ur_driver_fn with)
{
	struct search s = {driver, function, with, -ENOENT};

	dl_iterate_phdr(visit, &s);
	return s.rc;
}
