#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two uroce-ctl at the ends of a veth pair: each is a node of a fabric of two.
. "$(dirname "$0")/lib.sh"
need_veth 1500

"${in_a[@]}" timeout 60 "$UROCE_CTL" monitor loop '#0' --dev uroce0 >"$tmp/other.log" 2>&1 &
server_pid=$!
for _ in {1..100}; do
	grep -q '^#0' "$tmp/other.log" && break
	sleep 0.1
done
"${in_b[@]}" timeout 60 "$UROCE_CTL" topology --dev uroce1 >"$tmp/topology.log" 2>&1 || fail "topology"
grep -qE '^    1  init .* endpoint #1 "uroce-ctl" port 1$' "$tmp/topology.log" || fail "the other end is not found"
"${in_b[@]}" timeout 60 "$UROCE_CTL" reg read '#1' uptime_ns neighbour_guid:1 --dev uroce1 >"$tmp/reg.log" 2>&1 || fail "registers"
echo "uroce-ctl finds the node at the other end of an interface"
