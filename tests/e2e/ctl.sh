#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ctl.sh UROCE_CTL: its commands on models of fabrics, and one clear sentence for each mistake. Needs no port.
set -u
ctl=$1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
failed=0

complain()
{
	echo "$*"
	failed=1
}

# expect STATUS PATTERN ARGUMENT...: the status, and a line of the output.
expect()
{
	local status=$1 pattern=$2 got
	shift 2
	timeout 60 "$ctl" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$status" ] || complain "uroce-ctl $*: status $got, not $status: $(tail -1 "$tmp/err")"
	[ -z "$pattern" ] || grep -qE -- "$pattern" "$tmp/out" "$tmp/err" || complain "uroce-ctl $*: nothing like '$pattern': $(cat "$tmp/out" "$tmp/err")"
	[ "$status" -eq 0 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || complain "uroce-ctl $*: not one sentence: $(cat "$tmp/err")"
}

# ---- what it finds ----

expect 0 '^36 nodes: 20 switches, 16 endpoints; 48 links$' discover --fabric-model fattree:4
! grep -q '^wrong' "$tmp/out" || complain "something is wrong with a healthy fabric"
expect 0 '^    2  init .* switch #2 "switch 2" port 1$' topology --fabric-model line:2
expect 0 '^6 hops$' trace 'host 3.1.1' --fabric-model fattree:4
expect 0 '^0 hops$' trace '#0' --fabric-model fattree:4
expect 0 '^  node_guid +0x275720000000001$' node 'switch 1' --fabric-model line:2
expect 0 '^  local_port +1$' port 0x275720000000001 2 --fabric-model line:2
expect 1 'has no LID' trace 'endpoint 1' 'endpoint 2' --fabric-model line:2

# One request at a time finds the same.
for window in 0 1 2 500; do
	timeout 60 "$ctl" topology --fabric-model random:30,7 --window $window --json "$tmp/$window.json" >"$tmp/out" ||
		complain "random:30,7 with a window of $window"
	python3 - "$tmp/$window.json" >"$tmp/$window.links" <<-'END' || complain "$window.json is not as expected"
		import json, sys
		nodes = json.load(open(sys.argv[1]))["nodes"]
		assert len(nodes) > 20
		for n in sorted(nodes, key=lambda n: n["guid"]):
		    for p in n["ports"]:
		        print(n["guid"], n["description"], p["port"], p["state"], p.get("peer_guid"), p.get("peer_port"))
	END
done
cmp -s "$tmp/1.links" "$tmp/2.links" && cmp -s "$tmp/1.links" "$tmp/0.links" && cmp -s "$tmp/1.links" "$tmp/500.links" || complain "the window changes what is found"

# ---- registers ----

expect 0 '^0x005  rw   scratch ' reg list
expect 0 '^neighbour_guid:2 +0x275720000000002 ' reg read 'switch 1' node_guid neighbour_guid:2 0x3 --fabric-model line:2
expect 0 '"ports": "0x4"' reg read 'switch 1' 0x3 --json - --fabric-model line:2
expect 0 '' reg write 'switch 1' scratch 7 --fabric-model line:2
expect 1 'uptime_ns was not written: read-only' reg write 'switch 1' uptime_ns 7 --fabric-model line:2
expect 1 'scan_ns was not written: value out of range' reg write 'switch 1' scan_ns 0xffffffffffffffff --fabric-model line:2
# 5.96 us in the agent, 0.876 us for each of two links, in the model's time.
expect 0 '^20 requests, one after the other: median 7.7[0-9]* us, p99 7.7[0-9]* us$' reg read 'switch 2' uptime_ns load --count 20 \
	--fabric-model line:2
expect 0 '"median_ns": 7[0-9]{3}[,}]' reg read 'switch 2' uptime_ns --count 3 --json - --fabric-model line:2
expect 2 'reg read. of one or two registers' reg read 'switch 1' 0x3 0x4 0x5 --count 3 --fabric-model line:2
expect 1 '0xfff was not read' reg read 'switch 1' 0xfff --fabric-model line:2
expect 1 "'nothing' is neither" reg read 'switch 1' nothing --fabric-model line:2
expect 1 'a register of a port' reg read 'switch 1' state --fabric-model line:2
expect 2 "reg: 'x' is not one of list, read, write" reg x --fabric-model line:2
expect 2 "reg: it is" reg read 'switch 1' --fabric-model line:2
expect 0 '^  tx_packets:2 ' counters 'switch 1' 2 --tiers 3 --fabric-model line:2
! grep -q ':1 ' "$tmp/out" || complain "counters of a port are of that port"
# By PerfMgt, which needs LIDs.
expect 0 '^    xmit_packets ' counters '#0' --fabric-model line:2
expect 0 '^    xmit_wait ' counters 'switch 1' 2 --fabric-model line:2 --load-routes updown
grep -q '^PerfMgt, port 2$' "$tmp/out" || complain "PerfMgt of a port is of that port"
expect 0 '^PerfMgt: no LIDs' counters 'switch 2' 1 --fabric-model line:2
expect 0 '^    unicast_rcv_packets ' counters 'switch 2' 1 --fabric-model line:2 --load-routes updown
expect 0 '^    rcv_errors  *1000$' counters 'switch 2' 1 --fabric-model line:2 --load-routes updown --model-event '0,errors,switch 2,1'
expect 0 '' counters 'switch 2' --fabric-model line:2 --load-routes updown --json "$tmp/perf"
python3 - "$tmp/perf" <<-'END' || complain "PerfMgt as JSON"
	import json, sys
	ports = json.load(open(sys.argv[1]))["perf_mgt"]
	assert [p["port"] for p in ports] == [1, 2, 3, 4] and all("xmit_wait" in p["counters"] for p in ports)
	assert all(len(p["extended"]) == 8 for p in ports) and ports[0]["extended"]["rcv_packets"] > 0
END

# ---- E2PROM, lanes, keys: a model forgets them when it ends; ctl_configure.py has a switch that does not ----

expect 0 '^0x0010  ff ff$' e2prom read 'switch 1' 0x10 2 --fabric-model line:2
expect 0 '^3 bytes written and read back' e2prom write 'switch 1' 65533 1 0x2 3 --fabric-model line:2
expect 1 "'65534' is not a number from 0 to 65533" e2prom write 'switch 1' 65534 1 2 3 --fabric-model line:2
expect 1 "'256' is not a number from 0 to 255" e2prom write 'switch 1' 0 256 --fabric-model line:2
expect 0 '^65536 bytes read$' e2prom save 'endpoint 2' "$tmp/image" --fabric-model line:2
[ "$(wc -c <"$tmp/image")" -eq 65536 ] && [ -z "$(tr -d '\377' <"$tmp/image")" ] || complain "a new E2PROM is not erased"
printf 'some bytes' >"$tmp/image"
expect 0 '^10 bytes written and read back, 10 compared$' e2prom load 'endpoint 2' "$tmp/image" --fabric-model line:2
expect 1 'has no bytes' e2prom load 'endpoint 2' /dev/null --fabric-model line:2
expect 1 'none.file cannot be read' e2prom load 'endpoint 2' "$tmp/none.file" --fabric-model line:2
expect 0 '^no list$' e2prom defaults '#1' --fabric-model line:2
expect 0 '^24 bytes written' e2prom defaults '#1' scan_ns 5000000 bist_rate:2 7 --fabric-model line:2
expect 1 'uptime_ns is not a register that is written' e2prom defaults '#1' uptime_ns 5 --fabric-model line:2
expect 1 "load_limit: '1001' is not a number from 0 to 1000" e2prom defaults '#1' load_limit 1001 --fabric-model line:2
expect 1 "'scan_ns' has no value" e2prom defaults '#1' scan_ns --fabric-model line:2
expect 1 'the E2PROM was not read: no answer' e2prom save 'switch 2' "$tmp/image" --fabric-model line:2 --timeout-ms 1 \
	--model-event '1,kill,switch 2'
grep -q 'some bytes' "$tmp/image" || complain "a read that failed has changed the file"
expect 2 "e2prom: 'x' is not one of read, write, save, load, defaults" e2prom x '#0' --fabric-model line:2
expect 2 "e2prom: it is 'uroce-ctl e2prom save NODE FILE'" e2prom save '#0' --fabric-model line:2

expect 0 '^  low=0:64,1:64,.*,14:64$' vl show 'switch 1' --fabric-model line:2
[ "$(grep -c 'port [0-9]' "$tmp/out")" -eq 2 ] || complain "lanes of a switch are those of its linked ports"
expect 0 '^  high=10:255$' vl set 'switch 1' 2 low=8:4,9:5 high=10:255 limit=3 sl2vl=8,9,10,8,8,8,8,8,8,8,8,8,8,8,8,8 --fabric-model line:2
grep -q '^  limit=3$' "$tmp/out" || complain "the limit was not set"
expect 0 '^  low=9:1$' vl set 'endpoint 2' 1 low=9:1 sl2vl=15,9,15,15,15,15,15,15,15,15,15,15,15,15,15,15 --force --fabric-model line:2
expect 1 'service level 1 would lose its lane' vl set 'switch 1' 2 low=0:4 --fabric-model line:2
expect 1 'this cannot be: no VL has a weight above 0' vl set 'switch 1' 2 low=none --force --fabric-model line:2
expect 1 "'15:4' is not a table" vl set 'switch 1' 2 low=15:4 --fabric-model line:2
expect 1 "is not a mapping" vl set 'switch 1' 2 sl2vl=1,2 --fabric-model line:2
expect 1 "'weight=3' is none of" vl set 'switch 1' 2 weight=3 --fabric-model line:2
expect 1 "'9' is not a port of switch 1; it has ports 1 to 4" vl show 'switch 1' 9 --fabric-model line:2

expect 0 '^low=0:128,1:64,2:64$' qos solve 1=50 2=25,30 3=25 --rate 10
expect 0 '^SL 2    lane  1, low    25.00 % \(target 25.00\)  waits at most 13.11 us \(target 30.00\)$' qos solve 1=50 2=25,30 3=25 --rate 10
expect 0 '^limit=1$' qos solve 0=65 1=35 --mode measured --mtu 2048 --tolerance 0.2 --json "$tmp/qos.json"
expect 1 'service level 2 would lose its lane' qos apply 'switch 1' 2 "$tmp/qos.json" --fabric-model line:2
expect 0 'its configuration must say vl_mode = measured' qos apply 'switch 1' 2 "$tmp/qos.json" --force --fabric-model line:2
expect 1 'mode iba: service level 3 would wait 32.77 us, not 1.00' qos solve 3=10,1 --rate 10 --json "$tmp/none.json"
expect 1 'is no solution' qos apply 'switch 1' 2 "$tmp/none.json" --force --fabric-model line:2
expect 1 'more than the whole link together' qos solve 0=60 1=60
expect 1 'needs the port.s rate; .*--rate' qos solve 0=60,5
expect 1 "'0=x' is not a target" qos solve 0=x
expect 1 '700 is none of 256' qos solve 0=60 --mtu 700
expect 2 "'fast' is not one of iba, measured, strict" qos solve 0=60 --mode fast

expect 0 '^#2 "switch 2"  key 0 \(none\), protect 0' keys show --fabric-model line:2
expect 0 '^4 of 4 nodes have the key$' keys set all 0x77 --fabric-model line:2
timeout 60 "$ctl" keys set all 0x77 --fabric-model line:2 --timeout-ms 1 --model-event '0.00013,kill,switch 2' >"$tmp/out" 2>"$tmp/err" &&
	complain "a node that did not get the key is no error"
grep -q '^  not #2 "switch 2"$' "$tmp/out" || complain "what was not reached is not printed"
expect 1 'give --lease, or --force' keys set all 0x77 --protect 3 --fabric-model line:2
expect 1 "0 is no key" keys set '#1' 0 --fabric-model line:2
expect 1 'image does not hold a key' keys set '#1' "@$tmp/image" --fabric-model line:2
expect 1 '^uroce-ctl: --m-key-file: .*image does not hold a key' discover --m-key-file "$tmp/image" --fabric-model line:2

# ---- monitoring ----

expect 0 '^  state:3 +2$' monitor single 'switch 1' --fabric-model ring:3
[ "$(grep -c '^#' "$tmp/out")" -eq 1 ] || complain "monitor of a node prints others"
expect 0 '^3.000 s$' monitor loop --count 4 --fabric-model line:1
# A request of 342 bytes each 547 us, some fifty a pass, one pass after the other; without a share all of it takes less than 1 ms.
expect 0 '^0\.(0[5-9]|1[0-9])[0-9] s$' monitor loop --count 4 --interval 0 --share 0.05 --rate 10 --fabric-model line:2
expect 2 '--share is for monitor, and needs' monitor loop --share 0.05 --fabric-model line:2
# The time between two requests is a number.
for of in '1e-300 --rate 1e-300' '1e-9 --rate 10' '0.05 --rate 1e-7'; do
	# shellcheck disable=SC2086
	expect 2 '--share of --rate is less than one bit per second' monitor single --share $of --fabric-model line:1
done
expect 0 '^  state:1 ' monitor single --share 1e-6 --rate 1 --fabric-model line:1
expect 0 '' monitor compare --count 5 --fabric-model fattree:4
[ ! -s "$tmp/out" ] || complain "compare prints what has not changed: $(cat "$tmp/out")"

# What happens, and nothing else, although the way to half of the tree is another one from then on.
timeout 60 "$ctl" monitor compare --fabric-model fattree:4 --count 16 --model-event '3.5,down,edge 0.0,3' \
	--model-event '6.5,errors,core 0.0,2' --model-event '8.2,kill,aggregation 2.1' \
	--model-event '10.2,up,edge 0.0,3' >"$tmp/out" || complain "monitor compare fails"
diff - "$tmp/out" <<'END' || complain "compare does not print what changed, or more"
#1 "edge 0.0"
  state:3                  2 -> 1
  link_downed:3            0 -> 1
#3 "aggregation 0.0"
  state:1                  2 -> 1
  link_downed:1            0 -> 1
#6 "core 0.0"
  rx_errors:2              0 -> 1000
#16 "aggregation 2.1"
  does not answer
#1 "edge 0.0"
  state:3                  1 -> 2
  link_recovered:3         0 -> 1
#3 "aggregation 0.0"
  state:1                  1 -> 2
  link_recovered:1         0 -> 1
END
timeout 60 "$ctl" monitor compare --json - --fabric-model line:2 --count 3 --model-event '1.5,errors,switch 2,1' >"$tmp/out"
python3 - "$tmp/out" <<'END' || complain "monitor --json is not a line for each pass"
import json, sys
passes = [json.loads(line) for line in open(sys.argv[1])]
assert [len(p["values"]) for p in passes] == [0, 0, 1], passes
value = passes[2]["values"][0]
assert (value["register"], value["before"], value["value"]) == ("rx_errors:1", 0, 1000), value
END
expect 0 '^3\.[45][0-9]* s  critical: #1 "edge 0.0" port 3: link down$' faults --fabric-model fattree:4 --duration 6 \
	--model-event '3.5,down,edge 0.0,3' --model-event '4.5,errors,aggregation 0.1,2'
grep -q 'error: #4 "aggregation 0.1" port 2: burst of receive errors (1000, limit 100)$' "$tmp/out" || complain "a burst of errors is not reported"
expect 2 "monitor: 'always' is not one of single, loop, compare" monitor always --fabric-model line:1
expect 2 "'soon' is not a number of seconds" monitor loop --interval soon --fabric-model line:1
expect 1 "is not 'SECONDS," discover --fabric-model line:1 --model-event 'never'
expect 1 'no such node' discover --fabric-model line:1 --model-event '1,down,switch 9,1'
expect 2 'is for --fabric-model' discover --dev lo --model-event '1,down,switch 9,1'

# ---- top ----

timeout 60 "$ctl" top --fabric-model line:2 --count 3 --model-event '1.2,errors,switch 2,1' --model-event '1.5,down,switch 1,1' \
	--model-event '1.8,up,switch 1,1' >"$tmp/out" || complain "top fails"
[ "$(grep -c '^node  *port state ' "$tmp/out")" -eq 3 ] || complain "top does not print a table a pass"
[ "$(grep -cE '^(endpoint|switch) [12] ' "$tmp/out")" -eq 18 ] || complain "top does not print the six ports that are up, each time"
grep -qE '^switch 2 +1 init .* 1000 +0.0% +0.0%$' "$tmp/out" || complain "top does not show errors: $(cat "$tmp/out")"
timeout 60 "$ctl" top --json - --fabric-model line:2 --count 3 --model-event '1.2,errors,switch 2,1' \
	--model-event '1.5,down,switch 1,2' >"$tmp/out" || complain "top --json fails"
python3 - "$tmp/out" <<'END' || complain "top --json is not a line for each pass"
import json, sys
passes = [json.loads(line) for line in open(sys.argv[1])]
assert [p["silent_nodes"] for p in passes] == [0, 0, 2], passes
ports = {(p["description"], p["port"]): p for p in passes[1]["ports"]}
first = ports["endpoint 1", 1]
# MADs alone: about 256 bytes for each of the 5 requests a port and pass.
assert 0 < first["tx_gbps"] < 1e-3 and first["share"] == first["tx_gbps"] * 1e9 / first["bps"], first
last = {(p["description"], p["port"]): p for p in passes[2]["ports"]}
assert last["switch 1", 2]["state"] == "down" and last["switch 1", 2]["downs"] == 1, last
assert last["switch 2", 1]["state"] == last["endpoint 2", 1]["state"] == "silent", last
END
printf 'endpoint here\nswitch \033[2J\033]0;x\007 4\nlink here 1 \033[2J\033]0;x\007 1\n' >"$tmp/net"
expect 0 '^\.\[2J\.\]0;x\. +1 init ' top --fabric-model "$tmp/net" --count 1
! grep -q $'\033' "$tmp/out" || complain "a description reaches the terminal as it is"

# ---- routes ----

expect 0 '^updown: 36 LIDs, tables of 20 switches$' routes compute --fabric-model fattree:4
for shape in line:20 ring:7 fattree:6 random:30,5; do
	for mode in updown shortest; do
		expect 0 "^$mode: .* loaded; every LID answers$" routes load $mode --fabric-model $shape
	done
done
expect 0 '^6 hops$' trace 'host 0.0.0' 'host 3.1.1' --fabric-model fattree:4 --load-routes updown
grep -q '"edge 0.0" port [34] (active, 4x)' "$tmp/out" || complain "links are not active after routes were loaded"
expect 0 '^2 hops$' trace 'host 2.0.0' 'host 2.0.1' --fabric-model fattree:4 --load-routes shortest
expect 1 'give more with --nodes' routes load updown --fabric-model fattree:4 --nodes 8
expect 0 '^#3 "endpoint 2"  there 1,2,2  back 1,1,1$' routes source --fabric-model line:2
grep -q '^#0 .*  there -  back -$' "$tmp/out" || complain "the way to the node itself has no ports"
ring=(--fabric-model ring:4)
expect 0 '' routes source "${ring[@]}" --json "$tmp/routes"
python3 - "$tmp" <<-'END' || complain "a table of source routes cannot be changed"
	import json, sys
	table = [{"guid": n["guid"], "there": n["there"]} for n in json.load(open(sys.argv[1] + "/routes"))]
	by = {tuple(n["there"]): n for n in table}
	by[(1, 1, 1)]["there"] = [1, 2, 2]  # the other way round the ring
	json.dump(table, open(sys.argv[1] + "/half", "w"))
	by[(1, 1, 1, 3)]["there"] = [1, 2, 2, 3]
	json.dump(table, open(sys.argv[1] + "/other", "w"))
	json.dump([{**table[1], "there": [2]}], open(sys.argv[1] + "/wrong", "w"))
	json.dump([{**table[1], "there": [255]}], open(sys.argv[1] + "/port", "w"))
	json.dump([{**table[3], "there": [1, 1, 1, 1]}, by[(1, 1, 1)]], open(sys.argv[1] + "/loop", "w"))
	json.dump({}, open(sys.argv[1] + "/map", "w"))
END
expect 0 '^all 8 nodes answer by these routes$' routes source --source-routes "$tmp/other" "${ring[@]}"
grep -qE '^#7 "endpoint 3"  there 1,2,2,3  back 1,1,1,3$' "$tmp/out" || complain "the table is not used: $(cat "$tmp/out")"
expect 0 '^  1  #1 "switch 1" port 2 ' trace 'endpoint 3' --source-routes "$tmp/other" "${ring[@]}"
expect 0 '^4 hops$' trace 'endpoint 3' --source-routes "$tmp/other" "${ring[@]}"
expect 1 'leads through a node in another way' discover --source-routes "$tmp/half" "${ring[@]}"
expect 1 'does not lead there' discover --source-routes "$tmp/wrong" "${ring[@]}"
expect 1 'no list of up to 63 ports' discover --source-routes "$tmp/port" "${ring[@]}"
expect 1 'or is a loop' discover --source-routes "$tmp/loop" "${ring[@]}"
expect 1 'it is no list' discover --source-routes "$tmp/map" "${ring[@]}"
expect 1 'is no list of routes' discover --source-routes "$tmp/nothing" "${ring[@]}"

# Several LIDs a port.
expect 0 '^updown: 84 LIDs, tables of 20 switches, loaded; every LID answers$' routes load --lmc 2 --fabric-model fattree:4
expect 0 '' trace 'host 0.0.0' 'host 3.1.1' --load-routes shortest --lmc 2 --fabric-model fattree:4 --json "$tmp/lids"
jq -e '(.lids | length) == 4 and .complete and .hops == .lids[0].hops and ([.lids[].hops] | unique | length) == 4 and
	(.lids[0].lid % 4) == 0 and ([.lids[].hops | length] | unique) == [6]' "$tmp/lids" >/dev/null ||
	complain "four LIDs do not take the four paths: $(cat "$tmp/lids")"
expect 0 '"lmc": 1' routes compute --lmc 1 --fabric-model line:2 --json -
expect 2 "'8' is not a number from 0 to 7" routes load --lmc 8 --fabric-model line:1
expect 2 'is for routes' discover --lmc 1 --fabric-model line:1
expect 2 'with --sport which' trace '#0' 10.0.0.1 --spray 4 --ecmp --fabric-model line:1
expect 0 '"back"' routes source --fabric-model fattree:4 --json -
expect 2 "routes: 'x' is not one of compute, load, source" routes x --fabric-model line:1
expect 2 "routes: 'x' is not one of updown, shortest" routes load x --fabric-model line:1
expect 2 "--load-routes: 'x' is not one of" topology --load-routes x --fabric-model line:1

# ---- the test of a link ----

expect 0 '^1000 packets sent, 1000 returned, 0 with wrong bytes: the link is good$' bist 'switch 1' 2 --fabric-model line:2
timeout 60 "$ctl" bist 'switch 1' 2 --fabric-model line:2 --duration 0.1 --model-event '0.05,down,switch 1,2' >"$tmp/out" &&
	complain "a link that goes down during its test is good"
grep -qE '^100 packets sent, (4[5-9]|5[0-5]) returned, 0 with wrong bytes: the link is not good$' "$tmp/out" ||
	complain "a link that goes down during its test: $(cat "$tmp/out")"
expect 1 "'9' is not a port of switch 1" bist 'switch 1' 9 --fabric-model line:2

# ---- files ----

printf 'endpoint here\nswitch a"b 4\n# nothing\nlink here 1 a"b 2\n' >"$tmp/net"
expect 0 '^2 nodes: 1 switches, 1 endpoints; 1 links$' discover --fabric-model "$tmp/net"
expect 0 'label="a\\"b", shape=box' topology --fabric-model "$tmp/net" --dot -
if command -v dot >/dev/null; then
	dot -Tplain "$tmp/out" >"$tmp/plain" || complain "Graphviz does not accept the graph"
fi
expect 0 '"nodes": 2' discover --fabric-model "$tmp/net" --json -
python3 -m json.tool <"$tmp/out" >/dev/null || complain "discover --json - is not JSON"
printf 'switch a 4\nlink a 1 b 1\n' >"$tmp/net"
expect 1 "net, line 2: there is no node 'b' above" discover --fabric-model "$tmp/net"
printf 'switch a 400\n' >"$tmp/net"
expect 1 'line 1: a node has 1 to 254 ports' discover --fabric-model "$tmp/net"
printf 'switch a 4\nswitch b 4\nlink a 1 b 1\nlink a 1 b 2\n' >"$tmp/net"
expect 1 'line 4: one of the ports does not exist or is linked already' discover --fabric-model "$tmp/net"

# ---- mistakes ----

expect 2 "'find' is not one of discover, topology" find --fabric-model line:1
expect 2 'say once how to join' discover
expect 2 'say once how to join' discover --fabric-model line:1 --dev lo
expect 2 "trace: it is 'uroce-ctl trace \[FROM\] TO'" trace --fabric-model line:1
expect 2 "--window: '65537' is not a number from 0 to 65536" discover --fabric-model line:1 --window 65537
expect 2 "--window needs a value" discover --fabric-model line:1 --window
expect 2 "there is no option '--bogus'" discover --fabric-model line:1 --bogus
expect 2 '--dot is for topology' discover --fabric-model line:1 --dot -
expect 2 'say what to do' --fabric-model line:1
expect 1 "'fattree' needs an even number from 2 to 48" discover --fabric-model fattree:5
expect 1 "'nothing' is neither a shape" discover --fabric-model nothing
expect 1 "no node of the fabric has the description 'x'" node x --fabric-model line:1
expect 1 'no node of the fabric has the GUID 0x5' node 0x5 --fabric-model line:1
expect 1 'they are #0 to #2' node '#3' --fabric-model line:1
expect 1 "'9' is not a port of switch 1; it has ports 1 to 4" port 'switch 1' 9 --fabric-model line:1
expect 1 "no interface 'no-such-if'" discover --dev no-such-if
expect 1 'No such file.*a running uroce-switch' discover --socket "$tmp/none.sock"
expect 0 'give more with --nodes' discover --fabric-model fattree:4 --nodes 10

[ $failed -ne 0 ] || echo "uroce-ctl: commands and mistakes are as expected"
exit $failed
