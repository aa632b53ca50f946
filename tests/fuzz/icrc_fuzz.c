/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"
#include "wire/icrc.h"

/*
 * Takes any bytes as a packet from its IP header on, of either version. The ICRC must be the same with and without
 * carry-less multiplication, and in two pieces split anywhere. No byte outside the packet may be read.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		size_t least = v6 ? UR_IPV6_BYTES : UR_IPV4_BYTES, split;
		uint32_t icrc;

		least += UR_UDP_BYTES + UR_BTH_BYTES;
		if (size < least)
			continue;
		icrc = ur_icrc(data, size, v6);
		FUZZ_CHECK(ur_icrc_plain(data, size, v6) == icrc);
		split = least + data[size - 1] * (size - least) / UINT8_MAX;
		FUZZ_CHECK(ur_icrc_more(ur_icrc_begin(data, split, v6), data + split,
					size - split) == icrc);
	}
	return 0;
}
