#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts send to a third over uroce-switch, whose port to that is slow. Without link credits the switch drops; with
# credits no frame is lost. A receiver that is stopped does not stop the others.
. "$(dirname "$0")/lib.sh"
need_veth 4200 # of a and b; here they are not neighbours

ns_c=uroce-k-c-$$
ns_s=uroce-k-s-$$
in_c=(ip netns exec "$ns_c")
in_s=(ip netns exec "$ns_s")
switch_pid=
clean_up_switch()
{
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
} 2>"$tmp/network.log" || fail "the network cannot be made"

of_c= # keys of port 3
# start_switch OPTION...: ports 1, 2, 3 lead to a, b, c.
start_switch()
{
	: >"$tmp/switch.log"
	"${in_s[@]}" "$UROCE_SWITCH" --port dev=to_a,rate=0.2 --port dev=to_b --port "dev=to_c$of_c" "$@" "${pages[@]}" \
		--json "$tmp/switch.json" --interval 0.1 >"$tmp/switch.log" 2>&1 </dev/null &
	switch_pid=$!
	wait_for 30 grep -q '^forwarding between' "$tmp/switch.log" || fail "the switch does not start"
}

stop_switch()
{
	local status
	kill -INT "$switch_pid"
	wait_for 20 gone "$switch_pid" || fail "the switch does not end"
	wait "$switch_pid"
	status=$?
	switch_pid=
	[ $status -eq 0 ] || fail "the switch ended with status $status"
}

counted()
{
	jq -r "$1" "$tmp/switch.json"
}

# end NAMESPACE ROLE NUMBER CREDITS: the beginning of a command line, in cmd.
end()
{
	printf '[port]\ndriver = af_packet\ndevice = eth0\nframecnt = 1024\ncredits = %s\n[address]\nipv4 = 10.77.0.%s/24\n' \
		"$4" "$3" >"$tmp/$3.conf"
	cmd=(ip netns exec "$1" "$UROCE_PERF" "$2" "${pages[@]}" --config "$tmp/$3.conf")
}

dropped='[.ports[].lanes[].drops | .queue_full // 0, .no_buffer // 0, .no_credit // 0] | add'
traffic=(--op write --size 64K --qps 4 --depth 16)

incast()
{
	local status
	start_switch --set forwarding.lane_kb=64 --set "port.credits=$1"
	end "$ns_a" server 1 "$1"
	start_server "${cmd[@]}"
	end "$ns_c" client 3 "$1"
	start_client "${cmd[@]}" --peer 10.77.0.1 "${patient[@]}" "${traffic[@]}" --duration 1 --json "$tmp/c.json"
	end "$ns_b" client 2 "$1"
	expect 0 "${cmd[@]}" --peer 10.77.0.1 "${patient[@]}" "${traffic[@]}" --duration 1 --json "$tmp/run.json"
	clean_result
	end_client 0 60
	stop_server
	stop_switch
}

incast no
[ "$(counted "$dropped")" -gt 0 ] || fail "without credits nothing is dropped: the test has no point"
[ "$(counted '[.ports[].credit_messages_received] | add')" -eq 0 ] || fail "messages although credits are off"
echo "without credits: $(counted "$dropped") frames dropped, $(field .gbps) Gb/s"

incast yes
[ "$(counted '[.ports[1:][] | .credit_sessions] | map(select(. >= 1)) | length')" -eq 3 ] ||
	fail "not all three links have credits: $(cat "$tmp/switch.json")"
[ "$(counted "$dropped")" -eq 0 ] || fail "with credits $(counted "$dropped") frames are dropped: $(cat "$tmp/switch.json")"
[ "$(counted '[.ports[].credit_overruns] | add')" -eq 0 ] || fail "frames without credit"
[ "$(field '.gbps > 0.02')" = true ] || fail "no throughput: $(field .gbps) Gb/s"
for f in run c; do
	lost=$(jq -r '.retransmitted_packets' "$tmp/$f.json")
	[ "$lost" -eq 0 ] || echo "$f has sent $lost packets again"
done
echo "with credits: none dropped, $(field .gbps) Gb/s; the senders waited $(counted '[.ports[].credit_wait_ns] | add')" \
	"ns at the switch"

# The server of a stops. What b sends to c meanwhile arrives. The port to c offers no credits, although c does.
of_c=,credits=no
start_switch --set port.credits=yes
end "$ns_a" server 1 yes
"${cmd[@]}" >"$tmp/stopped.log" 2>&1 </dev/null &
stopped=$!
end "$ns_c" server 3 yes
start_server "${cmd[@]}"
wait_for 30 grep -q '^listening' "$tmp/stopped.log" || fail "the server does not start"
end "$ns_b" client 2 yes
start_traffic "${cmd[@]}" --peer 10.77.0.1 --timeout 20 "${traffic[@]}" --duration 60
kill -STOP "$stopped"
sleep 0.5
kill -KILL "$client_pid"
wait "$client_pid" 2>/dev/null
client_pid=
expect 0 "${cmd[@]}" --peer 10.77.0.3 "${patient[@]}" --op write --size 64K --iters 200 --verify
kill -KILL "$stopped"
wait "$stopped" 2>/dev/null
stop_server
stop_switch
[ "$(counted '.ports[1].credit_sessions >= 1 and .ports[2].credit_sessions >= 1')" = true ] || fail "no credits of a and b"
[ "$(counted '.ports[3] | .credit_sessions + .credit_messages_sent')" -eq 0 ] || fail "credits of c: $(counted '.ports[3]')"
[ "$(counted '.ports[1].credit_stalls >= 1')" = true ] || fail "no lane was given up: $(counted '.ports[1]')"
echo "a receiver that takes nothing: its lane was given up $(counted '.ports[1].credit_stalls') times; another's traffic passed"

# The link of a is down for longer than a silence lasts. That is none, at either end.
at=127.0.0.1:9400
ip -n "$ns_a" link set lo up || fail "the loopback interface does not come up"
# The sum of a metric; -1: there is none.
endpoint()
{
	"${in_a[@]}" curl -s --max-time 2 "http://$at/metrics" | awk -v name="$1" '$1 ~ name { sum += $2; seen = 1 } END { print seen ? sum : -1 }'
}
sessions()
{
	[ "$(endpoint credit_sessions)" -ge "$1" ] && [ "$(counted ".ports[1].credit_sessions >= $1")" = true ]
}
of_c=
start_switch --set port.credits=yes
end "$ns_a" server 1 yes
start_server "${cmd[@]}" --metrics $at
wait_for 10 sessions 1 || fail "no credits of a"
ip -n "$ns_s" link set to_a down
sleep 1.5
ip -n "$ns_s" link set to_a up
wait_for 10 sessions 2 || fail "no new session: $(counted '.ports[1]')"
[ "$(endpoint credit_silences)" -eq 0 ] || fail "the endpoint counts a silence while its link is down"
[ "$(counted '.ports[1].credit_silences')" -eq 0 ] || fail "the switch counts a silence: $(counted '.ports[1]')"
stop_server
stop_switch
echo "a link that was down for 1.5 s: a new session, and no silence"
