# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart and the end-to-end tests (bash): two network namespaces joined by a veth
# pair, as the files pmd-config/veth-*.conf expect it: uroce0 in one, uroce1 in the other. No
# address on either: they belong to the endpoints.
#
# Names carry the pid of the script, so that several can run at once and that what a killed one left
# behind is recognised.
# shellcheck shell=bash disable=SC2034

ns_a=uroce-a-$$
ns_b=uroce-b-$$

# Before a command: runs it in there. Not functions: behind `&`, $! is then the command's own pid.
in_a=(ip netns exec "$ns_a")
in_b=(ip netns exec "$ns_b")

# delete_netns NAME: ends what runs in it first; an interface lives as long as a process holds it.
delete_netns()
{
	local pids
	[ -e "/run/netns/$1" ] || return 0
	pids=$(ip netns pids "$1" 2>/dev/null) || :
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || :
	ip netns del "$1" 2>/dev/null || :
}

# Namespaces and DPDK's runtime directories whose script or program is dead.
reap_leftovers()
{
	local path pid
	for path in /run/netns/uroce-[ab]-*; do
		[ -e "$path" ] || continue
		pid=${path##*-}
		case $pid in '' | *[!0-9]*) continue ;; esac
		if [ "$pid" -eq $$ ] || ! kill -0 "$pid" 2>/dev/null; then
			delete_netns "${path##*/}"
		fi
	done
	for path in /run/dpdk/uroce-*; do
		[ -d "$path" ] || continue
		pid=${path##*-}
		case $pid in '' | *[!0-9]*) continue ;; esac
		kill -0 "$pid" 2>/dev/null || rm -rf "$path"
	done
}

# make_netns MTU: 0, or 1 when this kernel or container does not let us; the reason is on stderr.
make_netns()
{
	reap_leftovers
	ip netns add "$ns_a" && ip netns add "$ns_b" || return 1
	# Without IPv6 of its own the kernel sends nothing by itself. Read-only in some containers.
	"${in_a[@]}" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || :
	"${in_b[@]}" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || :
	ip link add uroce0 mtu "$1" netns "$ns_a" type veth \
		peer name uroce1 mtu "$1" netns "$ns_b" || return 1
	ip -n "$ns_a" link set uroce0 up && ip -n "$ns_b" link set uroce1 up
}

delete_both_netns()
{
	delete_netns "$ns_a"
	delete_netns "$ns_b"
}
