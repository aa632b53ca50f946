/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "dpdk/rtnl.h"
#include "fuzz.h"

/*
 * Takes any bytes as what a netlink socket has received. The parser must not read outside of them, and
 * what it passes on is sound: addresses of a host's length, MAC addresses of one station.
 */
static void check_mac(const uint8_t mac[6])
{
	static const uint8_t unknown[6];

	FUZZ_CHECK(!(mac[0] & 1) && memcmp(mac, unknown, 6) != 0);
}

static void check_message(void *arg, const struct ur_rtnl_msg *msg)
{
	(*(unsigned *)arg)++;
	switch (msg->kind) {
	case UR_RTNL_LINK:
		FUZZ_CHECK(msg->link.ifindex != 0);
		if (msg->link.ethernet)
			check_mac(msg->link.mac);
		break;
	case UR_RTNL_ADDR:
		FUZZ_CHECK(msg->addr.prefix_len <= 128);
		break;
	case UR_RTNL_ROUTE:
		FUZZ_CHECK(msg->route.type <= UR_RTNL_UNREACHABLE);
		break;
	case UR_RTNL_NEIGH:
		FUZZ_CHECK(msg->neigh.ifindex != 0);
		if (msg->neigh.has_mac)
			check_mac(msg->neigh.mac);
		break;
	case UR_RTNL_OTHER:
		FUZZ_CHECK(!"a message of no interest was passed on");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* As a receive buffer is aligned, and not longer than what was received. */
	uint8_t *copy = malloc(size ? size : 1);
	unsigned seen = 0;

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, data, size);
	FUZZ_CHECK(ur_rtnl_walk(copy, size, check_message, &seen) == seen);
	free(copy);
	return 0;
}
