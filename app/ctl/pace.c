/* SPDX-License-Identifier: BSD-3-Clause */
#include "pace.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define SLICE_MS 20 /* between two looks at the input */
#define MS	 UINT64_C(1000000)

static volatile sig_atomic_t ended;

static void end(int number)
{
	ended = 1;
}

void ctl_catch_signals(void)
{
	struct sigaction action = {.sa_handler = end};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool ctl_is_ended(void)
{
	return ended;
}

/* Waits for input. 0: there is none. */
static int read_key(int fd, int wait_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned char c = 0;

	if (poll(&p, 1, wait_ms) != 1 || !(p.revents & (POLLIN | POLLHUP)))
		return 0;
	return read(fd, &c, 1) == 1 ? c : 'q';
}

int ctl_pace(struct ctl_session *s, uint64_t until_ns, int fd)
{
	struct ctl_join *j = s->join;
	bool model = s->o->fabric_model;
	uint64_t now;

	while (!ended && (now = j->ops->now_ns(j)) < until_ns) {
		uint64_t slice_ns = now + SLICE_MS * MS;
		int key = read_key(fd, model ? SLICE_MS : 0);

		if (key)
			return key;
		ctl_wait(s, slice_ns < until_ns ? slice_ns : until_ns);
	}
	return 0;
}

uint64_t ctl_next_due(struct ctl_session *s, uint64_t due, double step_s)
{
	uint64_t now = s->join->ops->now_ns(s->join), step = (uint64_t)(step_s * 1e9);

	return due + step > now ? due + step : now + step;
}
