#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Three hosts joined by uroce-switch over veth: RDMA between them, every byte compared; lanes, a rate and ECN
# marks; a link that goes down and comes back; a manager that sees switch and endpoints while data flows. What the
# switch has counted is consistent.
. "$(dirname "$0")/lib.sh"
need_veth 4200 # of a and b; here they are not neighbours

ns_c=uroce-b-c-$$
ns_s=uroce-b-s-$$
in_c=(ip netns exec "$ns_c")
in_s=(ip netns exec "$ns_s")
switch_pid=
hog_pid=
clean_up_switch()
{
	[ -z "$hog_pid" ] || kill -KILL "$hog_pid" 2>/dev/null
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" 2>/dev/null
	delete_netns "$ns_s"
	delete_netns "$ns_c"
	clean_up
}
trap clean_up_switch EXIT

{
	ip netns add "$ns_c" && ip netns add "$ns_s" && ip -n "$ns_a" link del uroce0
	for ns in "$ns_c" "$ns_s"; do
		ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	done
	for host in a b c; do
		name=ns_$host
		ip link add eth0 mtu 4200 netns "${!name}" type veth peer name to_$host mtu 4200 netns "$ns_s"
		ip -n "${!name}" link set eth0 up
		ip -n "$ns_s" link set to_$host up
	done
	ip -n "$ns_a" addr add 10.77.0.1/24 dev eth0
	ip -n "$ns_b" addr add 10.77.0.2/24 dev eth0
	ip -n "$ns_c" addr add 10.77.0.3/24 dev eth0
} 2>"$tmp/network.log" || fail "the network cannot be made"

# start_switch OPTION...: ports 1, 2, 3 lead to a, b, c.
start_switch()
{
	: >"$tmp/switch.log"
	"${in_s[@]}" "$UROCE_SWITCH" "$@" "${pages[@]}" --json "$tmp/switch.json" --interval 0.2 \
		>"$tmp/switch.log" 2>&1 </dev/null &
	switch_pid=$!
	wait_for 30 grep -q '^forwarding between' "$tmp/switch.log" || fail "the switch does not start"
}

stop_switch()
{
	local status
	kill -"$1" "$switch_pid"
	wait_for 20 gone "$switch_pid" || fail "the switch does not end"
	wait "$switch_pid"
	status=$?
	switch_pid=
	[ $status -eq 0 ] || fail "the switch ended with status $status"
	jq -e '([.ports[] | .rx_packets + .copies] | add) - .queued ==
		([.ports[] | .tx_packets + ([.lanes[].drops[]] | add // 0)] | add)' "$tmp/switch.json" >/dev/null ||
		fail "not every frame is accounted for: $(cat "$tmp/switch.json")"
}

counted()
{
	jq -r "$1" "$tmp/switch.json"
}

more=("${pages[@]}" --set port.driver=af_packet)
client_b=("${in_b[@]}" "$UROCE_PERF" client --dev eth0 "${more[@]}" --peer 10.77.0.1 "${patient[@]}")
client_c=("${in_c[@]}" "$UROCE_PERF" client --dev eth0 "${more[@]}" --peer 10.77.0.1 "${patient[@]}")
ports=(--port dev=to_a --port dev=to_b --port dev=to_c)

start_switch "${ports[@]}" --port "socket=$tmp/fabric.sock,clients=1"
start_server "${in_a[@]}" "$UROCE_PERF" server --dev eth0 "${more[@]}"
for op in write read send; do
	expect 0 "${client_b[@]}" --op $op --size 20000 --iters 100 --qps 4 --verify
	expect 0 "${client_c[@]}" --op $op --size 20000 --iters 100 --qps 4 --verify
done
echo "RDMA between three hosts: every byte right"

came_back()
{
	[ "$(grep -c '^port 3 .*: link up' "$tmp/switch.log")" -eq 2 ]
}

# A host goes away and comes back while another's traffic runs.
start_traffic "${client_b[@]}" --op write --size 16K --verify --duration 200 --json "$tmp/run.json"
timeout 30 "$UROCE_CTL" topology --socket "$tmp/fabric.sock" >"$tmp/topology.log" 2>&1 || fail "uroce-ctl fails"
[ "$(grep -c '^#. switch' "$tmp/topology.log")" -eq 1 ] && [ "$(grep -c '^#. endpoint' "$tmp/topology.log")" -eq 3 ] ||
	fail "not one switch and three endpoints (server, client, uroce-ctl)"
ip -n "$ns_c" link set eth0 down
wait_for 10 grep -q '^port 3 .*: link down' "$tmp/switch.log" || fail "the link is not seen to go down"
ip -n "$ns_c" link set eth0 up
wait_for 10 came_back || fail "the link is not seen to come up"
interrupt_client 60
expect 0 "${client_c[@]}" --op write --size 20000 --iters 100 --verify
echo "a manager saw the switch, both endpoints and itself while data flowed"
echo "a link that went down and up: noticed; others' traffic went on, and its own after that"

stop_server
stop_switch INT
[ "$(counted '[.ports[].learned] | add')" -ge 3 ] || fail "addresses were not learned"
echo "frames forwarded: $(counted '[.ports[].tx_packets] | add')"

# A slow port with thresholds: marks, and no faster than its rate.
start_switch --port dev=to_a,rate=0.2 --port dev=to_b --port dev=to_c \
	--set forwarding.ecn_min_kb=16 --set forwarding.ecn_max_kb=64
start_server "${in_a[@]}" "$UROCE_PERF" server --dev eth0 "${more[@]}" --set qos.traffic_class=2
expect 0 "${client_b[@]}" --op write --size 64K --qps 4 --sl 0,1 --duration 2 --set qos.traffic_class=2 \
	--pacing dcqcn --json "$tmp/run.json"
clean_result
[ "$(field '.gbps < 0.2 and .gbps > 0.02')" = true ] || fail "not at the port's rate: $(field .gbps) Gb/s"
stop_server
stop_switch TERM
[ "$(counted '.ports[1].ce_marked > 0 and .ports[2].ce_marked == 0')" = true ] || fail "marks: $(cat "$tmp/switch.json")"
[ "$(counted '[.ports[1].lanes[] | select(.tx_packets > 10) | .vl] | tostring | startswith("[0,1")')" = true ] ||
	fail "lanes: $(counted '.ports[1].lanes')"
echo "a port of 0.2 Gb/s: $(field .gbps) Gb/s, $(counted '.ports[1].ce_marked') frames marked"

# SWITCH-REST-01: beside a program that takes all of its CPU it has a real-time priority, if it may.
has_policy()
{
	# It finds out when it has nothing more to do.
	"${in_a[@]}" ping -c 3 -i 0.01 -W 0.1 10.77.0.99 >"$tmp/ping.log" 2>&1
	[ "$(cut -d ' ' -f 41 "/proc/$switch_pid/stat")" = "$1" ] # proc(5)
}
shares_its_cpu()
{
	local cpu
	cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	hog_pid=$!
	taskset -pc "$cpu" "$switch_pid" >"$tmp/taskset.log"
}
end_hog()
{
	kill "$hog_pid"
	hog_pid=
}
if chrt -f 1 true 2>"$tmp/chrt.log"; then
	start_switch "${ports[@]}" --realtime
	shares_its_cpu
	wait_for 30 has_policy 1 || fail "no SCHED_FIFO beside a busy program"
	end_hog
	wait_for 30 has_policy 0 || fail "still SCHED_FIFO when it is alone"
	stop_switch TERM
	start_switch "${ports[@]}"
	shares_its_cpu
	sleep 2
	has_policy 0 || fail "SCHED_FIFO without --realtime"
	end_hog
	stop_switch TERM
fi
echo "a real-time priority beside a busy program, with --realtime only"

# What is wrong is said in one sentence.
refused()
{
	"${in_s[@]}" timeout 30 "$UROCE_SWITCH" "${@:3}" "${pages[@]}" >"$tmp/refused.log" 2>&1
	[ $? -eq "$1" ] || fail "status is not $1: ${*:3}"
	grep -q "$2" "$tmp/refused.log" || fail "not said: $2"
	[ "$(grep -c '' "$tmp/refused.log")" -eq 1 ] || fail "not one line"
}
refused 1 'there is no interface\|no interface' --port dev=nowhere
refused 2 'is not KIND=NAME' --port veth0
refused 2 'allowed: a VLAN from 1 to 4094' --port dev=to_a,access=5000
refused 1 'exceeds ecn_max_kb' --port dev=to_a --set forwarding.ecn_min_kb=9 --set forwarding.ecn_max_kb=1
refused 1 'another endpoint of this process' --port dev=to_a --port dev=to_a
echo "what is wrong is said"
