# SPDX-License-Identifier: BSD-3-Clause
"""Messages per second: 64 B messages on one queue pair and on several."""

from lib import iperf, paths, perf, stats, testpmd
from lib.report import Report

TITLE = "Message rate: 64 B messages, millions a second"
PROGRAMS = ["dpdk-testpmd", "gnuplot", "ip", "stdbuf", "sockperf", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf"]
SIZE = 64
FRAME = paths.ROCE_BYTES + paths.RETH_BYTES + SIZE
BAR = 0.20
DEPTH = 256  # outstanding messages of all queue pairs together


def ceiling(host, path, seconds):
    return testpmd.frames_per_second(host, path, FRAME, seconds) / 1e6


def uroce(host, path, op, qps, seconds, dedicated=False):
    depth = max(DEPTH // qps, 32)
    return perf.run(host, path, op, SIZE, seconds, mode="rate", dedicated=dedicated,
                    more=["--qps", str(qps), "--depth", str(depth)])["mops"]


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    ways = [memif, xdp, packet]
    seconds = options.seconds
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = {"memif": [("write", 1), ("send", 1), ("write", 16)], "af_xdp": [("write", 1)],
            "af_packet": [("write", 1)]}
    contenders = [(("tcp", "tcp"),
                   lambda: iperf.message_rate(host, packet.pair, SIZE, seconds) / 1e6)]
    for way in ways:
        contenders.append(((way.name, "raw"), lambda w=way: ceiling(host, w, seconds)))
        for suffix, dedicated in modes:
            for op, qps in runs[way.name]:
                contenders.append((
                    (way.name, f"{op} {qps}{suffix}"), lambda w=way, o=op, q=qps, d=dedicated:
                    uroce(host, w, o, q, seconds, d)))
    found = stats.turns(contenders, options.turns, progress)
    report = Report("msgrate", TITLE, machine)
    for way in ways:
        raw = found[way.name, "raw"]
        report.row(way.name, f"raw testpmd, {FRAME} B frames", "M/s", raw)
        for suffix, _ in modes:
            for op, qps in runs[way.name]:
                label = f"uroce {op.upper()}, {qps} QP{'s' if qps > 1 else ''}{suffix}"
                report.row(way.name, label, "M/s", found[way.name, f"{op} {qps}{suffix}"], raw, "raw")
    report.row("veth", "TCP (sockperf, one stream)", "M/s", found["tcp", "tcp"])
    report.bar("memif 64 B WRITE / raw",
               stats.ratios_of(found["memif", "write 1"], found["memif", "raw"]), BAR)
    report.plot("millions a second", logscale=True)
    return report
