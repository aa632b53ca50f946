/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "ports.h"

#define TCP UR_LEASE_TCP
#define UDP UR_LEASE_UDP

static struct port_spaces s;

static void setup(void)
{
	ports_init(&s, 12345);
	/* Clients 1 to 8 are of one user, the others of one each. */
	for (uint8_t i = 1; i < PORTS_CLIENTS; i++)
		ports_begin(&s, i, i <= 8 ? 1000 : 2000u + i);
}

TestSuite(uroced_ports, .init = setup);

/* The invariants, from the bits. */
static void validate(void)
{
	unsigned owned[PORTS_CLIENTS] = {0}, bound[PORTS_CLIENTS] = {0};

	for (unsigned space = 0; space < UR_LEASE_SPACES; space++)
		for (unsigned port = 0; port < 65536; port++) {
			uint8_t owner = s.owner[space][port];
			bool is_bound = s.bound[space][port / 64] >> port % 64 & 1;

			cr_assert(owner || !is_bound, "port %u is bound and has no owner", port);
			owned[owner]++;
			bound[owner] += is_bound;
		}
	for (unsigned i = 1; i < PORTS_CLIENTS; i++)
		cr_assert(s.owned[i] == owned[i] && s.cnt[i] == bound[i], "client %u", i);
}

static enum ur_lease_status bind_any(enum ur_lease_space space, uint8_t client, uint16_t *port)
{
	*port = 0;
	return ports_bind(&s, space, client, port);
}

/* UROCED-PORTS-01 */
Test(uroced_ports, a_user_leaves_ephemeral_ports_to_others)
{
	unsigned cnt = 0;
	uint16_t port;

	for (uint8_t client = 1; client <= 8; client++)
		while (bind_any(TCP, client, &port) == UR_LEASE_BOUND)
			cnt++;
	cr_assert_eq(cnt, PORTS_PER_USER);
	for (uint8_t client = 1; client <= 8; client++)
		cr_assert_eq(bind_any(UDP, client, &port), UR_LEASE_PORT_QUOTA,
			     "of both spaces together");
	cr_assert_eq(bind_any(TCP, 9, &port), UR_LEASE_BOUND);
	/* What is given back can be bound again. */
	ports_forget(&s, 3);
	cr_assert_eq(bind_any(TCP, 8, &port), UR_LEASE_BOUND);
	validate();
}

Test(uroced_ports, ports_of_a_client_are_limited)
{
	uint16_t port;

	for (unsigned i = 0; i < PORTS_PER_CLIENT; i++)
		cr_assert_eq(bind_any(i % 2 ? TCP : UDP, 5, &port), UR_LEASE_BOUND);
	cr_assert_eq(bind_any(UDP, 5, &port), UR_LEASE_PORT_QUOTA);
	cr_assert_eq(bind_any(UDP, 6, &port), UR_LEASE_BOUND);
	cr_assert_eq(ports_owner(&s, UDP, port), 6);
}

Test(uroced_ports, the_last_free_port_is_found_wherever_it_is)
{
	static const uint16_t gaps[] = {PORTS_EPHEMERAL, PORTS_EPHEMERAL + 63, PORTS_EPHEMERAL + 64,
					PORTS_EPHEMERAL + PORTS_EPHEMERAL_N - 1};
	unsigned cnt = 0;
	uint16_t port;

	for (uint8_t client = 9; client < 9 + 7; client++)
		while (bind_any(TCP, client, &port) == UR_LEASE_BOUND)
			cnt++;
	cr_assert_eq(cnt, PORTS_EPHEMERAL_N, "all of them, each once");
	cr_assert_eq(bind_any(TCP, 20, &port), UR_LEASE_NO_PORT);
	for (unsigned i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		ports_release(&s, TCP, ports_owner(&s, TCP, gaps[i]), gaps[i]);
		cr_assert_eq(bind_any(TCP, 20, &port), UR_LEASE_BOUND);
		cr_assert_eq(port, gaps[i]);
		cr_assert_eq(bind_any(TCP, 21, &port), UR_LEASE_NO_PORT);
	}
	cr_assert_eq(bind_any(UDP, 20, &port), UR_LEASE_BOUND);
	validate();
}

/* Against what is said in ports.h, by chance. */
Test(uroced_ports, whatever_clients_do_counts_are_right)
{
	srandom(1);
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t client = (uint8_t)(1 + random() % 5);
		enum ur_lease_space space = random() % 2 ? TCP : UDP;
		uint16_t port = (uint16_t)(random() % 4 ? 40000 + random() % 300 : 0);

		switch (random() % 8) {
		case 0:
			if (random() % 20 == 0)
				ports_forget(&s, client);
			break;
		case 1:
		case 2:
		case 3:
			ports_release(&s, space, client, port);
			break;
		default:
			if (ports_bind(&s, space, client, &port) == UR_LEASE_BOUND)
				cr_assert_eq(ports_owner(&s, space, port), client);
		}
		if (i % 1000 == 0)
			validate();
	}
	for (uint8_t client = 1; client <= 5; client++)
		ports_forget(&s, client);
	validate();
	for (unsigned port = 0; port < 65536; port++)
		cr_assert(!ports_owner(&s, TCP, (uint16_t)port) &&
			  !ports_owner(&s, UDP, (uint16_t)port));
}
