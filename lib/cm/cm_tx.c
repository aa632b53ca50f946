/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

struct ur_cursor cm_msg(uint8_t mad[UR_MAD_BYTES], enum ur_cm_attr_id attr_id, uint64_t tid)
{
	struct ur_cursor c = ur_cursor(mad, UR_MAD_BYTES);
	struct ur_mad hdr = {
		.base_version = UR_MAD_BASE_VERSION,
		.mgmt_class = UR_MAD_CLASS_CM,
		.class_version = UR_MAD_CM_VERSION,
		.method = UR_MAD_METHOD_SEND,
		.tid = tid,
		.attr_id = (uint16_t)attr_id,
	};

	ur_put_mad(&c, &hdr);
	return c;
}

void cm_private(uint8_t *to, size_t size, const void *data, uint8_t n)
{
	UR_ASSERT(n <= size);
	if (n)
		memcpy(to, data, n);
	memset(to + n, 0, size - n);
}

bool cm_private_fits(const struct ur_offer *offer, uint8_t n, size_t size)
{
	return offer ? ur_offer_fits(n, size) : n <= size;
}

void cm_tx_to(struct ur_cm *cm, const struct ur_path *path, struct ur_qpn dqpn,
	      const uint8_t mad[UR_MAD_BYTES])
{
	struct cm_tx *tx;

	if (cm->tx_cnt == cm->limits.max_tx) {
		cm->counters.tx_full++;
		return;
	}
	tx = &cm->tx[(cm->tx_head + cm->tx_cnt++) % cm->limits.max_tx];
	tx->path = *path;
	tx->dqpn = dqpn;
	memcpy(tx->mad, mad, UR_MAD_BYTES);
}

bool ur_cm_wants_output(const struct ur_cm *cm)
{
	return cm->tx_cnt != 0;
}

size_t ur_cm_output(struct ur_cm *cm, struct ur_cm_out *out, size_t cap, uint64_t now)
{
	size_t n = 0;

	(void)now;
	for (; n < cap && cm->tx_cnt; n++) {
		const struct cm_tx *tx = &cm->tx[cm->tx_head];

		out[n].path = &tx->path;
		out[n].dest_qpn = tx->dqpn;
		memcpy(out[n].mad, tx->mad, UR_MAD_BYTES);
		cm->tx_head = (cm->tx_head + 1) % cm->limits.max_tx;
		cm->tx_cnt--;
	}
	cm->counters.tx += n;
	return n;
}

void cm_tx_last(struct ur_cm *cm, struct cm_id *id)
{
	UR_ASSERT(id->has_last);
	cm_tx_to(cm, &id->path, id->cm_qpn, id->last);
}

/* REPATH-CM-01 */
void cm_tx_again(struct ur_cm *cm, struct cm_id *id)
{
	ur_path_set_sport(&id->path, ur_path_next_sport(ur_path_own_sport(&id->path)));
	cm_tx_last(cm, id);
}

void cm_tx_repeat(struct ur_cm *cm, struct cm_id *id, uint64_t now)
{
	id->has_last = true;
	id->retries = cm_retries(id);
	id->mra_cnt = 0;
	cm_tx_last(cm, id);
	cm_timer_set(cm, id, now + cm_repeat_ns(id));
}

void cm_tx_rej(struct ur_cm *cm, const struct cm_rx *rx, enum ur_cm_about about,
	       uint32_t local_comm_id, uint32_t remote_comm_id, enum ur_cm_rej_reason reason)
{
	struct ur_cm_rej rej = {
		.local_comm_id = local_comm_id,
		.remote_comm_id = remote_comm_id,
		.about = about,
		.reason = (uint16_t)reason,
	};
	uint8_t mad[UR_MAD_BYTES];
	struct ur_cursor c = cm_msg(mad, UR_CM_REJ, rx->hdr.tid);

	ur_put_cm_rej(&c, &rej);
	cm->counters.rej_sent++;
	cm_tx_to(cm, &rx->src->path, rx->src->sqpn, mad);
}

void cm_tx_id_rej(struct ur_cm *cm, struct cm_id *id, enum ur_cm_about about,
		  enum ur_cm_rej_reason reason, const void *private_data, uint8_t private_len)
{
	uint64_t tid = about == UR_CM_ABOUT_OTHER ? cm_tid(cm, id) : id->tid;
	struct ur_cursor c = cm_msg(id->last, UR_CM_REJ, tid);
	struct ur_cm_rej rej = {
		.local_comm_id = cm_comm_id(cm, id),
		.remote_comm_id = id->remote_known ? id->remote_comm_id : 0,
		.about = about,
		.reason = (uint16_t)reason,
	};

	if (reason == UR_CM_REJ_TIMEOUT) {
		struct ur_cursor info = ur_cursor(rej.info, sizeof(rej.info));

		ur_put64(&info, cm->attr.ca_guid);
		rej.info_len = 8;
	}
	cm_private(rej.private_data, sizeof(rej.private_data), private_data, private_len);
	ur_put_cm_rej(&c, &rej);
	cm->counters.rej_sent++;
	id->has_last = true;
	cm_tx_last(cm, id);
}

void cm_tx_drep(struct ur_cm *cm, const struct cm_rx *rx, const struct ur_cm_dreq *dreq)
{
	struct ur_cm_pair drep = {
		.local_comm_id = dreq->remote_comm_id,
		.remote_comm_id = dreq->local_comm_id,
	};
	uint8_t mad[UR_MAD_BYTES];
	struct ur_cursor c = cm_msg(mad, UR_CM_DREP, rx->hdr.tid);

	ur_put_cm_pair(&c, &drep);
	cm_tx_to(cm, &rx->src->path, rx->src->sqpn, mad);
}

void cm_tx_mra(struct ur_cm *cm, struct cm_id *id, uint8_t service_timeout)
{
	struct ur_cursor c = cm_msg(id->last, UR_CM_MRA, id->tid);
	struct ur_cm_mra mra = {
		.local_comm_id = cm_comm_id(cm, id),
		.remote_comm_id = id->remote_comm_id,
		.about = id->active ? UR_CM_ABOUT_REP : UR_CM_ABOUT_REQ,
		.service_timeout = service_timeout,
	};

	ur_put_cm_mra(&c, &mra);
	id->has_last = true;
	cm_tx_last(cm, id);
}
