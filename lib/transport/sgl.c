/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sgl.h"

#include <string.h>

/* MEM-LKEY-01: no byte is reached but through ur_mem_check(). */
int ur_sgl_resolve(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		   unsigned num_sge, uint32_t off, uint32_t len, uint32_t access,
		   struct ur_frag *frag, unsigned cap)
{
	unsigned cnt = 0;

	for (unsigned i = 0; len > 0; i++) {
		uint32_t n;

		if (i == num_sge)
			return -1;
		if (off >= sge[i].length) {
			off -= sge[i].length;
			continue;
		}
		n = sge[i].length - off;
		if (n > len)
			n = len;
		if (cnt == cap)
			return -1;
		frag[cnt].base = ur_mem_check(mem, sge[i].lkey, pd, sge[i].addr + off, n, access);
		if (!frag[cnt].base)
			return -1;
		frag[cnt++].length = n;
		len -= n;
		off = 0;
	}
	return (int)cnt;
}

bool ur_sgl_gather(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		   unsigned num_sge, uint32_t off, uint32_t len, struct ur_tx *tx)
{
	int cnt;

	if (len == 0)
		return true;
	if (__builtin_expect(ur_sgl_in_first(sge, num_sge, off, len) && tx->frag_cnt < UR_FRAGS_MAX,
			     1)) {
		const uint8_t *base = ur_mem_check(mem, sge->lkey, pd, sge->addr + off, len, 0);

		if (__builtin_expect(!base, 0))
			return false;
		tx->frag[tx->frag_cnt++] = (struct ur_frag){base, len};
		return true;
	}
	cnt = ur_sgl_resolve(mem, pd, sge, num_sge, off, len, 0, tx->frag + tx->frag_cnt,
			     UR_FRAGS_MAX - (unsigned)tx->frag_cnt);
	if (cnt < 0)
		return false;
	tx->frag_cnt = (uint8_t)(tx->frag_cnt + cnt);
	return true;
}

bool ur_sgl_scatter(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		    unsigned num_sge, uint32_t off, const uint8_t *src, uint32_t len)
{
	struct ur_frag frag[UR_FRAGS_MAX];
	int cnt;

	if (len == 0)
		return true;
	if (__builtin_expect(ur_sgl_in_first(sge, num_sge, off, len), 1)) {
		uint8_t *dst = ur_mem_check(mem, sge->lkey, pd, sge->addr + off, len,
					    IBV_ACCESS_LOCAL_WRITE);

		if (__builtin_expect(!dst, 0))
			return false;
		memcpy(dst, src, len);
		return true;
	}
	cnt = ur_sgl_resolve(mem, pd, sge, num_sge, off, len, IBV_ACCESS_LOCAL_WRITE, frag,
			     UR_FRAGS_MAX);
	for (int i = 0; i < cnt; i++) {
		memcpy((uint8_t *)(uintptr_t)frag[i].base, src, frag[i].length);
		src += frag[i].length;
	}
	return cnt >= 0;
}
