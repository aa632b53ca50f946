#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_links.sh SOURCE_DIR: checks that every relative link of every Markdown page leads to a file of the tree,
# and its #fragment to a heading of that page. Addresses with a scheme are not checked.
set -eu

cd "$1"
pages=$(find . \( -name 'build*' -o -name results -o -name .git \) -prune -o -name '*.md' -print | sort)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# Fenced and indented blocks and `code` are ignored.
prose() {
	awk '/^ *```/ { fenced = !fenced; next }
		!fenced && !/^(    |\t)/ { gsub(/`[^`]*`/, ""); print }' "$1"
}

# The fragments of a page: headings in lower case, without punctuation, blanks as "-".
fragments() {
	awk '/^ *```/ { fenced = !fenced; next } !fenced && /^#+ / { sub(/^#+ /, ""); print }' "$1" |
		tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in $pages; do
	prose "$page" | grep -oE '\]\([^()[:space:]]+\)' | sed 's/^](//; s/)$//' | grep -vE '^[a-z]+:' |
		sed "s|^|$page |" || :
done >"$dir/links"
[ -s "$dir/links" ] || { echo "no page has a relative link"; exit 1; }

status=0
while read -r page link; do
	file=${link%%#*}
	target=$page
	[ -z "$file" ] || target=$(dirname "$page")/$file
	if [ ! -e "$target" ]; then
		echo "$page: $link: there is no $target"
		status=1
	elif [ "$link" != "$file" ] && ! fragments "$target" | grep -qxF -e "${link#*#}"; then
		echo "$page: $link: $target has no such heading"
		status=1
	fi
done <"$dir/links"
[ $status -ne 0 ] || echo "$(wc -l <"$dir/links") links, all lead somewhere"
exit $status
