/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif_msg.h"

#include <string.h>

#include "ring.h"

#define REASON_BYTES 96
#define TO_SERVER    1

/* Fields are packed and in native order: read and written by memcpy(). */
#define GET(field, at)	 memcpy(&(field), at, sizeof(field))
#define PUT(at, type, v) memcpy(at, &(type){v}, sizeof(type))

static bool get_init(const uint8_t *p, struct memif_msg *m)
{
	uint16_t version;

	GET(version, p);
	GET(m->id, p + 2);
	memcpy(m->secret, p + 7, MEMIF_SECRET_BYTES);
	return version == MEMIF_VERSION && p[6] == 0; /* Ethernet */
}

static bool get_ring(const uint8_t *p, struct memif_msg *m)
{
	uint16_t flags, private_bytes;

	GET(flags, p);
	GET(m->index, p + 2);
	GET(m->region, p + 4);
	GET(m->offset, p + 6);
	m->shift = p[10];
	GET(private_bytes, p + 11);
	m->to_server = flags & TO_SERVER;
	return !private_bytes;
}

bool memif_msg_get(const uint8_t *msg, size_t len, struct memif_msg *out)
{
	struct memif_msg m = {0};
	const uint8_t *p = msg + 2;
	uint16_t type;
	bool ok = true;

	if (len != MEMIF_MSG_BYTES)
		return false;
	GET(type, msg);
	switch (type) {
	case MEMIF_INIT:
		ok = get_init(p, &m);
		break;
	case MEMIF_ADD_REGION:
		GET(m.index, p);
		GET(m.bytes, p + 2);
		break;
	case MEMIF_ADD_RING:
		ok = get_ring(p, &m);
		break;
	case MEMIF_CONNECT:
	case MEMIF_DISCONNECT:
	case MEMIF_ACK:
		break;
	default:
		return false;
	}
	m.type = type;
	if (ok)
		*out = m;
	return ok;
}

static uint8_t *begin(uint8_t *out, uint16_t type)
{
	memset(out, 0, MEMIF_MSG_BYTES);
	PUT(out, uint16_t, type);
	return out + 2;
}

static void put_text(uint8_t *at, const char *text, size_t bytes)
{
	size_t len = strlen(text);

	memcpy(at, text, len < bytes ? len : bytes - 1);
}

void memif_msg_hello(uint8_t *out, const char *text)
{
	uint8_t *p = begin(out, MEMIF_HELLO);

	put_text(p, text, MEMIF_NAME_BYTES);
	PUT(p + 32, uint16_t, MEMIF_VERSION);
	PUT(p + 34, uint16_t, MEMIF_VERSION);
	/* Highest indices: one region, one ring each way. */
	PUT(p + 36, uint16_t, 0);
	PUT(p + 38, uint16_t, 0);
	PUT(p + 40, uint16_t, 0);
	p[42] = RING_SHIFT_MAX;
}

void memif_msg_ack(uint8_t *out)
{
	begin(out, MEMIF_ACK);
}

void memif_msg_connected(uint8_t *out, const char *text)
{
	put_text(begin(out, MEMIF_CONNECTED), text, MEMIF_NAME_BYTES);
}

void memif_msg_disconnect(uint8_t *out, const char *text)
{
	put_text(begin(out, MEMIF_DISCONNECT) + 4, text, REASON_BYTES);
}
