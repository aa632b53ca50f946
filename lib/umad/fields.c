/* SPDX-License-Identifier: BSD-3-Clause */
/* libibumad: fields of a program's MAD buffer. The interface is that of libibumad.map: UMAD-ABI-01. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "umad/client.h"

void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_mad_addr *to = umad_get_mad_addr(umad);
	const struct ib_mad_addr *from = mad_addr;

	to->grh_present = from != NULL;
	if (from == NULL)
		return 0;
	to->ib_gid = from->ib_gid;
	to->flow_label =
		htonl(from->flow_label); /* in the program's structure it is in host order */
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	return 0;
}

int umad_set_pkey(void *umad, int pkey_index)
{
	umad_get_mad_addr(umad)->pkey_index = (uint16_t)pkey_index;
	return 0;
}

int umad_get_pkey(void *umad)
{
	return umad_get_mad_addr(umad)->pkey_index;
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	struct ib_mad_addr *to = umad_get_mad_addr(umad);

	to->lid = dlid;
	to->qpn = dqp;
	to->qkey = qkey;
	to->sl = (uint8_t)sl;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htons((uint16_t)dlid), htonl((uint32_t)dqp), sl,
				 htonl((uint32_t)qkey));
}

int umad_debug(int level)
{
	if (level >= 0)
		ur_umad_debug_level = level;
	return ur_umad_debug_level;
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid));
	fprintf(stderr,
		"lid %u qpn %u qkey 0x%x sl %u path_bits %u grh %u gid %s gid_index %u hop_limit %u "
		"traffic_class %u flow_label 0x%x pkey_index %u\n",
		ntohs(addr->lid), ntohl(addr->qpn), ntohl(addr->qkey), addr->sl, addr->path_bits,
		addr->grh_present, gid, addr->gid_index, addr->hop_limit, addr->traffic_class,
		ntohl(addr->flow_label), addr->pkey_index);
}

void umad_dump(void *umad)
{
	const struct ib_user_mad *user = umad;

	fprintf(stderr, "agent %u status %u timeout_ms %u retries %u ", user->agent_id,
		user->status, user->timeout_ms, user->retries);
	umad_addr_dump(umad_get_mad_addr(umad));
}
