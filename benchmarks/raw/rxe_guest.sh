#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in an emulated guest, for benchmarks/rxe.py: the kernel's rxe and uroce over the same veth pair, one
# after the other, with the same loss (by netem at both ends; for af_xdp, which bypasses netem, by [impair]).
# Prints "AT uptime turn contender what loss" before each measurement and "RESULT {json}" after it. The result
# of a failed measurement has no value, but the reason.
#
#   rxe_guest.sh TURNS SECONDS
turns=$1
seconds=$2
share=/mnt/share
export LD_LIBRARY_PATH=$share # liburoce.so.0
pmtu=2048 # the most that af_xdp carries
patience=40 # seconds of one measurement; rxe never gives up by itself
lost_by_uroce=0
frames_least=50 # a measurement with fewer has not used the veth pair

veth()
{
	local i
	modprobe veth
	ip link add va type veth peer name vb
	ip link set va address 02:00:00:00:00:0a
	ip link set vb address 02:00:00:00:00:0b
	# Both rxe devices are in this host: packets to a local address must leave by one end of the pair and
	# arrive at the other.
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

# Packets that va has received. With af_xdp, sent packets are not counted.
frames()
{
	cat /sys/class/net/va/statistics/rx_packets
}

# measure CONTENDER WHAT LOSS COMMAND...: the command sets $value to its figure, or $why to the reason of a failure.
measure()
{
	local contender=$1 what=$2 lost=$3 before result
	shift 3
	echo "AT $(cut -d ' ' -f 1 /proc/uptime) $turn $contender $what $lost"
	value='' why='it did not run'
	before=$(frames)
	"$@"
	if [ -n "$value" ] && [ $(($(frames) - before)) -lt $frames_least ]; then
		value='' why='its packets did not cross the veth pair'
	fi
	why=${why//[\"\\]/}
	result="\"contender\": \"$contender\", \"what\": \"$what\", \"loss\": $lost"
	if [ -n "$value" ]; then
		echo "RESULT {$result, \"value\": $value}"
	else
		echo "RESULT {$result, \"value\": null, \"why\": \"$why\"}"
	fi
}

# await PID COMMAND...: waits until the command succeeds; returns 1 if the process ends before.
await()
{
	local pid=$1 end=$((SECONDS + 20))
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# last_words STATUS FILE...
last_words()
{
	local status=$1
	shift
	[ "$status" -ne 124 ] || echo -n "no end after $patience s; "
	cat "$@" | tr -d '\r' | grep -v '^[-* ]*$' | tail -n 2 | tr '\n\t' '; '
}

listens()
{
	ss -Hltn 'sport = :18515' | grep -q .
}

# The index of the GID of the interface's IPv4 address. The default GID, 0, is link-local.
gid_index()
{
	grep -l ffff:0a62 /sys/class/infiniband/rxa/ports/1/gids/* 2>/dev/null | head -n 1 | sed 's,.*/,,'
}

# perftest TOOL COLUMN OPTION...: a column of the last line.
perftest()
{
	local tool=$1 column=$2 server status
	shift 2
	set -- -x "$(gid_index)" -F -p 18515 -m $pmtu "$@"
	timeout -k 2 $patience "$tool" -d rxb "$@" >server.log 2>&1 &
	server=$!
	await $server listens
	timeout -k 2 $patience "$tool" -d rxa "$@" 127.0.0.1 >client.log 2>&1
	status=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	if [ $status -ne 0 ]; then
		why=$(last_words $status client.log)
		return
	fi
	why="no figure, but: $(last_words 0 client.log)"
	# With loss, perftest may print 0 although it has counted messages.
	value=$(grep -E '^ *[0-9]+ +[0-9]+ +[0-9.]' client.log | tail -n 1 | awk -v c="$column" -v s="$seconds" '
		c > 3 && $c == 0 { $4 = $2 * $1 * 8e-9 / s; $5 = $2 / s / 1e6 }
		$c > 0 { print $c }')
}

rxe()
{
	local l
	addresses add
	rdma link add rxa type rxe netdev va
	rdma link add rxb type rxe netdev vb
	measure rxe rate 0 perftest ib_write_bw 5 -s 64 -t 128 -D "$seconds" --report_gbits
	measure rxe lat 0 perftest ib_write_lat 5 -s 64 -n 1000
	for l in 0 0.1 1; do
		loss $l
		measure rxe bw $l perftest ib_write_bw 4 -s 65536 -t 32 -D "$seconds" --report_gbits
	done
	loss 0
	rdma link delete rxa
	rdma link delete rxb
	addresses del
}

# perf DRIVER FIELD OPTION...: the first field of that name in uroce-perf's JSON.
perf()
{
	local driver=$1 field=$2 server status
	shift 2
	local both=(--set port.driver="$driver" --set transport.path_mtu="$pmtu" --set eal.hugepages=no
		--set eal.memory_mb=192 --set worker.thread_safe=no --set impair.tx_loss="$lost_by_uroce")
	rm -f run.json
	# Both processes poll, so each has its own CPU.
	timeout -k 2 $((2 * patience)) taskset -c 0 $share/uroce-perf server --config $share/endpoint.conf \
		"${both[@]}" --set port.device=va --set address.ipv4=10.98.1.1/24 --once >server.log 2>&1 &
	server=$!
	if ! await $server grep -q listening server.log; then
		kill $server 2>/dev/null
		wait $server
		why=$(last_words $? server.log)
		return
	fi
	timeout -k 2 $patience taskset -c 1 $share/uroce-perf client --config $share/endpoint.conf \
		"${both[@]}" --set port.device=vb --set address.ipv4=10.98.1.2/24 --peer 10.98.1.1 --json run.json "$@" \
		>client.log 2>&1
	status=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	if [ $status -ne 0 ]; then
		why=$(last_words $status client.log)
		return
	fi
	why="no figure, but: $(last_words 0 client.log)"
	value=$(sed -n "s/^ *\"$field\": \([0-9.e+-]*\),*\$/\1/p" run.json | head -n 1 | awk '$1 > 0')
}

uroce()
{
	local driver=$1 l
	measure "$driver" rate 0 perf "$driver" mops --mode rate --op write --size 64 --depth 128 \
		--duration "$seconds"
	measure "$driver" lat 0 perf "$driver" p50 --mode lat --op write --size 64 --iters 1000
	for l in 0 0.1 1; do
		if [ "$driver" = af_packet ]; then
			loss $l
		else
			lost_by_uroce=$l
		fi
		measure "$driver" bw $l perf "$driver" gbps --op write --size 65536 --depth 32 \
			--duration "$seconds"
	done
	loss 0
	lost_by_uroce=0
}

mkdir -p /run/bench && cd /run/bench || exit 1
modprobe -a rdma_rxe crc32_generic ib_uverbs sch_netem
mkdir -p /sys/fs/bpf && mount -t bpf bpf /sys/fs/bpf
veth
for ((turn = 1; turn <= turns; turn++)); do
	rxe
	uroce af_packet
	uroce af_xdp
done
echo over
