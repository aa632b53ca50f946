/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/cache.h"
#include "wire/assert.h"
#include "wire/icrc.h"
#include "wire/path.h"
#include "wire/roce.h"

/* As uroce does: lib/dpdk/mbuf_source.c, lib/edge/round.c. */
#define ATTACH_BYTES 2048
#define EVICT_BYTES  1024

#define OPCODE_AT	42  /* Ethernet, IPv4, UDP */
#define SHIFTS		251 /* a prime: no message has all its frames shifted as the previous one */
#define PREFETCH_BYTES	256
#define PIECES		3 /* of a frame whose payload is attached: headers, payload, sum */
#define MESSAGE_MAX	(1u << 26)
#define WINDOW_MAX	8192u
#define OUTSTANDING_MAX 128u /* requests fit in the ring, so that neither end blocks the other */

void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "bare_pipe: %s:%d: %s\n", file, line, expr);
	abort();
}

const char *pipe_check(const struct pipe_attr *a)
{
	if (a->magic != PIPE_ATTR_MAGIC)
		return "the other end is another version of this program";
	if (a->mode > PIPE_PINGPONG)
		return "--mode is write, read or pingpong";
	if (a->payload == 0 || a->payload > 4096)
		return "--payload is in [1, 4096] bytes";
	if (a->message == 0 || a->message > MESSAGE_MAX || a->message % a->payload)
		return "--message is a multiple of --payload and at most 64 MiB";
	if (a->headers < PIPE_HEADERS || a->headers > PIPE_HEADERS_MAX ||
	    a->headers + a->payload + UR_ICRC_BYTES > PORT_FRAME_BYTES)
		return "--headers is in [54, 128] bytes, and a frame has at most 4218";
	if (a->window == 0 || a->window > WINDOW_MAX)
		return "--window is in [1, 8192] frames";
	if (a->ack_every == 0 || a->ack_every > a->window)
		return "--ack-every is in [1, --window] frames: with more, the window never opens";
	if (a->outstanding == 0 || a->outstanding > OUTSTANDING_MAX)
		return "--outstanding is in [1, 128] messages";
	if (a->mode == PIPE_PINGPONG && a->message != a->payload)
		return "--mode pingpong needs a --message of one frame: --payload is the same";
	return NULL;
}

/* ---- memory ---- */

/* Bytes without a period that a shift could meet; the same at both ends. */
static void fill(uint8_t *at, size_t bytes)
{
	uint64_t x = 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at[i] = (uint8_t)(x >> 32);
	}
}

static void *allocate(size_t bytes)
{
	return aligned_alloc(4096, RTE_ALIGN_CEIL(bytes, 4096));
}

static void write_header(uint8_t *header, uint32_t headers, uint32_t payload, uint8_t kind)
{
	const struct ur_path_attr attr = {
		.smac = {2, 0, 0, 0, 0, 1},
		.dmac = {2, 0, 0, 0, 0, 2},
		.src = ur_gid_from_ipv4(0x0a4d0001),
		.dst = ur_gid_from_ipv4(0x0a4d0002),
		.sport = 0xc000,
	};
	struct ur_path path;

	memset(header, 0, headers);
	ur_path_init(&path, &attr);
	ur_path_write(&path, header, headers - OPCODE_AT + payload + UR_ICRC_BYTES);
	header[OPCODE_AT] = kind;
}

/* The shared memory is the pipe's and outlives every frame: the driver copies it. */
static void keep(void *addr, void *arg)
{
	(void)addr, (void)arg;
}

void pipe_init(struct pipe *p)
{
	/* One length for all of them: nothing reads it. */
	write_header(p->control, PIPE_HEADERS, UR_AETH_BYTES, 0);
}

bool pipe_prepare(struct pipe *p)
{
	const struct pipe_attr *a = &p->attr;

	p->frame_bytes = a->headers + a->payload + UR_ICRC_BYTES;
	p->frames_per_message = a->message / a->payload;
	p->attach = p->port.copies_tx && a->payload >= ATTACH_BYTES;
	p->evict = p->port.shares_rx && !a->keep_cached && p->frame_bytes >= EVICT_BYTES &&
		   ur_cache_can_evict();
	p->alters_some = a->corrupt || a->forge;
	p->shared.free_cb = keep;
	rte_mbuf_ext_refcnt_set(&p->shared, 1);
	write_header(p->header, a->headers, a->payload, PIPE_DATA);
	p->source = allocate(a->message + SHIFTS);
	p->destination = allocate(a->message);
	if (!p->source || !p->destination)
		return false;
	fill(p->source, a->message + SHIFTS);
	memset(p->destination, 0, a->message);
	perf_histogram_reset(&p->halves);
	return true;
}

void pipe_release(struct pipe *p)
{
	free(p->source);
	free(p->destination);
	p->source = p->destination = NULL;
}

static void advance(const struct pipe_attr *a, struct pipe_cursor *c)
{
	c->at += a->payload;
	if (c->at == a->message)
		c->at = 0;
	if (a->verify && ++c->shift == SHIFTS)
		c->shift = 0;
}

/* ---- frames that leave ---- */

static void append_sum(struct rte_mbuf *m, uint32_t covered)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	ur_icrc_append(frame + UR_ETH_BYTES, covered - UR_ETH_BYTES, false);
	m->data_len = (uint16_t)(covered + UR_ICRC_BYTES);
	m->pkt_len = m->data_len;
}

static void copy_payload(const struct pipe *p, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(frame, p->header, p->attr.headers);
	memcpy(frame + p->attr.headers, p->source + p->tx.at + p->tx.shift, p->attr.payload);
}

static void build_copied(struct pipe *p, struct rte_mbuf *m)
{
	copy_payload(p, m);
	append_sum(m, p->attr.headers + p->attr.payload);
}

/* The payload is summed where it is; the driver copies headers, payload and sum into the ring. */
static void build_attached(struct pipe *p, struct rte_mbuf **m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m[0], uint8_t *);
	uint8_t *payload = p->source + p->tx.at + p->tx.shift;
	uint32_t sum;

	memcpy(frame, p->header, p->attr.headers);
	sum = ur_icrc_begin(frame + UR_ETH_BYTES, p->attr.headers - UR_ETH_BYTES, false);
	sum = ur_icrc_more(sum, payload, p->attr.payload);
	rte_mbuf_ext_refcnt_update(&p->shared, 1);
	rte_pktmbuf_attach_extbuf(m[1], payload, RTE_BAD_IOVA, (uint16_t)p->attr.payload,
				  &p->shared);
	ur_icrc_put(rte_pktmbuf_mtod(m[2], uint8_t *), sum);
	m[0]->data_len = (uint16_t)p->attr.headers;
	m[1]->data_len = (uint16_t)p->attr.payload;
	m[2]->data_len = UR_ICRC_BYTES;
	m[0]->pkt_len = p->frame_bytes;
	m[0]->nb_segs = 3;
	m[0]->next = m[1];
	m[1]->next = m[2];
}

static bool is_due(uint32_t every, uint64_t frame)
{
	return every && (frame + 1) % every == 0;
}

/* Another bit in each frame, of the payload and, after it is summed, of the sum. */
static void flip(const struct pipe *p, struct rte_mbuf *m, uint32_t bytes)
{
	uint64_t bit = p->sent * 1031 % (8ull * bytes);

	rte_pktmbuf_mtod(m, uint8_t *)[p->attr.headers + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* For tests: a frame that must not pass for the intended one. False: this frame is not altered. */
static bool build_altered(struct pipe *p, struct rte_mbuf *m)
{
	bool forge = is_due(p->attr.forge, p->sent), corrupt = is_due(p->attr.corrupt, p->sent);

	if (!forge && !corrupt)
		return false;
	copy_payload(p, m);
	if (forge)
		flip(p, m, p->attr.payload);
	append_sum(m, p->attr.headers + p->attr.payload);
	if (corrupt)
		flip(p, m, p->attr.payload + UR_ICRC_BYTES);
	return true;
}

static void begin_frame(struct pipe *p, struct rte_mbuf **m, unsigned pieces)
{
	if (p->alters_some && build_altered(p, m[0]))
		rte_pktmbuf_free_bulk(m + 1, pieces - 1);
	else if (pieces == PIECES)
		build_attached(p, m);
	else
		build_copied(p, m[0]);
	advance(&p->attr, &p->tx);
	p->sent++;
}

bool pipe_build_data(struct pipe *p, struct rte_mbuf **m, unsigned n)
{
	unsigned pieces = p->attach ? PIECES : 1;
	struct rte_mbuf *all[PIECES * PIPE_BURST];

	if (rte_pktmbuf_alloc_bulk(p->port.pool, all, n * pieces))
		return false;
	for (unsigned i = 0; i < n; i++) {
		m[i] = all[i * pieces];
		begin_frame(p, &all[i * pieces], pieces);
	}
	return true;
}

struct rte_mbuf *pipe_build_control(struct pipe *p, enum pipe_kind kind, const void *body,
				    uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->port.pool);
	uint8_t *frame;

	if (!m)
		return NULL;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(frame, p->control, PIPE_HEADERS);
	frame[OPCODE_AT] = (uint8_t)kind;
	if (len)
		memcpy(frame + PIPE_HEADERS, body, len);
	append_sum(m, PIPE_HEADERS + len);
	return m;
}

/* ---- frames that arrive ---- */

static bool sum_ok(const uint8_t *frame, uint32_t len)
{
	uint32_t covered = len - UR_ICRC_BYTES, sum;

	memcpy(&sum, frame + covered, sizeof(sum));
	return ur_icrc(frame + UR_ETH_BYTES, covered - UR_ETH_BYTES, false) ==
	       rte_le_to_cpu_32(sum);
}

enum pipe_kind pipe_frame_kind(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, const uint8_t *)[OPCODE_AT];
}

bool pipe_frame_ok(struct pipe *p, const struct rte_mbuf *m)
{
	if (m->nb_segs != 1 || m->pkt_len < PIPE_HEADERS + UR_ICRC_BYTES) {
		p->found.strange++;
		return false;
	}
	if (!sum_ok(rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len)) {
		p->found.bad_sums++;
		return false;
	}
	return true;
}

bool pipe_read_control(const struct rte_mbuf *m, void *body, uint32_t len)
{
	if (m->pkt_len != PIPE_HEADERS + len + UR_ICRC_BYTES)
		return false;
	memcpy(body, rte_pktmbuf_mtod_offset(m, const uint8_t *, PIPE_HEADERS), len);
	return true;
}

static bool bytes_ok(const struct pipe *p)
{
	return memcmp(p->destination + p->rx.at, p->source + p->rx.at + p->rx.shift,
		      p->attr.payload) == 0;
}

void pipe_take_data(struct pipe *p, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->pkt_len != p->frame_bytes || m->nb_segs != 1) {
		p->found.strange++;
		return;
	}
	if (sum_ok(frame, p->frame_bytes)) {
		memcpy(p->destination + p->rx.at, frame + p->attr.headers, p->attr.payload);
		if (p->attr.verify && !bytes_ok(p))
			p->found.wrong_bytes++;
	} else {
		p->found.bad_sums++;
	}
	if (p->evict)
		ur_cache_evict(frame, p->frame_bytes);
	advance(&p->attr, &p->rx);
	p->found.frames++;
}

void pipe_prefetch(const struct rte_mbuf *m)
{
	const char *frame = rte_pktmbuf_mtod(m, const char *);

	for (uint32_t at = 0; at < PREFETCH_BYTES && at < m->data_len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(frame + at);
}
