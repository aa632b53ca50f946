#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples.sh EXAMPLES_DIR CONF_DIR [static]: compiles the examples with the liburoce that pkg-config knows and runs
# both ends of each over memif. CONF_DIR "": configurations are found by their bare names. static: send_recv alone,
# with liburoce.a. Needs no privilege.
set -u
examples=$1
conf=${2:+$2/}

tmp=$(mktemp -d) || exit 1
server_pid=
clean_up()
{
	[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail()
{
	echo "FAILED: $*"
	tail -n 30 "$tmp"/*.log 2>/dev/null
	exit 1
}

listening_or_gone()
{
	grep -q '^listening' "$tmp/server.log" || ! kill -0 "$server_pid" 2>/dev/null
}

# run PROGRAM SERVER-SAYS CLIENT-SAYS: both ends leave with status 0 and say that.
run()
{
	local left=600
	local set=(port.device="$tmp/memif.sock" eal.hugepages=no)
	rm -f "$tmp/memif.sock"
	: >"$tmp/server.log" # here: else what the last one said is read before the new one is there
	timeout 90 "$tmp/$1" "${conf}memif-server.conf" server "${set[@]}" >"$tmp/server.log" 2>&1 </dev/null &
	server_pid=$!
	until listening_or_gone; do
		((left-- > 0)) || fail "$1: the server does not listen"
		sleep 0.05
	done
	timeout 60 "$tmp/$1" "${conf}memif-client.conf" 10.77.0.1 "${set[@]}" >"$tmp/client.log" 2>&1 </dev/null ||
		fail "$1: the client left with status $?"
	wait "$server_pid" || fail "$1: the server left with status $?"
	server_pid=
	grep -qxF -- "$2" "$tmp/server.log" || fail "$1: the server does not say '$2'"
	grep -qxF -- "$3" "$tmp/client.log" || fail "$1: the client does not say '$3'"
	echo "$1 runs"
}

# compile NAME FLAG...
compile()
{
	local name=$1
	shift
	cc -Wall -Wextra -Werror -o "$tmp/$name" "$examples/$name.c" "$@" >"$tmp/compile.log" 2>&1 ||
		fail "$name does not compile with $*"
}

if [ "${3:-}" = static ]; then
	# shellcheck disable=SC2046
	compile send_recv $(pkg-config --static --cflags --libs uroce | sed 's/-luroce /-l:liburoce.a /')
	! ldd "$tmp/send_recv" | grep -q uroce || fail "the static program wants liburoce.so"
	run send_recv listening "HELLO FROM THE CLIENT"
	exit 0
fi
for name in send_recv rdma_write ud dedicated_worker; do
	# shellcheck disable=SC2046
	compile $name $(pkg-config --cflags --libs uroce)
done
run send_recv listening "HELLO FROM THE CLIENT"
run rdma_write "the client left; the last byte is 249" "1048576 bytes were written and read back"
run ud listening "you said hello"
run dedicated_worker "the counter is 100" "the counter was 99"
