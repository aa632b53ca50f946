/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SESSION_H
#define CTL_SESSION_H

#include "join.h"
#include "manager/discover.h"

/* A run of uroce-ctl: its place in the fabric, the graph that it has discovered, and its requests. */
struct ctl_session {
	const struct ctl_options *o;
	struct ctl_join *join;
	struct ur_topo topo;
	struct ur_requests requests;
	void *topo_memory, *requests_memory;
	uint64_t took_ns; /* discovery, on the clock of the fabric */
};

/* Joins the fabric and discovers it. False: a sentence was printed. */
bool ctl_open(struct ctl_session *s, const struct ctl_options *o);
void ctl_close(struct ctl_session *s);

/*
 * Sends requests [0, cnt) and passes each response to take(), or NULL for one that timed out; in any order, as many at a
 * time as the window allows. make() writes request `i`.
 */
struct ctl_batch {
	uint32_t cnt;
	void (*make)(void *ctx, uint32_t i, struct ur_mgr_mad *mad);
	void (*take)(void *ctx, uint32_t i, const uint8_t *mad);
	void *ctx;
};
void ctl_ask(struct ctl_session *s, const struct ctl_batch *batch);

/* Lets time pass until `until_ns`; what arrives is not for anything that was asked. */
void ctl_wait(struct ctl_session *s, uint64_t until_ns);

/* One SMP by directed route to a node. False: no answer, or one that refuses; a sentence was printed. */
bool ctl_get(struct ctl_session *s, uint32_t node, uint16_t attr_id, uint32_t attr_mod,
	     struct ur_mgr_mad *answer);

/* Prints "uroce-ctl: ..." to standard error. Returns false. */
bool ctl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
