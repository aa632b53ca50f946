# SPDX-License-Identifier: BSD-3-Clause
"""uroce beside the kernel's soft-RoCE, rdma_rxe, inside one emulated guest: over the same veth pair, with the
same path MTU and the same loss (netem; with af_xdp, which passes by it, [impair]).

Every instruction is emulated, so figures mean nothing and only ratios within a turn are shown.
"""

import json
import shutil
import subprocess

from lib import stats
from lib.host import ROOT, Failure
from lib.report import Report

TITLE = "uroce and the kernel's rxe over one veth pair in an emulated guest, path MTU 2048"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja", "qemu-system-x86_64", "mmdebstrap", "mksquashfs"]
TARGETS = ["app/perf/uroce-perf"]
TURNS, SECONDS = 3, 2
WAYS = ("af_packet", "af_xdp")
BARS = {("bw", 0): 5.0, ("rate", 0): 5.0, ("bw", 1): 10.0}
NAMES = {"bw": "64 KB WRITE, Gb/s", "rate": "64 B WRITE, M/s", "lat": "64 B WRITE, half a round trip, us"}
CONF = "[port]\ndriver = af_packet\ndevice = va\nframecnt = 1024\n[address]\nipv4 = 10.98.1.1/24\n[transport]\nwindow = 64\n"


def guest(host, turns, seconds):
    """[{who, what, loss, value}] of the whole run."""
    share = host.tmp / "share"
    share.mkdir()
    shutil.copy(host.binary("app/perf/uroce-perf"), share)
    shutil.copy(ROOT / "benchmarks/raw/rxe_guest.sh", share)
    (share / "endpoint.conf").write_text(CONF)
    argv = [ROOT / "tests/interop/in_guest", host.build, "6.1", share,
            f"bash /mnt/share/rxe_guest.sh {turns} {seconds:g}"]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=600 + turns * 400)
    if done.returncode != 0:
        raise Failure("the guest fails: " + " | ".join((done.stdout + done.stderr).strip().splitlines()[-6:]))
    return [json.loads(line[len("RESULT "):]) for line in done.stdout.splitlines() if line.startswith("RESULT ")]


def run(host, machine, options, progress):
    turns = options.turns_given or (1 if options.quick else TURNS)
    seconds = options.seconds_given or SECONDS
    progress(1, turns, ("emulated guest",))
    found = {}
    for one in guest(host, turns, seconds):
        found.setdefault((one["who"], one["what"], one["loss"]), []).append(one["value"])
    report = Report("rxe", TITLE, machine)
    for what, loss in (("bw", 0), ("bw", 0.1), ("bw", 1), ("rate", 0), ("lat", 0)):
        rxe = found["rxe", what, loss]
        text = NAMES[what].split(",")[0] + (f", {loss:g} % loss" if loss else "")
        for way in WAYS:
            mine = found[way, what, loss]
            # Of a latency the smaller is the better.
            ratios = stats.ratios_of(rxe, mine) if what == "lat" else stats.ratios_of(mine, rxe)
            report.row(way, text + (", rxe / uroce half round trip" if what == "lat" else ", uroce / rxe"), "",
                       ratios)
            if (what, loss) in BARS:
                report.bar(f"{way} {text}, uroce / rxe", ratios, BARS[what, loss])
    report.extra = {"samples": {f"{w} {k} {l:g}": v for (w, k, l), v in found.items()}}
    report.notes.append("figures of an emulated machine are in the JSON alone: only ratios say something")
    report.plot("times rxe", logscale=True)
    return report
