/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_VIEW_H
#define CTL_VIEW_H

#include "scan.h"
#include "scout.h"

/* What the ports of a fabric carry and what is wrong with them, from pass to pass: for 'top' and 'web'. */

struct ctl_view_port {
	uint32_t node;
	uint8_t port;
	bool known;	   /* answered in this pass */
	bool was_up;	   /* in this pass, or in an earlier one */
	uint8_t state;	   /* PortState, the last one that is known */
	uint64_t bps;	   /* speed of the link; 0: unknown */
	double tx, rx;	   /* bits a second since the last pass */
	double share;	   /* the greater of them / bps; 0 if that is unknown */
	double wait;	   /* packets that had to wait, a second */
	uint64_t discards; /* packets not sent, since the first pass */
	uint64_t
		errors; /* packets damaged, received with another error, or lost for want of a buffer, since then */
	uint64_t downs; /* times that the link went down, since then */
	bool came_up;	/* since the last pass: something new may be behind it */
	uint32_t first; /* number of its first register in the scan */
};

struct ctl_view_node {
	bool known;		      /* answered in this pass */
	unsigned load, mempool, ring; /* 1/1000 */
	uint32_t first;	     /* number of its first register; UINT32_MAX: nothing is read of it */
	uint32_t first_port; /* in ctl_view.port; valid if `first` is */
};

struct ctl_view {
	struct ctl_scan scan;
	struct ctl_view_port *port; /* [0, ports_cnt), in order of nodes */
	uint32_t ports_cnt;
	struct ctl_view_node *node; /* by number of the node */
	struct ctl_scout scout;
	unsigned looks; /* discoveries that are still due */
};

/* False: there is no memory; a sentence was printed. ctl_view_close() is called either way. */
bool ctl_view_open(struct ctl_view *v, struct ctl_session *s);
void ctl_view_close(struct ctl_view *v);
/* Reads everything. False: a sentence was printed. */
bool ctl_view_pass(struct ctl_view *v);

/*
 * Before a pass: if a port came up in the last one the fabric is discovered again, now and before the next passes, since a
 * node may answer later than its link is up. *changed: the session has another graph, with what is gone still in it, and all numbers of
 * nodes and ports are other ones; counts go on. False: a sentence was printed.
 */
bool ctl_view_renew(struct ctl_view *v, bool *changed);

/* "down", "active", ..., or "silent" for a port whose node does not answer. */
const char *ctl_view_state(const struct ctl_view_port *p);

#endif
