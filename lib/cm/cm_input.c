/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

bool cm_qpn_ok(struct ur_qpn qpn)
{
	/* QPNs 0 and 1 are for management, all ones is multicast. */
	return qpn.v > UR_GSI_QPN && qpn.v != UR_PSN_MASK;
}

enum ur_drop cm_unexpected(struct ur_cm *cm)
{
	cm->counters.unexpected++;
	return UR_DROP_UNEXPECTED;
}

enum ur_drop cm_duplicate(struct ur_cm *cm)
{
	cm->counters.duplicates++;
	return UR_DROP_NONE;
}

bool cm_from_peer(struct ur_cm *cm, const struct cm_rx *rx, const struct cm_id *id)
{
	if (ur_gid_eq(&id->peer_gid, &rx->src->sgid))
		return true;
	cm->counters.wrong_peer++;
	return false;
}

struct cm_id *cm_match(struct ur_cm *cm, const struct cm_rx *rx, uint32_t ours, uint32_t theirs,
		       enum ur_drop *drop)
{
	struct cm_id *id = cm_id_by_comm(cm, ours);

	if (!id || id->sidr || !id->remote_known || id->remote_comm_id != theirs) {
		*drop = cm_unexpected(cm);
		return NULL;
	}
	if (!cm_from_peer(cm, rx, id)) {
		*drop = UR_DROP_PEER;
		return NULL;
	}
	return id;
}

static enum ur_drop dispatch(struct ur_cm *cm, const struct cm_rx *rx, struct ur_cursor *c)
{
	union {
		struct ur_cm_req req;
		struct ur_cm_mra mra;
		struct ur_cm_rej rej;
		struct ur_cm_rep rep;
		struct ur_cm_pair pair;
		struct ur_cm_dreq dreq;
		struct ur_cm_sidr_req sidr_req;
		struct ur_cm_sidr_rep sidr_rep;
	} m;

	switch (rx->hdr.attr_id) {
	case UR_CM_REQ:
		ur_get_cm_req(c, &m.req);
		return cm_rx_req(cm, rx, &m.req);
	case UR_CM_MRA:
		ur_get_cm_mra(c, &m.mra);
		return cm_rx_mra(cm, rx, &m.mra);
	case UR_CM_REJ:
		ur_get_cm_rej(c, &m.rej);
		return cm_rx_rej(cm, rx, &m.rej);
	case UR_CM_REP:
		ur_get_cm_rep(c, &m.rep);
		return cm_rx_rep(cm, rx, &m.rep);
	case UR_CM_RTU:
		ur_get_cm_pair(c, &m.pair);
		return cm_rx_rtu(cm, rx, &m.pair);
	case UR_CM_DREQ:
		ur_get_cm_dreq(c, &m.dreq);
		return cm_rx_dreq(cm, rx, &m.dreq);
	case UR_CM_DREP:
		ur_get_cm_pair(c, &m.pair);
		return cm_rx_drep(cm, rx, &m.pair);
	case UR_CM_SIDR_REQ:
		ur_get_cm_sidr_req(c, &m.sidr_req);
		return cm_rx_sidr_req(cm, rx, &m.sidr_req);
	case UR_CM_SIDR_REP:
		ur_get_cm_sidr_rep(c, &m.sidr_rep);
		return cm_rx_sidr_rep(cm, rx, &m.sidr_rep);
	default:
		cm->counters.malformed++;
		return UR_DROP_MAD;
	}
}

enum ur_drop ur_cm_input(struct ur_cm *cm, const uint8_t mad[UR_MAD_BYTES],
			 const struct ur_cm_src *src, uint64_t now)
{
	struct ur_cursor c = ur_cursor_ro(mad, UR_MAD_BYTES);
	struct cm_rx rx = {.src = src, .now = now};

	cm->counters.rx++;
	ur_get_mad(&c, &rx.hdr);
	if (rx.hdr.base_version != UR_MAD_BASE_VERSION || rx.hdr.mgmt_class != UR_MAD_CLASS_CM ||
	    rx.hdr.class_version != UR_MAD_CM_VERSION || rx.hdr.method != UR_MAD_METHOD_SEND) {
		cm->counters.malformed++;
		return UR_DROP_MAD;
	}
	return dispatch(cm, &rx, &c);
}
