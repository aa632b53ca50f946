# SPDX-License-Identifier: BSD-3-Clause
"""Half a round trip: 8 B messages, one at a time."""

from lib import iperf, paths, perf, pingpong, stats
from lib.report import Report

TITLE = "Latency: 8 B messages, half a round trip, us"
PROGRAMS = ["sockperf", "gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "benchmarks/raw/pingpong"]
SIZE = 8
FRAME = paths.ROCE_BYTES + paths.RETH_BYTES + SIZE
BAR = 3.0


def uroce(host, path, op, seconds, dedicated=False):
    lat = perf.run(host, path, op, SIZE, seconds, mode="lat", dedicated=dedicated)["lat_us"]
    return {"p50": lat["p50"], "p99": lat["p99"]}


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    seconds = options.seconds
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = [(memif, "write"), (memif, "send"), (memif, "read"), (xdp, "write"), (packet, "write")]
    contenders = []
    for suffix, dedicated in modes:
        for way, op in runs:
            if way is memif:
                contenders.append((("raw", op + suffix), lambda:
                                   pingpong.half_round_trip(host, memif, FRAME, seconds)))
            contenders.append(((way.name, op + suffix), lambda w=way, o=op, d=dedicated:
                               uroce(host, w, o, seconds, d)))
    contenders.append((("veth", "tcp"), lambda: iperf.ping_pong(host, packet.pair, seconds)))
    found = stats.turns(contenders, options.turns, progress)
    return fill(Report("latency", TITLE, machine), runs, modes, found)


def fill(report, runs, modes, found):
    for part in ("p50", "p99"):
        report.row("memif", f"raw ping-pong, {FRAME} B frames, {part}", "us",
                   stats.pooled(found, part, "raw"))
    for suffix, _ in modes:
        for way, op in runs:
            for part in ("p50", "p99"):
                whole = " (whole trip)" if op == "read" else ""
                raw = found.get((("raw", op + suffix), part)) if way.name == "memif" else None
                report.row(way.name, f"uroce {op.upper()}{whole}{suffix}, {part}", "us",
                           found[(way.name, op + suffix), part], raw, "raw")
    for part in ("p50", "p99"):
        report.row("veth", f"TCP (sockperf), {part}", "us", found[("veth", "tcp"), part])
    for op in ("write", "send"):
        report.bar(f"memif 8 B {op.upper()} p50 / raw p50",
                   stats.ratios_of(found[("memif", op), "p50"], found[("raw", op), "p50"]), BAR,
                   at_least=False)
    report.plot("us", logscale=True)
    return report
