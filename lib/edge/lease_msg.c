/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/lease_msg.h"

#include <ctype.h>
#include <string.h>

#include "wire/cursor.h"

#define MAGIC_REQUEST	   0x554c5131 /* "ULQ1": the last byte is the version */
#define MAGIC_REQUEST2	   0x554c5132
#define MAGIC_GRANT	   0x554c4731 /* "ULG1" */
#define MAGIC_REFUSAL	   0x554c5831 /* "ULX1" */
#define MAGIC_PORT	   0x554c5031 /* "ULP1" */
#define MAGIC_BOUND	   0x554c4231 /* "ULB1" */
#define MAGIC_RING_REQUEST 0x554c5731 /* "ULW1" */
#define MAGIC_DIRECT	   0x554c4431 /* "ULD1" */

static void put_text(struct ur_cursor *c, const char *text, size_t bytes)
{
	size_t len = strnlen(text, bytes - 1);
	uint8_t *at = ur_take(c, bytes);

	if (!at)
		return;
	memset(at, 0, bytes);
	memcpy(at, text, len);
}

/* Printable, ends within `bytes`, and nothing follows the end. */
static bool get_text(struct ur_cursor *c, char *text, size_t bytes)
{
	const uint8_t *at = ur_take(c, bytes);
	size_t len = at ? strnlen((const char *)at, bytes) : bytes;

	if (len == bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (i < len ? !isprint(at[i]) : at[i])
			return false;
	memcpy(text, at, bytes);
	return true;
}

bool ur_lease_is_secret(const char *text)
{
	for (unsigned i = 0; i < UR_LEASE_SECRET_CHARS; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return text[UR_LEASE_SECRET_CHARS] == '\0';
}

void ur_lease_put_request(const struct ur_lease_request *r, uint8_t *out)
{
	struct ur_cursor c = ur_cursor(out, UR_LEASE_REQUEST_BYTES);

	ur_put32(&c, r->direct ? MAGIC_REQUEST2 : MAGIC_REQUEST);
	ur_put32(&c, r->address);
	put_text(&c, r->secret, sizeof(r->secret));
	put_text(&c, r->program, sizeof(r->program));
}

/* UROCED-MSG-01 */
bool ur_lease_get_request(const uint8_t *msg, size_t len, struct ur_lease_request *r)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);
	struct ur_lease_request got;
	uint32_t magic = ur_get32(&c);

	if (len != UR_LEASE_REQUEST_BYTES || (magic != MAGIC_REQUEST && magic != MAGIC_REQUEST2))
		return false;
	got.direct = magic == MAGIC_REQUEST2;
	got.address = ur_get32(&c);
	if (!get_text(&c, got.secret, sizeof(got.secret)) ||
	    !get_text(&c, got.program, sizeof(got.program)) ||
	    (got.secret[0] && !ur_lease_is_secret(got.secret)))
		return false;
	*r = got;
	return true;
}

void ur_lease_put_grant(const struct ur_lease_grant *g, uint8_t *out)
{
	struct ur_cursor c = ur_cursor(out, UR_LEASE_GRANT_BYTES);

	ur_put32(&c, MAGIC_GRANT);
	ur_put32(&c, g->address);
	ur_put8(&c, g->prefix);
	ur_put8(&c, g->slots_shift);
	ur_put16(&c, g->mtu);
	memcpy(ur_take(&c, 6), g->mac, 6);
	ur_put16(&c, (uint16_t)(g->qpns.bits << 8 | g->qpns.value));
	ur_put32(&c, g->memif_id);
	put_text(&c, g->secret, sizeof(g->secret));
	put_text(&c, g->memif, sizeof(g->memif));
}

void ur_lease_put_refusal(enum ur_lease_refusal why, uint8_t *out)
{
	struct ur_cursor c = ur_cursor(out, UR_LEASE_REFUSAL_BYTES);

	ur_put32(&c, MAGIC_REFUSAL);
	ur_put32(&c, why);
}

static bool get_grant(struct ur_cursor *c, struct ur_lease_grant *g)
{
	g->address = ur_get32(c);
	g->prefix = ur_get8(c);
	g->slots_shift = ur_get8(c);
	g->mtu = ur_get16(c);
	ur_get_bytes(c, g->mac, 6);
	g->qpns.bits = ur_get8(c);
	g->qpns.value = ur_get8(c);
	g->memif_id = ur_get32(c);
	return get_text(c, g->secret, sizeof(g->secret)) && get_text(c, g->memif, sizeof(g->memif));
}

/* Numbers 0 and all ones are no client's: they would have QP0, QP1 and the multicast QPN. */
static bool is_prefix(struct ur_qpn_prefix p)
{
	if (!p.bits)
		return !p.value;
	return p.bits == UR_LEASE_PREFIX_BITS && p.value && p.value <= UR_LEASE_NUMBER_MAX;
}

static bool is_sound(const struct ur_lease_grant *g)
{
	return g->address && is_prefix(g->qpns) && g->prefix <= 30 && (g->prefix || g->qpns.bits) &&
	       g->slots_shift >= 4 && g->slots_shift <= 14 && g->mtu >= 576 && g->mtu <= 9600 &&
	       !(g->mac[0] & 1) && ur_lease_is_secret(g->secret) && g->memif[0] &&
	       g->memif[0] != '.' && !strpbrk(g->memif, "/, ");
}

enum ur_lease_answer ur_lease_get_answer(const uint8_t *msg, size_t len, struct ur_lease_grant *g,
					 enum ur_lease_refusal *why)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);
	uint32_t magic = ur_get32(&c), reason;
	struct ur_lease_grant got;

	if (len == UR_LEASE_REFUSAL_BYTES && magic == MAGIC_REFUSAL) {
		reason = ur_get32(&c);
		if (reason >= UR_LEASE_REFUSAL_CNT)
			return UR_LEASE_BAD;
		*why = reason;
		return UR_LEASE_REFUSED;
	}
	if (len != UR_LEASE_GRANT_BYTES || magic != MAGIC_GRANT || !get_grant(&c, &got) ||
	    !is_sound(&got))
		return UR_LEASE_BAD;
	*g = got;
	return UR_LEASE_GRANTED;
}

/* Without a cursor, whose checks gcc 12 takes for writes behind the end at -O3. */
void ur_lease_put_port(const struct ur_lease_port *p, uint8_t *out)
{
	ur_store32(out, MAGIC_PORT);
	ur_store32(out + 4, (uint32_t)p->space << 16 | p->port);
	ur_store32(out + 8, (uint32_t)p->release << 24);
}

bool ur_lease_get_port(const uint8_t *msg, size_t len, struct ur_lease_port *p)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);
	uint32_t magic = ur_get32(&c);
	uint8_t zero = ur_get8(&c), space = ur_get8(&c);
	uint16_t port = ur_get16(&c);
	uint8_t release = ur_get8(&c);

	zero |= ur_get8(&c);
	if (len != UR_LEASE_PORT_BYTES || magic != MAGIC_PORT || zero || ur_get16(&c) ||
	    space >= UR_LEASE_SPACES || release > 1 || (release && !port))
		return false;
	*p = (struct ur_lease_port){(enum ur_lease_space)space, port, release};
	return true;
}

void ur_lease_put_bound(const struct ur_lease_bound *b, uint8_t *out)
{
	ur_store32(out, MAGIC_BOUND);
	ur_store32(out + 4, (uint32_t)b->status << 24 | (uint32_t)b->space << 16 | b->asked);
	ur_store32(out + 8, (uint32_t)b->port << 16);
}

bool ur_lease_get_bound(const uint8_t *msg, size_t len, struct ur_lease_bound *b)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);
	uint32_t magic = ur_get32(&c);
	uint8_t status = ur_get8(&c), space = ur_get8(&c);
	uint16_t asked = ur_get16(&c), port = ur_get16(&c);

	if (len != UR_LEASE_PORT_BYTES || magic != MAGIC_BOUND || ur_get16(&c) ||
	    status >= UR_LEASE_STATUS_CNT || space >= UR_LEASE_SPACES ||
	    (status == UR_LEASE_BOUND) != (port != 0) || (port && asked && asked != port))
		return false;
	*b = (struct ur_lease_bound){(enum ur_lease_status)status, (enum ur_lease_space)space,
				     asked, port};
	return true;
}

void ur_lease_put_ring_request(uint32_t client, uint8_t *out)
{
	ur_store32(out, MAGIC_RING_REQUEST);
	ur_store32(out + 4, client);
}

bool ur_lease_get_ring_request(const uint8_t *msg, size_t len, uint32_t *client)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);

	if (len != UR_LEASE_RING_REQUEST_BYTES || ur_get32(&c) != MAGIC_RING_REQUEST)
		return false;
	*client = ur_get32(&c);
	return true;
}

void ur_lease_put_direct(const struct ur_lease_direct *d, uint8_t *out)
{
	ur_store32(out, MAGIC_DIRECT);
	ur_store32(out + 4, d->client);
	ur_store32(out + 8, (uint32_t)d->frame_max << 16 | (uint32_t)d->second << 8);
}

bool ur_lease_get_direct(const uint8_t *msg, size_t len, struct ur_lease_direct *d)
{
	struct ur_cursor c = ur_cursor_ro(msg, len);
	uint32_t magic = ur_get32(&c), client = ur_get32(&c);
	uint16_t frame_max = ur_get16(&c);
	uint8_t second = ur_get8(&c);

	if (len != UR_LEASE_DIRECT_BYTES || magic != MAGIC_DIRECT || ur_get8(&c) || second > 1 ||
	    (second && !frame_max) || !client)
		return false;
	*d = (struct ur_lease_direct){client, frame_max, second};
	return true;
}

void ur_lease_mac(uint32_t address, uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 0x75;
	ur_store32(mac + 2, address);
}

const char *ur_lease_refusal_text(enum ur_lease_refusal why)
{
	static const char *const text[] = {
#define X(NAME, sentence) sentence,
		UR_LEASE_REFUSALS(X)
#undef X
	};

	return text[why];
}
