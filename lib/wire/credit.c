/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/credit.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bytes.h"
#include "wire/mad_path.h"
#include "wire/packet.h"
#include "wire/vendor.h"

#define TYPE_OUI_EXTENDED 0x88b7 /* IEEE Std 802, 9.2.4 */
#define PROTOCOL	  1
#define VERSION		  1
#define FLAG_ASK	  1

/* docs/wire-format.md, "Link credits"; offsets from the Ethernet header. */
#define AT_OUI	   14
#define AT_ID	   17
#define AT_VERSION 19
#define AT_FLAGS   20
#define AT_SESSION 22
#define AT_PEER	   26
#define AT_DSCP	   30 /* 64 lanes of 4 bits, the first in the high bits */
#define AT_PCP	   62 /* 8 lanes */
#define AT_LANES   66 /* sent, limit of each lane */

_Static_assert(AT_LANES + 8 * UR_CREDIT_LANES == UR_CREDIT_BYTES, "length of a message");

/* ---- attributes ---- */

static bool lanes_are_valid(const uint8_t *lane, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (lane[i] > UR_CREDIT_NONE)
			return false;
	return true;
}

static unsigned lanes_of(const struct ur_credit_map *m)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < 64; i++)
		mask |= 1u << m->of_dscp[i];
	for (unsigned i = 0; i < 8; i++)
		mask |= 1u << m->of_pcp[i];
	return mask & ((1u << UR_CREDIT_LANES) - 1);
}

const char *ur_credit_attr_check(const struct ur_credit_attr *a)
{
	if (!lanes_are_valid(a->map.of_dscp, 64) || !lanes_are_valid(a->map.of_pcp, 8))
		return "a lane is above 15";
	if (a->buffers < UR_CREDIT_LANES * UR_CREDIT_MIN || a->buffers > 1u << 24)
		return "credits need 240 buffers at least";
	if (!a->session)
		return "a session is 0";
	if (a->spare > UR_CREDIT_MIN / 2)
		return "too many credits are spare";
	if (!a->life_ns)
		return "the time without credit is 0";
	return NULL;
}

void ur_credit_map_make(struct ur_credit_map *m, const uint8_t lane_of_sl[16],
			const uint8_t sl_dscp[16], const uint8_t sl_pcp[16])
{
	memset(m->of_pcp, UR_CREDIT_NONE, sizeof(m->of_pcp));
	for (unsigned d = 0; d < 64; d++)
		m->of_dscp[d] = lane_of_sl[d / 8];
	m->of_pcp[0] = lane_of_sl[0]; /* as a switch, which starts from SL 0 */
	for (unsigned p = 1; p < 8; p++)
		m->of_pcp[p] = lane_of_sl[0];
	for (unsigned sl = 16; sl-- > 0;) {
		m->of_dscp[sl_dscp[sl]] = lane_of_sl[sl];
		m->of_pcp[sl_pcp[sl]] = lane_of_sl[sl];
	}
}

/* ---- sessions ---- */

/* Divides the buffers among the lanes that the other end uses. Not on the data path. */
static void divide(struct ur_credit *c)
{
	unsigned lanes = lanes_of(&c->peer_map), n = 0;
	uint32_t each;

	for (unsigned left = lanes; left; left &= left - 1)
		n++;
	each = n ? c->buffers / n : 0;
	c->quantum = each / 4 ? each / 4 : 1;
	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++)
		c->rx[vl].buffers = lanes >> vl & 1 ? each : 0;
}

static void open_all(struct ur_credit *c)
{
	c->on = false;
	c->closed = c->waiting = c->stalled = 0;
	c->update = false;
}

void ur_credit_init(struct ur_credit *c, const struct ur_credit_attr *a)
{
	UR_ASSERT(!ur_credit_attr_check(a));
	*c = (struct ur_credit){.session = a->session,
				.life_ns = a->life_ns,
				.buffers = a->buffers,
				.quantum = 1,
				.spare = (int32_t)a->spare,
				.map = a->map};
	memset(&c->peer_map, UR_CREDIT_NONE, sizeof(c->peer_map));
}

/* CREDIT-SESSION-01 */
void ur_credit_restart(struct ur_credit *c, const struct ur_credit_map *map)
{
	if (map)
		c->map = *map;
	c->session += c->session == UINT32_MAX ? 2 : 1; /* 0 is none */
	c->peer = 0;
	open_all(c);
	c->next_ns = 0;
	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++)
		c->tx[vl] = (struct ur_credit_tx){0};
}

/* ---- frames ---- */

static uint8_t lane_of_ip(const struct ur_credit_map *m, const uint8_t *ip, uint16_t type)
{
	if (type == UR_ETHERTYPE_IPV4)
		return m->of_dscp[ip[1] >> 2];
	return m->of_dscp[ur_load16(ip) >> 6 & 63];
}

/* Whether what lies at `ip` is an IP header, by the rules of a switch (switch/frame.c). */
static bool is_ip(const uint8_t *ip, uint32_t len, uint16_t type)
{
	uint32_t ihl;

	if (type == UR_ETHERTYPE_IPV6)
		return len >= UR_IPV6_BYTES && ip[0] >> 4 == 6;
	if (type != UR_ETHERTYPE_IPV4 || len < UR_IPV4_BYTES || ip[0] >> 4 != 4)
		return false;
	ihl = (ip[0] & 15u) * 4;
	return ihl >= UR_IPV4_BYTES && ihl <= len;
}

uint8_t ur_credit_lane_of(const struct ur_credit_map *m, const uint8_t *frame, uint32_t len)
{
	uint32_t l3 = UR_ETH_BYTES;
	uint16_t type;
	uint8_t pcp = 0;

	if (len < UR_ETH_BYTES || memcmp(frame, ur_mad_hop_mac, 5) == 0 ||
	    ur_mad_is_mgmt_mac(frame))
		return UR_CREDIT_NONE;
	type = ur_load16(frame + 12);
	if (type == UR_ETHERTYPE_VLAN) {
		l3 += UR_VLAN_BYTES;
		if (len < l3)
			return UR_CREDIT_NONE;
		pcp = frame[14] >> 5;
		type = ur_load16(frame + 16);
	}
	if (is_ip(frame + l3, len - l3, type))
		return lane_of_ip(m, frame + l3, type);
	return m->of_pcp[pcp];
}

/* ---- messages ---- */

bool ur_credit_is_message(const uint8_t *frame, uint32_t len)
{
	return len >= AT_VERSION && ur_load16(frame + 12) == TYPE_OUI_EXTENDED &&
	       memcmp(frame, ur_mad_hop_mac, 6) == 0 &&
	       ur_load24(frame + AT_OUI) == UR_VENDOR_OUI && ur_load16(frame + AT_ID) == PROTOCOL;
}

static void read_lanes(const uint8_t *p, uint8_t *lane, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		lane[i] = i & 1 ? p[i / 2] & 15 : p[i / 2] >> 4;
}

static void write_lanes(uint8_t *p, const uint8_t *lane, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i += 2)
		p[i / 2] = (uint8_t)(lane[i] << 4 | lane[i + 1]);
}

static void take_credit(struct ur_credit *c, unsigned vl, uint32_t limit, uint64_t now_ns)
{
	struct ur_credit_tx *t = &c->tx[vl];
	uint16_t bit = (uint16_t)(1u << vl);

	t->limit = limit;
	if (ur_credit_left(c, vl) <= c->spare) {
		c->closed |= bit;
		return;
	}
	if (c->waiting & bit)
		c->cnt.credit_wait_ns += now_ns - t->since_ns;
	c->closed &= (uint16_t)~bit;
	c->waiting &= (uint16_t)~bit;
	c->stalled &= (uint16_t)~bit;
}

/* CREDIT-HEAL-01 */
static void take_lanes(struct ur_credit *c, const uint8_t *p, uint64_t now_ns)
{
	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++) {
		c->rx[vl].received = ur_load32(p + 8 * vl);
		if (c->on)
			take_credit(c, vl, ur_load32(p + 8 * vl + 4), now_ns);
	}
}

static void take_map(struct ur_credit *c, const uint8_t *frame)
{
	struct ur_credit_map m;

	read_lanes(frame + AT_DSCP, m.of_dscp, 64);
	read_lanes(frame + AT_PCP, m.of_pcp, 8);
	if (memcmp(&m, &c->peer_map, sizeof(m)) == 0)
		return;
	c->peer_map = m;
	divide(c);
}

/* CREDIT-SESSION-01 */
static void take_sessions(struct ur_credit *c, uint32_t session, uint32_t named)
{
	bool on = named == c->session;

	if (session != c->peer) {
		c->peer = session;
		c->answer = true;
		for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++)
			c->rx[vl].told = 0;
	}
	if (!on) {
		open_all(c);
		c->answer = true;
		return;
	}
	c->cnt.credit_sessions += !c->on;
	c->on = true;
}

bool ur_credit_input(struct ur_credit *c, const uint8_t *frame, uint32_t len, uint64_t now_ns)
{
	uint32_t session;

	if (len < UR_CREDIT_BYTES || frame[AT_VERSION] != VERSION ||
	    !(session = ur_load32(frame + AT_SESSION))) {
		c->cnt.credit_messages_invalid++;
		return false;
	}
	c->cnt.credit_messages_received++;
	c->heard_ns = now_ns;
	take_map(c, frame);
	take_sessions(c, session, ur_load32(frame + AT_PEER));
	c->answer |= frame[AT_FLAGS] & FLAG_ASK;
	take_lanes(c, frame + AT_LANES, now_ns);
	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++)
		ur_credit_settle(c, vl);
	return true;
}

/* CREDIT-SESSION-01: the other end is gone. */
static void check_silence(struct ur_credit *c, uint64_t now_ns)
{
	if (!c->peer || now_ns - c->heard_ns < UR_CREDIT_DEAD)
		return;
	c->cnt.credit_silences++;
	c->peer = 0;
	open_all(c);
}

void ur_credit_output(struct ur_credit *c, uint8_t *frame, const uint8_t mac[6], uint64_t now_ns)
{
	check_silence(c, now_ns);
	memset(frame, 0, UR_CREDIT_BYTES);
	memcpy(frame, ur_mad_hop_mac, 6);
	memcpy(frame + 6, mac, 6);
	ur_store16(frame + 12, TYPE_OUI_EXTENDED);
	ur_store24(frame + AT_OUI, UR_VENDOR_OUI);
	ur_store16(frame + AT_ID, PROTOCOL);
	frame[AT_VERSION] = VERSION;
	frame[AT_FLAGS] = c->waiting || c->stalled ? FLAG_ASK : 0;
	ur_store32(frame + AT_SESSION, c->session);
	ur_store32(frame + AT_PEER, c->peer);
	write_lanes(frame + AT_DSCP, c->map.of_dscp, 64);
	write_lanes(frame + AT_PCP, c->map.of_pcp, 8);
	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++) {
		struct ur_credit_rx *r = &c->rx[vl];

		r->told = r->received + ur_credit_room(c, vl);
		ur_store32(frame + AT_LANES + 8 * vl, c->tx[vl].sent);
		ur_store32(frame + AT_LANES + 8 * vl + 4, r->told);
	}
	if (c->answer)
		c->answered_ns = now_ns;
	c->answer = c->update = false;
	c->told_ns = now_ns;
	c->next_ns = now_ns + (c->waiting ? UR_CREDIT_ASK : UR_CREDIT_HELLO);
	c->cnt.credit_messages_sent++;
}

/* CREDIT-LIFE-01 */
uint16_t ur_credit_wait(struct ur_credit *c, uint16_t wants, uint64_t now_ns)
{
	uint16_t waits = wants & c->closed & (uint16_t)~c->stalled, late = 0;

	for (unsigned left = waits & ~c->waiting; left; left &= left - 1)
		c->tx[__builtin_ctz(left)].since_ns = now_ns;
	for (unsigned left = waits; left; left &= left - 1) {
		struct ur_credit_tx *t = &c->tx[__builtin_ctz(left)];

		if (now_ns - t->since_ns < c->life_ns)
			continue;
		late |= (uint16_t)(left & -left);
		c->cnt.credit_wait_ns += now_ns - t->since_ns;
		c->cnt.credit_stalls++;
	}
	c->waiting = waits & (uint16_t)~late;
	c->stalled |= late;
	if (c->waiting && c->told_ns + UR_CREDIT_ASK < c->next_ns)
		c->next_ns = c->told_ns + UR_CREDIT_ASK;
	return late;
}
