# SPDX-License-Identifier: BSD-3-Clause
"""Payload per second: 64 KB messages on one queue pair.

Over memif there are two ceilings, with a bar for each. Plain: testpmd's receiver copies each frame out of the
shared ring, so the bytes cross from core to core, as they must for any program that reads them. Zero copy:
testpmd has uroce's own configuration, but never reads a frame, so that no byte leaves the sender's cache.

The bare pipe (lib/pipe.py) is the limit of an endpoint: what testpmd does, and copies, sums and ACKs as well. It
runs with received frames evicted from the cache, as in uroce, and without; the faster of the two counts in each turn.

uroce runs with its configuration files, in transport mode auto, in which two uroce endpoints agree on extended,
and next to it in mode gbn.
"""

import itertools

from lib import iperf, paths, perf, pipe, stats, testpmd
from lib.report import Report

TITLE = "Throughput: 64 KB messages, one queue pair, Gb/s of payload"
PROGRAMS = ["dpdk-testpmd", "iperf3", "gnuplot", "ip", "stdbuf", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", pipe.TARGET]
SIZE = 65536
OPS = ("write", "send", "read")
BARS = {"memif": 0.33, "af_xdp": 0.70, "af_packet": 0.75}  # of raw frames
ZERO_COPY_BAR = 0.33
TCP_BAR = 2.0
OP_BAR = 0.85
PIPES = {"": [], " kept in cache": ["--keep-cached"]}  # the faster one depends on the distance of the cores
PIPE_BAR = 0.75  # of the bare pipe, and
COPYING_BAR = 0.40  # of copying testpmd: each operation, over memif
MOONSHOT = 0.55


def ceiling(host, path, seconds):
    """testpmd with the frames of a long message, counted by the payload that they would carry."""
    rate = testpmd.frames_per_second(host, path, path.pmtu + paths.ROCE_BYTES, seconds)
    return rate * path.pmtu * 8 / 1e9


def uroce(host, path, op, seconds, dedicated=False, sets=((), ())):
    return perf.run(host, path, op, SIZE, seconds, dedicated=dedicated, sets=sets)["gbps"]


def pipe_of(op):
    """SENDs and WRITEs are the same to the bare pipe: data one way, ACKs the other."""
    return "read" if op == "read" else "write"


def best_pipe(found, op):
    """The faster one of each turn."""
    runs = [found["memif", f"pipe {pipe_of(op)}{suffix}"] for suffix in PIPES]
    return [max(values) for values in zip(*runs)]


def on_path(host, way, suffix, dedicated, seconds):
    """The operations; each is followed by the bare pipe, which exists for memif, and by mode gbn."""
    runs = []
    for op in OPS:
        runs.append(((way.name, op + suffix), lambda o=op: uroce(host, way, o, seconds, dedicated)))
        if dedicated:
            continue
        if way.name == "memif" and op == pipe_of(op):
            for kind, more in PIPES.items():
                runs.append(((way.name, f"pipe {op}{kind}"), lambda o=op, m=more:
                             pipe.gbps(host, way, o, SIZE, seconds, m)))
        runs.append(((way.name, f"{op} gbn"), lambda o=op: uroce(host, way, o, seconds, sets=perf.GBN)))
    return runs


def contenders(host, ways, plain, pair, modes, seconds):
    """In the order of a turn: each contender close to its baselines."""
    runs = [(("veth", "tcp"), lambda: iperf.one_stream(host, pair, seconds))]
    for way in ways:
        raw = plain if way.name == "memif" else way
        runs.append(((way.name, "raw"), lambda w=raw: ceiling(host, w, seconds)))
        for suffix, dedicated in modes:
            runs += on_path(host, way, suffix, dedicated, seconds)
        if way.name == "memif" and way.zero_copy:
            runs.append(((way.name, "raw zero copy"), lambda w=way: ceiling(host, w, seconds)))
    return runs


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    memif.clean = perf.Clean()
    ways = [memif, xdp, packet]
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = contenders(host, ways, paths.Memif(host, zero_copy=False), packet.pair, modes,
                      options.seconds)
    report = fill(Report("throughput", TITLE, machine), ways, modes, stats.turns(runs, options.turns, progress))
    memif.clean.fill(report)
    return report


def rows(report, way, modes, found):
    raw = found[way.name, "raw"]
    frame = way.pmtu + paths.ROCE_BYTES
    report.row(way.name, f"raw testpmd, {frame} B frames", "Gb/s", raw)
    if (way.name, "raw zero copy") in found:
        report.row(way.name, "raw testpmd, zero copy, unread", "Gb/s", found[way.name, "raw zero copy"])
    for op, suffix in itertools.product(OPS, PIPES):
        if (way.name, f"pipe {op}{suffix}") in found:
            report.row(way.name, f"bare pipe, {op.upper()}{suffix}", "Gb/s", found[way.name, f"pipe {op}{suffix}"],
                       raw, "raw")
    for suffix in [suffix for suffix, _ in modes] + [" gbn"]:
        for op in OPS:
            report.row(way.name, f"uroce {op.upper()}{suffix}", "Gb/s", found[way.name, op + suffix], raw, "raw",
                       best_pipe(found, op) if way.name == "memif" else None)


def memif_bars(report, found):
    """Of all three operations: against the bare pipe, copying testpmd and TCP."""
    def judge(name, op, base, bar):
        report.bar(f"memif {op.upper()} / {name}", stats.ratios_of(found["memif", op], base), bar)
    for op in OPS:
        judge("bare pipe", op, best_pipe(found, op), PIPE_BAR)
    for op in OPS:
        judge("copying testpmd", op, found["memif", "raw"], COPYING_BAR)
    report.bar("moonshot: memif WRITE / copying testpmd", stats.ratios_of(found["memif", "write"], found["memif", "raw"]), MOONSHOT,
               moonshot=True)
    for op in OPS:
        judge("TCP", op, found["veth", "tcp"], TCP_BAR)


def fill(report, ways, modes, found):
    for way in ways:
        rows(report, way, modes, found)
    report.row("veth", "TCP (iperf3, one stream)", "Gb/s", found["veth", "tcp"])
    for way in ways:
        write = found[way.name, "write"]
        report.bar(f"{way.name} WRITE / raw", stats.ratios_of(write, found[way.name, "raw"]), BARS[way.name])
        if (way.name, "raw zero copy") in found:
            report.bar(f"{way.name} WRITE / raw, zero copy",
                       stats.ratios_of(write, found[way.name, "raw zero copy"]), ZERO_COPY_BAR)
        if way.name == "memif":
            memif_bars(report, found)
        for op in OPS[1:]:
            report.bar(f"{way.name} {op.upper()} / WRITE", stats.ratios_of(found[way.name, op], write), OP_BAR)
        for op in OPS:
            report.bar(f"{way.name} {op.upper()}, auto / gbn",
                       stats.ratios_of(found[way.name, op], found[way.name, f"{op} gbn"]), perf.AUTO_BAR)
    report.plot("Gb/s of payload")
    return report
