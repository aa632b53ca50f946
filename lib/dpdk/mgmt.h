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
 * addresses that stand for its LIDs, VL tables for all workers, and the file of its E2PROM.
 *
 * Worker 0 waits for neither the driver nor other workers: what needs one is left here, and done by a control thread
 * every few milliseconds. So a manager is answered before its LID and its tables are in effect.
 *
 * The E2PROM is in memory. A thread of its own writes the file after a change: a new file takes the place of
 * the old one, so that there is always a whole one.
 *
 * Thread class: the callbacks: worker 0; everything else: one control thread at a time.
 */
struct ur_mgmt_lid {
	uint16_t lid; /* 0: none */
	uint8_t lmc;
};

struct ur_mgmt {
	struct ur_port *port;
	struct ur_worker **workers; /* [0, worker_cnt) */
	uint16_t worker_cnt;
	uint64_t stats_next_ns; /* when the driver's counters are read again */
	/* The driver's, as last read. */
	_Atomic uint64_t overruns, tx_discards, damaged;
	struct ur_worker_rounds rounds; /* when the load was last computed, */
	uint64_t load;			/* and what it was */
	char file[UR_CONFIG_TEXT];	/* "": no E2PROM */
	uint8_t *eeprom;		/* NULL: none */
	pthread_mutex_t lock;		/* for the fields below, and what eeprom points to */
	pthread_cond_t changed;
	pthread_t writer;
	struct ur_mgmt_lid lid, filtered; /* as last set; its addresses are let through */
	struct ur_vl_attr vl;		  /* as last set */
	uint64_t vl_sets, vl_done; /* how many were set; up to which one the workers have them */
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

/* Lets the addresses of a new LID through, and reads the driver's counters: to be called every few milliseconds. */
void ur_mgmt_serve_port(struct ur_mgmt *m, uint64_t now_ns);

/*
 * VL tables that wait for the workers. 0: there are none; otherwise their number, for ur_mgmt_end_vl() when all workers
 * have them. Of several that were set only the last one counts.
 */
uint64_t ur_mgmt_begin_vl(struct ur_mgmt *m, struct ur_vl_attr *vl);
void ur_mgmt_end_vl(struct ur_mgmt *m, uint64_t number);

/* The attributes of the agent. They refer to *m. */
struct ur_engine_mgmt_attr ur_mgmt_attr_of(struct ur_mgmt *m, const struct ur_config *cfg,
					   uint64_t node_guid, uint64_t seed);

#endif
