/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_MGMT_H
#define UR_API_MGMT_H

#include <stdbool.h>
#include <stdint.h>

struct ur_device;

/*
 * What the management agent of an endpoint leaves to a control thread, and the link that is reported to it and to link
 * credits.
 *
 * The link of a kernel interface is what rtnetlink reports, so that a flap of a microsecond counts as well; the
 * drivers for them say that it is always up. Any other driver is asked every 50 ms.
 */
struct ur_mgmt_link {
	unsigned ifindex; /* of a kernel interface; 0: the driver is asked */
	bool reported;	  /* by the kernel, at fd */
	int fd;
	bool up;	  /* as last reported to the worker */
	uint32_t downs;	  /* of the carrier, as the kernel counts them */
	uint64_t next_ns; /* when to ask again, without reports */
};

/* Without an agent and without link credits these do nothing. Thread class: control; follow: the progress thread. */
void ur_mgmt_link_open(struct ur_device *dev);
void ur_mgmt_link_close(struct ur_device *dev);
void ur_mgmt_follow(struct ur_device *dev, uint64_t now_ns);

#endif
