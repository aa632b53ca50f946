/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "fuzz.h"
#include "print/print.h"
#include "wire/icrc.h"

/*
 * Takes any bytes as a frame. The decoder must not read outside the frame. A packet that it accepts
 * must encode to the same bytes (except for the pad, which is sent as zeros), and CRC and printer
 * must handle it.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t again[UINT16_MAX];
	char text[UR_PRINT_MAX];
	struct ur_packet p;
	enum ur_drop drop = ur_packet_decode(data, size, &p);
	size_t pad_off;

	FUZZ_CHECK(drop < UR_DROP_CNT);
	if (drop != UR_DROP_NONE)
		return 0;
	FUZZ_CHECK(p.frame_len <= size);
	FUZZ_CHECK(p.op & UR_OP_KNOWN);
	FUZZ_CHECK(p.payload == data + p.payload_off);
	FUZZ_CHECK(p.payload_off + p.payload_len + p.bth.pad == p.icrc_off);

	FUZZ_CHECK(ur_packet_encode(&p, again, sizeof(again)) == p.frame_len);
	pad_off = (size_t)p.payload_off + p.payload_len;
	FUZZ_CHECK(memcmp(again, data, pad_off) == 0);
	FUZZ_CHECK(memcmp(again + p.icrc_off, data + p.icrc_off, UR_ICRC_BYTES) == 0);

	FUZZ_CHECK(ur_print_packet(text, sizeof(text), &p, ur_icrc_ok(data, &p)) < sizeof(text));
	return 0;
}
