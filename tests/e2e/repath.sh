#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network that hashes UDP source ports to two ways, of which one is dead in each direction: a bridge that drops odd ports, or
# even ones, and changes its mind again and again. With [transport] repath = yes, the default, connections are made, and every
# byte arrives, in each mode. With repath = no the connection breaks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bridge.sh"
need_bridge 4200
command -v nft >/dev/null || skip "nft is not installed"

flips_pid=
clean_up_flips()
{
	[ -z "$flips_pid" ] || pkill -KILL -P "$flips_pid" ; kill -KILL "$flips_pid" 2>/dev/null
	clean_up_bridge
}
trap clean_up_flips EXIT

# dead A B: of frames from a, and from b, those with this lowest bit of their source port are dropped.
dead()
{
	"${in_f[@]}" nft -f - <<END
table bridge ways
delete table bridge ways
table bridge ways {
	chain c {
		type filter hook forward priority 0;
		iif to_a udp dport 4791 @th,0,16 & 1 == $1 counter drop
		iif to_b udp dport 4791 @th,0,16 & 1 == $2 counter drop
	}
}
END
}
dead 1 1 2>"$tmp/nft.log" || skip "no firewall on bridges here: $(tail -n 1 "$tmp/nft.log")"

# Every combination in turn, each for longer than seven local ACK timeouts of 134 ms: an end takes the other way with each that it
# knows of, and a queue pair that has measured no round trip knows of no sooner ones.
flips()
{
	while :; do
		for ways in "1 0" "0 0" "0 1" "1 1"; do
			sleep 1.5
			# shellcheck disable=SC2086
			dead $ways
		done
	done
}
flips &
flips_pid=$!
disown

start_server "${server[@]}"
for mode in gbn reorder extended; do
	expect 0 "${client[@]}" --timeout 15 --transport-mode $mode --op mixed --size 16K --qps 4 --duration 6
	clean_result
	[ "$(field '.client.counters.repaths > 0 and .server.counters.repaths > 0')" = true ] || fail "an end keeps its ports"
	echo "$mode: $(field '.client.counters.repaths + .server.counters.repaths') changes of a port"
done
stop_server

start_server "${server[@]}" --set transport.repath=no
expect 1 "${client[@]}" --set transport.repath=no --timeout 12 --transport-mode extended --op write --size 16K --qps 4 --duration 30
grep -q 'transport retry counter exceeded' "$tmp/client.log" || fail "repath = no: the connection does not break"
echo "repath = no: $(grep -m 1 -o 'transport retry counter exceeded' "$tmp/client.log")"
stop_server
echo "all well"
