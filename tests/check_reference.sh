#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_reference.sh SOURCE_DIR VERSION [OUTPUT_DIR]: makes the API reference from the public headers with Doxygen;
# a declaration without a comment and anything else that Doxygen warns of is a failure.
set -eu

command -v doxygen >/dev/null || {
	echo "skipped: there is no doxygen"
	exit 77
}
cd "$1"
if [ $# -ge 3 ]; then
	out=$3
else
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	trap 'exit 1' INT TERM
fi
mkdir -p "$out"
UROCE_VERSION=$2 UROCE_DOC_OUT=$out doxygen docs/Doxyfile
[ -f "$out/html/uroce_8h.html" ] || {
	echo "check_reference: there is no page for uroce.h"
	exit 1
}
echo "the reference has $(ls "$out"/html/*.html | wc -l) pages, and no warning"
