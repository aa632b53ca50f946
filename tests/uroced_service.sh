#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# uroced_service.sh SERVICE DAEMON: systemd understands every line of the unit file, with the daemon that was built in the place of the
# installed one.
set -eu
command -v systemd-analyze >/dev/null || {
	echo "skipped: there is no systemd-analyze"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
daemon=$(readlink -f "$2")
sed "s|^ExecStart=[^ ]*|ExecStart=$daemon|" "$1" >"$dir/uroced.service"
grep -q "^ExecStart=$daemon " "$dir/uroced.service" || {
	echo "$1 starts nothing"
	exit 1
}
# It ends with 0 after a warning.
systemd-analyze verify --man=no "$dir/uroced.service" >"$dir/said" 2>&1 || echo "status $?" >>"$dir/said"
if grep -F uroced "$dir/said" || grep '^status' "$dir/said"; then
	exit 1
fi
echo "systemd-analyze has nothing to say"
