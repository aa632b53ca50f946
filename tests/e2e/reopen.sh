#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# EDGE-REOPEN-01: reopen.sh af_packet|af_xdp: an interface can be opened right after its last user was killed, while the
# kernel has not yet released that process's resources.
. "$(dirname "$0")/lib.sh"

[ "$1" = af_packet ] || need_xdp
need_veth 2200
options=("${pages[@]}" --set transport.path_mtu=1024)
server=("${in_a[@]}" "$UROCE_PERF" server --config "$conf/veth-$1-a.conf" "${options[@]}")
client=("${in_b[@]}" "$UROCE_PERF" client --config "$conf/veth-$1-b.conf" "${options[@]}" --peer 10.77.0.1
	"${patient[@]}")

for round in 1 2 3 4 5; do
	start_server "${server[@]}"
	kill -KILL "$server_pid" # its end is not waited for
done
start_server "${server[@]}"
expect 0 "${client[@]}" --op write --size 5000 --iters 200 --verify
stop_server
echo "killed and opened again five times"
[ "$1" = af_xdp ] || exit 0

# A socket on the receive queue, like that of a dead process: it is released slightly later than the interface lock.
cat >"$tmp/hold.py" <<'EOF'
import ctypes, mmap, socket, struct, sys, time
SOL_XDP, RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 283, 2, 4, 5, 6
area = mmap.mmap(-1, 16 * 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
s = socket.socket(44, socket.SOCK_RAW, 0)
s.setsockopt(SOL_XDP, UMEM_REG, struct.pack("QQIIII", address, len(area), 4096, 0, 0, 0))
for ring in FILL_RING, COMPLETION_RING, RX_RING:
    s.setsockopt(SOL_XDP, ring, struct.pack("I", 16))
to = struct.pack("HHIII", 44, 0, socket.if_nametoindex("uroce0"), 0, 0)
if ctypes.CDLL(None, use_errno=True).bind(s.fileno(), to, len(to)):
    sys.exit("bind: %d" % ctypes.get_errno())
print("holds", flush=True)
time.sleep(600)
EOF
"${in_a[@]}" python3 "$tmp/hold.py" >"$tmp/hold.log" 2>&1 &
client_pid=$!
wait_for 20 grep -q holds "$tmp/hold.log" || fail "the queue cannot be held"
"${server[@]}" >"$tmp/server.log" 2>&1 </dev/null &
server_pid=$!
sleep 0.5
kill -KILL "$client_pid"
client_pid=
wait_for 30 listening_or_gone
grep -q '^listening' "$tmp/server.log" || fail "a queue that comes free is not waited for"
expect 0 "${client[@]}" --op write --size 5000 --iters 200 --verify
stop_server
echo "a queue that was held was waited for"
