#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# same_port.sh af_packet|af_xdp: a second endpoint on an interface is refused with one sentence that names the
# interface and its holder; the first one keeps working. A process that has died holds nothing.
. "$(dirname "$0")/lib.sh"

[ "$1" = af_packet ] || need_xdp
# An MTU that both drivers support.
need_veth 2200
options=("${pages[@]}" --set transport.path_mtu=1024)
server=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-$1-a.conf" "${options[@]}")
client=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-$1-b.conf" "${options[@]}" --peer 10.77.0.1
	"${patient[@]}")

# refused DRIVER: starts a second server over that driver, which must be refused.
refused()
{
	timeout 30 "${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-$1-a.conf" "${options[@]}" --port 7999 \
		>"$tmp/second.log" 2>&1 </dev/null
	[ $? -eq 1 ] || fail "a second server over $1 does not end with status 1"
	[ "$(grep -c '' "$tmp/second.log")" -eq 1 ] || fail "not one line"
	grep -q "the interface uroce0 is in use by uroce-perf (process $server_pid)" "$tmp/second.log" ||
		fail "the interface or its holder is not named"
}

works()
{
	expect 0 "${client[@]}" --op write --size 5000 --iters 200 --verify
}

# Both namespaces are new, so the interfaces usually have the same index.
start_server "${server[@]}"
refused af_packet
refused af_xdp
works
echo "a second endpoint: $(cat "$tmp/second.log")"
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null
[ "$1" = af_packet ] || "${in_a[@]}" ip link set dev uroce0 xdp off # a killed server leaves its program behind
start_server "${server[@]}"
works
stop_server
start_server "${server[@]}"
stop_server
echo "after a death, and after an orderly end: free"
