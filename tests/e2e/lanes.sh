#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual lanes over memif: two service levels share a slow port according to the tables. A service level without
# a lane is refused with a sentence, locally and by the peer. --live shows the lanes.
. "$(dirname "$0")/lib.sh"

server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}"
	--set "port.device=$tmp/memif.sock")
client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${pages[@]}" --peer 10.77.0.1
	--set "port.device=$tmp/memif.sock" --set port.rate_gbps=0.5 "${patient[@]}")
tables=(--set qos.vl_mode=measured --set qos.vl_high=0:3 --set qos.vl_low=1:1 --set qos.vl_high_limit=0)

said()
{
	grep -qF -- "$1" "$tmp/client.log" || fail "not said: $1"
}

start_server "${server[@]}"
# The port is so slow and the queues are so deep that no lane runs empty if a program does not run for 100 ms.
expect 0 "${client[@]}" "${tables[@]}" --set port.rate_gbps=0.1 --sl 0,1 --qps 4 --op write --size 64K --depth 16 --duration 2 \
	--json "$tmp/run.json" --live
clean_result
said 'SL  1 on VL  1:     2 qps'
said 'scheduler: '
[ "$(field '[.lanes[] | [.sl, .vl, .qps]] | tostring')" = '[[0,0,2],[1,1,2]]' ] ||
	fail "lanes: $(field .lanes)"
[ "$(field '.lanes[0].bytes / .lanes[1].bytes | . > 2.7 and . < 3.3')" = true ] ||
	fail "not 3 to 1: $(field .lanes)"
echo "3 to 1, as the tables say: $(field '.lanes | map(.gbps) | tostring')"

expect 0 "${client[@]}" --set qos.policy=wrr --set qos.turn_wqes=1 --qps 2 --weight 4,1 --priority 7 \
	--op read --size 4K --depth 16 --verify --iters 500 --json "$tmp/run.json"
clean_result
for type in uc ud; do
	expect 0 "${client[@]}" --type $type --op send --size 1000 --sl 3,9 --qps 2 --bidir --iters 500 \
		--json "$tmp/run.json"
	clean_result
	[ "$(field '[.lanes[].vl] | tostring')" = '[3,9]' ] || fail "lanes: $(field .lanes)"
done
echo "shares, UC and UD: all arrives"

# SCHED-SPARSE-01: how much leaves while a short message comes and goes? A round of the others is 16 turns of 16 KB.
passed=()
for first in no yes; do
	expect 0 "${client[@]}" --set qos.sparse_first=$first --op write --qps 16 --size 64K --depth 4 --duration 2 --ping \
		--json "$tmp/run.json"
	clean_result
	said 'beside them, one message of 8 bytes at a time: '
	[ "$(field .qps)" = 16 ] || fail "the ping is counted: $(field .qps) queue pairs"
	passed+=("$(field '.bytes / .ping_us.samples | floor')")
done
[ "${passed[0]}" -gt 200000 ] && [ "${passed[1]}" -lt $((passed[0] / 4)) ] ||
	fail "bytes of the others for each short message: ${passed[0]} if all take turns, ${passed[1]} if it goes first"
echo "a short message goes first: ${passed[1]} bytes of the others pass meanwhile, ${passed[0]} if all take turns"

expect 1 "${client[@]}" "${tables[@]}" --sl 2 --iters 10
said 'SL 2 has no service here'
stop_server

start_server "${server[@]}" "${tables[@]}"
expect 1 "${client[@]}" --sl 2 --iters 10
said 'primary service level refused'
echo "no service: refused at both ends"
stop_server
