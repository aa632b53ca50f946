/* SPDX-License-Identifier: BSD-3-Clause */
/* MGR-ZONE-07: a manager of a zone in a fabric in which two switches have the same GUID. */
#include <stdio.h>

#include "ctl_place.h"
#include "wire/smp.h"

#define TWICE UINT64_C(0xa)

#define NODES 5

static bool keyed[NODES]; /* has had a key */
static char zones[] = "/tmp/uroce-ctl-zones-XXXXXX";

static void look_at_key(void *ctx, uint32_t node, uint8_t mad[UR_MAD_BYTES])
{
	struct ur_port_info info;

	(void)ctx;
	if (ur_load16(mad + 16) != UR_SMP_PORT_INFO)
		return;
	ur_get_port_info(mad + UR_SMP_DATA, &info);
	keyed[node] |= info.m_key_protect == 1;
}

/* The manager's endpoint, and four switches in a row; the first and the third have the same GUID. */
static void make_fabric(void)
{
	static const uint64_t guid[] = {1, TWICE, 0xb, TWICE, 0xd};
	struct ur_fabric_attr attr = {.hop_ns = 400, .process_ns = 6000, .seed = 1};

	place_make_file();
	fabric = ur_fabric_new(&attr);
	for (unsigned i = 0; i < NODES; i++) {
		struct ur_fabric_node_attr node = {
			.is_switch = i, .ports = i ? 2 : 1, .guid = guid[i]};

		snprintf(node.name, sizeof(node.name), "node %u", i);
		ur_fabric_add(fabric, &node);
	}
	for (unsigned i = 0; i + 1 < NODES; i++)
		cr_assert(ur_fabric_link(fabric, i, i ? 2 : 1, i + 1, 1));
	ur_fabric_set_tamper(fabric, look_at_key, NULL);
	place_start();
}

static void remove_files(void)
{
	unlink(file);
	unlink(zones);
}

TestSuite(ctl_zone, .init = make_fabric, .fini = remove_files);

static void manage(const char *text)
{
	const char *words[] = {"manage", "run",	   "lab", "--zones",	zones, "--duration",
			       "30",	 "--poll", "0.2", "--interval", "0.3", NULL};
	int fd = mkstemp(zones);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	cr_assert(place_run(ctl_cmd_manage, words));
}

/* How often there was such an event; *most: the greatest `held` of them. */
static unsigned events(const char *event, const char *key, const char *value, json_int_t *most)
{
	FILE *f = fopen(file, "r");
	unsigned cnt = 0;
	json_t *o;

	*most = 0;
	cr_assert_not_null(f);
	while ((o = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
		const char *has = json_string_value(json_object_get(o, key));
		json_int_t held = json_integer_value(json_object_get(o, "held"));

		if (!strcmp(json_string_value(json_object_get(o, "event")), event) &&
		    (!value || (has && !strcmp(has, value)))) {
			cnt++;
			*most = held > *most ? held : *most;
		}
		json_decref(o);
	}
	fclose(f);
	return cnt;
}

Test(ctl_zone, a_seat_whose_guid_two_nodes_have_does_not_count)
{
	json_int_t held;

	manage("zone lab\nkey 7\nlease 1\nseat 0xa 0xb\nnode 0xd\n");
	cr_expect_eq(events("state", "state", "master", &held), 0, "with one of two seats");
	cr_expect_eq(events("duplicate", "guid", "0xa", &held), 1, "it says so, and once");
}

Test(ctl_zone, the_other_seats_decide_and_both_nodes_are_managed)
{
	json_int_t held;

	manage("zone lab\nkey 7\nlease 1\nseat 0xa 0xb 0xd\n");
	cr_expect_eq(events("state", "state", "master", &held), 1);
	cr_expect_eq(held, 2);
	cr_expect_gt(events("nodes", "zone", "lab", &held), 0);
	cr_expect_eq(held, 4, "%lld nodes have the key", (long long)held);
	cr_expect(keyed[1] && keyed[2] && keyed[3] && keyed[4]);
	cr_expect_eq(events("duplicate", "guid", "0xa", &held), 1);
}

Test(ctl_zone, nodes_of_one_guid_that_are_no_seats_are_both_managed)
{
	json_int_t held;
	unsigned nodes;

	manage("zone lab\nkey 7\nlease 1\nseat 0xb\nnode 0xa\n");
	cr_expect_eq(events("state", "state", "master", &held), 1);
	nodes = events("nodes", "zone", "lab", &held);
	cr_expect(nodes >= 1 && nodes <= 3, "each has the key from then on: %u events", nodes);
	cr_expect_eq(held, 3, "%lld nodes have the key", (long long)held);
	cr_expect(keyed[1] && keyed[2] && keyed[3] && !keyed[4]);
	cr_expect_eq(events("duplicate", "zone", NULL, &held), 0);
}
