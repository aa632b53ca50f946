#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-perf --live over af_packet shows, at both ends, tables of lanes and scheduler; of destinations if they are
# paced; of pools if admission is not plain; and none of these otherwise. No line is wider than 100 columns.
. "$(dirname "$0")/lib.sh"
need_veth 4300

# shows LOG PATTERN WHAT: the log must have a line that matches.
shows()
{
	grep -qE -- "$2" "$tmp/$1.log" || fail "no $3"
}

# The output of --live, without the other output of uroce-perf.
tables()
{
	grep -hE '^(after|  *VL|  *[0-9]+ [0-9]|scheduler|pacing|destination|[0-9.]+ |admission|  NOTIFYs|  messages|  *pool|of a)' "$@"
}

narrow()
{
	tables "$tmp/client.log" "$tmp/server.log" | awk 'length > 100 { print; wide = 1 } END { exit !wide }' &&
		fail "wider than 100 columns"
	true
}

number='[0-9]+(\.[0-9]+)?'

start_server "${server_a[@]}" --live --live-interval 0.5
expect 0 "${client_b[@]}" --sl 0,1 --qps 4 --op write --size 64K --depth 4 --duration 2 --live --live-interval 0.5 \
	--json "$tmp/run.json"
clean_result
for vl in 0 1; do
	shows client "^ +$vl $vl +[0-9]+ +[0-9]+ +$number +$number% +[0-9]+\$" "row of VL $vl"
done
shows client '^  VL SL  +packets +bytes +Gb/s +share +ready$' "heading of lanes"
shows client '^scheduler: [0-9]+ ready, [0-9]+ held; .* turns a second; 0 blind visits' scheduler
shows server '^after [0-9.]+ s$' "table of the server"
! grep -qE '^(pacing|admission)' "$tmp/client.log" "$tmp/server.log" || fail "a table of what is not used"
narrow
stop_server
echo "lanes and scheduler, and nothing that is not used"

# The path to the server is slow and has a queue of 1 MiB, so the destination is throttled.
start_server "${server_a[@]}" --set impair.rx_rate_gbps=0.2
expect 0 "${client_b[@]}" --set pacing.mode=auto --sl 0,1 --qps 8 --op write --size 64K --depth 4 \
	--duration 2.5 --live --live-interval 0.5 --json "$tmp/run.json"
clean_result
shows client '^ +1 1 +[0-9]+' "row of VL 1"
shows client '^pacing: auto; destinations: 1, throttled: 1;' "destination that is throttled"
shows client '^destination +qps +wait +state +delay us +least us +defl +gap us +Gb/s$' "heading of destinations"
shows client "^10\.77\.0\.1 +9 +[0-9]+ +(throttled|closed) +$number +$number +$number +$number +[0-9.]+\$" \
	"row of the destination"
narrow
stop_server
echo "a slow destination: delays, gap, rate and waiting queue pairs"

start_server "${server_a[@]}" --set admission.mode=intelligent --live --live-interval 0.5
expect 0 "${client_b[@]}" --set admission.mode=intelligent --srq --op send --qps 8 --size 1K --receives 2 \
	--service-us 200 --duration 2 --live --live-interval 0.5 --json "$tmp/run.json"
clean_result
[ "$(field '.server.counters | [.adm_accepted, .adm_refused, .adm_grants_sent] | min > 0')" = true ] ||
	fail "counters: $(field .server.counters)"
[ "$(field '.client.counters | [.adm_grants_received, .adm_notifies_received, .adm_waits] | min > 0')" = true ] ||
	fail "counters: $(field .client.counters)"
shows server '^admission: intelligent; [0-9.k]+ requests accepted and [0-9.k]+ refused a second$' "admission"
shows server '^ +pool status +gen +qps posted +room +in A +in B +grant accepted +refused +grants +NOTIFYs$' \
	"heading of pools"
shows server '^ +[0-9]+ (NA|A|NB|B) +[0-9]+ +8 +[0-9]+ ' "row of the pool"
shows client '^of a peer +pool status +gen +qps +wait$' "heading of peers' pools"
shows client '^10\.77\.0\.1 +[0-9]+ (NA|A|NB|B) +[0-9]+ +8 +[0-9]+$' "row of the peer's pool"
shows client '^  messages held back: [1-9]' "messages held back"
narrow
stop_server
echo "an SRQ that is overrun: its pool, and what peers know of it"
