/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SESSION_H
#define CTL_SESSION_H

#include "join.h"
#include "manager/discover.h"
#include "wire/smp.h"
#include "wire/vendor.h"

/* A run of uroce-ctl: its place in the fabric, the graph that it has discovered, and its requests. */
struct ctl_session {
	const struct ctl_options *o;
	struct ctl_join *join;
	struct ur_topo topo;
	struct ur_requests requests;
	void *topo_memory, *requests_memory;
	uint64_t
		pace_ns; /* from one MAD to the next that is sent; 0: as fast as the window allows */
	uint64_t paced_ns; /* when the next request may be sent */
	uint64_t m_key;	   /* of SMPs: that of the options, unless a command has another one */
	uint64_t took_ns;  /* discovery, on the clock of the fabric */
	/* Is given what arrives and is no response, such as reports; NULL: that is ignored. */
	void (*take_other)(void *ctx, const struct ur_mgr_mad *mad);
	void *take_other_ctx;
};

/* Joins the fabric and discovers it. False: a sentence was printed. */
bool ctl_open(struct ctl_session *s, const struct ctl_options *o);
void ctl_close(struct ctl_session *s);

/*
 * A graph and a table of requests, both empty, by the options. False: a sentence was printed. The memory is the caller's to
 * free, either way.
 */
bool ctl_make_tables(const struct ctl_options *o, struct ur_topo *topo, void **topo_memory,
		     struct ur_requests *requests, void **requests_memory);

/* Sends a MAD; an SMP with the M_Key of the session: a protected port answers a manager with its key only (IBA 14.2.4). */
void ctl_send(struct ctl_session *s, struct ur_mgr_mad *mad);

/*
 * Sends requests [0, cnt) and passes each response to take(), or NULL for one that timed out; in any order, as many at a
 * time as the window allows. make() writes request `i`. SMPs are given the M_Key of the options.
 */
struct ctl_batch {
	uint32_t cnt;
	void (*make)(void *ctx, uint32_t i, struct ur_mgr_mad *mad);
	void (*take)(void *ctx, uint32_t i, const uint8_t *mad);
	void *ctx;
	uint32_t most;	  /* at the same time; 0: as the window allows */
	const bool *stop; /* true: no more requests are made; NULL: all are */
};
void ctl_ask(struct ctl_session *s, const struct ctl_batch *batch);

/* From now on MADs are sent no faster than `percent` of a link of `gbps` carries them, by their bytes. */
void ctl_set_share(struct ctl_session *s, double percent, double gbps);

/* Lets time pass until `until_ns`; what arrives is no response to anything that was asked. */
void ctl_wait(struct ctl_session *s, uint64_t until_ns);

/* Writes what is done of long work to a terminal; `end` clears the line. */
void ctl_progress(const char *what, uint64_t done, uint64_t of, const char *unit, uint64_t left_s);
void ctl_progress_end(void);

/* One SMP by directed route to a node. False: no answer, or one that refuses; a sentence was printed. */
bool ctl_get(struct ctl_session *s, uint32_t node, uint16_t attr_id, uint32_t attr_mod,
	     struct ur_mgr_mad *answer);
/* The same with modifier 0, and a question: 64 bytes of data. */
bool ctl_get_with(struct ctl_session *s, uint32_t node, uint16_t attr_id, const uint8_t *question,
		  struct ur_mgr_mad *answer);
/* The same with method Set; `mad` has the 64 bytes of data, and then the response. */
bool ctl_set(struct ctl_session *s, uint32_t node, uint16_t attr_id, uint32_t attr_mod,
	     struct ur_mgr_mad *mad);

/*
 * Changes a port's PortInfo: reads it, passes it to change(), which sees all fields that a Set would change as "no
 * change", and writes it. False: a sentence was printed.
 */
bool ctl_change_port(struct ctl_session *s, uint32_t node, uint8_t port,
		     void (*change)(void *ctx, struct ur_port_info *info), void *ctx);

/* Prints "uroce-ctl: ..." to standard error. Returns false. */
bool ctl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
