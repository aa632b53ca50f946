/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto.h"

#include <endian.h>
#include <string.h>

#include "op.h"

#define MAGIC 0x55505246u /* "UPRF" */

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static const uint8_t *get64(const uint8_t *p, uint64_t *v)
{
	memcpy(v, p, sizeof(*v));
	*v = be64toh(*v);
	return p + sizeof(*v);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static const uint8_t *get32(const uint8_t *p, uint32_t *v)
{
	memcpy(v, p, sizeof(*v));
	*v = be32toh(*v);
	return p + sizeof(*v);
}

/* The structs of the lists are arrays of uint64_t in the lists' order. */
static size_t encode(void *out, const void *record, size_t bytes)
{
	const uint8_t *from = record;
	uint8_t *to = out;
	uint64_t v;

	for (size_t at = 0; at < bytes; at += sizeof(v)) {
		memcpy(&v, from + at, sizeof(v));
		to = put64(to, v);
	}
	return bytes;
}

static bool decode(const void *in, size_t bytes, void *record, size_t record_bytes)
{
	const uint8_t *from = in;
	uint8_t *to = record;
	uint64_t v;

	if (bytes < record_bytes)
		return false;
	for (size_t at = 0; at < record_bytes; at += sizeof(v)) {
		from = get64(from, &v);
		memcpy(to + at, &v, sizeof(v));
	}
	return true;
}

#define PAIR(name)                                                                                 \
	size_t perf_##name##_encode(void *out, const struct perf_##name *r)                        \
	{                                                                                          \
		return encode(out, r, sizeof(*r));                                                 \
	}                                                                                          \
	bool perf_##name##_decode(const void *in, size_t bytes, struct perf_##name *r)             \
	{                                                                                          \
		return decode(in, bytes, r, sizeof(*r));                                           \
	}

PAIR(params)
PAIR(ready)
PAIR(pair)
PAIR(end)

#define RESULT_NUMBERS offsetof(struct perf_result, text)

size_t perf_result_encode(void *out, const struct perf_result *r)
{
	size_t n = encode(out, r, RESULT_NUMBERS);

	memcpy((uint8_t *)out + n, r->text, sizeof(r->text));
	return n + sizeof(r->text);
}

bool perf_result_decode(const void *in, size_t bytes, struct perf_result *r)
{
	if (bytes < RESULT_NUMBERS + sizeof(r->text) || !decode(in, bytes, r, RESULT_NUMBERS))
		return false;
	memcpy(r->text, (const uint8_t *)in + RESULT_NUMBERS, sizeof(r->text));
	r->text[sizeof(r->text) - 1] = '\0';
	return true;
}

size_t perf_header_encode(void *out, const struct perf_header *h)
{
	uint8_t *p = out;

	p = put32(p, MAGIC);
	p = put32(p, (uint32_t)PERF_PROTO_VERSION << 16 | (uint32_t)h->kind);
	p = put32(p, h->seq);
	put32(p, h->bytes);
	return PERF_HEADER_BYTES;
}

bool perf_header_decode(const void *in, size_t bytes, struct perf_header *h)
{
	const uint8_t *p = in;
	uint32_t magic, kind;

	if (bytes < PERF_HEADER_BYTES)
		return false;
	p = get32(p, &magic);
	p = get32(p, &kind);
	p = get32(p, &h->seq);
	get32(p, &h->bytes);
	h->kind = (enum perf_message)(kind & 0xffff);
	return magic == MAGIC && kind >> 16 == PERF_PROTO_VERSION && h->kind <= PERF_MSG_PING &&
	       h->bytes <= bytes - PERF_HEADER_BYTES;
}

static bool power_of_two(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

bool perf_params_valid(const struct perf_params *p)
{
	return p->op < PERF_OP_CNT && p->mode < PERF_MODE_CNT && p->type < PERF_TYPE_CNT &&
	       p->size <= 1ull << 31 && p->qps >= 1 && p->qps <= 65536 && p->depth >= 1 &&
	       p->depth <= 8192 && power_of_two(p->slots) && p->slots <= 65536 &&
	       (!p->verify || p->depth <= p->slots) && power_of_two(p->rq_depth) &&
	       p->rq_depth <= 16384 && p->sge >= 1 && p->sge <= 16 &&
	       power_of_two(p->signal_every) && p->signal_every <= 4096 &&
	       p->inline_bytes <= 1024 && p->timeout <= 31 && p->retry <= 7 && p->rnr_retry <= 7 &&
	       p->min_rnr_timer <= 31 && p->rd_atomic <= 128 && p->mtu <= 4096 &&
	       p->transport <= UROCE_QP_MODE_GBN + 1 && p->receives <= PERF_RECEIVES_MAX &&
	       p->receives <= p->qps * p->rq_depth && p->service_us <= 1000000 &&
	       (p->service_us == 0 || p->receives != 0) && p->buffers >= 1 &&
	       p->buffers <= p->qps && (p->buffers == p->qps || !p->verify);
}

size_t perf_hello_encode(void *out, const struct perf_hello *h)
{
	uint8_t *p = out;

	p = put32(p, MAGIC);
	p = put32(p, (uint32_t)PERF_PROTO_VERSION << 16 | (uint32_t)h->kind);
	p = put64(p, h->session);
	p = put32(p, h->idx);
	p = put32(p, h->gen);
	put32(p, (uint32_t)h->share.sl << 16 | (uint32_t)h->share.priority << 8 | h->share.weight);
	return PERF_HELLO_BYTES;
}

bool perf_hello_decode(const void *in, size_t bytes, struct perf_hello *h)
{
	const uint8_t *p = in;
	uint32_t magic, kind, share;

	if (bytes < PERF_HELLO_BYTES)
		return false;
	p = get32(p, &magic);
	p = get32(p, &kind);
	p = get64(p, &h->session);
	p = get32(p, &h->idx);
	p = get32(p, &h->gen);
	get32(p, &share);
	h->share =
		(struct perf_share){(uint8_t)(share >> 16), (uint8_t)(share >> 8), (uint8_t)share};
	h->kind = (enum perf_hello_kind)(kind & 0xffff);
	return magic == MAGIC && kind >> 16 == PERF_PROTO_VERSION &&
	       (h->kind == PERF_HELLO_CONTROL || h->kind == PERF_HELLO_DATA);
}
