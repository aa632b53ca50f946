/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk/memif_wake.h"
#include "descriptors.h"

/* EDGE-REST-04: messages as a memif driver sends and receives them, and the peer of a ring. */

#define REGION_BYTES 16384
#define RING_OFFSET  4160 /* ours, on the second page */
#define OTHER_OFFSET 64
#define COOKIE	     0x3e31f20
#define PATH	     "/run/m.sock"

enum { INIT = 3, ADD_REGION, ADD_RING };

static uint8_t *region;
static int region_fd, sock[2], event_fd;
static const struct ur_memif_end client = {.path = PATH, .id = 7};

static _Atomic uint16_t *word(unsigned at)
{
	return (void *)(region + at);
}

#define FLAGS word(RING_OFFSET + 4)
#define TAIL  word(RING_OFFSET + 64)

static void put(uint8_t *msg, unsigned at, uint64_t v, unsigned bytes)
{
	memcpy(msg + at, &v, bytes);
}

static void say_init(int s, bool server, uint32_t id)
{
	uint8_t msg[128] = {INIT};

	put(msg, 2, 0x200, 2);
	put(msg, 4, id, 4);
	ur_memif_wake_message(s, server, msg, -1);
}

static void say_region(int s, bool server, unsigned index)
{
	uint8_t msg[128] = {ADD_REGION};

	put(msg, 2, index, 2);
	put(msg, 4, REGION_BYTES, 8);
	ur_memif_wake_message(s, server, msg, region_fd);
}

static void say_ring(int s, bool server, bool to_server, unsigned index, unsigned in,
		     uint32_t offset, int fd)
{
	uint8_t msg[128] = {ADD_RING};

	put(msg, 2, to_server, 2);
	put(msg, 4, index, 2);
	put(msg, 6, in, 2);
	put(msg, 8, offset, 4);
	put(msg, 12, 8, 1);
	ur_memif_wake_message(s, server, msg, fd);
}

static void setup(void)
{
	static const uint32_t cookie = COOKIE;

	region_fd = memfd_create("region", MFD_CLOEXEC);
	cr_assert_eq(ftruncate(region_fd, REGION_BYTES), 0);
	region = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, region_fd, 0);
	cr_assert_neq(region, MAP_FAILED);
	memcpy(region + RING_OFFSET, &cookie, 4);
	memcpy(region + OTHER_OFFSET, &cookie, 4);
	*FLAGS = *word(OTHER_OFFSET + 4) = 1;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	event_fd = eventfd(0, EFD_NONBLOCK);
}

/* As a client connects, with one ring each way. */
static void connect_client(void)
{
	ur_memif_wake_connect(sock[0], PATH);
	say_init(sock[0], false, 7);
	say_region(sock[0], false, 0);
	say_ring(sock[0], false, true, 0, 0, OTHER_OFFSET, event_fd);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET, event_fd);
}

TestSuite(memif_wake, .init = setup);

Test(memif_wake, the_flag_is_clear_while_it_is_armed)
{
	struct pollfd p[4];
	uint64_t one = 1;

	connect_client();
	cr_assert_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
	cr_expect_eq(*FLAGS, 0);
	cr_expect_eq(*word(OTHER_OFFSET + 4), 1, "the ring that we send to is not ours");
	cr_expect_eq(poll(p, 1, 0), 0);
	cr_expect_eq(write(event_fd, &one, 8), 8);
	cr_expect_eq(poll(p, 1, 0), 1);
	ur_memif_wake_disarm(&client);
	cr_expect_eq(*FLAGS, 1);
}

Test(memif_wake, what_was_written_before_ends_no_sleep)
{
	struct pollfd p[4];
	uint64_t one = 1;

	connect_client();
	cr_assert_eq(write(event_fd, &one, 8), 8);
	cr_assert_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
	cr_expect_eq(poll(p, 1, 0), 0);
	/* But no thread that sleeps loses what is for it. */
	cr_assert_eq(write(event_fd, &one, 8), 8);
	cr_assert_eq(ur_memif_wake_arm(&client, 1, p + 1, 3), 1);
	cr_expect_eq(poll(p, 2, 0), 2);
}

Test(memif_wake, the_flag_is_clear_until_the_last_thread_is_awake)
{
	struct pollfd p[4];

	connect_client();
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
	for (int i = 0; i < 2; i++) {
		ur_memif_wake_disarm(&client);
		cr_expect_eq(*FLAGS, 0);
	}
	ur_memif_wake_disarm(&client);
	cr_expect_eq(*FLAGS, 1);
	ur_memif_wake_disarm(&client);
	cr_assert_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
	ur_memif_wake_disarm(&client);
	cr_expect_eq(*FLAGS, 1, "one too many, after another connection, does not count");
}

Test(memif_wake, other_ends_and_queues_stay_as_they_are)
{
	struct ur_memif_end other = client;
	struct pollfd p[4];

	connect_client();
	other.id = 8;
	cr_expect_eq(ur_memif_wake_arm(&other, 1, p, 4), 0);
	other = client;
	other.server = true;
	cr_expect_eq(ur_memif_wake_arm(&other, 1, p, 4), 0);
	other = client;
	strcpy(other.path, "/run/n.sock");
	cr_expect_eq(ur_memif_wake_arm(&other, 1, p, 4), 0);
	cr_expect_eq(ur_memif_wake_arm(&client, 2, p, 4), 0, "queue 1");
	cr_expect_eq(ur_memif_wake_arm(&client, 1, p, 0), 0, "no room");
	cr_expect_eq(*FLAGS, 1);
}

Test(memif_wake, a_server_finds_the_rings_of_its_client)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct ur_memif_end server = {.id = 3, .server = true};
	struct pollfd p[4];
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/memif_wake_test.%d", (int)getpid());
	strcpy(server.path, name.sun_path);
	cr_assert_eq(bind(s, (const struct sockaddr *)&name, sizeof(name)), 0);
	unlink(name.sun_path);
	say_init(s, true, 3);
	say_region(s, true, 0);
	say_ring(s, true, true, 1, 0, RING_OFFSET, event_fd);
	say_ring(s, true, false, 1, 0, OTHER_OFFSET, event_fd);
	cr_expect_eq(ur_memif_wake_arm(&server, 1u << 1, p, 4), 1);
	cr_expect_eq(*FLAGS, 0);
	cr_expect_eq(*word(OTHER_OFFSET + 4), 1);
	close(s);
}

/* The rings of a peer that does not mean well, or of one that is not known, never wake: nothing is written there. */
Test(memif_wake, a_ring_that_is_not_one_is_left_out)
{
	struct pollfd p[4];
	int blocking = eventfd(0, 0);

	say_region(sock[0], true, 0); /* before it has said who it is */
	ur_memif_wake_connect(sock[0], PATH);
	say_init(sock[0], false, 7);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET, event_fd); /* before its region */
	say_region(sock[0], false, 1);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET, event_fd);
	say_region(sock[0], false, 0);
	say_ring(sock[0], false, false, 0, 1, RING_OFFSET, event_fd);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET + 8, event_fd); /* no cookie */
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET + 1, event_fd);
	say_ring(sock[0], false, false, 0, 0, REGION_BYTES, event_fd);
	say_ring(sock[0], false, false, 0, 0, UINT32_MAX - 7, event_fd);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET, blocking);
	say_ring(sock[0], false, false, 0, 0, RING_OFFSET, -1);
	cr_expect_eq(ur_memif_wake_arm(&client, UINT32_MAX, p, 4), 0);
	say_ring(sock[0], false, false, 65535, 0, RING_OFFSET, event_fd);
	cr_expect_eq(ur_memif_wake_arm(&client, UINT32_MAX, p, 4), 0, "a queue beyond all");
	cr_expect_eq(*FLAGS, 1);
	for (unsigned i = 0; i < 100; i++)
		say_ring(sock[0], false, false, 0, 0, RING_OFFSET, event_fd);
	cr_expect_leq(ur_memif_wake_arm(&client, 1, p, 4), 4);
	close(blocking);
}

Test(memif_wake, a_connection_that_ends_leaves_nothing)
{
	struct pollfd p[4];
	unsigned before = descriptors();

	connect_client();
	cr_expect_gt(descriptors(), before);
	ur_memif_wake_closed(sock[1]);
	cr_expect_eq(ur_memif_wake_arm(&client, 1, p, 4), 1, "another connection has ended");
	ur_memif_wake_closed(sock[0]);
	cr_expect_eq(ur_memif_wake_arm(&client, 1, p, 4), 0);
	cr_expect_eq(descriptors(), before);
	/* The same number, of a new connection. */
	connect_client();
	connect_client();
	cr_expect_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
	ur_memif_wake_closed(sock[0]);
	cr_expect_eq(descriptors(), before);
}

/* EDGE-REST-05 */
Test(memif_wake, the_driver_interrupts_by_another_descriptor)
{
	struct ur_memif_end other = client;
	unsigned before = descriptors();
	int mine = eventfd(0, EFD_NONBLOCK);
	uint64_t n = 5;

	other.id = 8;
	cr_assert_eq(ur_memif_wake_interrupt(&other, region_fd), 0);
	cr_assert_eq(ur_memif_wake_interrupt(&client, mine), 0);
	ur_memif_wake_connect(sock[0], PATH);
	say_init(sock[0], false, 7);
	say_region(sock[0], false, 0);
	say_ring(sock[0], false, true, 0, 0, OTHER_OFFSET, event_fd);
	cr_assert_eq(write(event_fd, &n, sizeof(n)), sizeof(n));
	cr_expect(read(mine, &n, sizeof(n)) == sizeof(n) && n == 6, "it is told, and interrupted");
	cr_expect_eq(fcntl(event_fd, F_GETFD), FD_CLOEXEC);
	/* Not any more: a ring of the next connection keeps its own. */
	ur_memif_wake_closed(sock[0]);
	cr_assert_eq(ur_memif_wake_interrupt(&client, -1), 0);
	cr_assert_eq(ur_memif_wake_interrupt(&other, -1), 0);
	event_fd = eventfd(0, EFD_NONBLOCK);
	connect_client();
	cr_assert_eq(write(event_fd, &n, sizeof(n)), sizeof(n));
	cr_expect_lt(read(mine, &n, sizeof(n)), 0);
	ur_memif_wake_closed(sock[0]);
	close(mine);
	cr_expect_eq(descriptors(), before + 1, "event_fd twice");
}

Test(memif_wake, an_interrupt_without_a_descriptor_is_an_error)
{
	int closed = eventfd(0, 0);

	close(closed);
	cr_expect_eq(ur_memif_wake_interrupt(&client, closed), -EBADF);
	cr_expect_eq(ur_memif_wake_interrupt(&client, -1), 0);
}

#define PACKETS 20000

/* The peer: shows a packet, and wakes its consumer if the flag says so. */
static void *produce(void *arg)
{
	uint64_t one = 1;

	for (unsigned i = 1; i <= PACKETS; i++) {
		atomic_store(TAIL, (uint16_t)i);
		if (!(atomic_load(FLAGS) & 1))
			cr_assert_eq(write(event_fd, &one, 8), 8);
		while (atomic_load((_Atomic unsigned *)arg) < i)
			;
	}
	return NULL;
}

Test(memif_wake, no_packet_is_slept_over, .timeout = 240)
{
	_Atomic unsigned taken = 0;
	pthread_t peer;
	struct pollfd p[4];
	uint64_t cnt;

	connect_client();
	cr_assert_eq(pthread_create(&peer, NULL, produce, &taken), 0);
	while (taken < PACKETS) {
		cr_assert_eq(ur_memif_wake_arm(&client, 1, p, 4), 1);
		if (atomic_load(TAIL) == (uint16_t)taken)
			cr_assert_eq(poll(p, 1, 60000), 1, "packet %u woke nobody", taken + 1);
		ur_memif_wake_disarm(&client);
		(void)!read(event_fd, &cnt, 8);
		if (atomic_load(TAIL) != (uint16_t)taken)
			taken++;
	}
	pthread_join(peer, NULL);
}
