# SPDX-License-Identifier: BSD-3-Clause
"""Programs of TCP, unmodified, over rsockets: sockperf and iperf3, whose calls Debian's librspreload.so gives to uroce's librdmacm, beside
themselves over the kernel's TCP on a veth pair."""

import json

import programs
from lib import iperf, stats
from lib.host import Failure
from lib.report import Report

TITLE = "Sockets: programs of TCP over rsockets, beside themselves over TCP"
PROGRAMS = ["sockperf", "iperf3", "gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "app/uroced/uroced", "lib/verbs/libibverbs.so.1", "lib/verbs/librdmacm.so.1"]
PRELOAD = "env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"  # of Debian's librdmacm1
WAYS = ("memif", "veth", "uroced")
LATENCY_BAR = 3.0  # as other programs' round trips beside TCP's
RATE = 500  # messages a second, so that both ends sleep before each
ASLEEP_BAR = 1.0  # a wake-up takes as long for either
# (key of the contender, program, what it measures, unit, bar of TCP's to it or None)
FIGURES = [("sockperf", "sockperf", "14 B, half a round trip, p50", "us", LATENCY_BAR),
           ("asleep", "sockperf", "the same, both ends asleep", "us", ASLEEP_BAR),
           ("iperf3", "iperf3", "one stream", "Gb/s", None)]


def ping_pong(way, seconds):
    """The median of half a round trip, in us."""
    to = "--tcp -i {address} -p {port}"
    with way() as bed:
        text = programs.pair(bed, f"{PRELOAD} sockperf server {to}",
                             f"{PRELOAD} sockperf ping-pong {to} -t {max(1, round(seconds))} -m 14", seconds, by_cm=True)
    return programs.figure(r"percentile 50\.000 = +(\S+)", text)


def asleep(way, seconds, over=PRELOAD, **how):
    """The same with a pause before each message: both ends sleep."""
    to = "--tcp -i {address} -p {port}"
    with way() as bed:
        text = programs.pair(bed, f"{over} sockperf server {to}",
                             f"{over} sockperf under-load {to} -t {max(1, round(seconds))} -m 14 --mps {RATE} --reply-every 1", seconds, **how)
    return programs.figure(r"percentile 50\.000 = +(\S+)", text)


def one_stream(way, seconds):
    """Gb/s that were received."""
    with way() as bed:
        text = programs.pair(bed, f"{PRELOAD} iperf3 -s -1 -B {{address}} -p {{port}}",
                             f"{PRELOAD} iperf3 -c {{address}} -p {{port}} -t {max(1, round(seconds))} -J", seconds, by_cm=True)
    try:
        return json.loads(text[text.index("{"):])["end"]["sum_received"]["bits_per_second"] / 1e9
    except (ValueError, KeyError):
        raise Failure(f"iperf3 gives no figure: {text[-300:]}")


def contenders(host, seconds):
    ways = programs.Ways(host)
    for way in WAYS:
        bed = ways.bed(way)
        yield ("sockperf", way), lambda b=bed: ping_pong(b, seconds)
        yield ("asleep", way), lambda b=bed: asleep(b, seconds, by_cm=True)
        yield ("iperf3", way), lambda b=bed: one_stream(b, seconds)
    yield ("sockperf", "tcp"), lambda: iperf.ping_pong(host, ways.veth.pair, seconds)["p50"]
    yield ("asleep", "tcp"), lambda: asleep(ways.bed("veth"), seconds, over="env", bare=True)
    yield ("iperf3", "tcp"), lambda: iperf.one_stream(host, ways.veth.pair, seconds)


def run(host, machine, options, progress):
    programs.prepare(host)
    return fill(Report("sockets", TITLE, machine), stats.turns(list(contenders(host, options.seconds)), options.turns, progress))


def fill(report, found):
    for key, program, what, unit, bar in FIGURES:
        tcp = found[key, "tcp"]
        report.row("veth", f"{program}, TCP: {what}", unit, tcp)
        for way in WAYS:
            report.row(way, f"{program}, rsockets: {what}", unit, found[key, way], tcp, "TCP")
            if bar:
                report.bar(f"{program}, {what}: TCP / rsockets, {way}", stats.ratios_of(tcp, found[key, way]), bar)
    report.plot("us; Gb/s")
    return report
