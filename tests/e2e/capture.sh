#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-pcap and tshark find no error in the captures of both sides.
. "$(dirname "$0")/lib.sh"
need_veth 4300

start_server "${server_a[@]}" --pcap "$tmp/server.pcap"
for mode in reorder extended; do
	for op in write write_imm read send send_imm send_inv cas fetch_add; do
		size=(--size 10000)
		case $op in cas | fetch_add) size=() ;; esac
		expect 0 "${client_b[@]}" --op $op "${size[@]}" --iters 20 --verify --transport-mode $mode \
			--pcap "$tmp/client-$mode-$op.pcap" --filter 'udp port 4791'
	done
done
expect 0 "${client_b[@]}" --type ud --op send_imm --size 700 --depth 4 --iters 20
expect 0 "${client_b[@]}" --type uc --op write_imm --size 9000 --depth 4 --iters 20
stop_server

"$UROCE_PCAP" --summary "$tmp"/*.pcap >"$tmp/summary.log" 2>&1 ||
	fail "uroce-pcap finds something wrong in the captures"
for op in {RC,EXT}_{WRITE_FIRST,WRITE_MIDDLE,WRITE_LAST,WRITE_LAST_IMM,READ_REQUEST} \
	{RC,EXT}_{READ_RESPONSE_MIDDLE,SEND_LAST,SEND_LAST_IMM,SEND_LAST_INV,COMPARE_SWAP} \
	{RC,EXT}_{FETCH_ADD,ATOMIC_ACKNOWLEDGE,ACKNOWLEDGE} UD_SEND_ONLY UD_SEND_ONLY_IMM \
	UC_WRITE_LAST_IMM; do
	grep -q "^$op " "$tmp/summary.log" || fail "no $op was captured"
done
"$UROCE_PCAP" "$tmp/server.pcap" >"$tmp/lines"
for kind in 'CM REQ' 'CM REP' 'CM RTU' 'CM DREQ' 'CM DREP' 'ARP'; do
	grep -q "$kind" "$tmp/lines" || fail "no $kind was captured"
done
"$UROCE_PCAP" "$tmp/client-reorder-write.pcap" | grep -q ARP && fail "--filter let ARP through"
echo "uroce-pcap: $(awk '/ICRC right/ { print $NF }' "$tmp/summary.log") packets, all right"

# A bit flipped on transmission is in the capture, and uroce-pcap finds it.
start_server "${server_a[@]}"
expect 0 "${client_b[@]}" --op write --size 10000 --iters 200 --set impair.tx_corrupt=10 \
	--pcap "$tmp/corrupt.pcap"
stop_server
"$UROCE_PCAP" --summary "$tmp/corrupt.pcap" >"$tmp/summary.log" 2>&1
[ $? -eq 1 ] || fail "uroce-pcap finds nothing wrong among corrupted packets"
rm "$tmp/corrupt.pcap"

command -v tshark >/dev/null || skip "tshark is not installed; the rest went well"
# It takes longer to start than to read a capture: those of the clients are one, in which each is an interface of its own.
clients=("$tmp"/client-*.pcap)
mergecap -I none -w "$tmp/clients.pcap" "${clients[@]}" || fail "mergecap cannot read the captures"
# A line for each packet; the status of a wrong checksum is 0.
for f in "$tmp"/{server,clients}.pcap; do
	tshark -n -r "$f" -o ip.check_checksum:TRUE -T fields -e infiniband.bth.opcode -e _ws.malformed -e _ws.unreassembled \
		-e ip.checksum.status -e frame.interface_id >"$tmp/fields" 2>/dev/null || fail "tshark cannot read $(basename "$f")"
	case $f in */clients.pcap) captures=${#clients[@]} ;; *) captures=1 ;; esac
	seen=$(awk -F '\t' '$1 ~ /^[0-9]/ { print "capture " $5 }' "$tmp/fields" | sort -u | wc -l)
	[ "$seen" -eq "$captures" ] || fail "tshark finds InfiniBand packets in $seen of $captures captures of $(basename "$f")"
	awk -F '\t' '$2 $3 != "" || $4 ~ /(^|,)0/' "$tmp/fields" >"$tmp/tshark.log"
	[ ! -s "$tmp/tshark.log" ] || fail "tshark finds malformed packets in $(basename "$f")"
done
echo "tshark: nothing malformed"
