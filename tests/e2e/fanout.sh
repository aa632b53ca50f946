#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# EDGE-FANOUT-01: another process in the namespace has a fanout group on another interface, with the number that DPDK would
# choose for the endpoint. af_packet still opens, with one queue and with two, and traffic reaches both.
. "$(dirname "$0")/lib.sh"

need_veth 4200
"${in_a[@]}" ip link set lo up

# Opens the group and becomes the server, because the number of the group depends on the process id.
cat >"$tmp/become.py" <<'EOF'
import os, socket, struct, sys
AF_PACKET, SOL_PACKET, PACKET_FANOUT = 17, 263, 18
name = (os.getpid() ^ socket.if_nametoindex("uroce0")) & 0xffff
s = socket.socket(AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("lo", 3))
s.setsockopt(SOL_PACKET, PACKET_FANOUT, struct.pack("I", name | 0x9000 << 16))
s.set_inheritable(True)
os.execvp(sys.argv[1], sys.argv[1:])
EOF

for workers in 1 2; do
	start_server "${in_a[@]}" python3 "$tmp/become.py" "$UROCE_PERF" server \
		--config "$conf/veth-af_packet-a.conf" "${pages[@]}" --set worker.count=$workers
	expect 0 "${client_b[@]}" --op write --size 5000 --iters 200 --qps 4 --verify
	stop_server
	echo "$workers queues beside a group of the same name"
done
