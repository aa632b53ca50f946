#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ./quickstart, with the programs of this build and its own directory for results.
. "$(dirname "$0")/lib.sh"
quickstart=$UROCE_SOURCE/quickstart
results=$tmp/results
json=$results/quickstart.json

# refused OPTION...
refused()
{
	local status
	"$quickstart" "$@" >"$tmp/refused.log" 2>&1 </dev/null
	status=$?
	[ $status -eq 2 ] || fail "status $status, not 2: quickstart $*"
	[ "$(grep -c '' "$tmp/refused.log")" -eq 1 ] || fail "not one line: quickstart $*"
}

# holds WHAT FILTER: the filter must be true for each row of the JSON.
holds()
{
	jq -e "all(.[]; $2)" "$json" >"$tmp/jq.log" 2>&1 || {
		cp "$json" "$tmp/json.log"
		fail "not so in every row of quickstart.json: $1"
	}
}

"$quickstart" --help | grep -q '^Usage: ' || fail "--help does not help"
refused --fast
refused --results
refused --seconds 0
refused --seconds 1.5

need_veth 4300
delete_both_netns
"$quickstart" --no-install --built "${UROCE_PERF%/app/perf/uroce-perf}" --results "$results" \
	--seconds 1 >"$tmp/quickstart.log" 2>&1 </dev/null &
client_pid=$!
quickstart_pid=$client_pid
end_client 0 100

grep -qE '^op +loss +Gb/s +p50/us +p99/us +retransmit +errors$' "$tmp/quickstart.log" ||
	fail "the table has no head"
for percent in 0 1; do
	for op in write read send; do
		[ "$(grep -cE "^$op +$percent % +[0-9]+\.[0-9]{2}( +[0-9]+\.[0-9]){2} +[0-9]+ +0\$" \
			"$tmp/quickstart.log")" -eq 1 ] || fail "no row of $op with $percent % loss"
	done
done

jq -e . "$json" >"$tmp/jq.log" 2>&1 || fail "quickstart.json is not JSON"
[ "$(jq -c 'map([.op, .loss])' "$json")" = \
	'[["write",0],["read",0],["send",0],["write",1],["read",1],["send",1]]' ] ||
	fail "quickstart.json has other rows than the table"
holds "numbers" '[.size, .qps, .mtu, .duration_s, .ops, .bytes, .gbps, .mops,
	.retransmitted_packets, .errors] | all(type == "number")'
holds "latencies" '.lat_us | [.min, .p50, .p99, .p999, .max] |
	all(type == "number" and . > 0) and . == sort'
holds "what a packet costs" '.cpu | type == "object" and length > 0'
holds "work without errors" '.ops > 0 and .bytes == .ops * .size and .gbps > 0 and .errors == 0'
holds "one second" '.duration_s > 0.5 and .duration_s < 30'
# Compared with the losses, not with a time, because a busy machine may transfer little. Lost ACKs cost nothing.
holds "lost packets sent again" '.loss == 0 or .impaired_lost < 50 or
	.retransmitted_packets >= .impaired_lost / 10'

"$UROCE_PCAP" --summary "$results/quickstart.pcap" >"$tmp/summary.log" 2>&1 ||
	fail "uroce-pcap does not like quickstart.pcap"
[ -s "$results/quickstart.log" ] || fail "there is no quickstart.log"
for ns in "uroce-a-$quickstart_pid" "uroce-b-$quickstart_pid"; do
	[ ! -e "/run/netns/$ns" ] || fail "namespace $ns is left behind"
done
