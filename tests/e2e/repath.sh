#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network that hashes UDP source ports to two ways, of which one is dead in each direction: a bridge that drops odd ports, or
# even ones, and changes its mind again and again. With [transport] repath = yes, the default, connections are made, and every
# byte arrives, in each mode. With repath = no the connection breaks.
. "$(dirname "$0")/lib.sh"
need_veth 4200 # of a and b; here they are not neighbours
command -v nft >/dev/null || skip "nft is not installed"

ns_f=uroce-r-f-$$
in_f=(ip netns exec "$ns_f")
flips_pid=
clean_up_bridge()
{
	[ -z "$flips_pid" ] || pkill -KILL -P "$flips_pid" ; kill -KILL "$flips_pid" 2>/dev/null
	delete_netns "$ns_f"
	clean_up
}
trap clean_up_bridge EXIT

# a -- bridge (namespace f) -- b
{
	ip netns add "$ns_f" && ip -n "$ns_a" link del uroce0
	"${in_f[@]}" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip link add eth0 mtu 4200 netns "$ns_a" type veth peer name to_a mtu 4200 netns "$ns_f"
	ip link add eth0 mtu 4200 netns "$ns_b" type veth peer name to_b mtu 4200 netns "$ns_f"
	ip -n "$ns_f" link add br0 mtu 4200 type bridge
	for port in to_a to_b; do
		ip -n "$ns_f" link set $port master br0 up
	done
	ip -n "$ns_f" link set br0 up
	ip -n "$ns_a" link set eth0 up
	ip -n "$ns_b" link set eth0 up
	ip -n "$ns_a" addr add 10.77.0.1/24 dev eth0
	ip -n "$ns_b" addr add 10.77.0.2/24 dev eth0
} 2>"$tmp/network.log" || fail "the network cannot be made"

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

# Every combination in turn, each for longer than seven local ACK timeouts of 268 ms: an end takes the other way with each that it
# knows of, and a queue pair that has measured no round trip knows of no sooner ones.
flips()
{
	while :; do
		for ways in "1 0" "0 0" "0 1" "1 1"; do
			sleep 3
			# shellcheck disable=SC2086
			dead $ways
		done
	done
}
flips &
flips_pid=$!
disown

more=("${pages[@]}" --set port.driver=af_packet)
server=("${in_a[@]}" "$UROCE_PERF" server --dev eth0 "${more[@]}")
client=("${in_b[@]}" "$UROCE_PERF" client --dev eth0 "${more[@]}" --peer 10.77.0.1 --verify --json "$tmp/run.json")

start_server "${server[@]}"
for mode in gbn reorder extended; do
	expect 0 "${client[@]}" --timeout 16 --transport-mode $mode --op mixed --size 16K --qps 4 --duration 12
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
