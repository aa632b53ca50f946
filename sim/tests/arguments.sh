#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# arguments.sh UROCE_NS3: a wrong argument gets one sentence that names it, and status 2.
set -u

program=$1
failed=0

refused() {
	what=$1
	shift
	said=$("$program" "$@" 2>&1)
	status=$?
	if [ $status -ne 2 ] || [ "$(printf '%s\n' "$said" | wc -l)" -ne 1 ]; then
		echo "$*: status $status: $said"
		failed=1
		return
	fi
	case $said in
	*"$what"*) ;;
	*)
		echo "$*: does not name $what: $said"
		failed=1
		;;
	esac
}

routed_by() {
	routing=$1
	shift
	case $("$program" --run=1000 --warm=0 "$@" 2>&1) in
	*"\"routing\": \"$routing\""*) ;;
	*)
		echo "$*: is not routed by $routing"
		failed=1
		;;
	esac
}

routed_by ecmp --n=2
routed_by minimal --topology=dragonfly --p=1
case $("$program" --topology=dragonfly --p=3 --a=6 --h=3 --routing=ugal --dependencies=1) in
*'"hosts": 342'*'"cycle": false, "all_arrive": true'*) ;;
*)
	echo "--dependencies: a dragonfly of 342 hosts may deadlock"
	failed=1
	;;
esac
refused "'ecmp'" --topology=dragonfly --routing=ecmp
refused "'ring'" --topology=ring
refused "'nothing'" --pattern=nothing
refused "'nothing'" --pacing=nothing
refused "'valiant'" --routing=valiant
refused '--k=1' --k=1
refused "32766 hosts" --k=32 --n=8
refused --intervals=0 --intervals=0
refused --run=0 --run=0
refused --message=0 --message=0
refused --buffer=100 --buffer=100
refused --init0=9 --init0=9 --init1=9
refused --window=100 --window=100
refused --rate=5 --flit=0 --rate=5
refused --paths=17 --paths=17
refused --flows=0 --flows=0
refused --qps --k=8 --n=4 --flows=16
refused --load=0 --load=0
refused '--lossless=0' --loss=1
refused reroute --topology=dragonfly --reroute=5
refused 'core links' --lossless=0 --downLinks=4000
refused CMDPD --source=switches --pacing=auto
refused extended --source=one_way --mode=gbn
refused "mark" --queues=input --ecn=8000
exit $failed
