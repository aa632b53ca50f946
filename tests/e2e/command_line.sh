#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Wrong command lines and configuration files are refused with one clear sentence and a status other than 0.
. "$(dirname "$0")/lib.sh"
cnt=0

# refused STATUS WORD ARGUMENT...: the sentence must contain WORD.
refused()
{
	local want=$1 word=$2 status
	shift 2
	timeout 30 "$UROCE_PERF" "$@" >"$tmp/out" 2>"$tmp/refused.log" </dev/null
	status=$?
	[ $status -eq "$want" ] || fail "status $status, not $want: uroce-perf $*"
	[ ! -s "$tmp/out" ] || fail "output for a wrong command line: uroce-perf $*"
	[ "$(grep -c '' "$tmp/refused.log")" -eq 1 ] || fail "not one line: uroce-perf $*"
	grep -q '^uroce-perf: ' "$tmp/refused.log" || fail "not 'uroce-perf: ...': uroce-perf $*"
	grep -qF -- "$word" "$tmp/refused.log" || fail "no '$word' in the answer to uroce-perf $*"
	cnt=$((cnt + 1))
}

server=(server --config "$conf/ring-a.conf")
client=(client --config "$conf/ring-b.conf" --peer 10.77.0.1)

refused 2 client
refused 2 serve serve
refused 2 --config server
refused 2 --config client --peer 10.77.0.1
refused 2 --peer client --config "$conf/ring-b.conf"
refused 2 10.77.0.400 client --config "$conf/ring-b.conf" --peer 10.77.0.400
refused 2 --op "${server[@]}" --op write
refused 2 --once "${client[@]}" --once
refused 2 --port "${server[@]}" --port 70000
refused 2 writ "${client[@]}" --op writ
refused 2 fast "${client[@]}" --mode fast
refused 2 rd "${client[@]}" --type rd
refused 2 3G "${client[@]}" --size 3G
refused 2 -1 "${client[@]}" --size -1
refused 2 --sizes "${client[@]}" --size 8 --sizes 1,2
refused 2 range "${client[@]}" --sizes 8..2
refused 2 --qps "${client[@]}" --qps 0
refused 2 --depth "${client[@]}" --depth many
refused 2 1500 "${client[@]}" --mtu 1500
refused 2 --duration "${client[@]}" --duration 1 --iters 5
refused 2 --duration "${client[@]}" --duration 0
refused 2 --bytes "${client[@]}" --bytes lots
refused 2 --timeout "${client[@]}" --timeout 32
refused 2 --retry "${client[@]}" --retry 8
refused 2 --pcap "${client[@]}" --filter 'udp'
refused 2 section.key=value "${client[@]}" --set worker
refused 2 uc "${client[@]}" --type uc --op read
refused 2 ud "${client[@]}" --type ud --op write
refused 2 --mode "${client[@]}" --mode lat --bidir
refused 2 --op "${client[@]}" --mode connect --op write
refused 2 twice "${client[@]}" --op write --op read
refused 2 --bogus "${client[@]}" --bogus
refused 2 value "${client[@]}" --op
refused 2 stray "${client[@]}" stray
refused 1 nothing.conf server --config "$tmp/nothing.conf"
refused 1 colour "${server[@]}" --set worker.colour=red
refused 1 count "${server[@]}" --set worker.count=9
refused 1 path_mtu "${server[@]}" --set transport.path_mtu=1500
echo "$cnt wrong command lines: one sentence each"

cnt=0
for f in "$UROCE_SOURCE"/tests/config/bad/*.conf; do
	refused 1 "$(basename "$f")" server --config "$f"
done
[ $cnt -ge 30 ] || fail "only $cnt wrong configuration files were tried"
echo "$cnt wrong configuration files: one sentence each"

"$UROCE_PERF" --help >"$tmp/out" || fail "--help ends with status $?"
grep -q 'Exit status' "$tmp/out" || fail "--help does not list the exit statuses"
