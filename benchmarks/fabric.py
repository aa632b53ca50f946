# SPDX-License-Identifier: BSD-3-Clause
"""The CMDPD paper's experiments, by engines in ns-3 (docs/design/ns3.md): its patterns on a fat tree and a dragonfly, with
its pairs of init0 and init1, and beside them no pacing, AUTO, DCQCN and Swift. All in virtual time: load of this machine makes no
difference. docs/results/fabric.md has the figures and what they mean.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import threading

from lib import stats
from lib.host import Failure
from lib.report import Report

TITLE = "The CMDPD paper's experiments: throughput and delay in switches, relative to no pacing"
PROGRAMS = ["meson", "ninja"]
PROGRAM = "sim/uroce-ns3"
TARGETS = [PROGRAM]

# The paper: 10^6 cycles, 32 bytes a cycle, packets of 2048 bytes at most, a fat tree of 256; its table of networks is lost.
FULL = {"run": 1_000_000, "warm": 100_000}
QUICK = {"run": 200_000, "warm": 50_000}
TREE, QUICK_TREE = {"topology": "tree", "k": 4, "n": 4}, {"topology": "tree", "k": 4, "n": 3}
DRAGONFLY = {"topology": "dragonfly", "p": 3, "a": 6, "h": 3, "routing": "minimal"}
QUICK_DRAGONFLY = {**DRAGONFLY, "p": 2, "a": 4, "h": 2}
INIT0 = (6, 8, 10, 15)
INIT1 = (10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
GRID = [(low, high) for high in INIT1 for low in INIT0 if low < high]
# Below the paper's: what CMDPD does where delays are less uneven.
LOW = [(1, 2), (2, 3), (2, 4), (3, 5)]
ECN_BYTES = 16384
QUEUES = ("output", "input")
PATTERNS = ("hot_node", "alltoall_round_robin", "uniform_random", "uniform_random_seq_gen")
stopped = threading.Event()

# What the paper says: in words, and the least change of throughput that it claims, per cent.
CLAIMS = {("tree", "hot_node"): ("unsteady", None),
          ("tree", "alltoall_round_robin"): ("+10 to +12 %", 10),
          ("tree", "uniform_random"): ("+5.5 % on average", 5.5),
          ("tree", "uniform_random_seq_gen"): ("+6 % on average", 6),
          ("dragonfly", "hot_node"): ("lower for some pairs", None),
          ("dragonfly", "alltoall_round_robin"): ("at most +4 %", None),
          ("dragonfly", "uniform_random"): ("lower for some pairs", None),
          ("dragonfly", "uniform_random_seq_gen"): ("hardly a change", None)}
# The least change of the mean delay in switches, per cent.
DELAY_CLAIM = {("tree", "uniform_random"): -10, ("tree", "uniform_random_seq_gen"): -10}


class FabricReport(Report):
    def __init__(self, machine):
        super().__init__("fabric", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        print(f"{'network':9} {'queues':7} {'pattern':23} {'pacing':12} {'Gb/s':>9} {'change, % [of seeds]':>25} {'wait ns':>9} "
              f"{'change, %':>9} {'message p99':>11} {'Jain':>6} {'throttles':>9}")
        for r in self.rows:
            change = f"{r['change']:+.2f} [{r['changes'][0]:+.2f}, {r['changes'][-1]:+.2f}]"
            print(f"{r['network']:9} {r['queues']:7} {r['pattern']:23} {r['pacing']:12} {r['gbps']:9.1f} {change:>25} "
                  f"{r['wait_ns']:9.1f} {r['wait_change']:+9.2f} {r['message_p99_ns']:11.0f} {r['jain']:6.3f} {r['throttles']:9.0f}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def preflight():
    if not pathlib.Path("/usr/include/ns3/simulator.h").exists():
        raise Failure("ns-3 is missing: sudo apt-get install libns3-dev")


def simulate(host, network, queues, pattern, seed, pacing, init=(8, 16)):
    if stopped.is_set():
        raise Failure("stopped")
    words = {**network, "seed": seed, "queues": queues, "pattern": pattern, "pacing": pacing, "source": "round_trip", "init0": init[0], "init1": init[1]}
    if pacing == "dcqcn":
        words["ecn"] = ECN_BYTES
    argv = [str(host.binary(PROGRAM)), *(f"--{name}={value}" for name, value in words.items())]
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
    found = json.loads(done.stdout)
    if found["errors"] or found["dropped"] or found["retransmitted"]:
        raise Failure(f"`{' '.join(argv)}`: something was lost on links with credits")
    return found


def percent(value, base):
    return 100 * (value / base - 1)


def add(report, network, queues, pattern, pacing, found, base):
    """A row: medians over the seeds; changes are relative to the run of the same seed without pacing."""
    def median(value):
        return stats.median([value(f) for f in found])

    changes = sorted(percent(f["gbps"], b["gbps"]) for f, b in zip(found, base))
    report.rows.append({
        "network": network["topology"], "queues": queues, "pattern": pattern, "pacing": pacing,
        "gbps": median(lambda f: f["gbps"]), "change": stats.median(changes), "changes": changes,
        "wait_ns": median(lambda f: f["wait_ns"]["mean"]),
        "wait_change": stats.median([percent(f["wait_ns"]["mean"], b["wait_ns"]["mean"]) for f, b in zip(found, base)]),
        "wait_max_ns": max(f["wait_ns"]["max"] for f in found),
        "one_way_p99_ns": median(lambda f: f["one_way_ns"]["p99"]), "message_p99_ns": median(lambda f: f["message_ns"]["p99"]),
        "jain": median(lambda f: f["jain_sent"]), "throttles": max(f["throttles"] for f in found),
        "outliers": max(f["outliers"] for f in found), "samples": median(lambda f: f["samples"]),
        "cpu_seconds": max(f["cpu_seconds"] for f in found), "rss_mb": max(f["rss_mb"] for f in found),
        "events": median(lambda f: f["events"]), "hosts": found[0]["hosts"]})


def cell(host, network, queues, pattern, seed):
    """All runs of a pattern with a kind of switch and a seed: {name: what was found}. CMDPD without a throttle is the run
    without pacing, and so is every pair with the same or a larger init1: those are not run again."""
    runs = {"none": simulate(host, network, queues, pattern, seed, "none")}
    for name in ("auto", "swift") + (("dcqcn",) if queues == "output" else ()):
        runs[name] = simulate(host, network, queues, pattern, seed, name)
    for init in LOW:
        runs[f"cmdpd {init[0]}-{init[1]}"] = simulate(host, network, queues, pattern, seed, "cmdpd", init)
    found = {"throttles": None}
    for init in GRID:  # init1 never falls
        if found["throttles"] != 0:
            found = simulate(host, network, queues, pattern, seed, "cmdpd", init)
        runs[f"cmdpd {init[0]}-{init[1]}"] = found
    return runs


def judge(report, network, queues, pattern):
    topology = network["topology"]
    rows = {r["pacing"]: r for r in report.rows if (r["network"], r["queues"], r["pattern"]) == (topology, queues, pattern)}
    grid = [rows[f"cmdpd {a}-{b}"] for a, b in GRID]
    low, high = min(r["change"] for r in grid), max(r["change"] for r in grid)
    said, least = CLAIMS[topology, pattern]
    idle = sum(1 for r in grid if not r["throttles"])
    where = f"{topology}, {queues}, {pattern}"
    report.notes.append(f"{where}: throughput with CMDPD {low:+.2f} to {high:+.2f} % (paper: {said}); no throttle in {idle} of "
                        f"{len(grid)} pairs")
    if least:
        report.bar(f"{where}: CMDPD's best change of throughput, %", high, least, compares=True)
    if (topology, pattern) in DELAY_CLAIM:
        report.bar(f"{where}: CMDPD's best change of the mean delay, %", min(r["wait_change"] for r in grid),
                   DELAY_CLAIM[topology, pattern], at_least=False, compares=True)
    best = max(rows.values(), key=lambda r: r["gbps"])
    report.bar(f"{where}: AUTO / the best throughput of all, {best['pacing']}", rows["auto"]["gbps"] / best["gbps"], 0.95)
    report.bar(f"{where}: AUTO / no pacing", 1 + rows["auto"]["change"] / 100, 0.999)


def run(host, machine, options, progress):
    report = FabricReport(machine)
    times = QUICK if options.quick else FULL
    shapes = (QUICK_TREE, QUICK_DRAGONFLY) if options.quick else (TREE, DRAGONFLY)
    cells = [({**shape, **times}, queues, pattern) for shape in shapes for queues in QUEUES for pattern in PATTERNS]
    seeds = range(1, 1 + (options.turns_given or (3 if options.quick else 1)))
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    try:
        waiting = [[pool.submit(cell, host, *c, seed) for seed in seeds] for c in cells]
        for i, (c, by_seed) in enumerate(zip(cells, waiting)):
            progress(i + 1, len(cells), (c[0]["topology"], *c[1:]))
            runs = [one.result() for one in by_seed]
            for name in runs[0]:
                add(report, *c, name, [r[name] for r in runs], [r["none"] for r in runs])
            judge(report, *c)
    finally:
        stopped.set()  # runs of a cell that has begun
        pool.shutdown(wait=False, cancel_futures=True)
    report.extra["times"] = times
    sizes = {r["network"]: r["hosts"] for r in report.rows}
    report.notes.append(f"{sizes['tree']} hosts on the tree, {sizes['dragonfly']} on the dragonfly; {len(seeds)} seeds; "
                        f"{times['run']} ns measured after {times['warm']} ns")
    if not options.quick:
        slowest = max(r["cpu_seconds"] for r in report.rows if r["pattern"] == "uniform_random")
        report.bar("uniform_random: CPU time of the slowest run, s", slowest, 1800, at_least=False)
    return report
