/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_ASSEMBLE_H
#define UR_DPDK_ASSEMBLE_H

#include "edge/config.h"
#include "dpdk/eal.h"
#include "dpdk/lease.h"
#include "dpdk/mgmt.h"
#include "dpdk/port.h"
#include "dpdk/worker.h"

#define UR_ATTACHMENTS_MAX 1024 /* of queue pairs to multicast groups */

/*
 * Assembles the parts of an endpoint over DPDK below the verbs, in this order: configuration, port,
 * workers with their engines.
 *
 * All return 0, or a negative errno with one sentence in `err` that names the place and the remedy.
 * Thread class: one control thread for each endpoint.
 */

/*
 * Reads `file` (NULL: none), applies the settings of `set` ("section.key=value", NULL at its end; may be NULL),
 * and checks whether the machine supports them. -ENODEV: it does not.
 * A port of uroced is leased; the caller closes *lease, also after a failure.
 */
int ur_assemble_config(struct ur_config *cfg, const char *file, const char *const *set,
		       struct ur_lease **lease, char *err, size_t cap);

/*
 * Starts DPDK if necessary, and opens the port. EDGE-REOPEN-01: waits for a queue that a dead process
 * still has. *mtu_shift: the largest path MTU is 1 << mtu_shift.
 *
 * The caller closes the parts that are open, also after a failure: ur_port_close() if port->open,
 * ur_eal_release() if eal->queue_cnt.
 */
int ur_assemble_port(const struct ur_config *cfg, struct ur_eal_port *eal, struct ur_port *port,
		     uint8_t *mtu_shift, char *err, size_t cap);

/* The number of workers: one for each queue pair of the port, rounded down to a power of two. */
uint16_t ur_assemble_worker_cnt(const struct ur_port *port);

struct ur_assembly {
	const struct ur_config *cfg;
	const struct ur_eal_port *eal;
	/* These outlive the workers. */
	struct ur_port *port;
	const struct ur_clock *clock;
	struct ur_neigh *neigh; /* NULL: the kernel does this part */
	struct ur_mem *mem;
	struct ur_capture_hook *capture;
	const struct ur_gid *gids; /* [0, gid_cnt): as in struct ur_worker_attr */
	unsigned gid_cnt;
	uint16_t worker_cnt;
	struct ur_qpn_prefix prefix; /* other endpoints have the same address; zero: none has */
	uint8_t mtu_shift;
	struct ur_sink sink;
	struct ur_cm_attr cm;
	struct ur_cm_limits cm_limits; /* max_ids aside */
	const struct ur_engine_qos *qos;
	struct ur_mgmt *mgmt; /* open, outlives the workers; NULL: no management agent */
};

/*
 * Creates the workers, each with its engine, and starts those that have an lcore. After a failure each
 * workers[i], i in [0, worker_cnt), is NULL or has to be freed by the caller.
 */
int ur_assemble_workers(const struct ur_assembly *a, struct ur_worker **workers, char *err,
			size_t cap);

#endif
