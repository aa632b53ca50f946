#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_format.sh SOURCE_DIR: checks that clang-format 14 (.clang-format) would not change any C or C++ file.
set -eu

cd "$1"
find app examples include lib sim tests benchmarks \( -name '*.[ch]' -o -name '*.cc' \) ! -path '*/build*/*' -print0 |
	xargs -0 clang-format-14 --dry-run -Werror --ferror-limit=1 || {
	echo "these are not formatted: run clang-format-14 -i on them" >&2
	exit 1
}
