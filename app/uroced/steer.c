/* SPDX-License-Identifier: BSD-3-Clause */
#include "steer.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/cm_msg.h"
#include "wire/packet.h"

#define ARP_BYTES    28
#define ARP_REQUEST  1
#define ICMP6	     58
#define ADVERT	     136
#define IP6_BYTES    40
#define IP4_PLAIN    0x45   /* without options */
#define IP4_FRAGMENT 0x3fff /* more follow, or an offset */
#define PREFIX_SHIFT (24 - UR_LEASE_PREFIX_BITS)
#define COMM_SHIFT   (32 - UR_LEASE_PREFIX_BITS)

void steer_init(struct steer *s, const uint8_t mac[6], uint32_t address, uint32_t random)
{
	memset(s, 0, sizeof(*s));
	memcpy(s->mac, mac, 6);
	ur_store32(s->ip4, address);
	ports_init(&s->ports, random);
}

void steer_add(struct steer *s, uint8_t number, uint8_t port)
{
	s->port[number] = port;
	s->clients |= UINT64_C(1) << port;
}

void steer_remove(struct steer *s, uint8_t number)
{
	s->clients &= ~(UINT64_C(1) << s->port[number]);
	s->port[number] = 0;
	ports_forget(&s->ports, number);
}

static uint64_t bit(uint8_t port)
{
	return UINT64_C(1) << port;
}

/* Of a client, or the daemon's own end. */
static uint64_t client_or_self(const struct steer *s, uint8_t number)
{
	return bit(s->port[number] ? s->port[number] : s->self);
}

static uint64_t steer_request(const struct steer *s, uint64_t service)
{
	uint8_t protocol = (uint8_t)(service >> 16);
	uint16_t port = (uint16_t)service;

	if (!ur_is_rdma_ip_service(service))
		return bit(s->self);
	if (protocol == UR_RDMA_IP_TCP)
		return client_or_self(s, ports_owner(&s->ports, UR_LEASE_TCP, port));
	if (protocol == UR_RDMA_IP_UDP)
		return client_or_self(s, ports_owner(&s->ports, UR_LEASE_UDP, port));
	return bit(s->self);
}

/* UROCED-STEER-02. The frame has a whole MAD. */
static uint64_t steer_mad(const struct steer *s, const uint8_t *bth)
{
	const uint8_t *mad = bth + UR_BTH_BYTES + UR_DETH_BYTES, *body = mad + UR_MAD_HDR_BYTES;

	if (ur_load24(bth + 5) != UR_GSI_QPN || mad[1] != UR_MAD_CLASS_CM)
		return 0;
	switch (ur_load16(mad + 16)) {
	case UR_CM_REQ:
	case UR_CM_SIDR_REQ:
		return steer_request(s, ur_load64(body + 8));
	case UR_CM_SIDR_REP:
		return client_or_self(s, (uint8_t)(ur_load32(body) >> COMM_SHIFT));
	default:
		return client_or_self(s, (uint8_t)(ur_load32(body + 4) >> COMM_SHIFT));
	}
}

static uint64_t steer_roce(const struct steer *s, const struct ur_switch_headers *h)
{
	uint32_t qpn = ur_load24(h->bth + 5);
	uint8_t port = s->port[qpn >> PREFIX_SHIFT];

	if (h->mad)
		return steer_mad(s, h->bth);
	return port ? bit(port) : 0;
}

/* Whether the clients' tables of neighbours need it. Questions for the host's address they would all answer. */
static bool is_for_tables(const struct steer *s, const struct ur_switch_frame *f,
			  const struct ur_switch_headers *h)
{
	const uint8_t *p = f->data + h->l3_off;
	uint32_t len = f->len - h->l3_off;

	if (h->version)
		return h->version == 6 && len > IP6_BYTES && p[6] == ICMP6 &&
		       p[IP6_BYTES] == ADVERT;
	return len >= ARP_BYTES && ur_load16(p - 2) == UR_ETHERTYPE_ARP &&
	       (ur_load16(p + 6) != ARP_REQUEST || memcmp(p + 24, s->ip4, 4) != 0);
}

/* The client that a datagram of another one, without data, is to wake. */
static uint64_t steer_wake(const struct steer *s, const struct ur_switch_frame *f,
			   const struct ur_switch_headers *h)
{
	const uint8_t *ip = f->data + h->l3_off, *udp = ip + UR_IPV4_BYTES;
	uint8_t port;

	if (h->version != 4 || f->len - h->l3_off != UR_IPV4_BYTES + UR_UDP_BYTES ||
	    ip[0] != IP4_PLAIN || ip[9] != UR_IPPROTO_UDP || memcmp(ip + 16, s->ip4, 4) != 0 ||
	    ur_load16(ip + 6) & IP4_FRAGMENT || ur_load16(udp + 2) != UR_LEASE_WAKE_PORT ||
	    ur_load16(udp) > UR_LEASE_NUMBER_MAX)
		return 0;
	port = s->port[ur_load16(udp)];
	return port ? bit(port) : 0;
}

uint64_t steer_ports(void *arg, uint8_t in, const struct ur_switch_frame *frame,
		     const struct ur_switch_headers *h)
{
	const struct steer *s = arg;
	bool several = s->uplinks & (s->uplinks - 1);

	bool from_uplink = s->uplinks & bit(in);
	uint64_t woken;

	if (s->clients & bit(in) && memcmp(frame->data, s->mac, 6) == 0) {
		woken = steer_wake(s, frame, h);
		if (woken)
			return woken;
	}
	if (s->kernel && !from_uplink && !h->roce)
		return in == s->self ? s->clients : bit(s->self);
	if (h->group_dst && h->roce)
		return (s->uplinks | s->clients) & ~bit(in);
	if (h->group_dst && !from_uplink)
		return (s->uplinks | bit(s->self)) & ~bit(in);
	if (!h->group_dst && memcmp(frame->data, s->mac, 6) != 0)
		return several ? UR_SWITCH_NOT_STEERED : s->uplinks & ~bit(in);
	if (h->roce)
		return steer_roce(s, h);
	if (is_for_tables(s, frame, h))
		return bit(s->self) | s->clients;
	return bit(s->self) | (h->group_dst ? s->uplinks & ~bit(in) : 0);
}
