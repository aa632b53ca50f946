#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shared_router.sh af_packet|af_xdp: three hosts in a row, the middle one a router. RDMA crosses it by the kernels'
# routes, and goes on by another way when they change.
. "$(dirname "$0")/lib.sh"
driver=$1
[ "$driver" = af_packet ] || need_xdp
need_veth 1500 # of a and b; here they are not neighbours

ns_r=uroce-b-r-$$
in_r=(ip netns exec "$ns_r")
clean_up_router()
{
	delete_netns "$ns_r"
	clean_up
}
trap clean_up_router EXIT

{
	ip netns add "$ns_r"
	ip -n "$ns_a" link del uroce0
	for ns in a b; do
		name=ns_$ns
		ip link add uroce$ns netns "${!name}" type veth peer name to_$ns netns "$ns_r"
		ip -n "${!name}" link set uroce$ns up
		ip -n "$ns_r" link set to_$ns up
	done
	ip -n "$ns_a" addr add 10.1.0.1/24 dev urocea
	ip -n "$ns_r" addr add 10.1.0.254/24 dev to_a
	ip -n "$ns_r" addr add 10.2.0.254/24 dev to_b
	ip -n "$ns_b" addr add 10.2.0.1/24 dev uroceb
	ip -n "$ns_a" route add default via 10.1.0.254
	ip -n "$ns_b" route add default via 10.2.0.254
	# It tells its neighbours of a new MAC address, as routers do that take over.
	"${in_r[@]}" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.to_b.arp_notify=1
} 2>"$tmp/network.log" || fail "the network cannot be made"

more=("${pages[@]}" --set "port.driver=$driver")
client=("${in_b[@]}" "$UROCE_PERF" client --dev uroceb "${more[@]}" --peer 10.1.0.1 "${patient[@]}")
start_server "${in_a[@]}" "$UROCE_PERF" server --dev urocea "${more[@]}"
for op in write read send; do
	expect 0 "${client[@]}" --op $op --size 20000 --iters 200 --qps 4 --verify
done
forwarded=$("${in_r[@]}" awk '$1 == "Ip:" { n++; if (n == 2) print $(NF > 6 ? 7 : 0) }' /proc/net/snmp)
[ "$forwarded" -gt 1000 ] || fail "the router has forwarded $forwarded packets"
echo "RDMA through a router: every byte right, $forwarded packets forwarded"

# The router's port gets another MAC address in the midst of it.
start_traffic "${client[@]}" --op write --size 16K --verify --iters 20000
ip -n "$ns_r" link set to_b address 02:00:00:00:00:be
end_client 0 120
echo "the router's MAC address changed: the connection went on"

# Without a route there is no connection.
ip -n "$ns_b" route del default
expect 1 "${client[@]}" --op write --size 100 --iters 1
grep -q 'answers for the address 10.1.0.1' "$tmp/client.log" ||
	fail "the client does not say that the server cannot be reached"
no_way=$(tail -n 1 "$tmp/client.log")
ip -n "$ns_b" route add default via 10.2.0.254
expect 0 "${client[@]}" --op write --size 5000 --iters 100 --verify
stop_server
echo "without a route: $no_way"
