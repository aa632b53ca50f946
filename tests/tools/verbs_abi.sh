#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# verbs_abi.sh SONAME LIBRARY [NAMES]: checks that the library has the SONAME, symbols and versions of rdma-core's library, so that
# programs that are linked with that one run with ours. VERBS-ABI-01
#
# Without NAMES, with any release of rdma-core: ours has at least all of them. With NAMES, with rdma-core 44: ours has exactly these, what
# releases after 44 have in addition (of that it has the versions of 64, with as many names), and everything that NAMES lists. Left out are
# the forms of 2006 of names that have a later version, which no program of today imports.
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

pairs() {
	awk '{ for (i = 2; i <= NF; i++) print $1, $i }' "$1" | LC_ALL=C sort
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
interface "$theirs" >"$dir/theirs"
# An empty list would equal another.
if [ "$(wc -l <"$dir/theirs")" -lt 40 ]; then
	echo "verbs_abi: $theirs does not look like rdma-core's"
	exit 1
fi
if [ $# -lt 3 ]; then
	interface "$2" >"$dir/ours"
	pairs "$dir/ours" >"$dir/ours.pairs"
	pairs "$dir/theirs" >"$dir/theirs.pairs"
	if LC_ALL=C comm -23 "$dir/theirs.pairs" "$dir/ours.pairs" | grep .; then
		echo "verbs_abi: $2 lacks these, which $theirs has"
		exit 1
	fi
	echo "$(wc -l <"$dir/theirs.pairs") names and versions, as in $theirs"
	exit
fi
# Versions of later releases, and their names in the private node of 44.
later='IBVERBS_PRIVATE_5[79]|IBVERBS_PRIVATE_64|IBVERBS_1[.]1[567]|RDMACM_1[.][45]'
# Each with the number of its names, as the maps of 57, 61, 64 and what comes after it have them.
case $1 in
libibverbs.*) counts='IBVERBS_1.15:3 IBVERBS_1.16:2 IBVERBS_1.17:3 IBVERBS_PRIVATE_57:73 IBVERBS_PRIVATE_59:76 IBVERBS_PRIVATE_64:82' ;;
*) counts='RDMACM_1.4:3 RDMACM_1.5:3' ;;
esac
interface "$2" | sed -E "s/ ($later):[A-Z]+//g; / /!d; /^(ibv_cmd_query_device|ibv_cmd_create_cq_ex2|ibv_wr_opcode_str) /d" >"$dir/ours"
awk '!/^#/ && NF == 3 { print $1 "@" $2 }' "$3" | LC_ALL=C sort >"$dir/listed"
readelf --dyn-syms --wide "$2" | awk '$7 != "UND" && $8 ~ /@/ { sub(/@@/, "@", $8); print $8 }' | LC_ALL=C sort >"$dir/exported"
if LC_ALL=C comm -23 "$dir/listed" "$dir/exported" | grep .; then
	echo "verbs_abi: $2 lacks these, which $3 lists"
	exit 1
fi
for count in $counts; do
	n=$(grep -c "@${count%:*}\$" "$dir/exported" || :)
	[ "$n" -eq "${count#*:}" ] || {
		echo "verbs_abi: $2 has $n names of version ${count%:*}, not ${count#*:}"
		exit 1
	}
done
if ! diff -u "$dir/theirs" "$dir/ours"; then
	echo "verbs_abi: $2 differs from $theirs"
	exit 1
fi
echo "$(wc -l <"$dir/ours") lines, as in $theirs"
