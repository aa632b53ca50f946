#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# rcopy.sh SOURCE SERVER DESTINATION: copies a file to a server on this host by rcopy, and compares.
set -eu

rcopy "$1" "$2:$3"
echo
cmp "$1" "$3"
echo "the same"
