/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "edge/lease_msg.h"
#include "fuzz.h"
#include "guard.h"
#include "memif_msg.h"
#include "ring.h"

/*
 * What a client of uroced writes: a message to the lease's socket, a message of memif, a frame, or the shared memory. The first
 * byte says which. Whatever arrives, what is accepted is within its limits, and memory outside the region stays as it is.
 */
#define REGION_BYTES 1024
#define CANARY	     0xa5
#define CAP	     300

static void direct(const uint8_t *p, size_t len)
{
	uint8_t again[UR_LEASE_MESSAGE_MAX];
	struct ur_lease_direct d;
	uint32_t address;

	if (ur_lease_get_ring_request(p, len, &address)) {
		ur_lease_put_ring_request(address, again);
		FUZZ_CHECK(memcmp(again, p, len) == 0);
	}
	if (ur_lease_get_direct(p, len, &d)) {
		FUZZ_CHECK(d.client && (d.frame_max || !d.second));
		ur_lease_put_direct(&d, again);
		FUZZ_CHECK(memcmp(again, p, len) == 0);
	}
}

static void lease(const uint8_t *p, size_t len)
{
	uint8_t again[UR_LEASE_MESSAGE_MAX];
	struct ur_lease_request r;
	struct ur_lease_grant g;
	enum ur_lease_refusal why;

	direct(p, len);
	if (ur_lease_get_request(p, len, &r)) {
		FUZZ_CHECK(strlen(r.secret) < sizeof(r.secret) &&
			   strlen(r.program) < sizeof(r.program));
		ur_lease_put_request(&r, again);
		FUZZ_CHECK(memcmp(again, p, len) == 0);
	}
	switch (ur_lease_get_answer(p, len, &g, &why)) {
	case UR_LEASE_GRANTED:
		FUZZ_CHECK(!strchr(g.memif, '/') && strlen(g.secret) == UR_LEASE_SECRET_CHARS);
		ur_lease_put_grant(&g, again);
		FUZZ_CHECK(memcmp(again, p, len) == 0);
		break;
	case UR_LEASE_REFUSED:
		FUZZ_CHECK(*ur_lease_refusal_text(why));
		break;
	case UR_LEASE_BAD:
		break;
	}
}

static void memif(const uint8_t *p, size_t len)
{
	struct memif_msg m;

	if (memif_msg_get(p, len, &m))
		FUZZ_CHECK(strlen(m.secret) <= MEMIF_SECRET_BYTES && *(p + 1) == 0);
}

/* A frame that passes has the client's addresses. */
static void frame(const uint8_t *p, size_t len)
{
	static const uint8_t mac[6] = {2, 0x75, 10, 77, 0, 2};
	struct guard g;

	guard_init(&g, mac, 0x0a4d0002, 0, false);
	if (guard_check(&g, p, (uint32_t)len) != GUARD_PASS)
		return;
	FUZZ_CHECK(len >= 14 + 20 && memcmp(p + 6, mac, 6) == 0);
	if (p[12] == 8 && p[13] == 0)
		FUZZ_CHECK(memcmp(p + 26, mac + 2, 4) == 0);
	if (p[12] == 8 && p[13] == 6)
		FUZZ_CHECK(memcmp(p + 22, mac, 6) == 0);
}

/* The memory is the input; between two calls the peer moves its heads. */
static void shared(const uint8_t *p, size_t len)
{
	static _Alignas(64) uint8_t memory[64 + REGION_BYTES + 64];
	struct region m = {memory + 64, REGION_BYTES};
	static uint8_t buf[CAP + 1];
	static const uint32_t cookie = RING_COOKIE;
	struct ring rx, tx;
	uint32_t got;

	memset(memory, CANARY, sizeof(memory));
	memset(m.at, 0, REGION_BYTES);
	memcpy(m.at, p, len < REGION_BYTES ? len : REGION_BYTES);
	memcpy(m.at, &cookie, 4);
	memcpy(m.at + 256, &cookie, 4);
	FUZZ_CHECK(ring_open(&rx, &m, 0, 3) && ring_open(&tx, &m, 256, 3));
	buf[CAP] = CANARY;
	for (unsigned i = 0; i < 16; i++) {
		uint16_t head =
			len > 2 * i + 1 ? (uint16_t)(p[2 * i] | p[2 * i + 1] << 8) : (uint16_t)i;
		enum ring_result r;

		memcpy(m.at + 6, &head, 2);
		memcpy(m.at + 256 + 6, &head, 2);
		r = ring_receive(&rx, &m, buf, CAP, &got);
		FUZZ_CHECK(r != RING_DONE || got <= CAP);
		ring_publish(&rx);
		r = ring_send(&tx, &m, buf, 1 + i * 16);
		ring_publish(&tx);
	}
	FUZZ_CHECK(buf[CAP] == CANARY);
	for (unsigned i = 0; i < 64; i++)
		FUZZ_CHECK(memory[i] == CANARY && memory[64 + REGION_BYTES + i] == CANARY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const target[])(const uint8_t *p, size_t len) = {lease, memif, frame, shared};

	if (size)
		target[data[0] % 4](data + 1, size - 1);
	return 0;
}
