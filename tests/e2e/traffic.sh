#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# traffic.sh af_packet|af_xdp|memif: every operation between two processes, with every byte compared.
# Then with loss, duplication and reordering in both directions. Over memif, where that is quickest, the same in each RC mode and
# in bursts: what an RC mode does with a loss does not depend on the port.
. "$(dirname "$0")/lib.sh"

case $1 in
af_packet)
	need_veth 4300
	server=("${server_a[@]}")
	client=("${client_b[@]}")
	;;
af_xdp)
	need_xdp
	need_veth 2200
	server=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-af_xdp-a.conf" "${pages[@]}")
	client=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-af_xdp-b.conf" "${pages[@]}"
		--peer 10.77.0.1 "${patient[@]}")
	;;
memif)
	server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}"
		--set "port.device=$tmp/memif.sock")
	client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${pages[@]}" --peer 10.77.0.1
		--set "port.device=$tmp/memif.sock" "${patient[@]}")
	;;
*)
	fail "unknown driver $1"
	;;
esac

# all NAME OPTION...: every operation with three sizes, then other kinds of use.
all()
{
	local what=$1 op
	shift
	for op in write write_imm read send send_imm send_inv; do
		expect 0 "${client[@]}" "$@" --op $op --verify --sizes 1,5000,100000 --iters 200 \
			--json "$tmp/run.json"
		clean_result
		echo "$what $op: verified"
	done
	for op in cas fetch_add; do
		expect 0 "${client[@]}" "$@" --op $op --verify --iters 1000 --json "$tmp/run.json"
		clean_result
		[ "$(field .ops)" = 1000 ] || fail "$op completed $(field .ops) times, not 1000"
		echo "$what $op: verified"
	done
	expect 0 "${client[@]}" "$@" --op mixed --qps 8 --depth 16 --bidir --iters 3000 \
		--json "$tmp/run.json"
	clean_result
	echo "$what mixed on 8 queue pairs, both directions: verified"
}

# in_mode NAME MODE OPTION...: operations that depend on the mode, with impairment.
in_mode()
{
	operations_in_mode "write read send" "$@"
}

# operations_in_mode OPERATIONS NAME MODE OPTION...: the same of these, and then all at once.
operations_in_mode()
{
	local operations=$1 what=$2 mode=$3 op
	shift 3
	for op in $operations; do
		expect 0 "${client[@]}" "${impair[@]}" "$@" --op $op --verify --sizes 5000,100000 --iters 200 \
			--json "$tmp/run.json"
		clean_result
		[ "$(field '[.. | .qp_mode? // empty] | unique | join(" ")')" = "$mode" ] ||
			fail "not in mode $mode"
	done
	expect 0 "${client[@]}" "${impair[@]}" "$@" --op mixed --qps 8 --depth 16 --bidir --iters 1000 \
		--json "$tmp/run.json"
	clean_result
	[ "$(field .retransmitted_packets)" -gt 0 ] || fail "nothing was sent again in mode $mode"
	echo "$what, mode $mode: verified"
}

start_server "${server[@]}"
expect 0 "${client[@]}" --mode connect --qps 4 --iters 200
echo "$1: 200 connections"
all "$1" --seed 1
expect 0 "${client[@]}" --op write --size 0 --iters 100
expect 0 "${client[@]}" --op send --size 3000 --srq --qps 4 --verify --iters 1000
expect 0 "${client[@]}" --op send --size 100 --inline 100 --verify --iters 1000
expect 0 "${client[@]}" --op send --size 9000 --sge 5 --verify --iters 500
expect 0 "${client[@]}" --op write --size 4096 --events --verify --iters 500
expect 0 "${client[@]}" --op write --mtu 256 --size 10000 --verify --iters 200
for op in write read send; do
	expect 0 "${client[@]}" --op $op --mode lat --iters 500
done
expect 0 "${client[@]}" --type uc --op send_imm --size 3000 --depth 4 --verify --iters 500
expect 0 "${client[@]}" --type ud --op send --size 1000 --depth 4 --verify --iters 500
in_mode "$1, impaired" extended --seed 2
stop_server

if [ "$1" = memif ]; then
	start_server "${server[@]}"
	all "$1, impaired:" "${impair[@]}" --seed 2
	for mode in gbn reorder; do
		in_mode "$1, impaired" $mode --transport-mode $mode --seed 3
	done
	stop_server
	start_server "${server[@]}"
	for mode in gbn reorder extended; do
		operations_in_mode "read send" "in bursts" $mode --transport-mode $mode --set impair.rx_burst=0.3 \
			--set impair.tx_burst=0.3 --set impair.rx_burst_packets=4 --set impair.tx_burst_packets=4
	done
	stop_server
	for mode in 'gbn reorder' 'reorder gbn'; do
		start_server "${server[@]}" --set "transport.mode=${mode% *}"
		operations_in_mode read "the server in ${mode% *}" "${mode#* }" --set "transport.mode=${mode#* }"
		stop_server
	done
fi

# A flipped bit means a lost packet, never a wrong byte.
start_server "${server[@]}"
for op in write read send; do
	expect 0 "${client[@]}" --set impair.tx_corrupt=2 --set impair.rx_corrupt=2 --op $op \
		--size 20000 --iters 200 --verify
done
stop_server
echo "all well"
