#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Spraying as a user sees it: on the wire the packets of one queue pair have four UDP source ports,
# each with its share, and telemetry says the same. Without spraying there is one port.
. "$(dirname "$0")/lib.sh"
need_veth 4300

iters=400
packets=$((iters * 16)) # of 4096 bytes

# ports TRANSPORT: "QPN PORT COUNT" of the WRITE packets that the client sent.
ports()
{
	"$UROCE_PCAP" "$tmp/client.pcap" >"$tmp/lines" || fail "the capture has malformed packets"
	awk -v kind="^$1_WRITE_" '$5 ~ kind && $2 ~ /^10\.77\.0\.2:/ {
			split($2, from, ":")
			cnt[$7 " " from[2]]++
		}
		END { for (k in cnt) print k, cnt[k] }' "$tmp/lines" >"$tmp/ports.log"
}

# expect_ports N TRANSPORT: one queue pair, N ports, each with at least a tenth of the captured packets. No
# packet is missing except those that the capture reports as dropped, because a disk may be slow.
expect_ports()
{
	local dropped
	dropped=$(sed -n 's/^capture: .* written, \([0-9]*\) copies dropped$/\1/p' "$tmp/client.log")
	[ -n "$dropped" ] || fail "the capture does not say what it dropped"
	ports "$2"
	awk -v want="$1" -v packets="$packets" -v dropped="$dropped" '{
			qpn[$1]
			n++
			sum += cnt[NR] = $3
		}
		END {
			for (i in cnt)
				few += cnt[i] < sum / 10
			exit !(length(qpn) == 1 && n == want && !few && sum > 0 && sum + dropped >= packets)
		}' \
		"$tmp/ports.log" || fail "not $1 ports with a fair share each (QPN, port, packets)"
}

run()
{
	expect 0 "${client_b[@]}" --op write --size 65536 --iters $iters --json "$tmp/run.json" \
		--pcap "$tmp/client.pcap" --filter 'src host 10.77.0.2' "$@"
	clean_result
}

start_server "${server_a[@]}"
run --set transport.spray=4 --transport-mode extended
expect_ports 4 EXT
echo "spray = 4: $(awk '{ printf "%s%s", sep, $3; sep = ", " }' "$tmp/ports.log") packets"
# A timeout would change the port: either end may stand still for a while on a busy machine.
keep=(--set transport.repath=no)
run --set transport.spray=off --transport-mode extended "${keep[@]}"
expect_ports 1 EXT
echo "spray = off: one port"
for mode in gbn reorder; do
	run --set transport.spray=4 --transport-mode $mode "${keep[@]}"
	expect_ports 1 RC
	echo "spray = 4, but $mode: one port"
done
expect 1 "${client_b[@]}" --op write --iters 1 --set transport.mode=gbn --set transport.spray=4
grep -q 'spray' "$tmp/client.log" || fail "no message that gbn does not spray"

command -v dpdk-telemetry.py >/dev/null && command -v jq >/dev/null || {
	stop_server
	skip "dpdk-telemetry.py or jq is not installed; the rest went well"
}

# four_paths PID: a queue pair of that program has four paths with answers.
four_paths()
{
	echo /uroce/qps | timeout 10 dpdk-telemetry.py -f "uroce-$1" >"$tmp/telemetry.log" 2>&1
	jq -e '[.["/uroce/qps"][] | select(.paths) | [.paths[]] | select(length == 4 and
			(map(.sport) | unique | length) == 4 and
			(map(.share_permille) | min >= 100 and add > 990) and
			(map(.loss_permille) | max < 100) and
			(map(.rtt_ns) | min > 0))] | length >= 1' \
		"$tmp/telemetry.log" >/dev/null 2>&1
}

start_client "${client_b[@]}" --op write --size 65536 --duration 30 --transport-mode extended \
	--set transport.spray=4
wait_for 25 four_paths "$client_pid" || fail "telemetry knows of no queue pair with four paths"
echo "telemetry: shares of $(jq -c '.["/uroce/qps"][] | select(.paths) |
	[.paths[].share_permille] | select(. != null)' "$tmp/telemetry.log" | tr '\n' ' ')permille"
kill -INT "$client_pid"
wait_for 20 gone "$client_pid" || fail "the client does not leave when interrupted"
client_pid=
stop_server
echo "all well"
