/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CONFORMANCE_DUT_LINE_H
#define UR_CONFORMANCE_DUT_LINE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* One command, "word key=value key=value", and the text of its answer. */
struct dut_line {
	char *word;
	char *key[32], *value[32];
	unsigned cnt;
	char *reply; /* grows; freed by dut_line_free() */
	size_t reply_len;
};

/* Parses the line in place. */
void dut_line_parse(struct dut_line *l, char *text);
void dut_line_free(struct dut_line *l);

/* The value of a key. Without the key: NULL, or `otherwise` for numbers. */
const char *dut_line_text(const struct dut_line *l, const char *key);
uint64_t dut_line_number(const struct dut_line *l, const char *key, uint64_t otherwise);

void dut_line_say(struct dut_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends `n` bytes in hexadecimal to the answer. */
void dut_line_say_bytes(struct dut_line *l, const uint8_t *p, size_t n);

#endif
