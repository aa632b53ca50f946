/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <string.h>

/* splitmix64: good, and fast enough even if every instruction is emulated. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t key_of(const struct spec *spec, bool from_uroce, unsigned round)
{
	return mix(((uint64_t)spec->seed << 33) ^ ((uint64_t)round << 1) ^ (from_uroce ? 1u : 0u));
}

static size_t slot_bytes(const struct spec *spec, unsigned len)
{
	return len + (spec->sge - 1) * PIECE_GAP + GRH_BYTES + 64;
}

size_t plan_region_bytes(const struct spec *spec)
{
	/* 64 for the words of atomics, 64 for unaligned offsets. */
	return 128 + spec->depth * (slot_bytes(spec, spec->size_max < 8 ? 8 : spec->size_max) + 64);
}

void plan_piece(unsigned len, unsigned n, unsigned i, unsigned *offset, unsigned *bytes)
{
	unsigned from = (unsigned)((uint64_t)len * i / n),
		 to = (unsigned)((uint64_t)len * (i + 1) / n);

	*offset = from + i * PIECE_GAP;
	*bytes = to - from;
}

/* Every second compare uses the value that the word will hold, and succeeds. */
static void plan_atomic(struct message *m, uint64_t *words, uint64_t key)
{
	unsigned w = (unsigned)(key & 7);

	m->len = 8;
	m->remote = 8 * w;
	m->operand = mix(key);
	m->compare = m->op == OP_CAS ? words[w] ^ (key >> 8 & 1) : m->operand;
	if (m->op == OP_FADD)
		words[w] += m->operand;
	else if (m->compare == words[w])
		words[w] = m->operand;
}

static void plan_message(const struct spec *spec, struct plan *plan, unsigned index, uint64_t key,
			 uint64_t *words, size_t cursor[REGIONS])
{
	struct message *m = &plan->m[plan->cnt];
	const struct message *before = plan->cnt > 0 ? m - 1 : NULL;
	unsigned turn = index / spec->op_cnt;
	size_t odd = mix(key) % 61;

	memset(m, 0, sizeof(*m));
	m->op = (enum op)spec->op[index % spec->op_cnt];
	if (m->op == OP_RELAY && (before == NULL || before->op != OP_READ))
		m->op = OP_SEND;
	m->len = spec->size[turn % spec->size_cnt];
	m->imm = (uint32_t)key ^ index;
	m->local = cursor[REGION_LOCAL] + odd;
	m->local_pieces = m->receive_pieces = spec->sge;
	if (op_is_atomic(m->op)) {
		plan_atomic(m, words, key);
		m->local = cursor[REGION_LOCAL];
		m->local_pieces = 1;
	} else if (m->op == OP_RELAY) {
		m->fenced = true;
		m->len = before->len;
		m->local = before->local;
	}
	if (m->op == OP_READ || m->op == OP_WRITE || m->op == OP_WRITE_IMM)
		m->remote = cursor[REGION_REMOTE] + odd;
	m->signaled = index % spec->signal == 0;
	m->in_line = spec->inline_data != 0 && m->len <= 64 && m->op != OP_READ &&
		     !op_is_atomic(m->op) && m->op != OP_RELAY;
	if (op_takes_receive(m->op)) {
		m->receive = cursor[REGION_RECEIVE] + odd;
		plan->receives++;
	}
	for (unsigned r = 0; r < REGIONS; r++)
		cursor[r] += (slot_bytes(spec, spec->lossy != 0 ? spec->size_max : m->len) + 64) &
			     ~(size_t)7;
	plan->bytes += m->len;
	plan->cnt++;
}

void plan_round(const struct spec *spec, bool from_uroce, unsigned round, struct plan *plan)
{
	uint64_t key = key_of(spec, from_uroce, round), words[8];
	size_t cursor[REGIONS] = {0, 64, 0};
	unsigned first = round * spec->depth, last = first + spec->depth;

	if (spec->megabytes == 0 && last > spec->count)
		last = spec->count;
	plan->cnt = plan->receives = 0;
	plan->bytes = 0;
	plan_fill(spec, from_uroce, round, REGION_REMOTE, (uint8_t *)words, sizeof(words));
	for (unsigned i = first; i < last; i++)
		plan_message(spec, plan, i, mix(key ^ i), words, cursor);
	if (plan->cnt == 0)
		return;
	plan->m[plan->cnt - 1].signaled = true;
	for (unsigned i = plan->cnt; spec->solicited != 0 && round % 2 == 1 && i-- > 0;)
		if (op_takes_receive(plan->m[i].op)) {
			plan->m[i].solicited = true;
			break;
		}
}

void plan_fill(const struct spec *spec, bool from_uroce, unsigned round, enum region region,
	       uint8_t *mem, size_t bytes)
{
	uint64_t word = mix(key_of(spec, from_uroce, round) ^ ((uint64_t)region << 56));
	size_t i;

	for (i = 0; i + 8 <= bytes;
	     i += 8, word = word * 6364136223846793005ull + 1442695040888963407ull)
		memcpy(mem + i, &word, 8);
	memcpy(mem + i, &word, bytes - i);
}

/* Copies a message in pieces to another one in pieces. */
static void copy(uint8_t *to, unsigned to_pieces, const uint8_t *from, unsigned from_pieces,
		 unsigned len)
{
	unsigned i = 0, j = 0, to_off, to_left, from_off, from_left, left, n;

	plan_piece(len, to_pieces, 0, &to_off, &to_left);
	plan_piece(len, from_pieces, 0, &from_off, &from_left);
	for (left = len; left > 0; left -= n) {
		while (to_left == 0)
			plan_piece(len, to_pieces, ++i, &to_off, &to_left);
		while (from_left == 0)
			plan_piece(len, from_pieces, ++j, &from_off, &from_left);
		n = to_left < from_left ? to_left : from_left;
		memcpy(to + to_off, from + from_off, n);
		to_off += n;
		to_left -= n;
		from_off += n;
		from_left -= n;
	}
}

static void apply_atomic(const struct message *m, uint8_t *const mem[REGIONS])
{
	uint64_t word;

	memcpy(&word, mem[REGION_REMOTE] + m->remote, 8);
	memcpy(mem[REGION_LOCAL] + m->local, &word, 8);
	if (m->op == OP_FADD)
		word += m->operand;
	else if (word == m->compare)
		word = m->operand;
	memcpy(mem[REGION_REMOTE] + m->remote, &word, 8);
}

void plan_apply(const struct spec *spec, const struct plan *plan, uint8_t *const mem[REGIONS])
{
	size_t front = spec->type == IBV_QPT_UD ? GRH_BYTES : 0;

	for (unsigned i = 0; i < plan->cnt; i++) {
		const struct message *m = &plan->m[i];
		uint8_t *local = mem[REGION_LOCAL] + m->local;

		switch (m->op) {
		case OP_SEND:
		case OP_SEND_IMM:
		case OP_RELAY:
			copy(mem[REGION_RECEIVE] + m->receive + front, m->receive_pieces, local,
			     m->local_pieces, m->len);
			break;
		case OP_WRITE:
		case OP_WRITE_IMM:
			copy(mem[REGION_REMOTE] + m->remote, 1, local, m->local_pieces, m->len);
			break;
		case OP_READ:
			copy(local, m->local_pieces, mem[REGION_REMOTE] + m->remote, 1, m->len);
			break;
		case OP_CAS:
		case OP_FADD:
			apply_atomic(m, mem);
			break;
		}
	}
}
