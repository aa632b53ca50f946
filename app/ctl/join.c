/* SPDX-License-Identifier: BSD-3-Clause */
#include "join.h"

#include <stdlib.h>

#include "fabric/shape.h"

/* ---- a model of a fabric ---- */

#define PLACE	  0	   /* its node, an endpoint */
#define MAD_NS	  24	   /* 342 bytes at 112 Gb/s, a link of the paper */
#define SETTLE_NS 10000000 /* agents ask their neighbours when links come up */

struct model {
	struct ctl_join join;
	struct ur_fabric *fabric;
};

static void model_send(struct ctl_join *j, const struct ur_mgr_mad *mad)
{
	ur_fabric_send(((struct model *)j)->fabric, PLACE, mad->lid, mad->bytes);
}

static bool model_receive(struct ctl_join *j, uint64_t until_ns, struct ur_mgr_mad *mad)
{
	struct ur_fabric *f = ((struct model *)j)->fabric;

	return ur_fabric_run(f, until_ns) && ur_fabric_receive(f, PLACE, &mad->lid, mad->bytes);
}

static uint64_t model_now(struct ctl_join *j)
{
	return ur_fabric_now(((struct model *)j)->fabric);
}

static void model_close(struct ctl_join *j)
{
	ur_fabric_free(((struct model *)j)->fabric);
	free(j);
}

struct ctl_join *ctl_join_model(const char *shape, char *err, size_t err_bytes)
{
	static const struct ctl_join_ops ops = {model_send, model_receive, model_now, model_close};
	struct ur_fabric_attr attr = {.hop_ns = UR_FABRIC_PAPER_HOP_NS,
				      .process_ns = UR_FABRIC_PAPER_PROCESS_NS,
				      .mad_ns = MAD_NS,
				      .seed = 1};
	struct ur_fabric *f = ur_fabric_of_shape(shape, &attr, err, err_bytes);
	struct model *m;

	if (!f)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m) {
		snprintf(err, err_bytes, "there is no memory for a model of '%s'", shape);
		ur_fabric_free(f);
		return NULL;
	}
	m->join.ops = &ops;
	m->fabric = f;
	ur_fabric_start(f);
	ur_fabric_attach(f, PLACE);
	(void)ur_fabric_run(f, SETTLE_NS);
	return &m->join;
}

struct ctl_join *ctl_join(const struct ctl_options *o, char *err, size_t err_bytes)
{
	if (o->fabric_model)
		return ctl_join_model(o->fabric_model, err, err_bytes);
	if (o->socket)
		return ctl_join_socket(o->socket, err, err_bytes);
	return ctl_join_dev(o->dev, err, err_bytes);
}
