/* SPDX-License-Identifier: BSD-3-Clause */
#include "join.h"

#include <string.h>

#include "manage.h"

struct ctl_join *ctl_join(const struct ctl_options *o, char *err, size_t err_bytes)
{
	bool manages = o->command == CTL_manage && !strcmp(o->words[0], "run");
	const char *description = manages ? CTL_MANAGER_NAME : "uroce-ctl";

	if (o->fabric_model)
		return ctl_join_model(o, err, err_bytes);
	if (o->socket)
		return ctl_join_socket(o->socket, description, err, err_bytes);
	return ctl_join_dev(o->dev, description, err, err_bytes);
}
