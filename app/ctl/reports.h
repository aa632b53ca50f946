/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_REPORTS_H
#define CTL_REPORTS_H

#include "fault_log.h"
#include "manager/confirm.h"
#include "session.h"

/*
 * Fault reports of nodes. Each node is asked to send them to this program, along the route of that request. What arrives
 * is shown only after the node that it names has confirmed it (manager/confirm.h), and is then acknowledged by TrapRepress,
 * without which the node would repeat it. What is not confirmed is counted.
 */
struct ctl_reports {
	struct ctl_session *s;
	/* A confirmed report. */
	void (*show)(void *ctx, const struct ur_fault *report, const char *name);
	void *ctx;
	struct ur_confirm confirm;
	uint64_t unknown; /* reports in the name of nodes that were not found */
	uint64_t last;	  /* GUID in the last report that was not confirmed */
	uint64_t said;	  /* reports that were not confirmed, as of ctl_reports_unconfirmed() */
	uint64_t said_ns; /* when it wrote that */
	struct ur_confirm_ask ask[UR_CONFIRM_MAX * UR_CONFIRM_QUESTIONS]; /* of a batch */
};

void ctl_reports_open(struct ctl_reports *r, struct ctl_session *s,
		      void (*show)(void *ctx, const struct ur_fault *report, const char *name),
		      void *ctx);

/* Makes the request by which a node reports here. */
void ctl_reports_make(struct ctl_session *s, uint32_t node, struct ur_mgr_mad *mad);

/* Asks every node to report here. Those that refuse, because their key is another one, are counted. */
uint32_t ctl_reports_ask(struct ctl_session *s);

/* A MAD that is no response has arrived. True: it is a report, and now waits to be confirmed. It may be called at any time. */
bool ctl_reports_take(struct ctl_reports *r, const struct ur_mgr_mad *mad);

/* Asks the nodes that are named, waits for what they say, and shows what is confirmed. Not while other requests are open. */
void ctl_reports_confirm(struct ctl_reports *r);

/*
 * For a program with a loop of its own: the next question, or false; then each answer (NULL: none) by its number, and
 * what is confirmed is shown. ctl_reports_again(): the questions that are open were cancelled.
 */
bool ctl_reports_next(struct ctl_reports *r, uint32_t *number, struct ur_mgr_mad *mad);
void ctl_reports_answer(struct ctl_reports *r, uint32_t number, const uint8_t *mad);
void ctl_reports_again(struct ctl_reports *r);

/* True at most once in `every_ns`: more reports were not confirmed, and `text` says how many, and why. */
bool ctl_reports_unconfirmed(struct ctl_reports *r, uint64_t every_ns, uint64_t now_ns, char *text,
			     size_t bytes);
/* The same counts: denied, not answered, of unknown nodes, dropped. The caller owns it. */
json_t *ctl_reports_json(const struct ctl_reports *r);

/* "link down", and the value and the limit that it passed, if there are any. */
void ctl_reports_text(const struct ur_fault *report, char *text, size_t bytes);

#endif
