#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# conformance.sh ring|veth gbn|reorder [TEST...]: runs the scripted end against uroce. Every verdict must be
# that of docs/conformance.md. meson sets UROCE_DUT and UROCE_SOURCE. With UROCE_VERDICTS=FILE the verdicts
# are written to the file and not compared.
# shellcheck disable=SC2034
set -u
: "${UROCE_DUT:?}" "${UROCE_SOURCE:?}"
link=$1
mode=$2
shift 2
# shellcheck source=scripts/netns.sh
. "$UROCE_SOURCE/scripts/netns.sh"
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
tester_mac=02:75:72:00:00:0b
dut_mac=02:75:72:00:00:0a

clean_up()
{
	trap '' INT TERM HUP
	[ -z "${made_netns:-}" ] || delete_both_netns
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# Other processes may take the hugepages at any time, so tests do without.
set_options="--set eal.hugepages=no --set worker.mode=inline --set address.mac=$dut_mac
	--set address.ipv6=fd77::1/64 --set pacing.mode=dcqcn --set pacing.link_gbps=0.1
	--set 'address.neighbor=10.77.0.2=$tester_mac fd77::2=$tester_mac'"
run=(python3 "$UROCE_SOURCE/tests/conformance/run.py" --mode "$mode"
	--mac "$tester_mac" --dut-mac "$dut_mac"
	--ip 10.77.0.2 --dut-ip 10.77.0.1 --ip6 fd77::2 --dut-ip6 fd77::1)
if [ -n "${UROCE_VERDICTS:-}" ]; then
	run+=(--verdicts "$UROCE_VERDICTS")
else
	run+=(--expect "$UROCE_SOURCE/docs/conformance.md" --column "uroce $mode")
fi

case $link in
ring)
	"${run[@]}" --link ring \
		--dut "$UROCE_DUT --device $UROCE_SOURCE/pmd-config/ring-a.conf $set_options" "$@"
	;;
veth)
	[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root" && exit 77; }
	made_netns=yes
	make_netns 4300 || { echo "no network namespaces or veth here" && exit 1; }
	"${in_b[@]}" "${run[@]}" --link uroce1 --dut "${in_a[*]} $UROCE_DUT \
		--device $UROCE_SOURCE/pmd-config/veth-af_packet-a.conf $set_options" "$@"
	;;
*)
	echo "conformance.sh: '$link' is not ring or veth"
	exit 2
	;;
esac
