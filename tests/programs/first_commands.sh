#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# first_commands.sh SOURCE BUILD: runs the first two blocks of commands of docs/programs.md as they are written there, with what was built
# instead of what is installed. After a command in the background it waits until the next one can succeed, as a person does.
set -u
source=$1
build=$2
[ "$(id -u)" -eq 0 ] || {
	echo "skipped: needs root, for a network namespace"
	exit 77
}
# A network and a /run of their own: the commands name neither ports nor sockets.
if [ "${3:-}" != inside ]; then
	exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$source" "$build" inside
fi
mount -t tmpfs tmpfs /run
ip link set lo up
export PATH=$build/app/run:$build/app/uroced:$PATH UROCE_VERBS_LIBRARY_DIR=$build/lib/verbs
cd "$source/pmd-config" || exit 1 # where the configurations are that would be installed
out=$(mktemp)
trap 'rm -f "$out"' EXIT

sudo()
{
	case $1 in
	apt-get) return ;; # scripts/packages.txt has it
	*) "$@" ;;
	esac
}

listens()
{
	grep -qs ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 # 18515
}

# wait_for CONDITION...
wait_for()
{
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not in a minute: $*"
	exit 1
}

# run_block N: the Nth block of the page.
run_block()
{
	local line blocks
	blocks=$(awk -v n="$1" '/^    / { if (!in_block) { in_block = 1; b++ } if (b == n) print substr($0, 5); next } { in_block = 0 }' \
		"$source/docs/programs.md")
	[[ $blocks == *ib_write_bw*127.0.0.1* ]] || {
		echo "block $1 of docs/programs.md is not what this test runs"
		exit 1
	}
	while IFS= read -r line; do
		echo "\$ $line"
		case $line in
		*ib_write_bw*\&) eval "$line" && wait_for listens ;;
		*uroced*\&) eval "$line" && wait_for test -S /run/uroced/uroced.sock ;;
		*) eval "$line" | tee "$out" ;;
		esac
	done <<<"$blocks"
	grep -q '^ 65536 ' "$out" || {
		echo "ib_write_bw printed no result"
		exit 1
	}
}

run_block 1
wait # for the server
run_block 2
echo "both blocks ran"
