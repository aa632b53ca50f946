/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "memory.h"

#define BYTES 10000
#define KEEP  "The memory "

static uint64_t now_ns = 1;

static int memory(off_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, bytes), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static const char *result(struct memory_job *j, struct region *out)
{
	const char *wrong = NULL;

	while (!memory_poll(j, out, &wrong))
		nap();
	return wrong;
}

/* Waits until the user has room: for the thread, and the clock is moved. */
static void wait_for_room(uid_t uid)
{
	now_ns += MEMORY_NS;
	while (!memory_has_room(uid, now_ns))
		nap();
}

static const char *offer(int fd, uint64_t bytes)
{
	struct region region;
	const char *wrong;

	wait_for_room(0);
	wrong = result(memory_begin(0, fd, bytes, now_ns), &region);
	while (is_open(fd))
		nap();
	if (!wrong)
		munmap(region.at, region.bytes);
	else
		cr_assert_null(region.at);
	return wrong;
}

/* UROCED-REGION-01 */
Test(uroced_memory, a_region_has_the_size_of_its_file_for_ever)
{
	int fd = memory(BYTES, F_SEAL_SHRINK), mine = dup(fd);
	struct region region;

	cr_assert_null(result(memory_begin(0, fd, BYTES, now_ns), &region));
	cr_assert_eq(region.bytes, BYTES);
	cr_assert_eq(pwrite(mine, "here", 4, BYTES - 4), 4);
	cr_assert_eq(memcmp(region.at + BYTES - 4, "here", 4), 0);
	cr_assert_neq(ftruncate(mine, BYTES + 1), 0);
	cr_assert_neq(fallocate(mine, FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
	cr_assert_neq(fcntl(mine, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	munmap(region.at, region.bytes);
	/* Connects again with the same. */
	cr_assert_null(offer(dup(mine), BYTES));
	close(mine);
}

/* UROCED-REGION-01 */
Test(uroced_memory, other_memory_is_refused)
{
	int fd = memory(BYTES, F_SEAL_SHRINK);

	cr_assert_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 16 << 20), 0);
	cr_expect_str_eq(offer(fd, BYTES), KEEP "is larger than it says");
	cr_expect_str_eq(offer(memory(BYTES + 4096, F_SEAL_SHRINK), BYTES),
			 KEEP "is larger than it says");
	cr_expect_str_eq(offer(memory(BYTES, F_SEAL_SHRINK), BYTES + 1),
			 KEEP "is smaller than it says");
	cr_expect_str_eq(offer(memory(BYTES, F_SEAL_SHRINK | F_SEAL_SEAL), BYTES),
			 KEEP "cannot be sealed against growing");
	cr_expect_str_eq(offer(memory(BYTES, F_SEAL_GROW), BYTES),
			 KEEP "is not sealed against shrinking");
	cr_expect_str_eq(offer(memory(BYTES, F_SEAL_SHRINK | F_SEAL_WRITE), BYTES),
			 KEEP "cannot be mapped");
	cr_expect_str_eq(offer(memory(MEMORY_BYTES + 1, F_SEAL_SHRINK), MEMORY_BYTES + 1),
			 KEEP "is too large");
	cr_expect_str_eq(offer(memory(BYTES, F_SEAL_SHRINK), 0), KEEP "is too large");
	cr_expect_str_eq(offer(open("/dev/zero", O_RDWR), BYTES),
			 KEEP "is not sealed against shrinking");
	cr_expect_null(offer(memory(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), BYTES));
	cr_expect_null(offer(memory(MEMORY_BYTES, F_SEAL_SHRINK), MEMORY_BYTES));
}

/* UROCED-REGION-02 */
Test(uroced_memory, a_user_has_four_at_a_time)
{
	struct memory_job *j[MEMORY_PER_USER];

	for (unsigned i = 0; i < MEMORY_PER_USER; i++) {
		cr_assert(memory_has_room(7, now_ns));
		j[i] = memory_begin(7, memory(BYTES, F_SEAL_SHRINK), BYTES, now_ns);
	}
	cr_assert(!memory_has_room(7, now_ns));
	cr_assert(memory_has_room(8, now_ns), "another user");
	for (unsigned i = 0; i < MEMORY_PER_USER; i++)
		memory_drop(j[i]);
	cr_assert(!memory_has_room(7, now_ns + MEMORY_NS - 1));
	wait_for_room(7);
}

/* UROCED-REGION-02: a job that is dropped leaves no mapping behind, whether the thread was first or not. */
Test(uroced_memory, what_is_dropped_is_unmapped)
{
	int mine = memory(BYTES, F_SEAL_SHRINK | F_SEAL_GROW);

	for (unsigned i = 0; i < 200; i++) {
		struct memory_job *j;

		wait_for_room(0);
		j = memory_begin(0, dup(mine), BYTES, now_ns);
		if (i % 2)
			nap();
		memory_drop(j);
	}
	/* The kernel refuses this seal as long as there is a mapping that may be written. */
	for (unsigned i = 0; i < 2000 && fcntl(mine, F_ADD_SEALS, F_SEAL_WRITE) != 0; i++)
		nap();
	cr_assert(fcntl(mine, F_GET_SEALS) & F_SEAL_WRITE);
	close(mine);
}
