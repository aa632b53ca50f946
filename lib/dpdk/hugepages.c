/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/hugepages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dpdk/eal.h"

#define DIRECTORY	 "/sys/kernel/mm/hugepages"
#define PATIENCE_TRIES	 500
#define PATIENCE_STEP_NS 10000000

static uint64_t read_number(const char *dir, const char *file)
{
	unsigned long long value = 0;
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), DIRECTORY "/%s/%s", dir, file);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

bool ur_hugepages_map(uint32_t mb)
{
	size_t len = (size_t)(mb + (mb & 1)) << 20;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		       -1, 0);
	bool ok;

	if (p == MAP_FAILED)
		return false;
	/* Older kernels do not have this call; then the mapping must suffice. */
	ok = madvise(p, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
	munmap(p, len);
	return ok;
}

/* The kernel counts pages reserved by mappings as free, but they are not available. */
uint64_t ur_eal_free_hugepages_mb(void)
{
	uint64_t kb_sum = 0;
	struct dirent *entry;
	DIR *d = opendir(DIRECTORY);

	if (d == NULL)
		return 0;
	while ((entry = readdir(d)) != NULL) {
		unsigned long kb;
		uint64_t idle, promised;

		if (sscanf(entry->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		idle = read_number(entry->d_name, "free_hugepages");
		promised = read_number(entry->d_name, "resv_hugepages");
		kb_sum += idle > promised ? kb * (idle - promised) : 0;
	}
	closedir(d);
	return kb_sum != 0 && ur_hugepages_map(2) ? kb_sum / 1024 : 0;
}

uint64_t ur_eal_nr_hugepages_for(uint32_t mb)
{
	static const char dir[] = "hugepages-2048kB";
	uint64_t total = read_number(dir, "nr_hugepages"),
		 idle = read_number(dir, "free_hugepages");
	uint64_t promised = read_number(dir, "resv_hugepages");

	idle = idle > promised ? idle - promised : 0;
	/* 16 more, because the EAL rounds up and other processes may take a few pages. */
	return (total > idle ? total - idle : 0) + mb / 2 + 16;
}

int ur_hugepages_lock(void)
{
	const struct timespec nap = {.tv_nsec = PATIENCE_STEP_NS};
	/* This file has the same inode in every network namespace and for every user. */
	int fd = open("/proc/sys/vm/nr_hugepages", O_RDONLY | O_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < PATIENCE_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&nap, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}
