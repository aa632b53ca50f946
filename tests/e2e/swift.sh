#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Swift is chosen by an option or a key, holds back from a slow destination over af_packet with and without the
# extended mode, and the JSON says so; --pacing with another word is refused.
. "$(dirname "$0")/lib.sh"
need_veth 4300

# holds CONDITION WHAT: of the result of the last client.
holds()
{
	[ "$(field "$1")" = true ] || fail "$2: $(field '[.pacing, .gbps]')"
}

# The last link takes 0.2 Gb/s and has a queue of 1 MiB, 42 ms; 8 queue pairs have 2 MiB outstanding.
start_server "${server_a[@]}" --set impair.rx_rate_gbps=0.2 --set impair.rx_queue_kb=1024
for mode in extended reorder gbn; do
	expect 0 "${client_b[@]}" --pacing swift --set pacing.target_us=2000 --transport-mode $mode --qps 8 --op write \
		--size 64K --depth 4 --iters 400 --json "$tmp/run.json"
	clean_result
	holds '.pacing.mode == "swift" and .pacing.destinations == 1 and .pacing.samples > 0' "$mode: no delays"
	holds '.pacing.throttles >= 1 and .pacing.throttled == 1' "$mode: the slow destination was not throttled"
	holds '.gbps > 0' "$mode: nothing arrived"
	echo "$mode: throttled by Swift"
done
expect 0 "${client_b[@]}" --set pacing.mode=none --op write --iters 10 --json "$tmp/run.json"
holds '.pacing.mode == "none" and .pacing.throttles == 0' "throttled without congestion control"
stop_server

expect 2 "${client_b[@]}" --pacing fast --op write
