/* SPDX-License-Identifier: BSD-3-Clause */
#include "manage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "manager/proof.h"
#include "names.h"
#include "output.h"

/* The commands to managers of zones, and their list. */

#define FILE_BYTES (1 << 20)

struct ur_zones *ctl_zones_read(const struct ctl_options *o)
{
	struct ur_zones *z = calloc(1, sizeof(*z));
	char *text = malloc(FILE_BYTES), err[256];
	FILE *in = fopen(o->zones, "re");
	size_t bytes;

	if (!in || !z || !text) {
		ctl_complain("--zones: %s cannot be read: %s", o->zones, strerror(errno));
		goto fail;
	}
	bytes = fread(text, 1, FILE_BYTES, in);
	if (bytes == FILE_BYTES || ferror(in)) {
		ctl_complain("--zones: %s cannot be read, or has more than 1 MB", o->zones);
		goto fail;
	}
	if (!ur_zones_parse(z, text, bytes, err, sizeof(err))) {
		ctl_complain("--zones: %s: %s", o->zones, err);
		goto fail;
	}
	fclose(in);
	free(text);
	return z;
fail:
	if (in)
		fclose(in);
	free(text);
	free(z);
	return NULL;
}

const char *ctl_manager_state(uint8_t state)
{
	static const char *const names[] = {"not active", "discovering", "standby", "master"};

	return state < 4 ? names[state] : "?";
}

bool ctl_is_manager(const struct ur_topo *t, uint32_t node)
{
	return t->node[node].type == UR_TOPO_ENDPOINT &&
	       !strcmp(t->node[node].description, CTL_MANAGER_NAME);
}

/* ---- list ---- */

static const struct ur_zone *zone_of(const struct ur_zones *z, uint64_t number)
{
	for (uint32_t i = 0; z && i < z->cnt; i++)
		if (ur_zone_number(z->zone[i].name) == number)
			return &z->zone[i];
	return NULL;
}

/* What a manager says of itself. `proved`: it has proved the key of its zone, which is in the file. */
static bool get_info(struct ctl_session *s, const struct ur_zones *z, uint32_t node,
		     struct ur_manager_info *info, bool *proved)
{
	uint8_t data[UR_SMP_DATA_BYTES] = {0};
	struct ur_manager_info question = {0};
	const struct ur_zone *zone;
	struct ur_mgr_mad mad;

	arc4random_buf(&question.number, sizeof(question.number));
	ur_put_manager_info(data, &question);
	if (!ctl_get_with(s, node, UR_SMP_MANAGER, data, &mad))
		return false;
	ur_get_manager_info(mad.bytes + UR_SMP_DATA, info);
	zone = zone_of(z, info->zone);
	*proved = zone && info->guid == s->topo.node[node].guid &&
		  ur_proof_open(zone->key, UR_PROOF_ANSWER, question.number, info);
	return true;
}

static void show(const struct ctl_session *s, const struct ur_zones *z, uint32_t node,
		 const struct ur_manager_info *i, bool proved, json_t *list)
{
	bool same = z && i->rules == ur_zones_number(z);
	const struct ur_zone *found = zone_of(z, i->zone);
	const char *zone = found ? found->name : "?";

	if (ctl_prints_text(s->o))
		printf("%#" PRIx64 "  zone %s  %s  priority %u  %u of %u seats%s%s\n",
		       s->topo.node[node].guid, zone, ctl_manager_state(i->state), i->priority,
		       i->held, i->seats, z && !same ? "  (has other zones)" : "",
		       found && !proved ? "  (does not prove the zone's key)" : "");
	json_array_append_new(list, json_pack("{s:o,s:s,s:o,s:s,s:i,s:i,s:i,s:b,s:b}", "guid",
					      ctl_json_hex(s->topo.node[node].guid), "zone", zone,
					      "zone_number", ctl_json_hex(i->zone), "state",
					      ctl_manager_state(i->state), "priority",
					      (int)i->priority, "held", (int)i->held, "seats",
					      (int)i->seats, "same_zones", same, "proved", proved));
}

static bool list(struct ctl_session *s, const struct ur_zones *z)
{
	json_t *list = json_array();
	struct ur_manager_info info;
	bool proved;

	for (uint32_t i = 1; i < s->topo.nodes_cnt; i++) {
		if (!ctl_is_manager(&s->topo, i) || !get_info(s, z, i, &info, &proved))
			continue;
		show(s, z, i, &info, proved, list);
	}
	return ctl_json_write(s->o, list);
}

/* ---- orders ---- */

static const char hint[] =
	"'uroce-ctl manage list' shows the managers; all must have the same --zones";

/* The manager that an order is for: of that GUID, or the zone's master. `number`: what the order has to prove to have seen. */
static bool find_manager(struct ctl_session *s, const struct ur_zones *z,
			 const struct ur_zone *zone, uint64_t guid, uint32_t *node,
			 uint64_t *number)
{
	struct ur_manager_info info;
	bool proved;

	for (*node = 1; *node < s->topo.nodes_cnt; ++*node) {
		if (!ctl_is_manager(&s->topo, *node) ||
		    (guid && s->topo.node[*node].guid != guid) ||
		    !get_info(s, z, *node, &info, &proved))
			continue;
		if (info.zone == ur_zone_number(zone->name) && proved &&
		    (guid || info.state == UR_MANAGER_MASTER)) {
			*number = info.number;
			return true;
		}
	}
	if (guid)
		return ctl_complain("%#" PRIx64
				    " is no manager of the zone %s that proves the zone's key: %s",
				    guid, zone->name, hint);
	return ctl_complain("the zone %s has no master that proves the zone's key: %s", zone->name,
			    hint);
}

static bool order(struct ctl_session *s, const struct ur_zones *z, const struct ur_zone *zone,
		  uint32_t modifier, uint64_t guid)
{
	bool resigns = modifier == UR_MANAGER_RESIGN;
	struct ur_manager_info info = {
		.zone = ur_zone_number(zone->name), .rules = ur_zones_number(z), .to = guid};
	struct ur_mgr_mad mad = {0};
	uint64_t number = 0;
	uint32_t node;

	if (!find_manager(s, z, zone, resigns ? 0 : guid, &node, &number))
		return false;
	arc4random_buf(&info.number, sizeof(info.number));
	ur_proof_seal(zone->key, modifier, number, &info);
	ur_put_manager_info(mad.bytes + UR_SMP_DATA, &info);
	if (!ctl_set(s, node, UR_SMP_MANAGER, modifier, &mad))
		return ctl_complain("%s", hint);
	if (ctl_prints_text(s->o))
		printf("%#" PRIx64 " does it\n", s->topo.node[node].guid);
	return ctl_json_write(s->o,
			      json_pack("{s:o}", "guid", ctl_json_hex(s->topo.node[node].guid)));
}

bool ctl_cmd_manage(struct ctl_session *s)
{
	const struct ctl_options *o = s->o;
	const char *what = o->words[0];
	struct ur_zones *z = o->zones ? ctl_zones_read(o) : NULL;
	const struct ur_zone *zone = NULL;
	uint64_t guid = 0;
	bool ok = !o->zones || z;

	if (ok && o->words_cnt > 1 && !(zone = ur_zones_find(z, o->words[1])))
		ok = ctl_complain("%s has no zone '%s'", o->zones, o->words[1]);
	if (ok && o->words_cnt > 2 && !ctl_parse_number(o->words[2], UINT64_MAX, &guid))
		ok = ctl_complain("'%s' is no GUID", o->words[2]);
	if (ok && !strcmp(what, "list"))
		ok = list(s, z);
	else if (ok && !strcmp(what, "run"))
		ok = ctl_manage_run(s, z, zone);
	else if (ok)
		ok = order(s, z, zone,
			   !strcmp(what, "handover")  ? UR_MANAGER_RESIGN
			   : !strcmp(what, "disable") ? UR_MANAGER_DISABLE
						      : UR_MANAGER_STANDBY_ORDER,
			   guid);
	free(z);
	return ok;
}
