# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs over uroce: perftest over memif beside uroce-perf, and over veth beside the kernel's TCP; and one-sided tests,
whose target only sleeps, beside those in which both sides poll."""

import os
import re
import sys

from lib import iperf, paths, perf, stats
from lib.host import ROOT, Failure
from lib.report import Report

sys.path.insert(0, str(ROOT / "tests" / "programs"))
import bed as beds  # noqa: E402

TITLE = "Programs: perftest, unmodified"
PROGRAMS = ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_send_lat", "gnuplot", "iperf3", "sockperf", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "lib/verbs/libibverbs.so.1", "lib/verbs/librdmacm.so.1",
           "lib/verbs/liburoce-preload.so"]
SIZE, SMALL = 65536, 8
OPS = ("send", "write", "read")
BW_BAR, ONE_SIDED_BAR, LATENCY_BAR = 0.9, 0.7, 3.0


def pair(bed, command, seconds):
    """The client's output."""
    words = bed.words()
    command = f"{command} -p {words['port']}"
    server = bed.start("a", command)
    client = None
    try:
        if not beds.wait_until(lambda: bed.listens("a", words["port"]) or server.process.poll() is not None, 30):
            raise Failure(f"`{command}` does not listen: {server.text[-300:]}")
        client = bed.start("b", f"{command} {words['peer']}")
        if client.wait(seconds * 4 + 60) != 0:
            raise Failure(f"`{command}` fails: {client.text[-300:]}")
        return client.text
    finally:
        server.end()
        if client:
            client.end()


def bandwidth(way, op, seconds):
    """Gb/s of payload."""
    with way() as bed:
        text = pair(bed, f"ib_{op}_bw -s {SIZE} -D {max(2, round(seconds))} --report_gbits", seconds)
    found = re.search(rf"^ {SIZE} +\d+ +\S+ +(\S+)", text, re.M)
    if not found:
        raise Failure(f"ib_{op}_bw prints no result: {text[-300:]}")
    return float(found[1])


def latency(way, op, seconds):
    """The typical half round trip, in us."""
    with way() as bed:
        text = pair(bed, f"ib_{op}_lat -s {SMALL} -n {5000 if seconds > 1 else 1000}", seconds)
    found = re.search(rf"^ {SMALL} +\d+ +\S+ +\S+ +(\S+)", text, re.M)
    if not found:
        raise Failure(f"ib_{op}_lat prints no result: {text[-300:]}")
    return float(found[1])


def contenders(host, memif, packet, seconds):
    found = []
    for op in OPS:
        found.append((("uroce-perf", op), lambda o=op: perf.run(host, memif, o, SIZE, seconds)["gbps"]))
        found.append((("memif", op), lambda o=op: bandwidth(beds.Memif, o, seconds)))
        found.append((("veth", op), lambda o=op: bandwidth(beds.Veth, o, seconds)))
    for op in ("write", "send"):
        found.append((("memif", f"{op} lat"), lambda o=op: latency(beds.Memif, o, seconds)))
        found.append((("veth", f"{op} lat"), lambda o=op: latency(beds.Veth, o, seconds)))
    found.append((("veth", "tcp lat"), lambda: iperf.ping_pong(host, packet.pair, seconds)["p50"]))
    return found


def run(host, machine, options, progress):
    os.environ["UROCE_RUN"] = str(host.binary("app/run/uroce-run"))
    os.environ["UROCE_VERBS_LIBRARY_DIR"] = str(host.binary("lib/verbs"))
    os.environ.setdefault("UROCE_LIFE", "")
    memif, packet = paths.Memif(host), paths.AfPacket(host)
    found = stats.turns(contenders(host, memif, packet, options.seconds), options.turns, progress)
    return fill(Report("programs", TITLE, machine), found)


def fill(report, found):
    for op in OPS:
        report.row("memif", f"uroce-perf, {op.upper()}", "Gb/s", found["uroce-perf", op])
        report.row("memif", f"ib_{op}_bw", "Gb/s", found["memif", op], found["uroce-perf", op], "uroce-perf")
        report.row("veth", f"ib_{op}_bw", "Gb/s", found["veth", op])
    for way in ("memif", "veth"):
        for op in ("write", "send"):
            report.row(way, f"ib_{op}_lat", "us", found[way, f"{op} lat"])
    report.row("veth", "TCP (sockperf), p50", "us", found["veth", "tcp lat"])
    report.bar("ib_send_bw / uroce-perf SEND, memif", stats.ratios_of(found["memif", "send"], found["uroce-perf", "send"]), BW_BAR)
    for op in ("write", "read"):
        report.bar(f"ib_{op}_bw, whose target sleeps / uroce-perf {op.upper()}, memif",
                   stats.ratios_of(found["memif", op], found["uroce-perf", op]), ONE_SIDED_BAR)
    for op in ("write", "send"):
        report.bar(f"TCP / ib_{op}_lat, veth", stats.ratios_of(found["veth", "tcp lat"], found["veth", f"{op} lat"]), LATENCY_BAR)
    report.plot("Gb/s of payload; us")
    return report
