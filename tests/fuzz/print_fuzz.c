/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "../../app/pcap/pcap_tool.h"
#include "fuzz.h"
#include "print/print.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/mad.h"

/*
 * The text that uroce-pcap prints for any frame, unchanged and with correct IPv4 lengths and
 * checksum. It must be one line of printable characters that fits into the buffer; if it is
 * truncated, it must be a prefix of the full text.
 */
struct text {
	char b[UR_PRINT_MAX + 1];
	size_t len;
};

/* Prints into `cap` bytes. The byte after them must not change. */
struct source {
	void (*print)(struct text *t, size_t cap, const struct source *s);
	const uint8_t *frame;
	size_t len;
	const struct ur_packet *p;
	bool icrc_ok;
};

static void print_packet(struct text *t, size_t cap, const struct source *s)
{
	t->len = ur_print_packet(t->b, cap, s->p, s->icrc_ok);
}

static void print_other(struct text *t, size_t cap, const struct source *s)
{
	other_print(t->b, cap, s->frame, s->len);
	t->len = cap ? strlen(t->b) : 0;
}

static void print_mad(struct text *t, size_t cap, const struct source *s)
{
	t->len = ur_print_mad(t->b, cap, s->frame, s->len);
}

static void print_aeth(struct text *t, size_t cap, const struct source *s)
{
	t->len = ur_print_aeth(t->b, cap, &s->p->aeth);
}

static void print_into(struct text *t, size_t cap, const struct source *s)
{
	memset(t->b, '~', sizeof(t->b));
	s->print(t, cap, s);
	FUZZ_CHECK(t->b[cap] == '~');
	FUZZ_CHECK(cap ? t->len < cap && strlen(t->b) == t->len : t->len == 0);
}

static void check(const struct source *s)
{
	static struct text full, cut;
	size_t caps[5] = {0, 1};

	print_into(&full, UR_PRINT_MAX, s);
	caps[2] = full.len / 2;
	caps[3] = full.len;
	caps[4] = full.len + 1;
	/* The buffer has room for the full text. */
	FUZZ_CHECK(full.len && full.len < UR_PRINT_MAX - 1);
	for (size_t i = 0; i < full.len; i++)
		FUZZ_CHECK(full.b[i] >= ' ' && full.b[i] < '\x7f');
	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		size_t cap = caps[i];

		print_into(&cut, cap, s);
		FUZZ_CHECK(cut.len == (cap > full.len ? full.len : cap ? cap - 1 : 0));
		FUZZ_CHECK(memcmp(cut.b, full.b, cut.len) == 0);
	}
}

static void check_frame(const uint8_t *frame, size_t len)
{
	struct ur_packet p = {.op = 0};
	struct source s = {.frame = frame, .len = len, .p = &p};
	enum ur_drop drop = ur_packet_decode(frame, len, &p);

	s.print = print_other;
	check(&s);
	if (drop != UR_DROP_NONE)
		return;
	s.print = print_packet;
	check(&s);
	s.icrc_ok = true;
	check(&s);
	s.print = print_aeth;
	check(&s);
	if (p.payload_len) {
		s = (struct source){print_mad, .frame = p.payload, .len = p.payload_len};
		check(&s);
	}
}

/* Corrects lengths and checksum of an IPv4 frame, so that the rest of it is decoded. */
static void mend(uint8_t *f, size_t len)
{
	uint32_t sum = 0;

	if (len < UR_ETH_BYTES + UR_IPV4_BYTES + UR_UDP_BYTES || f[12] != 0x08 || f[13] != 0)
		return;
	ur_store16(f + 16, (uint16_t)(len - UR_ETH_BYTES));
	ur_store16(f + 38, (uint16_t)(len - UR_ETH_BYTES - UR_IPV4_BYTES));
	ur_store16(f + 24, 0);
	for (unsigned i = 0; i < UR_IPV4_BYTES; i += 2)
		sum += ur_load16(f + UR_ETH_BYTES + i);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_store16(f + 24, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source mad = {print_mad,
			     .frame = data + (size > UR_MAD_BYTES ? size - UR_MAD_BYTES : 0),
			     .len = size > UR_MAD_BYTES ? UR_MAD_BYTES : size};
	uint8_t *copy;

	check_frame(data, size);
	check(&mad);
	copy = malloc(size ? size : 1);
	FUZZ_CHECK(copy);
	memcpy(copy, data, size);
	mend(copy, size);
	check_frame(copy, size);
	free(copy);
	return 0;
}
