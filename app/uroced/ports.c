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

static void take(struct port_spaces *s, enum ur_lease_space space, uint8_t client, uint16_t port)
{
	s->owner[space][port] = client;
	s->bound[space][port / 64] |= UINT64_C(1) << port % 64;
	s->cnt[client]++;
}

enum ur_lease_status ports_bind(struct port_spaces *s, enum ur_lease_space space, uint8_t client,
				uint16_t *port)
{
	if (*port && is_bound(s, space, *port))
		return s->owner[space][*port] == client ? UR_LEASE_BOUND : UR_LEASE_PORT_TAKEN;
	if (s->cnt[client] >= PORTS_PER_CLIENT)
		return UR_LEASE_PORT_QUOTA;
	for (unsigned i = 0; !*port && i < PORTS_EPHEMERAL_N; i++) {
		uint16_t p = (uint16_t)(PORTS_EPHEMERAL + s->next[space]);

		s->next[space] = (uint16_t)((s->next[space] + 1) % PORTS_EPHEMERAL_N);
		if (!is_bound(s, space, p))
			*port = p;
	}
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
	for (unsigned space = 0; space < UR_LEASE_SPACES; space++)
		for (unsigned port = 0; port < 65536; port++)
			if (s->owner[space][port] == client) {
				ports_release(s, space, client, (uint16_t)port);
				s->owner[space][port] = 0;
			}
}
