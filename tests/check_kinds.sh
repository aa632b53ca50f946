#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_kinds.sh SOURCE_DIR: the table of lib/transport/qp_ops.c alone knows the types and modes of queue pairs. Below
# lib/api, where a type comes in from an application, no other file may name one. lib/engine and what lies above name
# the mode gbn to find a row of the table, and no other.
set -eu

cd "$1"
table=lib/transport/qp_ops.c
dirs='lib/wire lib/timer lib/mem lib/sched lib/vl lib/cc lib/admission lib/cm lib/transport lib/engine'
status=0

grep -q 'IBV_QPT_UD' "$table" && grep -q 'UR_MODE_EXTENDED' "$table" || {
	echo "check_kinds: $table names no types and modes: nothing was looked at"
	exit 1
}
wrong=$(grep -rnE '\b(IBV_QPT_|UR_MODE_(REORDER|EXTENDED)|ops->(type|mode)\b)' $dirs --include='*.[ch]' |
	grep -v "^$table:" | grep -vE '^[^:]*:[0-9]*:[[:space:]]*(/?\*|//)' |
	grep -vE ':[[:space:]][^"]*/\*[^*]*UR_MODE_[^*]*\*/' |
	grep -vE '^lib/engine/query.c:.*(\.type = qp->ops->type|\.mode = qp->ops->mode),$' || true)
if [ -n "$wrong" ]; then
	echo "these test the type or mode of a queue pair; ask its row of $table (qp->ops) instead:"
	echo "$wrong"
	status=1
fi
exit $status
