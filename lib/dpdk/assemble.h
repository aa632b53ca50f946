/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_ASSEMBLE_H
#define UR_DPDK_ASSEMBLE_H

#include "edge/config.h"
#include "dpdk/eal.h"
#include "dpdk/port.h"
#include "dpdk/worker.h"

/*
 * What an endpoint over DPDK consists of below its verbs, in the order in which it is put together:
 * configuration, port, workers with their engines.
 *
 * All return 0, or a negative errno with one sentence in `err` that names the place and the remedy.
 * Thread class: one control thread for each endpoint.
 */

/*
 * Reads `file` (NULL: none), applies the settings of `set` ("section.key=value", NULL at its end; may be NULL),
 * and looks whether the machine can do what they ask for. -ENODEV: it cannot.
 */
int ur_assemble_config(struct ur_config *cfg, const char *file, const char *const *set, char *err,
		       size_t cap);

/*
 * Starts DPDK if need be, and opens the port. EDGE-REOPEN-01: a queue that a dead process still has is
 * waited for. *mtu_shift: the largest path MTU is 1 << mtu_shift.
 *
 * After a failure too the caller closes what there is: ur_port_close() if port->open,
 * ur_eal_release() if eal->queue_cnt.
 */
int ur_assemble_port(const struct ur_config *cfg, struct ur_eal_port *eal, struct ur_port *port,
		     uint8_t *mtu_shift, char *err, size_t cap);

/* As many as the port has queue pairs for: a power of two, because a QPN names its worker by bits. */
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
	uint8_t mtu_shift;
	struct ur_sink sink;
	struct ur_cm_attr cm;
	struct ur_cm_limits cm_limits; /* max_ids aside */
	const struct ur_engine_qos *qos;
};

/*
 * Makes the workers, each with its engine, and starts those that have an lcore. After a failure workers[i] is
 * NULL or to be freed by the caller, for each i in [0, worker_cnt).
 */
int ur_assemble_workers(const struct ur_assembly *a, struct ur_worker **workers, char *err,
			size_t cap);

#endif
