#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Delay stamps on real ports: uroce-switch stamps, both ends agree by the connection, and pacing hears the switch. A
# captured packet that was stamped has the ICRC that Python's zlib computes. Behind the switch a firewall that drops
# packets with wrong checksums costs no data, and is noticed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bridge.sh"

ns_s=uroce-s-$$
in_s=(ip netns exec "$ns_s")
switch_pid=
clean_up_switch()
{
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" 2>/dev/null
	delete_netns "$ns_s"
	clean_up_bridge
}

# a -- bridge (namespace f) -- switch (namespace s) -- b
need_bridge 4200
trap clean_up_switch EXIT
{
	ip netns add "$ns_s"
	"${in_s[@]}" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip -n "$ns_f" link set to_b nomaster netns "$ns_s"
	ip link add to_s mtu 4200 netns "$ns_f" type veth peer name to_a mtu 4200 netns "$ns_s"
	ip -n "$ns_f" link set to_s master br0 up
	ip -n "$ns_s" link set to_a up
	ip -n "$ns_s" link set to_b up
} 2>"$tmp/network.log" || fail "the network cannot be made"

start_switch()
{
	: >"$tmp/switch.log"
	"${in_s[@]}" "$UROCE_SWITCH" "$@" "${pages[@]}" >"$tmp/switch.log" 2>&1 </dev/null &
	switch_pid=$!
	wait_for 30 grep -q '^forwarding between' "$tmp/switch.log" || fail "the switch does not start"
}

client+=("${patient[@]}" --pacing auto --size 16K --qps 4 --live --live-interval 0.2)
number='[0-9]+\.[0-9]'

# Both ports are slow, so packets wait in the switch.
start_switch --port dev=to_a,rate=0.05 --port dev=to_b,rate=0.05
start_server "${server[@]}" --set capture.file="$tmp/a.pcap"
expect 0 "${client[@]}" --op write --duration 2
clean_result
grep -qE "^10\.77\.0\.1 .* net +1 +$number\$" "$tmp/client.log" || fail "no delay of the switch in the table"
[ "$(field '.pacing.net_samples > 10 and .pacing.net_blocked == 0')" = true ] || fail "delays: $(field .pacing)"
stop_server
echo "$(field .pacing.net_samples) delays by the switch; the table: $(grep -oE "net +1 +$number\$" "$tmp/client.log" | tail -n 1) us"

# By another implementation: struct and zlib of Python.
python3 - "$tmp/a.pcap" <<'END' || fail "stamped packets are wrong"
import struct, sys, zlib

data = open(sys.argv[1], "rb").read()
assert struct.unpack("<I", data[:4])[0] in (0xa1b2c3d4, 0xa1b23c4d)
at, stamped = 24, 0
while at < len(data):
    size = struct.unpack("<I", data[at + 8:at + 12])[0]
    ip = bytearray(data[at + 16 + 14:at + 16 + size])
    at += 16 + size
    if ip[0] != 0x45 or ip[9] != 17 or ip[22:24] != b"\x12\xb7" or ip[28] != 0xd8:
        continue
    ip = ip[:struct.unpack(">H", ip[2:4])[0]]
    if not ip[32] & 0x20 or ip[12:16] != bytes([10, 77, 0, 2]):
        continue
    assert ip[32] & 0x1f == 1 and ip[26:28] != b"\0\0", "one hop, and a delay"
    sent = ip[-4:]
    for i in (1, 8, 10, 11, 26, 27, 32):
        ip[i] = 0xff
    assert struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ip[:-4]))) == sent, "ICRC"
    stamped += 1
assert stamped > 10, stamped
print(stamped, "stamped packets have the right ICRC")
END

# What is read waits before the reader, on the way back: the answers of the probes are stamped as well.
start_server "${server[@]}"
expect 0 "${client[@]}" --op read --duration 1
clean_result
grep -qE "^10\.77\.0\.1 .* net +2 +$number\$" "$tmp/client.log" || fail "READs: no delay of both ways in the table"
[ "$(field '.pacing.net_samples > 10 and .pacing.net_blocked == 0')" = true ] || fail "delays of READs: $(field .pacing)"
stop_server
echo "READs: $(field .pacing.net_samples) delays by the switch; the table: $(grep -oE "net +2 +$number\$" "$tmp/client.log" | tail -n 1) us"

# Connection tracking calls a packet with a wrong checksum invalid.
firewall()
{
	command -v nft >/dev/null && "${in_f[@]}" sysctl -qw net.bridge.bridge-nf-call-iptables=1 &&
		"${in_f[@]}" nft 'add table inet f' &&
		"${in_f[@]}" nft 'add chain inet f c { type filter hook forward priority 0; }' &&
		"${in_f[@]}" nft 'add rule inet f c ct state invalid counter drop'
}
if firewall >"$tmp/firewall.log" 2>&1; then
	start_server "${server[@]}"
	expect 0 "${client[@]}" --op write --duration 2
	clean_result
	dropped=$("${in_f[@]}" nft list chain inet f c | grep -oE 'packets [0-9]+' | cut -d' ' -f2)
	[ "${dropped:-0}" -gt 0 ] || fail "the firewall drops nothing"
	[ "$(field .pacing.net_blocked)" = 1 ] || fail "not noticed: $(field .pacing)"
	[ "$dropped" -lt 20 ] || fail "$dropped packets were dropped"
	stop_server
	echo "a firewall that drops what is stamped: $dropped probes lost, and noticed"
else
	echo "no firewall on bridges here: $(tail -n 1 "$tmp/firewall.log")"
fi
kill -INT "$switch_pid"
wait_for 20 gone "$switch_pid" || fail "the switch does not end"
wait "$switch_pid" || fail "the switch fails"
switch_pid=
