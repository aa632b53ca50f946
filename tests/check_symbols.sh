#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_symbols.sh SOURCE_DIR [BUILD_DIR]: checks that the core is pure. Builds its release archive, in a directory of its own unless
# there is a release build, and checks the symbols: only the functions below may be undefined, and there must be no writable
# object. The separate build excludes additions of debug builds and sanitizers.
set -eu

source_dir=$1
# __cpu_model: what the CPU supports, a table of the compiler's run-time library that is filled before main().
allowed='memcpy memmove memset memcmp ur_assert_fail crc32_gzip_refl __cpu_model _GLOBAL_OFFSET_TABLE_'

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

run() {
	"$@" >"$dir/log" 2>&1 || {
		cat "$dir/log"
		echo "check_symbols: $* failed"
		exit 1
	}
}

# Flags of the build under test, such as sanitizers, do not belong to the release.
unset CFLAGS CPPFLAGS LDFLAGS
build=${2:-$dir/build}
[ -n "${2:-}" ] || run meson setup --buildtype=release -Dtests=false -Dedge=false "$build" "$source_dir"
run ninja -C "$build" -j2 lib/liburoce-core.a
archive=$build/lib/liburoce-core.a

nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u >"$dir/defined"
nm -u "$archive" | awk 'NF == 2 { print $2 }' | sort -u >"$dir/undefined"
echo "$allowed" | tr ' ' '\n' | sort -u >"$dir/allowed"

# Checks the test itself: an archive in which the tools find nothing would always pass.
for symbol in ur_icrc ur_wheel_look ur_mem_register; do
	if ! grep -qx "$symbol" "$dir/defined"; then
		echo "check_symbols: $symbol is not in $archive"
		exit 1
	fi
done

sort -u "$dir/defined" "$dir/allowed" | comm -23 "$dir/undefined" - >"$dir/forbidden"
# Objects in .data, .bss and common; const tables of pointers are in .data.rel.ro.
objdump -t "$archive" | awk '
	/file format/ { file = $1; sub(".*/", "", file); sub(":$", "", file) }
	NF > 3 && $(NF - 2) ~ /^(\.t?data|\.t?bss|\*COM\*)/ && $(NF - 2) !~ /^\.data\.rel\.ro/ &&
		$NF !~ /^\./ { print file " " $NF }' >"$dir/writable"

status=0
while read -r symbol; do
	echo "the core calls $symbol, from:"
	nm -A -u "$archive" | awk -v s="$symbol" '$NF == s { sub(".*/", "", $1); print "  " $1 }'
	status=1
done <"$dir/forbidden"
while read -r file symbol; do
	echo "the core has a global that can be written to: $symbol, in $file"
	status=1
done <"$dir/writable"
[ $status -ne 0 ] || echo "$(wc -l <"$dir/defined") symbols defined, none forbidden, no globals"
exit $status
