/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_ADD_SEALS */
#endif
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "aside.h"

#define HUGE_BYTES                                                                                 \
	(UINT64_C(2) << 20) /* the kernel may have used a large page for the end of the file */
#define SLICE_BYTES (UINT64_C(256) << 10)

enum state { WORKING, READY, DROPPED };

struct memory_job {
	/* By the thread that forwards: */
	bool used;
	bool held;    /* its result has not been fetched or refused */
	bool started; /* there was a thread for it */
	uint64_t until_ns;
	uid_t uid;
	int fd;
	uint64_t bytes;
	struct region region; /* READY: both */
	const char *wrong;
	_Atomic enum state state;
	atomic_bool closed; /* its result is no longer wanted */
};

/* Static: a thread whose close() does not return uses it until the process ends. */
static struct memory_job job[MEMORY_MAX];

/* ---- the thread of a descriptor ---- */

/*
 * After this the file has the size of its region for ever. It may have holes, and get new ones: pages come back as they are
 * touched, and an access to one waits until the hole is made, but not for more pages than a region has.
 */
static const char *seal(int fd, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), most = (bytes + page - 1) / page * page;
	struct stat st;
	struct statfs fs;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return "The memory is not sealed against shrinking";
	if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
		return "The memory is not ordinary shared memory";
	if (!bytes || bytes > MEMORY_BYTES)
		return "The memory is too large";
	if (!(seals & F_SEAL_GROW) && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return "The memory cannot be sealed against growing";
	if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size < bytes)
		return "The memory is smaller than it says";
	/* Pages may have been allocated beyond the end, before the seal. */
	if ((uint64_t)st.st_size > most || (uint64_t)st.st_blocks * 512 > most + HUGE_BYTES)
		return "The memory is larger than it says";
	return NULL;
}

/* In slices, because the thread that forwards needs the same lock for its own mappings. */
static bool populate(uint8_t *at, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes; done += SLICE_BYTES) {
		uint64_t slice = bytes - done < SLICE_BYTES ? bytes - done : SLICE_BYTES;

		/* EINVAL: Linux before 5.14. Pages come when they are touched. */
		if (madvise(at + done, slice, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
			return false;
	}
	return true;
}

static const char *map(struct memory_job *j)
{
	const char *wrong = seal(j->fd, j->bytes);
	void *at;

	if (wrong)
		return wrong;
	at = mmap(NULL, j->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, 0);
	if (at == MAP_FAILED)
		return "The memory cannot be mapped";
	if (!populate(at, j->bytes)) {
		munmap(at, j->bytes);
		return "There is no memory";
	}
	j->region = (struct region){at, j->bytes};
	return NULL;
}

static void unmap(struct memory_job *j)
{
	if (j->region.at)
		munmap(j->region.at, j->region.bytes);
}

static void *work(void *arg)
{
	struct memory_job *j = arg;

	if (atomic_load(&j->state) == WORKING) {
		j->wrong = map(j);
		if (atomic_exchange(&j->state, READY) == DROPPED)
			unmap(j);
	}
	close(j->fd);
	atomic_store(&j->closed, true);
	return NULL;
}

/* ---- the thread that forwards ---- */

static bool is_idle(struct memory_job *j, uint64_t now_ns)
{
	/* There was no thread for it: another attempt, to close its descriptor. */
	if (j->used && !j->started)
		j->started = aside_start(work, j);
	if (j->used && !j->held && j->until_ns <= now_ns && atomic_load(&j->closed))
		j->used = false;
	return !j->used;
}

static struct memory_job *idle(uid_t uid, uint64_t now_ns)
{
	struct memory_job *found = NULL;
	unsigned same = 0;

	for (unsigned i = 0; i < MEMORY_MAX; i++) {
		if (is_idle(&job[i], now_ns))
			found = &job[i];
		else
			same += job[i].uid == uid;
	}
	return same < MEMORY_PER_USER ? found : NULL;
}

bool memory_has_room(uid_t uid, uint64_t now_ns)
{
	return idle(uid, now_ns);
}

struct memory_job *memory_begin(uid_t uid, int fd, uint64_t bytes, uint64_t now_ns)
{
	struct memory_job *j = idle(uid, now_ns);

	j->used = j->held = true;
	j->until_ns = now_ns + MEMORY_NS;
	j->uid = uid;
	j->fd = fd;
	j->bytes = bytes;
	j->region = (struct region){0};
	j->wrong = NULL;
	atomic_store(&j->state, WORKING);
	atomic_store(&j->closed, false);
	j->started = aside_start(work, j);
	if (!j->started) {
		j->wrong = "There is no thread for the memory";
		atomic_store(&j->state, READY);
	}
	return j;
}

bool memory_poll(struct memory_job *j, struct region *out, const char **wrong)
{
	if (atomic_load(&j->state) != READY)
		return false;
	j->held = false;
	*out = j->region;
	*wrong = j->wrong;
	return true;
}

void memory_drop(struct memory_job *j)
{
	j->held = false;
	if (atomic_exchange(&j->state, DROPPED) == READY)
		unmap(j);
}
