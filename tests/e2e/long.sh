#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# long.sh BUILD [volume|connections|fuzz]...: what takes too long for each commit (`check --long`).
#   volume       10^9 bytes each of WRITE, READ and SEND, every byte compared, at 1 % loss,
#                duplication and reordering in each direction
#   connections  10 000 set-ups and tear-downs in a row, 1000 queue pairs at once, no object left
#   fuzz         10^7 mutated inputs each for the packet decoder and for an engine with live QPs
build=$(cd "${1:?the build directory}" && pwd) || exit 1
shift
[ $# -gt 0 ] || set -- volume connections fuzz
export UROCE_PERF=$build/app/perf/uroce-perf UROCE_PCAP=$build/app/pcap/uroce-pcap
UROCE_SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
export UROCE_SOURCE
. "$(dirname "$0")/lib.sh"

memif=(--set "port.device=$tmp/memif.sock")
server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}" "${memif[@]}")
client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${pages[@]}" --peer 10.77.0.1
	"${memif[@]}")

# run STATUS COMMAND...: as expect, without its time limit.
run()
{
	local want=$1 status
	shift
	"$@" >"$tmp/client.log" 2>&1 </dev/null
	status=$?
	[ $status -eq "$want" ] || fail "status $status, not $want: ${*/#$UROCE_PERF/uroce-perf}"
}

volume()
{
	local op
	start_server "${server[@]}"
	for op in write read send; do
		run 0 "${client[@]}" "${impair[@]}" --op $op --size 64K --bytes 1e9 --verify \
			--timeout 18 --json "$tmp/run.json"
		clean_result
		[ "$(field '.bytes >= 1e9')" = true ] || fail "$op moved $(field .bytes) bytes only"
		echo "$op: $(field .bytes) bytes, every one right; $(field .retransmitted_packets)" \
			"packets sent again, $(field '.gbps * 1000 | round / 1000') Gb/s"
	done
	stop_server
}

connections()
{
	start_server "${server[@]}" --set transport.max_qp=4096
	run 0 "${client[@]}" --set transport.max_qp=4096 --mode connect --iters 10000
	grep -E 'set up|objects' "$tmp/client.log"
	run 0 "${client[@]}" --set transport.max_qp=4096 --mode connect --iters 1000 --qps 1000
	grep -E 'set up|objects' "$tmp/client.log"
	run 0 "${client[@]}" --set transport.max_qp=4096 --op mixed --qps 1000 --depth 2 \
		--iters 20000 --json "$tmp/run.json"
	clean_result
	echo "$(field .ops) operations on 1000 queue pairs, every byte right"
	stop_server
}

fuzz()
{
	"$build/tests/fuzz/packet_fuzz" --random 10000000 \
		"$UROCE_SOURCE/tests/fuzz/corpus/packet" >"$tmp/fuzz.log" 2>&1 || fail "packet_fuzz"
	tail -n 1 "$tmp/fuzz.log"
	"$build/tests/fuzz/engine_fuzz" --random 10000000 \
		"$UROCE_SOURCE/tests/fuzz/corpus/engine" >"$tmp/fuzz.log" 2>&1 || fail "engine_fuzz"
	tail -n 1 "$tmp/fuzz.log"
}

need_root
for part; do
	echo "== $part"
	"$part"
done
