#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bytes.sh IN OUT NAME: a file as an array of C.
set -eu
{
	echo "static const unsigned char $3[] = {"
	od -An -v -tx1 "$1" | sed 's/ \(..\)/0x\1,/g'
	echo "};"
} >"$2"
