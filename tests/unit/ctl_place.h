/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_CTL_PLACE_H
#define TEST_CTL_PLACE_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "output.h"

/* A command of uroce-ctl in a fabric of the test, on node 0, under virtual time. What it writes as JSON is in `file`. */
#define PLACE_NS 1000000 /* of the time in which links come up */

static struct ur_fabric *fabric; /* freed when a command ends */
static char file[] = "/tmp/uroce-ctl-test-XXXXXX";

static void place_send(struct ctl_join *j, const struct ur_mgr_mad *mad)
{
	(void)j;
	ur_fabric_send(fabric, 0, mad->lid, mad->bytes);
}

static bool place_receive(struct ctl_join *j, uint64_t until_ns, struct ur_mgr_mad *mad)
{
	(void)j;
	return ur_fabric_run(fabric, until_ns) &&
	       ur_fabric_receive(fabric, 0, &mad->lid, mad->bytes);
}

static uint64_t place_now(struct ctl_join *j)
{
	(void)j;
	return ur_fabric_now(fabric);
}

static void place_close(struct ctl_join *j)
{
	(void)j;
	ur_fabric_free(fabric);
}

struct ctl_join *ctl_join(const struct ctl_options *o, char *err, size_t err_bytes)
{
	static const struct ctl_join_ops ops = {place_send, place_receive, place_now, place_close};
	static struct ctl_join join = {&ops};

	(void)o, (void)err, (void)err_bytes;
	return &join;
}

static inline void place_make_file(void)
{
	int fd = mkstemp(file);

	cr_assert_geq(fd, 0);
	close(fd);
}

static inline void place_start(void)
{
	ur_fabric_start(fabric);
	ur_fabric_attach(fabric, 0);
	(void)ur_fabric_run(fabric, PLACE_NS);
}

static inline bool place_run(bool (*command)(struct ctl_session *s), const char *const *words)
{
	const char *argv[24] = {"uroce-ctl"};
	static struct ctl_options o;
	struct ctl_session s;
	char err[256];
	int argc = 1;
	bool ok;

	while (*words)
		argv[argc++] = *words++;
	argv[argc++] = "--fabric-model";
	argv[argc++] = "of the test";
	argv[argc++] = "--json";
	argv[argc++] = file;
	cr_assert_eq(ctl_options_parse(&o, argc, (char **)(uintptr_t)argv, err, sizeof(err)),
		     CTL_PARSE_OK, "%s", err);
	cr_assert(freopen("/dev/null", "w", stdout));
	ok = ctl_open(&s, &o) && command(&s);
	ctl_close(&s);
	return ok;
}

#endif
