/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/stamp.h"

#include "wire/bytes.h"
#include "wire/packet.h"

#define IPV4_FRAGMENT 0x3fff /* more fragments, fragment offset */

/* Where UDP begins in an IP packet at `l3`; 0: it is none of RoCEv2's. IPv4 options are none of RoCEv2's either. */
static uint32_t find_udp(const uint8_t *frame, uint32_t len, uint32_t l3, uint16_t type)
{
	const uint8_t *ip = frame + l3;
	uint32_t bytes = type == UR_ETHERTYPE_IPV4 ? UR_IPV4_BYTES : UR_IPV6_BYTES;

	if (len < l3 + bytes + UR_UDP_BYTES + UR_BTH_BYTES + UR_ICRC_BYTES)
		return 0;
	if (type == UR_ETHERTYPE_IPV4) {
		if (ip[0] != 0x45 || ip[9] != UR_IPPROTO_UDP || ur_load16(ip + 6) & IPV4_FRAGMENT)
			return 0;
	} else if (type != UR_ETHERTYPE_IPV6 || ip[0] >> 4 != 6 || ip[6] != UR_IPPROTO_UDP) {
		return 0;
	}
	return ur_load16(ip + bytes + 2) == UR_ROCE_UDP_PORT ? l3 + bytes : 0;
}

/* Where the UDP header of a frame is that asks for a stamp; 0: it does not. */
static uint32_t find_ask(const uint8_t *frame, uint32_t len)
{
	uint32_t l3 = UR_ETH_BYTES, udp;
	const uint8_t *bth;

	if (len < UR_ETH_BYTES + UR_VLAN_BYTES)
		return 0;
	if (ur_load16(frame + l3 - 2) == UR_ETHERTYPE_VLAN)
		l3 += UR_VLAN_BYTES;
	udp = find_udp(frame, len, l3, ur_load16(frame + l3 - 2));
	if (!udp)
		return 0;
	bth = frame + udp + UR_UDP_BYTES;
	if ((bth[0] & UR_TRANSPORT_MASK) != UR_TRANSPORT_EXT || !ur_op_flags(bth[0]) ||
	    !(bth[UR_DELAY_BTH] & UR_DELAY_ASK) ||
	    (bth[UR_DELAY_BTH] & UR_DELAY_HOPS) == UR_DELAY_VOID)
		return 0;
	return udp;
}

bool ur_switch_stamp_begin(uint8_t *frame, uint32_t len, struct ur_switch_stamp *s)
{
	uint32_t udp = find_ask(frame, len);

	if (!udp)
		return false;
	frame[udp + UR_UDP_BYTES + UR_DELAY_BTH]++;
	*s = (struct ur_switch_stamp){(uint16_t)udp, ur_load16(frame + udp + 6)};
	return true;
}

void ur_switch_stamp_void(uint8_t *frame, uint32_t len)
{
	uint32_t udp = find_ask(frame, len);

	if (udp)
		frame[udp + UR_UDP_BYTES + UR_DELAY_BTH] |= UR_DELAY_VOID;
}

void ur_switch_stamp_set(uint8_t *frame, const struct ur_switch_stamp *s, uint64_t ns)
{
	ur_store16(frame + s->udp_off + 6, ur_delay_add(s->before, ns));
}
