/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "rsocket/dgram.h"
#include "thread/thread.h"

/*
 * Address handles of peers. If a peer's host does not answer, ibv_create_ah() takes seconds. So a thread of its own makes each, and
 * no call waits for it: until then the datagrams go by UDP.
 */

#define THREADS_MAX 16 /* a program that answers strangers starts one for each */
#define AGAIN_NS    UINT64_C(5000000000)

struct ur_rs_ah_job {
	struct ibv_pd *pd; /* librdmacm's own, which stays */
	struct ibv_ah_attr attr;
	struct ibv_ah *ah; /* NULL although it is done: there is none to be had */
	bool is_done;
	bool is_orphan; /* nobody asks for it any more; its thread frees it */
};

/* The innermost lock: of the jobs' flags, and of the number of threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned threads;

static void free_job(struct ur_rs_ah_job *j)
{
	if (j->ah)
		ibv_destroy_ah(j->ah);
	free(j);
}

static void *work(void *arg)
{
	struct ur_rs_ah_job *j = arg;
	struct ibv_ah *ah = ibv_create_ah(j->pd, &j->attr);
	bool is_orphan;

	pthread_mutex_lock(&lock);
	j->ah = ah;
	j->is_done = true;
	is_orphan = j->is_orphan;
	threads--;
	pthread_mutex_unlock(&lock);
	if (is_orphan)
		free_job(j);
	return NULL;
}

/* If there are too many, the next datagram tries again. */
static void start(struct ur_rs_dest *d)
{
	struct ur_rs_ah_job *j = calloc(1, sizeof(*j));
	bool ok = false;

	if (!j)
		return;
	j->pd = d->port->id->pd;
	j->attr = (struct ibv_ah_attr){.is_global = 1,
				       .port_num = 1,
				       .grh = {.dgid = ur_rs_udp_gid(&d->addr),
					       .sgid_index = d->port->sgid_index,
					       .hop_limit = 64}};
	pthread_mutex_lock(&lock);
	if (threads < THREADS_MAX)
		ok = ur_thread_start_detached(work, j) == 0;
	threads += ok;
	pthread_mutex_unlock(&lock);
	if (ok)
		d->job = j;
	else
		free(j);
}

static void take_result(struct ur_rs_dest *d)
{
	struct ur_rs_ah_job *j = d->job;
	bool is_done;

	pthread_mutex_lock(&lock);
	is_done = j->is_done;
	pthread_mutex_unlock(&lock);
	if (!is_done)
		return;
	d->ah = j->ah;
	if (!d->ah)
		d->again_ns = ur_rs_now_ns() + AGAIN_NS;
	d->job = NULL;
	free(j);
}

/* RSOCKET-UDP-04 */
struct ibv_ah *ur_rs_udp_ah(struct ur_rs_dest *d)
{
	if (!d->qpn)
		return NULL;
	if (d->job)
		take_result(d);
	else if (!d->ah && ur_rs_now_ns() >= d->again_ns)
		start(d);
	return d->ah;
}

void ur_rs_udp_free_ah(struct ur_rs_dest *d)
{
	struct ur_rs_ah_job *j = d->job;
	bool is_done = false;

	if (d->ah)
		ibv_destroy_ah(d->ah);
	if (!j)
		return;
	pthread_mutex_lock(&lock);
	is_done = j->is_done;
	j->is_orphan = true;
	pthread_mutex_unlock(&lock);
	if (is_done)
		free_job(j);
}
