/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "vl/blocks.h"
#include "wire/assert.h"

#define HALF (UR_VL_ENTRIES / 2)

static unsigned first_of(unsigned block)
{
	UR_ASSERT(block >= 1 && block <= UR_VL_BLOCKS);
	return block & 1 ? 0 : HALF;
}

void ur_vl_put_block(uint8_t *data, const struct ur_vl_attr *vl, unsigned block)
{
	const struct ur_vl_entry *entry = block > 2 ? vl->high : vl->low;
	unsigned first = first_of(block), cnt = block > 2 ? vl->high_cnt : vl->low_cnt;

	memset(data, 0, UR_VL_BLOCK_BYTES);
	for (unsigned i = 0; i < HALF && first + i < cnt; i++) {
		data[2 * i] = entry[first + i].weight ? entry[first + i].vl : 0;
		data[2 * i + 1] = entry[first + i].weight;
	}
}

void ur_vl_get_block(const uint8_t *data, struct ur_vl_attr *vl, unsigned block)
{
	struct ur_vl_entry *entry = block > 2 ? vl->high : vl->low;
	uint8_t *cnt = block > 2 ? &vl->high_cnt : &vl->low_cnt;
	unsigned first = first_of(block);

	for (unsigned i = *cnt; i < first; i++)
		entry[i] = (struct ur_vl_entry){0, 0};
	for (unsigned i = 0; i < HALF; i++) {
		entry[first + i].weight = data[2 * i + 1];
		entry[first + i].vl = data[2 * i + 1] ? data[2 * i] & 15 : 0;
	}
	if (*cnt < first + HALF)
		*cnt = (uint8_t)(first + HALF);
	while (*cnt && !entry[*cnt - 1].weight)
		--*cnt;
}

void ur_vl_put_sl2vl(uint8_t *data, const struct ur_vl_attr *vl)
{
	memset(data, 0, UR_VL_BLOCK_BYTES);
	for (unsigned sl = 0; sl < 16; sl++)
		data[sl / 2] |= (uint8_t)(vl->sl2vl[sl] << (sl & 1 ? 0 : 4));
}

void ur_vl_get_sl2vl(const uint8_t *data, struct ur_vl_attr *vl)
{
	for (unsigned sl = 0; sl < 16; sl++)
		vl->sl2vl[sl] = data[sl / 2] >> (sl & 1 ? 0 : 4) & 15;
}
