#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-perf server --shared-srq: all clients of a server share one SRQ and one service rate. A client with other
# receives is refused while there are others. If a client dies, its receives are available to the others. Two
# endpoints on a bridge, with one client and with two.
. "$(dirname "$0")/lib.sh"
need_veth 4300

# Endpoints u1 and u2 in namespace b, on a bridge with uroce1.
{
	"${in_b[@]}" ip link add br0 type bridge && "${in_b[@]}" ip link set br0 mtu 4300 up &&
		"${in_b[@]}" ip link set uroce1 master br0
} >"$tmp/bridge.log" 2>&1 || fail "no bridge"
for i in 1 2; do
	{
		"${in_b[@]}" ip link add u$i mtu 4300 type veth peer name p$i mtu 4300 &&
			"${in_b[@]}" ip link set p$i master br0 && "${in_b[@]}" ip link set p$i up &&
			"${in_b[@]}" ip link set u$i up
	} >>"$tmp/bridge.log" 2>&1 || fail "no veth"
	sed "s/uroce1/u$i/; s/10\.77\.0\.2/10.77.0.$((i + 1))/; s/fd77::2/fd77::$((i + 1))/" "$conf/veth-af_packet-b.conf" >"$tmp/u$i.conf"
done

smart=(--set admission.mode=intelligent)
common=("${pages[@]}" "${smart[@]}" --peer 10.77.0.1 "${patient[@]}" --srq)
client=("${in_b[@]}" "$UROCE_PERF" client)

# 1 ms per message: both together get what one SRQ serves, and one pool has the queue pairs of both.
start_server "${server_a[@]}" "${smart[@]}" --shared-srq --live --live-interval 0.5
expect 0 "${client[@]}" --config "$tmp/u1.conf" --config "$tmp/u2.conf" "${common[@]}" --op send --qps 4 --size 1K --depth 1 \
	--json "$tmp/run.json" --receives 2 --service-us 1000 --duration 2
clean_result
[ "$(field '[.peers[].client.ops] | min > 0')" = true ] || fail "a client was not served"
[ "$(field '.client.ops <= .duration_s * 1000 + 10')" = true ] || fail "more than one SRQ serves: $(field .client.ops)"
grep -qE '^ +[0-9]+ (NA|A|NB|B) +[0-9]+ +8 ' "$tmp/server.log" || fail "no pool of the queue pairs of both"
grep -q warning "$tmp/server.log" && fail "objects are left"
[ "$(field .admission.mode)" = intelligent ] || fail "the report names another mode: $(field .admission)"
echo "two clients, one SRQ"

expect 0 "${client[@]}" --config "$tmp/u1.conf" --config "$tmp/u2.conf" "${common[@]}" --qps 2 --op mixed --size 20K \
	--verify --iters 2000 --json "$tmp/run.json"
clean_result
echo "every byte compared"

# The same by the rules of the paper: the server refuses, tells of each change, and grants nothing.
stop_server
paper=(--set admission.mode=paper)
start_server "${server_a[@]}" "${paper[@]}" --shared-srq --live --live-interval 0.5
expect 0 "${client[@]}" --config "$tmp/u1.conf" --config "$tmp/u2.conf" "${pages[@]}" "${paper[@]}" --peer 10.77.0.1 \
	"${patient[@]}" --srq --op send --qps 4 --size 1K --depth 1 --json "$tmp/run.json" --receives 2 \
	--service-us 1000 --duration 2
clean_result
[ "$(field .admission.mode)" = paper ] || fail "the report names another mode: $(field .admission)"
grep -q '^mode .*, admission paper; latency' "$tmp/client.log" || fail "the heading does not name the mode"
[ "$(field '[.peers[].client.ops] | min > 0')" = true ] || fail "a client was not served"
[ "$(field '.server.counters | .adm_refused > 0 and .adm_notifies_sent > 0 and .adm_grants_sent == 0')" = true ] ||
	fail "no NOTIFYs, or grants: $(field .server.counters)"
[ "$(field '.client.counters | .adm_waits > 0 and .adm_notifies_received > 0')" = true ] ||
	fail "nothing was held back: $(field .client.counters)"
shows_mode() { grep -qE '^admission: paper; [0-9.k]+ requests accepted and [0-9.k]+ refused a second$' "$tmp/server.log"; }
shows_mode || fail "the live table does not name the mode"
expect 0 "${client[@]}" --config "$tmp/u1.conf" --config "$tmp/u2.conf" "${pages[@]}" "${paper[@]}" --peer 10.77.0.1 \
	"${patient[@]}" --srq --qps 2 --op mixed --size 20K --verify --iters 2000 --json "$tmp/run.json"
clean_result
echo "two clients, one SRQ in mode paper, every byte compared"

# One client continues while another is refused, is accepted, and dies in the middle of long messages.
stop_server
start_server "${server_a[@]}" "${smart[@]}" --shared-srq
left()
{
	[ "$(grep -c '^client .* disconnected' "$tmp/server.log")" -ge "$1" ]
}
many=("${common[@]}" --op send --qps 4 --size 20K --service-us 10)
start_traffic "${client[@]}" --config "$tmp/u1.conf" "${many[@]}" --receives 1 --duration 60 --json "$tmp/run.json"
timeout 60 "${client[@]}" --config "$tmp/u2.conf" "${many[@]}" --receives 2 >"$tmp/other.log" 2>&1 &&
	fail "other receives are not refused"
grep -q 'the SRQ that clients share here is for up to 20480 bytes a message, --receives 1, --service-us 10' \
	"$tmp/other.log" || fail "no sentence about receives that differ"
"${client[@]}" --config "$tmp/u2.conf" "${many[@]}" --receives 1 --duration 60 --live --live-interval 0.2 \
	--set impair.tx_loss=30 \
	>"$tmp/dying.log" 2>&1 &
dying=$!
wait_for 30 grep -q '^after ' "$tmp/dying.log" || fail "the second client has no traffic"
kill -KILL $dying
wait $dying 2>/dev/null
wait_for 30 left 2 || fail "the server does not see that the client died"
timeout 60 "${client[@]}" --config "$tmp/u2.conf" "${many[@]}" --receives 1 --iters 400 \
	 >"$tmp/other.log" 2>&1 || fail "no service after a client died"
interrupt_client 30
stop_server
echo "one client is refused, one dies, the others go on"
