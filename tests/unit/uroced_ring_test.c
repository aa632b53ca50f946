/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "memif_msg.h"
#include "ring.h"

#define SHIFT  2
#define SLOTS  4
#define BUFFER 100
#define RING   (RING_HEADER_BYTES + SLOTS * RING_DESC_BYTES)
#define BYTES  (RING + SLOTS * BUFFER)

static struct region region;
static struct ring ring;
static uint8_t out[1000];
static uint32_t len;

static void put16(unsigned at, uint16_t v)
{
	memcpy(region.at + at, &v, 2);
}

static void put32(unsigned at, uint32_t v)
{
	memcpy(region.at + at, &v, 4);
}

static uint16_t get16(unsigned at)
{
	uint16_t v;

	memcpy(&v, region.at + at, 2);
	return v;
}

static uint16_t tail(void)
{
	return get16(64);
}

static void desc(unsigned i, uint16_t flags, uint16_t in, uint32_t length, uint32_t offset)
{
	unsigned at = RING_HEADER_BYTES + i * RING_DESC_BYTES;

	put16(at, flags);
	put16(at + 2, in);
	put32(at + 4, length);
	put32(at + 8, offset);
}

static void head(uint16_t v)
{
	put16(6, v);
}

static void setup(void)
{
	region = (struct region){aligned_alloc(64, 640), BYTES};
	memset(region.at, 0, BYTES);
	put32(0, RING_COOKIE);
	for (unsigned i = 0; i < SLOTS; i++) {
		desc(i, 0, 0, BUFFER, RING + i * BUFFER);
		memset(region.at + RING + i * BUFFER, 'a' + (int)i, BUFFER);
	}
	cr_assert(ring_open(&ring, &region, 0, SHIFT));
}

static void teardown(void)
{
	free(region.at);
}

TestSuite(uroced_ring, .init = setup, .fini = teardown);

static enum ring_result receive(uint32_t cap)
{
	return ring_receive(&ring, &region, out, cap, &len);
}

Test(uroced_ring, receives_in_order_and_says_so)
{
	cr_assert_eq(receive(1000), RING_EMPTY);
	head(2);
	cr_assert_eq(receive(1000), RING_DONE);
	cr_assert(len == BUFFER && out[0] == 'a' && out[99] == 'a');
	cr_assert_eq(receive(1000), RING_DONE);
	cr_assert_eq(out[0], 'b');
	cr_assert_eq(receive(1000), RING_EMPTY);
	cr_assert_eq(tail(), 0);
	ring_publish(&ring);
	cr_assert_eq(tail(), 2);
}

Test(uroced_ring, indices_wrap)
{
	for (unsigned i = 0; i < 70000; i++) {
		head((uint16_t)(i + 1));
		cr_assert_eq(receive(1000), RING_DONE);
		ring_publish(&ring);
		cr_assert_eq(tail(), (uint16_t)(i + 1));
	}
}

Test(uroced_ring, frames_of_several_buffers)
{
	desc(0, RING_NEXT, 0, 10, RING);
	desc(1, RING_NEXT, 0, 20, RING + BUFFER);
	desc(2, 0, 0, 30, RING + 2 * BUFFER);
	head(3);
	cr_assert_eq(receive(60), RING_DONE);
	cr_assert(len == 60 && out[9] == 'a' && out[10] == 'b' && out[30] == 'c');
	cr_assert_eq(ring.next, 3);
}

Test(uroced_ring, a_frame_that_is_too_long_is_skipped_whole)
{
	desc(0, RING_NEXT, 0, 100, RING);
	head(3);
	cr_assert_eq(receive(150), RING_SKIP);
	cr_assert_eq(receive(150), RING_DONE);
	cr_assert_eq(out[0], 'c');
}

/* UROCED-RING-01 */
Test(uroced_ring, what_the_peer_writes_leads_nowhere)
{
	head(SLOTS + 1);
	cr_assert_eq(receive(1000), RING_BROKEN, "more than there are slots");
	head(0xffff);
	cr_assert_eq(receive(1000), RING_BROKEN, "less than what was used");
	head(1);
	desc(0, 0, 1, 10, RING);
	cr_assert_eq(receive(1000), RING_BROKEN, "another region");
	desc(0, 0, 0, 10, BYTES - 9);
	cr_assert_eq(receive(1000), RING_BROKEN, "beyond the end");
	desc(0, 0, 0, 0xffffffff, RING);
	cr_assert_eq(receive(1000), RING_BROKEN, "longer than the region");
	desc(0, 0, 0, 16, 0xfffffff8);
	cr_assert_eq(receive(1000), RING_BROKEN, "a sum that overflows");
	desc(0, RING_NEXT, 0, 10, RING);
	cr_assert_eq(receive(1000), RING_BROKEN, "goes on beyond what is there");
	for (unsigned i = 0; i < SLOTS; i++)
		desc(i, RING_NEXT, 0, 0, RING);
	head(SLOTS);
	cr_assert_eq(receive(1000), RING_BROKEN, "without an end");
	desc(0, 0, 0, 10, BYTES - 10);
	cr_assert_eq(receive(1000), RING_DONE, "the last bytes");
}

Test(uroced_ring, rings_that_do_not_fit)
{
	struct ring r;

	cr_assert(ring_open(&r, &region, 0, SHIFT));
	cr_assert_not(ring_open(&r, &region, 4, SHIFT), "not aligned");
	cr_assert_not(ring_open(&r, &region, 0, 0));
	cr_assert_not(ring_open(&r, &region, 0, RING_SHIFT_MAX + 1));
	cr_assert_not(ring_open(&r, &region, 0, 5), "longer than the region");
	cr_assert_not(ring_open(&r, &region, 0xfffffff8, SHIFT));
	cr_assert_not(ring_open(&r, &region, BYTES - RING + 8, SHIFT));
	put32(0, 1);
	cr_assert_not(ring_open(&r, &region, 0, SHIFT), "no cookie");
}

static enum ring_result put(uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)i;
	return ring_send(&ring, &region, out, bytes);
}

static uint32_t length_of(unsigned i)
{
	uint32_t v;

	memcpy(&v, region.at + RING_HEADER_BYTES + i * RING_DESC_BYTES + 4, 4);
	return v;
}

Test(uroced_ring, sends_into_the_peers_buffers)
{
	cr_assert_eq(put(50), RING_EMPTY);
	head(3);
	cr_assert_eq(put(50), RING_DONE);
	cr_assert(length_of(0) == 50 && region.at[RING + 49] == 49 && region.at[RING + 50] == 'a');
	cr_assert_eq(put(150), RING_DONE, "two buffers");
	cr_assert(length_of(1) == 100 && length_of(2) == 50);
	cr_assert_eq(region.at[RING_HEADER_BYTES + RING_DESC_BYTES], RING_NEXT);
	cr_assert_eq(region.at[RING_HEADER_BYTES + 2 * RING_DESC_BYTES], 0);
	cr_assert_eq(region.at[RING + 2 * BUFFER], 100);
	cr_assert_eq(put(1), RING_EMPTY);
	ring_publish(&ring);
	cr_assert_eq(tail(), 3);
}

Test(uroced_ring, does_not_wait_for_what_can_never_fit)
{
	head(2);
	cr_assert_eq(put(201), RING_EMPTY, "more buffers may come");
	head(SLOTS);
	cr_assert_eq(put(401), RING_SKIP);
	for (unsigned i = 0; i < SLOTS; i++)
		desc(i, 0, 0, 0, RING);
	cr_assert_eq(put(1), RING_SKIP, "buffers without room");
	desc(0, 0, 0, 100, BYTES - 99);
	cr_assert_eq(put(1), RING_BROKEN);
	head(SLOTS + 2);
	cr_assert_eq(put(1), RING_BROKEN);
}

/* ---- messages ---- */

/* Buffers of no length: the peer decides how many descriptors there are, not how many are read for a frame. */
Test(uroced_ring, a_chain_has_an_end)
{
	enum { MANY = 256, LONG = RING_HEADER_BYTES + MANY * RING_DESC_BYTES };
	struct region m = {aligned_alloc(64, LONG + 64), LONG};
	uint32_t cookie = RING_COOKIE;
	uint16_t flags = RING_NEXT, at = MANY;
	struct ring r;

	memset(m.at, 0, LONG);
	memcpy(m.at, &cookie, 4);
	cr_assert(ring_open(&r, &m, 0, 8));
	memcpy(m.at + 6, &at, 2);
	cr_assert_eq(ring_send(&r, &m, out, 1), RING_SKIP);
	at = RING_CHAIN_MAX - 1;
	memcpy(m.at + 6, &at, 2);
	cr_assert_eq(ring_send(&r, &m, out, 1), RING_EMPTY);
	at = MANY;
	memcpy(m.at + 6, &at, 2);
	memset(m.at + RING_HEADER_BYTES, 0, MANY * RING_DESC_BYTES);
	for (unsigned i = 0; i < RING_CHAIN_MAX - 1; i++)
		memcpy(m.at + RING_HEADER_BYTES + i * RING_DESC_BYTES, &flags, 2);
	cr_assert_eq(ring_receive(&r, &m, out, sizeof(out), &len), RING_DONE);
	cr_assert_eq(r.next, RING_CHAIN_MAX);
	for (unsigned i = 0; i < MANY; i++)
		memcpy(m.at + RING_HEADER_BYTES + i * RING_DESC_BYTES, &flags, 2);
	cr_assert_eq(ring_receive(&r, &m, out, sizeof(out), &len), RING_BROKEN);
	free(m.at);
}

Test(uroced_ring, messages_of_a_client)
{
	uint8_t m[MEMIF_MSG_BYTES] = {MEMIF_INIT};
	struct memif_msg got;

	m[3] = 2; /* version 2.0 */
	m[4] = 77;
	memset(m + 9, 's', MEMIF_SECRET_BYTES);
	cr_assert(memif_msg_get(m, sizeof(m), &got));
	cr_assert(got.type == MEMIF_INIT && got.id == 77 &&
		  strlen(got.secret) == MEMIF_SECRET_BYTES);
	m[8] = 1;
	cr_assert_not(memif_msg_get(m, sizeof(m), &got), "not Ethernet");
	m[8] = 0;
	m[2] = 1;
	cr_assert_not(memif_msg_get(m, sizeof(m), &got), "another version");
	cr_assert_not(memif_msg_get(m, sizeof(m) - 1, &got));
	memset(m, 0, sizeof(m));
	m[0] = MEMIF_ADD_RING;
	m[2] = 1;
	m[8] = 0x80; /* offset */
	m[12] = 8;
	cr_assert(memif_msg_get(m, sizeof(m), &got));
	cr_assert(got.to_server && got.index == 0 && got.region == 0 && got.offset == 0x80 &&
		  got.shift == 8);
	for (unsigned type = 0; type < 256; type++) {
		memset(m, 0, sizeof(m));
		m[0] = (uint8_t)type;
		m[3] = type == MEMIF_INIT ? 2 : 0;
		cr_assert_eq(memif_msg_get(m, sizeof(m), &got),
			     type == MEMIF_ACK || type == MEMIF_INIT || type == MEMIF_ADD_REGION ||
				     type == MEMIF_ADD_RING || type == MEMIF_CONNECT ||
				     type == MEMIF_DISCONNECT);
	}
}

/* UROCED-WAKE-02 */
Test(uroced_ring, it_is_interrupted_only_while_it_asks_for_that)
{
	cr_expect_eq(get16(4), RING_MASK_INT);
	ring_ask_interrupts(&ring, true);
	cr_expect_eq(get16(4), 0);
	ring_ask_interrupts(&ring, false);
	cr_expect_eq(get16(4), RING_MASK_INT);
}

/* UROCED-WAKE-01 */
Test(uroced_ring, a_consumer_that_sleeps_wants_to_be_woken)
{
	cr_expect_not(ring_wants_wake(&ring), "it polls when it connects");
	put16(4, 0);
	cr_expect(ring_wants_wake(&ring));
	put16(4, 0xfffe);
	cr_expect(ring_wants_wake(&ring), "other flags mean nothing");
	put16(4, RING_MASK_INT);
	cr_expect_not(ring_wants_wake(&ring));
}
