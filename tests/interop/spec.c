/* SPDX-License-Identifier: BSD-3-Clause */
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_words[] = {
#define X(NAME, word) word,
	INTEROP_OPS(X)
#undef X
};

enum { OP_CNT = sizeof(op_words) / sizeof(op_words[0]) };

const char *op_word(enum op op)
{
	return op_words[op];
}

bool op_takes_receive(enum op op)
{
	return op == OP_SEND || op == OP_SEND_IMM || op == OP_WRITE_IMM || op == OP_RELAY;
}

bool op_is_atomic(enum op op)
{
	return op == OP_CAS || op == OP_FADD;
}

bool is_us(const char *which)
{
	return strcmp(which, OUR_NAME) == 0 || strcmp(which, "both") == 0;
}

bool is_peer(const char *which)
{
	return strcmp(which, PEER_NAME) == 0 || strcmp(which, "both") == 0;
}

static bool copy_text(char *dst, size_t cap, const char *text)
{
	return (size_t)snprintf(dst, cap, "%s", text) < cap;
}

static bool set_key(struct spec *spec, const char *key, const char *value)
{
	char *end;

#define W(k, def, meaning)                                                                         \
	if (strcmp(key, #k) == 0)                                                                  \
		return copy_text(spec->k, sizeof(spec->k), value);
#define L(k, def, meaning) W(k, def, meaning)
#define N(k, def, meaning)                                                                         \
	if (strcmp(key, #k) == 0) {                                                                \
		spec->k = (unsigned)strtoul(value, &end, 0);                                       \
		return end != value && *end == '\0';                                               \
	}
	INTEROP_SPEC(W, L, N)
#undef W
#undef L
#undef N
	return false;
}

static int op_of(const char *word)
{
	for (unsigned i = 0; i < OP_CNT; i++)
		if (strcmp(word, op_words[i]) == 0)
			return (int)i;
	return -1;
}

/* Expands the lists after all keys have been read. */
static bool expand(struct spec *spec)
{
	char text[sizeof(spec->ops)], *save, *word;
	int op;

	memcpy(text, spec->ops, sizeof(text));
	for (word = strtok_r(text, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		op = op_of(word);
		if (op < 0 || spec->op_cnt == 16)
			return false;
		spec->op[spec->op_cnt++] = (unsigned)op;
	}
	memcpy(text, spec->sizes, sizeof(text));
	for (word = strtok_r(text, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		if (spec->size_cnt == 48)
			return false;
		spec->size[spec->size_cnt++] = (unsigned)strtoul(word, NULL, 0);
		if (spec->size_max < spec->size[spec->size_cnt - 1])
			spec->size_max = spec->size[spec->size_cnt - 1];
	}
	spec->type = strcmp(spec->service, "uc") == 0	? IBV_QPT_UC
		     : strcmp(spec->service, "ud") == 0 ? IBV_QPT_UD
							: IBV_QPT_RC;
	if (spec->count == 0)
		spec->count = spec->op_cnt * spec->size_cnt;
	return spec->op_cnt > 0 && spec->size_cnt > 0 && spec->sge >= 1 && spec->sge <= 8 &&
	       spec->depth >= 1 && spec->depth <= 256 && spec->signal >= 1;
}

bool spec_parse(struct spec *spec, const char *line, char *err, size_t err_bytes)
{
	char text[1024], *save, *word, *value;

	memset(spec, 0, sizeof(*spec));
#define W(key, def, meaning) copy_text(spec->key, sizeof(spec->key), def);
#define L(key, def, meaning) W(key, def, meaning)
#define N(key, def, meaning) spec->key = def;
	INTEROP_SPEC(W, L, N)
#undef W
#undef L
#undef N
	if (!copy_text(text, sizeof(text), line) || (word = strtok_r(text, " \n", &save)) == NULL ||
	    !copy_text(spec->name, sizeof(spec->name), word)) {
		snprintf(err, err_bytes, "no name, or too long a line");
		return false;
	}
	while ((word = strtok_r(NULL, " \n", &save)) != NULL) {
		value = strchr(word, '=');
		if (value != NULL)
			*value++ = '\0';
		if (value == NULL || !set_key(spec, word, value)) {
			snprintf(err, err_bytes, "'%s' is no key, or has no such value", word);
			return false;
		}
	}
	if (!expand(spec)) {
		snprintf(err, err_bytes, "ops, sizes, sge, depth or signal cannot be");
		return false;
	}
	return true;
}
