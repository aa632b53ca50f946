# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart and the end-to-end tests (bash): two network namespaces joined by a veth
# pair, as pmd-config/veth-*.conf expect: uroce0 in one, uroce1 in the other. The interfaces have no
# addresses, because the addresses belong to the endpoints.
#
# Names contain the pid of the script, so that several scripts can run at the same time, and remains of
# a killed script are recognized.
# shellcheck shell=bash disable=SC2034

ns_a=uroce-a-$$
ns_b=uroce-b-$$

# Prefixes that run a command in a namespace. Not functions, so that after `&`, $! is the command's pid.
in_a=(ip netns exec "$ns_a")
in_b=(ip netns exec "$ns_b")

# delete_netns NAME: first ends its processes, because they would keep its interfaces alive.
delete_netns()
{
	local pids
	[ -e "/run/netns/$1" ] || return 0
	pids=$(ip netns pids "$1" 2>/dev/null) || :
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || :
	ip netns del "$1" 2>/dev/null || :
}

# Removes namespaces and DPDK runtime directories of scripts and programs that are dead.
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

# make_netns MTU: returns 0, or 1 if the kernel or container does not permit it; the reason is on stderr.
make_netns()
{
	reap_leftovers
	ip netns add "$ns_a" && ip netns add "$ns_b" || return 1
	# With IPv6 disabled the kernel sends nothing by itself. Read-only in some containers.
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
