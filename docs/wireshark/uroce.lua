-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark and tshark: uroce's extended mode and management attributes by name, and the ICRC of every RoCEv2 packet.
--
--   tshark -X lua_script:docs/wireshark/uroce.lua -r FILE -V
--   tshark -X lua_script:docs/wireshark/uroce.lua -r FILE -Y 'uroce.icrc.status == "bad"'
--   tshark -X lua_script:docs/wireshark/uroce.lua -r FILE -T fields \
--       -e uroce.opcode -e uroce.ssn -e uroce.psn_offset -e uroce.sack.missing
--
-- or copy it to the folder of personal Lua plugins (Help, About Wireshark, Folders).
--
-- The built-in dissector of RoCEv2 keeps its work. This one runs behind it and adds a tree: to every
-- RoCEv2 packet the ICRC and whether it is right, to extended packets (opcodes 0xC0 to 0xDF) all
-- headers as well, to management datagrams what uroce adds to the IBA. docs/wire-format.md and
-- lib/wire/vendor.h have every bit.

local uroce = Proto("uroce", "uroce, RoCEv2 extended mode and ICRC")

uroce.prefs.verify_icrc = Pref.bool("Verify the ICRC", true,
	"Compute the ICRC of every RoCEv2 packet and compare")

local ROCE_UDP_PORT = 4791
local UDP_BYTES, BTH_BYTES, ICRC_BYTES = 8, 12, 4
local SACK_BYTES_MAX = 256
local STAMP_NS = 16
local PSN_MASK = 0xffffff

-- ---- bits: a library up to Lua 5.2 and in LuaJIT, operators from 5.3 on ----

local band, bxor, rshift
if bit32 or bit then
	local lib = bit32 or bit
	band, bxor, rshift = lib.band, lib.bxor, lib.rshift
else
	band, bxor, rshift = assert(load([[
		return function(a, b) return a & b end,
			function(a, b) return a ~ b end,
			function(a, n) return a >> n end]]))()
end

-- ---- ICRC ----

local crc_table = {}
for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		c = band(c, 1) == 1 and bxor(rshift(c, 1), 0xedb88320) or rshift(c, 1)
	end
	crc_table[i] = c
end

local function crc_add(crc, byte)
	return bxor(crc_table[band(bxor(crc, byte), 0xff)], rshift(crc, 8))
end

-- The state behind the eight bytes of ones that stand for a local route header.
local crc_start = 0xffffffff
for _ = 1, 8 do
	crc_start = crc_add(crc_start, 0xff)
end

-- The ICRC of `covered`, a string from the IP header to the pad; `udp`: offset of the UDP header in
-- it. What routers may change counts as ones.
local function icrc_of(covered, v6, udp)
	local headers = udp + UDP_BYTES + BTH_BYTES
	local ones = { [udp + 6] = true, [udp + 7] = true, [udp + UDP_BYTES + 4] = true }
	local crc = crc_start

	for _, at in ipairs(v6 and { 1, 2, 3, 7 } or { 1, 8, 10, 11 }) do
		ones[at] = true
	end
	for at = 0, headers - 1 do
		local byte = covered:byte(at + 1)
		if ones[at] then
			byte = 0xff
		elseif v6 and at == 0 then
			byte = 0x6f -- the traffic class begins behind the version
		end
		crc = crc_add(crc, byte)
	end
	for at = headers + 1, #covered do
		crc = crc_add(crc, covered:byte(at))
	end
	return bxor(crc, 0xffffffff) % 0x100000000 -- some libraries have signed numbers
end

-- ---- fields and notes ----

local syndrome_kinds = { [0] = "ACK", [1] = "RNR NAK", [2] = "reserved", [3] = "NAK" }
local nak_codes = {
	[0] = "PSN sequence error", [1] = "invalid request", [2] = "remote access error",
	[3] = "remote operational error", [4] = "invalid RD request",
}

local classes = { [0] = "none", [1] = "A", [2] = "B", [3] = "reserved" }
local statuses = { [0] = "NA", [1] = "A", [2] = "NB", [3] = "B" }

local vendor_errors = { [0] = "none", "count", "address", "access", "value", "key", "absent" }
local manager_states = { [0] = "not active", "discovering", "standby", "master" }
local severities = { [0] = "info", "warning", "error", "critical" }
local causes = { [0] = "link down", "link up", "burst of receive errors", "burst of retransmissions",
	"load above its limit", "packet buffers used above their limit", "ring filled above its limit",
	"request with a bad key", "link test found errors", "management requests dropped" }

local f = {
	mgmt = ProtoField.none("uroce.mgmt", "Management attribute of uroce"),
	mgmt_attr = ProtoField.string("uroce.mgmt.attribute", "Attribute"),
	mgmt_key = ProtoField.uint64("uroce.mgmt.key", "Key", base.HEX),
	mgmt_count = ProtoField.uint8("uroce.mgmt.count", "Entries"),
	mgmt_error = ProtoField.uint8("uroce.mgmt.error", "Error", base.DEC, vendor_errors),
	register = ProtoField.uint16("uroce.mgmt.register", "Register", base.HEX),
	register_name = ProtoField.string("uroce.mgmt.register.name", "Name"),
	register_value = ProtoField.uint64("uroce.mgmt.register.value", "Value", base.HEX),
	eeprom = ProtoField.uint16("uroce.mgmt.eeprom", "E2PROM address", base.HEX),
	eeprom_value = ProtoField.uint8("uroce.mgmt.eeprom.value", "Value", base.HEX),
	bist_sequence = ProtoField.uint64("uroce.mgmt.bist.sequence", "Link test: sequence number"),
	bist_pattern = ProtoField.uint8("uroce.mgmt.bist.pattern", "Link test: pattern"),
	manager_state = ProtoField.uint8("uroce.mgmt.manager.state", "Manager: state", base.DEC, manager_states),
	manager_guid = ProtoField.uint64("uroce.mgmt.manager.guid", "Manager: GUID of its node", base.HEX),
	manager_priority = ProtoField.uint8("uroce.mgmt.manager.priority", "Manager: priority"),
	manager_seats = ProtoField.uint8("uroce.mgmt.manager.seats", "Manager: seats of the zone"),
	manager_held = ProtoField.uint8("uroce.mgmt.manager.held", "Manager: seats that have its key"),
	manager_zone = ProtoField.uint64("uroce.mgmt.manager.zone", "Manager: number of the zone", base.HEX),
	manager_proof = ProtoField.uint64("uroce.mgmt.manager.proof", "Manager: proof of the zone's key", base.HEX),
	manager_number = ProtoField.uint64("uroce.mgmt.manager.number", "Manager: number for the next proof", base.HEX),
	route_sport = ProtoField.uint16("uroce.mgmt.route.sport", "Route: UDP source port"),
	route_port = ProtoField.uint8("uroce.mgmt.route.port", "Route: port of the switch"),
	route_lid = ProtoField.uint16("uroce.mgmt.route.lid", "Route: first LID"),
	route_ports = ProtoField.uint64("uroce.mgmt.route.ports", "Route: ports of all source ports", base.HEX),
	fault_severity = ProtoField.uint8("uroce.mgmt.fault.severity", "Fault: severity", base.DEC, severities),
	fault_cause = ProtoField.uint8("uroce.mgmt.fault.cause", "Fault: cause", base.DEC, causes),
	fault_port = ProtoField.uint8("uroce.mgmt.fault.port", "Fault: port"),
	fault_sequence = ProtoField.uint32("uroce.mgmt.fault.sequence", "Fault: number of the report"),
	fault_time = ProtoField.uint64("uroce.mgmt.fault.time", "Fault: age of the node, ns"),
	fault_value = ProtoField.uint64("uroce.mgmt.fault.value", "Fault: value"),
	fault_limit = ProtoField.uint64("uroce.mgmt.fault.limit", "Fault: limit"),
	fault_node = ProtoField.uint64("uroce.mgmt.fault.node", "Fault: GUID of the node", base.HEX),

	opcode_nr = ProtoField.uint8("uroce.opcode_nr", "Opcode number", base.HEX),
	opcode = ProtoField.string("uroce.opcode", "Opcode"),
	dest_qp = ProtoField.uint24("uroce.dest_qp", "Destination QP", base.HEX),
	ackreq = ProtoField.bool("uroce.ackreq", "Acknowledge request"),
	psn = ProtoField.uint24("uroce.psn", "PSN", base.DEC),

	xth = ProtoField.none("uroce.xth", "XTH, extended request header"),
	stamp = ProtoField.uint32("uroce.stamp", "Transmit stamp", base.DEC, nil, nil, "In 16 ns"),
	path = ProtoField.uint8("uroce.path", "Path"),
	ssn = ProtoField.uint24("uroce.ssn", "SSN, message", base.DEC),
	flags = ProtoField.uint8("uroce.flags", "Flags", base.HEX),
	retry = ProtoField.bool("uroce.flags.retry", "Sent before", 8, nil, 0x04),
	back = ProtoField.bool("uroce.flags.back", "Probe whose answer is to ask for the delay as well", 8, nil, 0x40),
	twice = ProtoField.bool("uroce.flags.twice", "READ request that has just been sent", 8, nil, 0x20),
	last_read = ProtoField.bool("uroce.flags.last_read", "Last READ request of its message", 8,
		nil, 0x02),
	recv = ProtoField.bool("uroce.flags.recv", "Consumes a receive", 8, nil, 0x01),
	claim = ProtoField.uint8("uroce.flags.claim", "Queue class of the refusal", base.DEC, classes, 0x18),
	psn_offset = ProtoField.uint24("uroce.psn_offset", "PSN_OFFSET, packet of the message",
		base.DEC),
	rwqen = ProtoField.uint24("uroce.rwqen", "RWQEN, receive", base.DEC),

	reth = ProtoField.none("uroce.reth", "RETH, memory of the message"),
	va = ProtoField.uint64("uroce.va", "Virtual address", base.HEX),
	rkey = ProtoField.uint32("uroce.rkey", "R_Key", base.HEX),
	length = ProtoField.uint32("uroce.length", "Length", base.DEC),

	atomiceth = ProtoField.none("uroce.atomiceth", "AtomicETH"),
	swap = ProtoField.uint64("uroce.swap", "Swap", base.HEX),
	add = ProtoField.uint64("uroce.add", "Add", base.HEX),
	compare = ProtoField.uint64("uroce.compare", "Compare", base.HEX),

	imm = ProtoField.uint32("uroce.imm", "Immediate data", base.HEX),
	invalidate = ProtoField.uint32("uroce.invalidate", "R_Key to invalidate", base.HEX),

	aeth = ProtoField.none("uroce.aeth", "AETH, acknowledgement"),
	syndrome = ProtoField.uint8("uroce.syndrome", "Syndrome", base.HEX),
	kind = ProtoField.uint8("uroce.syndrome.kind", "Kind", base.DEC, syndrome_kinds, 0x60),
	credits = ProtoField.uint8("uroce.syndrome.credits", "Credit code", base.DEC, nil, 0x1f),
	rnr_timer = ProtoField.uint8("uroce.syndrome.rnr_timer", "RNR timer code", base.DEC, nil,
		0x1f),
	nak = ProtoField.uint8("uroce.syndrome.nak", "NAK code", base.DEC, nak_codes, 0x1f),
	msn = ProtoField.uint24("uroce.msn", "MSN, messages complete", base.DEC),

	xaeth = ProtoField.none("uroce.xaeth", "XAETH, extended response header"),
	echo = ProtoField.uint32("uroce.echo", "Echoed stamp", base.DEC, nil, nil, "In 16 ns"),
	residence = ProtoField.uint32("uroce.residence", "Residence", base.DEC, nil, nil,
		"From the request's arrival to this packet's departure, in 16 ns"),
	echo_path = ProtoField.uint8("uroce.echo_path", "Echoed path"),
	epsn = ProtoField.uint24("uroce.epsn", "ePSN, expected next", base.DEC),

	xrth = ProtoField.none("uroce.xrth", "XRTH, what is answered"),
	original = ProtoField.uint64("uroce.original", "Value found by the atomic", base.HEX),

	asth = ProtoField.none("uroce.asth", "ASTH, status of a receive pool"),
	status = ProtoField.uint8("uroce.asth.status", "Status", base.DEC, statuses, 0xc0),
	class = ProtoField.uint8("uroce.asth.class", "Queue class", base.DEC, classes, 0x30),
	grant = ProtoField.bool("uroce.asth.grant", "Grant", 8, nil, 0x08),
	room = ProtoField.uint8("uroce.asth.room", "Receives not reserved", base.DEC),
	generation = ProtoField.uint16("uroce.asth.generation", "Generation", base.DEC),
	pool = ProtoField.uint32("uroce.pool", "Pool", base.DEC),

	delay = ProtoField.uint16("uroce.delay", "Delay in switches, code", base.DEC),
	delay_hops = ProtoField.uint8("uroce.delay.hops", "Switches that have added to it", base.DEC),
	delay_ns = ProtoField.uint64("uroce.delay.ns", "Delay in switches, ns", base.DEC),
	ndth = ProtoField.none("uroce.ndth", "NDTH, delay of the request that is answered"),
	ndth_hops = ProtoField.uint8("uroce.ndth.hops", "Switches that have added to it", base.DEC, nil, 0xf8),
	ndth_delay = ProtoField.uint16("uroce.ndth.delay", "Delay in switches, code", base.DEC),
	ndth_ns = ProtoField.uint64("uroce.ndth.ns", "Delay in switches, ns", base.DEC),
	bpth = ProtoField.none("uroce.bpth", "BPTH, part of the bitmap"),
	bpth_more = ProtoField.bool("uroce.bpth.more", "Packets behind the part have arrived", 8, nil, 0x01),
	bpth_offset = ProtoField.uint24("uroce.bpth.offset", "Offset of the part", base.DEC),

	sack = ProtoField.bytes("uroce.sack", "Bitmap of what arrived beyond ePSN"),
	missing = ProtoField.string("uroce.sack.missing", "Missing PSNs"),
	missing_cnt = ProtoField.uint32("uroce.sack.missing_cnt", "Missing", base.DEC),
	arrived = ProtoField.string("uroce.sack.arrived", "Arrived PSNs"),
	arrived_cnt = ProtoField.uint32("uroce.sack.arrived_cnt", "Arrived", base.DEC),

	payload = ProtoField.bytes("uroce.payload", "Payload"),

	icrc = ProtoField.uint32("uroce.icrc", "ICRC", base.HEX),
	icrc_status = ProtoField.string("uroce.icrc.status", "ICRC status", base.NONE,
		"good, bad or unverified"),
	icrc_expected = ProtoField.uint32("uroce.icrc.expected", "Computed ICRC", base.HEX),
}

local note = {
	icrc = ProtoExpert.new("uroce.icrc.bad", "Bad ICRC", expert.group.CHECKSUM,
		expert.severity.ERROR),
	short = ProtoExpert.new("uroce.short", "Shorter than the headers of its opcode",
		expert.group.MALFORMED, expert.severity.ERROR),
	opcode = ProtoExpert.new("uroce.unknown_opcode", "Unknown opcode of extended mode",
		expert.group.UNDECODED, expert.severity.WARN),
}

local function values(t)
	local list = {}
	for _, v in pairs(t) do
		list[#list + 1] = v
	end
	return list
end
uroce.fields = values(f)
uroce.experts = values(note)

-- ---- headers: each has a length in bytes and a function that shows it ----

local function stamp_text(stamp)
	return string.format(" (%.3f us)", stamp:uint() * STAMP_NS / 1000)
end

local XTH = { bytes = 16, show = function(tree, h, info)
	local t = tree:add(f.xth, h)
	t:add(f.stamp, h(0, 4)):append_text(stamp_text(h(0, 4)))
	t:add(f.path, h(4, 1))
	t:add(f.ssn, h(5, 3))
	local flags = t:add(f.flags, h(8, 1))
	flags:add(f.back, h(8, 1))
	flags:add(f.twice, h(8, 1))
	flags:add(f.retry, h(8, 1))
	flags:add(f.last_read, h(8, 1))
	flags:add(f.recv, h(8, 1))
	flags:add(f.claim, h(8, 1))
	t:add(f.psn_offset, h(9, 3))
	if band(h(8, 1):uint(), 0x01) ~= 0 then
		t:add(f.rwqen, h(13, 3))
	end
	info:append(string.format(" SSN=%d offset=%d", h(5, 3):uint(), h(9, 3):uint()))
end }

local RETH = { bytes = 16, show = function(tree, h)
	local t = tree:add(f.reth, h)
	t:add(f.va, h(0, 8))
	t:add(f.rkey, h(8, 4))
	t:add(f.length, h(12, 4))
end }

local CAS = { bytes = 28, show = function(tree, h)
	local t = tree:add(f.atomiceth, h)
	t:add(f.va, h(0, 8))
	t:add(f.rkey, h(8, 4))
	t:add(f.swap, h(12, 8))
	t:add(f.compare, h(20, 8))
end }

local FETCH_ADD = { bytes = 28, show = function(tree, h)
	local t = tree:add(f.atomiceth, h)
	t:add(f.va, h(0, 8))
	t:add(f.rkey, h(8, 4))
	t:add(f.add, h(12, 8))
end }

local IMM = { bytes = 4, show = function(tree, h)
	tree:add(f.imm, h)
end }

local IETH = { bytes = 4, show = function(tree, h)
	tree:add(f.invalidate, h)
end }

-- Receives that a credit code stands for; RNR timer codes are the same steps, of 10 us.
local function steps(code)
	return code < 2 and code or (2 + code % 2) * 2 ^ (math.floor(code / 2) - 1)
end

local function syndrome_text(kind, code)
	if kind == 0 then
		return code == 31 and " no flow control" or string.format(" %d receives", steps(code))
	elseif kind == 1 then
		return string.format(" %.2f ms", (code == 0 and 65536 or steps(code)) / 100)
	end
	return ""
end

local AETH = { bytes = 4, show = function(tree, h, info)
	local t = tree:add(f.aeth, h)
	local syndrome = h(0, 1)
	local kind, code = rshift(band(syndrome:uint(), 0x60), 5), band(syndrome:uint(), 0x1f)
	local s = t:add(f.syndrome, syndrome)
	local by_kind = { [0] = f.credits, [1] = f.rnr_timer, [3] = f.nak }

	s:add(f.kind, syndrome)
	if by_kind[kind] then
		s:add(by_kind[kind], syndrome):append_text(syndrome_text(kind, code))
	end
	t:add(f.msn, h(1, 3))
	info:append(" " .. syndrome_kinds[kind])
	if kind == 3 then
		info:append(" " .. (nak_codes[code] or "reserved"))
	end
end }

local XAETH = { bytes = 12, show = function(tree, h, info)
	local t = tree:add(f.xaeth, h)
	t:add(f.echo, h(0, 4)):append_text(stamp_text(h(0, 4)))
	t:add(f.residence, h(4, 4)):append_text(stamp_text(h(4, 4)))
	t:add(f.echo_path, h(8, 1))
	t:add(f.epsn, h(9, 3))
	info:append(string.format(" ePSN=%d", h(9, 3):uint()))
end }

local XRTH = { bytes = 8, show = function(tree, h, info)
	local t = tree:add(f.xrth, h)
	t:add(f.ssn, h(1, 3))
	t:add(f.psn_offset, h(5, 3))
	info:append(string.format(" SSN=%d offset=%d", h(1, 3):uint(), h(5, 3):uint()))
end }

local ATOMICACKETH = { bytes = 8, show = function(tree, h)
	tree:add(f.original, h)
end }

local ASTH = { bytes = 4, show = function(tree, h, info)
	local t = tree:add(f.asth, h)
	t:add(f.status, h(0, 1))
	t:add(f.class, h(0, 1))
	t:add(f.grant, h(0, 1))
	t:add(f.room, h(1, 1))
	t:add(f.generation, h(2, 2))
	info:append(string.format(" %s generation=%d", statuses[rshift(h(0, 1):uint(), 6)],
		h(2, 2):uint()))
end }

local POOL = { bytes = 4, show = function(tree, h)
	tree:add(f.pool, h)
end }

-- Nanoseconds of the code of a delay (docs/wire-format.md).
local function delay_ns(code)
	local exponent, mantissa = rshift(code, 12), band(code, 0xfff)

	return STAMP_NS * (exponent == 0 and mantissa or (4096 + mantissa) * 2 ^ (exponent - 1))
end

local DELAY_ASK, DELAY_HOPS, DELAY_VOID = 0x20, 0x1f, 31

-- `hops` and `delay`: the values at `h`; `ns`: the field of the nanoseconds.
local function show_delay(tree, h, hops, delay, ns)
	if hops == DELAY_VOID then
		tree:append_text(" (not to be used)")
	else
		tree:add(ns, h, UInt64(delay_ns(delay))):set_generated()
	end
end

local NDTH = { bytes = 4, show = function(tree, h, info)
	local t = tree:add(f.ndth, h)
	local hops = rshift(h(0, 1):uint(), 3)

	t:add(f.ndth_hops, h(0, 1))
	show_delay(t:add(f.ndth_delay, h(2, 2)), h(2, 2), hops, h(2, 2):uint(), f.ndth_ns)
end }

local BPTH = { bytes = 4, show = function(tree, h, info)
	local t = tree:add(f.bpth, h)

	t:add(f.bpth_more, h(0, 1))
	t:add(f.bpth_offset, h(1, 3))
end }

-- `bits`: byte 4 of the BTH; `checksum`: of UDP, which carries the delay if the packet asks for it.
local function show_stamp(tree, bits, checksum)
	local hops = band(bits:uint(), DELAY_HOPS)

	if band(bits:uint(), DELAY_ASK) == 0 then
		return
	end
	tree:add(f.delay_hops, bits, hops)
	show_delay(tree:add(f.delay, checksum), checksum, hops, checksum:uint(), f.delay_ns)
end

-- number -> { name, headers }
local opcodes = {}

local function define(number, name, headers)
	opcodes[number] = { name = "EXT_" .. name, headers = headers }
end

for number, name in pairs({ [0xc0] = "SEND_FIRST", [0xc1] = "SEND_MIDDLE", [0xc2] = "SEND_LAST",
	[0xc4] = "SEND_ONLY", [0xd8] = "PROBE" }) do
	define(number, name, { XTH })
end
define(0xc3, "SEND_LAST_IMM", { XTH, IMM })
define(0xc5, "SEND_ONLY_IMM", { XTH, IMM })
for number, name in pairs({ [0xc6] = "WRITE_FIRST", [0xc7] = "WRITE_MIDDLE", [0xc8] = "WRITE_LAST",
	[0xca] = "WRITE_ONLY", [0xcc] = "READ_REQUEST" }) do
	define(number, name, { XTH, RETH })
end
define(0xc9, "WRITE_LAST_IMM", { XTH, RETH, IMM })
define(0xcb, "WRITE_ONLY_IMM", { XTH, RETH, IMM })
for number, name in pairs({ [0xcd] = "FIRST", [0xce] = "MIDDLE", [0xcf] = "LAST", [0xd0] = "ONLY" }) do
	define(number, "READ_RESPONSE_" .. name, { AETH, XAETH, XRTH })
end
define(0xd1, "ACKNOWLEDGE", { AETH, XAETH })
define(0xd2, "ATOMIC_ACKNOWLEDGE", { AETH, XAETH, XRTH, ATOMICACKETH })
define(0xd3, "COMPARE_SWAP", { XTH, CAS })
define(0xd4, "FETCH_ADD", { XTH, FETCH_ADD })
define(0xd6, "SEND_LAST_INV", { XTH, IETH })
define(0xd7, "SEND_ONLY_INV", { XTH, IETH })
define(0xd9, "NOTIFY", { ASTH, POOL })
define(0xda, "ACKNOWLEDGE_STATUS", { AETH, XAETH, ASTH })
define(0xdb, "ACKNOWLEDGE_DELAY", { AETH, XAETH, NDTH })
define(0xdc, "ACKNOWLEDGE_STATUS_DELAY", { AETH, XAETH, ASTH, NDTH })
define(0xdd, "ACKNOWLEDGE_PART", { AETH, XAETH, BPTH })
define(0xde, "ACKNOWLEDGE_STATUS_PART", { AETH, XAETH, ASTH, BPTH })

local BITMAP_FOLLOWS = { [0xd1] = XAETH, [0xda] = XAETH, [0xdb] = XAETH, [0xdc] = XAETH,
	[0xdd] = XAETH, [0xde] = XAETH }

-- ---- the bitmap of an acknowledgement ----

-- Whether each of the numbers ePSN, ePSN + 1, ... has arrived, up to the last that has.
local function arrivals(map)
	local list, last = { false }, 0

	for i = 0, math.min(map:len(), SACK_BYTES_MAX) - 1 do
		local byte = map(i, 1):uint()
		for b = 0, 7 do
			list[#list + 1] = band(rshift(byte, b), 1) == 1
			if list[#list] then
				last = #list
			end
		end
	end
	return list, last
end

-- "7 10..12" and 4: the PSNs that have (not) arrived, and how many.
local function ranges(list, last, epsn, wanted)
	local texts, cnt, i = {}, 0, 1

	while i <= last do
		local first = i
		while i <= last and list[i] == wanted do
			i = i + 1
		end
		if i > first then
			local a, b = band(epsn + first - 1, PSN_MASK), band(epsn + i - 2, PSN_MASK)
			texts[#texts + 1] = a == b and tostring(a) or a .. ".." .. b
			cnt = cnt + i - first
		else
			i = i + 1
		end
	end
	return table.concat(texts, " "), cnt
end

-- `offset`: of the first bit; with one, nothing is said of ePSN.
local function show_sack(tree, map, epsn, offset)
	local t = tree:add(f.sack, map)
	local list, last = arrivals(map)

	if offset > 0 then
		table.remove(list, 1)
		last = math.max(last - 1, 0)
		epsn = epsn + offset + 1
	end
	local missing, missing_cnt = ranges(list, last, epsn, false)
	local arrived, arrived_cnt = ranges(list, last, epsn, true)

	t:add(f.missing, map, missing)
	t:add(f.missing_cnt, map, missing_cnt)
	t:add(f.arrived, map, arrived)
	t:add(f.arrived_cnt, map, arrived_cnt)
end

-- ---- a packet ----

-- Headers, bitmap and payload of the extended packet `bth`, from the BTH to the pad, or of what the
-- capture has of it when that is not the whole.
local function show_extended(tree, bth, whole, info)
	local number = bth(0, 1):uint()
	local op = opcodes[number]
	local at = BTH_BYTES

	tree:add(f.opcode_nr, bth(0, 1))
	if op then
		tree:append_text(", " .. op.name)
		tree:add(f.opcode, bth(0, 1), op.name)
	end
	tree:add(f.dest_qp, bth(5, 3))
	tree:add(f.ackreq, bth(8, 1), band(bth(8, 1):uint(), 0x80) ~= 0)
	tree:add(f.psn, bth(9, 3))
	if not op then
		tree:add_proto_expert_info(note.opcode)
		return
	end
	local epsn, offset = nil, 0
	info:set(string.format("%s QP=0x%06x PSN=%d", op.name, bth(5, 3):uint(), bth(9, 3):uint()))
	for _, header in ipairs(op.headers) do
		if at + header.bytes > bth:len() then
			if whole then
				tree:add_proto_expert_info(note.short)
			end
			return
		end
		header.show(tree, bth(at, header.bytes), info)
		if header == BITMAP_FOLLOWS[number] then
			epsn = bth(at + 9, 3):uint()
		elseif header == BPTH then
			offset = bth(at + 1, 3):uint()
		end
		at = at + header.bytes
	end
	local pad = whole and rshift(band(bth(1, 1):uint(), 0x30), 4) or 0
	local left = bth:len() - at - pad
	if left <= 0 then
		return
	elseif epsn then
		show_sack(tree, bth(at, left), epsn, offset)
	else
		tree:add(f.payload, bth(at, left))
	end
end

local function show_icrc(tree, tvb, l3, udp, v6, bth_end, info)
	local sent = tvb(bth_end, ICRC_BYTES)
	local item = tree:add_le(f.icrc, sent)
	local expected, status

	if not uroce.prefs.verify_icrc then
		item:add(f.icrc_status, sent, "unverified"):set_generated()
		return
	end
	expected = icrc_of(tvb:raw(l3, bth_end - l3), v6, udp - l3)
	status = expected == sent:le_uint() and "good" or "bad"
	item:append_text(" (" .. status .. ")")
	item:add(f.icrc_status, sent, status):set_generated()
	if status == "bad" then
		item:add(f.icrc_expected, sent, expected):set_generated()
		item:add_proto_expert_info(note.icrc)
		info:append(" [bad ICRC]")
	end
end

-- ---- management datagrams: what uroce adds ----

local MAD_BYTES, DETH_BYTES = 256, 8
local UROCE_OUI = 0x027572
local CLASS_LID, CLASS_VENDOR, CLASS_DR = 0x01, 0x4a, 0x81

-- registers: begin (made by scripts/gen_registers)
local PORT_REGISTERS, PORT_WINDOW = 0x100, 0x40
local node_registers = {
	[0x000] = "ID",
	[0x001] = "NODE_GUID",
	[0x002] = "NODE_TYPE",
	[0x003] = "PORTS",
	[0x004] = "UPTIME_NS",
	[0x005] = "SCRATCH",
	[0x010] = "LOAD",
	[0x011] = "MEMPOOL",
	[0x012] = "RING",
	[0x020] = "FAULT_ENABLE",
	[0x021] = "FAULT_MASK",
	[0x022] = "FAULT_STATUS",
	[0x023] = "FAULT_COUNT",
	[0x024] = "FAULT_SEVERITY",
	[0x025] = "FAULT_HERE",
	[0x026] = "FAULT_CAUSE",
	[0x027] = "FAULT_TIME_NS",
	[0x028] = "SCAN_NS",
	[0x029] = "LOAD_LIMIT",
	[0x02a] = "MEMPOOL_LIMIT",
	[0x02b] = "RING_LIMIT",
	[0x02c] = "ERROR_LIMIT",
	[0x02d] = "RETRANSMIT_LIMIT",
	[0x02e] = "FAULT_VALUE",
	[0x02f] = "FAULT_LIMIT",
	[0x030] = "AGENT_RX",
	[0x031] = "AGENT_TX",
	[0x032] = "AGENT_EXECUTED",
	[0x033] = "AGENT_REPEATED",
	[0x034] = "AGENT_FULL",
	[0x035] = "AGENT_BAD_KEY",
	[0x036] = "AGENT_MALFORMED"
}
local port_registers = {
	[0x000] = "STATE",
	[0x001] = "BPS",
	[0x002] = "NEIGHBOUR_GUID",
	[0x003] = "NEIGHBOUR_PORT",
	[0x008] = "LINK_DOWNED",
	[0x009] = "RX_ERRORS",
	[0x00a] = "OVERRUNS",
	[0x00b] = "SYMBOL_ERRORS",
	[0x00c] = "INTEGRITY",
	[0x00d] = "EXCESSIVE_OVERRUNS",
	[0x00e] = "FLOW_CONTROL",
	[0x010] = "TX_DISCARDS",
	[0x011] = "RETRANSMITTED",
	[0x012] = "TIMEOUTS",
	[0x013] = "VL15_DROPPED",
	[0x014] = "LINK_RECOVERED",
	[0x018] = "TX_WAIT",
	[0x019] = "HANDSHAKES",
	[0x01a] = "TX_PACKETS",
	[0x01b] = "RX_PACKETS",
	[0x01c] = "TX_BYTES",
	[0x01d] = "RX_BYTES",
	[0x020] = "BIST_CONTROL",
	[0x021] = "BIST_DURATION_NS",
	[0x022] = "BIST_RATE",
	[0x023] = "BIST_PATTERN",
	[0x024] = "BIST_SENT",
	[0x025] = "BIST_RETURNED",
	[0x026] = "BIST_ERRORS"
}
-- registers: end

-- "UPTIME_NS", "TX_BYTES:3"; nil: there is no such register.
local function register_name(address)
	local at = address - PORT_REGISTERS
	local name

	if at < 0 then
		return node_registers[address]
	end
	name = port_registers[at % PORT_WINDOW]
	return name and name .. ":" .. math.floor(at / PORT_WINDOW)
end

local function show_registers(tree, body)
	local cnt = math.min(body(0, 1):uint(), 2)

	tree:add(f.mgmt_count, body(0, 1))
	tree:add(f.mgmt_error, body(1, 1))
	for i = 0, cnt - 1 do
		local address = body(4 + 2 * i, 2)
		local name, item = register_name(address:uint()), tree:add(f.register, address)

		if name then
			item:add(f.register_name, address, name):set_generated()
			item:append_text(" (" .. name .. ")")
		end
		item:add(f.register_value, body(8 + 8 * i, 8))
	end
end

local function show_eeprom(tree, body)
	local cnt = math.min(body(0, 1):uint(), 6)

	tree:add(f.mgmt_count, body(0, 1))
	tree:add(f.mgmt_error, body(1, 1))
	for i = 0, cnt - 1 do
		tree:add(f.eeprom, body(4 + 2 * i, 2)):add(f.eeprom_value, body(16 + i, 1))
	end
end

local function show_bist(tree, body)
	tree:add(f.bist_sequence, body(0, 8))
	tree:add(f.bist_pattern, body(8, 1))
end

local function show_manager(tree, body)
	tree:add(f.manager_guid, body(0, 8))
	tree:add(f.manager_priority, body(20, 1), rshift(body(20, 1):uint(), 4))
	tree:add(f.manager_state, body(20, 1), band(body(20, 1):uint(), 0x0f))
	tree:add(f.manager_seats, body(21, 1))
	tree:add(f.manager_held, body(22, 1))
	tree:add(f.manager_zone, body(24, 8))
	tree:add(f.manager_proof, body(8, 8))
	tree:add(f.manager_number, body(56, 8))
end

local function show_route(tree, body)
	tree:add(f.route_sport, body(16, 2))
	tree:add(f.route_port, body(19, 1))
	tree:add(f.route_lid, body(20, 2))
	tree:add(f.route_ports, body(24, 8))
end

-- A notice of uroce's vendor id; others are the built-in dissector's.
local function show_notice(tree, body)
	local d = body(10, 54)

	tree:add(f.fault_severity, d(0, 1))
	tree:add(f.fault_cause, d(1, 1))
	tree:add(f.fault_port, d(2, 1))
	tree:add(f.fault_sequence, d(4, 4))
	tree:add(f.fault_time, d(8, 8))
	tree:add(f.fault_value, d(16, 8))
	tree:add(f.fault_limit, d(24, 8))
	tree:add(f.fault_node, d(32, 8))
end

local function is_our_notice(body)
	return band(body(0, 1):uint(), 0x80) == 0 and body(1, 3):uint() == UROCE_OUI
end

local smp_attributes = { [0xff10] = { "registers", show_registers }, [0xff11] = { "E2PROM", show_eeprom },
	[0xff12] = { "manager of a zone", show_manager }, [0xff13] = { "route to an address", show_route } }
local vendor_attributes = { [0x10] = { "registers", show_registers }, [0x11] = { "E2PROM", show_eeprom },
	[0x12] = { "link test", show_bist } }
local fault_report = { "fault report", show_notice }

-- `mad`: 256 bytes.
local function show_mad(tree, mad, info)
	local class, attr_id = mad(1, 1):uint(), mad(16, 2):uint()
	local attr, key, body, sub

	if class == CLASS_VENDOR and mad(37, 3):uint() == UROCE_OUI then
		key, body, attr = mad(40, 8), mad(48, 208), vendor_attributes[attr_id]
	elseif class == CLASS_LID or class == CLASS_DR then
		key, body, attr = mad(24, 8), mad(64, 64), smp_attributes[attr_id]
	else
		return
	end
	if attr_id == 0x02 and is_our_notice(body) then
		attr = fault_report
	end
	if not attr then
		return
	end
	sub = tree:add(f.mgmt, body)
	sub:add(f.mgmt_attr, mad(16, 2), attr[1])
	sub:add(f.mgmt_key, key)
	attr[2](sub, body)
	info:append(" [uroce: " .. attr[1] .. "]")
end

-- One UDP datagram to the RoCE port. `l3` and `udp`: where IP and UDP header begin in tvb.
local function show_packet(tvb, l3, udp, pinfo, root)
	local v6 = rshift(tvb(l3, 1):uint(), 4) == 6
	local bth = udp + UDP_BYTES
	local bth_end = udp + tvb(udp + 4, 2):uint() - ICRC_BYTES
	local whole = bth_end + ICRC_BYTES <= tvb:captured_len()
	local seen_end = math.min(bth_end, tvb:captured_len())
	local tree

	if seen_end < bth + BTH_BYTES then
		return
	end
	tree = root:add(uroce, tvb(bth, math.min(bth_end + ICRC_BYTES, tvb:captured_len()) - bth))
	if band(tvb(bth, 1):uint(), 0xe0) == 0xc0 then
		pinfo.cols.protocol = "uroce"
		show_extended(tree, tvb(bth, seen_end - bth), whole, pinfo.cols.info)
		show_stamp(tree, tvb(bth + 4, 1), tvb(udp + 6, 2))
	end
	if tvb(bth, 1):uint() == 0x64 and tvb(bth + 5, 3):uint() <= 1 and
		seen_end == bth + BTH_BYTES + DETH_BYTES + MAD_BYTES then
		show_mad(tree, tvb(seen_end - MAD_BYTES, MAD_BYTES), pinfo.cols.info)
	end
	if whole then
		show_icrc(tree, tvb, l3, udp, v6, bth_end, pinfo.cols.info)
	else
		tree:add(f.icrc_status, "unverified"):set_generated()
	end
end

-- ---- behind the built-in dissectors, which have found the headers ----

local find_udp, find_ipv4, find_ipv6 = Field.new("udp"), Field.new("ip"), Field.new("ipv6")

-- The start of the IP header nearest before `udp` in the same bytes.
local function ip_before(udp)
	local best

	for _, all in ipairs({ { find_ipv4() }, { find_ipv6() } }) do
		for _, ip in ipairs(all) do
			if ip.offset < udp and (not best or ip.offset > best) then
				best = ip.offset
			end
		end
	end
	return best
end

function uroce.dissector(tvb, pinfo, root)
	for _, udp in ipairs({ find_udp() }) do
		local at = udp.offset
		local l3 = ip_before(at)
		-- A datagram put together from fragments is not RoCE and lies in other bytes than tvb.
		if l3 and at + UDP_BYTES <= tvb:captured_len() and
			udp.source:len() == tvb:len() and tvb(at + 2, 2):uint() == ROCE_UDP_PORT then
			show_packet(tvb, l3, at, pinfo, root)
		end
	end
end

register_postdissector(uroce)
