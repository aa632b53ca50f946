# SPDX-License-Identifier: BSD-3-Clause
"""Half a round trip: 8 B messages, one at a time."""

from lib import iperf, paths, perf, pingpong, pipe, stats
from lib.report import Report

TITLE = "Latency: 8 B messages, half a round trip, us"
PROGRAMS = ["sockperf", "gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "benchmarks/raw/pingpong", pipe.TARGET]
SIZE = 8
FRAME = paths.ROCE_BYTES + paths.RETH_BYTES + SIZE
BAR = 3.0
RAW_BAR = 2.5
TAIL_BAR = 2.0  # p99 / p50
AUTO_BAR = 2 - perf.AUTO_BAR  # a time: at most, not at least


def uroce(host, path, op, seconds, dedicated=False, sets=((), ())):
    lat = perf.run(host, path, op, SIZE, seconds, mode="lat", dedicated=dedicated, sets=sets)["lat_us"]
    return {"p50": lat["p50"], "p99": lat["p99"]}


def contenders(host, runs, memif, pair, modes, seconds):
    """In the order of a turn: each contender close to its baselines."""
    found = []
    for suffix, dedicated in modes:
        for way, op in runs:
            if way is memif:
                found.append((("raw", op + suffix), lambda: pingpong.half_round_trip(host, memif, FRAME, seconds)))
            found.append(((way.name, op + suffix), lambda w=way, o=op, d=dedicated: uroce(host, w, o, seconds, d)))
            if way is memif and not dedicated:
                found.append((("pipe", op), lambda: pipe.half_round_trip(host, memif, SIZE, seconds)))
            if not dedicated:
                found.append(((way.name, f"{op} gbn"), lambda w=way, o=op:
                              uroce(host, w, o, seconds, sets=perf.GBN)))
    found.append((("veth", "tcp"), lambda: iperf.ping_pong(host, pair, seconds)))
    return found


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = [(memif, "write"), (memif, "send"), (memif, "read"), (xdp, "write"), (packet, "write")]
    found = stats.turns(contenders(host, runs, memif, packet.pair, modes, options.seconds), options.turns, progress)
    return fill(Report("latency", TITLE, machine), runs, modes, found)


def operation_rows(report, name, op, suffix, found):
    whole = " (whole trip)" if op == "read" else ""
    base = op if suffix == " gbn" else op + suffix
    for part in ("p50", "p99"):
        raw = found.get((("raw", base), part)) if name == "memif" else None
        bare = found.get((("pipe", op), part)) if name == "memif" else None
        report.row(name, f"uroce {op.upper()}{whole}{suffix}, {part}", "us", found[(name, op + suffix), part],
                   raw, "raw", bare)


def rows(report, runs, modes, found):
    for part in ("p50", "p99"):
        report.row("memif", f"raw ping-pong, {FRAME} B frames, {part}", "us", stats.pooled(found, part, "raw"))
    for part in ("p50", "p99"):
        raw = [value for way, op in runs if way.name == "memif" for value in found[("raw", op), part]]
        report.row("memif", f"bare pipe, {FRAME} B frames, {part}", "us", stats.pooled(found, part, "pipe"),
                   raw, "raw")
    for name in dict.fromkeys(way.name for way, _ in runs):
        for suffix in [suffix for suffix, _ in modes] + [" gbn"]:
            for op in [op for way, op in runs if way.name == name]:
                operation_rows(report, name, op, suffix, found)
    for part in ("p50", "p99"):
        report.row("veth", f"TCP (sockperf), {part}", "us", found[("veth", "tcp"), part])


def fill(report, runs, modes, found):
    rows(report, runs, modes, found)
    for op in ("write", "send"):
        to_raw = stats.ratios_of(found[("memif", op), "p50"], found[("raw", op), "p50"])
        tail = stats.ratios_of(found[("memif", op), "p99"], found[("memif", op), "p50"])
        report.bar(f"memif 8 B {op.upper()} p50 / raw p50", to_raw, BAR, at_least=False)
        report.bar(f"memif 8 B {op.upper()} p50 / raw ping-pong p50", to_raw, RAW_BAR, at_least=False)
        report.bar(f"memif 8 B {op.upper()} p99 / p50", tail, TAIL_BAR, at_least=False)
    for way, op in runs:
        report.bar(f"{way.name} 8 B {op.upper()} p50, auto / gbn",
                   stats.ratios_of(found[(way.name, op), "p50"], found[(way.name, f"{op} gbn"), "p50"]),
                   AUTO_BAR, at_least=False)
    report.plot("us", logscale=True)
    return report
