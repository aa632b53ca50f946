/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's own copies of RoCEv2 packets, which it drops before IP (lib/dpdk/ingress_drop.c). Which packets these are: tests/unit/ingress_drop_test.c.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "dpdk/ingress_drop.h"
#include "shared_net.h"

/* Datagrams that the kernel's IP has received in this namespace. */
static uint64_t ip_received(void)
{
	FILE *f = popen("nstat -asz IpInReceives | awk '/IpIn/ { print $2 }'", "r");
	unsigned long n = 0;

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%lu", &n), 1);
	pclose(f);
	return n;
}

static bool kernel_has_tcx(void)
{
	struct ur_ingress_drop d;
	int rc = ur_ingress_drop_open(&d);

	if (!rc)
		rc = ur_ingress_drop_attach(&d, if_nametoindex("sh0"));
	ur_ingress_drop_close(&d);
	return rc == 0;
}

/* Datagrams to another port pass the same queue behind what is dropped: when they are there, that would be. */
static void expect_ip_received(int wire, uint64_t before, unsigned others, const char *what)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	for (unsigned i = 0; i < others; i++)
		arrive(wire, 4792);
	while (ip_received() < before + others)
		cr_assert_lt(now_ms(), end, "others' datagrams are dropped");
	cr_expect_eq(ip_received(), before + others, "%s", what);
}

/* The frame of arrive() with a tag. */
static void arrive_tagged(int wire, uint16_t vlan)
{
	uint8_t frame[64] = {
		0x02, 0, 0,  0,	 0, 1, 0x02, 0,		0,	   0,		0,	   2,
		0x81, 0, 0,  0,	 8, 0, 0x45, [21] = 46, [26] = 64, IPPROTO_UDP, [30] = 10, 78,
		0,    2, 10, 78, 0, 1, 0x80, 0,		0x12,	   0xb7,	[43] = 26};

	frame[14] = (uint8_t)(vlan >> 8);
	frame[15] = (uint8_t)vlan;
	cr_assert_eq(send(wire, frame, sizeof(frame), 0), (ssize_t)sizeof(frame));
}

static void expect_dropped(unsigned cnt)
{
	for (uint64_t end = now_ms() + PATIENCE_MS; neigh_counter("copies_dropped") < cnt;)
		cr_assert_lt(now_ms(), end, "%u dropped",
			     (unsigned)neigh_counter("copies_dropped"));
	cr_expect_eq(neigh_counter("copies_dropped"), cnt);
}

/* SHARED-INGRESS-01 */
Test(shared_copies, the_kernel_drops_its_copy_before_ip, .init = make_network,
     .fini = close_endpoint)
{
	int wire;
	uint64_t before;

	if (!kernel_has_tcx())
		cr_skip_test("no tcx: Linux before 6.6, or a build without clang");
	open_endpoint();
	wire = open_wire();
	before = ip_received();
	for (unsigned i = 0; i < 20; i++)
		arrive(wire, 4791);
	expect_dropped(20);
	expect_ip_received(wire, before, 20, "copies got as far as IP");
	/* An address that is gone is no longer the endpoint's, and its packets stay in the count. */
	run("ip addr add 10.78.0.7/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	run("sysctl -qw net.ipv4.conf.sh0.promote_secondaries=1");
	run("ip addr del 10.78.0.1/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	before = ip_received();
	arrive(wire, 4791);
	expect_ip_received(wire, before + 1, 1, "what is not the endpoint's is dropped");
	cr_expect_eq(neigh_counter("copies_dropped"), 20u);
	close(wire);
}

/* SHARED-INGRESS-01: in a VLAN the same address may be another's. The kernel takes off the tag before the program runs. */
Test(shared_copies, packets_of_a_vlan_are_not_dropped, .init = open_network, .fini = close_endpoint)
{
	int wire;
	uint64_t before;

	wire = open_wire();
	before = ip_received();
	for (unsigned i = 0; i < 20; i++)
		arrive_tagged(wire, 5);
	/* No interface has them, so they do not get as far as IP. */
	expect_ip_received(wire, before, 1, "packets of no interface are received");
	cr_expect_eq(neigh_counter("copies_dropped"), 0u);
	close(wire);
}

/* SHARED-INGRESS-02 */
Test(shared_copies, the_kernel_drops_its_copy_for_an_endpoint_with_an_address_of_its_own,
     .init = make_network, .fini = close_endpoint)
{
	int wire;
	static const char *const own[] = {"port.driver=af_packet",     "port.device=sh0",
					  "address.ipv4=10.78.0.1/24", "eal.hugepages=no",
					  "worker.mode=inline",	       NULL};
	const struct uroce_open_attr attr = {.set = own};
	uint64_t before;

	if (!kernel_has_tcx())
		cr_skip_test("no tcx: Linux before 6.6, or a build without clang");
	run("ip addr flush dev sh0");
	ctx = uroce_open(&attr, err, sizeof(err));
	cr_assert_not_null(ctx, "%s", err);
	pd = uroce_alloc_pd(ctx);
	wire = open_wire();
	before = ip_received();
	for (unsigned i = 0; i < 20; i++)
		arrive(wire, 4791);
	expect_ip_received(wire, before, 1, "copies got as far as IP");
	close(wire);
}

/* SHARED-INGRESS-01 */
Test(shared_copies, a_killed_process_leaves_no_program_on_the_interface, .init = make_network)
{
	int wire;
	const struct ur_gid to = {{[10] = 0xff, 0xff, 10, 78, 0, 1}};
	int told[2], status;
	struct ur_ingress_drop d;
	uint64_t before;
	char ready;
	pid_t pid;

	if (!kernel_has_tcx())
		cr_skip_test("no tcx: Linux before 6.6, or a build without clang");
	wire = open_wire();
	cr_assert_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ur_ingress_drop_open(&d) || ur_ingress_drop_add(&d, &to) ||
		    ur_ingress_drop_attach(&d, if_nametoindex("sh0")))
			_exit(1);
		if (write(told[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	cr_assert_eq(read(told[0], &ready, 1), 1, "the process could not attach its program");
	before = ip_received();
	arrive(wire, 4791);
	expect_ip_received(wire, before, 1, "nothing is dropped, so nothing is tested");
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	before = ip_received();
	for (uint64_t end = now_ms() + PATIENCE_MS; ip_received() == before; arrive(wire, 4791))
		cr_assert_lt(now_ms(), end, "the program outlives its process");
	close(told[0]);
	close(wire);
}
