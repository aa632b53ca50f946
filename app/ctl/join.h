/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_JOIN_H
#define CTL_JOIN_H

#include "manager/requests.h"
#include "options.h"

/*
 * The place of this program in a fabric: it sends MADs and receives them. It is a node of the fabric, with an agent of
 * its own, so that other managers see it.
 */
struct ctl_join;

struct ctl_join_ops {
	void (*send)(struct ctl_join *j, const struct ur_mgr_mad *mad);
	/* Waits until a MAD arrives for this program. False: it is `until_ns`, or a signal came. */
	bool (*receive)(struct ctl_join *j, uint64_t until_ns, struct ur_mgr_mad *mad);
	uint64_t (*now_ns)(struct ctl_join *j);
	void (*close)(struct ctl_join *j);
};

struct ctl_join {
	const struct ctl_join_ops *ops;
};

/* By the options. NULL: err holds a sentence. */
struct ctl_join *ctl_join(const struct ctl_options *o, char *err, size_t err_bytes);

/* One for each way. `description`: what the agent says of its node. */
struct ctl_join *ctl_join_model(const struct ctl_options *o, char *err, size_t err_bytes);
struct ctl_join *ctl_join_socket(const char *path, const char *description, char *err,
				 size_t err_bytes);
struct ctl_join *ctl_join_dev(const char *dev, const char *description, char *err,
			      size_t err_bytes);

#endif
