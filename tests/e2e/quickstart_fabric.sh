#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ./quickstart --fabric, with the programs of this build: what it prints of the fabric, and its picture.
. "$(dirname "$0")/lib.sh"
command -v dot >/dev/null || skip "graphviz is not installed"
results=$tmp/results

need_veth 4300
delete_both_netns
"$UROCE_SOURCE/quickstart" --fabric --no-install --built "${UROCE_PERF%/app/perf/uroce-perf}" --results "$results" \
	--seconds 1 >"$tmp/quickstart.log" 2>&1 </dev/null &
client_pid=$!
quickstart_pid=$client_pid
end_client 0 100

# says WHAT PATTERN: a line matches.
says()
{
	grep -qE "$2" "$tmp/quickstart.log" || fail "$1 is missing"
}

says "the sum of the nodes" '^7 nodes: 2 switches, 5 endpoints; 6 links$'
says "host 1 at the left switch" '^ +1 +init +[0-9]+x +endpoint #[0-9]+ "host 1" port 1$'
says "the link between the switches" '^ +3 +init +[0-9]+x +switch #[0-9]+ "right switch" port 3$'
says "the last hop" '^  2  #[0-9]+ "right switch" port 2 \(init, [0-9]+x\) -> #[0-9]+ "host 4" port 1 '
says "the length of the way" '^3 hops$'
says "what changed" '^  rx_packets:1 +[0-9]+ -> [0-9]+$'
for n in 1 2; do
	says "the traffic of host $n" "^   host $n to host $((n + 2)): [0-9.]+ Gb/s, 0 errors\$"
done
[ "$(jq -c '[.nodes[] | select(.type == "switch").description] | sort' "$results/fabric.json")" = \
	'["left switch","right switch"]' ] || fail "fabric.json does not have both switches"
grep -q '<svg' "$results/fabric.svg" || fail "fabric.svg is no picture"
for ns in /run/netns/uroce-a-*-"$quickstart_pid"; do
	[ ! -e "$ns" ] || fail "namespace ${ns##*/} is left behind"
done
