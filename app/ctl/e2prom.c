/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/build.h"
#include "names.h"
#include "output.h"
#include "registers.h"

/* The E2PROM of a node. It takes one request at a time; another one meanwhile is told that it is busy. */

#define READ_US	  150 /* a byte */
#define WRITE_US  3000
#define PER_LINE  16
#define PER_SHOW  512 /* requests between two reports of progress */
#define LETTERS	  4   /* URN1: a list of registers' values follows (docs/design/management.md) */
#define RECORD	  10
#define ERASED	  0xff
#define NO_RECORD 0xffff

static const uint8_t letters[LETTERS] = {'U', 'R', 'N', '1'};

struct chip {
	struct ctl_session *s;
	uint32_t node;
	uint8_t byte[UR_EEPROM_BYTES]; /* what was read, or is to be written */
	/* The bytes of the job under way, UR_EEPROM_MAX a request. */
	const uint16_t *at;
	uint32_t cnt, done;
	bool writes, stop;
};

/* ---- requests ---- */

static unsigned fill(const struct chip *c, uint32_t i, struct ur_eeprom *e)
{
	uint32_t first = i * UR_EEPROM_MAX;

	*e = (struct ur_eeprom){0};
	while (e->count < UR_EEPROM_MAX && first + e->count < c->cnt) {
		e->address[e->count] = c->at[first + e->count];
		e->value[e->count] = c->writes ? c->byte[c->at[first + e->count]] : 0;
		e->count++;
	}
	return e->count;
}

static void make(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct chip *c = ctx;
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&c->s->topo, c->node, path);
	struct ur_eeprom e;

	(void)fill(c, i, &e);
	ur_mgr_directed(mad, c->writes ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET, UR_SMP_EEPROM, 0,
			path, hops);
	ur_put_eeprom(mad->bytes + UR_SMP_DATA, &e);
}

static const char *error_of(const uint8_t *mad, struct ur_eeprom *e)
{
	uint16_t status = ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION;

	ur_get_eeprom(mad + UR_SMP_DATA, e);
	if (!status)
		return NULL;
	return status == UR_MAD_STATUS_VALUE && e->error ? ur_vendor_error_text(e->error)
							 : ur_mad_status_text(status);
}

static void take(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct chip *c = ctx;
	struct ur_eeprom e, asked;
	const char *error = mad ? error_of(mad, &e) : "no answer; a wrong key has none";
	unsigned cnt = fill(c, i, &asked);

	if (error) {
		c->stop = true;
		ctl_complain("the E2PROM was not %s: %s%s", c->writes ? "written" : "read", error,
			     mad && e.error == UR_VENDOR_ERROR_KEY
				     ? "; give the node's key with --m-key-file"
				     : "");
		return;
	}
	for (unsigned k = 0; k < cnt && !c->writes; k++)
		c->byte[asked.address[k]] = e.value[k];
	c->done += cnt;
	if (i % PER_SHOW == PER_SHOW - 1)
		ctl_progress(c->writes ? "writing" : "reading", c->done, c->cnt, "bytes",
			     (uint64_t)(c->cnt - c->done) * (c->writes ? WRITE_US : READ_US) /
				     1000000);
}

/* Reads or writes bytes at these addresses, in order. */
static bool run(struct chip *c, const uint16_t *at, uint32_t cnt, bool writes)
{
	struct ctl_batch batch = {.cnt = (cnt + UR_EEPROM_MAX - 1) / UR_EEPROM_MAX,
				  .make = make,
				  .take = take,
				  .ctx = c,
				  .most = 1,
				  .stop = &c->stop};

	c->at = at;
	c->cnt = cnt;
	c->done = 0;
	c->writes = writes;
	ctl_ask(c->s, &batch);
	ctl_progress_end();
	return !c->stop;
}

static bool read_range(struct chip *c, uint32_t from, uint32_t cnt)
{
	static uint16_t at[UR_EEPROM_BYTES];

	for (uint32_t i = 0; i < cnt; i++)
		at[i] = (uint16_t)(from + i);
	return run(c, at, cnt, false);
}

/* Writes these bytes of `image`, and reads them back. */
static bool write_some(struct chip *c, const uint8_t *image, const uint16_t *at, uint32_t cnt)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < cnt; i++)
		c->byte[at[i]] = image[at[i]];
	if (!run(c, at, cnt, true) || !run(c, at, cnt, false))
		return false;
	for (uint32_t i = 0; i < cnt; i++)
		wrong += c->byte[at[i]] != image[at[i]];
	return !wrong || ctl_complain("%u of %u bytes read back are not those written", wrong, cnt);
}

/*
 * Makes the first `cnt` bytes those of `image`, by writing those that differ. The letters that begin a list are cleared
 * first and written last, so that an interruption leaves no list, never half of one. Returns in *written how many
 * bytes were written.
 */
static bool write_image(struct chip *c, const uint8_t *image, uint32_t cnt, uint32_t *written)
{
	static uint16_t at[UR_EEPROM_BYTES];
	static const uint16_t first[LETTERS] = {0, 1, 2, 3};
	const uint8_t erased[1] = {ERASED};
	uint32_t body = 0, head = cnt < LETTERS ? cnt : LETTERS;
	bool had_list;

	*written = 0;
	if (!read_range(c, 0, cnt))
		return false;
	had_list = cnt >= LETTERS && !memcmp(c->byte, letters, LETTERS);
	for (uint32_t i = head; i < cnt; i++)
		if (c->byte[i] != image[i])
			at[body++] = (uint16_t)i;
	if (!body && !memcmp(c->byte, image, head))
		return true;
	if (had_list && body && !write_some(c, erased, first, 1))
		return false;
	if (!write_some(c, image, at, body) || !write_some(c, image, first, head))
		return false;
	*written = body + head;
	return true;
}

/* ---- words ---- */

static bool find_address(const char *text, uint64_t most, uint64_t *value)
{
	return ctl_parse_number(text, most, value) ||
	       ctl_complain("'%s' is not a number from 0 to %llu", text, (unsigned long long)most);
}

static bool print_range(const struct chip *c, uint32_t from, uint32_t cnt)
{
	json_t *bytes = json_array();

	for (uint32_t i = 0; i < cnt; i++) {
		json_array_append_new(bytes, json_integer(c->byte[from + i]));
		if (!ctl_prints_text(c->s->o))
			continue;
		if (i % PER_LINE == 0)
			printf("%s0x%04x ", i ? "\n" : "", from + i);
		printf(" %02x", c->byte[from + i]);
	}
	if (ctl_prints_text(c->s->o))
		putchar('\n');
	return ctl_json_write(c->s->o,
			      json_pack("{s:i,s:o}", "address", (int)from, "bytes", bytes));
}

static bool cmd_read(struct chip *c)
{
	const struct ctl_options *o = c->s->o;
	uint64_t from, cnt = 1;

	if (!find_address(o->words[2], UR_EEPROM_BYTES - 1, &from) ||
	    (o->words_cnt > 3 && !find_address(o->words[3], UR_EEPROM_BYTES - from, &cnt)))
		return false;
	return read_range(c, (uint32_t)from, (uint32_t)cnt) &&
	       print_range(c, (uint32_t)from, (uint32_t)cnt);
}

static bool report(struct chip *c, uint32_t written, uint32_t cnt)
{
	if (ctl_prints_text(c->s->o))
		printf("%u bytes written and read back, %u compared\n", written, cnt);
	return ctl_json_write(
		c->s->o, json_pack("{s:i,s:i}", "written", (int)written, "compared", (int)cnt));
}

static bool cmd_write(struct chip *c)
{
	static uint8_t image[UR_EEPROM_BYTES];
	const struct ctl_options *o = c->s->o;
	uint16_t at[CTL_WORDS_MAX];
	uint32_t cnt = o->words_cnt - 3;
	uint64_t from, value;

	if (!find_address(o->words[2], UR_EEPROM_BYTES - cnt, &from))
		return false;
	for (uint32_t i = 0; i < cnt; i++) {
		if (!find_address(o->words[3 + i], UINT8_MAX, &value))
			return false;
		at[i] = (uint16_t)(from + i);
		image[at[i]] = (uint8_t)value;
	}
	return write_some(c, image, at, cnt) && report(c, cnt, cnt);
}

static bool cmd_save(struct chip *c)
{
	const char *file = c->s->o->words[2];
	FILE *out;
	bool ok;

	/* The file is opened when everything was read: what it had stays if that fails. */
	if (!read_range(c, 0, UR_EEPROM_BYTES))
		return false;
	out = ctl_output_open(file);
	if (!out)
		return false;
	ok = fwrite(c->byte, 1, UR_EEPROM_BYTES, out) == UR_EEPROM_BYTES;
	if (!ctl_output_close(out, file) || !ok)
		return false;
	if (ctl_prints_text(c->s->o) && out != stdout)
		printf("%d bytes read\n", UR_EEPROM_BYTES);
	return ctl_json_write(c->s->o, json_pack("{s:i}", "read", UR_EEPROM_BYTES));
}

static bool cmd_load(struct chip *c)
{
	static uint8_t image[UR_EEPROM_BYTES + 1];
	const char *file = c->s->o->words[2];
	FILE *in = fopen(file, "re");
	uint32_t written;
	size_t cnt;

	if (!in)
		return ctl_complain("%s cannot be read: %s", file, strerror(errno));
	cnt = fread(image, 1, sizeof(image), in);
	if (ferror(in)) {
		fclose(in);
		return ctl_complain("%s cannot be read: %s", file, strerror(errno));
	}
	fclose(in);
	if (!cnt || cnt > UR_EEPROM_BYTES)
		return ctl_complain("%s has %s; an E2PROM has %d", file,
				    cnt ? "more bytes" : "no bytes", UR_EEPROM_BYTES);
	return write_image(c, image, (uint32_t)cnt, &written) && report(c, written, (uint32_t)cnt);
}

/* ---- the list of registers' values ---- */

static bool show_defaults(struct chip *c)
{
	json_t *list = json_array();
	char name[48];

	if (!read_range(c, 0, LETTERS))
		return false;
	if (memcmp(c->byte, letters, LETTERS) != 0) {
		if (ctl_prints_text(c->s->o))
			puts("no list");
		return ctl_json_write(c->s->o, json_pack("{s:o}", "defaults", list));
	}
	for (uint32_t at = LETTERS; at + RECORD <= UR_EEPROM_BYTES; at += RECORD) {
		uint64_t value;

		if (!read_range(c, at, RECORD)) {
			json_decref(list);
			return false;
		}
		if (ur_load16(c->byte + at) == NO_RECORD)
			break;
		ctl_register_name(ur_load16(c->byte + at), name, sizeof(name));
		value = ur_load64(c->byte + at + 2);
		if (ctl_prints_text(c->s->o))
			printf("%-24s %#llx (%llu)\n", name, (unsigned long long)value,
			       (unsigned long long)value);
		json_array_append_new(list, json_pack("{s:s,s:o}", "register", name, "value",
						      ctl_json_hex(value)));
	}
	return ctl_json_write(c->s->o, json_pack("{s:o}", "defaults", list));
}

/* Whether the agent would take the record: it passes over what does not fit a register. */
static bool check_record(const char *text, uint16_t address, const char *value_text,
			 uint64_t *value)
{
	uint8_t port;
	enum ur_register_id id = ur_register_at(address, &port);

	if (id == UR_REGISTER_CNT || ur_registers[id].access != UR_REG_RW)
		return ctl_complain("%s is not a register that is written", text);
	if (!ctl_parse_number(value_text, UINT64_MAX, value) || *value > ur_registers[id].max)
		return ctl_complain("%s: '%s' is not a number from 0 to %llu", text, value_text,
				    (unsigned long long)ur_registers[id].max);
	return true;
}

static bool cmd_defaults(struct chip *c)
{
	static uint8_t image[LETTERS + RECORD * CTL_WORDS_MAX / 2 + 2];
	const char *const *w = c->s->o->words;
	uint32_t words = c->s->o->words_cnt - 2, at = LETTERS, written;

	if (!words)
		return show_defaults(c);
	memset(image, ERASED, sizeof(image));
	if (words == 1 && !strcmp(w[2], "none"))
		return write_image(c, image, LETTERS, &written) && report(c, written, LETTERS);
	if (words % 2)
		return ctl_complain("'%s' has no value: registers and values come in pairs",
				    w[words + 1]);
	memcpy(image, letters, LETTERS);
	for (uint32_t i = 0; i < words; i += 2, at += RECORD) {
		uint16_t address;
		uint64_t value;

		if (!ctl_find_register(w[2 + i], &address) ||
		    !check_record(w[2 + i], address, w[3 + i], &value))
			return false;
		ur_store16(image + at, address);
		ur_store64(image + at + 2, value);
	}
	at += 2; /* the end of the list */
	return write_image(c, image, at, &written) && report(c, written, at);
}

bool ctl_cmd_e2prom(struct ctl_session *s)
{
	static const struct {
		const char *word;
		bool (*run)(struct chip *c);
	} commands[] = {{"read", cmd_read},
			{"write", cmd_write},
			{"save", cmd_save},
			{"load", cmd_load},
			{"defaults", cmd_defaults}};
	static struct chip chip;
	char err[256];

	chip = (struct chip){.s = s};
	if (!ctl_find_node(&s->topo, s->o->words[1], &chip.node, err, sizeof(err)))
		return ctl_complain("%s", err);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].word, s->o->words[0]))
			return commands[i].run(&chip);
	return false;
}
