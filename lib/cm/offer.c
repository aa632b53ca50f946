/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/offer.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/cursor.h"

static const uint8_t magic[8] = {'u', 'r', 'o', 'c', 'e', 0x00, 0xab, 0x1e};

/* CM-EXT-01 */
bool ur_offer_fits(size_t private_len, size_t size)
{
	return private_len + UR_OFFER_BYTES <= size;
}

void ur_offer_put(uint8_t *data, size_t size, const struct ur_offer *offer)
{
	struct ur_cursor c;

	UR_ASSERT(size >= UR_OFFER_BYTES);
	c = ur_cursor(data + size - UR_OFFER_BYTES, UR_OFFER_BYTES);
	ur_put_bytes(&c, magic, sizeof(magic));
	ur_put8(&c, offer->version);
	ur_put8(&c, offer->flags);
	ur_put8(&c, offer->ports);
	ur_put8(&c, (uint8_t)(offer->wide << 3 | offer->tables));
	ur_put32(&c, offer->pool);
}

bool ur_offer_take(uint8_t *data, size_t size, struct ur_offer *offer)
{
	uint8_t *at = data + size - UR_OFFER_BYTES, seen[sizeof(magic)];
	struct ur_offer o;
	struct ur_cursor c;

	if (size < UR_OFFER_BYTES)
		return false;
	c = ur_cursor_ro(at, UR_OFFER_BYTES);
	ur_get_bytes(&c, seen, sizeof(seen));
	o.version = ur_get8(&c);
	o.flags = ur_get8(&c);
	o.ports = ur_get8(&c);
	o.tables = ur_get8(&c);
	o.wide = o.tables >> 3 & 7;
	o.wide = o.wide < UR_OFFER_WIDE_MAX ? o.wide : UR_OFFER_WIDE_MAX;
	o.tables &= 7;
	o.pool = ur_get32(&c);
	/* CM-EXT-04: a peer with a higher version also supports this one. */
	if (memcmp(seen, magic, sizeof(magic)) != 0 || o.version < UR_OFFER_VERSION)
		return false;
	o.flags &= UR_OFFER_EXTENDED | UR_OFFER_STRICT | UR_OFFER_STATUS | UR_OFFER_POOL |
		   UR_OFFER_NOTIFY | UR_OFFER_PAPER | UR_OFFER_DELAY;
	/* CM-EXT-03: the application sees zeros, as it would without the block. */
	memset(at, 0, UR_OFFER_BYTES);
	*offer = o;
	return true;
}
