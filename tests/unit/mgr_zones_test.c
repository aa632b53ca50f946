/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/zones.h"

static struct ur_zones zones;
static char err[256];

static bool parse(const char *text)
{
	return ur_zones_parse(&zones, text, strlen(text), err, sizeof(err));
}

static void refuse(const char *text, const char *why)
{
	cr_assert(!parse(text), "%s", text);
	cr_assert(strstr(err, why), "%s: %s", text, err);
}

Test(zones, the_text_is_read)
{
	cr_assert(parse("# all\nzone east # one\nkey 0x10\nlease 7\nseat 1 2 0x3\nnode 4\n\n"
			"zone west\nkey 17\nwithin 2 of 0x9\nroute 0x8 1,30\nnearest 0x7 0x6"),
		  "%s", err);
	cr_assert(zones.cnt == 2);
	cr_assert(!strcmp(zones.zone[0].name, "east") && zones.zone[0].lease_s == 7);
	cr_assert(zones.zone[0].seats_cnt == 3 && zones.zone[0].seat[2] == 3);
	cr_assert(zones.zone[1].key == 17 && zones.zone[1].lease_s == 5);
	cr_assert(zones.zone[1].rules_cnt == 4 && zones.zone[1].rule[1].route[1] == 30);
	/* Its seats are what its rules name. */
	cr_assert(zones.zone[1].seats_cnt == 4 && zones.zone[1].seat[0] == 9);
	cr_assert(ur_zones_find(&zones, "west") == &zones.zone[1]);
	cr_assert(!ur_zones_find(&zones, "wes") && !ur_zones_find(&zones, "west1"));
}

Test(zones, what_is_wrong_is_named)
{
	refuse("", "there is no zone");
	refuse("node 1\n", "line 1: 'zone NAME' comes first");
	refuse("zone a\nnode 1\n", "no key");
	refuse("zone a\nkey 0\n", "line 2: a key");
	refuse("zone a\nkey 1\n", "no nodes");
	refuse("zone a\nkey 1\nnode 1\nzone a\n", "line 4: there is a zone of this name");
	refuse("zone a\nkey 1\nnode 0x1ffffffffffffffff\n", "line 3: a GUID");
	refuse("zone a\nkey 1\nnode 0\n", "a GUID");
	refuse("zone a\nkey 1\nnode\n", "a GUID");
	refuse("zone a\nkey 1\nseat 1 1\n", "already");
	refuse("zone a\nkey 1\nseat 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "at most 15");
	refuse("zone a\nkey 1\nwithin 64 of 1\n", "63");
	refuse("zone a\nkey 1\nwithin 6 off 1\n", "within HOPS of GUID");
	refuse("zone a\nkey 1\nroute 1 2,\n", "a route");
	refuse("zone a\nkey 1\nroute 1 255\n", "a route");
	refuse("zone a\nkey 1\nroute 1 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n", "a route");
	refuse("zone a\nkey 1 2\n", "more on the line");
	refuse("zone a\nkey 1\nlease 65536\n", "a lease");
	refuse("zone a\nkey 1\nfoo\n", "none of zone");
	refuse("zone 12345678901234567890123456789012\n", "31 characters");
}

/* Texts that are cut off anywhere are read or refused, and never more than the text. */
Test(zones, every_truncation_is_read_or_refused)
{
	static const char text[] =
		"zone east\nkey 0x10\nlease 7\nseat 1 2\nwithin 2 of 0x9\nroute 0x8 1,30\n";

	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len ? len : 1);

		memcpy(copy, text, len);
		(void)ur_zones_parse(&zones, copy, len, err, sizeof(err));
		free(copy);
	}
}

Test(zones, the_number_changes_with_the_text)
{
	static const char *const texts[] = {
		"zone a\nkey 1\nnode 1\n",	    "zone b\nkey 1\nnode 1\n",
		"zone a\nkey 2\nnode 1\n",	    "zone a\nkey 1\nnode 2\n",
		"zone a\nkey 1\nlease 6\nnode 1\n", "zone a\nkey 1\nnearest 1\n",
		"zone a\nkey 1\nroute 1 1\n",	    "zone a\nkey 1\nroute 1 2\n",
		"zone a\nkey 1\nseat 2\nnode 1\n",  "zone a\nkey 1\nwithin 1 of 1\n"};
	uint64_t number[10];

	for (unsigned i = 0; i < 10; i++) {
		cr_assert(parse(texts[i]));
		number[i] = ur_zones_number(&zones);
		cr_assert(parse(texts[i]) && ur_zones_number(&zones) == number[i]);
		for (unsigned k = 0; k < i; k++)
			cr_assert(number[i] != number[k], "%s and %s", texts[i], texts[k]);
	}
}

/* A line of six switches, GUIDs 1 to 6, an endpoint at each, 11 to 16. Port 1 leads back, 2 on, 3 to the endpoint. */
static struct ur_topo topo;
static bool twice; /* the fifth switch has the GUID of the second one */

static void join(uint32_t a, uint8_t pa, uint32_t b, uint8_t pb)
{
	struct ur_topo_port *x = &topo.port[ur_topo_port_of(&topo, a, pa)];
	struct ur_topo_port *y = &topo.port[ur_topo_port_of(&topo, b, pb)];

	x->peer_node = b, x->peer_port = pb;
	y->peer_node = a, y->peer_port = pa;
}

static void make_line(void)
{
	struct ur_topo_limits limits = {16, 64};

	ur_topo_init(&topo, malloc(ur_topo_size(&limits)), &limits);
	for (uint32_t i = 0; i < 6; i++)
		(void)ur_topo_add(&topo, twice && i == 4 ? 2 : 1 + i, UR_TOPO_SWITCH, 3);
	for (uint32_t i = 0; i < 6; i++)
		(void)ur_topo_add(&topo, 11 + i, UR_TOPO_ENDPOINT, 1);
	for (uint32_t i = 0; i < 5; i++)
		join(i, 2, i + 1, 1);
	for (uint32_t i = 0; i < 6; i++)
		join(i, 3, 6 + i, 1);
}

/* The zones of the switches and of the endpoints, a letter each; '.': none. */
static void assign(const char *text, const char *expected)
{
	uint8_t zone[12];
	uint32_t dist[24], queue[12];
	char got[13] = "";

	make_line();
	cr_assert(parse(text), "%s", err);
	ur_zones_assign(&zones, &topo, zone, dist, queue);
	for (unsigned i = 0; i < 12; i++)
		got[i] = zone[i] == UR_ZONE_NONE ? '.' : zones.zone[zone[i]].name[0];
	cr_assert(!strcmp(got, expected), "%s: %s", text, got);
	free(topo.node);
}

/* MGR-ZONE-07 */
Test(zones, a_guid_that_two_nodes_have_names_both_and_no_seat)
{
	make_line();
	cr_expect_eq(ur_zones_seat(&topo, 2), 1);
	cr_expect_eq(ur_zones_seat(&topo, 99), UR_TOPO_NONE, "there is none");
	free(topo.node);
	twice = true;
	make_line();
	cr_expect_eq(ur_zones_seat(&topo, 2), UR_TOPO_NONE,
		     "which one is found first depends on the place");
	cr_expect_eq(ur_zones_seat(&topo, 3), 2);
	free(topo.node);
	/* The switches 2 and 5 of the line have GUID 2. */
	assign("zone a\nkey 1\nnode 2\n", ".a..a.......");
	assign("zone a\nkey 1\nnode 3\nseat 2\n", ".aa.a.......");
	assign("zone a\nkey 1\nwithin 1 of 2\n", "aaaaaa.a..a.");
	assign("zone a\nkey 1\nroute 2 2\n", ".aaaaa..aaaa");
	assign("zone a\nkey 1\nroute 2 3\n", ".a..a..a..a.");
	assign("zone a\nkey 1\nnearest 2\nzone b\nkey 1\nnearest 3\n", "aabaaaaabaaa");
}

/* MGR-ZONE-04 */
Test(zones, rules_choose_nodes)
{
	assign("zone a\nkey 1\nnode 2 16 99\n", ".a.........a");
	assign("zone a\nkey 1\nwithin 1 of 2\n", "aaa....a....");
	assign("zone a\nkey 1\nwithin 2 of 12\n", "aaa....a....");
	assign("zone a\nkey 1\nroute 3 2\n", "..aaaa...aaa");
	assign("zone a\nkey 1\nseat 4\nroute 3 2,2\n", "...aaa....aa");
	assign("zone a\nkey 1\nseat 4\nroute 3 3\n", "...a....a...");
	assign("zone a\nkey 1\nnearest 1\nzone b\nkey 1\nnearest 6\n", "aaabbbaaabbb");
	assign("zone a\nkey 1\nnearest 1\nzone b\nkey 1\nnearest 5\n", "aaabbbaaabbb");
	assign("zone b\nkey 1\nnearest 5\nzone a\nkey 1\nnearest 1\n", "aabbbbaabbbb");
	/* The first zone with a rule for it, but a seat is its zone's. */
	assign("zone a\nkey 1\nwithin 1 of 3\nzone b\nkey 1\nwithin 2 of 3\nseat 4\n",
	       "baabb..bab..");
}
