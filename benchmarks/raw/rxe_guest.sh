#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in an emulated guest, for benchmarks/rxe.py: the kernel's rxe and uroce over the same veth pair, one
# after the other, with the same loss (netem at both ends). Prints "RESULT {json}" for each measurement.
#
#   rxe_guest.sh TURNS SECONDS
turns=$1
seconds=$2
share=/mnt/share
pmtu=2048 # the most that af_xdp carries

veth()
{
	local i
	modprobe veth
	ip link add va type veth peer name vb
	ip link set va address 02:00:00:00:00:0a
	ip link set vb address 02:00:00:00:00:0b
	# Two rxe on one pair: packets for an address of this host leave by one end and come in by the other.
	for i in all va vb; do
		sysctl -qw net.ipv4.conf.$i.rp_filter=0 net.ipv4.conf.$i.accept_local=1
	done
	for i in va vb; do
		sysctl -qw net.ipv6.conf.$i.disable_ipv6=1
		ethtool -K $i tx off gso off gro off tso off >/dev/null 2>&1
		ip link set $i mtu 2200 up
	done
}

addresses()
{
	ip addr "$1" 10.98.0.1/24 dev va
	ip addr "$1" 10.98.0.2/24 dev vb
	[ "$1" = add ] || return 0
	ip neigh replace 10.98.0.2 lladdr 02:00:00:00:00:0b dev va nud permanent
	ip neigh replace 10.98.0.1 lladdr 02:00:00:00:00:0a dev vb nud permanent
}

# loss PERCENT
loss()
{
	local i
	for i in va vb; do
		tc qdisc del dev $i root 2>/dev/null
		[ "$1" = 0 ] || tc qdisc add dev $i root netem limit 10000 loss "$1%"
	done
}

# say WHO WHAT LOSS VALUE
say()
{
	echo "RESULT {\"who\": \"$1\", \"what\": \"$2\", \"loss\": $3, \"value\": ${4:-0}}"
}

# perftest TOOL COLUMN OPTION...: the last line's column.
perftest()
{
	local tool=$1 column=$2 server i
	shift 2
	"$tool" -d rxb -x 0 -F -p 18515 -m $pmtu "$@" >server.log 2>&1 &
	server=$!
	for ((i = 0; i < 100; i++)); do
		ss -ltn | grep -q :18515 && break
		sleep 0.1
	done
	timeout 90 "$tool" -d rxa -x 0 -F -p 18515 -m $pmtu "$@" 127.0.0.1 >client.log 2>&1
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	grep -E '^ *[0-9]+ +[0-9]+ +[0-9.]' client.log | tail -n 1 | awk -v c="$column" '{ print $c }'
}

rxe()
{
	local l
	addresses add
	rdma link add rxa type rxe netdev va
	rdma link add rxb type rxe netdev vb
	say rxe rate 0 "$(perftest ib_write_bw 5 -s 64 -D "$seconds" --report_gbits)"
	say rxe lat 0 "$(perftest ib_write_lat 5 -s 64 -n 1000)"
	for l in 0 0.1 1; do
		loss $l
		say rxe bw $l "$(perftest ib_write_bw 4 -s 65536 -D "$seconds" --report_gbits)"
	done
	loss 0
	rdma link delete rxa
	rdma link delete rxb
	addresses del
}

# perf DRIVER FIELD OPTION...: the first field of that name in uroce-perf's JSON.
perf()
{
	local driver=$1 field=$2 server i
	shift 2
	local both=(--set port.driver="$driver" --set transport.path_mtu=$pmtu --set eal.hugepages=no
		--set eal.memory_mb=192 --set worker.thread_safe=no)
	$share/uroce-perf server --config $share/endpoint.conf "${both[@]}" --set port.device=va \
		--set address.ipv4=10.98.1.1/24 --once >server.log 2>&1 &
	server=$!
	for ((i = 0; i < 300; i++)); do
		grep -q listening server.log && break
		sleep 0.1
	done
	timeout 90 $share/uroce-perf client --config $share/endpoint.conf "${both[@]}" --set port.device=vb \
		--set address.ipv4=10.98.1.2/24 --peer 10.98.1.1 --json run.json --timeout 18 "$@" >client.log 2>&1 ||
		tail -n 3 client.log server.log >&2
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	sed -n "s/^ *\"$field\": \([0-9.e+-]*\),*\$/\1/p" run.json 2>/dev/null | head -n 1
	rm -f run.json
}

uroce()
{
	local driver=$1 l
	say "$driver" rate 0 "$(perf "$driver" mops --mode rate --op write --size 64 --depth 128 \
		--duration "$seconds")"
	say "$driver" lat 0 "$(perf "$driver" p50 --mode lat --op write --size 64 --iters 1000)"
	for l in 0 0.1 1; do
		loss $l
		# What af_xdp sends passes no queueing discipline: there uroce loses the packets.
		local lose=()
		[ "$driver" = af_packet ] || lose=(--set "impair.tx_loss=$l")
		[ "$driver" = af_packet ] || loss 0
		say "$driver" bw $l "$(perf "$driver" gbps --op write --size 65536 --depth 32 \
			--duration "$seconds" "${lose[@]}")"
	done
	loss 0
}

mkdir -p /run/bench && cd /run/bench || exit 1
modprobe -a rdma_rxe crc32_generic ib_uverbs sch_netem
mkdir -p /sys/fs/bpf && mount -t bpf bpf /sys/fs/bpf
veth
for ((turn = 0; turn < turns; turn++)); do
	rxe
	uroce af_packet
	uroce af_xdp
done
echo over
