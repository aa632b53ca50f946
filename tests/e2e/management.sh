#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The management agent of a running endpoint: asked by frames that management.py makes, beside a bandwidth test. tshark
# dissects what both sent.
. "$(dirname "$0")/lib.sh"
need_veth 4300

start_server "${server_a[@]}" --set management.m_key=0x1122334455667788 --set management.description="a server" \
	--set management.eeprom="$tmp/eeprom"
mac=$("${in_a[@]}" cat /sys/class/net/uroce0/address)
"${in_b[@]}" timeout 60 python3 "$(dirname "$0")/management.py" uroce1 "$mac" "$tmp/mads.pcap" >"$tmp/ask.log" 2>&1 ||
	fail "the agent does not answer as it should"
cat "$tmp/ask.log"
stop_server
[ "$(stat -c %s "$tmp/eeprom")" = 65536 ] || fail "the E2PROM's file does not have 65536 bytes"
[ "$(od -An -tx1 -j 300 -N 2 "$tmp/eeprom" | tr -d ' \n')" = abcd ] || fail "the E2PROM's file does not have what was written"
{ cat "$tmp/eeprom"; printf x; } >"$tmp/longer"
timeout 60 "${server_a[@]}" --set management.eeprom="$tmp/longer" >"$tmp/refused.log" 2>&1 && fail "a file that is too long is taken"
grep -q 'does not have the 65536 bytes' "$tmp/refused.log" || fail "a file that is too long is not refused"
[ "$(stat -c %s "$tmp/longer")" = 65537 ] || fail "a file that was refused is cut"
echo "E2PROM: written to its file"

start_server "${server_a[@]}" --set management.agent=no
"${in_b[@]}" timeout 60 python3 "$(dirname "$0")/management.py" uroce1 "$mac" "$tmp/none.pcap" silent >"$tmp/ask.log" 2>&1 ||
	fail "an endpoint without an agent answers"
stop_server
echo "agent = no: silent"

command -v tshark >/dev/null || skip "tshark is not installed; the rest went well"
tshark -n -r "$tmp/mads.pcap" -V >"$tmp/shark.log" 2>/dev/null || fail "tshark cannot read the packets"
! grep -qi malformed "$tmp/shark.log" || fail "tshark finds malformed packets"
# shark FIELD VALUE: it finds the field with this value.
shark()
{
	tshark -n -r "$tmp/mads.pcap" -T fields -e "infiniband.$1" 2>/dev/null | tr ',' '\n' | grep -qix -- "$2" ||
		fail "tshark finds no infiniband.$1 of $2"
}
shark nodeinfo.nodetype 0x01
shark portinfo.lid 0x0009
shark portinfo.m_key 0x1122334455667788
shark vlarbitrationtable.weight 0x40
shark vlarbitrationtable.vl 0x0e
shark sltovlmappingtable.sltovllowbits 0x0d
shark p_keytable.p_keybase 0x7fff

# The names of what uroce adds.
lua=$UROCE_SOURCE/docs/wireshark/uroce.lua
# ours FIELD VALUE...: the dissector in Lua shows these values of the field, in this order.
ours()
{
	local field=$1 got
	shift
	got=$(tshark -n -X "lua_script:$lua" -r "$tmp/mads.pcap" -Y "uroce.mgmt.$field" -T fields -e "uroce.mgmt.$field" \
		2>"$tmp/lua.log" | tr '\n' ' ')
	[ "$got" = "$* " ] || fail "the dissector shows uroce.mgmt.$field: $got"
}
echo 'print("Lua runs")' >"$tmp/hello.lua"
if tshark -X "lua_script:$tmp/hello.lua" -r "$tmp/mads.pcap" -c 1 2>&1 | grep -q 'Lua runs'; then
	ours attribute registers registers registers registers registers registers registers registers registers registers \
		E2PROM E2PROM E2PROM E2PROM
	ours register 0x0000,0x0002 0x0000,0x0002 0x0005 0x0005 0x0005 0x0005 0x0005 0x0005 0x0010,0x0011 0x0010,0x0011
	ours register.name ID,NODE_TYPE ID,NODE_TYPE SCRATCH SCRATCH SCRATCH SCRATCH SCRATCH SCRATCH LOAD,MEMPOOL LOAD,MEMPOOL
	ours error 0 0 0 5 0 0 0 0 0 0 0 0 0 0
	ours eeprom.value 0xab,0xcd 0xab,0xcd 0x00,0x00,0x00,0x00,0x00,0x00 0xab,0xcd,0xff,0xff,0xff,0xff
	[ -z "$(tshark -n -X "lua_script:$lua" -r "$tmp/mads.pcap" -Y 'uroce.icrc.status == "bad"' 2>/dev/null)" ] ||
		fail "the dissector finds a wrong ICRC"
fi
echo "tshark: $(tshark -n -r "$tmp/mads.pcap" -Y infiniband.mad 2>/dev/null | wc -l) MADs, none malformed"
