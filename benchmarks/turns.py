# SPDX-License-Identifier: BSD-3-Clause
"""What a message of 8 B takes, one at a time, beside queue pairs that always have WRITEs of 64 KB to send, through a port of a few Gb/s:
from post to completion. Compared are queue pairs that all take turns and, as shipped, those first that had less than their share."""

from lib import paths, perf, stats
from lib.report import Report

TITLE = "Turns: a message of 8 B beside queue pairs with WRITEs of 64 KB, from post to completion, and the Gb/s of the others"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf"]
RATE_GBPS = 5
QPS = (1, 16, 64)
DEPTH = 4
SIZE = 65536
WAYS = {"in turn": "no", "sparse first": "yes"}
TIME_BAR = 0.1  # of the time in turn, beside the most queue pairs
GOODPUT_BAR = 0.95


def beside(host, path, qps, way, seconds):
    sets = [f"port.rate_gbps={RATE_GBPS}", f"qos.sparse_first={WAYS[way]}"]
    found = perf.run(host, path, "write", SIZE, seconds, more=["--qps", str(qps), "--depth", str(DEPTH), "--ping"], sets=(sets, sets))
    return {"p50": found["ping_us"]["p50"], "p99": found["ping_us"]["p99"], "gbps": found["gbps"]}


def fill(report, name, found):
    for qps in QPS:
        for part, unit in (("p50", "us"), ("p99", "us"), ("gbps", "Gb/s")):
            base = found[(str(qps), "in turn"), part]
            for way in WAYS:
                report.row(name, f"{qps} QP{'s' if qps > 1 else ''}, {way}, {'goodput of theirs' if part == 'gbps' else part}", unit,
                           found[(str(qps), way), part], None if way == "in turn" else base, "in turn")
    most = QPS[-1]
    report.bar(f"{name}: p50 beside {most} QPs, sparse first / in turn",
               stats.ratios_of(found[(str(most), "sparse first"), "p50"], found[(str(most), "in turn"), "p50"]), TIME_BAR, at_least=False)
    for qps in QPS:
        report.bar(f"{name}: goodput of {qps} QP{'s' if qps > 1 else ''}, sparse first / in turn",
                   stats.ratios_of(found[(str(qps), "sparse first"), "gbps"], found[(str(qps), "in turn"), "gbps"]), GOODPUT_BAR)
    return report


def run(host, machine, options, progress):
    path = paths.AfPacket(host)
    contenders = [((str(qps), way), lambda q=qps, w=way: beside(host, path, q, w, options.seconds)) for qps in QPS for way in WAYS]
    return fill(Report("turns", TITLE, machine), path.name, stats.turns(contenders, options.turns, progress))
