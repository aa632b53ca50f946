#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network that hashes UDP source ports to two ways, of which one has a twentieth of the other's rate: a bridge with a queue for odd ports
# and one for even ones. Queue pairs that the hash put on the slow way leave it, by themselves. With [transport] plb = no, or where the
# mode is not extended, they stay.
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

# sent CLASS: bytes that have taken it so far.
sent()
{
	"${in_f[@]}" tc -s class show dev to_a | awk -v class="$1" '$1 == "class" { this = $3 } $1 == "Sent" && this == class { print $2 }'
}

# run ARGUMENTS: eight queue pairs for five seconds. In `slow`, how many bytes of a thousand took the slow way.
run()
{
	local odd=$(sent 1:2) even=$(sent 1:1)
	expect 0 "${client[@]}" "${patient[@]}" --op write --size 4K --qps 8 --depth 2 --duration 5 "$@"
	clean_result
	odd=$(($(sent 1:2) - odd)) even=$(($(sent 1:1) - even))
	slow=$((1000 * odd / (odd + even)))
	moves=$(field .client.counters.plb_repaths)
	echo "$*: ${slow} of 1000 bytes by the slow way, $moves moves"
}
start_server "${server[@]}"
run --transport-mode extended
run --transport-mode extended --set transport.plb=no
run --transport-mode gbn
stop_server
