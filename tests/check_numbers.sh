#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_numbers.sh SOURCE_DIR: the compiler rejects numbers of one sequence where those of another are wanted.
#
# CC is the C compiler.
set -eu

cd "$1"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
status=0

compiles() {
	printf '#include "wire/psn.h"\n#include "wire/stamp.h"\nint f(void);\nint f(void) { return %s; }\n' "$1" >"$dir/one.c"
	${CC:-cc} -std=gnu11 -Ilib -fsyntax-only "$dir/one.c" 2>"$dir/log"
}

types='ur_psn ur_msn ur_rspn ur_stamp ur_qpn'
for a in $types; do
	one=$a
	[ "$a" = ur_stamp ] && one=ur_stamp_of
	for b in ur_psn ur_msn ur_rspn ur_stamp; do
		call="${b}_eq($one(1), $one(1))"
		if [ "$a" = "$b" ] && ! compiles "$call"; then
			echo "$call does not compile: $(head -3 "$dir/log")"
			status=1
		elif [ "$a" != "$b" ] && compiles "$call"; then
			echo "$call compiles: a number of one sequence is taken for one of another"
			status=1
		fi
	done
	if compiles "$one(1) == $one(1)" || compiles "$one(1) + 1"; then
		echo "$a takes part in plain arithmetic"
		status=1
	fi
done
exit $status
