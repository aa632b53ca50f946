#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_edge.sh SOURCE_DIR: lib/edge needs no DPDK, and what its round calls needs no system.
# Looks at the headers that the sources include, and at the symbols of their object files, compiled here without
# the flags of the build under test. A C++ program can include endpoint.h, and finds its functions.
#
# CC and CXX are the compilers.
set -eu

cd "$1"
cc=${CC:-cc}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# All of it, and what runs in a round.
edge=$(cd lib/edge && ls *.c)
round='round impair impair_pkt mld neigh neigh_frame neigh_input'
# Beside the endpoint's own and the core's: memory when a round is made, the compiler's table of CPU features, nothing else.
allowed='^(ur_[a-z0-9_]+|__cpu_model|mem(cpy|move|set|cmp)|calloc|free|__assert_fail|_GLOBAL_OFFSET_TABLE_)$'

status=0
complain() {
	echo "check_edge: $*"
	status=1
}

grep -n '#include.*[<"]rte_' lib/edge/*.[ch] && complain "lib/edge includes headers of DPDK"
includes=$($cc -Iinclude -Ilib -M $(for f in $edge; do echo "lib/edge/$f"; done) | tr ' ' '\n' |
	grep '/rte_[a-z_]*\.h' || :)
[ -z "$includes" ] || complain "these come in: $(echo "$includes" | sort -u | tr '\n' ' ')"

for f in $edge; do
	$cc -std=gnu11 -O2 -fno-builtin-bcmp -Iinclude -Ilib -c "lib/edge/$f" -o "$dir/${f%.c}.o"
	called=$(nm -u "$dir/${f%.c}.o" | awk '{ print $NF }')
	rte=$(echo "$called" | grep '^rte_' || :)
	[ -z "$rte" ] || complain "$f calls" $rte
done
for name in $round; do
	[ -e "$dir/$name.o" ] || complain "$name.c is not in lib/edge"
	system=$(nm -u "$dir/$name.o" | awk '{ print $NF }' | grep -vE "$allowed" || :)
	[ -z "$system" ] || complain "$name.c calls" $system
done
# Tools that find nothing would pass whatever the round did.
nm "$dir/round.o" | grep -q ' T ur_round_run$' || complain "no ur_round_run in round.o"
# An object of C++ that refers to every function that endpoint.o defines.
functions=$(nm -g --defined-only "$dir/endpoint.o" | awk '{ print $3 }' | sort)
{
	echo '#include "edge/endpoint.h"'
	echo 'void (*const functions[])() = {'
	printf '(void (*)())&%s,\n' $functions
	echo '};'
	echo 'void (*const *first())() { return functions; }'
} >"$dir/all.cpp"
if ${CXX:-c++} -std=c++17 -Wall -Iinclude -Ilib -c "$dir/all.cpp" -o "$dir/all.o" 2>"$dir/log"; then
	for name in $functions; do
		nm -u "$dir/all.o" | grep -q " $name\$" || complain "C++ does not find $name"
	done
else
	complain "C++ does not take endpoint.h: $(head -5 "$dir/log")"
fi

[ $status -ne 0 ] || echo "$(echo "$edge" | wc -l) sources without DPDK, a round without the system"
exit $status
