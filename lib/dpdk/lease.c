/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* program_invocation_short_name */
#endif
#include "dpdk/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bsd/string.h>

#include "dpdk/fd_msg.h"
#include "dpdk/memif_wake.h"
#include "thread/thread.h"

/* The descriptors of a grant: on one uroced writes when the client sleeps; to the other the client writes when uroced does. */
enum { WAKE_FD, INTERRUPT_FD, LEASE_FDS };

#define ANSWER_MS  5000
#define RETRY_NS   200000000
#define BUSY_MS	   50 /* between attempts, when too many ask at a time */
#define BUSY_TRIES 40

#define DIRECT_MAX 64 /* messages about direct rings that wait */

#define PORTS (UR_LEASE_SPACES * 65536u)

/* How often this process has bound each port: space * 65536 + port. */
struct port_refs {
	uint16_t cnt[PORTS];
};

/* A message about a direct ring, with its descriptor. */
struct direct_msg {
	struct ur_lease_direct direct;
	int fd;
};

struct ur_lease {
	struct sockaddr_un addr;
	struct ur_lease_request request; /* later: for the same lease again */
	struct ur_lease_grant grant;
	int fd;			 /* -1: no connection */
	int grant_fd[LEASE_FDS]; /* came with the grant; -1: none */
	int wake_fd; /* the first one of them, under a number that lasts; -1: there was none */
	bool waits;  /* for the answer */
	uint64_t retry_ns; /* without a connection: when to ask again */
	/* Of the connection, and of what follows; never held by poll for longer than a system call. */
	pthread_mutex_t lock;
	struct port_refs *bound; /* NULL: none yet */
	uint32_t rebind; /* after the lease came back: ports from here on are to be bound again */
	struct direct_msg direct[DIRECT_MAX]; /* [direct_head, direct_tail), free-running */
	unsigned direct_head, direct_tail;
};

/* ---- the name ---- */

/* "uroced:PATH@ADDRESS"; both parts may be missing. */
static int read_name(struct ur_lease *l, const struct ur_config *cfg, char *err, size_t cap)
{
	char copy[UR_CONFIG_TEXT], where[2 * UR_CONFIG_TEXT], *path = copy + strlen("uroced"), *at;
	struct in_addr in;

	ur_config_where(cfg, "port", "dev", where, sizeof(where));
	strlcpy(copy, cfg->port.dev, sizeof(copy));
	at = strrchr(copy, '@');
	if (at)
		*at++ = '\0';
	if (at && inet_pton(AF_INET, at, &in) != 1) {
		snprintf(err, cap, "%s\"%s\" is not an IPv4 address; allowed: uroced:PATH@ADDRESS",
			 where, at);
		return -EINVAL;
	}
	l->request.address = at ? ntohl(in.s_addr) : 0;
	path = *path == ':' ? path + 1 : path;
	l->addr.sun_family = AF_UNIX;
	if (strlcpy(l->addr.sun_path, *path ? path : UR_LEASE_SOCKET, sizeof(l->addr.sun_path)) <
	    sizeof(l->addr.sun_path))
		return 0;
	snprintf(err, cap, "%sthe path is longer than %zu characters", where,
		 sizeof(l->addr.sun_path) - 1);
	return -EINVAL;
}

/* ---- the connection ---- */

static void close_any(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void disconnect(struct ur_lease *l)
{
	while (l->direct_head != l->direct_tail)
		close_any(l->direct[l->direct_head++ % DIRECT_MAX].fd);
	close_any(l->fd);
	l->fd = -1;
	for (unsigned i = 0; i < LEASE_FDS; i++) {
		close_any(l->grant_fd[i]);
		l->grant_fd[i] = -1;
	}
	l->waits = false;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Whether there is something to receive before `until_ms`. A daemon that sends other things, and signals, do not prolong it. */
static bool wait_until(const struct ur_lease *l, uint64_t until_ms)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	uint64_t ms;
	int rc;

	do {
		ms = now_ms();
		rc = poll(&p, 1, ms < until_ms ? (int)(until_ms - ms) : 0);
	} while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/* Connects and asks. 0 or a negative errno. */
static int ask(struct ur_lease *l)
{
	uint8_t msg[UR_LEASE_REQUEST_BYTES];
	int why;

	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	ur_lease_put_request(&l->request, msg);
	if (connect(l->fd, (const struct sockaddr *)&l->addr, sizeof(l->addr)) == 0 &&
	    send(l->fd, msg, sizeof(msg), MSG_NOSIGNAL) == sizeof(msg)) {
		l->waits = true;
		return 0;
	}
	why = errno;
	disconnect(l);
	return -why;
}

static int no_daemon(const struct ur_lease *l, int rc, char *err, size_t cap)
{
	const char *path = l->addr.sun_path;

	if (rc == -ENOENT || rc == -ECONNREFUSED)
		snprintf(
			err, cap,
			"no uroced listens at %s; start it with: uroced%s%s, or name another socket as "
			"uroced:PATH",
			path, strcmp(path, UR_LEASE_SOCKET) ? " --socket " : "",
			strcmp(path, UR_LEASE_SOCKET) ? path : "");
	else if (rc == -EACCES)
		snprintf(
			err, cap,
			"%s: permission denied; its owner and its group may have leases (uroced --group, "
			"--mode)",
			path);
	else
		snprintf(err, cap, "%s: %s", path, strerror(-rc));
	return rc;
}

/* Whether to ask once more: an older daemon knows no direct rings, and not even such a request. */
static bool forget_direct(struct ur_lease *l, enum ur_lease_refusal why)
{
	if (why != UR_LEASE_MALFORMED || !l->request.direct)
		return false;
	l->request.direct = false;
	return true;
}

/* Threads sleep on the number at any time, so it stays the same, and is never that of another file. */
static void keep_wake(struct ur_lease *l)
{
	if (l->grant_fd[WAKE_FD] < 0)
		return;
	if (l->wake_fd < 0)
		l->wake_fd = fcntl(l->grant_fd[WAKE_FD], F_DUPFD_CLOEXEC, 3);
	else
		dup3(l->grant_fd[WAKE_FD], l->wake_fd, O_CLOEXEC);
}

static int receive(struct ur_lease *l, char *err, size_t cap)
{
	uint8_t msg[UR_LEASE_MESSAGE_MAX + 1];
	enum ur_lease_refusal why;
	ssize_t len = -1;

	if (wait_until(l, now_ms() + ANSWER_MS))
		len = ur_fd_msg_receive(l->fd, msg, sizeof(msg), l->grant_fd, LEASE_FDS);
	l->waits = false;
	if (len == 0)
		return -EBUSY;
	switch (len > 0 ? ur_lease_get_answer(msg, (size_t)len, &l->grant, &why) : UR_LEASE_BAD) {
	case UR_LEASE_GRANTED:
		keep_wake(l);
		return 0;
	case UR_LEASE_REFUSED:
		if (forget_direct(l, why))
			return -EBUSY;
		snprintf(err, cap, "uroced at %s refuses a lease: %s", l->addr.sun_path,
			 ur_lease_refusal_text(why));
		return -EAGAIN;
	case UR_LEASE_BAD:
		break;
	}
	snprintf(err, cap, "%s does not answer as a uroced of this version", l->addr.sun_path);
	return -EPROTO;
}

/* The daemon closes connections when too many processes ask at a time. */
static int get_grant(struct ur_lease *l, char *err, size_t cap)
{
	const struct timespec nap = {.tv_nsec = BUSY_MS * 1000000};
	int rc = 0;

	for (unsigned i = 0; i < BUSY_TRIES; i++) {
		rc = ask(l);
		if (!rc)
			rc = receive(l, err, cap);
		else if (rc != -EAGAIN)
			return no_daemon(l, rc, err, cap);
		if (!rc || (rc == -EAGAIN && l->fd >= 0) || rc == -EPROTO)
			return rc;
		disconnect(l);
		nanosleep(&nap, NULL);
	}
	snprintf(err, cap, "uroced at %s is too busy to answer", l->addr.sun_path);
	return rc;
}

/* The memif socket that the grant names: it is in the directory of the lease's. */
static void memif_path(const struct ur_lease *l, char *out, size_t cap)
{
	const char *slash = strrchr(l->addr.sun_path, '/');
	int dir = slash ? (int)(slash + 1 - l->addr.sun_path) : 0;

	snprintf(out, cap, "%.*s%s", dir, l->addr.sun_path, l->grant.memif);
}

/* EDGE-REST-05. `fd` -1: not any more. */
static void set_interrupt(const struct ur_lease *l, int fd)
{
	struct ur_memif_end end = {.id = l->grant.memif_id};

	memif_path(l, end.path, sizeof(end.path));
	(void)ur_memif_wake_interrupt(&end, fd); /* else uroced looks for packets itself */
}

/* ---- the configuration ---- */

static int use(const struct ur_lease *l, struct ur_config *cfg, char *err, size_t cap)
{
	const struct ur_lease_grant *g = &l->grant;
	char more[UR_CONFIG_TEXT];
	bool fits;

	cfg->leased = true;
	cfg->port.driver = UR_DRIVER_MEMIF;
	cfg->port.role = UR_MEMIF_ROLE_CLIENT;
	cfg->port.dev[0] = '\0';
	memif_path(l, cfg->port.device, sizeof(cfg->port.device));
	fits = (size_t)snprintf(more, sizeof(more), "%s%sid=%u,secret=%s", cfg->port.args,
				cfg->port.args[0] ? "," : "", g->memif_id,
				g->secret) < sizeof(more);
	strlcpy(cfg->port.args, more, sizeof(cfg->port.args));
	if (!fits || (cfg->port.mtu && cfg->port.mtu > g->mtu)) {
		snprintf(err, cap, "[port] %s: uroced's ports have %u bytes at most",
			 fits ? "mtu" : "args", fits ? g->mtu : (unsigned)sizeof(more));
		return -EINVAL;
	}
	if (!cfg->port.mtu)
		cfg->port.mtu = g->mtu;
	if (!ur_config_is_given(cfg, "port", "framecnt"))
		cfg->port.framecnt = 1u << g->slots_shift;
	memcpy(cfg->address.mac, g->mac, 6);
	cfg->address.ipv4 = (struct ur_config_net){.addr = ur_gid_from_ipv4(g->address),
						   .len = g->prefix ? g->prefix : 32};
	/* The kernel has the interface's own. */
	if (!g->prefix)
		cfg->address.link_local = false;
	return 0;
}

/* For people: what the daemon would not print, and so refuse, is replaced. */
static void name_program(struct ur_lease_request *r)
{
	strlcpy(r->program, program_invocation_short_name, sizeof(r->program));
	for (char *c = r->program; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

int ur_lease_open(struct ur_config *cfg, struct ur_lease **out, char *err, size_t cap)
{
	struct ur_lease *l = calloc(1, sizeof(*l));
	int rc;

	if (!l) {
		snprintf(err, cap, "out of memory");
		return -ENOMEM;
	}
	l->fd = l->wake_fd = -1;
	for (unsigned i = 0; i < LEASE_FDS; i++)
		l->grant_fd[i] = -1;
	l->rebind = PORTS;
	/* A ring has one producer at each end, and no credits. */
	l->request.direct = cfg->worker.count == 1 && !cfg->port.credits;
	pthread_mutex_init(&l->lock, NULL);
	name_program(&l->request);
	rc = read_name(l, cfg, err, cap);
	if (!rc)
		rc = get_grant(l, err, cap);
	if (!rc)
		rc = use(l, cfg, err, cap);
	if (rc) {
		ur_lease_close(l);
		return rc;
	}
	l->request.address = l->grant.address;
	memcpy(l->request.secret, l->grant.secret, sizeof(l->request.secret));
	set_interrupt(l, l->grant_fd[INTERRUPT_FD]);
	*out = l;
	return 0;
}

struct ur_qpn_prefix ur_lease_prefix(const struct ur_lease *l)
{
	return l->grant.qpns;
}

bool ur_lease_is_kernels(const struct ur_lease *l)
{
	return !l->grant.prefix;
}

int ur_lease_wake_fd(const struct ur_lease *l)
{
	return l->wake_fd;
}

void ur_lease_close(struct ur_lease *l)
{
	if (!l)
		return;
	set_interrupt(l, -1);
	disconnect(l);
	close_any(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	free(l->bound);
	free(l);
}

/* ---- ports ---- */

static bool send_port(const struct ur_lease *l, const struct ur_lease_port *p)
{
	uint8_t msg[UR_LEASE_PORT_BYTES];

	ur_lease_put_port(p, msg);
	return send(l->fd, msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(msg);
}

static int bind_errno(enum ur_lease_status status)
{
	switch (status) {
	case UR_LEASE_BOUND:
		return 0;
	case UR_LEASE_PORT_TAKEN:
		return -EADDRINUSE;
	case UR_LEASE_PORT_QUOTA:
		return -ENOBUFS;
	default:
		return -EADDRNOTAVAIL;
	}
}

/* ---- what arrives during a lease ---- */

/* Receives a message. Its length; 0: it was about a direct ring, and waits for ur_lease_next_direct(); -1: as of recv(), or the end. */
static ssize_t receive_later(struct ur_lease *l, uint8_t *msg, size_t cap)
{
	struct direct_msg got;
	ssize_t len = ur_fd_msg_receive(l->fd, msg, cap, &got.fd, 1);

	if (len <= 0) {
		errno = len ? errno : ECONNRESET;
		return -1;
	}
	if (!ur_lease_get_direct(msg, (size_t)len, &got.direct)) {
		close_any(got.fd);
		return len;
	}
	/*
	 * A daemon that sends so many is none that can be followed. A message is missing from here on, so the connection ends for poll, too, if
	 * this is a thread that binds a port.
	 */
	if (l->direct_tail - l->direct_head == DIRECT_MAX) {
		close_any(got.fd);
		shutdown(l->fd, SHUT_RDWR);
		errno = EPROTO;
		return -1;
	}
	if (!got.direct.frame_max) {
		close_any(got.fd);
		got.fd = -1;
	}
	l->direct[l->direct_tail++ % DIRECT_MAX] = got;
	return 0;
}

bool ur_lease_takes_direct(const struct ur_lease *l)
{
	return l->request.direct;
}

void ur_lease_request_ring(struct ur_lease *l, uint32_t client)
{
	uint8_t msg[UR_LEASE_RING_REQUEST_BYTES];

	/* Else it is requested again. */
	if (pthread_mutex_trylock(&l->lock))
		return;
	ur_lease_put_ring_request(client, msg);
	if (l->fd >= 0 && !l->waits)
		(void)!send(l->fd, msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	pthread_mutex_unlock(&l->lock);
}

bool ur_lease_next_direct(struct ur_lease *l, struct ur_lease_direct *d, int *fd)
{
	const struct direct_msg *m;
	bool found;

	if (pthread_mutex_trylock(&l->lock))
		return false;
	found = l->direct_head != l->direct_tail;
	if (found) {
		m = &l->direct[l->direct_head++ % DIRECT_MAX];
		*d = m->direct;
		*fd = m->fd;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

/* Under the lock. What else arrives is about ports that were bound again, and direct rings. */
static int receive_bound(struct ur_lease *l, const struct ur_lease_port *p, uint16_t *port)
{
	uint64_t until_ms = now_ms() + ANSWER_MS;
	uint8_t msg[UR_LEASE_MESSAGE_MAX + 1];
	struct ur_lease_bound b;
	ssize_t len;

	while (wait_until(l, until_ms)) {
		len = receive_later(l, msg, sizeof(msg));
		if (!len || (len < 0 && (errno == EAGAIN || errno == EINTR)))
			continue;
		if (len < 0 || !ur_lease_get_bound(msg, (size_t)len, &b))
			break;
		if (b.space != p->space || b.asked != p->port)
			continue;
		if (b.status == UR_LEASE_BOUND)
			*port = b.port;
		return bind_errno(b.status);
	}
	return -ENETDOWN;
}

static int bind_locked(struct ur_lease *l, enum ur_lease_space space, uint16_t *port)
{
	struct ur_lease_port p = {.space = space, .port = *port};
	int rc;

	if (!l->bound)
		l->bound = calloc(1, sizeof(*l->bound));
	if (!l->bound)
		return -ENOMEM;
	if (*port && l->bound->cnt[space * 65536u + *port] == UINT16_MAX)
		return -ENOBUFS;
	if (*port && l->bound->cnt[space * 65536u + *port]) {
		l->bound->cnt[space * 65536u + *port]++;
		return 0;
	}
	if (l->fd < 0 || l->waits || l->rebind < PORTS || !send_port(l, &p))
		return -ENETDOWN;
	rc = receive_bound(l, &p, port);
	if (!rc)
		l->bound->cnt[space * 65536u + *port]++;
	return rc;
}

int ur_lease_bind(struct ur_lease *l, enum ur_lease_space space, uint16_t *port)
{
	int cancel, rc;

	if (!l->grant.qpns.bits)
		return 0;
	cancel = ur_cancel_off();
	pthread_mutex_lock(&l->lock);
	rc = bind_locked(l, space, port);
	pthread_mutex_unlock(&l->lock);
	ur_cancel_restore(cancel);
	return rc;
}

void ur_lease_unbind(struct ur_lease *l, enum ur_lease_space space, uint16_t port)
{
	struct ur_lease_port p = {space, port, true};
	uint16_t *cnt;
	int cancel;

	if (!l->grant.qpns.bits)
		return;
	cancel = ur_cancel_off();
	pthread_mutex_lock(&l->lock);
	cnt = l->bound ? &l->bound->cnt[space * 65536u + port] : NULL;
	/* One that the daemon does not learn of stays this process's until it ends. */
	if (cnt && *cnt && !--*cnt && l->fd >= 0 && !l->waits)
		(void)send_port(l, &p);
	pthread_mutex_unlock(&l->lock);
	ur_cancel_restore(cancel);
}

/* As many as the daemon takes at a time. */
static void bind_again(struct ur_lease *l)
{
	for (; l->bound && l->rebind < PORTS; l->rebind++) {
		struct ur_lease_port p = {.space = l->rebind / 65536,
					  .port = (uint16_t)(l->rebind % 65536)};

		if (l->bound->cnt[l->rebind] && !send_port(l, &p))
			return;
	}
	l->rebind = PORTS;
}

/* ---- later ---- */

/* UROCED-RELEASE-01: what the port was opened with cannot change. */
static bool is_same(const struct ur_lease_grant *a, const struct ur_lease_grant *b)
{
	return a->address == b->address && a->memif_id == b->memif_id && a->mtu <= b->mtu &&
	       a->qpns.bits == b->qpns.bits && a->qpns.value == b->qpns.value &&
	       memcmp(a->mac, b->mac, 6) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(a->memif, b->memif) == 0;
}

static enum ur_lease_event take_answer(struct ur_lease *l, const uint8_t *msg, size_t len)
{
	struct ur_lease_grant g;
	enum ur_lease_refusal why;
	enum ur_lease_answer answer = ur_lease_get_answer(msg, len, &g, &why);

	l->waits = false;
	if (answer == UR_LEASE_REFUSED)
		forget_direct(l, why);
	if (answer == UR_LEASE_GRANTED && is_same(&l->grant, &g)) {
		l->rebind = l->bound ? 0 : PORTS;
		keep_wake(l);
		set_interrupt(l, l->grant_fd[INTERRUPT_FD]);
		return UR_LEASE_BACK;
	}
	disconnect(l);
	return UR_LEASE_SAME;
}

static enum ur_lease_event poll_locked(struct ur_lease *l, uint64_t now_ns)
{
	uint8_t msg[UR_LEASE_MESSAGE_MAX + 1];
	bool had = l->fd >= 0 && !l->waits;
	struct ur_lease_bound b;
	ssize_t len;

	if (l->fd < 0) {
		if (now_ns < l->retry_ns)
			return UR_LEASE_SAME;
		l->retry_ns = now_ns + RETRY_NS;
		ask(l);
		return UR_LEASE_SAME;
	}
	if (had && l->rebind < PORTS)
		bind_again(l);
	do
		len = l->waits ? ur_fd_msg_receive(l->fd, msg, sizeof(msg), l->grant_fd, LEASE_FDS)
			       : receive_later(l, msg, sizeof(msg));
	while (!len && had && l->direct_tail - l->direct_head < DIRECT_MAX);
	if (!len && had)
		return UR_LEASE_SAME;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return UR_LEASE_SAME;
	if (len > 0 && l->waits)
		return take_answer(l, msg, (size_t)len);
	if (len > 0 && ur_lease_get_bound(msg, (size_t)len, &b))
		return UR_LEASE_SAME;
	disconnect(l);
	return had ? UR_LEASE_LOST : UR_LEASE_SAME;
}

enum ur_lease_event ur_lease_poll(struct ur_lease *l, uint64_t now_ns)
{
	enum ur_lease_event e;

	/* A thread binds a port, and waits for the daemon. */
	if (pthread_mutex_trylock(&l->lock))
		return UR_LEASE_SAME;
	e = poll_locked(l, now_ns);
	pthread_mutex_unlock(&l->lock);
	return e;
}
