# SPDX-License-Identifier: BSD-3-Clause
"""Networks of 1024 and 4096 hosts: runs that end, their memory and time. And the speed of the simulator beside that of ns-3's own
TCP (sim/tcp.cc), which runs directly before and after it."""

import json
import subprocess

from . import fabric_paper, stats
from .host import Failure

NAME = "size"
RUNS = {"full": ({"topology": "tree", "k": 4, "n": 5, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "permutation", "warm": 5_000, "run": 10_000, "qps": 4},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "uniform_random", "warm": 1_000, "run": 3_000, "slots": 8,
                  "qps": 254}),
        "small": ({"topology": "tree", "k": 4, "n": 4, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},)}
# With room for two queue pairs, which it has: what a host takes besides those of others.
BARE = {"topology": "tree", "k": 4, "n": 4, "pattern": "permutation", "slots": 8, "warm": 1_000, "run": 1_000, "qps": 2}
HOST_KB = 256
PAPER_MINUTES = 30  # of a run of the paper's size, uniform_random on the tree


def words(run, seed):
    return {**run, "pacing": "auto", "seed": seed}


def check(found):
    return "requests fail" if found["errors"] else None


def plan(size, seeds):
    for run in (*RUNS[size], BARE):
        yield words(run, seeds[0])


def rival(host, turns):
    """[(events a second, packets a second)] of uroce-ns3 and of ns-3's TCP, in turns."""
    def run(*argv):
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"`{' '.join(map(str, argv))}` fails: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)

    ours, tcp = [], []
    for _ in range(turns):
        u = run(host.binary("sim/uroce-ns3"), "--k=4", "--n=2", "--pattern=uniform_random", "--warm=20000", "--run=1000000")
        t = run(host.binary("sim/ns3-tcp"), 50)
        ours.append((u["events"] / u["cpu_seconds"], u["wait_ns"]["count"] / u["cpu_seconds"]))
        tcp.append((t["events"] / t["cpu_seconds"], t["packets"] / t["cpu_seconds"]))
    return ours, tcp


def compare(out, host, turns):
    ours, tcp = rival(host, turns)
    for i, what in enumerate(("events", "packets with payload")):
        out.bar(f"{what} a second of processor time: uroce-ns3 / ns-3's TCP", stats.ratios_of([o[i] for o in ours], [t[i] for t in tcp]), 1)
    out.notes.append(f"uroce-ns3: {stats.median([o[0] for o in ours]) / 1e6:.2f} million events and {stats.median([o[1] for o in ours]) / 1e3:.0f} "
                     f"thousand packets of 2 KB a second; ns-3's TCP: {stats.median([t[0] for t in tcp]) / 1e6:.2f} million and "
                     f"{stats.median([t[1] for t in tcp]) / 1e3:.0f} thousand of 1.4 KB")


def judge(out, cells, seed):
    bare = cells.known(words(BARE, seed))
    if bare:
        out.bar("memory of a host besides queue pairs, KB", bare["host_bytes"] / 1024, HOST_KB, at_least=False)
    for pair in (None, *fabric_paper.FEW):
        found = cells.known(fabric_paper.words("full", "tree", "output", "uniform_random", seed, pair))
        if found:
            name = f"CMDPD {pair[0]}-{pair[1]}" if pair else "no pacing"
            out.bar(f"256 hosts, 10^6 cycles, uniform_random, {name}: minutes of one processor", found["cpu_seconds"] / 60, PAPER_MINUTES,
                    at_least=False)


def report(out, cells, size, seeds):
    lines = []
    judge(out, cells, seeds[0])
    for run in (*RUNS[size], BARE):
        found = cells.known(words(run, seeds[0]))
        if not found:
            continue
        rate = found["events"] / max(found["cpu_seconds"], 0.01)
        lines.append([found["hosts"], run["pattern"], run["run"], f"{found['events'] / 1e6:.0f}", f"{found['cpu_seconds']:.0f}",
                      f"{rate / 1e6:.2f}", found["rss_mb"], f"{found['host_bytes'] / 1024:.0f}", found["queue_pairs"]])
        out.rows.append({"part": NAME, **{k: found[k] for k in ("hosts", "pattern", "events", "cpu_seconds", "rss_mb",
                                                               "host_bytes", "queue_pairs")}})
    out.table("Large networks", ["hosts", "pattern", "ns measured", "events, 10^6", "CPU, s", "10^6 events/s", "memory, MB",
                                 "KB of a host", "queue pairs"], lines)
