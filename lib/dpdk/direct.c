/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/direct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "dpdk/mbuf_source.h"
#include "edge/neigh_frame.h"
#include "wire/bytes.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define TYPE_AT	   12 /* in a frame: ethertype, */
#define IP_AT	   14 /* IPv4 header without options, */
#define PROTO_AT   23
#define SRC_AT	   26
#define PORT_AT	   36 /* UDP destination port, */
#define OPCODE_AT  42 /* BTH */
#define QPN_AT	   47
#define FRAME_MIN  (OPCODE_AT + UR_BTH_BYTES + UR_ICRC_BYTES)
#define TYPE_IP4   0x0800
#define WAKE_BYTES (IP_AT + UR_IPV4_BYTES + UR_UDP_BYTES)
#define IP4_PLAIN  0x45
#define FULL_NS	   1000000
#define REQUEST_NS 1000000000

/* ---- the rings ---- */

static void *map(int fd, size_t bytes)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0 || st.st_size < 0 || (size_t)st.st_size < bytes)
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	/* EDGE-FORK-02: a child makes no rounds. */
	madvise(at, bytes, MADV_DONTFORK);
	return at;
}

struct ur_direct_peer *ur_direct_peer_new(const struct ur_direct_host *host,
					  const struct ur_lease_direct *d, int fd)
{
	struct ur_direct_peer *p = calloc(1, sizeof(*p));
	size_t bytes = ur_direct_bytes(d->frame_max);
	void *memory = p ? map(fd, bytes) : NULL;

	if (fd >= 0)
		close(fd);
	if (!memory) {
		free(p);
		return NULL;
	}
	ur_direct_ring_init(&p->ring, memory, d->frame_max, d->second);
	p->memory = memory;
	p->bytes = bytes;
	p->client = d->client;
	if (host->number) {
		memcpy(p->mac, host->mac, sizeof(p->mac));
		memcpy(p->ip4, host->ip4, sizeof(p->ip4));
	} else {
		ur_lease_mac(d->client, p->mac);
		ur_store32(p->ip4, d->client);
	}
	return p;
}

void ur_direct_peer_free(struct ur_direct_peer *p, bool over)
{
	if (!p)
		return;
	if (over)
		madvise(p->memory, p->bytes, MADV_REMOVE);
	munmap(p->memory, p->bytes);
	free(p);
}

struct ur_direct_peer *ur_direct_add(struct ur_direct *d, struct ur_direct_peer *p)
{
	struct ur_direct_peer *old = ur_direct_remove(d, p->client);

	if (d->cnt == UR_DIRECT_MAX)
		return p;
	d->peer[d->cnt++] = p;
	ur_direct_set_ready(&p->ring);
	return old;
}

struct ur_direct_peer *ur_direct_remove(struct ur_direct *d, uint32_t client)
{
	for (unsigned i = 0; i < d->cnt; i++) {
		struct ur_direct_peer *p = d->peer[i];

		if (client && p->client != client)
			continue;
		d->peer[i] = d->peer[--d->cnt];
		return p;
	}
	return NULL;
}

/* ---- send ---- */

/* An RC packet by IPv4, so one of a connection, which a receiver checks against its peer. */
static bool is_rc(const uint8_t *frame, uint32_t len)
{
	uint8_t transport;

	if (len < FRAME_MIN || ur_load16(frame + TYPE_AT) != TYPE_IP4 ||
	    frame[IP_AT] != IP4_PLAIN || frame[PROTO_AT] != UR_IPPROTO_UDP ||
	    ur_load16(frame + PORT_AT) != UR_ROCE_UDP_PORT)
		return false;
	transport = frame[OPCODE_AT] & UR_TRANSPORT_MASK;
	return transport == UR_TRANSPORT_RC || transport == UR_TRANSPORT_EXT;
}

/* The other client of uroced that an RC packet is for; 0: none. */
static uint32_t receiver_of(const struct ur_direct_host *host, const uint8_t *frame)
{
	static const uint8_t lease_mac[2] = {0x02, 0x75};
	uint8_t number = frame[QPN_AT] >> (8 - UR_LEASE_PREFIX_BITS);

	if (!host->number)
		return memcmp(frame, lease_mac, sizeof(lease_mac)) ? 0 : ur_load32(frame + 2);
	if (memcmp(frame, host->mac, sizeof(host->mac)) || number > UR_LEASE_NUMBER_MAX)
		return 0;
	return number == host->number ? 0 : number;
}

/* UROCED-DIRECT-01, UROCED-DIRECT-04 */
struct ur_direct_peer *ur_direct_find(struct ur_direct *d, const uint8_t *frame, uint32_t len)
{
	uint32_t client = is_rc(frame, len) ? receiver_of(&d->host, frame) : 0;

	if (!client)
		return NULL;
	for (unsigned i = 0; i < d->cnt; i++) {
		struct ur_direct_peer *p = d->peer[i];

		if (p->client == client)
			return ur_direct_is_ready(&p->ring) && len <= p->ring.frame_max ? p : NULL;
	}
	atomic_store_explicit(&d->wanted, client, memory_order_relaxed);
	return NULL;
}

static void copy_frame(const struct ur_pkt *pkt, uint8_t *to)
{
	if (!pkt->in_pieces) {
		memcpy(to, pkt->data, pkt->len);
		return;
	}
	for (const struct rte_mbuf *m = pkt->handle; m; m = m->next) {
		memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
		to += m->data_len;
	}
}

/* UROCED-DIRECT-03. The ring is full: whether frames are lost. What could be sent is what the other end has taken, whatever it says. */
static bool is_stuck(struct ur_direct_peer *p, uint64_t now_ns)
{
	if (!p->full_ns || p->ring.sent - p->full_sent >= UR_DIRECT_SLOTS / 2) {
		p->full_ns = now_ns;
		p->full_sent = p->ring.sent;
	}
	return now_ns >= p->full_ns + FULL_NS;
}

/*
 * By the port, because uroced can wake any of its clients, and what clients give each other could be made to block. The headers are those of a
 * frame that was sent; the receiver drops a datagram to this port. Of clients with one address, the source port names it.
 */
static bool wake(const struct ur_direct_host *host, uint32_t client, struct ur_mbuf_source *s,
		 const uint8_t *frame)
{
	struct ur_pkt pkt;
	uint8_t *ip, *udp;

	if (!ur_mbuf_alloc(s, &pkt, 1))
		return false;
	memcpy(pkt.data, frame, WAKE_BYTES);
	ip = pkt.data + IP_AT;
	udp = ip + UR_IPV4_BYTES;
	ur_store16(ip + 2, UR_IPV4_BYTES + UR_UDP_BYTES);
	ur_store16(ip + 10, 0);
	ur_store16(ip + 10, (uint16_t)~ur_csum_fold(ur_csum_add(0, ip, UR_IPV4_BYTES)));
	if (host->number)
		ur_store16(udp, (uint16_t)client);
	ur_store16(udp + 2, UR_LEASE_WAKE_PORT);
	ur_store16(udp + 4, UR_UDP_BYTES);
	ur_store16(udp + 6, 0);
	pkt.len = WAKE_BYTES;
	if (ur_mbuf_send_by_port(s, &pkt, 1))
		return true;
	ur_mbuf_free(s, &pkt, 1);
	return false;
}

unsigned ur_direct_tx(struct ur_direct *d, struct ur_direct_peer *p, struct ur_mbuf_source *s,
		      struct ur_pkt *pkts, unsigned n)
{
	unsigned sent = 0, lost = 0;
	uint8_t *room;

	while (sent < n && (room = ur_direct_room(&p->ring))) {
		copy_frame(&pkts[sent], room);
		ur_direct_push(&p->ring, pkts[sent++].len);
	}
	if (sent < n && is_stuck(p, ur_mbuf_now_ns(s)))
		lost = n - sent;
	d->counters->direct_tx += sent;
	d->counters->direct_lost += lost;
	if (sent && ur_direct_must_wake(&p->ring) && wake(&d->host, p->client, s, pkts[0].data))
		ur_direct_set_woken(&p->ring);
	if (sent + lost)
		ur_mbuf_free(s, pkts, sent + lost);
	return sent + lost;
}

/* ---- receive ---- */

static bool is_permitted(const struct ur_direct_peer *p, const uint8_t *frame, uint32_t len)
{
	return is_rc(frame, len) && memcmp(frame + 6, p->mac, 6) == 0 &&
	       memcmp(frame + SRC_AT, p->ip4, 4) == 0;
}

/* Takes at most *most frames, and counts them off; returns how many of them are permitted. */
static unsigned receive(struct ur_direct *d, struct ur_direct_peer *p, struct ur_mbuf_source *s,
			struct ur_pkt *pkts, unsigned *most)
{
	uint32_t cnt = ur_direct_waiting(&p->ring, *most), room = s->port->mbuf_room_bytes;
	unsigned kept = 0;

	if (!cnt)
		return 0;
	*most -= cnt;
	/* Without a buffer they stay in the ring. */
	if (!ur_mbuf_alloc(s, pkts, cnt))
		return 0;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t len;
		const uint8_t *frame = ur_direct_frame(&p->ring, i, &len);

		if (len < FRAME_MIN || len > room)
			continue;
		memcpy(pkts[kept].data, frame, len);
		pkts[kept].len = len;
		kept += is_permitted(p, pkts[kept].data, len);
	}
	ur_direct_take(&p->ring, cnt);
	d->counters->direct_rx += kept;
	if (kept < cnt) {
		d->counters->direct_refused += cnt - kept;
		ur_mbuf_free(s, pkts + kept, cnt - kept);
	}
	return kept;
}

unsigned ur_direct_rx(struct ur_direct *d, struct ur_mbuf_source *s, struct ur_pkt *pkts,
		      unsigned n)
{
	unsigned got = 0, at = d->first;

	/* An end that lies is not served longer for it. */
	for (unsigned i = 0; i < d->cnt && n; i++) {
		at = at < d->cnt ? at : 0;
		got += receive(d, d->peer[at++], s, pkts + got, &n);
	}
	d->first = at;
	return got;
}

/* ---- the progress thread ---- */

uint32_t ur_direct_request(struct ur_direct *d, uint64_t now_ns)
{
	uint32_t client = atomic_exchange_explicit(&d->wanted, 0, memory_order_relaxed);
	unsigned oldest = 0;

	if (!client)
		return 0;
	for (unsigned i = 0; i < 2 * UR_DIRECT_MAX; i++) {
		if (d->requested[i].client == client && now_ns < d->requested[i].until_ns)
			return 0;
		if (d->requested[i].until_ns < d->requested[oldest].until_ns)
			oldest = i;
	}
	d->requested[oldest].client = client;
	d->requested[oldest].until_ns = now_ns + REQUEST_NS;
	return client;
}

/* The other end ends each sleep once, and which thread that wakes is not known. So as long as any sleeps, a change begins another sleep. */
void ur_direct_set_sleep(struct ur_direct *d, bool sleeps)
{
	d->sleepers += sleeps ? 1u : -1u;
	for (unsigned i = 0; i < d->cnt; i++) {
		ur_direct_set_sleeps(&d->peer[i]->ring, false);
		if (d->sleepers)
			ur_direct_set_sleeps(&d->peer[i]->ring, true);
	}
}
