/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets the program takes from the kernel, by the kernel's own BPF_PROG_TEST_RUN. That it takes them on
 * an interface is tests/e2e/shared_copies_test.c.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <bpf/bpf.h>
#include <linux/pkt_cls.h>

#include "dpdk/ingress_drop.h"

#define IP   14 /* offsets in a frame */
#define UDP4 34
#define UDP6 54

static const struct ur_gid own4 = {{[10] = 0xff, 0xff, 10, 78, 0, 1}};
static const struct ur_gid own6 = {{0xfd, 0x78, [15] = 1}};

static struct ur_ingress_drop drop;
static uint8_t frame[256];
static uint32_t len;

static void setup(void)
{
	int rc = ur_ingress_drop_open(&drop);

	if (rc == -EPERM || rc == -ENOTSUP)
		cr_skip_test("%s", rc == -EPERM ? "needs root" : "this build has no program");
	cr_assert_eq(rc, 0, "%s", strerror(-rc));
	cr_assert_eq(ur_ingress_drop_add(&drop, &own4), 0);
	cr_assert_eq(ur_ingress_drop_add(&drop, &own6), 0);
}

static void teardown(void)
{
	ur_ingress_drop_close(&drop);
}

static bool is_dropped(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len);

	cr_assert_eq(bpf_prog_test_run_opts(drop.program, &o), 0, "%s", strerror(errno));
	cr_assert(o.retval == (uint32_t)TC_ACT_SHOT || o.retval == (uint32_t)TC_ACT_UNSPEC, "%d",
		  (int)o.retval);
	return o.retval == (uint32_t)TC_ACT_SHOT;
}

/* A RoCEv2 packet without its transport headers: nothing behind UDP is looked at. */
static void make4(void)
{
	static const uint8_t bytes[] = {0x02, 0, 0,  0,	 0, 1, 0x02, 0, 0,    0,   0, 2, 0x08, 0x00,
					0x45, 0, 0,  60, 0, 0, 0x40, 0, 64,   17,  0, 0, 10,   78,
					0,    2, 10, 78, 0, 1, 0xc0, 0, 0x12, 0xb7};

	memset(frame, 0, sizeof(frame));
	memcpy(frame, bytes, sizeof(bytes));
	len = 74;
}

static void make6(void)
{
	memset(frame, 0, sizeof(frame));
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[IP] = 0x60;
	frame[IP + 6] = 17;
	memcpy(frame + IP + 8, own6.b, 16);
	frame[IP + 23] = 2;
	memcpy(frame + IP + 24, own6.b, 16);
	frame[UDP6 + 2] = 0x12;
	frame[UDP6 + 3] = 0xb7;
	len = 94;
}

/* SHARED-INGRESS-01 */
Test(ingress_drop, roce_to_an_own_address_is_dropped_and_counted, .init = setup, .fini = teardown)
{
	make4();
	cr_expect(is_dropped());
	cr_expect(is_dropped());
	make6();
	cr_expect(is_dropped());
	cr_expect_eq(ur_ingress_drop_count(&drop, &own4), 2);
	cr_expect_eq(ur_ingress_drop_count(&drop, &own6), 1);
}

static void expect_kept(size_t at, uint8_t value, const char *what)
{
	frame[at] = value;
	cr_expect_not(is_dropped(), "%s is dropped", what);
}

/* SHARED-INGRESS-01 */
Test(ingress_drop, everything_else_in_ipv4_is_the_kernels, .init = setup, .fini = teardown)
{
	const struct {
		size_t at;
		uint8_t value;
		const char *what;
	} other[] = {{UDP4 + 3, 0xb8, "another port"},
		     {IP + 9, 6, "TCP"},
		     {IP + 6, 0x20, "a first fragment"},
		     {IP + 7, 1, "a later fragment"},
		     {IP, 0x46, "a header with options"},
		     {IP, 0x65, "another version of IP"},
		     {IP + 19, 2, "a packet that is forwarded"},
		     {IP + 16, 224, "a packet to a group"},
		     {13, 0x06, "ARP"}};

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		make4();
		expect_kept(other[i].at, other[i].value, other[i].what);
	}
	cr_expect_eq(ur_ingress_drop_count(&drop, &own4), 0);
}

/* SHARED-INGRESS-01 */
Test(ingress_drop, everything_else_in_ipv6_is_the_kernels, .init = setup, .fini = teardown)
{
	const struct {
		size_t at;
		uint8_t value;
		const char *what;
	} other[] = {{UDP6 + 2, 0x13, "another port"},
		     {IP + 6, 6, "TCP"},
		     {IP + 6, 44, "a fragment"},
		     {IP, 0x40, "another version of IP"},
		     {IP + 39, 2, "a packet that is forwarded"}};

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		make6();
		expect_kept(other[i].at, other[i].value, other[i].what);
	}
	cr_expect_eq(ur_ingress_drop_count(&drop, &own6), 0);
}

/* SHARED-INGRESS-01: the VLAN has an interface of its own. */
Test(ingress_drop, tagged_packets_are_the_kernels, .init = setup, .fini = teardown)
{
	make4();
	memmove(frame + 16, frame + 12, 74 - 12);
	memcpy(frame + 12, (uint8_t[]){0x81, 0x00, 0, 5}, 4);
	len = 78;
	cr_expect_not(is_dropped());
}

/* SHARED-INGRESS-01. Newer kernels do not run a program on less than an IP header. */
Test(ingress_drop, a_frame_that_ends_early_is_the_kernels, .init = setup, .fini = teardown)
{
	for (unsigned n = UDP4; n < 42; n++) {
		make4();
		len = n;
		cr_expect_not(is_dropped(), "IPv4, %u bytes", n);
	}
	make4();
	len = 42;
	cr_expect(is_dropped());
	for (unsigned n = UDP6; n < 62; n++) {
		make6();
		len = n;
		cr_expect_not(is_dropped(), "IPv6, %u bytes", n);
	}
}

/* SHARED-INGRESS-01 */
Test(ingress_drop, an_address_that_is_removed_is_the_kernels_again, .init = setup, .fini = teardown)
{
	make4();
	cr_assert(is_dropped());
	cr_assert_eq(ur_ingress_drop_remove(&drop, &own4), 0);
	cr_expect_not(is_dropped());
	cr_expect_eq(ur_ingress_drop_count(&drop, &own4), 0);
	make6();
	cr_expect(is_dropped(), "the other address went with it");
}

Test(ingress_drop, one_that_is_closed_may_be_closed_again, .init = setup)
{
	ur_ingress_drop_close(&drop);
	ur_ingress_drop_close(&drop);
	cr_expect_null(drop.object);
}
