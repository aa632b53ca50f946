#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The other side is killed in the middle of a transfer. The survivor reports an error within the time
# that follows from timeout and retries, and then serves the next peer.
. "$(dirname "$0")/lib.sh"
need_veth 4300

# killed OP TIMEOUT RETRIES SECONDS: 4.096 us * 2^TIMEOUT, RETRIES + 1 times, is well below SECONDS. This test only
# checks that the error arrives; sim_errors limits it to one to four times that, in simulated time.
killed()
{
	start_server "${server_a[@]}"
	start_traffic "${plain_b[@]}" --op "$1" --duration 60 --timeout "$2" --retry "$3"
	kill -KILL "$server_pid"
	wait "$server_pid" 2>/dev/null
	server_pid=
	end_client 1 "$4"
	grep -q '^uroce-perf: ' "$tmp/client.log" || fail "the client does not say what happened"
	echo "server killed during $1: $(grep -m 1 '^uroce-perf: ' "$tmp/client.log")"
}

killed write 14 7 20 # 0.54 s
killed read 14 7 20
killed send 16 3 20 # 1.1 s

start_server "${server_a[@]}"
start_traffic "${client_b[@]}" --op write --duration 60
kill -KILL "$client_pid"
wait "$client_pid" 2>/dev/null
client_pid=
expect 0 "${client_b[@]}" --op send --size 1000 --iters 1000 --verify
stop_server
echo "client killed: the server serves the next one"
