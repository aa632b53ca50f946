#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The output of tshark with docs/wireshark/uroce.lua: every field of extended mode, and the ICRC of every
# RoCEv2 packet.
# Usage: dissector.sh SOURCE-DIRECTORY PATH-OF-UROCE-PCAP PATH-OF-EXT_CAPTURE
set -u
source=$1
pcap_tool=$2
ext_capture=$3
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
failed=0
# Without the user's preferences and plugins.
export HOME="$tmp" XDG_CONFIG_HOME="$tmp" WIRESHARK_CONFIG_DIR="$tmp/config"
unset WIRESHARK_PLUGIN_DIR

skip()
{
	echo "skipped: $*"
	exit 77
}

fails()
{
	echo "FAILED: $1"
	[ -z "${2-}" ] || head -n 20 "$2" | sed 's/^/    /'
	failed=$((failed + 1))
}

# shark FILE OPTION...: tshark with the dissector; what Lua complains of is on standard error.
shark()
{
	file=$1
	shift
	tshark -n -X "lua_script:$source/docs/wireshark/uroce.lua" -r "$file" "$@" 2>"$tmp/err" ||
		fails "tshark: status $?" "$tmp/err"
	if grep -iq 'lua.*error\|\.lua:' "$tmp/err"; then
		fails "Lua error" "$tmp/err"
	fi
}

# shows FILTER FIELDS VALUES: the packets that match show these values, packet by packet, "|" between
# fields; nothing: no packet matches.
shows()
{
	options=
	for e in $2; do
		options="$options -e $e"
	done
	# shellcheck disable=SC2086
	shark "$tmp/ext.pcap" -Y "$1" -T fields -E 'separator=|' $options >"$tmp/got"
	printf '%s' "${3:+$3
}" >"$tmp/want"
	cmp -s "$tmp/got" "$tmp/want" || {
		fails "$1 shows $2 otherwise"
		diff "$tmp/want" "$tmp/got" | head -n 20
	}
}

for program in tshark mergecap editcap; do
	command -v "$program" >/dev/null || skip "$program is not installed"
done
echo 'print("Lua runs")' >"$tmp/hello.lua"
"$ext_capture" "$tmp/ext.pcap" || exit 1
tshark -X "lua_script:$tmp/hello.lua" -r "$tmp/ext.pcap" -c 1 2>&1 | grep -q 'Lua runs' ||
	skip "this tshark runs no Lua scripts, or not for $(id -un)"

# Opcodes have the names that uroce-pcap prints.
"$pcap_tool" "$tmp/ext.pcap" | grep -o 'EXT_[A-Z_]*' >"$tmp/want"
shark "$tmp/ext.pcap" -Y 'uroce.opcode && !uroce.short' -T fields -e uroce.opcode >"$tmp/got"
cmp -s "$tmp/want" "$tmp/got" || fails "opcodes differ from uroce-pcap's" "$tmp/got"
[ "$(sort -u "$tmp/got" | wc -l)" -eq 30 ] || fails "not 30 different opcodes" "$tmp/got"

# Requests.
shows 'frame.number == 10' \
	'uroce.opcode_nr uroce.dest_qp uroce.psn uroce.stamp uroce.path uroce.ssn uroce.psn_offset uroce.rwqen uroce.va uroce.rkey uroce.length uroce.imm' \
	'0xc9|0x123456|16702650|4059231220|13|2171427|3224115|4276803|0x00007f0102030405|0xa1b2c3d4|12345|0xcafef00d'
shows 'frame.number == 1' 'uroce.flags uroce.flags.recv uroce.flags.last_read uroce.flags.retry' '0x05|1|0|1'
shows 'frame.number in {20, 21}' 'uroce.opcode uroce.va uroce.swap uroce.add uroce.compare' \
	'EXT_COMPARE_SWAP|0x00007f01020304f8|0x1122334455667788||0x99aabbccddeeff00
EXT_FETCH_ADD|0x00007f01020304f8||0x1122334455667788|'
shows 'uroce.invalidate' 'uroce.opcode uroce.invalidate' \
	'EXT_SEND_LAST_INV|0x0badcafe
EXT_SEND_ONLY_INV|0x0badcafe'
shows 'frame.number == 5' 'uroce.payload' \
	"$(printf 'every packet says where its pa' | od -An -v -tx1 | tr -d ' \n')"
shows 'frame.number == 24' 'uroce.opcode uroce.stamp uroce.payload' 'EXT_PROBE|4059231220|'

# Responses.
shows 'frame.number == 19' \
	'uroce.syndrome uroce.syndrome.kind uroce.syndrome.credits uroce.msn uroce.echo uroce.residence uroce.echo_path uroce.epsn uroce.ssn uroce.psn_offset uroce.original' \
	'0x1f|0|31|658188|3789743076|16909060|14|16777215|5329491|6382179|0x0123456789abcdef'
shows 'uroce.sack' \
	'frame.number uroce.syndrome.nak uroce.epsn uroce.sack uroce.sack.missing uroce.sack.missing_cnt uroce.sack.arrived uroce.sack.arrived_cnt' \
	'31|0|7|23000000|7 10..12|4|8..9 13|3
36|0|7|23000000|7 10..12|4|8..9 13|3
41|0|7|23000000|7 10..12|4|8..9 13|3
46|0|7|23000000|7 10..12|4|8..9 13|3
57|0|7|23000000|2058..2060|3|2056..2057 2061|3'
shows 'uroce.xth && uroce.xaeth' 'frame.number' ''
shows 'uroce.asth' \
	'frame.number uroce.opcode uroce.psn uroce.epsn uroce.asth.status uroce.asth.class uroce.asth.grant uroce.asth.room uroce.asth.generation uroce.pool' \
	'25|EXT_NOTIFY|16702650||3|1|1|7|33154|2442302356
26|EXT_ACKNOWLEDGE_STATUS|16702650|16777215|3|1|1|7|33154|
28|EXT_ACKNOWLEDGE_STATUS_DELAY|16702650|16777215|3|1|1|7|33154|
30|EXT_ACKNOWLEDGE_STATUS_PART|16702650|16777215|3|1|1|7|33154|'

# Parts of a bitmap.
shows 'uroce.bpth' 'frame.number uroce.opcode uroce.bpth.more uroce.bpth.offset uroce.sack.missing uroce.sack.arrived' \
	'29|EXT_ACKNOWLEDGE_PART|1|2048||
30|EXT_ACKNOWLEDGE_STATUS_PART|1|2048||
57|EXT_ACKNOWLEDGE_PART|1|2048|2058..2060|2056..2057 2061'

# Delays in switches: those that are answered, and those that are stamped.
shows 'uroce.ndth' 'frame.number uroce.opcode uroce.ndth.hops uroce.ndth.delay uroce.ndth.ns' \
	'27|EXT_ACKNOWLEDGE_DELAY|3|9029|157856
28|EXT_ACKNOWLEDGE_STATUS_DELAY|3|9029|157856'
shows 'uroce.delay' 'frame.number uroce.delay.hops uroce.delay uroce.delay.ns' \
	'54|2|8193|131104
55|31|8193|'
shows 'frame.number == 1' 'uroce.flags.claim' '0'

# The ICRC, over IPv4, IPv6 and VLAN; the built-in dissector goes on with standard packets.
shows 'uroce.icrc.status == "bad"' 'frame.number uroce.opcode infiniband.bth.opcode uroce.icrc uroce.icrc.expected' \
	'33|EXT_PROBE|216|0x5c3d0ca2|0x418a1cc6
35||4|0x731302cd|0x6ea412a9
38|EXT_PROBE|216|0xf27f772b|0xefc8674f
40||4|0x0fd4c283|0x1263d2e7
43|EXT_PROBE|216|0x5c3d0ca2|0x418a1cc6
45||4|0x731302cd|0x6ea412a9
48|EXT_PROBE|216|0xf27f772b|0xefc8674f
50||4|0x0fd4c283|0x1263d2e7'
shark "$tmp/ext.pcap" -T fields -e uroce.icrc.status | sort | uniq -c | tr -s ' ' >"$tmp/got"
printf ' 8 bad\n 49 good\n' | cmp -s - "$tmp/got" || fails "not 8 bad and 49 good" "$tmp/got"
shark "$tmp/ext.pcap" -Y '_ws.expert.severity == "Error" && uroce.icrc.bad' >"$tmp/got"
[ "$(wc -l <"$tmp/got")" -eq 8 ] || fails "no expert information on a bad ICRC" "$tmp/got"
shows 'uroce.short' 'frame.number uroce.opcode' '52|EXT_WRITE_ONLY'
shows 'uroce.unknown_opcode' 'frame.number uroce.opcode_nr' '53|0xdf'

# A packet of which the capture has too little to tell.
editcap -s 70 "$tmp/ext.pcap" "$tmp/cut.pcap" && mv "$tmp/cut.pcap" "$tmp/ext.pcap"
shows 'frame.number in {10, 24}' 'uroce.ssn uroce.rwqen uroce.va uroce.icrc.status' \
	'2171427|4276803||unverified
2171427|4276803||unverified'

# A switched off verification calls nothing right.
shark "$tmp/ext.pcap" -o uroce.verify_icrc:FALSE -Y 'uroce.icrc.status != "unverified"' >"$tmp/got"
[ ! -s "$tmp/got" ] || fails "verified although switched off" "$tmp/got"

# Packets of another stack: the same verdicts as those of uroce-pcap, packet by packet.
mergecap -a -w "$tmp/golden.pcap" -F pcap "$source"/tests/golden/*.pcap || fails "mergecap"
"$pcap_tool" "$tmp/golden.pcap" | sed 's/.*icrc ok$/good/; s/.*ICRC WRONG.*/bad/; s/.*MALFORMED.*/-/
	s/^[-0-9.]* - .*//' >"$tmp/want"
shark "$tmp/golden.pcap" -T fields -e uroce.icrc.status >"$tmp/got"
paste "$tmp/want" "$tmp/got" | awk -F '\t' '
	$1 != "-" && $1 != $2 { print "packet " NR ": " $1 " here, " $2 " there"; bad++ }
	$1 == "good" { good++ }
	$1 == "bad" { wrong++ }
	END { if (good != 3963 || wrong != 13) print good " good and " wrong " bad"; exit bad > 0 }' \
	>"$tmp/differ" || fails "verdicts differ from uroce-pcap's" "$tmp/differ"
[ ! -s "$tmp/differ" ] || fails "golden captures" "$tmp/differ"

if [ "$failed" -ne 0 ]; then
	echo "$failed checks failed"
	exit 1
fi
echo "all checks passed"
