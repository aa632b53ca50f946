/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "guard.h"

static const uint8_t mac[6] = {2, 0x75, 10, 77, 0, 2}, other[6] = {2, 0x75, 10, 77, 0, 3};
static const uint8_t ll[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x75, 10, 0xff, 0xfe, 77, 0, 2};
static struct guard guard;
static uint8_t frame[256];
static uint32_t len;

static void setup(void)
{
	guard_init(&guard, mac, 0x0a4d0002, 0, false);
}

TestSuite(uroced_guard, .init = setup);

/* The frame at the end of its own memory: a read beyond it is seen by ASan. */
static enum guard_reason check(void)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum guard_reason r;

	memcpy(copy, frame, len);
	r = guard_check(&guard, copy, len);
	free(copy);
	return r;
}

static uint8_t *ethernet(uint16_t type)
{
	memset(frame, 0, sizeof(frame));
	memcpy(frame, other, 6);
	memcpy(frame + 6, mac, 6);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
	return frame + 14;
}

static uint8_t *ip4(void)
{
	static const uint8_t header[20] = {0x45, 0, 0,	60, 0, 0, 0,  0,  64, 17,
					   0,	 0, 10, 77, 0, 2, 10, 77, 0,  3};
	uint8_t *p = ethernet(0x800);

	memcpy(p, header, 20);
	len = 14 + 60;
	return p;
}

static uint8_t *arp(void)
{
	static const uint8_t request[] = {0,	1,  8,	0, 6, 4,  0,  1, 2,
					  0x75, 10, 77, 0, 2, 10, 77, 0, 2};
	uint8_t *p = ethernet(0x806);

	memcpy(p, request, sizeof(request));
	len = 60;
	return p;
}

/* Returns the payload. */
static uint8_t *ip6(uint8_t next, uint16_t payload)
{
	uint8_t *p = ethernet(0x86dd);

	p[0] = 0x60;
	p[4] = (uint8_t)(payload >> 8);
	p[5] = (uint8_t)payload;
	p[6] = next;
	memcpy(p + 8, ll, 16);
	len = 14 + 40 + payload;
	return p + 40;
}

/* UROCED-GUARD-01 */
Test(uroced_guard, own_frames_pass)
{
	ip4();
	cr_assert_eq(check(), GUARD_PASS);
	arp();
	cr_assert_eq(check(), GUARD_PASS);
	memset(arp() + 14, 0, 4);
	cr_assert_eq(check(), GUARD_PASS, "a probe");
	ip6(17, 20);
	cr_assert_eq(check(), GUARD_PASS);
}

Test(uroced_guard, a_foreign_mac_address)
{
	ip4();
	frame[11]++;
	cr_assert_eq(check(), GUARD_MAC);
}

Test(uroced_guard, a_foreign_ip_address)
{
	ip4()[15]++;
	cr_assert_eq(check(), GUARD_IP);
	memset(ip4() + 12, 0, 4);
	cr_assert_eq(check(), GUARD_IP, "0.0.0.0 is no host's");
	ip6(17, 20)[8 - 40 + 15]++;
	cr_assert_eq(check(), GUARD_IP);
	memset(ip6(17, 20) - 32, 0, 16);
	cr_assert_eq(check(), GUARD_IP, ":: sends no UDP");
	memset(ip6(58, 8) - 32, 0, 16);
	frame[14 + 40] = 128;
	cr_assert_eq(check(), GUARD_IP, ":: sends no ping");
}

Test(uroced_guard, arp_of_others)
{
	arp()[13]++;
	cr_assert_eq(check(), GUARD_ARP, "sender's MAC address");
	arp()[17]++;
	cr_assert_eq(check(), GUARD_ARP, "sender's IP address");
	arp()[1] = 6;
	cr_assert_eq(check(), GUARD_ARP, "not Ethernet");
	arp();
	len = 14 + 27;
	cr_assert_eq(check(), GUARD_TRUNCATED);
}

/* A solicitation or an advertisement of our address, with our MAC address as its option. */
static uint8_t *nd(uint8_t type)
{
	uint8_t *p = ip6(58, 32);

	p[0] = type;
	memcpy(p + 8, ll, 16);
	p[24] = type == 136 ? 2 : 1;
	p[25] = 1;
	memcpy(p + 26, mac, 6);
	return p;
}

Test(uroced_guard, neighbour_discovery)
{
	nd(136);
	cr_assert_eq(check(), GUARD_PASS);
	nd(136)[23]++;
	cr_assert_eq(check(), GUARD_ND, "an advertisement of another's address");
	nd(136)[31]++;
	cr_assert_eq(check(), GUARD_ND, "of our address at another's MAC address");
	nd(135)[23]++;
	cr_assert_eq(check(), GUARD_PASS, "a solicitation asks for another's address");
	nd(135)[31]++;
	cr_assert_eq(check(), GUARD_ND);
	nd(135)[25] = 0;
	cr_assert_eq(check(), GUARD_ND, "an option without a length");
	nd(135)[25] = 2;
	cr_assert_eq(check(), GUARD_ND, "an option that is longer than the message");
	nd(134);
	cr_assert_eq(check(), GUARD_ND, "we are no router");
	nd(137);
	cr_assert_eq(check(), GUARD_ND);
	memset(nd(135) - 32, 0, 16);
	cr_assert_eq(check(), GUARD_PASS, "duplicate address detection");
}

Test(uroced_guard, nothing_hides_behind_extension_headers)
{
	uint8_t *p = ip6(0, 32);

	p[0] = 58;
	p[8] = 143;
	cr_assert_eq(check(), GUARD_PASS, "a report of MLD");
	p[8] = 136;
	cr_assert_eq(check(), GUARD_ND);
	p[8] = 143;
	p[1] = 200;
	cr_assert_eq(check(), GUARD_TRUNCATED);
	ip6(60, 32)[0] = 58;
	cr_assert_eq(check(), GUARD_ND);
	ip6(44, 32)[0] = 58;
	cr_assert_eq(check(), GUARD_ND);
}

Test(uroced_guard, what_is_not_for_clients)
{
	static const uint8_t hop[6] = {1, 0x80, 0xc2, 0, 0, 0xe},
			     lid[6] = {2, 0x4c, 0x49, 0x44, 0, 1};

	ip4();
	memcpy(frame, hop, 6);
	cr_assert_eq(check(), GUARD_MANAGEMENT);
	memcpy(frame, lid, 6);
	cr_assert_eq(check(), GUARD_MANAGEMENT);
	guard_init(&guard, mac, 0x0a4d0002, 0, true);
	cr_assert_eq(check(), GUARD_PASS);
	ethernet(0x8100);
	len = 100;
	cr_assert_eq(check(), GUARD_VLAN);
	ethernet(0x88a8);
	cr_assert_eq(check(), GUARD_VLAN);
	ethernet(0x88cc);
	cr_assert_eq(check(), GUARD_TYPE);
}

Test(uroced_guard, lengths_that_contradict)
{
	for (uint32_t n = 0; n < 14 + 20; n++) {
		ip4();
		len = n;
		cr_assert_eq(check(), GUARD_TRUNCATED, "%u", n);
	}
	ip4()[3] = 61;
	cr_assert_eq(check(), GUARD_TRUNCATED, "longer than the frame");
	ip4()[0] = 0x44;
	cr_assert_eq(check(), GUARD_TRUNCATED);
	ip6(17, 20)[5 - 40] = 21;
	cr_assert_eq(check(), GUARD_TRUNCATED);
	ip6(58, 3);
	cr_assert_eq(check(), GUARD_TRUNCATED);
	ip6(58, 23)[0] = 135;
	cr_assert_eq(check(), GUARD_TRUNCATED);
}
