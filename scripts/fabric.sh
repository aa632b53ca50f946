# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart (bash): --fabric, a fabric of two switches and four endpoints that is managed while it carries
# data. The caller has sourced common.sh and netns.sh, and sets `built` or `root`, `results`, `tmp`, `seconds`, `prog`.
# shellcheck shell=bash disable=SC2154

fabric_pids=()
writers=()
fabric_ns=()
tools=$([ -n "$built" ] && echo "$built" || echo "$root/build")/app
fabric_socket=

# Names end with the pid, so that remains are recognized (netns.sh).
ns_of()
{
	echo "uroce-a-$1-$$"
}

clean_up_fabric()
{
	local pid ns
	for pid in "${fabric_pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	for ns in "${fabric_ns[@]}"; do
		delete_netns "$ns"
	done
}

# start NAME LINE COMMAND...: runs a program and waits until it prints LINE.
start()
{
	local name=$1 line=$2 pid
	shift 2
	printf '\n$ %s\n' "$*" >>"$log"
	"$@" >"$tmp/$name" 2>&1 </dev/null &
	pid=$!
	fabric_pids+=("$pid")
	for _ in {1..150}; do
		grep -qi "$line" "$tmp/$name" 2>/dev/null && return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	cat "$tmp/$name" >>"$log"
	die "$name does not start: $(tail -n 1 "$tmp/$name")"
}

build_fabric()
{
	local name
	if [ -z "$built" ]; then
		say "building in build/"
		setup_build "$root/build"
		logged ninja -C "$root/build" app/perf/uroce-perf app/switch/uroce-switch app/ctl/uroce-ctl ||
			die "the build failed"
	fi
	for name in perf switch ctl; do
		[ -x "$tools/$name/uroce-$name" ] || die "${tools%/app} has no app/$name/uroce-$name"
	done
}

# host N: a namespace with an interface that leads to the namespace of the switches.
host()
{
	local ns
	ns=$(ns_of "$1")
	ip netns add "$ns" && fabric_ns+=("$ns") || return
	ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null
	ip link add uroce0 mtu 4300 netns "$ns" type veth peer name "to_host$1" mtu 4300 netns "$(ns_of s)" &&
		ip -n "$ns" addr add "10.77.0.$1/24" dev uroce0 && ip -n "$ns" link set uroce0 up &&
		ip -n "$(ns_of s)" link set "to_host$1" up
}

fabric_network()
{
	local n
	reap_leftovers
	ip netns add "$(ns_of s)" && fabric_ns+=("$(ns_of s)") || return
	ip netns exec "$(ns_of s)" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null
	for n in 1 2 3 4; do
		host $n || return
	done
	ip -n "$(ns_of s)" link add to_right mtu 4300 type veth peer name to_left mtu 4300 &&
		ip -n "$(ns_of s)" link set to_right up && ip -n "$(ns_of s)" link set to_left up
}

start_switches()
{
	local in_s=(ip netns exec "$(ns_of s)")
	fabric_socket=$tmp/fabric.sock
	start left 'forwarding between' "${in_s[@]}" "$tools/switch/uroce-switch" --set management.description="left switch" \
		--port dev=to_host1 --port dev=to_host2 --port dev=to_right --port "socket=$fabric_socket,clients=2"
	start right 'forwarding between' "${in_s[@]}" "$tools/switch/uroce-switch" --set management.description="right switch" \
		--port dev=to_host3 --port dev=to_host4 --port dev=to_left
}

# host_runs N COMMAND OPTION...: an endpoint that says which host it is.
host_runs()
{
	local n=$1 command=$2
	shift 2
	start "host$n" "$fabric_line" ip netns exec "$(ns_of "$n")" "$tools/perf/uroce-perf" "$command" --dev uroce0 \
		--set management.description="host $n" "$@"
}

# Hosts 1 and 2 write to 3 and 4, from the left switch to the right one, until end_traffic().
start_hosts()
{
	local n
	for n in 3 4; do
		fabric_line=listening host_runs $n server
	done
	for n in 1 2; do
		fabric_line='uroce0 by' host_runs $n client --peer "10.77.0.$((n + 2))" --timeout 18 --size 65536 \
			--duration 600 --json "$tmp/run$n"
		writers+=("${fabric_pids[-1]}")
	done
}

# ctl COMMAND...: joins the fabric at the left switch.
ctl()
{
	printf '\n$ uroce-ctl %s\n' "$*" >>"$log"
	timeout 60 "$tools/ctl/uroce-ctl" "$@" --socket "$fabric_socket" 2>>"$log" || die "uroce-ctl $1 failed"
}

draw()
{
	ctl topology --json "$1.json" >>"$log"
	ctl topology --dot "$1.dot" >>"$log"
	dot -Tsvg "$1.dot" >"$1.svg" 2>>"$log" || die "Graphviz cannot draw $1.dot"
	[ "$(jq -c '[.nodes[].description] | sort' "$1.json")" = \
		'["host 1","host 2","host 3","host 4","left switch","right switch","uroce-ctl"]' ] ||
		die "not every node was found; see $1.json"
}

end_traffic()
{
	local n
	sleep "$seconds"
	kill -INT "${writers[@]}" 2>>"$log" || die "the traffic ended by itself"
	for n in 1 2; do
		for _ in {1..300}; do
			jq -e .gbps "$tmp/run$n" >/dev/null 2>&1 && break
			sleep 0.1
		done
		jq -r --arg n $n '"   host \($n) to host \(($n | tonumber) + 2): \(.gbps * 100 | round / 100) Gb/s, " +
			"\(.errors) errors"' "$tmp/run$n" 2>>"$log" || die "host $n has no result: $(tail -n 1 "$tmp/host$n")"
		[ "$(jq .errors "$tmp/run$n")" = 0 ] || die "host $n had errors"
	done
}

fabric_main()
{
	build_fabric
	say "two switches and four hosts in network namespaces, joined by veth pairs; hosts 1 and 2 write to 3 and 4"
	fabric_network 2>>"$log" || die "cannot make network namespaces and veth pairs (a container needs --privileged)"
	start_switches
	start_hosts
	say "the topology, found in band"
	draw "$results/fabric"
	ctl discover
	ctl topology
	say "the way to host 4, hop by hop"
	ctl trace 'host 4'
	say "what changes in two seconds at the left switch"
	ctl monitor compare 'left switch' --tiers 3 --count 3 --interval 1
	say "the traffic meanwhile"
	end_traffic
}
