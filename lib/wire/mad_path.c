/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mad_path.h"

#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/smp.h"

const uint8_t ur_mad_hop_mac[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};

static const uint8_t lid_mac[4] = {0x02, 0x4c, 0x49, 0x44};

static bool is_hop(const uint8_t dmac[6])
{
	return memcmp(dmac, ur_mad_hop_mac, 6) == 0;
}

bool ur_mad_is_mgmt_mac(const uint8_t dmac[6])
{
	return memcmp(dmac, lid_mac, 4) == 0 || is_hop(dmac);
}

uint64_t ur_mac_guid(const uint8_t mac[6])
{
	return (uint64_t)(ur_load24(mac) ^ 0x020000) << 40 | UINT64_C(0xfffe) << 24 |
	       ur_load24(mac + 3);
}

static struct ur_gid link_local(const uint8_t mac[6])
{
	struct ur_gid gid = {{0xfe, 0x80}};

	ur_store64(gid.b + 8, ur_mac_guid(mac));
	return gid;
}

static void mac_of_lid(uint8_t mac[6], uint16_t lid)
{
	memcpy(mac, lid_mac, 4);
	ur_store16(mac + 4, lid);
}

/* True if the address is the one of a unicast LID (IBA 4.1.3); sets *lid. */
static bool lid_of(const struct ur_gid *gid, uint16_t *lid)
{
	uint8_t mac[6];
	struct ur_gid expected;

	mac_of_lid(mac, ur_load16(gid->b + 14));
	expected = link_local(mac);
	*lid = ur_load16(gid->b + 14);
	return ur_lid_is_unicast(*lid) && ur_gid_eq(gid, &expected);
}

enum ur_mad_way ur_mad_way_of(const struct ur_packet *p, uint16_t *slid, uint16_t *dlid)
{
	uint16_t from, to;

	*slid = *dlid = UINT16_MAX;
	if (is_hop(p->dmac))
		return UR_MAD_HOP;
	if (!p->ip.v6 || memcmp(p->dmac, lid_mac, 4) != 0 || !lid_of(&p->ip.src, &from) ||
	    !lid_of(&p->ip.dst, &to))
		return UR_MAD_IP;
	*slid = from;
	*dlid = to;
	return UR_MAD_LID;
}

bool ur_mad_is_valid(const struct ur_packet *p)
{
	bool smp;

	if (p->bth.opcode != UR_UD_SEND_ONLY || p->payload_len != UR_MAD_BYTES)
		return false;
	if (is_hop(p->dmac) && (!p->ip.v6 || p->ip.ttl != UR_MAD_HOP_LIMIT || p->smac[0] & 1))
		return false;
	smp = p->payload[1] == UR_MAD_CLASS_SMP_LID || p->payload[1] == UR_MAD_CLASS_SMP_DR;
	if (smp)
		return p->bth.dqpn.v == UR_SMI_QPN;
	return p->bth.dqpn.v == UR_GSI_QPN && p->deth.qkey == UR_GSI_QKEY;
}

static void path_between(struct ur_path *path, struct ur_path_attr *a)
{
	a->tos = UR_MAD_TOS;
	a->ttl = UR_MAD_HOP_LIMIT;
	a->sport = ur_path_sport(0, ur_qpn(UR_SMI_QPN), ur_qpn(UR_SMI_QPN));
	ur_path_init(path, a);
}

void ur_mad_hop_path(struct ur_path *path, const uint8_t smac[6])
{
	struct ur_path_attr a = {
		.src = link_local(smac),
		.dst = {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	};

	memcpy(a.smac, smac, 6);
	memcpy(a.dmac, ur_mad_hop_mac, 6);
	path_between(path, &a);
}

void ur_mad_lid_path(struct ur_path *path, uint16_t slid, uint16_t dlid)
{
	struct ur_path_attr a = {.tos = UR_MAD_TOS};

	mac_of_lid(a.smac, slid);
	mac_of_lid(a.dmac, dlid);
	a.src = link_local(a.smac);
	a.dst = link_local(a.dmac);
	path_between(path, &a);
}

unsigned ur_mad_headers(uint8_t *hdr, const struct ur_path *path, struct ur_qpn dqpn,
			struct ur_qpn sqpn, struct ur_psn psn)
{
	struct ur_bth bth = {
		.opcode = UR_UD_SEND_ONLY,
		.migreq = true,
		.pkey = 0xffff,
		.dqpn = dqpn,
		.psn = psn,
	};
	/* The Q_Key of QP0 does not count (IBA 10.2.5). */
	struct ur_deth deth = {.qkey = dqpn.v == UR_SMI_QPN ? 0 : UR_GSI_QKEY, .sqpn = sqpn};
	unsigned len = ur_path_write(path, hdr,
				     UR_BTH_BYTES + UR_DETH_BYTES + UR_MAD_BYTES + UR_ICRC_BYTES);
	struct ur_cursor c = ur_cursor(hdr + len, UR_BTH_BYTES + UR_DETH_BYTES);

	ur_put_bth(&c, &bth);
	ur_put_deth(&c, &deth);
	return len + UR_BTH_BYTES + UR_DETH_BYTES;
}

unsigned ur_mad_frame(uint8_t *frame, const struct ur_path *path, struct ur_qpn dqpn,
		      struct ur_qpn sqpn, struct ur_psn psn, const uint8_t mad[UR_MAD_BYTES])
{
	unsigned len = ur_mad_headers(frame, path, dqpn, sqpn, psn);

	memcpy(frame + len, mad, UR_MAD_BYTES);
	len += UR_MAD_BYTES;
	ur_icrc_append(frame + path->l3_off, len - path->l3_off, path->v6);
	return len + UR_ICRC_BYTES;
}
