/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_MGMT_H
#define UR_DPDK_MGMT_H

#include <pthread.h>

#include "dpdk/port.h"
#include "dpdk/worker.h"
#include "edge/config.h"
#include "engine/mgmt.h"

/*
 * What the management agent of an endpoint needs of the system: counters of all workers, packet buffers in use, the
 * addresses that stand for its LIDs, and the file of its E2PROM.
 *
 * The E2PROM is in memory. A thread of its own writes the file after a change: a new file takes the place of
 * the old one, so that there is always a whole one.
 *
 * Thread class: open and close: one control thread; the callbacks: worker 0.
 */
struct ur_mgmt {
	struct ur_port *port;
	struct ur_worker **workers; /* [0, worker_cnt) */
	uint16_t worker_cnt;
	uint16_t lid;
	uint8_t lmc;
	struct ur_worker_rounds rounds; /* when the load was last computed, */
	uint64_t load;			/* and what it was */
	char file[UR_CONFIG_TEXT];	/* "": no E2PROM */
	uint8_t *eeprom;		/* NULL: none */
	pthread_mutex_t lock;		/* for the fields below, and what eeprom points to */
	pthread_cond_t changed;
	pthread_t writer;
	bool dirty, closing;
	int write_errno; /* of the last attempt; 0: the file is as the memory, or will be */
};

/*
 * Reads the file of [management] eeprom, or begins an erased E2PROM if there is none yet. 0, or a negative errno with
 * one sentence in `err`. *m must not move while it is open. The workers are made later.
 */
int ur_mgmt_open(struct ur_mgmt *m, const struct ur_config *cfg, struct ur_port *port,
		 struct ur_worker **workers, uint16_t worker_cnt, char *err, size_t cap);
/* After the workers have stopped. Waits until the file is written. Allowed on a zeroed struct. */
void ur_mgmt_close(struct ur_mgmt *m);

/* The attributes of the agent. They refer to *m. */
struct ur_engine_mgmt_attr ur_mgmt_attr_of(struct ur_mgmt *m, const struct ur_config *cfg,
					   uint64_t node_guid, uint64_t seed);

#endif
