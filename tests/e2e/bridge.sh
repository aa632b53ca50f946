# SPDX-License-Identifier: BSD-3-Clause
# Sourced after lib.sh by tests whose endpoints are not neighbours: eth0 in namespaces a and b, and between them, in namespace f, a
# bridge with ports to_a and to_b, on which a test does to packets what it likes.
# shellcheck shell=bash disable=SC2034

ns_f=uroce-f-$$
in_f=(ip netns exec "$ns_f")

# A test that starts processes of its own traps EXIT again, and calls this.
clean_up_bridge()
{
	delete_netns "$ns_f"
	clean_up
}

# need_bridge MTU: 10.77.0.1 in namespace a, 10.77.0.2 in b.
need_bridge()
{
	local port
	need_veth "$1"
	trap clean_up_bridge EXIT
	{
		ip netns add "$ns_f" && ip -n "$ns_a" link del uroce0
		"${in_f[@]}" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
		ip link add eth0 mtu "$1" netns "$ns_a" type veth peer name to_a mtu "$1" netns "$ns_f"
		ip link add eth0 mtu "$1" netns "$ns_b" type veth peer name to_b mtu "$1" netns "$ns_f"
		ip -n "$ns_f" link add br0 mtu "$1" type bridge
		for port in to_a to_b; do
			ip -n "$ns_f" link set $port master br0 up
		done
		ip -n "$ns_f" link set br0 up
		ip -n "$ns_a" link set eth0 up
		ip -n "$ns_b" link set eth0 up
		ip -n "$ns_a" addr add 10.77.0.1/24 dev eth0
		ip -n "$ns_b" addr add 10.77.0.2/24 dev eth0
	} 2>"$tmp/network.log" || fail "the network cannot be made"
}

more=("${pages[@]}" --set port.driver=af_packet)
server=("${in_a[@]}" "$UROCE_PERF" server --dev eth0 "${more[@]}")
client=("${in_b[@]}" "$UROCE_PERF" client --dev eth0 "${more[@]}" --peer 10.77.0.1 --verify --json "$tmp/run.json")
