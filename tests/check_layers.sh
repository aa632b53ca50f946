#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_layers.sh SOURCE_DIR: checks the includes between the directories of lib/ and app/. A line names a
# directory and the directories that it may include; it must not include any other.
set -eu

cd "$1"
awk '
FNR == 1 {
	split(FILENAME, part, "/")
	from = part[1] == "app" ? (part[2] ~ /^(switch|uroced|ctl|hca)$/ ? "app/" part[2] : "app") : part[2]
}
NR == FNR {
	if (NF && $1 !~ /^#/) {
		known[$1]
		for (i = 2; i <= NF; i++)
			may[$1, $i]
	}
	next
}
/^#include "uroce\/counter_list.h"/ {
	next # names alone: what a part counts is public
}
/^#include "[a-z]+\// {
	split($2, at, /["\/]/)
	to = at[2]
	if (from != to && !((from, to) in may)) {
		printf "%s:%d: %s includes %s; see tests/check_layers.sh\n", FILENAME, FNR, from, $2
		wrong = 1
	}
	seen++
}
END {
	if (!wrong)
		print seen " includes, none against the layers"
	exit wrong || !seen
}' /dev/stdin $(find lib app -name '*.[ch]') <<'EOT'
wire
timer      wire
mem        wire
vl         wire
sched      wire vl
cc         wire
admission  wire
cm         wire
manager    wire vl mgmt
switch     wire vl mgmt admission
mgmt       wire vl
transport  wire timer mem sched cc admission
engine     wire timer mem sched vl cc admission transport cm mgmt
print      wire
fabric     wire mgmt vl
file
thread
umad       wire
edge       wire engine thread
dpdk       wire engine edge file thread
api        wire engine edge dpdk uroce thread
verbs      uroce
rdmacm     uroce thread
rsocket    wire uroce thread
preload
app        wire print uroce perf pcap thread
app/switch wire switch vl mgmt edge dpdk file thread
app/uroced wire switch vl mgmt cm edge dpdk thread
app/ctl    wire manager fabric mgmt vl file
app/hca    wire mgmt umad
EOT
