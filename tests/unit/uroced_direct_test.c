/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* seals */
#endif
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptors.h"
#include "direct.h"
#include "dpdk/fd_msg.h"
#include "edge/direct_ring.h"
#include "wire/bytes.h"

#define CLIENTS 24
#define FIRST	0x0a4d0002
#define MTU	4200

static struct client *client[CLIENTS];
static int process[CLIENTS]; /* the other ends of their connections */

static void begin(unsigned i)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	client[i]->lease.fd = pair[0];
	client[i]->direct = true;
	ur_store32(client[i]->guard.ip4, FIRST + i);
	process[i] = pair[1];
}

static void end(unsigned i)
{
	direct_part(client, CLIENTS, client[i]);
	close(client[i]->lease.fd);
	close(process[i]);
	client[i]->lease.fd = process[i] = -1;
}

static void set_up(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		client[i] = calloc(1, sizeof(*client[i]));
		begin(i);
	}
}

static void tear_down(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (client[i]->lease.fd >= 0)
			end(i);
	for (unsigned i = 0; i < CLIENTS; i++)
		free(client[i]);
}

TestSuite(uroced_direct, .init = set_up, .fini = tear_down);

static void request(unsigned i, unsigned with)
{
	direct_request(client, CLIENTS, client[i], FIRST + with, MTU);
}

static void join(unsigned i, unsigned with)
{
	request(with, i);
	request(i, with);
}

/* The next message of a client, and its descriptor. False: there is none. */
static bool next(unsigned i, struct ur_lease_direct *d, int *fd)
{
	uint8_t msg[64];
	ssize_t len = ur_fd_msg_receive(process[i], msg, sizeof(msg), fd, 1);

	if (len <= 0)
		return false;
	cr_assert(ur_lease_get_direct(msg, (size_t)len, d));
	return true;
}

static bool got_ring(unsigned i, unsigned with)
{
	struct ur_lease_direct d;
	int fd;

	if (!next(i, &d, &fd))
		return false;
	cr_assert_eq(d.client, FIRST + with);
	cr_assert_eq(d.frame_max, MTU + 18);
	cr_assert_geq(fd, 0);
	close(fd);
	return true;
}

static bool got_end(unsigned i, unsigned with)
{
	struct ur_lease_direct d;
	int fd;

	if (!next(i, &d, &fd))
		return false;
	cr_assert_eq(d.client, FIRST + with);
	cr_assert(!d.frame_max && fd == -1);
	return true;
}

static bool got_nothing(unsigned i)
{
	struct ur_lease_direct d;
	int fd;

	return !next(i, &d, &fd);
}

/* UROCED-DIRECT-01 */
Test(uroced_direct, two_clients_get_the_ends_of_one_ring)
{
	struct ur_lease_direct a, b;
	int fd_a, fd_b;
	unsigned before = descriptors();
	uint8_t *memory;
	struct stat st;

	join(3, 5);
	cr_assert(next(3, &a, &fd_a) && next(5, &b, &fd_b));
	cr_assert_eq(descriptors(), before + 2, "the daemon has kept none");
	cr_assert(a.client == FIRST + 5 && b.client == FIRST + 3);
	cr_assert(a.frame_max == MTU + 18 && b.frame_max == MTU + 18);
	cr_assert_neq(a.second, b.second);
	/* The same memory, zeroed, of a size that nobody can change. */
	cr_assert_eq(fstat(fd_a, &st), 0);
	cr_assert_eq((size_t)st.st_size, ur_direct_bytes(MTU + 18));
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd_b, 0);
	cr_assert_neq(memory, MAP_FAILED);
	for (off_t i = 0; i < st.st_size; i++)
		cr_assert_eq(memory[i], 0);
	cr_assert_eq(pwrite(fd_a, "x", 1, 77), 1);
	cr_assert_eq(memory[77], 'x');
	cr_assert_neq(ftruncate(fd_a, st.st_size - 1), 0);
	cr_assert_neq(ftruncate(fd_b, st.st_size + 1), 0);
	cr_assert_eq(fcntl(fd_a, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	munmap(memory, (size_t)st.st_size);
	close(fd_a);
	close(fd_b);
	cr_assert(client[3]->rings == 1 && client[5]->rings == 1);
}

Test(uroced_direct, two_clients_have_one_ring)
{
	join(0, 1);
	cr_assert(got_ring(0, 1) && got_ring(1, 0));
	join(0, 1);
	join(1, 0);
	cr_assert(got_nothing(0) && got_nothing(1));
}

Test(uroced_direct, others_have_none)
{
	client[1]->direct = false;
	join(0, 1);
	join(1, 0);
	request(0, 0);
	request(0, CLIENTS);
	end(2);
	join(0, 2);
	cr_assert(got_nothing(0) && got_nothing(1));
	join(0, 3);
	cr_assert(got_ring(0, 3) && got_ring(3, 0));
}

/* UROCED-DIRECT-04 */
Test(uroced_direct, clients_that_share_an_address_are_named_by_their_numbers)
{
	struct ur_lease_direct a, b;
	int fd[2];

	for (unsigned i = 0; i < 3; i++) {
		ur_store32(client[i]->guard.ip4, FIRST);
		client[i]->guard.number = (uint8_t)(10 + i);
	}
	request(0, 0);
	request(1, 0);
	cr_assert(got_nothing(0) && got_nothing(1) && got_nothing(2));
	direct_request(client, CLIENTS, client[0], 12, MTU);
	direct_request(client, CLIENTS, client[2], 10, MTU);
	cr_assert(next(0, &a, &fd[0]) && next(2, &b, &fd[1]));
	cr_assert(a.client == 12 && b.client == 10);
	close(fd[0]);
	close(fd[1]);
	end(2);
	cr_assert(next(0, &a, &fd[0]));
	cr_assert(a.client == 12 && !a.frame_max);
}

Test(uroced_direct, both_have_to_request)
{
	request(0, 1);
	request(0, 1);
	request(1, 2);
	cr_assert(got_nothing(0) && got_nothing(1) && got_nothing(2));
	/* The request ends with the lease of either. */
	end(0);
	begin(0);
	request(1, 0);
	end(1);
	begin(1);
	request(0, 1);
	cr_assert(got_nothing(0) && got_nothing(1));
	request(1, 0);
	cr_assert(got_ring(0, 1) && got_ring(1, 0));
}

Test(uroced_direct, a_client_has_as_many_rings_as_an_endpoint_takes)
{
	for (unsigned i = 1; i <= CLIENT_RINGS_MAX; i++) {
		join(i % 2 ? 0 : i, i % 2 ? i : 0);
		cr_assert(got_ring(0, i) && got_ring(i, 0), "%u", i);
	}
	join(0, CLIENT_RINGS_MAX + 1);
	join(CLIENT_RINGS_MAX + 1, 0);
	cr_assert(got_nothing(0) && got_nothing(CLIENT_RINGS_MAX + 1));
	end(4);
	cr_assert(got_end(0, 4));
	join(CLIENT_RINGS_MAX + 1, 0);
	cr_assert(got_ring(0, CLIENT_RINGS_MAX + 1));
}

Test(uroced_direct, the_end_of_a_lease_is_told_to_those_who_had_a_ring)
{
	join(0, 1);
	join(2, 0);
	join(1, 2);
	cr_assert(got_ring(0, 1) && got_ring(0, 2) && got_ring(1, 0) && got_ring(1, 2));
	end(0);
	cr_assert(got_end(1, 0) && got_nothing(1));
	cr_assert(got_ring(2, 0) && got_ring(2, 1) && got_end(2, 0) && got_nothing(2));
	/* Another process with its address is another one. */
	begin(0);
	join(0, 1);
	cr_assert(got_ring(0, 1) && got_ring(1, 0));
}

/* Returns how many messages it took. */
static unsigned fill(unsigned i)
{
	unsigned cnt = 0;

	while (send(client[i]->lease.fd, "filler", 6, MSG_DONTWAIT) == 6)
		cnt++;
	return cnt;
}

static void drain(unsigned i, unsigned cnt)
{
	char bytes[64];

	while (cnt--)
		cr_assert_eq(recv(process[i], bytes, sizeof(bytes), MSG_DONTWAIT), 6);
}

Test(uroced_direct, a_client_that_does_not_read_is_told_later_and_gets_no_ring_before)
{
	unsigned cnt;

	for (unsigned i = 1; i <= CLIENT_RINGS_MAX; i++) {
		join(i, 0);
		cr_assert(got_ring(0, i) && got_ring(i, 0));
	}
	cnt = fill(0);
	for (unsigned i = 1; i <= CLIENT_RINGS_MAX; i++)
		end(i);
	cr_assert_eq(client[0]->parted_cnt, CLIENT_RINGS_MAX);
	direct_tell(client[0]);
	cr_assert_eq(client[0]->parted_cnt, CLIENT_RINGS_MAX, "there is still no room");
	drain(0, cnt);
	cr_assert(got_nothing(0));
	begin(1);
	join(1, 0);
	join(0, 1);
	cr_assert(got_nothing(0) && got_nothing(1), "it does not know yet");
	direct_tell(client[0]);
	cr_assert_eq(client[0]->parted_cnt, 0);
	for (unsigned i = CLIENT_RINGS_MAX; i >= 1; i--)
		cr_assert(got_end(0, i), "%u", i);
	join(1, 0);
	cr_assert(got_ring(0, 1) && got_ring(1, 0));
}

Test(uroced_direct, what_was_not_told_is_of_no_interest_after_the_lease)
{
	join(0, 1);
	fill(0);
	end(1);
	cr_assert_eq(client[0]->parted_cnt, 1);
	end(0);
	begin(0);
	direct_tell(client[0]);
	cr_assert(got_nothing(0));
	join(0, 2);
	cr_assert(got_ring(0, 2) && got_ring(2, 0));
}

/* One end is of no use: the other client is told that it is none, and the one that does not read bothers nobody any more. */
Test(uroced_direct, a_ring_that_one_of_them_does_not_get_is_none_of_the_others_either)
{
	struct ur_lease_direct d;
	int fd;

	for (unsigned deaf = 1; deaf <= 2; deaf++) {
		unsigned cnt = fill(deaf), before = descriptors();

		for (unsigned i = 0; i < 3; i++) {
			join(i % 2 ? deaf : 0, i % 2 ? 0 : deaf);
			if (deaf == 2 && i == 0)
				request(0, 2);
		}
		while (next(0, &d, &fd))
			if (fd >= 0)
				close(fd);
		cr_assert_eq(descriptors(), before);
		cr_assert(client[0]->rings == 0 && client[deaf]->rings == 0);
		cr_assert(!client[0]->joined && !client[0]->parted_cnt);
		drain(deaf, cnt);
		cr_assert(got_nothing(deaf));
		join(0, deaf);
		cr_assert(got_ring(0, deaf) && got_ring(deaf, 0));
		end(deaf);
		cr_assert(got_end(0, deaf));
		client[0]->rings = client[deaf]->rings = 0;
		begin(deaf);
	}
	join(0, 3);
	cr_assert(got_ring(0, 3) && got_ring(3, 0));
}
