#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_requirements.sh SOURCE_DIR: checks that every requirement of docs/requirements.md is named in code that
# implements it (lib/, app/) and in a test (tests/), and that no unknown requirement is named.
set -eu

cd "$1"
list=docs/requirements.md
id='[A-Z][A-Z0-9]*(-[A-Z][A-Z0-9]*)+-[0-9]{2}'

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# file:line:id of all that are named below a directory
named() {
	grep -rnowE "$id" "$@" --include='*.[ch]' --include='*.py' --include='*.sh' |
		grep -v '^tests/check_requirements.sh:' || :
}

status=0
complain() {
	echo "$*"
	status=1
}

sed -nE "s/^\| *($id) *\|.*/\1/p" "$list" | sort >"$dir/listed_all"
sort -u "$dir/listed_all" >"$dir/listed"
[ -s "$dir/listed" ] || complain "$list lists no requirement"
for i in $(uniq -d "$dir/listed_all"); do
	complain "$i: listed twice"
done

for where in "lib app" tests; do
	dirs=$where where=${where%% *}
	named $dirs >"$dir/named_$where"
	cut -d: -f3 "$dir/named_$where" | sort -u >"$dir/$where"
	for i in $(comm -23 "$dir/listed" "$dir/$where"); do
		complain "$i: listed, not named in $dirs"
	done
	for i in $(comm -13 "$dir/listed" "$dir/$where"); do
		complain "$i: not listed, named in" \
			"$(grep ":$i\$" "$dir/named_$where" | cut -d: -f1,2 | tr '\n' ' ')"
	done
done
[ $status -ne 0 ] || echo "$(wc -l <"$dir/listed") requirements, all with code and test"
exit $status
