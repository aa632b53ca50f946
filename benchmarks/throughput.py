# SPDX-License-Identifier: BSD-3-Clause
"""Payload per second: 64 KB messages on one queue pair.

Over memif there are two ceilings, with a bar for each. Plain: testpmd's receiver copies each frame out of the
shared ring, so the bytes cross from core to core, as they must for any program that reads them. Zero copy:
testpmd has uroce's own configuration, but never reads a frame, so that no byte leaves the sender's cache.

uroce runs with its configuration files, in transport mode auto, in which two uroce endpoints agree on extended.
"""

from lib import iperf, paths, perf, stats, testpmd
from lib.report import Report

TITLE = "Throughput: 64 KB messages, one queue pair, Gb/s of payload"
PROGRAMS = ["dpdk-testpmd", "iperf3", "gnuplot", "ip", "stdbuf", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf"]
SIZE = 65536
OPS = ("write", "send", "read")
BARS = {"memif": 0.33, "af_xdp": 0.45, "af_packet": 0.50}  # of raw frames
ZERO_COPY_BAR = 0.33
TCP_BAR = 2.0
OP_BAR = 0.85


def ceiling(host, path, seconds):
    """testpmd with the frames of a long message, counted by the payload that they would carry."""
    rate = testpmd.frames_per_second(host, path, path.pmtu + paths.ROCE_BYTES, seconds)
    return rate * path.pmtu * 8 / 1e9


def uroce(host, path, op, seconds, dedicated=False):
    return perf.run(host, path, op, SIZE, seconds, dedicated=dedicated)["gbps"]


def contenders(host, ways, plain, pair, modes, seconds):
    """In the order of a turn: each contender next to its baseline."""
    runs = []
    for way in ways:
        raw = plain if way.name == "memif" else way
        runs.append(((way.name, "raw"), lambda w=raw: ceiling(host, w, seconds)))
        for suffix, dedicated in modes:
            for op in OPS:
                runs.append(((way.name, op + suffix), lambda w=way, o=op, d=dedicated:
                             uroce(host, w, o, seconds, d)))
            if way.name == "memif" and not dedicated:
                runs.insert(2, (("veth", "tcp"), lambda: iperf.one_stream(host, pair, seconds)))
        if way.name == "memif" and way.zero_copy:
            runs.append(((way.name, "raw zero copy"), lambda w=way: ceiling(host, w, seconds)))
    return runs


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    ways = [memif, xdp, packet]
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = contenders(host, ways, paths.Memif(host, zero_copy=False), packet.pair, modes,
                      options.seconds)
    return fill(Report("throughput", TITLE, machine), ways, modes,
                stats.turns(runs, options.turns, progress))


def fill(report, ways, modes, found):
    tcp = found["veth", "tcp"]
    for way in ways:
        raw = found[way.name, "raw"]
        frame = way.pmtu + paths.ROCE_BYTES
        report.row(way.name, f"raw testpmd, {frame} B frames", "Gb/s", raw)
        if (way.name, "raw zero copy") in found:
            report.row(way.name, "raw testpmd, zero copy, unread", "Gb/s",
                       found[way.name, "raw zero copy"])
        for suffix, _ in modes:
            for op in OPS:
                report.row(way.name, f"uroce {op.upper()}{suffix}", "Gb/s", found[way.name, op + suffix],
                           raw, "raw")
    report.row("veth", "TCP (iperf3, one stream)", "Gb/s", tcp)
    for way in ways:
        write = found[way.name, "write"]
        report.bar(f"{way.name} WRITE / raw", stats.ratios_of(write, found[way.name, "raw"]),
                   BARS[way.name])
        if (way.name, "raw zero copy") in found:
            report.bar(f"{way.name} WRITE / raw, zero copy",
                       stats.ratios_of(write, found[way.name, "raw zero copy"]), ZERO_COPY_BAR)
        if way.name == "memif":
            report.bar("memif WRITE / TCP", stats.ratios_of(write, tcp), TCP_BAR)
        for op in OPS[1:]:
            report.bar(f"{way.name} {op.upper()} / WRITE", stats.ratios_of(found[way.name, op], write),
                       OP_BAR)
    report.plot("Gb/s of payload")
    return report
