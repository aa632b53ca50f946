#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Several workers per port, in both modes, and inline with dedicated. Up to six threads that never sleep
# share the available CPUs.
. "$(dirname "$0")/lib.sh"
need_veth 4300

for workers in '1 dedicated' '2 dedicated' '2 inline'; do
	# shellcheck disable=SC2086
	set -- $workers
	start_server "${server_a[@]}" --set "worker.count=$1" --set "worker.mode=$2"
	for client in '1 inline' "$workers"; do
		# shellcheck disable=SC2086
		set -- $client
		for op in write read send; do
			expect 0 "${client_b[@]}" --set "worker.count=$1" --set "worker.mode=$2" \
				--op $op --qps 4 --size 9000 --iters 100 --verify \
				--json "$tmp/run.json"
			clean_result
		done
		expect 0 "${client_b[@]}" --set "worker.count=$1" --set "worker.mode=$2" \
			"${impair[@]}" --op mixed --qps 6 --iters 100
	done
	stop_server
	echo "server with $workers worker(s): verified"
done
