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

# An endpoint tells of its link: the other end goes down and comes up again, once for a time, once at once.
kill "$server_pid" 2>/dev/null
wait "$server_pid" 2>/dev/null
start_server "${server_a[@]}" --set port.mtu=1500 --set transport.path_mtu=1024
went_down()
{
	"${in_b[@]}" timeout 60 "$UROCE_CTL" reg read '#1' link_downed:1 state:1 --dev uroce1 >"$tmp/down.log" 2>&1 &&
		grep -qE "^link_downed:1 .*\b$1\b" "$tmp/down.log"
}
wait_for 10 went_down 0 || fail "an endpoint whose link is up says that it went down"
"${in_b[@]}" ip link set uroce1 down
sleep 1.5
"${in_b[@]}" ip link set uroce1 up
wait_for 10 went_down 1 || fail "an endpoint does not see that its link went down"
"${in_b[@]}" ip link set uroce1 down
"${in_b[@]}" ip link set uroce1 up
wait_for 10 went_down 2 || fail "an endpoint does not see a short flap of its link"
stop_server
echo "an endpoint counts that its link goes down, a short flap too"

# A tap of a switch is an interface too. The switch sees it go down and come up.
in_a=(ip netns exec "$ns_a")
: >"$tmp/switch.log"
"${in_a[@]}" "$UROCE_SWITCH" --port tap=lab0 --port "socket=$tmp/fabric.sock,clients=1" "${pages[@]}" >"$tmp/switch.log" 2>&1 </dev/null &
server_pid=$!
wait_for 30 grep -q '^forwarding between' "$tmp/switch.log" || fail "the switch does not start"
ip -n "$ns_a" link set lab0 up || fail "the tap has no interface"
sees_switch()
{
	"${in_a[@]}" timeout 60 "$UROCE_CTL" topology --dev lab0 >"$tmp/topology.log" 2>&1 &&
		grep -qE '^    1  init .* switch #1 "uroce-switch" port 1$' "$tmp/topology.log"
}
wait_for 20 sees_switch || fail "uroce-ctl does not find the switch by its tap"
changes()
{
	[ "$(grep -c "^port 1 (tap=lab0): link $1" "$tmp/switch.log")" -ge "$2" ]
}
before=$(grep -c '^port 1 (tap=lab0): link up' "$tmp/switch.log")
ip -n "$ns_a" link set lab0 down
wait_for 20 changes down 1 || fail "the switch does not see that its tap goes down"
ip -n "$ns_a" link set lab0 up
wait_for 20 changes up $((before + 1)) || fail "the switch does not see that its tap comes up"
wait_for 20 sees_switch || fail "uroce-ctl does not find the switch by its tap again"
stop_server
echo "uroce-ctl finds a switch by its tap, which goes down and comes up"
