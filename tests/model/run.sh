#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh SOURCE_DIR [--full]: explores the model of receiver admission, all states of each row below,
# and fails on any error. Skipped (status 77) where spin is not installed. --full: also the rows
# that take minutes.
set -eu

source_dir=$(cd "$1" && pwd)
full=${2:-}

if ! command -v spin >/dev/null; then
	echo "skipped: spin is not installed (Debian package spin)"
	exit 77
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
cp "$source_dir/tests/model/admission.pml" "$source_dir/tests/model/admission_model.h" "$dir"
cd "$dir"

status=0
# explore SENDERS RECEIVES MODE MISHAPS WHAT
explore() {
	case $3 in
	ab) mode=1 ;;
	intelligent) mode=2 ;;
	paper) mode=3 ;;
	esac
	defines="-DSENDERS=$1 -DRECEIVES=$2 -DMODE=$mode -DMISHAPS=$4"
	case $5 in
	safety) build='-DSAFETY -DNOCLAIM' run='' ;;
	liveness) build='-DNFAIR=4' run='-a -f' ;;
	esac
	# shellcheck disable=SC2086
	spin $defines -a admission.pml >/dev/null
	# shellcheck disable=SC2086
	${CC:-cc} -O2 -w $build -DVECTORSZ=4096 $defines -I. -I"$source_dir/lib" -I"$source_dir/include" -o pan \
		pan.c "$source_dir/lib/admission/pool.c" "$source_dir/lib/admission/sst.c"
	# shellcheck disable=SC2086
	./pan $run -m3000000 -w23 >log 2>&1 || :
	if grep -q 'errors: 0$' log && ! grep -Eq '^(error|pan:[0-9])|Search not completed' log; then
		states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)
		echo "ok: $* ($states states)"
	else
		echo "FAILED: $*"
		sed -n '1,20p' log
		[ ! -f admission.pml.trail ] || ./pan -r | grep -F 'proc ' | tail -n 60
		status=1
	fi
	rm -f admission.pml.trail
}

explore 3 1 ab 1 safety
explore 3 1 ab 1 liveness
explore 2 1 intelligent 1 safety
explore 2 1 intelligent 1 liveness
explore 3 1 intelligent 0 liveness
explore 2 1 paper 0 safety
explore 2 1 paper 0 liveness
if [ "$full" = --full ]; then
	explore 2 1 intelligent 2 liveness
	explore 3 1 intelligent 1 safety
	explore 3 1 ab 2 liveness
	explore 3 2 ab 2 liveness
	explore 3 2 intelligent 1 safety
	explore 3 2 intelligent 0 liveness
	explore 3 1 intelligent 1 liveness
	explore 2 1 paper 1 safety
	explore 2 1 paper 1 liveness
	explore 2 2 paper 0 safety
	explore 2 2 paper 0 liveness
fi
exit $status
