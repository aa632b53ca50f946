#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# verbs_abi.sh SONAME LIBRARY: checks that the library has the SONAME, and exactly the symbols and versions, of
# rdma-core's library, so that programs that are linked with that one run with ours. Left out are the forms of 2006 of
# names that have a later version, which no program of today imports. VERBS-ABI-01
set -eu

theirs=$(ldconfig -p | awk -v soname="$1" '$1 == soname { print $NF; exit }')
[ -n "$theirs" ] || {
	echo "verbs_abi: no $1 to compare with; is rdma-core's package installed?"
	exit 1
}

interface() {
	objdump -p "$1" | awk '$1 == "SONAME" { print $1, $2 }'
	readelf --dyn-syms --wide "$1" | awk '
	$7 != "UND" && $8 ~ /@/ {
		n = split($8, part, /@+/)
		version[part[1]] = version[part[1]] " " part[n] ":" $4
	}
	END {
		for (name in version) {
			if (version[name] ~ / .* /)
				sub(/ IBVERBS_1\.0:FUNC/, "", version[name])
			print name version[name]
		}
	}' | LC_ALL=C sort
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
interface "$2" >"$dir/ours"
interface "$theirs" >"$dir/theirs"
# An empty list would equal another.
if [ "$(wc -l <"$dir/theirs")" -lt 60 ]; then
	echo "verbs_abi: $theirs does not look like rdma-core's"
	exit 1
fi
if ! diff -u "$dir/theirs" "$dir/ours"; then
	echo "verbs_abi: $2 differs from $theirs"
	exit 1
fi
echo "$(wc -l <"$dir/ours") lines, as in $theirs"
