#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shared.sh af_packet|af_xdp: RDMA beside everything else that an interface with ordinary addresses does. Two hosts,
# that is network namespaces joined by a veth pair; on both ends `uroce-perf --dev`, without a configuration.
. "$(dirname "$0")/lib.sh"
command -v ping >/dev/null || skip "ping is not installed"
driver=$1
[ "$driver" = af_packet ] || need_xdp
need_veth 1500

v6=no
for ns in a b; do
	declare -n in=in_$ns
	dev=$([ $ns = a ] && echo uroce0 || echo uroce1)
	host=$([ $ns = a ] && echo 1 || echo 2)
	"${in[@]}" ip link set lo up
	"${in[@]}" ip addr add "10.77.0.$host/24" dev "$dev"
	if "${in[@]}" sysctl -qw "net.ipv6.conf.$dev.disable_ipv6=0" 2>/dev/null &&
		"${in[@]}" ip addr add "fd77::$host/64" dev "$dev" nodad 2>/dev/null; then
		v6=yes
	fi
done

more=("${pages[@]}" --set "port.driver=$driver")
server=("${in_a[@]}" "$UROCE_PERF" server --dev uroce0 "${more[@]}")
plain=("${in_b[@]}" "$UROCE_PERF" client --dev uroce1 "${more[@]}")
client=("${plain[@]}" --peer 10.77.0.1 "${patient[@]}")

# icmp_errors NAMESPACE: ICMP and ICMPv6 "destination unreachable" that its kernel has sent.
icmp_errors()
{
	ip netns exec "$1" cat /proc/net/snmp /proc/net/snmp6 2>/dev/null | awk '
		$1 == "Icmp:" && !n { for (i = 2; i <= NF; i++) if ($i == "OutDestUnreachs") n = i; next }
		$1 == "Icmp:" { sum += $n }
		$1 == "Icmp6OutDestUnreachs" { sum += $2 }
		END { print sum + 0 }'
}

# Of the server's kernel, and of the client's while it runs: what comes after its end is the kernel's to answer.
no_icmp_errors()
{
	local ns
	for ns in "$ns_a" "$@"; do
		[ "$(icmp_errors "$ns")" -eq 0 ] || fail "the kernel of $ns has answered RoCE packets with ICMP errors"
	done
}

start_server "${server[@]}"
grep -q "^uroce0 by $driver, with the kernel's addresses 10.77.0.1" "$tmp/server.log" ||
	fail "the server does not say how it reaches the network"
for op in write read send; do
	expect 0 "${client[@]}" --op $op --size 20000 --iters 200 --qps 4 --verify
done
no_icmp_errors
echo "RDMA over the kernel's own addresses: every byte right, no ICMP error"

if [ $v6 = yes ]; then
	expect 0 "${plain[@]}" --peer fd77::1 "${patient[@]}" --op write --size 20000 --iters 200 --verify
	link_local=$("${in_a[@]}" ip -6 -o addr show dev uroce0 scope link | awk '{ sub("/.*", "", $4); print $4 }')
	expect 0 "${plain[@]}" --peer "$link_local%uroce1" "${patient[@]}" --op read --size 20000 --iters 200 --verify
	no_icmp_errors
	echo "IPv6, global and link-local: every byte right, no ICMP error"
fi

# An interface with two subnets: the kernel says which address is the source.
"${in_a[@]}" ip addr add 10.88.0.1/24 dev uroce0
"${in_b[@]}" ip addr add 10.88.0.2/24 dev uroce1
expect 0 "${plain[@]}" --peer 10.88.0.1 "${patient[@]}" --op write --size 20000 --iters 200 --verify
grep -q '^client 10.88.0.2 ' "$tmp/server.log" || fail "the source is not the address of the peer's subnet"
echo "a second subnet, added while the server runs: every byte right, from the right address"

# All at once: RDMA, ping in both directions, and a TCP connection that moves 20 MB.
cat >"$tmp/tcp.py" <<'PY'
import socket, sys
MEGABYTES = 20
if sys.argv[1] == "listen":
    listener = socket.create_server(("10.77.0.1", 5001))
    print("ready", flush=True)
    peer = listener.accept()[0]
    got = 0
    while chunk := peer.recv(1 << 16):
        got += len(chunk)
    sys.exit(got != MEGABYTES << 20)
peer = socket.create_connection(("10.77.0.1", 5001), timeout=60)
for _ in range(MEGABYTES):
    peer.sendall(bytes(1 << 20))
PY
start_traffic "${client[@]}" --op write --size 64K --qps 2 --verify --duration 200 --json "$tmp/run.json"
: >"$tmp/tcp.log"
"${in_a[@]}" timeout 100 python3 "$tmp/tcp.py" listen >"$tmp/tcp.log" 2>&1 &
tcp_pid=$!
wait_for 20 grep -q ready "$tmp/tcp.log" || fail "the TCP listener does not start"
"${in_b[@]}" timeout 100 python3 "$tmp/tcp.py" connect >"$tmp/connect.log" 2>&1 || fail "TCP does not get through"
wait $tcp_pid || fail "TCP bytes are missing"
for way in "b 10.77.0.1" "a 10.77.0.2"; do
	declare -n in=in_${way%% *}
	"${in[@]}" ping -n -c 5 -i 0.2 -W 10 "${way#* }" >"$tmp/ping.log" 2>&1 || fail "no answer to a ping"
	grep -q ' 0% packet loss' "$tmp/ping.log" || fail "pings are lost"
	grep -q 'DUP' "$tmp/ping.log" && fail "a ping is answered twice"
done
no_icmp_errors "$ns_b"
interrupt_client 60
echo "TCP and ping beside it: as without it"

# Several workers, and workers that poll on their own: af_packet's sockets each have the filter.
if [ "$driver" = af_packet ]; then
	stop_server
	for mode in inline dedicated; do
		two=(--set worker.count=2 --set "worker.mode=$mode")
		start_server "${server[@]}" "${two[@]}"
		expect 0 "${client[@]}" "${two[@]}" --op write --size 20000 --iters 200 --qps 8 --verify
		stop_server
	done
	start_server "${server[@]}"
	echo "two workers, inline and dedicated: every byte right"
fi

# A second endpoint on the interface.
timeout 30 "${server[@]}" --port 7999 >"$tmp/second.log" 2>&1 </dev/null
[ $? -eq 1 ] || fail "a second endpoint does not end with status 1"
grep -q "the interface uroce0 is in use by uroce-perf (process $server_pid)" "$tmp/second.log" ||
	fail "the second endpoint is not told who has the interface"
expect 0 "${client[@]}" --op write --size 5000 --iters 100 --verify
echo "a second endpoint: $(tail -n 1 "$tmp/second.log")"

# The address goes under an endpoint: the peer's requests fail, the server stays, and all is well when it is back.
start_traffic "${plain[@]}" --peer 10.77.0.1 --op write --size 4096 --duration 100 --timeout 14 --retry 3
"${in_a[@]}" ip addr del 10.77.0.1/24 dev uroce0
end_client 1 60
gone "$server_pid" && fail "the server died with its address"
"${in_a[@]}" ip addr add 10.77.0.1/24 dev uroce0
expect 0 "${client[@]}" --op write --size 5000 --iters 100 --verify
echo "without its address: retries exceeded; with it again: as before"

# The link goes down and comes back.
"${in_a[@]}" ip link set uroce0 down
sleep 0.3
"${in_a[@]}" ip link set uroce0 up
expect 0 "${client[@]}" --op write --size 5000 --iters 100 --verify
no_icmp_errors
stop_server
echo "after the link was down: as before"

# SHARED-XDP-01: a killed endpoint takes nothing from the kernel, and the next one opens as ever.
start_server "${server[@]}"
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null
"${in_b[@]}" ping -n -c 2 -i 0.2 -W 10 10.77.0.1 >"$tmp/ping.log" 2>&1 || fail "no ping after the endpoint was killed"
start_server "${server[@]}"
expect 0 "${client[@]}" --op write --size 5000 --iters 100 --verify
stop_server
[ -z "$("${in_a[@]}" ip link show dev uroce0 | grep xdp)" ] || fail "an XDP program stayed behind"
echo "after an endpoint was killed: ping goes on, the next one opens"

# EDGE-FLAGS-01. In a container as it comes: no right but CAP_NET_RAW, no neighbour known. Flags of the interface stay.
if [ "$driver" = af_packet ] && command -v setpriv >/dev/null; then
	raw_only=(setpriv --bounding-set -all,+net_raw --inh-caps -all,+net_raw)
	"${in_a[@]}" ip link set uroce0 promisc on
	start_server "${in_a[@]}" "${raw_only[@]}" "${server[@]:${#in_a[@]}}"
	ip -n "$ns_a" neigh flush all
	ip -n "$ns_b" neigh flush all
	expect 0 "${in_b[@]}" "${raw_only[@]}" "${client[@]:${#in_b[@]}}" --op write --size 5000 --iters 100 --verify
	stop_server
	"${in_a[@]}" ip link show dev uroce0 | grep -q PROMISC || fail "the endpoint has changed the interface's flags"
	echo "with CAP_NET_RAW alone: every byte right"
fi

# What would have been counted: without an endpoint the kernel answers.
before=$(icmp_errors "$ns_a")
"${in_b[@]}" python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.77.0.1", 4791))'
answered()
{
	[ "$(icmp_errors "$ns_a")" -gt "$before" ]
}
wait_for 10 answered || fail "the count of ICMP errors does not count"
