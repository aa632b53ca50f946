#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# EDGE-HUGE-01: hugepages = auto when a few pages are free but not available: reserved by another process, or enough only
# for one of two endpoints that start at the same time. Each one starts, with pages or without.
. "$(dirname "$0")/lib.sh"

need_veth 4200
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB
had=$(cat $pages_file/nr_hugepages 2>/dev/null) || skip "this kernel has no hugepages"
holder=

give_pages_back()
{
	[ -z "$holder" ] || kill "$holder" 2>/dev/null
	echo "$had" >$pages_file/nr_hugepages
	clean_up
}
trap give_pages_back EXIT

# enough MB: makes this amount available, or skips the test.
enough()
{
	local idle
	idle=$(($(cat $pages_file/free_hugepages) - $(cat $pages_file/resv_hugepages)))
	[ $idle -ge $(($1 / 2)) ] ||
		echo $(($(cat $pages_file/nr_hugepages) + $1 / 2 - idle)) >$pages_file/nr_hugepages 2>/dev/null
	idle=$(($(cat $pages_file/free_hugepages) - $(cat $pages_file/resv_hugepages)))
	[ $idle -ge $(($1 / 2)) ] || skip "no $1 MiB of hugepages can be had"
}

small=(--set eal.memory_mb=64 --set port.mbufs=4095)
server=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-af_packet-a.conf" "${small[@]}")
client=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-af_packet-b.conf" "${small[@]}" --peer 10.77.0.1
	"${patient[@]}")

# hold_all_but PAGES: another process reserves all other free pages, without touching them.
hold_all_but()
{
	python3 - "$1" <<'EOF' >"$tmp/holder.log" 2>&1 &
import mmap, sys, time
path = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
free, promised = (int(open(path + n + "_hugepages").read()) for n in ("free", "resv"))
held = mmap.mmap(-1, (free - promised - int(sys.argv[1])) << 21, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
print("holds", flush=True)
time.sleep(600)
EOF
	holder=$!
	wait_for 20 grep -q holds "$tmp/holder.log" || fail "no pages can be reserved"
}

let_go()
{
	kill "$holder" && wait "$holder" 2>/dev/null
	holder=
}

# An endpoint wants 32 pages, 5 are available, and /sys shows all as free.
enough 128
hold_all_but 5
start_server "${server[@]}"
expect 0 "${client[@]}" --op write --size 5000 --iters 200 --verify
stop_server
let_go
echo "pages promised to another process: started without"

# both_listen: true if both of two servers started at the same time are listening.
both_listen()
{
	grep -q '^listening' "$tmp/first.log" && grep -q '^listening' "$tmp/second.log"
}

# There are pages for one of them.
hold_all_but 48
for round in 1 2 3 4 5; do
	"${server[@]}" >"$tmp/first.log" 2>&1 </dev/null &
	server_pid=$!
	"${in_b[@]}" "$UROCE_PERF" server --config "$conf/veth-af_packet-b.conf" "${small[@]}" \
		>"$tmp/second.log" 2>&1 </dev/null &
	client_pid=$!
	wait_for 60 both_listen || fail "round $round: one of two that start at once does not"
	kill -INT "$client_pid"
	wait "$client_pid"
	client_pid=
	stop_server
done
let_go
echo "two at once, pages for one: both started"
