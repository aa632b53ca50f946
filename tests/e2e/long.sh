#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# long.sh BUILD [volume|connections|fuzz|soak]...: tests that take too long for each commit (`check --long`).
#   volume       10^9 bytes each of WRITE, READ and SEND, every byte compared, at 1 % loss,
#                duplication and reordering in each direction
#   connections  10 000 set-ups and tear-downs in a row, 1000 queue pairs at a time, no object is left
#   fuzz         10^7 mutated inputs each for the packet decoder and for an engine with live QPs
#   soak         10 minutes (SOAK_SECONDS) over a veth pair: all operations of RC in each mode, UC and UD,
#                connections closed and opened, loss in bursts, reordering, duplicates, flipped bits; links go
#                down, clients and servers are killed
build=$(cd "${1:?the build directory}" && pwd) || exit 1
shift
[ $# -gt 0 ] || set -- volume connections fuzz soak
export UROCE_PERF=$build/app/perf/uroce-perf UROCE_PCAP=$build/app/pcap/uroce-pcap
UROCE_SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
export UROCE_SOURCE
. "$(dirname "$0")/lib.sh"

memif=(--set "port.device=$tmp/memif.sock")
server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}" "${memif[@]}")
client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${pages[@]}" --peer 10.77.0.1
	"${memif[@]}")

# run STATUS COMMAND...: like expect, without its time limit.
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

# soak_client SECONDS MODE: starts a client with random faults.
soak_client()
{
	local bursts=$((RANDOM % 30)) op=() mode=$2
	case $((RANDOM % 6)) in
	0) op=(--mode soak --duration "$1" --qps $((1 + RANDOM % 8)) --depth 8) ;;
	1) op=(--op mixed --duration "$1" --qps $((1 + RANDOM % 8)) --depth 16 --bidir) ;;
	2) op=(--op send_inv --duration "$1" --size $((1 + RANDOM % 30000)) --verify) ;;
	3) op=(--op send --duration "$1" --size $((1 + RANDOM % 30000)) --srq --qps 4 --verify) ;;
	4) op=(--type uc --op write_imm --duration "$1" --size $((1 + RANDOM % 30000)) --depth 8 --qps 2) ;;
	5) op=(--type ud --op send_imm --duration "$1" --size $((1 + RANDOM % 4000)) --depth 8 --qps 2) ;;
	esac
	said="${op[*]}, $mode"
	start_traffic "${client_b[@]}" "${impair[@]}" --transport-mode "$mode" --set "impair.rx_burst=0.$bursts" \
		--set impair.tx_burst_packets=4 --set "impair.tx_burst=0.$bursts" --set impair.rx_burst_packets=4 \
		--set impair.rx_corrupt=0.1 --set impair.tx_corrupt=0.1 --seed $((1 + RANDOM)) \
		--set "impair.seed=$RANDOM" "${op[@]}"
}

# flap: takes the link down for up to half a second.
flap()
{
	ip -n "$ns_a" link set uroce0 down && sleep "0.$((1 + RANDOM % 4))" && ip -n "$ns_a" link set uroce0 up ||
		fail "cannot set the link down and up"
}

soak()
{
	local until=$((SECONDS + ${SOAK_SECONDS:-600})) seed=${SOAK_SEED:-$((RANDOM * 32768 + RANDOM))} runs=0 flaps=0
	local killed_clients=0 killed_servers=0 modes=(gbn reorder extended auto)
	echo "SOAK_SEED=$seed"
	RANDOM=$seed # what is drawn from here on, though not when it happens
	need_veth 4300
	start_server "${server_a[@]}"
	while [ $SECONDS -lt $until ]; do
		soak_client 6 "${modes[RANDOM % 4]}"
		runs=$((runs + 1))
		case $((RANDOM % 6)) in
		0 | 1)
			flap
			flaps=$((flaps + 1))
			end_client 0 60
			;;
		2)
			kill -KILL "$server_pid"
			wait "$server_pid" 2>/dev/null
			server_pid=
			end_client 1 60
			grep -q '^uroce-perf: ' "$tmp/client.log" || fail "the client does not say what happened"
			killed_servers=$((killed_servers + 1))
			start_server "${server_a[@]}"
			;;
		3)
			kill -KILL "$client_pid"
			wait "$client_pid" 2>/dev/null
			client_pid=
			killed_clients=$((killed_clients + 1))
			;;
		*)
			end_client 0 60
			;;
		esac
		! gone "$server_pid" || fail "the server is gone after: $said"
	done
	expect 0 "${client_b[@]}" --op mixed --iters 2000 --qps 4 --bidir
	stop_server
	echo "$runs runs, $flaps times the link was down, $killed_clients clients and $killed_servers servers killed"
}

need_root
for part; do
	echo "== $part"
	"$part"
done
