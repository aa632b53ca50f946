#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfuzzer.sh BUILD CORPUS SECONDS: each target by libFuzzer, with AddressSanitizer and UBSan, for so long. What it
# finds interesting stays in CORPUS/TARGET and is where the next run begins; what fails is
# CORPUS/TARGET-crash-*. BUILD is a build directory made by clang with -Dfuzz=true. Each run has its own seed.
set -u
[ $# -eq 3 ] || {
	echo "usage: libfuzzer.sh BUILD CORPUS SECONDS" >&2
	exit 2
}
build=$1 kept=$2 seconds=$3
here=$(cd "$(dirname "$0")" && pwd)
status=0
for target in cm config engine mgmt neigh packet print uroced; do
	mkdir -p "$kept/$target" || exit 1
	inputs=("$here/corpus/$target")
	case $target in
	config) inputs+=("$here/../config/bad" "$here/../../pmd-config") ;;
	print) inputs+=("$here/corpus/packet") ;;
	esac
	if ASAN_OPTIONS=${ASAN_OPTIONS:-}:exitcode=99 "$build/tests/fuzz/${target}_libfuzzer" -max_total_time="$seconds" \
		-timeout=20 -rss_limit_mb=2048 -artifact_prefix="$kept/$target-" -print_final_stats=1 "$kept/$target" \
		"${inputs[@]}" >"$kept/$target.log" 2>&1; then
		echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$kept/$target.log") inputs," \
			"$(find "$kept/$target" -type f | wc -l) kept," \
			"$(sed -n 's/^INFO: Seed: /seed /p' "$kept/$target.log")"
	else
		tail -n 40 "$kept/$target.log"
		echo "$target: FAILED; the log is $kept/$target.log"
		status=1
	fi
done
exit $status
