/* SPDX-License-Identifier: BSD-3-Clause */
#include "dut_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *grow(struct dut_line *l, size_t n)
{
	char *p = realloc(l->reply, l->reply_len + n + 1);

	if (!p)
		abort();
	l->reply = p;
	return p + l->reply_len;
}

void dut_line_parse(struct dut_line *l, char *text)
{
	char *save = NULL, *word;

	memset(l, 0, sizeof(*l));
	*grow(l, 0) = '\0';
	l->word = strtok_r(text, " ", &save);
	while ((word = strtok_r(NULL, " ", &save)) && l->cnt < 32) {
		char *eq = strchr(word, '=');

		if (!eq)
			continue;
		*eq = '\0';
		l->key[l->cnt] = word;
		l->value[l->cnt++] = eq + 1;
	}
}

void dut_line_free(struct dut_line *l)
{
	free(l->reply);
	l->reply = NULL;
}

const char *dut_line_text(const struct dut_line *l, const char *key)
{
	for (unsigned i = 0; i < l->cnt; i++)
		if (strcmp(l->key[i], key) == 0)
			return l->value[i];
	return NULL;
}

uint64_t dut_line_number(const struct dut_line *l, const char *key, uint64_t otherwise)
{
	const char *text = dut_line_text(l, key);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

void dut_line_say(struct dut_line *l, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		abort();
	memcpy(grow(l, (size_t)n), text, (size_t)n + 1);
	l->reply_len += (size_t)n;
}

void dut_line_say_bytes(struct dut_line *l, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *out = grow(l, 2 * n);

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[p[i] >> 4];
		*out++ = digits[p[i] & 15];
	}
	*out = '\0';
	l->reply_len += 2 * n;
}
