#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# processes.sh UROCE_NS3 UROCE_NS3_MPI: two and three processes find what one finds, to the last digit, but for what the run has
# cost. Every kind of traffic, both kinds of switches, each routing, with and without loss.
set -u

one=$1
many=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
# mpirun asks root to be sure; processes that wait leave the CPU to the others; rings of their own need no network.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader
# Open MPI leaves memory of modules that it has unloaded: no suppression can name them. The same objects run in one process
# with the leak checker.
no_leaks=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

same() {
	processes=$1
	shift
	"$one" --oracle=1 "$@" >"$dir/one" &&
		ASAN_OPTIONS=$no_leaks mpirun --oversubscribe -n "$processes" "$many" --oracle=1 "$@" >"$dir/many" 2>"$dir/said" || {
		echo "$processes processes, $*: fails: $(cat "$dir/said")"
		failed=1
		return
	}
	grep -q "\"processes\": $processes," "$dir/many" || {
		echo "$*: not $processes processes: $(tail -n 3 "$dir/many")"
		failed=1
	}
	grep -q '"completed": [1-9]' "$dir/one" || {
		echo "$*: nothing has completed"
		failed=1
	}
	for f in one many; do
		grep -v '"cpu_seconds"' "$dir/$f" >"$dir/$f.found"
	done
	diff "$dir/one.found" "$dir/many.found" >"$dir/differ" || {
		echo "$processes processes, $*: differs from one process:"
		head -n 10 "$dir/differ"
		failed=1
	}
}

tree="--k=4 --n=2 --run=30000 --warm=5000"
dragonfly="--topology=dragonfly --p=1 --a=4 --h=1 --run=30000 --warm=5000"
# shellcheck disable=SC2086
{
	same 2 $tree --pattern=uniform_random --pacing=auto
	same 3 $tree --pattern=hot_node --queues=input --pacing=cmdpd --source=switches
	same 2 $tree --pattern=ring_allreduce --slots=4 --message=16384 --pacing=swift
	same 3 $tree --pattern=tree_allreduce --slots=4 --message=16384
	same 2 $tree --pattern=storage --drain=100000 --lossless=0 --queue=100000 --ecn=8000 --loss=1 --pacing=dcqcn
	same 2 $tree --pattern=permutation --lossless=0 --queue=1000000 --downLinks=2 --downAt=10000 --reroute=5000 --paths=4
	same 2 $dragonfly --pattern=uniform_random_seq_gen --routing=minimal --source=one_way --pacing=auto
	same 3 $dragonfly --pattern=alltoall_round_robin --routing=valiant
	same 2 $dragonfly --pattern=incast --routing=ugal --queues=input
}
exit $failed
