#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs uroce-pcap on real captures and on files with deliberate errors.
# Usage: pcap_tool_test.sh PATH-OF-UROCE-PCAP DIRECTORY-OF-CAPTURES PATH-OF-EXT_CAPTURE
set -u
tool=$1
golden=$2
ext_capture=$3
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0

# fails TEXT: counts a failure and shows the tool's output.
fails()
{
	echo "FAILED: $1"
	sed 's/^/    /' "$tmp/out" "$tmp/err" | head -n 20
	failed=$((failed + 1))
}

# run STATUS ARGUMENT...: the tool must end with STATUS; its output is in $tmp/out and $tmp/err.
run()
{
	want=$1
	shift
	"$tool" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	[ "$got" -eq "$want" ] || fails "exit status $got, not $want: $*"
}

# says STREAM PATTERN: the output of the last run must have a line that matches.
says()
{
	grep -Eq -- "$2" "$tmp/$1" || fails "no line like '$2' in std$1"
}

# lines STREAM PATTERN COUNT
lines()
{
	n=$(grep -Ec -- "$2" "$tmp/$1")
	[ "$n" -eq "$3" ] || fails "$n lines like '$2', not $3"
}

# An intact capture has no errors; there is one line per packet.
for f in "$golden"/*.pcap; do
	case $f in *corrupt*) continue ;; esac
	run 0 "$f"
	lines out 'ICRC WRONG|MALFORMED' 0
done

# Every header is shown by name.
run 0 "$golden/rc_atomic_v6ll_mtu1024.pcap"
lines out '' 24
says out '\[fe80::ff:fe00:a\]:[0-9]+ > fe80::ff:fe00:b RC_COMPARE_SWAP qpn 0x[0-9a-f]+ psn [0-9]+ \[A\] AtomicETH\{va 0x[0-9a-f]+ rkey 0x[0-9a-f]+ swap 0x[0-9a-f]+ compare 0x[0-9a-f]+\} payload 0 icrc ok$'
says out 'AETH\{ACK credits none msn 2\} AtomicAckETH\{original 0x1122334455667789\} payload 0 icrc ok$'
run 0 "$golden/rc_rnr_v4_mtu1024.pcap"
says out 'AETH\{RNR NAK 0\.64 ms msn 0\}'
says out 'AETH\{NAK PSN sequence error msn 0\}'
run 0 "$golden/rc_send_imm_v4_mtu1024.pcap"
says out '\[SE A\] ImmDt\{0x05030201\} payload 1 pad 3 icrc ok$'
run 0 "$golden/rc_send_inv_v4_mtu1024.pcap"
says out 'RC_SEND_LAST_INV .* IETH\{rkey 0x[0-9a-f]+\}'
run 0 "$golden/rc_write_sizes_v4_mtu1024.pcap"
says out 'RC_WRITE_FIRST qpn 0x13 psn [0-9]+ RETH\{va 0x[0-9a-f]+ rkey 0x448 len 10000\} payload 1024 icrc ok$'
run 0 "$golden/ud_all_v4_mtu1024.pcap"
says out 'UD_SEND_ONLY_IMM .* DETH\{qkey 0x11111111 sqpn 0x11\} ImmDt'

# Management datagrams, and packets other than RoCE.
run 0 "$golden/cm_rping_v4.pcap"
says out '^0\.000000000 - ARP who-has 10\.99\.0\.2 tell 10\.99\.0\.1, 42 bytes$'
says out 'MAD\{CM REQ .*rdma tcp port 7174.* qpn 0x11 psn 2368242 '
says out 'MAD\{CM RTU '
run 0 "$golden/cm_reject_v4.pcap"
says out 'MAD\{CM REJ .* reason 8 \('

# The corrupted capture.
run 1 "$golden/rc_corrupt_v4_mtu1024.pcap"
lines out 'ICRC WRONG 0x' 13
lines out 'MALFORMED \(bad IP version, header length or checksum\)' 3
lines out 'MALFORMED \(unknown BTH opcode\)' 1
lines out 'icrc ok$' 374

# Extended mode: 30 opcodes, four times five packets over IPv4, IPv6 and VLAN, seven special ones.
"$ext_capture" "$tmp/ext.pcap" || fails "no capture of extended mode"
run 1 "$tmp/ext.pcap"
lines out '' 57
lines out ' EXT_[A-Z_]+ .* icrc ok$' 42
lines out ' EXT_PROBE .* ICRC WRONG 0x' 4
lines out ' RC_SEND_ONLY .* ICRC WRONG 0x' 4
lines out 'MALFORMED \(shorter than its headers say\)' 1
lines out 'MALFORMED \(unknown BTH opcode\)' 1
lines out ' vlan 42 prio 3 .* AETH\{NAK PSN sequence error msn 658188\} XAETH\{echo 3789743076 path 14 residence 270544960 ns epsn 7\} SACK\{missing 4: 7 10\.\.12 arrived 3: 8\.\.9 13\} payload 4 icrc ok$' 2
run 1 -s "$tmp/ext.pcap"
says out '^EXT_WRITE_MIDDLE +5 +150 +0$'
says out '^ +EXT +qpn 0x123456 '

# Summary.
run 1 --summary "$golden"/*.pcap
says out '^RoCE, ICRC right +3963$'
says out '^RoCE, ICRC wrong +13$'
says out '^RoCE, malformed +4$'
says out '^not RoCE +10$'
says out '^RC_READ_RESPONSE_MIDDLE +530 +542720 +6$'
run 0 -s "$golden/rc_psn_wrap_v4_mtu1024.pcap"
says out ' 16777[0-9]+\.\.[0-9]{1,2} '

# Filter.
run 0 --filter 'src host 10.98.0.2' "$golden/rc_atomic_v4_mtu1024.pcap"
lines out '' 12
lines out 'RC_ATOMIC_ACKNOWLEDGE' 12
run 2 --filter 'no such thing' "$golden/rc_atomic_v4_mtu1024.pcap"
says err "^uroce-pcap: filter 'no such thing': "

# Standard input, nanosecond stamps, several files.
"$tool" - <"$golden/rc_atomic_v4_mtu1024.pcap" >"$tmp/stdin" || fails "standard input"
run 0 "$golden/rc_atomic_v4_mtu1024.pcap"
cmp -s "$tmp/stdin" "$tmp/out" || fails "standard input reads like the file"
us=$(sed -n '2s/ .*//p' "$tmp/out")
{ printf '\115\074\262\241' && tail -c +5 "$golden/rc_atomic_v4_mtu1024.pcap"; } >"$tmp/ns.pcap"
run 0 "$tmp/ns.pcap"
ns=$(sed -n '2s/ .*//p' "$tmp/out")
[ "$us" = "0.${ns#0.000}000" ] || fails "'$us' in microseconds is '$ns' in nanoseconds"
run 0 "$golden/rc_atomic_v4_mtu1024.pcap" "$golden/ud_all_v4_mtu1024.pcap"
lines out '\.pcap:$' 2

# A packet of 74 bytes, of which 60 were captured, is neither right nor wrong.
{
	head -c 24 "$golden/rc_atomic_v4_mtu1024.pcap"
	printf '\0\0\0\0\0\0\0\0\074\0\0\0\112\0\0\0'
	tail -c +41 "$golden/rc_atomic_v4_mtu1024.pcap" | head -c 60
} >"$tmp/cut.pcap"
run 0 "$tmp/cut.pcap"
says out '^0\.000000000 cut: 60 of 74 bytes$'

# Each error is one clear sentence.
run 2 /nonexistent/file.pcap
says err '^uroce-pcap: /nonexistent/file\.pcap: No such file or directory$'
lines err '' 1
run 2 "$golden/scenarios.txt"
says err '^uroce-pcap: .*scenarios\.txt: .*unknown file format'
lines err '' 1
head -c 1000 "$golden/rc_atomic_v4_mtu1024.pcap" >"$tmp/short.pcap"
run 2 "$tmp/short.pcap"
says err '^uroce-pcap: .*short\.pcap: truncated dump file'
says out 'icrc ok$'
{ head -c 20 "$golden/rc_atomic_v4_mtu1024.pcap" && printf '\161\0\0\0'; } >"$tmp/sll.pcap"
run 2 "$tmp/sll.pcap"
says err 'holds LINUX_SLL packets, not Ethernet frames'
run 2
says err 'no capture file given'
run 2 --no-such-option x.pcap
says err 'no-such-option'
run 2 "$golden/ud_all_v4_mtu1024.pcap" /nonexistent/file.pcap
says out 'UD_SEND_ONLY'

# The help text.
run 0 --help
says out '^Usage: uroce-pcap'
says out '^Exit status: '
says out '--filter EXPR'

if [ "$failed" -ne 0 ]; then
	echo "$failed checks failed"
	exit 1
fi
echo "all checks passed"
