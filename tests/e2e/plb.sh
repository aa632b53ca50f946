#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network that hashes UDP source ports to two ways: a bridge with a queue for odd ports and one for even ones. The way of odd ports gets
# slow: a message of 1 KB takes 3 ms there, and then 15. Queue pairs that the hash has put on it leave by themselves. With
# [transport] plb = no, and where the mode is not extended, they stay. A round trip takes 20 ms at least, longer than a busy machine
# usually stalls: a stall looks like congestion, or like a dead link.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bridge.sh"
need_bridge 4200

# Towards a, where the data goes. What is not RoCE, and the even ports: class 1:1.
{
	"${in_f[@]}" tc qdisc add dev to_a root handle 1: htb default 1 &&
		"${in_f[@]}" tc class add dev to_a parent 1: classid 1:1 htb rate 1gbit quantum 4200 &&
		"${in_f[@]}" tc class add dev to_a parent 1: classid 1:2 htb rate 1gbit quantum 4200 &&
		"${in_f[@]}" tc filter add dev to_a parent 1: protocol ip u32 match ip dport 4791 0xffff match ip sport 1 1 flowid 1:2
} 2>"$tmp/tc.log" || skip "no traffic control here: $(tail -n 1 "$tmp/tc.log")"

# odd_ports KBIT...: that rate, and 0.4 s later the next one.
odd_ports()
{
	"${in_f[@]}" bash -c 'for kbit; do
			[ "$kbit" = "$1" ] || sleep 0.4
			tc class change dev to_a parent 1: classid 1:2 htb rate "${kbit}kbit" burst 2k quantum 4200 || exit
		done' bash "$@" 2>>"$tmp/tc.log" || fail "tc cannot change the rate"
}

# A queue pair that has just met silence, because the machine stood still for longer than a round trip, may be anywhere: it does not count.
where='
$2 ~ /^10\.77\.0\.2:/ && $5 ~ /_(WRITE|PROBE)/ {
	split($2, from, ":")
	if ($5 ~ /PROBE/ || psn[$7] == $9)
		silent[$7] = $1
	else
		psn[$7] = $9
	if ($7 in port && port[$7] != from[2])
		moved[$7] = 1
	port[$7] = from[2]
	end = $1
}
END {
	for (qpn in psn) {
		slow += port[qpn] % 2
		stays += port[qpn] % 2 && end - silent[qpn] > 1.5
		others += qpn in moved
	}
	print length(psn), slow + 0, stays + 0, others + 0
}'

# run ARGUMENTS: 32 queue pairs. In `slow`, how many of them were on the slow way in the end, and in `stays`, how many of these have
# heard their peer all the time; in `moved`, how many have used more than one port.
run()
{
	odd_ports 1000000
	start_traffic "${client[@]}" "${patient[@]}" --set impair.rx_delay_us=20000 --op write --size 1K --qps 32 --depth 1 \
		--duration 60 --pcap "$tmp/client.pcap" --filter 'src host 10.77.0.2' "$@"
	# Queue pairs that timed out before their first round trip was measured move again after a second (PLB-PAUSE-01).
	sleep 1.2
	odd_ports 3000 600
	sleep 2
	interrupt_client 30
	"$UROCE_PCAP" "$tmp/client.pcap" >"$tmp/lines" || fail "the capture has malformed packets"
	read -r qps slow stays moved < <(awk "$where" "$tmp/lines")
	[ "$qps" = 32 ] || fail "$qps queue pairs, not 32"
	moves=$(field .client.counters.plb_repaths)
	echo "$*: $slow of 32 queue pairs end on the slow way, $stays of them without silence; $moved have moved, $moves times by congestion"
}

start_server "${server[@]}"
run --transport-mode extended
# The rate falls in two steps: after the first one round trips are two to four times as long, which is congestion and no silence. One queue
# pair that is alone on the slow way may stay: its round trips are not twice as long.
[ "$moves" -gt 0 ] && [ "$stays" -le 4 ] || fail "queue pairs do not leave the slow way"
run --transport-mode extended --set transport.plb=no --set transport.repath=no
[ "$moved" = 0 ] && [ "$slow" -gt 0 ] && [ "$moves" = 0 ] || fail "plb = no, and a queue pair has moved"
run --transport-mode gbn --set transport.repath=no
[ "$moved" = 0 ] && [ "$moves" = 0 ] || fail "gbn, and a queue pair has moved"
stop_server
echo "all well"
