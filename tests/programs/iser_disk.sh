#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# iser_disk.sh URL DIRECTORY: QEMU's block layer writes to the disk of iser_target.sh and reads it again; then what is in DIRECTORY/disk
# is compared with what was written. libiscsi sends at most 512 KB in a request.
set -eu

head -c 256K /dev/urandom >"$2/block"
qemu-io -f raw \
	-c "write -s $2/block 0 256k" -c "write -P 0xa5 512k 64k" -c "read -P 0xa5 512k 64k" -c "read -P 0 600k 64k" \
	-c "aio_write -P 7 8M 128k" -c "aio_write -P 9 12M 128k" -c aio_flush -c "write -s $2/block 24M 256k" \
	-c "read -P 7 8M 128k" -c "read -P 9 12M 128k" -c flush "$1"
cmp -n 262144 "$2/block" "$2/disk"
cmp -n 262144 -i 0:25165824 "$2/block" "$2/disk"
echo "the same"
