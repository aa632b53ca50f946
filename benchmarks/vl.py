# SPDX-License-Identifier: BSD-3-Clause
"""Virtual lanes: how two lanes share a port that is too slow for both.

A sender over memif, PMTU 2048, whose port is limited to a few Gb/s. On each of two service levels, four queue
pairs send WRITEs of 64 KB: SL 0 on VL 0, with weight H in the high table, and SL 1 on VL 1, with weight L in
the low table; Q is the Limit of High-Priority. The tables change while the traffic runs. Compared are the bytes
of the frames that each lane has passed to the port.
"""

import contextlib
import fractions
import os
import pathlib
import time

from lib import paths, perf, stats
from lib.host import ROOT
from lib.report import Report, gnuplot
from lib.telemetry import Telemetry

TITLE = "Virtual lanes: two lanes over a slow port"
PROGRAMS = ["gnuplot", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf"]
RATE_GBPS = 5
RATES_GBPS = (1, 5, 10)
PMTU = 2048
SIZE = 65536
QPS = 4  # of each lane
DEPTH = 16
PACKET = paths.ROCE_BYTES + PMTU
EXTRA = 24  # bytes on the wire besides a frame
WITHIN = 0.01
OF_THE_PORT = 0.99
WINDOW_S = 0.05
LATE_NS = 4_000_000  # the time that a late sender can catch up
SETTLE_S = 0.03

# (Q, H, L): the paper's nine correct rows, the misprinted row by the law, and the row that was probably meant.
ROWS = [(0, 2, 2), (0, 3, 4), (1, 16, 4), (1, 16, 25), (2, 3, 2), (3, 16, 12), (6, 8, 40), (8, 25, 100),
        (16, 5, 96), (5, 10, 90), (10, 10, 90)]
# (Q, H): the largest L. Each L from 1 to it is measured.
SWEEPS = {(1, 16): 40, (2, 3): 24, (3, 16): 40, (6, 8): 24}
QUICK_SWEEPS = {(1, 16): 24, (3, 16): 16}
IBA_STEP = 4
COLOURS = [0x2266AA, 0xCC7722, 0x338844, 0xAA3377]


def law(q, h, low):
    """Exact bytes of the high lane per byte of the low lane."""
    k = 2 * q if q else 1
    return fractions.Fraction(h, low) * max(1, k * low // h)


def iba(q):
    return 2 * q if q else 1


# ---- the traffic ----

class Traffic:
    """A sender whose lanes can be queried and changed, and its receiver."""

    def __init__(self, telemetry, processes):
        self.telemetry = telemetry
        self.processes = processes
        self.looks = self.hungry = 0

    def look(self):
        lanes = self.telemetry.ask("/uroce/lanes")
        self.looks += 1
        self.hungry += not (lanes["vl0"]["ready"] and lanes["vl1"]["ready"])
        lanes["now"] = time.monotonic()
        lanes["waited_ns"] = [waited_ns(process.popen.pid) for process in self.processes]
        return lanes

    def packets(self, vl):
        """Also 0 before the endpoint is open."""
        lanes = self.telemetry.ask("/uroce/lanes")
        return lanes[f"vl{vl}"]["packets"] if lanes else 0

    def tables(self, mode, q, h, low):
        self.telemetry.change(vl_mode=mode, vl_high=f"0:{h}", vl_low=f"1:{low}", vl_high_limit=q)

    def ratio(self, mode, q, h, low, cycles):
        """Bytes of VL 0 per byte of VL 1, over this number of rounds of both tables."""
        self.tables(mode, q, h, low)
        packets = low + low * (law(q, h, low) if mode == "measured" else iba(q))
        time.sleep(SETTLE_S)
        before = self.look()
        time.sleep(max(WINDOW_S, float(cycles * packets * (PACKET + EXTRA) * 8 / (RATE_GBPS * 1e9))))
        after = self.look()
        high, lower = (after[vl]["bytes"] - before[vl]["bytes"] for vl in ("vl0", "vl1"))
        return high / max(lower, 1)

    def windows(self, seconds):
        """[(Gb/s on the wire of VL 0, of VL 1)] for each window of 50 ms. Windows in which another process had
        the CPU for longer than the sender can catch up, and the window after, are omitted unless they are the
        majority."""
        found, undisturbed, before, calm = [], [], self.look(), False
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(WINDOW_S)
            after = self.look()
            found.append(tuple(on_the_wire(before, after, vl) for vl in ("vl0", "vl1")))
            was_calm = calm
            calm = all(b - a <= LATE_NS for a, b in zip(before["waited_ns"], after["waited_ns"]))
            if calm and was_calm:
                undisturbed.append(found[-1])
            before = after
        return undisturbed if 4 * len(undisturbed) >= len(found) else found


def waited_ns(pid):
    """Time that the thread that sends and receives has waited for a CPU."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def on_the_wire(before, after, vl):
    sent = {what: after[vl][what] - before[vl][what] for what in ("packets", "bytes")}
    return (sent["bytes"] + EXTRA * sent["packets"]) * 8 / 1e9 / (after["now"] - before["now"])


@contextlib.contextmanager
def traffic(host, rate_gbps, sls, more=(), sets=()):
    """uroce-perf on both sides. All processes are stopped at the end."""
    path = paths.Memif(host)
    prefix = f"uroce-bench-vl-{os.getpid()}"
    mtu = [f"transport.path_mtu={PMTU}"]
    path.prepare()
    processes, telemetry = [], None
    args = ["--peer", path.address(1), "--op", "write", "--size", str(SIZE), "--qps", str(QPS * len(sls)),
            "--depth", str(DEPTH), "--transport-mode", "gbn", "--timeout", "22", "--sl", ",".join(map(str, sls)),
            *(more or ["--duration", "1000"])]
    try:
        processes.append(perf.start(host, path, "client", 0, args, False,
                                    [*mtu, f"port.rate_gbps={rate_gbps}", f"eal.file_prefix={prefix}", *sets]))
        perf.wait_for_socket(path, processes[0])
        processes.append(perf.start(host, path, "server", 1, ["--once"], False, mtu))
        telemetry = Telemetry(prefix, processes[0])
        started = Traffic(telemetry, processes)
        while started.packets(sls[0]) < 100:
            if not processes[0].alive():
                processes[0].wait(1)
            time.sleep(0.02)
        yield started
    finally:
        if telemetry:
            telemetry.close()
        for process in processes:
            process.stop()


# ---- the report ----

class VlReport(Report):
    def __init__(self, machine):
        super().__init__("vl", TITLE, machine)
        self.sweeps = {}

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        print(f"bytes of VL 0 (weight H, high table) for one of VL 1 (weight L, low table); {RATE_GBPS} Gb/s, "
              f"PMTU {PMTU}")
        head = f"{'Q':>3} {'H':>3} {'L':>4} {'law':>9} {'measured':>9} {'off':>8} {'iba':>9} {'2Q':>5} {'off':>8}"
        print(head + "\n" + "-" * len(head))
        for row in self.rows:
            if row["kind"] == "row":
                print(f"{row['q']:3} {row['h']:3} {row['l']:4} {row['law']:9.4f} {row['measured']:9.4f} "
                      f"{row['off']:8.2%} {row['iba']:9.4f} {row['iba_rule']:5} {row['iba_off']:8.2%}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    def take(self, q, h, low, measured, by_rule):
        should = float(law(q, h, low))
        self.rows.append({
            "kind": "row", "q": q, "h": h, "l": low, "law": should, "measured": round(measured, 5),
            "off": abs(measured / should - 1), "iba": round(by_rule, 5), "iba_rule": iba(q),
            "iba_off": abs(by_rule / iba(q) - 1)})
        self.bar(f"({q}, {h}, {low}) measured, off the law", self.rows[-1]["off"], WITHIN, at_least=False)

    def take_sweep(self, q, h, measured, by_rule):
        self.sweeps[q, h] = (measured, by_rule)
        for low, ratio in measured.items():
            self.rows.append({"kind": "sweep", "q": q, "h": h, "l": low, "law": float(law(q, h, low)),
                              "measured": round(ratio, 5), "iba": round(by_rule[low], 5)
                              if low in by_rule else None})


# ---- the three properties ----

def teeth(q, h, lows):
    """The values of L in each tooth [n H/2Q, (n + 1) H/2Q), by n."""
    found = {}
    for low in lows:
        found.setdefault(2 * q * low // h, []).append(low)
    return found


def properties(report, q, h, ratios):
    """Uses only the measured sweep; the law only decides where teeth begin."""
    name = f"Q {q}, H {h}"
    period = fractions.Fraction(h, 2 * q).numerator
    by_tooth = teeth(q, h, ratios)
    back = [abs(ratios[low] / (2 * q) - 1) for low in ratios if low % period == 0]
    report.bar(f"{name}: off 2Q where L is a multiple of {period}", max(back), WITHIN, at_least=False)
    falls = [ratios[b] < ratios[a] for tooth in by_tooth.values() for a, b in zip(tooth, tooth[1:])]
    if falls:
        report.bar(f"{name}: steps inside a tooth that do not fall, of {len(falls)}", falls.count(False), 0,
                   at_least=False)
    from_first = [ratio for low, ratio in ratios.items() if 2 * q * low >= h]
    end = ratios[by_tooth[1][-1]]
    report.bar(f"{name}: end of the first tooth (L = {by_tooth[1][-1]}) above the least from there on",
               end / min(from_first) - 1, WITHIN, at_least=False)


def plot(sweeps):
    """Plots results/vl.svg: ratio against low weight, in the modes measured and iba."""
    out = ROOT / "results" / "vl.svg"
    out.parent.mkdir(exist_ok=True)
    top = max(ratio for measured, _ in sweeps.values() for ratio in measured.values())
    script = ["set terminal svg noenhanced size 1100,420 font 'sans,12' background 'white'", f"set output '{out}'",
              "set multiplot layout 1,2", "set grid", "set xlabel 'weight of the low lane, L'",
              "set ylabel 'bytes of the high lane for one of the low'", f"set yrange [0:{top * 1.15:g}]",
              "set key top right"]
    for part, title in ((0, "mode measured; lines: the law"), (1, "mode iba")):
        blocks, curves = [], []
        for i, ((q, h), parts) in enumerate(sweeps.items()):
            lows = sorted(parts[0])
            blocks += [f"$d{part}{i} << EOD", *(f"{x} {y:g}" for x, y in sorted(parts[part].items())), "EOD",
                       f"$l{part}{i} << EOD",
                       *(f"{x} {float(law(q, h, x) if part == 0 else iba(q)):g}" for x in lows), "EOD"]
            curves.append(f"$l{part}{i} using 1:2 with lines lc rgb {COLOURS[i]} notitle")
            curves.append(f"$d{part}{i} using 1:2 with points pt 7 ps 0.5 lc rgb {COLOURS[i]} "
                          f"title 'Q = {q}, H = {h}'")
        script += blocks + [f"set title '{title}'", "plot " + ", ".join(curves)]
    return out if gnuplot("\n".join(script + ["unset multiplot"])) else None


# ---- the parts ----

def shares(host, report, options, progress):
    cycles = 120 if options.quick else 300
    sweeps = QUICK_SWEEPS if options.quick else SWEEPS
    with traffic(host, RATE_GBPS, [0, 1]) as t:
        for q, h, low in ROWS:
            progress(1, 1, ("row", f"{q} {h} {low}"))
            report.take(q, h, low, t.ratio("measured", q, h, low, cycles), t.ratio("iba", q, h, low, cycles))
        for (q, h), most in sweeps.items():
            measured, by_rule = {}, {}
            for low in range(1, most + 1):
                progress(1, 1, ("sweep", f"{q} {h} {low}"))
                measured[low] = t.ratio("measured", q, h, low, cycles)
                if low % IBA_STEP == 1:
                    by_rule[low] = t.ratio("iba", q, h, low, cycles)
            report.take_sweep(q, h, measured, by_rule)
        off = [abs(row["measured"] / row["law"] - 1) for row in report.rows]
        report.bar(f"all {len(off)} points, off the law", max(off), WITHIN, at_least=False)
        for (q, h), (measured, _) in report.sweeps.items():
            properties(report, q, h, measured)
        off = [abs(ratio / iba(q) - 1) for (q, _), (_, by_rule) in report.sweeps.items()
               for ratio in by_rule.values()]
        report.bar("mode iba, off 2Q in the sweep", max(off), WITHIN, at_least=False)
        report.bar("looks at which a lane was not ready", t.hungry, 0, at_least=False)
        blind = t.look()["blind_visits"]
    report.bar("blind visits", blind, 0, at_least=False)


def strict(host, report, options, progress, port):
    """All queue pairs have the same amount to send. The low ones begin when the high ones are done."""
    seconds = 1.0 if options.quick else 2.0
    messages = int(seconds * RATE_GBPS * 1e9 / 8 / SIZE)  # of each lane
    progress(1, 1, ("strict",))
    with traffic(host, RATE_GBPS, [0, 1], more=["--iters", str(2 * messages)],
                 sets=["qos.vl_mode=strict", "qos.vl_high=0:16", "qos.vl_low=1:4"]) as t:
        found = t.windows(1.6 * seconds)
    # The window in which the high lane ends belongs to neither part.
    busy = [(high, low) for high, low in found if high > 0.5 * port][:-1]
    after = [low for high, low in found if high < 0.001 * port]
    share = sum(low for _, low in busy) / sum(high + low for high, low in busy)
    report.notes.append(f"strict: while the high lane is backlogged the low one has {share:.3%} of the port; "
                        "it is starved, as that mode means")
    report.rows.append({"kind": "strict", "low_share": share, "low_after_gbps": stats.median(after)})
    report.bar("strict: share of the low lane beside a backlogged high one", share, WITHIN, at_least=False)
    report.bar("strict: low lane after the high one is done / port", stats.median(after) / port, OF_THE_PORT)


def idle(host, report, options, progress):
    """Only the low lane sends, with and without an idle high lane. Returns the Gb/s of the former."""
    turns = 3 if options.quick else 8
    modes = ("iba", "measured", "strict")
    found = {}
    with traffic(host, RATE_GBPS, [1]) as t:
        for turn in range(turns):
            for mode in ("alone",) + modes:
                progress(turn + 1, turns, ("idle", mode))
                if mode == "alone":
                    t.telemetry.change(vl_mode="iba", vl_high="none", vl_low="0:64,1:64")
                else:
                    t.tables(mode, 16, 255, 1)
                time.sleep(SETTLE_S)
                found.setdefault(mode, []).extend(low for _, low in t.windows(0.3))
    port = stats.median(found["alone"])
    for mode in modes:
        value = stats.median(found[mode])
        report.rows.append({"kind": "idle", "mode": mode, "gbps": value, "port": port})
        report.bar(f"idle high lane, {mode}: low lane / port", value / port, OF_THE_PORT)
    return port


def rates(host, report, progress):
    for rate in RATES_GBPS:
        progress(1, 1, ("rate", str(rate)))
        with traffic(host, rate, [0]) as t:
            time.sleep(0.2)
            wire = stats.median([high for high, _ in t.windows(2.0)])
        report.rows.append({"kind": "rate", "rate_gbps": rate, "gbps": wire})
        report.notes.append(f"rate_gbps = {rate}: {wire:.4f} Gb/s on the wire")
        report.bar(f"rate_gbps = {rate}, off", abs(wire / rate - 1), WITHIN, at_least=False)


def run(host, machine, options, progress):
    report = VlReport(machine)
    shares(host, report, options, progress)
    port = idle(host, report, options, progress)
    strict(host, report, options, progress, port)
    rates(host, report, progress)
    picture = plot(report.sweeps)
    if picture:
        report.notes.append(f"plot: {picture}")
    return report
