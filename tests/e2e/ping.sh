#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The kernel at the other end of the veth pair finds the endpoint and pings it, over IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"
command -v ping >/dev/null || skip "ping is not installed"
need_veth 4300

start_server "${server_a[@]}"
mac=$("${in_a[@]}" cat /sys/class/net/uroce0/address)

# pings ADDRESS SIZE
pings()
{
	"${in_b[@]}" ping -n -c 3 -i 0.2 -W 10 -s "$2" "$1" >"$tmp/ping.log" 2>&1 ||
		fail "no answer to a ping of $2 bytes to $1"
	grep -q ' 0% packet loss' "$tmp/ping.log" || fail "pings to $1 are lost"
}

# knows ADDRESS: the kernel has learnt the interface's MAC for it.
knows()
{
	ip -n "$ns_b" neigh show "$1" | grep -q "$mac" ||
		fail "$1 is not at $mac: $(ip -n "$ns_b" neigh show "$1")"
}

# The kernel asks for an address more than three times.
for family in ipv4 ipv6; do
	"${in_b[@]}" sysctl -qw "net.$family.neigh.uroce1.mcast_solicit=20" 2>/dev/null
done
ip -n "$ns_b" addr add 10.77.0.3/24 dev uroce1
pings 10.77.0.1 56
pings 10.77.0.1 0
pings 10.77.0.1 4000
knows 10.77.0.1
echo "ARP and ping over IPv4: answered"

"${in_b[@]}" ping -n -c 1 -W 1 10.77.0.99 >/dev/null 2>&1 && fail "there is an answer from 10.77.0.99"
echo "another address: silent"

if "${in_b[@]}" sysctl -qw net.ipv6.conf.uroce1.disable_ipv6=0 2>/dev/null &&
	ip -n "$ns_b" addr add fd77::3/64 dev uroce1 nodad 2>/dev/null; then
	pings fd77::1 56
	pings fd77::1 4000
	knows fd77::1
	"${in_b[@]}" ping -n -c 1 -W 1 fd77::99 >/dev/null 2>&1 && fail "there is an answer from fd77::99"
	echo "ND and ping over IPv6: answered"
else
	echo "no IPv6 in this kernel: not tested"
fi
stop_server
