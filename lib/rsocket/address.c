/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include "rsocket/dgram.h"

socklen_t ur_rs_address_bytes(const struct ur_rs *rs)
{
	return rs->domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

int ur_rs_check_address(const struct ur_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < ur_rs_address_bytes(rs))
		return EINVAL;
	return addr->sa_family == rs->domain ? 0 : EAFNOSUPPORT;
}

void ur_rs_copy_address(struct sockaddr *to, socklen_t *len, const struct sockaddr *from)
{
	socklen_t bytes = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						      : sizeof(struct sockaddr_in);

	memcpy(to, from, *len < bytes ? *len : bytes);
	*len = bytes;
}

int rgetpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct ur_rs_call c;
	int rc = 0;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp && c.rs->udp->connected_to.sa.sa_family)
		ur_rs_copy_address(addr, len, &c.rs->udp->connected_to.sa);
	else if (ur_rs_is_up(c.rs) || c.rs->state == UR_RS_ENDED)
		ur_rs_copy_address(addr, len, rdma_get_peer_addr(c.rs->id));
	else
		rc = ENOTCONN;
	return ur_rs_leave(&c, rc);
}

int rgetsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage any = {0};
	const struct sockaddr *own;
	struct ur_rs_call c;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp)
		return ur_rs_leave(&c, getsockname(c.rs->udp->fd, addr, len) ? errno : 0);
	any.ss_family = (sa_family_t)c.rs->domain;
	own = rdma_get_local_addr(c.rs->id);
	ur_rs_copy_address(addr, len, own->sa_family ? own : (struct sockaddr *)&any);
	return ur_rs_leave(&c, 0);
}
