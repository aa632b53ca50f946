#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_door.sh SOURCE_DIR BUILD_DIR: checks that the engine is the only interface to the parts ("the door").
#
#  1. The headers of the door include only headers with plain data or opaque types: `open` below.
#  2. The layers above include no other header of a part.
#  3. They call only functions of the core that these headers declare.
#  4. A C++ program can include each of these headers alone, and calls the functions by the names that the core has.
#
# CXX is the C++ compiler.
set -eu

cd "$1"
build=$2
door='engine/engine.h engine/mgmt.h engine/verbs.h engine/query.h'
open='^(uroce/counter_list|engine/(engine|mgmt|verbs|query)|[a-z]+/attr|cm/(cm|offer)|mem/mem|mgmt/(nma|registers)|transport/(ah|counters|sink)|wire/[a-z_]+)\.h$'
status=0

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

includes() {
	sed -n 's/^#include "\([a-z_]*\/[a-z_]*\.h\)".*/\1/p' "$@"
}

# Where a header is: those of uroce/ are public.
located() {
	sed -e 's,^uroce/,include/&,' -e t -e 's,^,lib/,' "$dir/closure"
}

# The closure of all includes.
echo "$door" | tr ' ' '\n' | sort -u >"$dir/closure"
while :; do
	(cat "$dir/closure" && located | xargs sed -n \
		's/^#include "\([a-z_]*\/[a-z_]*\.h\)".*/\1/p') | sort -u >"$dir/next"
	cmp -s "$dir/closure" "$dir/next" && break
	mv "$dir/next" "$dir/closure"
done

if grep -vE "$open" "$dir/closure" >"$dir/wrong"; then
	echo "the door includes what is inside: $(tr '\n' ' ' <"$dir/wrong")"
	status=1
fi

parts='admission cm mem mgmt pacing sched timer transport vl'
for file in $(find lib/api lib/edge lib/dpdk app -name '*.[ch]'); do
	for header in $(includes "$file"); do
		case " $parts engine " in
		*" ${header%%/*} "*)
			if ! grep -qx "$header" "$dir/closure"; then
				echo "$file includes $header, which is behind the door"
				status=1
			fi
			;;
		esac
	done
done

# Names that the door and wire/ declare, and names of the core that the layers above use.
(located && ls lib/wire/*.h) | xargs grep -ohE 'ur_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u >"$dir/declared"
# Tables that inline functions of these headers read.
(located && ls lib/wire/*.h) | xargs sed -n 's/^extern const [^;]* \(ur_[a-z0-9_]*\)\[.*/\1/p' | sort -u >"$dir/tables"
nm -g --defined-only "$build/lib/liburoce-core.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$dir/core"
find "$build/lib" \( -path '*/liburoce_edge.a.p/*.o' -o -path '*/liburoce_dpdk.a.p/*.o' -o -name 'dpdk_*.o' -o -name 'api_*.o' \) -exec nm -u {} + | awk 'NF == 2 { print $2 }' | sort -u >"$dir/wanted"
comm -12 "$dir/core" "$dir/wanted" >"$dir/calls"
if ! grep -qx ur_engine_output "$dir/calls"; then
	echo "check_door: the edge in $build does not call ur_engine_output(): nothing was looked at"
	status=1
fi
for symbol in $(sort -u "$dir/declared" "$dir/tables" | comm -23 "$dir/calls" -); do
	echo "$symbol is called from outside, and no header of the door declares it"
	status=1
done

for header in $(cat "$dir/closure"); do
	echo "#include \"$header\"" >"$dir/one.cpp"
	if ! ${CXX:-c++} -std=c++17 -Wall -Werror -fsyntax-only -Iinclude -Ilib "$dir/one.cpp" 2>"$dir/log"; then
		echo "C++ does not take $header:"
		head -5 "$dir/log"
		status=1
	fi
done

# What C++ makes of the names: an object that refers to every function of the door.
comm -12 "$dir/core" "$dir/declared" >"$dir/functions"
(
	(cat "$dir/closure" && ls lib/wire/*.h | sed 's,^lib/,,') | sort -u | sed 's/.*/#include "&"/'
	echo 'void (*const functions[])() = {'
	sed 's/.*/(void (*)())&,/' "$dir/functions"
	echo '};'
	echo 'void (*const *first())() { return functions; }'
) >"$dir/all.cpp"
if ${CXX:-c++} -std=c++17 -Iinclude -Ilib -c "$dir/all.cpp" -o "$dir/all.o" 2>"$dir/log"; then
	nm -u "$dir/all.o" | awk '{ print $2 }' | grep -v '^_GLOBAL' | sort -u >"$dir/named"
	for symbol in $(comm -23 "$dir/functions" "$dir/named"); do
		echo "C++ does not find $symbol: it is declared outside of extern \"C\""
		status=1
	done
else
	echo "C++ does not take the functions of the door:"
	head -5 "$dir/log"
	status=1
fi

[ $status -ne 0 ] || echo "$(wc -l <"$dir/closure") headers, $(wc -l <"$dir/calls") functions"
exit $status
