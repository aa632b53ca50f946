# SPDX-License-Identifier: BSD-3-Clause
"""Networks of 1024 and 4096 hosts: runs that end, their memory and time. And the speed of the simulator beside that of ns-3's own
TCP (sim/tcp.cc), which runs directly before and after it."""

import json
import subprocess

from . import fabric_paper, fabric_rivals, stats
from .host import Failure

NAME = "size"
RUNS = {"full": ({"topology": "tree", "k": 4, "n": 5, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "permutation", "warm": 5_000, "run": 10_000, "qps": 4},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "uniform_random", "warm": 1_000, "run": 3_000, "slots": 8,
                  "qps": 254}),
        "small": ({"topology": "tree", "k": 4, "n": 4, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},)}
# 4096 hosts, AUTO beside the others: what ends within minutes.
LARGE = {"topology": "tree", "k": 16, "n": 3, "seed": 1}
LARGE_TRAFFIC = {"permutation": {"warm": 5_000, "run": 15_000, "qps": 4},
                 "tree_allreduce": {"warm": 10_000, "run": 30_000, "qps": 8, "slots": 4, "message": 16384},
                 "uniform_random": {"warm": 2_000, "run": 5_000, "slots": 8, "qps": 254}}
LARGE_CONTENDERS = ("none", "auto", "swift", "dcqcn")
SHAPES = {"tree, 16": {"k": 4, "n": 2}, "tree, 64": {"k": 4, "n": 3}, "tree, 256": {"k": 4, "n": 4}, "tree, 1024": {"k": 4, "n": 5},
          "tree, 4096": {"k": 16, "n": 3},
          "dragonfly, 72, minimal": {"topology": "dragonfly", "p": 2, "a": 4, "h": 2, "routing": "minimal"},
          "dragonfly, 72, UGAL-L": {"topology": "dragonfly", "p": 2, "a": 4, "h": 2, "routing": "ugal"},
          "dragonfly, 342, minimal": {"topology": "dragonfly", "p": 3, "a": 6, "h": 3, "routing": "minimal"},
          "dragonfly, 342, UGAL-L": {"topology": "dragonfly", "p": 3, "a": 6, "h": 3, "routing": "ugal"}}
# The channel dependency graphs of all networks that this benchmark runs; with "small" those that end within a second.
GRAPHS = {"small": ("tree, 64", "dragonfly, 72, minimal", "dragonfly, 72, UGAL-L", "tree, 16", "tree, 256"), "full": tuple(SHAPES)}
# With room for two queue pairs, which it has: what a host takes besides those of others.
BARE = {"topology": "tree", "k": 4, "n": 4, "pattern": "permutation", "slots": 8, "warm": 1_000, "run": 1_000, "qps": 2}
HOST_KB = 256
PAPER_MINUTES = 30  # of a run of the paper's size, uniform_random on the tree


def words(run, seed):
    return {**run, "pacing": "auto", "seed": seed}


def large_words(traffic, contender):
    return {**LARGE, "pattern": traffic, **LARGE_TRAFFIC[traffic], "pacing": contender, **fabric_rivals.CONTENDERS[contender]}


def graph_words(name):
    return {**SHAPES[name], "dependencies": 1}


def check(found):
    return "requests fail" if found.get("errors") else None


def plan(size, seeds):
    for run in (*RUNS[size], BARE):
        yield words(run, seeds[0])
    for name in GRAPHS[size]:
        yield graph_words(name)
    for traffic in LARGE_TRAFFIC if size == "full" else ():
        for contender in LARGE_CONTENDERS:
            yield large_words(traffic, contender)


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


def report_graphs(out, cells):
    lines = []
    for name in SHAPES:
        found = cells.known(graph_words(name))
        if not found:
            continue
        lines.append([name, found["switches"], found["lanes"], found["channels"], found["dependencies"], "no" if not found["cycle"] else "YES",
                      "yes" if found["all_arrive"] else "NO", f"{found['cpu_seconds']:.1f}"])
        out.rows.append({"part": NAME, "graph": name, **found})
        out.bar(f"{name} hosts: channel dependencies have a cycle, or a host is not reached", int(found["cycle"] or not found["all_arrive"]),
                0, at_least=False)
    out.table("graphs", "Channel dependency graphs", ["network, hosts", "switches", "lanes", "channels", "dependencies", "cycle", "all reached",
                                                      "CPU, s"], lines)


def report_large(out, cells):
    lines = []
    for traffic in LARGE_TRAFFIC:
        found = {c: cells.known(large_words(traffic, c)) for c in LARGE_CONTENDERS}
        if not found["none"]:
            continue
        have = {c: f for c, f in found.items() if f}
        base = found["none"]["gbps"]
        lines.append([traffic, f"{base:.0f}", *(f"{have[c]['gbps'] / base:.3f}" if c in have else "" for c in LARGE_CONTENDERS[1:]),
                      *(f"{have[c]['slowdown_1000']['p99'] / 1000:.1f}" if c in have else "" for c in LARGE_CONTENDERS),
                      max(f["rss_mb"] for f in have.values()), f"{sum(f['cpu_seconds'] for f in have.values()):.0f}"])
        out.rows.append({"part": NAME, "hosts": found["none"]["hosts"], "traffic": traffic,
                         **{c: {"gbps": f["gbps"], "slowdown_p99": f["slowdown_1000"]["p99"] / 1000} for c, f in have.items()}})
        if "auto" in have and len(have) > 2:
            rivals = [f for c, f in have.items() if c != "auto"]
            where = f"4096 hosts, {traffic}: AUTO"
            out.bar(f"{where} / the best goodput", have["auto"]["gbps"] / max(f["gbps"] for f in rivals), fabric_rivals.SHARE)
            out.bar(f"{where} / none, goodput", have["auto"]["gbps"] / base, 1)
            out.bar(f"{where} / the least p99 slowdown", have["auto"]["slowdown_1000"]["p99"] / min(f["slowdown_1000"]["p99"] for f in rivals),
                    1 / fabric_rivals.SHARE, at_least=False)
    out.table("large", "4096 hosts: goodput relative to none, p99 slowdown", [
        "traffic", "none, Gb/s", *LARGE_CONTENDERS[1:], *(f"{c} p99" for c in LARGE_CONTENDERS), "memory, MB", "CPU, s"], lines)


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
    report_graphs(out, cells)
    report_large(out, cells)
    out.table("size", "Large networks", ["hosts", "pattern", "ns measured", "events, 10^6", "CPU, s", "10^6 events/s", "memory, MB",
                                 "KB of a host", "queue pairs"], lines)
