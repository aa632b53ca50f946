# SPDX-License-Identifier: BSD-3-Clause
"""Payload a second: 64 KB messages on one queue pair."""

from lib import iperf, paths, perf, stats, testpmd
from lib.report import Report

TITLE = "Throughput: 64 KB messages, one queue pair, Gb/s of payload"
PROGRAMS = ["dpdk-testpmd", "iperf3", "gnuplot", "ip", "stdbuf", "meson", "ninja"]
SIZE = 65536
BARS = {"memif": 0.33, "af_xdp": 0.45, "af_packet": 0.50}  # of raw frames
TCP_BAR = 2.0
OP_BAR = 0.85


def ceiling(host, path, seconds):
    """testpmd with the frames of a long message, counted as the payload they would carry."""
    rate = testpmd.frames_per_second(host, path, path.pmtu + paths.ROCE_BYTES, seconds)
    return rate * path.pmtu * 8 / 1e9


def uroce(host, path, op, seconds, dedicated=False):
    return perf.run(host, path, op, SIZE, seconds, dedicated=dedicated)["gbps"]


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    ways = [memif, xdp, packet]
    seconds = options.seconds
    contenders = [(("tcp", "tcp"), lambda: iperf.one_stream(host, packet.pair, seconds))]
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    for way in ways:
        contenders.append(((way.name, "raw"), lambda w=way: ceiling(host, w, seconds)))
        for suffix, dedicated in modes:
            for op in ("write", "send", "read"):
                contenders.append(((way.name, op + suffix), lambda w=way, o=op, d=dedicated:
                                   uroce(host, w, o, seconds, d)))
    found = stats.turns(contenders, options.turns, progress)
    return fill(Report("throughput", TITLE, machine), ways, modes, found)


def fill(report, ways, modes, found):
    tcp = found["tcp", "tcp"]
    for way in ways:
        raw = found[way.name, "raw"]
        report.row(way.name, f"raw testpmd, {way.pmtu + paths.ROCE_BYTES} B frames", "Gb/s", raw)
        for suffix, _ in modes:
            for op in ("write", "send", "read"):
                report.row(way.name, f"uroce {op.upper()}{suffix}", "Gb/s", found[way.name, op + suffix],
                           raw, "raw")
    report.row("veth", "TCP (iperf3, one stream)", "Gb/s", tcp)
    for way in ways:
        write = found[way.name, "write"]
        report.bar(f"{way.name} WRITE / raw", stats.ratio_of(write, found[way.name, "raw"]),
                   BARS[way.name])
        if way.name == "memif":
            report.bar("memif WRITE / TCP", stats.ratio_of(write, tcp), TCP_BAR)
        for op in ("send", "read"):
            report.bar(f"{way.name} {op.upper()} / WRITE", stats.ratio_of(found[way.name, op], write),
                       OP_BAR)
    report.plot("Gb/s of payload")
    return report
