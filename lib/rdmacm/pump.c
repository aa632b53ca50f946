/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "rdmacm/cm.h"
#include "thread/thread.h"

#define BATCH 64 /* events, before another thread may have the lock */

/* Events of liburoce become the program's. The lock keeps an id of an event alive until the event is in a queue. */

/* True: there may be more. */
static bool take_some(struct ur_cm_device *d)
{
	struct uroce_cm_event *e;
	struct ur_cm_event *to;
	unsigned i;
	int state = ur_cm_enter();

	for (i = 0; i < BATCH && !uroce_get_cm_event(d->channel, 0, &e); i++) {
		to = ur_cm_translate(e);
		if (to)
			ur_cm_put(to);
		uroce_ack_cm_event(e);
	}
	ur_cm_leave(state);
	return i == BATCH;
}

void ur_cm_pump(void)
{
	unsigned cnt;
	struct ur_cm_device *d = ur_cm_devices(&cnt);

	for (unsigned i = 0; i < cnt; i++)
		while (take_some(&d[i]))
			;
}

static void *pump(void *arg)
{
	struct pollfd p[UR_CM_DEVICES_MAX];
	unsigned cnt;
	struct ur_cm_device *d = ur_cm_devices(&cnt);

	for (unsigned i = 0; i < cnt; i++)
		p[i] = (struct pollfd){.fd = uroce_event_channel_fd(d[i].channel),
				       .events = POLLIN};
	for (;;)
		if (poll(p, cnt, -1) > 0)
			ur_cm_pump();
	return NULL;
}

int ur_cm_start_pump(void)
{
	return ur_thread_start_detached(pump, NULL);
}

struct ur_cm_event *ur_cm_new_event(struct ur_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct ur_cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->owner = id;
	e->ev.id = &id->id;
	e->ev.event = type;
	e->ev.status = status;
	return e;
}

void ur_cm_raise(struct ur_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct ur_cm_event *e = ur_cm_new_event(id, type, status);

	if (e)
		ur_cm_put(e);
}
