/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel adapter: a node with one port on a link, its management agent, and the multiplexer by which programs
 * share its QP0 and QP1. Thread class: one thread.
 */
#ifndef HCA_ADAPTER_H
#define HCA_ADAPTER_H

#include "link.h"
#include "mgmt/nma.h"
#include "umad/mux.h"

struct adapter {
	char name[UMAD_CA_NAME_LEN];
	struct link link;
	struct ur_nma *nma;
	void *memory; /* of the agent */
	struct mux mux;
	struct ur_nma_counters counters;
	uint32_t psn;
	bool link_was_up, client, is_sm;
	uint64_t now, watch_at; /* when to look at the link again */
};

struct adapter_config {
	const char *name; /* of the adapter, such as uroce0 */
	const char *link; /* link.h */
	const char *description;
	uint8_t mac[6]; /* on a unix link */
	/* Gives a program a MAD, as in struct mux_ops. */
	void (*deliver)(void *arg, void *program, const struct ur_umad_mad *head,
			const uint8_t *mad);
};

/* 0, or -1 after a sentence on stderr. */
int adapter_open(struct adapter *a, const struct adapter_config *config, uint64_t now);
void adapter_close(struct adapter *a);

/* Takes frames from the link, and does what is due. */
void adapter_run(struct adapter *a, uint64_t now);
/* When to call adapter_run() if nothing arrives. */
uint64_t adapter_deadline(const struct adapter *a);

/* Whether programs have the port open, and one of them is a subnet manager. */
void adapter_set_clients(struct adapter *a, bool present, bool is_sm);

/* What adapter and port are now, for programs. `adapter` is a struct adapter. */
void adapter_describe(void *adapter, struct ur_umad_ca *ca);

#endif
