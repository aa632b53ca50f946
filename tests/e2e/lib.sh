# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the end-to-end tests (bash). meson gives UROCE_PERF, UROCE_PCAP and UROCE_SOURCE.
#
# A test calls need_veth or need_root first, then starts servers and clients and checks their output.
# It ends with status 0, 1 (with the logs) or 77 ("skipped"), and stops everything that it has started.
# shellcheck shell=bash disable=SC2034

set -u
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
: "${UROCE_PERF:?}" "${UROCE_PCAP:?}" "${UROCE_SOURCE:?}"
conf=$UROCE_SOURCE/pmd-config
# shellcheck source=scripts/netns.sh
. "$UROCE_SOURCE/scripts/netns.sh"

tmp=$(mktemp -d) || exit 1
server_pid=
client_pid=

clean_up()
{
	trap '' INT TERM HUP
	[ -z "$server_pid" ] || kill -KILL "$server_pid" 2>/dev/null
	[ -z "$client_pid" ] || kill -KILL "$client_pid" 2>/dev/null
	[ -z "${made_netns:-}" ] || delete_both_netns
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

skip()
{
	echo "skipped: $*"
	exit 77
}

fail()
{
	local f
	echo "FAILED: $*"
	for f in "$tmp"/*.log; do
		[ ! -s "$f" ] || { echo "-- $(basename "$f")" && tail -n 60 "$f"; }
	done
	exit 1
}

need_root()
{
	[ "$(id -u)" -eq 0 ] || skip "needs root"
}

# need_veth MTU: uroce0 in namespace a, uroce1 in namespace b. For root a failure is an error, not a reason to
# skip, because otherwise the following tests would silently not be run.
need_veth()
{
	need_root
	made_netns=yes
	make_netns "$1" 2>"$tmp/netns" || fail "no network namespaces or veth: $(tail -n 1 "$tmp/netns")"
}

# need_xdp: skips the test unless the kernel has AF_XDP (44).
need_xdp()
{
	python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW, 0)' 2>/dev/null ||
		skip "this kernel has no AF_XDP"
}

# wait_for SECONDS COMMAND...: waits until the command succeeds.
wait_for()
{
	local left=$(($1 * 20))
	shift
	until "$@"; do
		((left-- > 0)) || return 1
		sleep 0.05
	done
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

# stacks PID: prints the stacks of a process that hangs, for the log.
stacks()
{
	command -v gdb >/dev/null && ! gone "$1" || return 0
	gdb -p "$1" -batch -ex 'thread apply all bt 10' 2>/dev/null | grep -E '^(Thread|#)' \
		>"$tmp/stacks.log"
}

listening_or_gone()
{
	grep -q '^listening' "$tmp/server.log" || gone "$server_pid"
}

# start_server COMMAND...: the command is `ip netns exec ... uroce-perf server ...` or the like.
start_server()
{
	: >"$tmp/server.log" # here: what the last one said may be read before the new one is there
	"$@" >"$tmp/server.log" 2>&1 </dev/null &
	server_pid=$!
	wait_for 30 listening_or_gone
	grep -q '^listening' "$tmp/server.log" || {
		stacks "$server_pid"
		fail "the server does not start"
	}
}

# stop_server: interrupts the server, which must end with status 0 soon.
stop_server()
{
	local status
	kill -INT "$server_pid" || fail "the server died before it was stopped"
	wait_for 20 gone "$server_pid" || {
		stacks "$server_pid"
		fail "the server does not leave when interrupted"
	}
	wait "$server_pid"
	status=$?
	server_pid=
	[ $status -eq 0 ] || fail "the server left with status $status, not 0"
}

# expect STATUS COMMAND...: runs a client to its end; its output is in client.log.
expect()
{
	local want=$1 status
	shift
	timeout 120 "$@" >"$tmp/client.log" 2>&1 </dev/null
	status=$?
	[ $status -eq "$want" ] || fail "status $status, not $want: ${*/#$UROCE_PERF/uroce-perf}"
}

# start_client COMMAND...: starts a client in the background; end_client STATUS SECONDS waits for it.
start_client()
{
	: >"$tmp/client.log"
	"$@" >"$tmp/client.log" 2>&1 </dev/null &
	client_pid=$!
}

flows_or_gone()
{
	grep -q '^after ' "$tmp/client.log" || gone "$client_pid"
}

# start_traffic COMMAND...: like start_client, but returns when messages have flowed for a fifth of a second.
start_traffic()
{
	start_client "$@" --live --live-interval 0.2
	wait_for 30 flows_or_gone && ! gone "$client_pid" || fail "no traffic"
}

end_client()
{
	local status
	wait_for "$2" gone "$client_pid" || fail "the client still runs after $2 s"
	wait "$client_pid"
	status=$?
	client_pid=
	[ $status -eq "$1" ] || fail "the client ended with status $status, not $1"
}

# Impairment of both directions, at the client.
impair=(--set impair.rx_loss=1 --set impair.tx_loss=1 --set impair.rx_duplicate=1
	--set impair.tx_duplicate=1 --set impair.rx_reorder=1 --set impair.tx_reorder=1)

# field FILTER: applies the filter to the JSON of the last client.
field()
{
	jq -r "$1" "$tmp/run.json"
}

# clean_result: the JSON of the last client must have no errors.
clean_result()
{
	[ "$(field 'if .results then [.results[].errors] | add else .errors end')" = 0 ] ||
		fail "the JSON result has errors"
}

# interrupt_client SECONDS: ends traffic that lasts until the test has seen enough; what it moved is right. It has --json.
interrupt_client()
{
	gone "$client_pid" && fail "the traffic ended by itself"
	kill -INT "$client_pid"
	end_client 130 "$1"
	clean_result
}

# Other processes may take the hugepages at any time, so tests do without.
pages=(--set eal.hugepages=no)

# On a busy machine a program may not run for seconds: 8 times 1.07 s.
patient=(--timeout 18)

server_a=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-af_packet-a.conf" "${pages[@]}")
plain_b=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-af_packet-b.conf" "${pages[@]}"
	--peer 10.77.0.1)
client_b=("${plain_b[@]}" "${patient[@]}")
