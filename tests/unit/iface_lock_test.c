/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <criterion/criterion.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dpdk/iface_lock.h"
#include "dpdk/eal.h"

/*
 * Each test has its own network namespace with its own "lo", because tests run in parallel, also
 * several times on one machine.
 */

static struct ur_iface_holder holder;

static void own_namespace(void)
{
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		cr_skip_test("no network namespaces here: %s", strerror(errno));
}

/* Starts a process that locks lo and waits to be killed. Returns when it has the lock. */
static pid_t start_holder(const char *name, bool elsewhere)
{
	int ready[2];
	char c;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		struct ur_iface_holder ignored;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		close(ready[0]);
		if (elsewhere && unshare(CLONE_NEWNET) != 0)
			_exit(1);
		if (ur_iface_lock("lo", 0, &ignored) < 0 || write(ready[1], "x", 1) != 1)
			_exit(2);
		pause();
		_exit(3);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &c, 1), 1, "the other process could not lock lo");
	close(ready[0]);
	return pid;
}

static void kill_holder(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* EDGE-LOCK-01 */
Test(iface_lock, of_another_process_is_reported_with_its_name)
{
	pid_t other;

	own_namespace();
	other = start_holder("the-holder", false);
	cr_assert_eq(ur_iface_lock("lo", 0, &holder), -EBUSY);
	cr_expect_eq(holder.pid, other);
	cr_expect_str_eq(holder.name, "the-holder");
	kill_holder(other);
}

/* EDGE-LOCK-01 */
Test(iface_lock, ends_with_the_process_however_that_ends)
{
	int fd;

	own_namespace();
	for (unsigned i = 0; i < 20; i++) {
		kill_holder(start_holder("x", false));
		fd = ur_iface_lock("lo", 0, &holder);
		cr_assert_geq(fd, 0, "%s", strerror(-fd));
		close(fd);
	}
}

Test(iface_lock, of_the_same_process_counts_as_well)
{
	int fd;

	own_namespace();
	fd = ur_iface_lock("lo", 0, &holder);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ur_iface_lock("lo", 0, &holder), -EBUSY);
	cr_expect_eq(holder.pid, getpid());
	close(fd);
	fd = ur_iface_lock("lo", 0, &holder);
	cr_assert_geq(fd, 0);
	close(fd);
}

Test(iface_lock, of_an_interface_with_that_name_and_index_elsewhere_is_another)
{
	pid_t other;
	int fd;

	own_namespace();
	other = start_holder("x", true);
	fd = ur_iface_lock("lo", 0, &holder);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	close(fd);
	kill_holder(other);
}

Test(iface_lock, is_refused_however_often_it_is_tried)
{
	pid_t other;

	own_namespace();
	other = start_holder("x", false);
	for (unsigned i = 0; i < 200; i++) {
		cr_assert_eq(ur_iface_lock("lo", 0, &holder), -EBUSY);
		cr_assert(holder.pid == other || (holder.pid == 0 && !holder.name[0]));
	}
	kill_holder(other);
}

Test(iface_lock, needs_an_interface)
{
	cr_expect_eq(ur_iface_lock("no-such-one", 0, &holder), -ENODEV);
}

static struct ur_config cfg;
static char err[512];

static void set(const char *arg)
{
	cr_assert_eq(ur_config_set_arg(&cfg, arg, err, sizeof(err)), 0, "%s", err);
}

static void use_lo(const char *driver)
{
	ur_config_init(&cfg);
	set(driver);
	set("port.device=lo");
	set("address.ipv4=10.77.0.1/24");
	set("eal.hugepages=no");
	set("eal.memory_mb=64");
}

static void expect_free(void)
{
	int fd = ur_iface_lock("lo", 0, &holder);

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	close(fd);
}

static void try_open(const char *driver, const char *want)
{
	struct ur_eal_port port;

	use_lo(driver);
	cr_assert_eq(ur_eal_init(&cfg, &port, err, sizeof(err)), -EBUSY);
	cr_expect_str_eq(err, want);
	cr_expect_str_eq(ur_eal_prefix(), "", "DPDK was not even started");
}

/* EDGE-LOCK-01 */
Test(iface_lock, is_made_by_both_kernel_drivers_in_one_sentence)
{
	char want[512];
	pid_t other;

	own_namespace();
	other = start_holder("the-holder", false);
	snprintf(want, sizeof(want),
		 "--set: [port] device: the interface lo is in use by the-holder (process %d), and "
		 "each would take the other's packets; end that one, or name another interface",
		 (int)other);
	try_open("port.driver=af_packet", want);
	try_open("port.driver=af_xdp", want);
	kill_holder(other);
}

/* EDGE-LOCK-01 */
Test(iface_lock, ends_when_the_port_cannot_be_opened)
{
	struct ur_eal_port port;

	own_namespace();
	use_lo("port.driver=af_packet");
	set("eal.extra=--no-such-option");
	cr_assert_lt(ur_eal_init(&cfg, &port, err, sizeof(err)), 0);
	expect_free();
}

/* EDGE-LOCK-01 */
Test(iface_lock, lasts_until_the_port_is_released)
{
	struct ur_eal_port port;

	own_namespace();
	use_lo("port.driver=af_packet");
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ur_eal_init(&cfg, &port, err, sizeof(err)), 0, "%s", err);
		cr_assert_eq(ur_iface_lock("lo", 0, &holder), -EBUSY);
		cr_expect_eq(holder.pid, getpid());
		ur_eal_release(&port);
		expect_free();
	}
}
