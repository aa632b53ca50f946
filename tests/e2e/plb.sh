#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network that hashes UDP source ports to two ways, of which one has a twentieth of the other's rate: a bridge with a queue for odd ports
# and one for even ones. Queue pairs that the hash has put on the slow way leave it by themselves. With
# [transport] plb = no, and where the mode is not extended, they stay.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bridge.sh"
need_bridge 4200

# Towards a, where the data goes. What is not RoCE, and the even ports: class 1:1.
{
	"${in_f[@]}" tc qdisc add dev to_a root handle 1: htb default 1 &&
		"${in_f[@]}" tc class add dev to_a parent 1: classid 1:1 htb rate 400mbit burst 20k &&
		"${in_f[@]}" tc class add dev to_a parent 1: classid 1:2 htb rate 20mbit burst 5k &&
		"${in_f[@]}" tc filter add dev to_a parent 1: protocol ip u32 match ip dport 4791 0xffff match ip sport 1 1 flowid 1:2
} 2>"$tmp/tc.log" || skip "no traffic control here: $(tail -n 1 "$tmp/tc.log")"

# run ARGUMENTS: sixteen queue pairs for three seconds. In `slow`, how many of them were on the slow way in the end; in `moved`, how many have
# used more than one port.
run()
{
	expect 0 "${client[@]}" "${patient[@]}" --op write --size 4K --qps 16 --depth 2 --duration 3 --pcap "$tmp/client.pcap" \
		--filter 'src host 10.77.0.2' "$@"
	clean_result
	"$UROCE_PCAP" "$tmp/client.pcap" >"$tmp/lines" || fail "the capture has malformed packets"
	read -r qps slow moved < <(awk '$5 ~ /_WRITE_/ && $2 ~ /^10\.77\.0\.2:/ {
			split($2, from, ":")
			if ($7 in last && last[$7] != from[2])
				moved[$7] = 1
			last[$7] = from[2]
		}
		END {
			for (qpn in last)
				slow += last[qpn] % 2
			print length(last), slow + 0, length(moved)
		}' "$tmp/lines")
	[ "$qps" = 16 ] || fail "$qps queue pairs, not 16"
	moves=$(field .client.counters.plb_repaths)
	echo "$*: $slow of 16 queue pairs end on the slow way, $moved have moved, $moves times"
}

start_server "${server[@]}"
run --transport-mode extended
# One on the slow way gets as much as each of fifteen on the other.
[ "$moved" -gt 0 ] && [ "$slow" -le 4 ] || fail "queue pairs do not leave the slow way"
run --transport-mode extended --set transport.plb=no --set transport.repath=no
[ "$moved" = 0 ] && [ "$slow" -gt 0 ] && [ "$moves" = 0 ] || fail "plb = no, and a queue pair has moved"
run --transport-mode gbn --set transport.repath=no
[ "$moved" = 0 ] && [ "$moves" = 0 ] || fail "gbn, and a queue pair has moved"
stop_server
echo "all well"
