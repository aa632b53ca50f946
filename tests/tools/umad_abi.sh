#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# umad_abi.sh LIBRARY: checks that the library has the SONAME, and exactly the symbols and versions, of Debian's
# libibumad.so.3, so that programs that are linked with that one run with ours. UMAD-ABI-01
set -eu

theirs=$(ldconfig -p | awk '$1 == "libibumad.so.3" { print $NF; exit }')
[ -n "$theirs" ] || {
	echo "umad_abi: no libibumad.so.3 to compare with; is the package libibumad3 installed?"
	exit 1
}

interface() {
	objdump -p "$1" | awk '$1 == "SONAME" { print $1, $2 }'
	nm -D --with-symbol-versions --defined-only "$1" | awk '{ print $2, $3 }' | sort
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
interface "$1" >"$dir/ours"
interface "$theirs" >"$dir/theirs"
# Ours also has what releases after 44 have added.
grep -q IBUMAD_1.4 "$dir/theirs" || sed -i '/IBUMAD_1\.[34]/d' "$dir/ours"
# An empty list would equal another.
if [ "$(grep -c '@@IBUMAD_1' "$dir/theirs")" -lt 39 ]; then
	echo "umad_abi: $theirs does not look like libibumad"
	exit 1
fi
if ! diff -u "$dir/theirs" "$dir/ours"; then
	echo "umad_abi: $1 differs from $theirs"
	exit 1
fi
echo "$(wc -l <"$dir/ours") lines, as in $theirs"
