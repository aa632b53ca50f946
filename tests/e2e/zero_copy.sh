#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# EDGE-EVICT-01: a memif client with zero copy, in whose buffers the server writes. Every byte is compared, with received
# frames evicted from the cache, kept in it, and as measured; the client says which.
. "$(dirname "$0")/lib.sh"

need_root
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB
had=$(cat $pages_file/nr_hugepages 2>/dev/null) || skip "this kernel has no hugepages"

give_pages_back()
{
	echo "$had" >$pages_file/nr_hugepages
	clean_up
}
trap give_pages_back EXIT

idle=$(($(cat $pages_file/free_hugepages) - $(cat $pages_file/resv_hugepages)))
[ $idle -ge 40 ] || echo $((had + 40 - idle)) >$pages_file/nr_hugepages
idle=$(($(cat $pages_file/free_hugepages) - $(cat $pages_file/resv_hugepages)))
[ $idle -ge 40 ] || skip "no 80 MiB of hugepages can be had"

small=(--set eal.memory_mb=64 --set "port.device=$tmp/memif.sock")
server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}" "${small[@]}")
client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${small[@]}" --set port.zero_copy=yes
	--peer 10.77.0.1 "${patient[@]}")

# says EVICT: the sentence that belongs to [port] evict = EVICT.
says()
{
	case $1 in
	yes) echo 'received frames (are evicted from the cache \(as configured\)|stay in the cache \(the CPU has no CLFLUSHOPT\))' ;;
	no) echo 'received frames stay in the cache \(as configured\)' ;;
	auto) echo 'received frames (are evicted from|stay in) the cache \((measured with CPU [0-9]+ and [1-4] other|the CPU has no CLFLUSHOPT|there is no second CPU|the CPUs were too busy)' ;;
	esac
}

start_server "${server[@]}"
for evict in yes no auto; do
	for op in write read send; do
		expect 0 "${client[@]}" --set port.evict=$evict --op $op --verify --sizes 1,900,100000 --iters 300 \
			--json "$tmp/run.json"
		clean_result
		field '[.. | .port? // empty] | unique | .[]' | grep -qE "$(says $evict)" ||
			fail "evict = $evict: the client says $(field '[.. | .port? // empty] | unique | .[]')"
	done
	echo "evict = $evict: verified"
done
stop_server
echo "all well"
