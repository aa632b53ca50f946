#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Both ends of a memif leave at the same time, repeatedly. Then one of them dies while packets are in
# flight. The other one must end properly, although the driver removes the rings that its workers use.
. "$(dirname "$0")/lib.sh"
need_root

server=("$UROCE_PERF" server --config "$conf/memif-server.conf" "${pages[@]}"
	--set "port.device=$tmp/memif.sock")
client=("$UROCE_PERF" client --config "$conf/memif-client.conf" "${pages[@]}" --peer 10.77.0.1
	--set "port.device=$tmp/memif.sock" --op read --size 65536 --depth 32)

for ((i = 0; i < 8; i++)); do
	start_server "${server[@]}" --once
	expect 0 "${client[@]}" "${patient[@]}" --duration 0.1 --warmup 0.05
	wait_for 20 gone "$server_pid" || fail "the server still runs, run $i"
	wait "$server_pid"
	status=$?
	server_pid=
	[ $status -eq 0 ] || fail "the server left with status $status, not 0, run $i"
done
echo "8 times both left together"

# says_why FILE: a sentence, and no signal, ended it.
says_why()
{
	grep -q '^uroce-perf: ' "$1"
}

for ((i = 0; i < 3; i++)); do
	start_server "${server[@]}"
	start_traffic "${client[@]}" --duration 30 --timeout 16 --retry 3
	kill -KILL "$server_pid"
	wait "$server_pid" 2>/dev/null
	server_pid=
	end_client 1 40
	says_why "$tmp/client.log" || fail "the client does not say why it ended"
	rm -f "$tmp/memif.sock"
done
echo "3 times the peer died"
