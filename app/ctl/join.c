/* SPDX-License-Identifier: BSD-3-Clause */
#include "join.h"

struct ctl_join *ctl_join(const struct ctl_options *o, char *err, size_t err_bytes)
{
	if (o->fabric_model)
		return ctl_join_model(o, err, err_bytes);
	if (o->socket)
		return ctl_join_socket(o->socket, err, err_bytes);
	return ctl_join_dev(o->dev, err, err_bytes);
}
