/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cm.h"

static struct sockaddr *copy_addr(const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr *to = malloc(len);

	if (to)
		memcpy(to, addr, len);
	return to;
}

static bool put(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *addr, socklen_t len)
{
	*to = copy_addr(addr, len);
	*to_len = *to ? len : 0;
	return *to;
}

/* Looks up the name; its address is the source of a passive id and the destination of an active one. */
static int look_up(const char *node, const char *service, struct rdma_addrinfo *r)
{
	struct addrinfo hints = {0}, *found;
	bool passive = r->ai_flags & RAI_PASSIVE, ok;
	int rc;

	hints.ai_flags =
		(passive ? AI_PASSIVE : 0) | (r->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
	hints.ai_family = r->ai_flags & RAI_FAMILY ? r->ai_family : AF_UNSPEC;
	hints.ai_socktype = r->ai_port_space == RDMA_PS_UDP ? SOCK_DGRAM : SOCK_STREAM;
	rc = getaddrinfo(node, service, &hints, &found);
	if (rc)
		return rc;
	ok = passive ? put(&r->ai_src_addr, &r->ai_src_len, found->ai_addr, found->ai_addrlen)
		     : put(&r->ai_dst_addr, &r->ai_dst_len, found->ai_addr, found->ai_addrlen);
	r->ai_family = found->ai_family;
	freeaddrinfo(found);
	return ok ? 0 : EAI_MEMORY;
}

static void take_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
	r->ai_port_space = RDMA_PS_TCP;
	if (hints) {
		r->ai_flags = hints->ai_flags;
		r->ai_family = hints->ai_family;
		r->ai_qp_type = hints->ai_qp_type;
		if (hints->ai_port_space)
			r->ai_port_space = hints->ai_port_space;
		else if (hints->ai_qp_type == IBV_QPT_UD)
			r->ai_port_space = RDMA_PS_UDP;
	}
	if (!r->ai_qp_type)
		r->ai_qp_type = r->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

/* The addresses that the program gives stand for those that no name is given for. */
static bool take_addresses(const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
	if (hints && hints->ai_src_len && !r->ai_src_addr &&
	    !put(&r->ai_src_addr, &r->ai_src_len, hints->ai_src_addr, hints->ai_src_len))
		return false;
	if (hints && hints->ai_dst_len && !r->ai_dst_addr &&
	    !put(&r->ai_dst_addr, &r->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len))
		return false;
	if (!r->ai_family)
		r->ai_family = r->ai_dst_addr	? r->ai_dst_addr->sa_family
			       : r->ai_src_addr ? r->ai_src_addr->sa_family
						: 0;
	return true;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *r;
	int rc = 0;

	if (!node && !service && !hints)
		return ur_cm_fail(EINVAL);
	r = calloc(1, sizeof(*r));
	if (!r)
		return EAI_MEMORY;
	take_hints(hints, r);
	if (node || service)
		rc = look_up(node, service, r);
	if (!rc && !take_addresses(hints, r))
		rc = EAI_MEMORY;
	if (rc)
		rdma_freeaddrinfo(r);
	else
		*res = r;
	return rc;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
	}
}
