/* SPDX-License-Identifier: BSD-3-Clause */
#include "registers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "manager/build.h"
#include "names.h"
#include "output.h"

/* ---- requests ---- */

void ctl_make_registers(struct ctl_session *s, struct ur_mgr_mad *mad, uint32_t node,
			const uint16_t *address, const uint64_t *value, unsigned cnt)
{
	struct ur_registers r = {.count = (uint8_t)cnt, .address0 = address[0]};
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&s->topo, node, path);

	r.address1 = cnt > 1 ? address[1] : 0;
	r.value0 = value ? value[0] : 0;
	r.value1 = value && cnt > 1 ? value[1] : 0;
	ur_mgr_directed(mad, value ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0,
			path, hops);
	ur_store64(mad->bytes + UR_SMP_MKEY, s->o->m_key);
	ur_put_registers(mad->bytes + UR_SMP_DATA, &r);
}

const char *ctl_registers_error(const uint8_t *mad, struct ur_registers *r)
{
	uint16_t status = ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION;

	ur_get_registers(mad + UR_SMP_DATA, r);
	if (!status)
		return NULL;
	return status == UR_MAD_STATUS_VALUE && r->error ? ur_vendor_error_text(r->error)
							 : ur_mad_status_text(status);
}

/* ---- many reads ---- */

struct reading {
	struct ctl_session *s;
	const struct ctl_read *read;
	uint32_t
		*first; /* of each request: the number of its first register; one more at the end */
	uint32_t *again; /* registers that were asked for with one that the node has not */
	uint32_t again_cnt;
};

static void make_read(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct reading *r = ctx;
	const struct ctl_register *reg = &r->read->reg[r->first[i]];
	uint16_t address[2] = {reg[0].address, 0};
	unsigned cnt = r->first[i + 1] - r->first[i];

	if (cnt > 1)
		address[1] = reg[1].address;
	ctl_make_registers(r->s, mad, reg->node, address, NULL, cnt);
}

/* MGR-READ-01. Of a response that is in *got: the register that the node has not, of [0, cnt); `cnt`: the response says something else. */
static unsigned missing(const uint8_t *mad, const struct ur_registers *got, unsigned cnt)
{
	uint16_t status = ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION;

	return status == UR_MAD_STATUS_VALUE && got->error == UR_VENDOR_ERROR_ADDRESS &&
			       got->entry < cnt
		       ? got->entry
		       : cnt;
}

static void take_absent(struct reading *r, uint32_t number)
{
	if (r->read->absent)
		r->read->absent(r->read->ctx, number);
	r->read->take(r->read->ctx, number, false, 0);
}

static void take_read(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct reading *r = ctx;
	struct ur_registers got = {0};
	bool ok = mad && !ctl_registers_error(mad, &got);
	uint32_t first = r->first[i];
	unsigned cnt = r->first[i + 1] - first, none = ok || !mad ? cnt : missing(mad, &got, cnt);

	for (unsigned k = 0; k < cnt; k++) {
		if (k == none)
			take_absent(r, first + k);
		else if (none < cnt)
			r->again[r->again_cnt++] = first + k;
		else
			r->read->take(r->read->ctx, first + k, ok, k ? got.value1 : got.value0);
	}
}

static void make_again(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct reading *r = ctx;
	const struct ctl_register *reg = &r->read->reg[r->again[i]];

	ctl_make_registers(r->s, mad, reg->node, &reg->address, NULL, 1);
}

static void take_again(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct reading *r = ctx;
	struct ur_registers got = {0};
	bool ok = mad && !ctl_registers_error(mad, &got);

	if (mad && !ok && !missing(mad, &got, 1))
		take_absent(r, r->again[i]);
	else
		r->read->take(r->read->ctx, r->again[i], ok, got.value0);
}

bool ctl_read_registers(struct ctl_session *s, const struct ctl_read *read)
{
	struct reading r = {.s = s,
			    .read = read,
			    .first = calloc((size_t)read->cnt + 1, sizeof(*r.first)),
			    .again = calloc((size_t)read->cnt + 1, sizeof(*r.again))};
	struct ctl_batch batch = {0, make_read, take_read, &r};

	if (!r.first || !r.again) {
		free(r.first);
		free(r.again);
		return ctl_complain("there is no memory for %u registers", read->cnt);
	}
	for (uint32_t i = 0; i < read->cnt; batch.cnt++) {
		r.first[batch.cnt] = i++;
		if (i < read->cnt && read->reg[i].node == read->reg[i - 1].node)
			i++;
	}
	r.first[batch.cnt] = read->cnt;
	ctl_ask(s, &batch);
	batch = (struct ctl_batch){r.again_cnt, make_again, take_again, &r};
	ctl_ask(s, &batch);
	free(r.first);
	free(r.again);
	return true;
}

/* ---- names ---- */

static bool is_name(const char *text, size_t len, enum ur_register_id id)
{
	return strlen(ur_registers[id].name) == len &&
	       !strncasecmp(text, ur_registers[id].name, len);
}

bool ctl_find_register(const char *text, uint16_t *address)
{
	size_t len = strcspn(text, ":");
	uint64_t number, port = 0;

	if (ctl_parse_number(text, UINT16_MAX, &number)) {
		*address = (uint16_t)number;
		return true;
	}
	for (unsigned i = 0; i < UR_REGISTER_CNT; i++) {
		if (!is_name(text, len, (enum ur_register_id)i))
			continue;
		if (ur_registers[i].scope == UR_REG_PORT
			    ? text[len] != ':' || !ctl_parse_number(text + len + 1, 254, &port)
			    : text[len] == ':')
			return ctl_complain(
				"'%s': %s", text,
				ur_registers[i].scope == UR_REG_PORT
					? "it is a register of a port: add ':' and the port's number"
					: "it is a register of the node, and has no port");
		*address = ur_register_address((enum ur_register_id)i, (uint8_t)port);
		return true;
	}
	return ctl_complain(
		"'%s' is neither a register's address nor its name; 'uroce-ctl reg list' has them",
		text);
}

static void in_lower_case(const char *name, char *text, size_t bytes)
{
	size_t i;

	for (i = 0; name[i] && i + 1 < bytes; i++)
		text[i] = (char)tolower((unsigned char)name[i]);
	text[i] = '\0';
}

void ctl_register_name(uint16_t address, char *text, size_t bytes)
{
	uint8_t port = 0;
	enum ur_register_id id = ur_register_at(address, &port);
	char name[32];

	if (id == UR_REGISTER_CNT) {
		snprintf(text, bytes, "%#x", address);
		return;
	}
	in_lower_case(ur_registers[id].name, name, sizeof(name));
	if (ur_registers[id].scope == UR_REG_PORT)
		snprintf(text, bytes, "%s:%u", name, port);
	else
		snprintf(text, bytes, "%s", name);
}

/* ---- reg ---- */

struct shown {
	struct ctl_session *s;
	const struct ctl_register *reg;
	uint64_t value[CTL_WORDS_MAX];
	bool known[CTL_WORDS_MAX];
};

static void take_value(void *ctx, uint32_t i, bool known, uint64_t value)
{
	struct shown *w = ctx;

	w->known[i] = known;
	w->value[i] = value;
}

/* ---- how long a read takes ---- */

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void show_times(struct ctl_session *s, uint64_t *took_ns, uint64_t cnt, json_t *o)
{
	uint64_t median, p99;

	qsort(took_ns, cnt, sizeof(*took_ns), by_time);
	median = took_ns[cnt / 2];
	p99 = took_ns[cnt - 1 - cnt / 100];
	if (ctl_prints_text(s->o))
		printf("%" PRIu64 " requests, one after the other: median %.3f us, p99 %.3f us\n",
		       cnt, (double)median / 1000, (double)p99 / 1000);
	json_object_set_new(o, "requests",
			    json_pack("{s:I,s:I,s:I}", "count", (json_int_t)cnt, "median_ns",
				      (json_int_t)median, "p99_ns", (json_int_t)p99));
}

/* The same request --count times, each when the last one was answered. Values are those of the last one. */
static bool read_often(struct ctl_session *s, const struct ctl_read *read, json_t *o)
{
	const struct ctl_join_ops *ops = s->join->ops;
	uint64_t cnt = s->o->count, *took_ns = calloc(cnt, sizeof(*took_ns));
	const struct shown *w = read->ctx;
	bool ok = took_ns || ctl_complain("there is no memory for %" PRIu64 " times", cnt);

	for (uint64_t i = 0; ok && i < cnt; i++) {
		uint64_t began = ops->now_ns(s->join);

		ok = ctl_read_registers(s, read);
		took_ns[i] = ops->now_ns(s->join) - began;
		if (ok && !w->known[0])
			ok = ctl_complain("read %" PRIu64 " of %" PRIu64
					  " was refused, or not answered",
					  i + 1, cnt);
	}
	if (ok)
		show_times(s, took_ns, cnt, o);
	free(took_ns);
	return ok;
}

/* ---- reads ---- */

static bool read_some(struct ctl_session *s, uint32_t node, const uint16_t *address, uint32_t cnt)
{
	struct ctl_register reg[CTL_WORDS_MAX];
	struct shown w = {.s = s, .reg = reg};
	struct ctl_read read = {.reg = reg, .cnt = cnt, .take = take_value, .ctx = &w};
	json_t *o = json_object();
	char name[48];
	bool ok = true;

	for (uint32_t i = 0; i < cnt; i++)
		reg[i] = (struct ctl_register){node, address[i]};
	if (s->o->count ? !read_often(s, &read, o) : !ctl_read_registers(s, &read)) {
		json_decref(o);
		return false;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		ctl_register_name(address[i], name, sizeof(name));
		if (!w.known[i]) {
			ok = ctl_complain(
				"%s was not read: the node has no such register, or does not answer",
				name);
			continue;
		}
		if (ctl_prints_text(s->o))
			printf("%-24s %#llx (%llu)\n", name, (unsigned long long)w.value[i],
			       (unsigned long long)w.value[i]);
		json_object_set_new(o, name, ctl_json_hex(w.value[i]));
	}
	return ctl_json_write(s->o, o) && ok;
}

/* ---- writes ---- */

struct written {
	struct ctl_session *s;
	uint32_t node;
	uint16_t address;
	uint64_t value;
	bool ok;
};

static void make_write(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct written *w = ctx;

	ctl_make_registers(w->s, mad, w->node, &w->address, &w->value, 1);
}

static void take_write(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct written *w = ctx;
	struct ur_registers r;
	const char *error = mad ? ctl_registers_error(mad, &r) : "no answer";
	char name[48];

	w->ok = !error;
	ctl_register_name(w->address, name, sizeof(name));
	if (error)
		ctl_complain("%s was not written: %s%s", name, error,
			     mad && r.error == UR_VENDOR_ERROR_KEY
				     ? "; give the node's key with --m-key"
				     : "");
}

static bool write_one(struct ctl_session *s, uint32_t node, uint16_t address, const char *text)
{
	struct written w = {.s = s, .node = node, .address = address};
	struct ctl_batch batch = {1, make_write, take_write, &w};

	if (!ctl_parse_number(text, UINT64_MAX, &w.value))
		return ctl_complain("'%s' is not a number of 64 bits", text);
	ctl_ask(s, &batch);
	return w.ok;
}

static bool list(void)
{
	static const char *const access[] = {
		[UR_REG_RO] = "ro", [UR_REG_RW] = "rw", [UR_REG_W1C] = "w1c"};
	char name[32];

	for (unsigned i = 0; i < UR_REGISTER_CNT; i++) {
		const struct ur_register *r = &ur_registers[i];

		in_lower_case(r->name, name, sizeof(name));
		printf("%#05x  %-3s  %s%-*s %s\n", ur_register_address((enum ur_register_id)i, 1),
		       access[r->access], name, (int)(22 - strlen(name)),
		       r->scope == UR_REG_PORT ? ":1" : "", r->meaning);
	}
	return true;
}

bool ctl_cmd_reg(struct ctl_session *s)
{
	const char *const *w = s->o->words;
	uint16_t address[CTL_WORDS_MAX];
	uint32_t node, cnt = 0;
	char err[256];

	if (!strcmp(w[0], "list"))
		return list();
	if (!ctl_find_node(&s->topo, w[1], &node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (!strcmp(w[0], "write"))
		return ctl_find_register(w[2], &address[0]) && write_one(s, node, address[0], w[3]);
	for (unsigned i = 2; i < s->o->words_cnt; i++)
		if (!ctl_find_register(w[i], &address[cnt++]))
			return false;
	return read_some(s, node, address, cnt);
}
