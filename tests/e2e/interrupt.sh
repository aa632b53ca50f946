#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# interrupt.sh af_packet|af_xdp: Ctrl-C at any moment ends a client with status 130 and a server with
# status 0, and nothing is left behind.
. "$(dirname "$0")/lib.sh"
mtu=4300
if [ "$1" = af_xdp ]; then
	need_xdp
	mtu=2200
fi
need_veth $mtu
server_a=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-$1-a.conf" "${pages[@]}")
client_b=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-$1-b.conf" "${pages[@]}"
	--peer 10.77.0.1 "${patient[@]}")

xdp_program()
{
	ip -n "$1" -d link show "$2" | grep -Eq 'prog/xdp|xdpgeneric|xdpoffload|xdpdrv'
}

# nothing_left: neither a program on the interface nor a runtime directory of the process.
nothing_left()
{
	xdp_program "$ns_a" uroce0 && fail "the server left an XDP program on uroce0"
	xdp_program "$ns_b" uroce1 && fail "the client left an XDP program on uroce1"
	[ ! -e "/run/dpdk/uroce-$1" ] || fail "process $1 left /run/dpdk/uroce-$1"
}

for signal in INT TERM; do
	start_server "${server_a[@]}"
	if [ "$1" = af_xdp ]; then
		xdp_program "$ns_a" uroce0 || fail "the server runs without an XDP program"
	fi
	start_traffic "${client_b[@]}" --op write --duration 60
	pid=$client_pid
	kill -$signal "$client_pid"
	end_client 130 10
	grep -q '^write ' "$tmp/client.log" || fail "the client did not print what it measured"
	expect 0 "${client_b[@]}" --op send --size 1000 --iters 100 --verify
	pid2=$server_pid
	stop_server
	nothing_left "$pid"
	nothing_left "$pid2"
	echo "SIG$signal: client 130, server served on and left with 0"
done

# The server ends first: the client must report an error.
start_server "${server_a[@]}"
start_traffic "${client_b[@]}" --op write --duration 60
stop_server
end_client 1 15
grep -q '^uroce-perf: ' "$tmp/client.log" || fail "the client does not say what happened"
echo "server interrupted first: $(grep -m 1 '^uroce-perf: ' "$tmp/client.log")"

# A client that waits for a server that does not exist.
start_client "${client_b[@]}"
sleep 0.5
gone "$client_pid" || kill -INT "$client_pid"
wait_for 15 gone "$client_pid" || fail "a client without a server cannot be interrupted"
client_pid=

# After a crash the next program still starts.
start_server "${server_a[@]}"
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null
start_server "${server_a[@]}"
expect 0 "${client_b[@]}" --op write --size 1000 --iters 100 --verify
stop_server
echo "started again after a crash"

delete_both_netns
for ns in "$ns_a" "$ns_b"; do
	[ ! -e "/run/netns/$ns" ] || fail "$ns cannot be deleted"
done
