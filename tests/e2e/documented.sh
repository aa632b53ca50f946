#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every uroce-perf command line of the documents is one that uroce-perf accepts, and every --set in them names a key.
# UROCE_PERF and UROCE_SOURCE name the program and the source tree.
set -u
cd "$UROCE_SOURCE" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
failed=0

complain()
{
	echo "$*"
	failed=1
}

# Commands in indented blocks and in comments of configuration files, continued lines joined, comments cut.
sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' README.md docs/*.md docs/design/*.md pmd-config/README.md pmd-config/*.conf |
	sed -nE 's/^(    |#   )(.* )?uroce-perf (server|client) /\3 /p' | sed -E 's/[[:space:]]+#.*//; s/&.*//' |
	sort -u >"$tmp/commands"
[ "$(wc -l <"$tmp/commands")" -ge 20 ] || complain "only $(wc -l <"$tmp/commands") commands were found"

# The port is none that exists, so a command line that is accepted ends with 1, and a wrong one with 2.
while read -r line; do
	args=${line/ .../ --config x.conf}
	[[ $args != client* || $args == *--peer* ]] || args+=" --peer 10.0.0.1"
	args=$(sed -E "s|--config [^ ]+|--config $tmp/none.conf|g; s|--dev [^ ]+|--dev no-such-if|" <<<"$args")
	eval "set -- $args"
	timeout 20 "$UROCE_PERF" "$@" >"$tmp/out" 2>&1 </dev/null
	status=$?
	[ $status -eq 1 ] || complain "uroce-perf $line: status $status: $(tail -1 "$tmp/out")"
done <"$tmp/commands"

# What looks like SECTION.KEY=VALUE anywhere in the documents is a key.
"$UROCE_PERF" --help-config |
	awk '/^\[/ { section = substr($1, 2, length($1) - 2) } /^[a-z]/ { print section "." $1 }' | sort -u >"$tmp/keys"
sections=$(cut -d. -f1 "$tmp/keys" | sort -u | paste -sd '|')
grep -rhoE "\b($sections)\.[a-z0-9_]+=" README.md docs pmd-config examples --include='*.md' --include='*.conf' --include='*.c' |
	sed 's/=$//' | sort -u >"$tmp/sets"
[ "$(wc -l <"$tmp/sets")" -ge 20 ] || complain "only $(wc -l <"$tmp/sets") keys were found"
while read -r key; do
	grep -qxF "$key" "$tmp/keys" || complain "$key: there is no such key"
done <"$tmp/sets"

# Every field of the JSON is documented.
tr -s '\n\t ' ' ' <app/perf/report.c |
	grep -oE 'json_object_set_new\([a-z]+, "[a-z0-9_]+"|json_pack\([^;]*;' |
	grep -oE '"[a-z0-9_]+"' | tr -d '"' | sort -u >"$tmp/fields"
[ "$(wc -l <"$tmp/fields")" -ge 40 ] || complain "only $(wc -l <"$tmp/fields") fields were found"
while read -r field; do
	grep -qF "\`$field\`" docs/guide.md || complain "docs/guide.md does not name the field $field of uroce-perf's JSON"
done <"$tmp/fields"

[ $failed -ne 0 ] || echo "$(wc -l <"$tmp/commands") commands and $(wc -l <"$tmp/sets") keys of the documents are right"
exit $failed
