/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bsd/string.h>
#include <jansson.h>

#include "closer.h"
#include "doze.h"

#define CATCH_UP_NS 1000000 /* of a client's rate, after a pause */
#define WAKE_NS	    10000   /* between two writes to a client that sleeps, or says so */
#define ASK_NS	    1000000 /* between two looks whether a client knows of interrupts */
#define WAKE_BYTES  1	    /* of the socket's buffer: the kernel makes it as small as it can be */

/* ---- frames ---- */

/* UROCED-RATE-01: whether the client may send now. What it may not send yet stays in its ring. */
static bool may_send(struct client *c)
{
	uint64_t now_ns;

	if (!c->rate.ns_per_byte)
		return true;
	now_ns = ur_clock_ns(c->clock);
	if (c->rate.free_ns + CATCH_UP_NS < now_ns)
		c->rate.free_ns = now_ns - CATCH_UP_NS;
	return c->rate.free_ns <= now_ns;
}

/* One frame into the spare buffer. */
static enum ring_result receive_one(struct client *c, uint32_t *len)
{
	uint8_t *to = rte_pktmbuf_mtod(c->spare, uint8_t *);
	enum ring_result r = ring_receive(&c->rx, &c->region, to, c->dev.max_frame, len);
	enum guard_reason why;

	if (r == RING_SKIP) {
		c->too_long++;
		ur_link_carry(&c->rate, c->dev.max_frame);
	}
	if (r != RING_DONE)
		return r;
	ur_link_carry(&c->rate, *len + UR_RATE_EXTRA);
	why = guard_check(&c->guard, to, *len);
	if (why == GUARD_PASS)
		return RING_DONE;
	c->drops[why]++;
	return RING_SKIP;
}

static void break_off(struct client *c)
{
	c->broken++;
	client_detach(c);
}

/*
 * UROCED-WAKE-01. A client whose flag says for ever that it sleeps costs a system call each WAKE_NS. One that does not read has
 * been woken already: its socket is full.
 */
static void wake(struct client *c)
{
	uint64_t now_ns = ur_clock_ns(c->clock);

	if (now_ns < c->wake_ns + WAKE_NS)
		return;
	c->wake_due = false;
	if (!ring_wants_wake(&c->tx))
		return;
	c->wake_ns = now_ns;
	c->wakes += send(c->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static unsigned client_rx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct client *c = (struct client *)d;
	enum ring_result r = RING_DONE;
	unsigned got = 0;
	uint32_t len;

	if (!c->up)
		return 0;
	if (c->wake_due)
		wake(c);
	if (!may_send(c))
		return 0;
	/* Frames that are dropped count too: a client that lies is not served longer than others. */
	for (unsigned i = 0; i < n && (c->spare || (c->spare = rte_pktmbuf_alloc(c->pool))); i++) {
		r = receive_one(c, &len);
		if (r == RING_EMPTY || r == RING_BROKEN)
			break;
		if (r == RING_SKIP)
			continue;
		c->spare->data_len = (uint16_t)len;
		c->spare->pkt_len = len;
		c->spare->port = c->guard.number; /* for kernel_ask() */
		m[got++] = c->spare;
		c->spare = NULL;
	}
	ring_publish(&c->rx);
	if (r == RING_BROKEN)
		break_off(c);
	return got;
}

static unsigned client_tx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct client *c = (struct client *)d;
	enum ring_result r = RING_DONE;
	unsigned i = 0;

	if (!c->up)
		return 0;
	for (; i < n; i++) {
		r = ring_send(&c->tx, &c->region, rte_pktmbuf_mtod(m[i], uint8_t *),
			      m[i]->data_len);
		if (r == RING_EMPTY || r == RING_BROKEN)
			break;
		c->no_room += r == RING_SKIP;
		rte_pktmbuf_free(m[i]);
	}
	ring_publish(&c->tx);
	if (c->wake_fd >= 0 && i) {
		c->wake_due = true;
		wake(c);
	}
	if (r == RING_BROKEN)
		break_off(c);
	return i;
}

static bool client_link(struct device *d)
{
	struct client *c = (struct client *)d;

	c->seen_down = !c->up;
	return c->up;
}

static void client_close(struct device *d)
{
	struct client *c = (struct client *)d;

	client_end(c);
	rte_pktmbuf_free(c->spare);
	free(c);
}

static void client_stats(const struct device *d, json_t *out)
{
	const struct client *c = (const struct client *)d;
	json_t *guard = json_object(), *lease;
	char text[INET_ADDRSTRLEN] = "";

	for (unsigned i = 0; i < GUARD_PASS; i++)
		json_object_set_new(guard, guard_name(i), json_integer((json_int_t)c->drops[i]));
	json_object_set_new(out, "guard", guard);
#define X(name, help) json_object_set_new(out, #name, json_integer((json_int_t)c->name));
	CLIENT_COUNTERS(X)
#undef X
	if (c->lease.fd < 0)
		return;
	lease = json_object();
	inet_ntop(AF_INET, c->guard.ip4, text, sizeof(text));
	json_object_set_new(lease, "address", json_string(text));
	if (c->guard.number)
		json_object_set_new(lease, "number", json_integer(c->guard.number));
	json_object_set_new(lease, "uid", json_integer((json_int_t)c->uid));
	json_object_set_new(lease, "pid", json_integer((json_int_t)c->pid));
	json_object_set_new(lease, "program", json_string(c->program));
	json_object_set_new(out, "lease", lease);
}

/* Not by a read, which could block, because the client can change how it is done; and not for each sleep. */
static bool knows_interrupts(struct client *c)
{
	struct pollfd p = {.fd = c->interrupt_fd, .events = POLLIN};
	uint64_t now_ns = ur_clock_ns(c->clock);

	if (c->interrupts || c->interrupt_fd < 0 || now_ns < c->asked_ns + ASK_NS)
		return c->interrupts;
	c->asked_ns = now_ns;
	c->interrupts = poll(&p, 1, 0) == 1;
	return c->interrupts;
}

/* UROCED-WAKE-02. A client that may not send yet is looked at again when it may. */
static bool client_interrupts(struct device *d, bool on)
{
	struct client *c = (struct client *)d;

	if (!c->up)
		return true;
	ring_ask_interrupts(&c->rx, on);
	return !on || (knows_interrupts(c) && !c->wake_due && may_send(c));
}

static const struct device_ops client_ops = {.rx = client_rx,
					     .tx = client_tx,
					     .link = client_link,
					     .close = client_close,
					     .stats = client_stats,
					     .interrupts = client_interrupts};

struct client *client_new(struct rte_mempool *pool, const struct ur_clock *clock,
			  uint32_t max_frame, double gbps, const char *name)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->pool = pool;
	c->clock = clock;
	c->dev.ops = &client_ops;
	c->dev.max_frame = max_frame;
	strlcpy(c->dev.name, name, sizeof(c->dev.name));
	c->lease = (struct watch){WATCH_LEASE, -1, c};
	c->memif = (struct watch){WATCH_MEMIF, -1, c};
	c->wake_fd = c->interrupt_fd = -1;
	c->seen_down = true;
	ur_link_init(&c->rate, gbps);
	return c;
}

/* ---- lease ---- */

void client_begin(struct client *c, int fd, unsigned index, const struct client_addresses *a,
		  bool manage)
{
	c->lease.fd = fd;
	c->index = index;
	c->rate.free_ns = 0; /* what the one before has sent is not this one's debt */
	guard_init(&c->guard, a->mac, a->address, a->number, manage);
}

int client_make_wake(struct client *c)
{
	int fd[2], bytes = WAKE_BYTES;

	/* Not of packets: they could pass a filter that the client has attached. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0)
		return -1;
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	shutdown(fd[0], SHUT_RD);
	c->wake_fd = fd[0];
	return fd[1];
}

int client_make_interrupt(struct client *c)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd >= 0 && !doze_watch(fd)) {
		close(fd);
		fd = -1;
	}
	c->interrupt_fd = fd;
	return fd;
}

void client_drop_wakes(struct client *c)
{
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	/* The client has a copy. */
	if (c->interrupt_fd >= 0) {
		doze_forget(c->interrupt_fd);
		close(c->interrupt_fd);
	}
	c->wake_fd = c->interrupt_fd = -1;
	c->interrupts = false;
}

void client_end(struct client *c)
{
	client_detach(c);
	client_drop_wakes(c);
	if (c->lease.fd >= 0)
		closer_close(c->lease.fd, c->uid);
	c->lease.fd = -1;
	c->seen_down = false;
}

/* ---- memif ---- */

static void unmap(struct client *c)
{
	if (c->region.at)
		munmap(c->region.at, c->region.bytes);
	c->region = (struct region){0};
	c->has_rx = c->has_tx = c->up = c->wake_due = false;
}

void client_attach(struct client *c, int fd)
{
	c->memif.fd = fd;
}

void client_detach(struct client *c)
{
	unmap(c);
	if (c->job)
		memory_drop(c->job);
	c->job = NULL;
	c->waits = false;
	if (c->memif.fd >= 0)
		closer_close(c->memif.fd, c->uid);
	c->memif.fd = -1;
}

enum client_wants client_wants(struct client *c, uint64_t now_ns)
{
	if (c->job)
		return CLIENT_NOTHING;
	if (c->up || c->region.at)
		return CLIENT_MESSAGE;
	if (memory_has_room(c->uid, now_ns)) {
		c->waits = false;
		return CLIENT_REGION;
	}
	c->region_waits += !c->waits;
	c->waits = true;
	return CLIENT_NOTHING;
}

static const char *add_ring(struct client *c, const struct memif_msg *m)
{
	bool *has = m->to_server ? &c->has_rx : &c->has_tx;

	if (m->index != 0 || m->region != 0 || *has || !c->region.at)
		return "One ring each way is allowed";
	*has = ring_open(m->to_server ? &c->rx : &c->tx, &c->region, m->offset, m->shift);
	return *has ? NULL : "The ring does not fit";
}

static const char *answer(const struct client *c, const uint8_t *msg)
{
	ssize_t sent = send(c->memif.fd, msg, MEMIF_MSG_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent == MEMIF_MSG_BYTES ? NULL : "The client does not read";
}

static const char *acknowledge(const struct client *c)
{
	uint8_t out[MEMIF_MSG_BYTES];

	memif_msg_ack(out);
	return answer(c, out);
}

const char *client_look(struct client *c)
{
	const char *wrong;

	if (!c->job || !memory_poll(c->job, &c->region, &wrong))
		return NULL;
	c->job = NULL;
	return wrong ? wrong : acknowledge(c);
}

static const char *add_region(struct client *c, const struct memif_msg *m, struct memory_job *job)
{
	if (m->index != 0 || c->region.at)
		return "One region is allowed";
	if (!job)
		return "Missing region fd";
	c->job = job;
	return NULL;
}

static const char *take(struct client *c, const struct memif_msg *m, struct memory_job *job)
{
	const char *wrong;
	uint8_t out[MEMIF_MSG_BYTES];

	if (c->up)
		return m->type == MEMIF_ACK ? NULL : "Unexpected message";
	switch (m->type) {
	case MEMIF_ADD_REGION:
		return add_region(c, m, job);
	case MEMIF_ADD_RING:
		wrong = add_ring(c, m);
		return wrong ? wrong : acknowledge(c);
	case MEMIF_CONNECT:
		if (!c->has_rx || !c->has_tx)
			return "Rings are missing";
		c->up = true;
		memif_msg_connected(out, "uroced");
		return answer(c, out);
	case MEMIF_ACK:
		return NULL;
	default:
		return "Unexpected message";
	}
}

const char *client_message(struct client *c, const struct memif_msg *m, int fd, uint64_t now_ns)
{
	struct memory_job *job = NULL;
	const char *wrong;

	/* Whatever it is: closed by a thread of its own. */
	if (fd >= 0)
		job = memory_begin(c->uid, fd, m && m->type == MEMIF_ADD_REGION ? m->bytes : 0,
				   now_ns);
	wrong = m ? take(c, m, job) : "Invalid message";
	if (job && c->job != job)
		memory_drop(job);
	return wrong;
}
