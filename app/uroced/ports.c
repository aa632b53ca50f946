/* SPDX-License-Identifier: BSD-3-Clause */
#include "ports.h"

#include <string.h>

void ports_init(struct port_spaces *s, uint32_t random)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < UR_LEASE_SPACES; i++)
		s->next[i] = (uint16_t)((random >> 16 * i) % PORTS_EPHEMERAL_N);
}

static bool is_bound(const struct port_spaces *s, enum ur_lease_space space, uint16_t port)
{
	return s->bound[space][port / 64] >> port % 64 & 1;
}

static void set_owner(struct port_spaces *s, enum ur_lease_space space, uint16_t port,
		      uint8_t client)
{
	s->owned[s->owner[space][port]]--; /* of 0, nobody, it is not read */
	s->owner[space][port] = client;
	s->owned[client]++;
}

static void take(struct port_spaces *s, enum ur_lease_space space, uint8_t client, uint16_t port)
{
	set_owner(s, space, port, client);
	s->bound[space][port / 64] |= UINT64_C(1) << port % 64;
	s->cnt[client]++;
}

static unsigned bound_by_user(const struct port_spaces *s, uint32_t uid)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < PORTS_CLIENTS; i++)
		cnt += s->uid[i] == uid ? s->cnt[i] : 0;
	return cnt;
}

/* The first port of [from, to) that is not bound; 0: there is none. */
static uint16_t first_free(const uint64_t *bound, unsigned from, unsigned to)
{
	for (unsigned port = from; port < to; port = (port / 64 + 1) * 64) {
		uint64_t left = ~bound[port / 64] >> port % 64;

		if (left) {
			port += (unsigned)__builtin_ctzll(left);
			return port < to ? (uint16_t)port : 0;
		}
	}
	return 0;
}

/* The next one, in a circle; 0: all are bound. */
static uint16_t free_ephemeral(struct port_spaces *s, enum ur_lease_space space)
{
	unsigned at = PORTS_EPHEMERAL + s->next[space];
	uint16_t port = first_free(s->bound[space], at, PORTS_EPHEMERAL + PORTS_EPHEMERAL_N);

	if (!port)
		port = first_free(s->bound[space], PORTS_EPHEMERAL, at);
	if (port)
		s->next[space] = (uint16_t)((port + 1u - PORTS_EPHEMERAL) % PORTS_EPHEMERAL_N);
	return port;
}

enum ur_lease_status ports_bind(struct port_spaces *s, enum ur_lease_space space, uint8_t client,
				uint16_t *port)
{
	if (*port && is_bound(s, space, *port))
		return s->owner[space][*port] == client ? UR_LEASE_BOUND : UR_LEASE_PORT_TAKEN;
	if (s->cnt[client] >= PORTS_PER_CLIENT ||
	    bound_by_user(s, s->uid[client]) >= PORTS_PER_USER)
		return UR_LEASE_PORT_QUOTA;
	if (!*port)
		*port = free_ephemeral(s, space);
	if (!*port)
		return UR_LEASE_NO_PORT;
	take(s, space, client, *port);
	return UR_LEASE_BOUND;
}

void ports_release(struct port_spaces *s, enum ur_lease_space space, uint8_t client, uint16_t port)
{
	if (!is_bound(s, space, port) || s->owner[space][port] != client)
		return;
	s->bound[space][port / 64] &= ~(UINT64_C(1) << port % 64);
	s->cnt[client]--;
}

void ports_forget(struct port_spaces *s, uint8_t client)
{
	for (unsigned space = 0; space < UR_LEASE_SPACES; space++) {
		const uint8_t *first = s->owner[space], *end = first + 65536, *at = first;

		while (s->owned[client] && (at = memchr(at, client, (size_t)(end - at)))) {
			ports_release(s, space, client, (uint16_t)(at - first));
			set_owner(s, space, (uint16_t)(at - first), 0);
		}
	}
}
