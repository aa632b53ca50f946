#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-perf --metrics over af_packet: the page is what a Prometheus parser takes, and says what telemetry and
# the JSON result say; clients that are slow, huge or many neither block it nor disturb the traffic.
. "$(dirname "$0")/lib.sh"
need_veth 4300
for tool in curl dpdk-telemetry.py; do
	command -v $tool >/dev/null || fail "$tool is not installed"
done

for ns in "$ns_a" "$ns_b"; do
	ip -n "$ns" link set lo up || fail "the loopback interface does not come up"
done
at=127.0.0.1:9400

# page WHERE: of the server, to $tmp/WHERE.
page()
{
	"${in_a[@]}" curl -sS --max-time 10 -o "$tmp/$1" -w '%{http_code} %{content_type}' \
		"http://$at/metrics" >"$tmp/code"
	[ "$(cat "$tmp/code")" = "200 text/plain; version=0.0.4; charset=utf-8" ] ||
		fail "the answer is $(cat "$tmp/code")"
}

status()
{
	"${in_a[@]}" curl -s --max-time 10 -o /dev/null -w '%{http_code}' "$@"
}

listens()
{
	"${in_a[@]}" curl -s --max-time 2 -o /dev/null "http://$at/metrics"
}

start_server "${server_a[@]}" --metrics $at
wait_for 10 listens || fail "the page is not there"
expect 1 "${in_a[@]}" "$UROCE_PERF" server --config /nonexistent --metrics $at
grep -q -- "--metrics: cannot listen on $at: Address already in use" "$tmp/client.log" ||
	fail "the sentence of an address that is taken"
expect 0 "${client_b[@]}" --op write --qps 2 --iters 20000 --size 2K --json "$tmp/run.json" --metrics '[::1]:9401'
clean_result
sleep 0.3 # a page is at most 0.1 s old
page after
echo /uroce/workers | timeout 10 dpdk-telemetry.py -f "uroce-$server_pid" >"$tmp/telemetry.log" 2>&1
"$(dirname "$0")/metrics.py" "$tmp/after" "$tmp/telemetry.log" "$tmp/run.json" || fail "the page"
echo "the page says what telemetry and JSON say"

[ "$(status "http://$at/")" = 404 ] && [ "$(status "http://$at/metrics/x")" = 404 ] || fail "another path is not 404"
[ "$(status -d x=y "http://$at/metrics")" = 405 ] || fail "POST is not 405"
[ "$(status -I "http://$at/metrics")" = 200 ] || fail "HEAD is not 200"
echo "other paths and methods are refused"

# While traffic runs: 200 connections that say nothing, one byte at a time, requests without an end.
"${in_a[@]}" "$(dirname "$0")/hostile_http.py" 127.0.0.1 9400 8 >"$tmp/hostile.log" 2>&1 &
hostile=$!
expect 0 "${client_b[@]}" --op write --qps 2 --duration 4 --size 2K --verify --json "$tmp/run.json"
clean_result
[ "$(field .interrupted)" = false ] || fail "the traffic was interrupted"
wait $hostile || fail "hostile clients: $(cat "$tmp/hostile.log")"
page again
"$(dirname "$0")/metrics.py" "$tmp/again" || fail "the page after hostile clients"
stop_server
echo "hostile clients: $(cat "$tmp/hostile.log")"

# An interface that is shared with the kernel has counters of its own.
ip -n "$ns_a" addr add 10.99.0.1/24 dev uroce0 || fail "no address"
start_server "${in_a[@]}" "$UROCE_PERF" server --dev uroce0 "${pages[@]}" --metrics $at
wait_for 10 listens || fail "the page of a shared interface is not there"
page shared
"$(dirname "$0")/metrics.py" "$tmp/shared" || fail "the page of a shared interface"
echo /uroce/neigh | timeout 10 dpdk-telemetry.py -f "uroce-$server_pid" >"$tmp/telemetry.log" 2>&1
for counter in asked asked_by_udp moved evicted copies_dropped refreshed resynced; do
	grep -q "^uroce_shared_${counter}_total{port=" "$tmp/shared" || fail "no $counter on the page"
	grep -q "\"$counter\"" "$tmp/telemetry.log" || fail "no $counter in telemetry"
done
stop_server
echo "a shared interface has its counters on the page"
