# SPDX-License-Identifier: BSD-3-Clause
"""Compares uroce with the kernel's soft-RoCE, rdma_rxe, in one emulated guest: over the same veth pair, with the
same path MTU and the same loss (by netem; for af_xdp, which bypasses netem, by [impair]).

Every instruction is emulated, so absolute figures mean nothing; only ratios within a turn are shown.
"""

import json
import shutil
import time

from lib.host import ROOT, Failure
from lib.report import Report

TITLE = "uroce and the kernel's rxe over one veth pair in an emulated guest, path MTU 2048"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja", "qemu-system-x86_64", "mmdebstrap", "mksquashfs"]
TARGETS = ["app/perf/uroce-perf"]
TURNS, SECONDS = 3, 2
WAYS = ("af_packet", "af_xdp")
BOOT_S = 900  # its image may have to be built first
START_S = 45  # per measurement: programs start slowly in the guest, and a program that hangs is ended
# Avoids two things that the emulator does far more slowly than others: reading a clock that is an I/O port, once
# per frame of af_packet, and moving strings byte by byte. The same for both contenders.
MACHINE = ["guest_cpu=max,erms=off", "guest_append=tsc=reliable clocksource=tsc"]
CELLS = (("bw", 0), ("bw", 0.1), ("bw", 1), ("rate", 0), ("lat", 0))
BARS = {("bw", 0): 5.0, ("rate", 0): 5.0, ("bw", 1): 10.0}
NAMES = {"bw": "64 KB WRITE, Gb/s", "rate": "64 B WRITE, M/s", "lat": "64 B WRITE, half a round trip, us"}
CONF = "[port]\ndriver = af_packet\ndevice = va\nframecnt = 1024\n[address]\nipv4 = 10.98.1.1/24\n"


def guest(host, turns, seconds, progress):
    """[{contender, what, loss, value}] of the whole run; without a value, {why}."""
    share = host.tmp / "share"
    share.mkdir()
    for file in ("app/perf/uroce-perf", "lib/liburoce.so.0"):
        shutil.copy(host.binary(file), share)
    shutil.copy(ROOT / "benchmarks/raw/rxe_guest.sh", share)
    (share / "endpoint.conf").write_text(CONF)
    progress(1, turns, ("the guest boots",))
    process = host.start("guest", ["env", *MACHINE, ROOT / "tests/interop/in_guest", host.build, "6.1", share,
                                   f"bash /mnt/share/rxe_guest.sh {turns} {seconds:g}"])
    patience_s = BOOT_S + turns * len(WAYS + ("rxe",)) * 5 * (seconds + START_S)
    until, shown, clock = time.monotonic() + patience_s, 0, None
    while process.alive():
        lines = process.text().splitlines()
        for line in lines[shown:]:
            if line.startswith("AT "):
                uptime, turn, contender, what, loss = line.split()[1:]
                progress(int(turn), turns, (contender, NAMES[what], f"{loss} % loss"))
                clock = clock or (time.monotonic(), float(uptime))
                last = (time.monotonic(), float(uptime))
        shown = len(lines)
        if time.monotonic() > until:
            process.stop()
            raise Failure(f"the guest did not end in {patience_s:.0f} s; its last output: {process.tail()}")
        time.sleep(0.2)
    process.wait(1)
    if clock is None:
        raise Failure(f"the guest measured nothing; its last output: {process.tail()}")
    speed = (last[1] - clock[1]) / (last[0] - clock[0])
    if not 0.9 < speed < 1.1:
        raise Failure(f"the guest's clock runs {speed:.2f} times as fast as it should: run it again")
    return [json.loads(line[len("RESULT "):]) for line in process.text().splitlines() if line.startswith("RESULT ")]


def run(host, machine, options, progress):
    turns = options.turns_given or (1 if options.quick else TURNS)
    seconds = options.seconds_given or SECONDS
    report = Report("rxe", TITLE, machine)
    found = {}
    for one in guest(host, turns, seconds, progress):
        found.setdefault((one["contender"], one["what"], one["loss"]), []).append(one["value"])
        if one["value"] is None:
            report.notes.append(f"{one['contender']}, {NAMES[one['what']]}, {one['loss']:g} % loss has no value: "
                                f"{one['why']}")
    for what, loss in CELLS:
        text = "64 B WRITE latency" if what == "lat" else NAMES[what].split(",")[0]
        text += f", {loss:g} % loss" if loss else ""
        for way in WAYS:
            ratios = ratios_of(what, found.get((way, what, loss), []), found.get(("rxe", what, loss), []), turns)
            lacks = "" if ratios else " (rxe has no value)"
            ratios = ratios or [0.0]
            report.row(way, text + (", rxe / uroce" if what == "lat" else ", uroce / rxe") + lacks, "", ratios)
            if (what, loss) in BARS:
                report.bar(f"{way} {text}, uroce / rxe", ratios, BARS[what, loss])
    report.extra = {"samples": {f"{w} {k} {l:g}": v for (w, k, l), v in found.items()}}
    report.notes.append("absolute figures of an emulated machine mean nothing and are only in the JSON")
    report.plot("times rxe", logscale=True)
    return report


def ratios_of(what, mine, rxe, turns):
    """By turn, how many times better uroce is; 0 if it has no value. Turns in which rxe has no value do not
    count; the notes name them."""
    mine = mine + [None] * (turns - len(mine))
    # For latency, smaller is better.
    return [0.0 if m is None else r / m if what == "lat" else m / r for m, r in zip(mine, rxe) if r is not None]
