/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/qp_paths.h"

#include <stdio.h>

#include "wire/bytes.h"
#include "wire/ext.h"

void ur_qp_paths_copy(const struct ur_qp *qp, struct ur_qp_paths *out)
{
	const struct ur_spray_qp *s = qp->xreq.spray;

	*out = (struct ur_qp_paths){.n = 1};
	if (qp->path.len >= UR_PATH_MIN_BYTES)
		out->sport = ur_load16(qp->path.hdr + qp->path.len - UR_UDP_BYTES);
	if (!s)
		return;
	out->n = s->paths.n;
	memcpy(out->path, s->paths.path, s->paths.n * sizeof(out->path[0]));
}

void ur_qp_paths_emit(struct ur_emit *e, const struct ur_qp_paths *p)
{
	unsigned weights = 0;

	ur_emit_u64(e, "sport", p->sport);
	if (p->n == 1)
		return;
	for (unsigned i = 0; i < p->n; i++)
		weights += p->path[i].weight;
	ur_emit_begin(e, "paths");
	for (unsigned i = 0; i < p->n; i++) {
		const struct ur_spray_path *path = &p->path[i];
		uint32_t lost = path->lost < path->sent ? path->lost : path->sent;
		char name[4];

		snprintf(name, sizeof(name), "%u", i);
		ur_emit_begin(e, name);
		ur_emit_u64(e, "sport", ur_spray_port(p->sport, (uint8_t)i));
		ur_emit_u64(e, "share_permille", weights ? path->weight * 1000u / weights : 0);
		ur_emit_u64(e, "loss_permille", path->sent ? lost * 1000u / path->sent : 0);
		ur_emit_u64(e, "rtt_ns", (uint64_t)path->rtt << UR_STAMP_SHIFT);
		ur_emit_end(e);
	}
	ur_emit_end(e);
}
