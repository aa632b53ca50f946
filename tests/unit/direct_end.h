/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_DIRECT_END_H
#define TESTS_DIRECT_END_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "dpdk/direct.h"
#include "dpdk/mbuf_source.h"
#include "edge/neigh_frame.h"
#include "dpdk/port.h"
#include "descriptors.h"
#include "wire/bytes.h"

/* An endpoint with direct rings, and the other ends of these. */

#define PEER	  0x0a4d0003 /* 10.77.0.3, the other end */
#define OWN	  0x0a4d0002
#define MS	  UINT64_C(1000000)
#define S	  UINT64_C(1000000000)
#define FRAME_MAX 4218

static struct ur_port port;
static struct ur_mbuf_source source;
static struct ur_clock fake;
static uint64_t no_mbuf;
static struct ur_worker_counters cnt;
static struct ur_direct d;

/* What the other end of a ring has. */
struct other {
	struct ur_direct_ring ring;
	uint32_t client;
	int memory;
	void *at;
	size_t bytes;
};

static struct other peer;

/* A cycle is 2^-32 ns, so the time stands still between two calls. */
static inline void set_time(uint64_t ns)
{
	fake = (struct ur_clock){.base = rte_rdtsc() - (ns << 32), .mult = 1};
}

/* ---- the other end ---- */

/* Returns this end's. `less`: bytes that the memory lacks. */
static inline struct ur_direct_peer *make_ring(struct other *o, uint32_t client, uint16_t frame_max,
					       size_t less)
{
	struct ur_lease_direct msg = {client, frame_max, true};

	o->client = client;
	o->bytes = ur_direct_bytes(frame_max);
	o->memory = memfd_create("ring", MFD_CLOEXEC);
	cr_assert(o->memory >= 0 && ftruncate(o->memory, (off_t)(o->bytes - less)) == 0);
	o->at = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o->memory, 0);
	cr_assert_neq(o->at, MAP_FAILED);
	ur_direct_ring_init(&o->ring, o->at, frame_max, false);
	return ur_direct_peer_new(&d.host, &msg, dup(o->memory));
}

static inline void free_other(struct other *o)
{
	munmap(o->at, o->bytes);
	close(o->memory);
}

/* ---- frames ---- */

/* A SEND Only of RC, from one client of uroced to another; the rest of the bytes count up. */
static inline void make_frame(uint8_t *f, uint32_t len, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < len; i++)
		f[i] = (uint8_t)(i + len);
	ur_lease_mac(to, f);
	ur_lease_mac(from, f + 6);
	ur_store16(f + 12, 0x0800);
	f[14] = 0x45;
	f[23] = 17;
	ur_store32(f + 26, from);
	ur_store32(f + 30, to);
	ur_store16(f + 36, 4791);
	f[42] = 4;
}

static inline struct ur_pkt make_pkt(uint32_t len, uint32_t to)
{
	struct ur_pkt pkt;

	cr_assert(ur_mbuf_alloc(&source, &pkt, 1));
	cr_assert_not_null(rte_pktmbuf_append(pkt.handle, (uint16_t)len));
	pkt.len = len;
	make_frame(pkt.data, len, OWN, to);
	return pkt;
}

static inline bool is_frame(const uint8_t *f, uint32_t got, uint32_t len, uint32_t from,
			    uint32_t to)
{
	static uint8_t as[UINT16_MAX];

	make_frame(as, len, from, to);
	return got == len && memcmp(f, as, len) == 0;
}

/* The other end sends. */
static inline void push(struct other *o, const uint8_t *frame, uint32_t len)
{
	uint8_t *room = ur_direct_room(&o->ring);

	cr_assert_not_null(room);
	memcpy(room, frame, len);
	ur_direct_push(&o->ring, len);
}

static inline void push_good(struct other *o, uint32_t len)
{
	uint8_t f[FRAME_MAX];

	make_frame(f, len, o->client, OWN);
	push(o, f, len);
}

/* ---- a program with an EAL and a port for each test ---- */

static inline void set_up(void)
{
	char line[256], *argv[16], err[512];
	struct ur_port_attr attr = {.mtu = 4200};
	int argc = 0;

	snprintf(line, sizeof(line),
		 "direct_test --no-huge --no-shconf --no-pci -m 64 --no-telemetry --log-level=*:3 "
		 "--lcores 0 --file-prefix ur_direct_test_%d --vdev net_ring0",
		 (int)getpid());
	for (char *arg = strtok(line, " "); arg; arg = strtok(NULL, " "))
		argv[argc++] = arg;
	cr_assert_geq(rte_eal_init(argc, argv), 0);
	cr_assert_eq(ur_port_open(&port, 0, &attr, err, sizeof(err)), 0, "%s", err);
	set_time(S);
	ur_mbuf_source_init(&source, &port, 0, &fake, false, &no_mbuf);
	source.direct = &d;
	d.counters = &cnt;
}

/* No buffer is lost, whatever became of its frame. */
static inline void tear_down(void)
{
	ur_mbuf_source_fini(&source);
	cr_assert_eq(rte_mempool_avail_count(port.pool[0]), port.mbuf_cnt);
	for (struct ur_direct_peer *p; (p = ur_direct_remove(&d, 0));)
		ur_direct_peer_free(p, false);
	ur_port_close(&port);
	rmdir(rte_eal_get_runtime_dir()); /* the EAL does not remove it */
	rte_eal_cleanup();
}

/* With a ring whose other end takes frames. */
static inline void set_up_ring(void)
{
	struct ur_direct_peer *p;

	set_up();
	p = make_ring(&peer, PEER, FRAME_MAX, 0);
	cr_assert_not_null(p);
	cr_assert_null(ur_direct_add(&d, p));
	ur_direct_set_ready(&peer.ring);
}

static inline void tear_down_ring(void)
{
	free_other(&peer);
	tear_down();
}

#endif
