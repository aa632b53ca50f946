/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/engine_priv.h"
#include "engine/mgmt.h"
#include "transport/loss/ooo.h"

#define UNIT		64 /* slabs are aligned to it */
#define MAX_QP		32766 /* a slot has 15 bits of a QPN, and QPNs 0 and 1 are not for queue pairs */
#define QPN_PREFIX_BITS 6

void ur_engine_attr_default(struct ur_engine_attr *attr)
{
	*attr = (struct ur_engine_attr){
		.limits = {.max_qp = 64,
			   .workers = 1,
			   .reorder_slots = 64,
			   .reorder_slot_bytes = 4096,
			   .reorder_contexts = 4,
			   .read_gaps = 4,
			   .loss_slabs = 4,
			   .loss_slabs_max = 4,
			   .loss_slab_bytes = UR_LOSS_SLAB_BYTES,
			   .max_sge = 4,
			   .attachments = 64,
			   .cm = {.max_listeners = 16, .max_pending = 16, .max_tx = 256}},
		.cm = {.timewait_ns = 1000000000},
		.time_wait_ns = 1000000000,
		.window = 256,
		.ackreq_every = 32,
		.mtu_shift = 12,
	};
}

uint8_t ur_engine_wide(uint32_t window)
{
	return (uint8_t)__builtin_ctz(ur_ext_window(window) / UR_EXT_WINDOW);
}

/* The least slab for the largest context. Objects take up to an eighth more than they have bytes. */
static size_t slab_bytes_of(uint32_t span)
{
	size_t most = ur_ooo_bytes(span);

	return most + most / 8 + UNIT;
}

/* LOSS-SLAB-04 */
uint32_t ur_engine_loss_slab_bytes(uint32_t window)
{
	uint32_t bytes = UR_LOSS_SLAB_BYTES;

	while (bytes < slab_bytes_of(ur_ext_window(window)))
		bytes *= 2;
	return bytes;
}

uint32_t ur_engine_loss_window(const struct ur_engine_attr *a)
{
	uint32_t most = ur_ext_window(a->window);

	while (most > UR_EXT_WINDOW && slab_bytes_of(most) > a->limits.loss_slab_bytes)
		most /= 2;
	return most;
}

static const char *check_cm(const struct ur_limits *l, const struct ur_cm_attr *cm)
{
	if (!l->cm.max_ids || l->worker)
		return NULL;
	if (!ur_cm_size(&l->cm))
		return "limits.cm: max_ids needs max_pending in [1, max_ids], max_sidr at most max_ids, and "
		       "max_tx of at least 1";
	if (!cm->sink)
		return "cm.sink: the connection manager needs it for its events";
	return cm->timewait_ns ? NULL : "cm.timewait_ns must not be 0";
}

static const char *check_mgmt(const struct ur_engine_attr *a)
{
	if (a->limits.mgmt.ports != 1 || !ur_nma_size(&a->limits.mgmt))
		return "limits.mgmt: an endpoint has one port; start from ur_engine_mgmt_limits_default()";
	return a->mgmt ? NULL : "mgmt: limits.mgmt needs the attributes of the management agent";
}

static const char *check_limits(const struct ur_limits *l)
{
	if (l->max_qp < 1 || l->max_qp > MAX_QP)
		return "limits.max_qp must be in [1, 2^15 - 2]";
	if (l->workers < 1 || l->workers > 8 || (l->workers & (l->workers - 1)))
		return "limits.workers must be 1, 2, 4 or 8";
	if (l->prefix.bits && l->max_qp * l->workers > MAX_QP)
		return "limits.prefix leaves 18 bits of a QPN: max_qp * workers must be at most 2^15 - 2";
	if (l->prefix.bits > QPN_PREFIX_BITS || l->prefix.value >> l->prefix.bits)
		return "limits.prefix has at most 6 bits";
	if (l->loss_slabs_max && (l->loss_slab_bytes < UNIT || l->loss_slab_bytes % UNIT))
		return "limits.loss_slab_bytes must be a multiple of 64, the usual size is UR_LOSS_SLAB_BYTES";
	if (l->loss_slabs > l->loss_slabs_max)
		return "limits.loss_slabs must be at most limits.loss_slabs_max";
	if (l->loss_first && l->loss_first != 16 && l->loss_first != 64 && l->loss_first != 256)
		return "limits.loss_first must be 16, 64 or 256, or 0 for the default";
	if (l->attachments >= UINT16_MAX)
		return "limits.attachments must be in [0, 2^16 - 2]";
	return l->worker < l->workers ? NULL : "limits.worker must be less than limits.workers";
}

const char *ur_engine_attr_check(const struct ur_engine_attr *a)
{
	const char *fault = check_limits(&a->limits);

	if (fault)
		return fault;
	if (!a->mem)
		return "mem: no table of memory regions; make one by ur_mem_init()";
	if (a->window < 4 || (a->window & (a->window - 1)))
		return "window must be a power of two, and at least 4";
	if (!a->ackreq_every)
		return "ackreq_every must be at least 1";
	if (a->mtu_shift < 8 || a->mtu_shift > 12)
		return "mtu_shift must be in [8, 12]";
	if (a->limits.destinations && !a->pacing)
		return "pacing: limits.destinations needs the attributes of congestion control";
	if (a->qos && (fault = ur_vl_attr_check(&a->qos->vl)))
		return fault;
	if (a->limits.mgmt.ports && !a->limits.worker && (fault = check_mgmt(a)))
		return fault;
	return check_cm(&a->limits, &a->cm);
}
