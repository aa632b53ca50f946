# SPDX-License-Identifier: BSD-3-Clause
"""In-band management of a fabric with the numbers of Tianhe-2: 24 160 agents in one process, in virtual time.

Agents and MADs are real; a hop and the execution of a request take the paper's times (tests/fabric/fabric_bench.c). So the
figures show what the protocol and the order of the requests cost, not how fast this machine is. The paper's own figures are
computed beside them.
"""

import json
import subprocess

from lib.host import Failure
from lib.report import Report

TITLE = "In-band management, in virtual time: 5.96 us in an agent, 0.876 us to and fro over a hop"
PROGRAMS = ["meson", "ninja"]
BENCH = "tests/fabric/fabric_bench"
TARGETS = [BENCH]
FABRIC, QUICK_FABRIC = "tianhe2", "fattree:8"
SIZES = {FABRIC: (24160, 66688), QUICK_FABRIC: (208, 384)}  # nodes, links
HOPS = 20
WINDOWS = (1, 64, 256)

FRAME_BYTES = 342  # a MAD with its headers and ICRC
LINK_GBPS = 112  # of a direction
# What a MAD may have to wait for on a full link: a flit of 198 bits, packets of 1 KB and 4 KB with their headers.
DATA = (("flits", 2), ("1 KB", 80), ("4 KB", 301))

# The paper.
PROCESS_US, HOP_US, DIRECT_US = 5.9597, 0.8762, 6.73
PAPER_DISCOVERY_MS, PAPER_SWITCHES, PAPER_READS = 472.822, 5856, 12
PAPER_SCAN_S, PAPER_SCAN_REQUESTS, PAPER_SHARE = 9.38, 5856 * 120, 0.000493


def bench(host, progress, *words):
    argv = [str(host.binary(BENCH)), *map(str, words)]
    progress(1, 1, argv[1:4])
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return json.loads(done.stdout)


def line_through(points):
    """Least squares: (value at 0, slope, the largest distance of a point)."""
    n = len(points)
    sx, sy = sum(x for x, _ in points), sum(y for _, y in points)
    slope = (n * sum(x * y for x, y in points) - sx * sy) / (n * sum(x * x for x, _ in points) - sx * sx)
    start = (sy - slope * sx) / n
    return start, slope, max(abs(y - start - slope * x) for x, y in points)


class ManagementReport(Report):
    def __init__(self, machine):
        super().__init__("management", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        for row in self.rows:
            print(f"{row['what']:62} {row['value']:12.3f} {row['unit']:6} {row['paper']}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    def fact(self, what, value, unit, paper=""):
        self.rows.append({"what": what, "value": round(value, 6), "unit": unit, "paper": paper})


def off(value, expected):
    return abs(value / expected - 1)


def latency(report, found):
    points = [(row["hops"] + 1, row["read_ns"] / 1000) for row in found]
    process, hop, residual = line_through(points)
    report.fact(f"a register, 0 to {found[-1]['hops']} hops: in the agent", process, "us", f"paper {PROCESS_US}")
    report.fact("for each hop, to and fro", hop, "us", f"paper {HOP_US}")
    report.bar("register read: fitted time in the agent, off the paper's", off(process, PROCESS_US), 0.01, at_least=False)
    report.bar("register read: fitted time of a hop, off the paper's", off(hop, HOP_US), 0.01, at_least=False)
    report.bar("register read: largest distance from the line, us", residual, 0.01, at_least=False)
    report.bar("two registers in a request / one", max(r["read_two_ns"] / r["read_ns"] for r in found), 1.01, at_least=False)


def discovery(report, runs, busy, neighbours, fabric):
    nodes, links = SIZES[fabric]
    for window, run in runs.items():
        report.fact(f"discovery of {run['nodes']} nodes, window {window}: {run['requests']} requests", run["time_ms"], "ms",
                    f"paper {PAPER_DISCOVERY_MS:.0f}, {PAPER_SWITCHES * PAPER_READS} requests" if fabric == FABRIC else "")
        report.bar(f"discovery, window {window}: nodes found", run["nodes"], nodes)
        report.bar(f"discovery, window {window}: links found", run["link_ends"] / 2, links)
        report.bar(f"discovery, window {window}: requests sent again", run["resent"], 0, at_least=False)
    report.fact("CPU time of that on this machine, window 64: all agents and the manager", runs[64]["cpu_s"], "s")
    for name, run in busy.items():
        slower = run["time_ms"] / runs[64]["time_ms"]
        report.fact(f"window 64, every link full of {name}", run["time_ms"], "ms")
        report.bar(f"discovery, every link full of {name} / idle", slower, 1.05, at_least=False,
                   guard=1.25 if name == "4 KB" else None)
    report.fact(f"two ports' neighbours a request, one request at a time: {neighbours['requests']} requests",
                neighbours["time_ms"], "ms", f"mean distance {neighbours['mean_hops']:.2f} links")
    law = neighbours["requests"] * (PROCESS_US + HOP_US * neighbours["mean_hops"]) / 1000
    report.bar("the same, off (time in the agent + links x hop)", off(neighbours["time_ms"], law), 0.005, at_least=False)
    if fabric == FABRIC:
        report.bar("discovery, window 64, ms", runs[64]["time_ms"], PAPER_DISCOVERY_MS, at_least=False)


def paper(report):
    """Two of its figures, computed from its others."""
    direct = PAPER_SWITCHES * PAPER_READS * DIRECT_US / 1000
    report.fact("the paper's discovery, 5856 x 12 reads of a directly attached chip", direct, "ms",
                f"paper {PAPER_DISCOVERY_MS}")
    report.bar("5856 x 12 x 6.73 us, off the paper's time of discovery", off(direct, PAPER_DISCOVERY_MS), 0.001, at_least=False)
    gibit = PAPER_SCAN_REQUESTS * 2 * 4 * 198 / 2**30
    report.fact("the paper's scan, 702 720 x 2 x 4 x 198 bits", gibit, "Gibit", 'paper "1.0367 GB"')
    report.bar("702 720 x 2 x 4 x 198 bits in Gibit, off the paper's 1.0367", off(gibit, 1.0367), 0.001, at_least=False)


def scan(report, one, many, fabric):
    bits = one["first_link_mads"] * FRAME_BYTES * 8
    share = bits / (PAPER_SCAN_S * 2 * LINK_GBPS * 1e9)
    report.fact(f"scan, a request for each port of each switch: {one['requests']} requests, window 1", one["time_ms"] / 1000,
                "s", f"paper {PAPER_SCAN_S}, {PAPER_SCAN_REQUESTS} requests" if fabric == FABRIC else "")
    report.fact("the same, window 64", many["time_ms"] / 1000, "s")
    if fabric != FABRIC:
        return
    report.fact(f"a scan every {PAPER_SCAN_S} s: share of the manager's link, both directions", share * 100, "%",
                f"paper {PAPER_SHARE * 100}")
    report.bar(f"a scan every {PAPER_SCAN_S} s: percent of the link", share * 100, 0.05, at_least=False)
    report.notes.append("A MAD with its headers has 342 bytes, the paper's packet 99: its 120 requests a switch would be "
                        f"{PAPER_SCAN_REQUESTS * 2 * FRAME_BYTES * 8 / (PAPER_SCAN_S * 2 * LINK_GBPS * 1e9) * 100:.3f} % "
                        "of the link. A MAD holds what the paper reads of a port with five requests.")


def fault(report, found):
    report.fact("from a link that goes down to the report at the manager", found["report_ns"] / 1000, "us")
    report.bar("report of a link that goes down / a round trip", found["report_ns"] / found["round_trip_ns"], 1, at_least=False)
    named = found["right_node"] and found["port"] == 2 and found["cause"] == 0
    report.bar("the report names node, port and cause", int(named), 1)


def run(host, machine, options, progress):
    fabric = QUICK_FABRIC if options.quick else FABRIC
    report = ManagementReport(machine)
    latency(report, bench(host, progress, "read", HOPS)["hops"])
    discovery(report, {window: bench(host, progress, "discover", fabric, window, 0) for window in WINDOWS},
              {name: bench(host, progress, "discover", fabric, 64, ns) for name, ns in DATA},
              bench(host, progress, "neighbours", fabric), fabric)
    paper(report)
    scan(report, bench(host, progress, "scan", fabric, 1), bench(host, progress, "scan", fabric, 64), fabric)
    fault(report, bench(host, progress, "fault"))
    return report
