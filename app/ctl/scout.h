/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SCOUT_H
#define CTL_SCOUT_H

#include "session.h"

/*
 * Discovers the fabric again while a program runs: in tables of its own, beside everything else. The graph of the session
 * is that of the last discovery that came to its end.
 */
struct ctl_scout {
	struct ctl_session *s;
	bool running;
	uint64_t began_ns;
	struct ur_topo topo;
	struct ur_requests requests;
	struct ur_discover discover;
	void *topo_memory, *requests_memory;
};

/* False: there is no memory. ctl_scout_close() is called either way. */
bool ctl_scout_open(struct ctl_scout *scout, struct ctl_session *s);
void ctl_scout_close(struct ctl_scout *scout);

void ctl_scout_begin(struct ctl_scout *scout, uint64_t now_ns);
/* Writes the next MAD to send. False: there is none now. */
bool ctl_scout_output(struct ctl_scout *scout, uint64_t now_ns, struct ur_mgr_mad *mad);
void ctl_scout_input(struct ctl_scout *scout, const struct ur_mgr_mad *mad, uint64_t now_ns);
/* While it is running. */
uint64_t ctl_scout_next_deadline(const struct ctl_scout *scout);
void ctl_scout_expire(struct ctl_scout *scout, uint64_t now_ns);
bool ctl_scout_is_done(const struct ctl_scout *scout);
/* Ends it. True: the session has the new graph. False: nothing was found, and it has the one that it had. */
bool ctl_scout_finish(struct ctl_scout *scout);

/* A whole discovery; what arrives meanwhile and is no response goes to take_other() of the session. */
bool ctl_scout_run(struct ctl_scout *scout);

/*
 * Adds to the session's graph the nodes and links of the one before that are not there any more, without a path to them, so
 * that they can be shown as gone. After ctl_scout_finish().
 */
void ctl_scout_keep_gone(struct ctl_scout *scout);

/* True: other nodes or links than in `before`, or other paths to them. */
bool ctl_graphs_differ(const struct ur_topo *a, const struct ur_topo *b);

#endif
