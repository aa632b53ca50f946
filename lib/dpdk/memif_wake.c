/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/memif_wake.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bsd/string.h>

#include "dpdk/driver_call.h"

#define DRIVER	      "librte_net_memif.so"
#define MESSAGE_BYTES 128
#define RINGS_MAX     32
#define COOKIE	      0x3e31f20
#define FLAGS_OFFSET  4 /* in a ring's header, after the cookie */
#define MASK_INT      1 /* flag of a ring: its consumer polls */
#define TO_SERVER     1 /* flag of a message about a ring */

enum message { INIT = 3, ADD_REGION = 4, ADD_RING = 5 };

struct ring {
	uint8_t *page;		 /* with its header */
	_Atomic uint16_t *flags; /* in the page */
	int fd;			 /* the interrupt descriptor, a duplicate */
	uint16_t queue;
};

/* A connection between two ends. */
struct link {
	struct link *next;
	struct ur_memif_end end;
	int sock;
	int region;	   /* the file of the first region, a duplicate; -1: not known yet */
	unsigned sleepers; /* threads for which rings are armed */
	unsigned cnt;
	struct ring ring[RINGS_MAX]; /* those that we receive from */
};

/* What the driver writes to in place of its own interrupt descriptors. */
struct interrupt {
	struct interrupt *next;
	struct ur_memif_end end;
	int fd; /* a duplicate */
};

static struct {
	pthread_mutex_t lock;
	struct link *first;
	struct interrupt *interrupts;
} links = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- links; under the lock ---- */

static struct link *find(int sock)
{
	struct link *l = links.first;

	while (l && l->sock != sock)
		l = l->next;
	return l;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void forget(int sock)
{
	for (struct link **at = &links.first, *l; (l = *at); at = &l->next) {
		if (l->sock != sock)
			continue;
		*at = l->next;
		for (unsigned i = 0; i < l->cnt; i++) {
			munmap(l->ring[i].page, page_bytes());
			close(l->ring[i].fd);
		}
		if (l->region >= 0)
			close(l->region);
		free(l);
		return;
	}
}

static struct link *add(int sock, bool server, const char *path, uint32_t id)
{
	struct link *l = calloc(1, sizeof(*l));

	forget(sock);
	if (!l)
		return NULL;
	l->sock = sock;
	l->region = -1;
	l->end = (struct ur_memif_end){.id = id, .server = server};
	strlcpy(l->end.path, path, sizeof(l->end.path));
	l->next = links.first;
	links.first = l;
	return l;
}

static bool is_same(const struct ur_memif_end *a, const struct ur_memif_end *b)
{
	return a->id == b->id && a->server == b->server && strcmp(a->path, b->path) == 0;
}

/* ---- messages ---- */

#define GET(field, at) memcpy(&(field), at, sizeof(field))

static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void take_init(int sock, bool server, const uint8_t *p)
{
	struct sockaddr_un name = {0};
	struct link *l = find(sock);
	uint32_t id;

	GET(id, p + 2);
	if (l)
		l->end.id = id;
	else if (server &&
		 getsockname(sock, (struct sockaddr *)&name, &(socklen_t){sizeof(name) - 1}) == 0)
		add(sock, server, name.sun_path, id);
}

static void take_region(struct link *l, const uint8_t *p, int fd)
{
	uint16_t index;

	GET(index, p);
	if (index == 0 && l->region < 0)
		l->region = duplicate(fd);
}

/* Maps the page with the header of a ring. */
static uint8_t *map(int region, uint32_t offset)
{
	uint32_t start = offset & ~(uint32_t)(page_bytes() - 1);
	struct stat st;
	uint32_t cookie;
	uint8_t *page;

	if (region < 0 || offset % 8 || fstat(region, &st) != 0 ||
	    (uint64_t)st.st_size < start + (uint64_t)page_bytes())
		return NULL;
	page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, region, start);
	if (page == MAP_FAILED)
		return NULL;
	GET(cookie, page + (offset - start));
	if (cookie == COOKIE)
		return page;
	munmap(page, page_bytes());
	return NULL;
}

/*
 * EDGE-REST-05: the number is the driver's, and so is what it writes to from now on. The first write tells the owner that
 * others will follow.
 */
static void redirect(const struct link *l, int fd)
{
	static const uint64_t one = 1;

	for (const struct interrupt *i = links.interrupts; i; i = i->next)
		if (is_same(&i->end, &l->end) && dup3(i->fd, fd, O_CLOEXEC) == fd)
			(void)!write(fd, &one, sizeof(one));
}

static void take_ring(struct link *l, const uint8_t *p, int fd)
{
	struct ring *r = &l->ring[l->cnt];
	uint16_t flags, region;
	uint32_t offset;
	int status = fcntl(fd, F_GETFL);

	GET(flags, p);
	GET(region, p + 4);
	GET(offset, p + 6);
	if (l->end.server != (flags & TO_SERVER)) {
		redirect(l, fd);
		return;
	}
	/* The driver reads the descriptor in each burst while the flag is clear. */
	if (region != 0 || l->cnt == RINGS_MAX || status < 0 || !(status & O_NONBLOCK))
		return;
	*r = (struct ring){.page = map(l->region, offset), .fd = duplicate(fd)};
	if (r->page && r->fd >= 0) {
		GET(r->queue, p + 2);
		r->flags = (void *)(r->page + offset % page_bytes() + FLAGS_OFFSET);
		l->cnt++;
		return;
	}
	if (r->page)
		munmap(r->page, page_bytes());
	if (r->fd >= 0)
		close(r->fd);
}

void ur_memif_wake_message(int sock, bool server, const uint8_t *msg, int fd)
{
	struct link *l;
	uint16_t type;

	GET(type, msg);
	pthread_mutex_lock(&links.lock);
	if (type == INIT)
		take_init(sock, server, msg + 2);
	l = find(sock);
	if (l && fd >= 0 && type == ADD_REGION)
		take_region(l, msg + 2, fd);
	if (l && fd >= 0 && type == ADD_RING)
		take_ring(l, msg + 2, fd);
	pthread_mutex_unlock(&links.lock);
}

void ur_memif_wake_connect(int sock, const char *path)
{
	pthread_mutex_lock(&links.lock);
	add(sock, false, path, 0);
	pthread_mutex_unlock(&links.lock);
}

void ur_memif_wake_closed(int fd)
{
	pthread_mutex_lock(&links.lock);
	forget(fd);
	pthread_mutex_unlock(&links.lock);
}

static struct interrupt *interrupt_of(const struct ur_memif_end *end)
{
	struct interrupt *i = links.interrupts;

	while (i && !is_same(&i->end, end))
		i = i->next;
	return i;
}

static void remove_interrupt(struct interrupt *old)
{
	struct interrupt **at = &links.interrupts;

	while (*at != old)
		at = &(*at)->next;
	*at = old->next;
	close(old->fd);
	free(old);
}

static int add_interrupt(const struct ur_memif_end *end, int fd)
{
	struct interrupt *i = calloc(1, sizeof(*i));
	int rc;

	if (!i)
		return -ENOMEM;
	i->fd = duplicate(fd);
	if (i->fd < 0) {
		rc = -errno;
		free(i);
		return rc;
	}
	i->end = *end;
	i->next = links.interrupts;
	links.interrupts = i;
	return 0;
}

int ur_memif_wake_interrupt(const struct ur_memif_end *end, int fd)
{
	struct interrupt *old;
	int rc;

	pthread_mutex_lock(&links.lock);
	old = interrupt_of(end);
	if (old)
		remove_interrupt(old);
	rc = fd < 0 ? 0 : add_interrupt(end, fd);
	pthread_mutex_unlock(&links.lock);
	return rc;
}

/* ---- hooks: in place of the C library's in the driver ---- */

static int descriptor_of(struct msghdr *h)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static bool is_message(const struct msghdr *h, ssize_t len)
{
	return len == MESSAGE_BYTES && h->msg_iovlen == 1;
}

static ssize_t send_message(int sock, const struct msghdr *h, int flags)
{
	struct msghdr copy = *h;

	/* Before the peer can answer. Only clients send what is read here. */
	if (is_message(h, (ssize_t)h->msg_iov[0].iov_len))
		ur_memif_wake_message(sock, false, h->msg_iov[0].iov_base, descriptor_of(&copy));
	return sendmsg(sock, h, flags);
}

static ssize_t receive_message(int sock, struct msghdr *h, int flags)
{
	ssize_t len = recvmsg(sock, h, flags);

	if (is_message(h, len))
		ur_memif_wake_message(sock, true, h->msg_iov[0].iov_base, descriptor_of(h));
	return len;
}

static int connect_socket(int sock, const struct sockaddr *addr, socklen_t len)
{
	if (addr->sa_family == AF_UNIX)
		ur_memif_wake_connect(sock, ((const struct sockaddr_un *)addr)->sun_path);
	return connect(sock, addr, len);
}

void ur_memif_wake_start(void)
{
	ur_driver_call_replace(DRIVER, "sendmsg", (ur_driver_fn)send_message);
	ur_driver_call_replace(DRIVER, "recvmsg", (ur_driver_fn)receive_message);
	ur_driver_call_replace(DRIVER, "connect", (ur_driver_fn)connect_socket);
}

/* ---- sleeping ---- */

/* Of packets that came before, which would end the sleep at once. A thread that sleeps may not have seen them yet. */
static void forget_writes(const struct ring *r)
{
	uint64_t writes;

	(void)!read(r->fd, &writes, sizeof(writes));
}

unsigned ur_memif_wake_arm(const struct ur_memif_end *end, uint32_t queues, struct pollfd *fd,
			   unsigned cap)
{
	unsigned cnt = 0;

	pthread_mutex_lock(&links.lock);
	for (struct link *l = links.first; l; l = l->next) {
		unsigned before = cnt;

		for (unsigned i = 0; is_same(&l->end, end) && i < l->cnt && cnt < cap; i++) {
			struct ring *r = &l->ring[i];

			if (r->queue >= 32 || !(queues & UINT32_C(1) << r->queue))
				continue;
			if (!l->sleepers)
				forget_writes(r);
			atomic_store_explicit(r->flags, 0, memory_order_seq_cst);
			fd[cnt++] = (struct pollfd){.fd = r->fd, .events = POLLIN};
		}
		l->sleepers += cnt != before;
	}
	pthread_mutex_unlock(&links.lock);
	return cnt;
}

void ur_memif_wake_disarm(const struct ur_memif_end *end)
{
	pthread_mutex_lock(&links.lock);
	for (struct link *l = links.first; l; l = l->next) {
		/* One that was armed at an earlier connection may count here; then a thread sleeps for its time. */
		if (!is_same(&l->end, end) || !l->sleepers || --l->sleepers)
			continue;
		for (unsigned i = 0; i < l->cnt; i++)
			atomic_store_explicit(l->ring[i].flags, MASK_INT, memory_order_relaxed);
	}
	pthread_mutex_unlock(&links.lock);
}
