#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# install.sh SOURCE_DIR BUILD_DIR PREFIX LIBDIR: installs into BUILD_DIR/installed and uses what is there as a
# stranger would: headers alone, symbols, pkg-config, examples compiled and run, programs. Needs no privilege.
set -u
source_dir=$1
build_dir=$2
root=$2/installed
prefix=$root$3
lib=$prefix/$4
examples=$source_dir/examples
export CCACHE_DISABLE=1 # it answers without writing -aux-info's file

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
	echo "FAILED: $*"
	tail -n 30 "$tmp"/*.log 2>/dev/null
	exit 1
}

# try WHAT COMMAND...: it succeeds, or what it says is shown.
try()
{
	local what=$1
	shift
	"$@" >"$tmp/try.log" 2>&1 || fail "$what: $*"
}

# The tree was installed for a prefix that it is not in; its .pc files are told so.
install_tree()
{
	rm -rf "$root"
	DESTDIR=$root try "meson install" meson install -C "$build_dir" --no-rebuild
	mkdir "$tmp/pc"
	for f in uroce uroce-core; do
		[ -f "$lib/pkgconfig/$f.pc" ] || fail "$f.pc is not installed"
		sed "s|^prefix=.*|prefix=$prefix|" "$lib/pkgconfig/$f.pc" >"$tmp/pc/$f.pc"
	done
	export PKG_CONFIG_PATH=$tmp/pc LD_LIBRARY_PATH=$lib
}

check_headers()
{
	local h n=0
	for h in "$prefix"/include/uroce/*.h; do
		h=uroce/${h##*/}
		# The type: ISO C wants a declaration, and a header may have macros only.
		printf '#include <%s>\ntypedef int alone;\n' "$h" >"$tmp/alone.c"
		# shellcheck disable=SC2046
		try "$h alone, C" gcc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only \
			$(pkg-config --cflags uroce) "$tmp/alone.c"
		# shellcheck disable=SC2046
		try "$h alone, C++" g++ -x c++ -std=c++17 -Wall -Werror -fsyntax-only \
			$(pkg-config --cflags uroce) "$tmp/alone.c"
		n=$((n + 1))
	done
	[ $n -ge 3 ] || fail "$n public headers are installed"
	echo "$n public headers compile alone as C and as C++"
}

# What the headers declare is what the library exports, under the version of its ABI.
check_symbols()
{
	local so=$lib/liburoce.so.0
	[ -f "$so" ] || fail "there is no $so"
	readelf -d "$so" | grep -q 'SONAME.*\[liburoce\.so\.0\]' || fail "the soname is not liburoce.so.0"
	for h in "$prefix"/include/uroce/*.h; do
		echo "#include <uroce/${h##*/}>"
	done >"$tmp/all.c"
	# shellcheck disable=SC2046
	try "prototypes" gcc -fsyntax-only -aux-info "$tmp/prototypes" $(pkg-config --cflags uroce) "$tmp/all.c"
	grep "^/\* $prefix/include/uroce/.*\*/ extern" "$tmp/prototypes" | grep -o 'uroce_[a-z0-9_]* (' | tr -d ' (' |
		sort -u >"$tmp/declared"
	nm -D --defined-only "$so" | awk '$2 != "A" { print $2, $3 }' | sort -u >"$tmp/exported"
	sed 's/^/T /; s/$/@@UROCE_0/' "$tmp/declared" | diff - "$tmp/exported" >"$tmp/diff.log" ||
		fail "declared (<) and exported (>) differ"
	[ "$(wc -l <"$tmp/declared")" -ge 60 ] || fail "only $(wc -l <"$tmp/declared") functions were found"
	sed -n 's/^ \(uroce_[a-z0-9_]*\)@UROCE_.*/\1/p' "$source_dir/debian/liburoce0.symbols" | LC_ALL=C sort |
		diff - <(LC_ALL=C sort "$tmp/declared") >"$tmp/diff.log" ||
		fail "debian/liburoce0.symbols (<) and the headers (>) differ"
	echo "$(wc -l <"$tmp/declared") functions are declared and exported, nothing else is"
}

check_pkg_config()
{
	local flags
	flags=$(pkg-config --cflags --libs uroce) || fail "pkg-config does not know uroce"
	case $flags in
	*rte_* | *march* | *libbsd* | *-lpcap*) fail "DPDK shows in the flags of a user: $flags" ;;
	esac
	[ "$(pkg-config --modversion uroce)" = "$(pkg-config --modversion uroce-core)" ] || fail "two versions"
}

check_examples()
{
	local f
	for f in "$examples"/*.c; do
		[ "$(wc -l <"$f")" -lt 150 ] || fail "$f has 150 lines or more"
		! grep -E '^#include' "$f" | grep -vE '<[a-z/]+\.h>|"(engine|wire|transport|mem)/' ||
			fail "$f includes what is not installed"
	done
	"$source_dir/tests/examples.sh" "$examples" "$prefix/share/uroce/pmd-config" || fail "examples"
	# liburoce.a in place of the shared one: what `pkg-config --static` adds is all that it wants.
	"$source_dir/tests/examples.sh" "$examples" "$prefix/share/uroce/pmd-config" static || fail "a static program"
}

# The engine's headers compile alone, and its archive wants nothing of DPDK.
check_core()
{
	local h
	for h in engine verbs query; do
		echo "#include \"engine/$h.h\"" >"$tmp/alone.c"
		# shellcheck disable=SC2046
		try "engine/$h.h alone, C" gcc -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags uroce-core) "$tmp/alone.c"
		# shellcheck disable=SC2046
		try "engine/$h.h alone, C++" g++ -x c++ -std=c++17 -Wall -Werror -fsyntax-only \
			$(pkg-config --cflags uroce-core) "$tmp/alone.c"
	done
	# shellcheck disable=SC2046
	try two_engines cc -o "$tmp/two_engines" "$examples/two_engines.c" $(pkg-config --cflags --libs uroce-core)
	try two_engines timeout 60 "$tmp/two_engines"
	! ldd "$tmp/two_engines" | grep -E 'librte|libpcap|libbsd' || fail "uroce-core wants more than ISA-L"
	echo "uroce-core: $(find "$prefix/include/uroce-core" -name '*.h' | wc -l) headers, two_engines runs"
}

check_programs()
{
	local p
	for p in uroce-perf uroce-pcap uroce-switch uroce-ctl uroce-hca uroce-umad-run uroce-run uroced; do
		try "$p" "$prefix/bin/$p" --help
		grep -q "$p" "$tmp/try.log" || fail "$p --help says nothing"
	done
	# A drop-in for another package's library must not be in the linker's way.
	[ -f "$lib/uroce/umad/libibumad.so.3" ] && [ "$(find "$root" -name 'libibumad*' | wc -l)" -eq 1 ] ||
		fail "libibumad.so.3 is not installed, or not in a directory of its own"
	for p in libibverbs librdmacm; do
		[ -f "$lib/uroce/verbs/$p.so.1" ] && [ "$(find "$root" -name "$p*" | wc -l)" -eq 2 ] ||
			fail "$p.so.1 is not installed, or not in a directory of its own"
	done
	[ -f "$lib/uroce/verbs/liburoce-preload.so" ] || fail "liburoce-preload.so is not installed"
	# It finds liburoce from where it is, and has a device without opening it.
	UROCE_CONFIG=memif-client.conf UROCE_VERBS_LIBRARY_DIR=$lib/uroce/verbs LD_LIBRARY_PATH='' \
		try "uroce-run ibv_devices" "$prefix/bin/uroce-run" ibv_devices
	grep -q uroce0 "$tmp/try.log" || fail "ibv_devices does not show uroce0"
	for p in "$source_dir"/pmd-config/*; do
		cmp -s "$p" "$prefix/share/uroce/pmd-config/${p##*/}" || fail "${p##*/} is not installed"
	done
	echo "programs and pmd-config are installed"
}

# Every option of --help is in the man page and in the completion, which knows the values of some.
check_man_and_completion()
{
	local p option
	for p in uroce-perf uroce-pcap uroce-switch uroce-ctl uroce-hca uroce-umad-run uroce-run uroced; do
		"$prefix/bin/$p" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' >"$tmp/options"
		[ -s "$tmp/options" ] || fail "$p --help has no options"
		! command -v help2man >/dev/null || {
			MANWIDTH=200 man -l "$prefix/share/man/man1/$p.1" >"$tmp/$p.txt" 2>"$tmp/man.log" ||
				sed 's/\\//g' "$prefix/share/man/man1/$p.1" >"$tmp/$p.txt"
			while read -r option; do
				grep -qE -- "(^|[^a-z-])$option([^a-z-]|$)" "$tmp/$p.txt" || fail "$p(1) lacks $option"
			done <"$tmp/options"
		}
		while read -r option; do
			completes "$option" "$p" x "$option"
		done <"$tmp/options"
	done
	! command -v help2man >/dev/null || {
		sed 's/\\//g' "$prefix/share/man/man5/uroce.conf.5" >"$tmp/conf.txt"
		"$prefix/bin/uroce-perf" --help-config | grep -oE '^[a-z0-9_]+ =' | while read -r option _; do
			grep -qE "^\.BR? $option( |$)" "$tmp/conf.txt" || echo "$option"
		done >"$tmp/missing.log"
		[ ! -s "$tmp/missing.log" ] || fail "uroce.conf(5) lacks $(tr '\n' ' ' <"$tmp/missing.log")"
		[ "$(grep -cE '^\.BR? [a-z0-9_]+( |$)' "$tmp/conf.txt")" -ge 80 ] || fail "uroce.conf(5) is short"
	}
	completes "write write_imm" uroce-perf client --op w
	completes "qos.vl_mode=" uroce-perf client --set qos.vl_m
	completes "client" uroce-perf c
	completes "e2prom" uroce-ctl e2
	completes "save" uroce-ctl e2prom s
	echo "man pages and completion have every option"
}

# completes WORDS COMMAND...: what bash offers for the last word of the command has these among it.
completes()
{
	local want=$1 got word
	shift
	# shellcheck disable=SC2016,SC1090
	got=$(bash -c '. "$0/$1" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && "_${1//-/_}" && echo "${COMPREPLY[*]}"' \
		"$prefix/share/bash-completion/completions" "$@")
	for word in $want; do
		case " $got " in
		*" $word "*) ;;
		*) fail "completion of '$*' is '$got', without $word" ;;
		esac
	done
}

install_tree
check_headers
check_symbols
check_pkg_config
check_examples
check_core
check_programs
check_man_and_completion
