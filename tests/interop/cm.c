/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm.h"

#include <net/if.h>
#include <string.h>

struct sockaddr_storage cm_peer(const struct session *s, uint16_t port)
{
	struct sockaddr_storage ss = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ss;

	if (strcmp(s->spec.gid, "4") == 0) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, s->remote.gid.raw + 12, 4);
		return ss;
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, s->remote.gid.raw, 16);
	/* The kernel needs the interface of a link-local address; uroce has only one. */
	if (strcmp(s->spec.gid, "ll") == 0 && strcmp(OUR_NAME, "rxe") == 0)
		v6->sin6_scope_id = if_nametoindex("eth0");
	return ss;
}
