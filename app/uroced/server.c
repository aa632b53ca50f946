/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "closer.h"
#include "direct.h"
#include "doze.h"
#include "dpdk/fd_msg.h"
#include "keep.h"
#include "listener.h"
#include "self.h"
#include "writer.h"

#define NEW_MAX	     64		/* connections that have not said what they want */
#define NEW_NS	     2000000000 /* for how long they may stay */
#define NEW_PER_USER 32
#define ACCEPTS                                                                                    \
	16 /* connections to a socket that are accepted at a time, a millisecond from the last ones */
#define EVENTS	     64
#define KEEPS_NS     1000000000 /* in which the file of leases is written so often at most: */
#define KEEPS_MAX    8
#define LINES_NS     1000000000 /* in which so many lines are printed at most: */
#define LINES_MAX    64
#define SLOTS_SHIFT  8
#define MEMIF_SUFFIX ".memif"

/* A connection to either socket that has not said what it wants. */
struct newcomer {
	struct watch watch;
	uint64_t until_ns;
	struct ucred peer;
};

struct server {
	struct device_group group;
	const struct server_attr *attr;
	struct lease_table table;
	struct writer *kept; /* the file of leases; NULL: there is none */
	struct listener leases, memifs;
	struct watch leases_watch, memifs_watch;
	int epoll;
	uint32_t mtu;
	char memif_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct newcomer newcomer[NEW_MAX];
	struct client *client[UR_SWITCH_PORTS_MAX];
	unsigned client_cnt;
	struct device *self; /* NULL: addresses are not shared */
	bool changed;	     /* a link may have, since the last serve */
	bool unkept;	     /* the leases differ from those in the file */
	int wrong;	     /* why the file was not written, as it was printed; 0: it was */
	unsigned keeps;	     /* writes of the file since keeps_ns */
	uint64_t keeps_ns;
	unsigned lines;	 /* printed since lines_ns */
	unsigned unsaid; /* not printed since then */
	uint64_t lines_ns;
};

static bool watch(struct server *s, struct watch *w)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = w};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->fd, &e) == 0;
}

/* The kernel forgets a descriptor that is closed, unless it has a copy: before that it is taken out. */
static void unwatch(struct server *s, const struct watch *w)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

/* What was not written is written again, once in KEEPS_NS. */
static void look_at_writer(struct server *s)
{
	int wrong = writer_error(s->kept);

	if (wrong && wrong != s->wrong)
		fprintf(stderr, "uroced: %s: %s\n", s->attr->file, strerror(wrong));
	s->wrong = wrong;
	s->unkept = s->unkept || wrong;
}

/* At once, so that a daemon that is killed knows its clients when it is started again; but not as often as clients may come and go. */
static void keep(struct server *s, uint64_t now_ns)
{
	size_t len;
	char *text;

	if (!s->kept)
		return;
	if (now_ns - s->keeps_ns >= KEEPS_NS) {
		s->keeps_ns = now_ns;
		s->keeps = 0;
		look_at_writer(s);
	}
	if (!s->unkept || s->keeps == KEEPS_MAX)
		return;
	s->keeps++;
	text = keep_text(&s->table, &len);
	s->unkept = !text;
	if (text)
		writer_put(s->kept, text, len);
}

/* ---- newcomers ---- */

static void dismiss(struct newcomer *n)
{
	if (n->watch.fd >= 0)
		closer_close(n->watch.fd, n->peer.uid);
	n->watch.fd = -1;
}

static unsigned newcomers_of(const struct server *s, uid_t uid)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < NEW_MAX; i++)
		cnt += s->newcomer[i].watch.fd >= 0 && s->newcomer[i].peer.uid == uid;
	return cnt;
}

/* The oldest connection of the user that has most. */
static struct newcomer *crowding_newcomer(struct server *s, unsigned *cnt)
{
	struct newcomer *found = NULL;

	*cnt = 0;
	for (unsigned i = 0; i < NEW_MAX; i++) {
		struct newcomer *n = &s->newcomer[i];
		unsigned of = n->watch.fd >= 0 ? newcomers_of(s, n->peer.uid) : 0;

		if (of > *cnt || (of && of == *cnt && n->until_ns < found->until_ns)) {
			found = n;
			*cnt = of;
		}
	}
	return found;
}

/* UROCED-NEW-01: silent connections take no place from a user with fewer. */
static struct newcomer *free_newcomer(struct server *s, uid_t uid)
{
	unsigned same = newcomers_of(s, uid), most;
	struct newcomer *n;

	if (same >= NEW_PER_USER)
		return NULL;
	for (unsigned i = 0; i < NEW_MAX; i++)
		if (s->newcomer[i].watch.fd < 0)
			return &s->newcomer[i];
	n = crowding_newcomer(s, &most);
	if (most <= same + 1)
		return NULL;
	dismiss(n);
	return n;
}

static void greet(struct newcomer *n)
{
	uint8_t out[MEMIF_MSG_BYTES];

	memif_msg_hello(out, "uroced");
	if (send(n->watch.fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		dismiss(n);
}

static void accept_one(struct server *s, enum watch_kind kind, int fd, uint64_t now_ns)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	struct newcomer *n = NULL;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		n = free_newcomer(s, peer.uid);
	if (!n) {
		closer_close(fd, peer.uid);
		return;
	}
	*n = (struct newcomer){{kind, fd, n}, now_ns + NEW_NS, peer};
	if (!watch(s, &n->watch))
		dismiss(n);
	else if (kind == WATCH_NEW_MEMIF)
		greet(n);
}

static void accept_all(struct server *s, const struct listener *l, enum watch_kind kind,
		       uint64_t now_ns)
{
	int fd;

	for (unsigned i = 0; i < ACCEPTS && closer_has_room() && (fd = listener_accept(l)) >= 0;
	     i++)
		accept_one(s, kind, fd, now_ns);
}

static void dismiss_old(struct server *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < NEW_MAX; i++)
		if (s->newcomer[i].watch.fd >= 0 && s->newcomer[i].until_ns <= now_ns)
			dismiss(&s->newcomer[i]);
}

/* ---- leases ---- */

static struct client *free_client(const struct server *s)
{
	for (unsigned i = 0; i < s->client_cnt; i++)
		if (client_is_free(s->client[i]))
			return s->client[i];
	return NULL;
}

static const char *address_text(const struct client *c)
{
	static char text[INET_ADDRSTRLEN];

	return inet_ntop(AF_INET, c->guard.ip4, text, sizeof(text));
}

static void refuse(struct newcomer *n, enum ur_lease_refusal why)
{
	uint8_t out[UR_LEASE_REFUSAL_BYTES];

	ur_lease_put_refusal(why, out);
	(void)!send(n->watch.fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL);
	dismiss(n);
}

static void make_secret(char *secret)
{
	uint8_t random[UR_LEASE_SECRET_CHARS / 2];

	arc4random_buf(random, sizeof(random));
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(secret + 2 * i, 3, "%02x", random[i]);
}

static bool send_grant(const struct server *s, struct client *c)
{
	const struct lease *l = &s->table.lease[c->index];
	struct ur_lease_grant g = {
		.address = lease_address(&s->table, c->index),
		.prefix = s->attr->kernel ? 0 : s->table.attr.prefix,
		.slots_shift = SLOTS_SHIFT,
		.mtu = (uint16_t)s->mtu,
		.memif_id = c->index,
		.qpns = {c->guard.number ? UR_LEASE_PREFIX_BITS : 0, c->guard.number},
	};
	const char *name = strrchr(s->memif_path, '/');
	uint8_t out[UR_LEASE_GRANT_BYTES];
	int fd[] = {client_make_wake(c), client_make_interrupt(c)};
	bool sent;

	memcpy(g.mac, c->guard.mac, 6);
	memcpy(g.secret, l->secret, sizeof(g.secret));
	strlcpy(g.memif, name ? name + 1 : s->memif_path, sizeof(g.memif));
	ur_lease_put_grant(&g, out);
	/* Descriptors that others leave unread count as the daemon's, up to a limit. Without them this client and we poll each other. */
	sent = fd[0] >= 0 && fd[1] >= 0 &&
	       ur_fd_msg_send(c->lease.fd, out, sizeof(out), fd, RTE_DIM(fd));
	if (fd[0] >= 0)
		close(fd[0]);
	if (sent)
		return true;
	client_drop_wakes(c);
	return ur_fd_msg_send(c->lease.fd, out, sizeof(out), NULL, 0);
}

/* As often as clients come and go, but not more often than what reads the lines can bear: frames would wait for it. */
static void say(struct server *s, const struct client *c, const char *what, uint64_t now_ns)
{
	if (now_ns - s->lines_ns >= LINES_NS) {
		if (s->unsaid)
			printf("%u more leases and ends of leases\n", s->unsaid);
		s->lines_ns = now_ns;
		s->lines = s->unsaid = 0;
	}
	if (s->lines++ >= LINES_MAX) {
		s->unsaid++;
		return;
	}
	printf("lease of %s%s (%s, process %d, uid %u)\n", address_text(c), what, c->program,
	       (int)c->pid, (unsigned)c->uid);
	fflush(stdout);
}

static void end_lease(struct server *s, struct client *c, uint64_t now_ns)
{
	say(s, c, " ended", now_ns);
	direct_part(s->client, s->client_cnt, c);
	client_end(c);
	if (s->attr->steer)
		steer_remove(s->attr->steer, c->guard.number);
	lease_end(&s->table, c->index, now_ns);
	s->unkept = true;
	s->changed = true;
}

static uint8_t port_of(const struct server *s, const struct client *c)
{
	return (uint8_t)(s->attr->first_port + client_number(s->client, c));
}

static void begin_lease(struct server *s, struct client *c, struct newcomer *n, unsigned index,
			const struct ur_lease_request *r, uint64_t now_ns)
{
	struct client_addresses a = {.address = lease_address(&s->table, index),
				     .number = lease_number(&s->table, index)};
	int fd = n->watch.fd;

	unwatch(s, &n->watch);
	n->watch.fd = -1;
	if (s->attr->steer)
		memcpy(a.mac, s->attr->steer->mac, 6);
	else
		ur_lease_mac(a.address, a.mac);
	client_begin(c, fd, index, &a, s->attr->manage);
	if (s->attr->steer)
		steer_add(s->attr->steer, a.number, port_of(s, c));
	if (s->attr->steer)
		ports_begin(&s->attr->steer->ports, a.number, n->peer.uid);
	c->uid = n->peer.uid;
	c->pid = n->peer.pid;
	strlcpy(c->program, r->program, sizeof(c->program));
	/* By a ring frames would pass by what the switch does with them. */
	c->direct = r->direct && s->attr->direct && s->attr->rate_gbps == 0;
	if (!watch(s, &c->lease) || !send_grant(s, c)) {
		end_lease(s, c, now_ns);
		return;
	}
	say(s, c, "", now_ns);
	s->unkept = true;
}

static void serve_request(struct server *s, struct newcomer *n, uint64_t now_ns)
{
	struct client *c = free_client(s);
	struct ur_lease_request r;
	uint8_t msg[UR_LEASE_REQUEST_BYTES + 1];
	char secret[UR_LEASE_SECRET_BYTES] = "";
	ssize_t len;
	int index;

	/* A port whose client has just left: the switch has to see that first. */
	if (!c && s->table.held_cnt < s->client_cnt)
		return;
	len = closer_receive(n->watch.fd, msg, sizeof(msg), n->peer.uid, NULL);
	if (len < 0 && errno == EAGAIN)
		return; /* the event was of a connection before it */
	if (len <= 0) {
		dismiss(n);
		return;
	}
	if (!ur_lease_get_request(msg, (size_t)len, &r)) {
		refuse(n, UR_LEASE_MALFORMED);
		return;
	}
	make_secret(secret);
	index = lease_take(&s->table, &r, n->peer.uid, secret, now_ns);
	if (index < 0)
		refuse(n, (enum ur_lease_refusal)(-1 - index));
	else
		begin_lease(s, c, n, (unsigned)index, &r, now_ns);
}

static bool bind_port(struct server *s, const struct client *c, const struct ur_lease_port *p)
{
	struct port_spaces *ports = &s->attr->steer->ports;
	struct ur_lease_bound b = {.space = p->space, .asked = p->port, .port = p->port};
	uint8_t out[UR_LEASE_PORT_BYTES];

	if (p->release) {
		ports_release(ports, p->space, c->guard.number, p->port);
		return true;
	}
	b.status = ports_bind(ports, p->space, c->guard.number, &b.port);
	if (b.status != UR_LEASE_BOUND)
		b.port = 0;
	ur_lease_put_bound(&b, out);
	return send(c->lease.fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(out);
}

/* A client binds a port of the host, or asks for a direct ring. Anything else, as the end of the connection, ends the lease. */
static void serve_lease(struct server *s, struct client *c, uint64_t now_ns)
{
	uint8_t msg[UR_LEASE_PORT_BYTES + 1];
	ssize_t len = closer_receive(c->lease.fd, msg, sizeof(msg), c->uid, NULL);
	struct ur_lease_port p;
	uint32_t to;

	if (len < 0 && errno == EAGAIN)
		return;
	if (len > 0 && ur_lease_get_ring_request(msg, (size_t)len, &to)) {
		direct_request(s->client, s->client_cnt, c, to, s->mtu);
		return;
	}
	if (len <= 0 || !s->attr->steer || !ur_lease_get_port(msg, (size_t)len, &p) ||
	    !bind_port(s, c, &p))
		end_lease(s, c, now_ns);
}

/* ---- memif ---- */

static void say_goodbye(int sock, const char *why)
{
	uint8_t out[MEMIF_MSG_BYTES];

	memif_msg_disconnect(out, why);
	(void)!send(sock, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The client whose lease a connection names: of the same user, and with the secret. */
static struct client *named(const struct server *s, const struct newcomer *n,
			    const struct memif_msg *m)
{
	for (unsigned i = 0; i < s->client_cnt; i++) {
		struct client *c = s->client[i];

		if (c->lease.fd >= 0 && c->index == m->id && c->uid == n->peer.uid &&
		    strcmp(s->table.lease[c->index].secret, m->secret) == 0)
			return c;
	}
	return NULL;
}

static void serve_new_memif(struct server *s, struct newcomer *n)
{
	uint8_t msg[MEMIF_MSG_BYTES + 1], out[MEMIF_MSG_BYTES];
	struct memif_msg m;
	struct client *c = NULL;
	ssize_t len = closer_receive(n->watch.fd, msg, sizeof(msg), n->peer.uid, NULL);
	int fd;

	if (len < 0 && errno == EAGAIN)
		return;
	if (len > 0 && memif_msg_get(msg, (size_t)len, &m) && m.type == MEMIF_INIT)
		c = named(s, n, &m);
	if (!c || c->memif.fd >= 0) {
		if (len > 0)
			say_goodbye(n->watch.fd, c ? "Already connected" : "No such lease");
		dismiss(n);
		return;
	}
	fd = n->watch.fd;
	unwatch(s, &n->watch);
	n->watch.fd = -1;
	client_attach(c, fd);
	memif_msg_ack(out);
	if (!watch(s, &c->memif) || send(fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		client_detach(c);
}

static void end_memif(struct server *s, struct client *c, const char *why)
{
	s->changed |= c->up;
	if (why)
		say_goodbye(c->memif.fd, why);
	client_detach(c);
}

static void serve_memif(struct server *s, struct client *c, uint64_t now_ns)
{
	enum client_wants wants = client_wants(c, now_ns);
	uint8_t msg[MEMIF_MSG_BYTES + 1];
	struct memif_msg m;
	bool was_up = c->up, valid;
	const char *wrong;
	int fd = -1;
	ssize_t len;

	if (wants == CLIENT_NOTHING)
		return;
	len = closer_receive(c->memif.fd, msg, sizeof(msg), c->uid,
			     wants == CLIENT_REGION ? &fd : NULL);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	valid = len > 0 && memif_msg_get(msg, (size_t)len, &m) && m.type != MEMIF_DISCONNECT;
	wrong = client_message(c, valid ? &m : NULL, fd, now_ns);
	s->changed |= c->up != was_up;
	if (wrong)
		end_memif(s, c, len > 0 ? wrong : NULL);
}

static void look_at_clients(struct server *s)
{
	for (unsigned i = 0; i < s->client_cnt; i++) {
		const char *wrong = client_look(s->client[i]);

		if (wrong)
			end_memif(s, s->client[i], wrong);
		if (s->client[i]->parted_cnt)
			direct_tell(s->client[i]);
	}
}

/* ---- serve ---- */

static void serve_one(struct server *s, struct watch *w, uint64_t now_ns)
{
	/* An event of before may have ended it. */
	if (w->fd < 0)
		return;
	switch (w->kind) {
	case WATCH_LEASES:
		accept_all(s, &s->leases, WATCH_NEW_LEASE, now_ns);
		break;
	case WATCH_MEMIFS:
		accept_all(s, &s->memifs, WATCH_NEW_MEMIF, now_ns);
		break;
	case WATCH_NEW_LEASE:
		serve_request(s, w->of, now_ns);
		break;
	case WATCH_NEW_MEMIF:
		serve_new_memif(s, w->of);
		break;
	case WATCH_LEASE:
		serve_lease(s, w->of, now_ns);
		break;
	case WATCH_MEMIF:
		serve_memif(s, w->of, now_ns);
		break;
	}
}

static bool has_client(const struct server *s)
{
	for (unsigned i = 0; i < s->client_cnt; i++)
		if (s->client[i]->up)
			return true;
	return false;
}

/* Whether a message may be left, or a thread at work, or somebody waits for a place. */
static bool is_busy(const struct server *s, int events)
{
	for (unsigned i = 0; i < s->client_cnt; i++)
		if (s->client[i]->job || s->client[i]->waits)
			return true;
	for (unsigned i = 0; i < NEW_MAX; i++)
		if (s->newcomer[i].watch.fd >= 0)
			return true;
	return events > 0;
}

static bool server_serve(struct device_group *g, uint64_t now_ns)
{
	struct server *s = (struct server *)g;
	struct epoll_event event[EVENTS];
	int cnt = epoll_wait(s->epoll, event, EVENTS, 0);
	bool changed;

	for (int i = 0; i < cnt; i++)
		serve_one(s, event[i].data.ptr, now_ns);
	look_at_clients(s);
	closer_poll();
	if (s->attr->kernel)
		kernel_poll(s->attr->kernel, now_ns);
	dismiss_old(s, now_ns);
	keep(s, now_ns);
	g->busy = is_busy(s, cnt);
	changed = s->changed;
	s->changed = false;
	if (changed && s->self)
		self_set_link(s->self, s->attr->steer->uplinks || has_client(s));
	return changed;
}

/* ---- open and close ---- */

static void server_close(struct device_group *g)
{
	struct server *s = (struct server *)g;
	int wrong;

	keep(s, s->keeps_ns + KEEPS_NS);
	wrong = s->kept ? writer_end(s->kept) : 0;
	if (wrong)
		fprintf(stderr, "uroced: %s: %s\n", s->attr->file, strerror(wrong));
	for (unsigned i = 0; i < NEW_MAX; i++)
		dismiss(&s->newcomer[i]);
	listener_close(&s->leases);
	listener_close(&s->memifs);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

static const struct device_group_ops server_ops = {server_serve, server_close, true};

static bool listen_at(struct server *s, char *err, size_t cap)
{
	const struct server_attr *a = s->attr;
	char why[256];

	if (!listener_open(&s->leases, a->path, a->mode, a->group, why, sizeof(why))) {
		snprintf(err, cap, "--socket: %s: %s", a->path, why);
		return false;
	}
	if ((size_t)snprintf(s->memif_path, sizeof(s->memif_path), "%s%s", a->path, MEMIF_SUFFIX) >=
		    sizeof(s->memif_path) ||
	    strlen(strrchr(s->memif_path, '/') ? strrchr(s->memif_path, '/') + 1 : s->memif_path) >=
		    UR_LEASE_NAME_BYTES) {
		snprintf(err, cap, "--socket: %s: the path is too long", a->path);
		return false;
	}
	if (!listener_open(&s->memifs, s->memif_path, a->mode, a->group, why, sizeof(why))) {
		snprintf(err, cap, "%s: %s", s->memif_path, why);
		return false;
	}
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll >= 0)
		(void)doze_watch(s->epoll); /* else it is looked at after each doze */
	closer_begin(s->epoll);
	s->leases_watch = (struct watch){WATCH_LEASES, s->leases.fd, s};
	s->memifs_watch = (struct watch){WATCH_MEMIFS, s->memifs.fd, s};
	if (s->epoll >= 0 && watch(s, &s->leases_watch) && watch(s, &s->memifs_watch))
		return true;
	snprintf(err, cap, "epoll: %s", strerror(errno));
	return false;
}

static bool make_clients(struct server *s, uint32_t max_frame, struct rte_mempool *pool,
			 struct device **devs)
{
	for (; s->client_cnt < s->attr->lease.clients; s->client_cnt++) {
		unsigned i = s->client_cnt;
		char name[32];

		snprintf(name, sizeof(name), "client %u", i + 1);
		s->client[i] =
			client_new(pool, s->attr->clock, max_frame, s->attr->rate_gbps, name);
		if (!s->client[i])
			return false;
		devs[i] = &s->client[i]->dev;
	}
	return true;
}

static bool make_self(struct server *s, uint32_t max_frame, struct rte_mempool *pool,
		      struct device **dev)
{
	const struct server_attr *a = s->attr;
	struct self_attr self = {
		.address = a->lease.host,
		.prefix = a->lease.prefix,
		.kernel = a->kernel,
		.pool = pool,
		.clock = a->clock,
		.max_frame = max_frame,
	};

	if (!a->steer)
		return true;
	memcpy(self.mac, a->steer->mac, 6);
	s->self = *dev = self_new(&self);
	s->changed = true;
	return s->self;
}

struct device_group *server_open(const struct server_attr *attr, uint32_t max_frame,
				 struct rte_mempool *pool, struct device **devs, char *err,
				 size_t cap)
{
	struct server *s = calloc(1, sizeof(*s));
	const char *wrong;

	if (!s) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	s->group.ops = &server_ops;
	s->attr = attr;
	s->epoll = s->leases.fd = s->memifs.fd = -1;
	for (unsigned i = 0; i < NEW_MAX; i++)
		s->newcomer[i].watch.fd = -1;
	lease_table_init(&s->table, &attr->lease);
	wrong = attr->file ? keep_read(attr->file, &s->table, ur_clock_ns(attr->clock)) : NULL;
	if (wrong)
		printf("%s: %s; begins without it\n", attr->file, wrong);
	s->kept = attr->file ? writer_start(attr->file, 0600) : NULL;
	if (listen_at(s, err, cap)) {
		if ((s->kept || !attr->file) && make_clients(s, max_frame, pool, devs) &&
		    make_self(s, max_frame, pool, devs + s->client_cnt))
			return &s->group;
		snprintf(err, cap, "out of memory");
	}
	for (unsigned i = 0; i < s->client_cnt; i++)
		s->client[i]->dev.ops->close(&s->client[i]->dev);
	server_close(&s->group);
	return NULL;
}

void server_set_mtu(struct device_group *g, uint32_t mtu)
{
	((struct server *)g)->mtu = mtu;
}
