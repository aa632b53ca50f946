#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The bare pipe of the benchmarks over memif, each mode with several sizes: what arrives is what was sent, and a
# frame that is altered on its way is found, by its sum or by its bytes. Counts, no times.
. "$(dirname "$0")/lib.sh"
need_root
: "${BARE_PIPE:?}"

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
sock=$tmp/memif.sock

# eal SIDE: sets `command`. Side 0 is memif's server, which must be started first.
eal()
{
	local role=server
	[ "$1" -eq 0 ] || role=client
	command=("$BARE_PIPE" "--lcores=0@${cpus[$1 % ${#cpus[@]}]}" --no-pci --no-telemetry --no-huge --no-shconf
		-m 64 --log-level=error
		"--vdev=net_memif0,role=$role,socket=$sock,socket-abstract=no,rsize=8,bsize=4224" --)
}

socket_or_gone()
{
	[ -S "$sock" ] || gone "$1"
}

# start SIDE WORD...: the client leaves its JSON in run.json.
start()
{
	local side=$1
	shift
	eal "$side"
	if [ "$1" = server ]; then
		"${command[@]}" "$@" >"$tmp/server.log" 2>&1 </dev/null &
		server_pid=$!
	else
		"${command[@]}" "$@" >"$tmp/run.json" 2>"$tmp/client.log" </dev/null &
		client_pid=$!
	fi
	[ "$side" -ne 0 ] || wait_for 30 socket_or_gone $! || fail "no memif socket"
}

# end_server STATUS
end_server()
{
	local status
	wait_for 30 gone "$server_pid" || fail "the server still runs"
	wait "$server_pid"
	status=$?
	server_pid=
	[ $status -eq "$1" ] || fail "the server ended with status $status, not $1"
}

# pipe CLIENT-SIDE CLIENT-STATUS SERVER-STATUS OPTION...
pipe()
{
	local side=$1 client=$2 server=$3
	shift 3
	what="$*"
	rm -f "$sock"
	if [ "$side" -eq 0 ]; then
		start 0 client "$@"
		start 1 server
	else
		start 0 server
		start 1 client "$@"
	fi
	end_client "$client" 120
	end_server "$server"
}

# counts FRAMES BAD-SUMS WRONG-BYTES: what the last run must have found.
counts()
{
	local found
	found=$(field '"\(.frames_sent) \(.frames_arrived) \(.bad_sums) \(.wrong_bytes) \(.strange)"')
	[ "$found" = "$1 $1 $2 $3 0" ] ||
		fail "$what: sent, arrived, bad sums, wrong bytes, strange: $found, not $1 $1 $2 $3 0"
}

# Data goes from side 0 to side 1, as in the benchmarks, and the other way. 4096: payload is attached to frames.
for side in 0 1; do
	pipe $side 0 0 --mode write --count 500 --verify
	counts 8000 0 0
	[ "$(field '.acks > 0 and .acks <= 500')" = true ] || fail "$(field .acks) ACKs of 8000 frames, one in 16 at most"
	pipe $side 0 0 --mode read --count 500 --verify
	counts 8000 0 0
	pipe $side 0 0 --mode pingpong --payload 8 --headers 70 --count 500 --verify
	counts 1000 0 0
done
pipe 0 0 0 --mode write --message 64 --payload 64 --headers 70 --window 256 --count 20000 --verify
counts 20000 0 0
pipe 1 0 0 --mode read --message 64 --payload 64 --outstanding 128 --count 20000 --verify
counts 20000 0 0
pipe 0 0 0 --mode write --message 3003 --payload 1001 --headers 61 --count 1000 --verify
counts 3000 0 0
pipe 0 0 0 --mode write --message 1 --payload 1 --keep-cached --count 1000 --verify
counts 1000 0 0
pipe 1 0 0 --mode pingpong --payload 4096 --count 300 --verify
counts 600 0 0
echo "what arrives is what was sent"

# The window is bounded: with room for four frames there is an ACK of each four.
pipe 0 0 0 --mode write --window 4 --ack-every 4 --count 100 --verify
counts 1600 0 0
[ "$(field .acks)" -eq 400 ] || fail "$(field .acks) ACKs of 1600 frames, not 400"
pipe 0 0 0 --mode write --message 64 --payload 64 --window 1 --ack-every 1 --count 100 --verify
[ "$(field .acks)" -eq 100 ] || fail "$(field .acks) ACKs of 100 frames, not 100"
echo "ACKs open the window"

# Every seventh frame is altered after it was summed: it is found with and without --verify. The status of the
# server tells what it found itself.
pipe 0 1 1 --mode write --count 500 --corrupt 7
counts 8000 1142 0
pipe 0 1 1 --mode write --message 64 --payload 64 --count 5000 --corrupt 7 --verify
counts 5000 714 0
pipe 1 1 0 --mode read --count 500 --corrupt 7 --verify
counts 8000 1142 0
pipe 1 1 1 --mode pingpong --payload 8 --count 500 --corrupt 7
counts 1000 142 0
grep -q 'bare_pipe: 142 frames arrived with a wrong sum' "$tmp/client.log" || fail "the client does not say what is wrong"
echo "the sum finds a flipped bit"

# Before it was summed: only the comparison finds it.
pipe 0 1 1 --mode write --count 500 --forge 7 --verify
counts 8000 0 1142
pipe 1 1 0 --mode read --message 64 --payload 64 --count 5000 --forge 7 --verify
counts 5000 0 714
pipe 1 1 1 --mode pingpong --payload 8 --count 500 --forge 7 --verify
counts 1000 0 142
pipe 0 0 0 --mode write --count 500 --forge 7
counts 8000 0 0
echo "the comparison finds wrong bytes"

# refuses SENTENCE WORD...
refuses()
{
	local sentence=$1
	shift
	eal 0
	rm -f "$sock"
	timeout 60 "${command[@]}" "$@" >"$tmp/client.log" 2>&1 </dev/null
	[ $? -eq 2 ] || fail "not refused with status 2: $*"
	grep -q "^bare_pipe: .*$sentence" "$tmp/client.log" || fail "'$sentence' is not said of: $*"
}

refuses 'the window never opens' client --window 16 --ack-every 17
refuses '1, 4096' client --payload 4097
refuses 'multiple of --payload' client --message 100 --payload 64
refuses '54, 128' client --headers 40
refuses 'write, read or pingpong' client --mode send
refuses 'a whole number' client --count many
refuses 'server` or `-- client' neither
refuses 'not an option' client 7
"$BARE_PIPE" --help >"$tmp/help.log" || fail "no --help"
for option in mode message payload headers window ack-every outstanding seconds warmup count verify corrupt forge \
	keep-cached; do
	grep -q -- "--$option" "$tmp/help.log" || fail "--help does not tell of --$option"
done
echo "the command line is checked"
