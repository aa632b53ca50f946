/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>

#include <criterion/criterion.h>

#include "wire/drop.h"
#include "wire/opcode.h"

/* Bytes between BTH and payload, and the headers, from the table of the specification. */
static const struct {
	uint8_t opcode, ext_bytes;
	uint32_t headers;
} table[] = {
	{0x00, 0, 0},
	{0x01, 0, 0},
	{0x02, 0, 0},
	{0x03, 4, UR_OP_IMM},
	{0x04, 0, 0},
	{0x05, 4, UR_OP_IMM},
	{0x06, 16, UR_OP_RETH},
	{0x07, 0, 0},
	{0x08, 0, 0},
	{0x09, 4, UR_OP_IMM},
	{0x0a, 16, UR_OP_RETH},
	{0x0b, 20, UR_OP_RETH | UR_OP_IMM},
	{0x0c, 16, UR_OP_RETH},
	{0x0d, 4, UR_OP_AETH},
	{0x0e, 0, 0},
	{0x0f, 4, UR_OP_AETH},
	{0x10, 4, UR_OP_AETH},
	{0x11, 4, UR_OP_AETH},
	{0x12, 12, UR_OP_AETH | UR_OP_ATOMICACKETH},
	{0x13, 28, UR_OP_ATOMICETH},
	{0x14, 28, UR_OP_ATOMICETH},
	{0x16, 4, UR_OP_IETH},
	{0x17, 4, UR_OP_IETH},
	{0x20, 0, 0},
	{0x21, 0, 0},
	{0x22, 0, 0},
	{0x23, 4, UR_OP_IMM},
	{0x24, 0, 0},
	{0x25, 4, UR_OP_IMM},
	{0x26, 16, UR_OP_RETH},
	{0x27, 0, 0},
	{0x28, 0, 0},
	{0x29, 4, UR_OP_IMM},
	{0x2a, 16, UR_OP_RETH},
	{0x2b, 20, UR_OP_RETH | UR_OP_IMM},
	{0x64, 8, UR_OP_DETH},
	{0x65, 12, UR_OP_DETH | UR_OP_IMM},
	{0x81, 0, 0},
	{0xc0, 16, UR_OP_XTH},
	{0xc1, 16, UR_OP_XTH},
	{0xc2, 16, UR_OP_XTH},
	{0xc4, 16, UR_OP_XTH},
	{0xc3, 20, UR_OP_XTH | UR_OP_IMM},
	{0xc5, 20, UR_OP_XTH | UR_OP_IMM},
	{0xc6, 32, UR_OP_XTH | UR_OP_RETH},
	{0xc7, 32, UR_OP_XTH | UR_OP_RETH},
	{0xc8, 32, UR_OP_XTH | UR_OP_RETH},
	{0xca, 32, UR_OP_XTH | UR_OP_RETH},
	{0xc9, 36, UR_OP_XTH | UR_OP_RETH | UR_OP_IMM},
	{0xcb, 36, UR_OP_XTH | UR_OP_RETH | UR_OP_IMM},
	{0xcc, 32, UR_OP_XTH | UR_OP_RETH},
	{0xcd, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH},
	{0xce, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH},
	{0xcf, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH},
	{0xd0, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH},
	{0xd1, 16, UR_OP_AETH | UR_OP_XAETH},
	{0xd2, 32, UR_OP_AETH | UR_OP_XAETH | UR_OP_XRTH | UR_OP_ATOMICACKETH},
	{0xd3, 44, UR_OP_XTH | UR_OP_ATOMICETH},
	{0xd4, 44, UR_OP_XTH | UR_OP_ATOMICETH},
	{0xd6, 20, UR_OP_XTH | UR_OP_IETH},
	{0xd7, 20, UR_OP_XTH | UR_OP_IETH},
	{0xd8, 16, UR_OP_XTH},
	{0xd9, 8, UR_OP_ASTH | UR_OP_POOL},
	{0xda, 20, UR_OP_AETH | UR_OP_XAETH | UR_OP_ASTH},
	{0xdb, 20, UR_OP_AETH | UR_OP_XAETH | UR_OP_NDTH},
	{0xdc, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_ASTH | UR_OP_NDTH},
	{0xdd, 20, UR_OP_AETH | UR_OP_XAETH | UR_OP_BPTH},
	{0xde, 24, UR_OP_AETH | UR_OP_XAETH | UR_OP_ASTH | UR_OP_BPTH},
};
#define TABLE_CNT (sizeof(table) / sizeof(table[0]))

#define ANY_HEADER                                                                                 \
	(UR_OP_RETH | UR_OP_AETH | UR_OP_DETH | UR_OP_ATOMICETH | UR_OP_ATOMICACKETH | UR_OP_IMM | \
	 UR_OP_IETH | UR_OP_XTH | UR_OP_XAETH | UR_OP_XRTH | UR_OP_ASTH | UR_OP_POOL |             \
	 UR_OP_NDTH | UR_OP_BPTH)
#define ANY_KIND (UR_OP_REQUEST | UR_OP_RESPONSE | UR_OP_CNP | UR_OP_NOTIFY)

/* WIRE-EXT-01 */
Test(opcode, carries_the_headers_of_the_specification)
{
	for (size_t i = 0; i < TABLE_CNT; i++) {
		const struct ur_opcode_info *info = &ur_opcodes[table[i].opcode];

		cr_assert(info->flags & UR_OP_KNOWN, "%#x", table[i].opcode);
		cr_assert_eq(info->flags & ANY_HEADER, table[i].headers, "%s", info->name);
		cr_assert_eq(info->ext_bytes, table[i].ext_bytes, "%s", info->name);
	}
}

/* WIRE-OPCODE-01 */
Test(opcode, known_are_exactly_those_of_the_table)
{
	size_t known_cnt = 0;

	for (unsigned op = 0; op < 256; op++) {
		const struct ur_opcode_info *info = &ur_opcodes[op];

		if (info->flags & UR_OP_KNOWN) {
			known_cnt++;
			cr_assert_not_null(info->name);
		} else {
			cr_assert_eq(info->flags, 0, "%#x", op);
			cr_assert_null(info->name, "%#x", op);
			cr_assert_eq(info->ext_bytes, 0, "%#x", op);
		}
		cr_assert_eq(ur_op_flags((uint8_t)op), info->flags);
	}
	cr_assert_eq(known_cnt, TABLE_CNT);
	cr_assert_eq(ur_op_flags(0x15), 0, "the reserved gap before SEND with invalidate");
	cr_assert_eq(ur_op_flags(0x80), 0, "the prefix of the CNP class");
}

Test(opcode, is_of_exactly_one_kind)
{
	for (unsigned op = 0; op < 256; op++)
		if (ur_op_flags((uint8_t)op))
			cr_assert_eq(__builtin_popcount(ur_op_flags((uint8_t)op) & ANY_KIND), 1,
				     "%s", ur_opcodes[op].name);
}

Test(opcode, carries_payload_when_it_is_a_send_a_write_or_a_read_response)
{
	for (unsigned op = 0; op < 256; op++) {
		uint32_t flags = ur_op_flags((uint8_t)op);
		/* The bitmap of an extended ACK counts as payload. */
		bool data = flags & (UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_RESP) ||
			    op == UR_EXT_ACKNOWLEDGE || op == UR_EXT_ACKNOWLEDGE_STATUS ||
			    op == UR_EXT_ACKNOWLEDGE_DELAY ||
			    op == UR_EXT_ACKNOWLEDGE_STATUS_DELAY ||
			    op == UR_EXT_ACKNOWLEDGE_PART || op == UR_EXT_ACKNOWLEDGE_STATUS_PART;

		cr_assert_eq(!!(flags & UR_OP_PAYLOAD), data, "%#x", op);
	}
}

Test(opcode, name_has_its_position_in_the_message)
{
	for (unsigned op = 0; op < 256; op++) {
		const struct ur_opcode_info *info = &ur_opcodes[op];
		uint32_t place = info->flags & UR_OP_ONLY;

		if (!info->name)
			continue;
		if (strstr(info->name, "_FIRST"))
			cr_assert_eq(place, UR_OP_FIRST, "%s", info->name);
		else if (strstr(info->name, "_MIDDLE"))
			cr_assert_eq(place, 0, "%s", info->name);
		else if (strstr(info->name, "_LAST"))
			cr_assert_eq(place, UR_OP_LAST, "%s", info->name);
		else
			cr_assert_eq(place, UR_OP_ONLY, "%s", info->name);
	}
}

Test(opcode, name_has_its_transport)
{
	for (unsigned op = 0; op < 256; op++) {
		const char *name = ur_opcodes[op].name;

		if (!name)
			continue;
		switch (op & UR_TRANSPORT_MASK) {
		case UR_TRANSPORT_RC:
			cr_assert_eq(strncmp(name, "RC_", 3), 0, "%s", name);
			break;
		case UR_TRANSPORT_UC:
			cr_assert_eq(strncmp(name, "UC_", 3), 0, "%s", name);
			break;
		case UR_TRANSPORT_UD:
			cr_assert_eq(strncmp(name, "UD_", 3), 0, "%s", name);
			break;
		case UR_TRANSPORT_EXT:
			cr_assert_eq(strncmp(name, "EXT_", 4), 0, "%s", name);
			break;
		default:
			cr_assert_eq(op, UR_CNP, "%s", name);
		}
	}
}

/* WIRE-XOPCODE-01 */
Test(opcode, of_extended_mode_is_the_rc_opcode_with_other_headers)
{
	const uint32_t same = ANY_KIND | UR_OP_ONLY | UR_OP_ATOMICETH | UR_OP_ATOMICACKETH |
			      UR_OP_IMM | UR_OP_IETH;

	for (unsigned op = 0; op < 0x20; op++) {
		const struct ur_opcode_info *rc = &ur_opcodes[op];
		const struct ur_opcode_info *ext = &ur_opcodes[op | UR_TRANSPORT_EXT];

		if (op >= (UR_EXT_PROBE & 0x1f)) /* uroce's own */
			continue;
		cr_assert_eq(!rc->name, !ext->name, "%#x", op);
		if (!rc->name)
			continue;
		cr_assert_str_eq(rc->name + strlen("RC"), ext->name + strlen("EXT"));
		cr_assert_eq(rc->flags & same, ext->flags & same, "%s", ext->name);
		cr_assert_eq(!!(ext->flags & UR_OP_XTH), !!(ext->flags & UR_OP_REQUEST));
		cr_assert_eq(!!(ext->flags & UR_OP_XAETH), !!(ext->flags & UR_OP_RESPONSE));
	}
	for (unsigned op = 0xe0; op < 0x100; op++)
		cr_assert_eq(ur_op_flags((uint8_t)op), 0, "%#x belongs to others", op);
}

Test(drop, names_are_the_enum_in_lower_case)
{
	static const char *const words[] = {
#define X(name, text) #name,
		UR_DROP_REASONS(X)
#undef X
	};

	cr_assert_str_eq(ur_drop_name(UR_DROP_ICRC), "icrc");
	cr_assert_str_eq(ur_drop_name(UR_DROP_PSN_DUPLICATE), "psn_duplicate");
	cr_assert_str_eq(ur_drop_text(UR_DROP_ICRC), "wrong ICRC");
	for (unsigned i = 0; i < UR_DROP_CNT; i++) {
		const char *name = ur_drop_name((enum ur_drop)i);

		cr_assert_eq(strlen(name), strlen(words[i]), "%s", name);
		for (size_t k = 0; name[k]; k++)
			cr_assert_eq(name[k], tolower(words[i][k]), "%s", name);
		cr_assert_gt(strlen(ur_drop_text((enum ur_drop)i)), 0);
	}
}
