/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket_kernel.h"

#include <stdatomic.h>

/* More datagrams than there is room for, and more senders. */

TestSuite(rsocket_flood, .init = open_kernel, .timeout = 60);

#define STRANGERS 1100 /* more than a socket keeps peers */
#define EACH	  11
#define MANY	  4000 /* more than receives, sends and the ring have room for */

/* Skips the datagrams of strangers. */
static void hear_behind(int fd, const char *text)
{
	char got[64];
	ssize_t n;

	do {
		cr_assert(await(fd, POLLIN) & POLLIN, "'%s' is lost", text);
		n = rrecv(fd, got, sizeof(got) - 1, 0);
		cr_assert_geq(n, 0);
		got[n] = '\0';
	} while (!strcmp(got, "stranger"));
	cr_assert_str_eq(got, text);
}

/* A peer is forgotten behind 1100 others, and known again by its next datagram. */
Test(rsocket_flood, strangers_hide_no_peer)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT);
	unsigned long before;
	char text[16];

	make_friends(a, IP_A, PORT, b, IP_B, PORT);
	for (int i = 0; i < STRANGERS; i++) {
		int stranger = kernel_socket(STRANGER, (uint16_t)(20000 + i));

		send_headed(stranger, STRANGER, (uint32_t)i, "stranger");
		send_raw(stranger, IP_B, PORT, "junk", 4);
		close(stranger);
		if (i % EACH)
			continue;
		snprintf(text, sizeof(text), "%d", i);
		send_control(a, IP_B, PORT, text);
		hear_behind(b, text);
	}
	while (rrecv(b, text, sizeof(text), MSG_DONTWAIT) >= 0)
		continue;
	before = udp_count();
	send_control(b, IP_A, PORT, "answer");
	hear(a, IP_B, PORT, "answer");
	cr_expect_gt(udp_count(), before, "it is not forgotten");
	make_friends(a, IP_A, PORT, b, IP_B, PORT);
}

static void send_number(int fd, int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	send_control(fd, IP_B, PORT, text);
}

/* -1: there is none. */
static int next_number(int fd)
{
	char got[16] = "";

	return rrecv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) > 0 ? atoi(got) : -1;
}

/* The last ones may still be on their way when reading begins. */
Test(rsocket_flood, datagrams_without_a_receive_are_lost_and_the_rest_are_in_order)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT), cnt = 0, n;

	make_friends(a, IP_A, PORT, b, IP_B, PORT);
	for (int i = 0; i < MANY; i++)
		send_number(a, i);
	for (int last = -1; last < MANY; last = n, cnt++) {
		n = next_number(b);
		while (n < 0) {
			send_number(a, MANY);
			n = next_number(b);
		}
		cr_assert_gt(n, last);
		cr_assert(cnt || !n, "the first one is lost");
	}
	cr_expect_lt(cnt, MANY, "nothing is lost");
}

struct flood {
	int fd;
	_Atomic bool stop;
};

static void *send_junk(void *arg)
{
	union addr to = addr(IP_B, PORT);
	struct flood *f = arg;

	while (!atomic_load(&f->stop))
		(void)!sendto(f->fd, "junk", 4, 0, &to.sa, bytes_of(&to));
	return NULL;
}

/* RSOCKET-UDP-01. Each wakes the thread that sleeps. */
Test(rsocket_flood, junk_does_not_end_a_wait_or_hide_a_peer)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT);
	struct flood f = {.fd = kernel_socket(STRANGER, PORT)};
	struct pollfd p = {.fd = b, .events = POLLIN};
	pthread_t thread;
	uint64_t start;

	make_friends(a, IP_A, PORT, b, IP_B, PORT);
	cr_assert_eq(pthread_create(&thread, NULL, send_junk, &f), 0);
	for (int i = 0; i < 5; i++) {
		start = now_ms();
		cr_expect_eq(rpoll(&p, 1, 50), 0);
		cr_expect_geq(now_ms() - start, 50);
		send_control(a, IP_B, PORT, "peer");
		hear(b, IP_A, PORT, "peer");
	}
	atomic_store(&f.stop, true);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}
