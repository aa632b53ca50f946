# SPDX-License-Identifier: BSD-3-Clause
"""Messages per second: 64 B messages on one queue pair and on several."""

from lib import iperf, paths, perf, pipe, stats, testpmd
from lib.report import Report

TITLE = "Message rate: 64 B messages, millions a second"
PROGRAMS = ["dpdk-testpmd", "gnuplot", "ip", "stdbuf", "sockperf", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", pipe.TARGET]
SIZE = 64
FRAME = paths.ROCE_BYTES + paths.RETH_BYTES + SIZE
BAR = 0.20
RAW_BAR = 0.15
PIPE_BAR = 0.50
MOONSHOT = 0.30  # of raw
MANY = 1024  # queue pairs with one message outstanding each
MANY_BAR = 0.60  # of one queue pair with DEPTH
DEPTH = 256  # outstanding messages of all queue pairs together
# (operation, queue pairs) by port
LOADS = {"memif": [("write", 1), ("send", 1), ("write", 16)], "af_xdp": [("write", 1)], "af_packet": [("write", 1)]}


def ceiling(host, path, seconds):
    return testpmd.frames_per_second(host, path, FRAME, seconds) / 1e6


def uroce(host, path, op, qps, seconds, dedicated=False, sets=((), ())):
    depth = max(DEPTH // qps, 32)
    return perf.run(host, path, op, SIZE, seconds, mode="rate", dedicated=dedicated, sets=sets,
                    more=["--qps", str(qps), "--depth", str(depth)])["mops"]


def many(host, path, seconds):
    return perf.run(host, path, "write", SIZE, seconds, mode="rate", more=["--qps", str(MANY), "--depth", "1"],
                    sets=([f"transport.max_qp={2 * MANY}"],) * 2)["mops"]


def contenders(host, ways, pair, modes, seconds):
    """In the order of a turn: each contender close to its baselines."""
    runs = [(("tcp", "tcp"), lambda: iperf.message_rate(host, pair, SIZE, seconds) / 1e6)]
    for way in ways:
        runs.append(((way.name, "raw"), lambda w=way: ceiling(host, w, seconds)))
        for suffix, dedicated in modes:
            for op, qps in LOADS[way.name]:
                runs.append(((way.name, f"{op} {qps}{suffix}"), lambda w=way, o=op, q=qps, d=dedicated:
                             uroce(host, w, o, q, seconds, d)))
                if dedicated:
                    continue
                if way.name == "memif" and (op, qps) == ("write", 1):
                    runs.append(((way.name, "many"), lambda w=way: many(host, w, seconds)))
                    runs.append(((way.name, "pipe"), lambda w=way:
                                 pipe.million_messages(host, w, "write", SIZE, seconds, DEPTH)))
                runs.append(((way.name, f"{op} {qps} gbn"), lambda w=way, o=op, q=qps:
                             uroce(host, w, o, q, seconds, sets=perf.GBN)))
    return runs


def run(host, machine, options, progress):
    memif, packet, xdp = paths.Memif(host), paths.AfPacket(host), paths.AfXdp(host)
    memif.clean = perf.Clean()
    ways = [memif, xdp, packet]
    modes = [("", False)] + ([(" dedicated", True)] if host.can_dedicate() else [])
    runs = contenders(host, ways, packet.pair, modes, options.seconds)
    report = fill(Report("msgrate", TITLE, machine), ways, modes, stats.turns(runs, options.turns, progress))
    memif.clean.fill(report)
    return report


def name_of(op, qps):
    return f"{op.upper()}, {qps} QP{'s' if qps > 1 else ''}"


def fill(report, ways, modes, found):
    for way in ways:
        raw, bare = found[way.name, "raw"], found.get((way.name, "pipe"))
        report.row(way.name, f"raw testpmd, {FRAME} B frames", "M/s", raw)
        if bare:
            report.row(way.name, f"bare pipe, {FRAME} B frames", "M/s", bare, raw, "raw")
        for suffix in [suffix for suffix, _ in modes] + [" gbn"]:
            for op, qps in LOADS[way.name]:
                report.row(way.name, f"uroce {name_of(op, qps)}{suffix}", "M/s",
                           found[way.name, f"{op} {qps}{suffix}"], raw, "raw", bare)
        if (way.name, "many") in found:
            report.row(way.name, f"uroce WRITE, {MANY} QPs, 1 outstanding", "M/s", found[way.name, "many"], raw, "raw", bare)
    report.row("veth", "TCP (sockperf, one stream)", "M/s", found["tcp", "tcp"])
    write = found["memif", "write 1"]
    report.bar("memif 64 B WRITE / raw", stats.ratios_of(write, found["memif", "raw"]), BAR)
    report.bar("memif 64 B WRITE / bare pipe", stats.ratios_of(write, found["memif", "pipe"]), PIPE_BAR)
    report.bar("memif 64 B WRITE / raw testpmd", stats.ratios_of(write, found["memif", "raw"]), RAW_BAR)
    report.bar(f"memif 64 B WRITE, {MANY} QPs with 1 outstanding each / 1 QP",
               stats.ratios_of(found["memif", "many"], write), MANY_BAR)
    report.bar("moonshot: memif 64 B WRITE / raw testpmd", stats.ratios_of(write, found["memif", "raw"]), MOONSHOT,
               moonshot=True)
    for way in ways:
        for op, qps in LOADS[way.name]:
            report.bar(f"{way.name} 64 B {name_of(op, qps)}, auto / gbn",
                       stats.ratios_of(found[way.name, f"{op} {qps}"], found[way.name, f"{op} {qps} gbn"]),
                       perf.AUTO_BAR)
    report.plot("millions a second", logscale=True)
    return report
