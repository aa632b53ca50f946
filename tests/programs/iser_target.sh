#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# iser_target.sh DIRECTORY PORT: serves DIRECTORY/disk, 32 MB of zeroes at first, as LUN 1 of an iSER target, until it is ended.
set -eu

export TGT_IPC_SOCKET="$1/tgtd.sock"
rm -f "$1/disk"
truncate -s 32M "$1/disk"
setpriv --pdeathsig KILL tgtd --foreground --iser port="$2" --iscsi portal=127.0.0.1:"$2" &

admin()
{
	tgtadm --lld iser --op "$@"
}

until admin show --mode target >/dev/null 2>&1; do
	kill -0 $!
	sleep 0.1
done
admin new --mode target --tid 1 --targetname iqn.2026-11.test:disk
admin new --mode logicalunit --tid 1 --lun 1 --backing-store "$1/disk"
# tgtd 1.0.85 wants both of an initiator over iSER.
admin bind --mode target --tid 1 --initiator-address ALL
admin bind --mode target --tid 1 --initiator-name iqn.2008-11.org.linux-kvm
echo "the target is ready"
wait $!
