#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# deb_programs.sh SUITE: run by tests/deb.sh in a chroot of a release, as root, with the packages installed: the release's programs, first as
# docs/programs.md says at its beginning, then as the rows of tests/programs say. Leaves their outcomes in SUITE-*.json.
set -eu
suite=$1
cd "$(dirname "$0")/.."
export UROCE_SET="eal.hugepages=no;eal.memory_mb=64"
daemon=
server=
port=$((20000 + $$ % 10000)) # the network is the machine's
trap 'kill $daemon $server 2>/dev/null || :' EXIT

# wait_until COMMAND: 30 s at most.
wait_until()
{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || {
			echo "not in 30 s: $*"
			exit 1
		}
		sleep 0.1
	done
}

listens()
{
	cat /proc/net/tcp /proc/net/tcp6 | grep -q "$(printf ':%04X .* 0A ' $port)"
}

verbs=$(dirname "$(dpkg -L uroce-verbs | grep '/libibverbs\.so\.1$')")
tests/tools/verbs_abi.sh libibverbs.so.1 "$verbs/libibverbs.so.1"
tests/tools/verbs_abi.sh librdmacm.so.1 "$verbs/librdmacm.so.1"
tests/tools/verbs_abi.sh libibumad.so.3 "$(dpkg -L uroce-tools | grep '/libibumad\.so\.3$')"

uroce-run --config memif-server.conf ibv_devinfo | grep PORT_ACTIVE
uroced --set eal.hugepages=no --set eal.memory_mb=128 &
daemon=$!
wait_until test -S /run/uroced/uroced.sock
uroce-run --dev uroced ib_write_bw -p $port -n 500 >/dev/null &
server=$!
wait_until listens
uroce-run --dev uroced ib_write_bw -p $port -n 500 127.0.0.1 | grep '^ 65536 '
wait $server
server=
echo "ib_write_bw runs"

export UROCE_RUN=/usr/bin/uroce-run UROCE_DAEMON=/usr/bin/uroced UROCE_VERBS_LIBRARY_DIR="$verbs"
tests/programs/run --release "$suite" --patience 3 --json "$suite.json"
