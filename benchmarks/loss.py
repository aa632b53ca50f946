# SPDX-License-Identifier: BSD-3-Clause
"""Goodput with loss and reordering, compared with no loss.

On real ports, [impair] drops packets on arrival at both ends; nftables drops TCP's frames in the same places.
Extended mode is measured in every turn, the other modes only in the first. Every cell has its own bar, and
no measurement is repeated. In addition there are figures of the simulator and instruction counts by callgrind,
both of which do not depend on the load of the machine.
"""

import json
import subprocess

from lib import curves, engine, iperf, lossy, paths, stats
from lib.host import Failure
from lib.report import Report

TITLE = "Goodput through loss, Gb/s of payload, one queue pair"
PROGRAMS = ["ethtool", "iperf3", "gnuplot", "ip", "nft", "valgrind", "meson", "ninja"]
SIM = "tests/sim/sim_loss"
TARGETS = ["app/perf/uroce-perf", engine.TARGET, SIM]
OPS = ("write", "send", "read")
MODES = ("gbn", "reorder", "extended")
TURNS, SECONDS = 3, 1.0
LATENCY_BYTES = 4096
KB64, MB1 = 65536, 1 << 20

BURSTS = (1, True)  # 1 % in bursts
MOST, FEW = ((0.1, False), (1, False), (5, False)), ((1, False),)
ALL = ((0.01, False), *MOST, BURSTS)
# Operation, size, mode, impairments, and whether it is measured in every turn.
SERIES = (("write", KB64, "extended", ALL, True), ("send", KB64, "extended", MOST, True),
          ("read", KB64, "extended", MOST, True), ("write", MB1, "extended", FEW, True),
          ("read", MB1, "extended", FEW, True), ("write", KB64, "reorder", MOST, True),
          ("read", KB64, "reorder", MOST, False), ("write", KB64, "gbn", MOST, False),
          ("read", KB64, "gbn", FEW, False))
QUICK = (("write", KB64, "extended", ((1, False), BURSTS), True), ("read", KB64, "extended", FEW, True),
         ("write", KB64, "reorder", FEW, True), ("write", KB64, "gbn", FEW, True))
# Few messages outstanding on each of one and of many queue pairs: queue pairs, depth, mode, WRITEs of 64 KB at 1 %. The bars are for
# extended mode only.
CROWDS = ((1000, 1, "extended"), (1, 2, "extended"), (1000, 2, "extended"), (1, 2, "reorder"), (1, 2, "gbn"))
COLUMNS = ((0, False), *ALL)
TCP_LOSSES = (0, 0.1, 1, 5)

BARS = {0.01: 0.99, 0.1: 0.95, 1: 0.95, 5: 0.80}  # extended, as a share of the lossless goodput
SHALLOW_BAR = 0.85  # two messages outstanding, at 1 %, and no timeout
OP_BAR = 0.90
RESENT_BAR = 1.10
REORDER_MODE_BAR = 0.60  # at 1 %
SIM_BARS = {1: 0.95, 5: 0.80}
REORDERING_BAR = 0.95
CLEAN_BAR = 0.95
INSTRUCTIONS_BAR = 1.10


def impairment_name(impairment):
    loss, bursts = impairment
    return f"{loss:g} % bursts" if bursts else f"{loss:g} %"


class LossReport(Report):
    """A row for each path, operation, size and mode; a column for each impairment."""

    def __init__(self, machine):
        super().__init__("loss", TITLE, machine)
        self.table = []

    def line(self, path, what, samples):
        """Adds the samples of one path, operation, size and mode to the table and the JSON."""
        cells = {}
        for loss, bursts in COLUMNS:
            here = lossy.pick(samples, loss=loss, bursts=bursts)
            if here:
                ratios = lossy.relatives(here)
                cells[loss, bursts] = {
                    "gbps": round(stats.median([s["gbps"] for s in here]), 3),
                    "relative": round(stats.median(ratios), 4) if loss else 1.0,
                    "interval": stats.interval(ratios), "turns": [round(r, 4) for r in ratios],
                    "died": sum("died" in s for s in here),
                    "resent_per_lost": lossy.resent(here)}
        if not cells:
            return
        self.table.append((path, what, cells, lossy.resent([s for s in samples if s["loss"]])))
        self.rows += [{"path": path, "what": what, "loss_percent": loss, "bursts": bursts, **cell}
                      for (loss, bursts), cell in cells.items()]

    def print(self):
        print(f"\n{self.title}; beside it the ratio to no loss, least to most of the turns")
        self.print_machine()
        head = f"{'path':10} {'what':22}" + "".join(f"{impairment_name(i):>24}" for i in COLUMNS) + \
            "   resent/lost"
        print(head + "\n" + "-" * len(head))
        last = None
        for path, what, cells, again in self.table:
            if last is not None and path != last:
                print()
            last = path
            text = ""
            for column in COLUMNS:
                cell = cells.get(column)
                ratio = ""
                if cell and column[0]:
                    low, high = cell["interval"]
                    ratio = f"{cell['relative']:.3f} {low:.2f}-{high:.2f}"
                text += f"{cell['gbps']:8.2f} {ratio:15}" if cell else f"{'':24}"
            print(f"{path:10} {what:22}{text}   " + (f"{again:.2f}" if again is not None else ""))
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


# ---- real ports ----

def real_ports(host, ways, plan, progress):
    samples = []
    for turn in range(plan["turns"]):
        for way in ways if turn % 2 == 0 else reversed(ways):
            for op, size, mode, impairments, always in plan["series"]:
                if turn and not always:
                    continue
                progress(turn + 1, plan["turns"], (way.name, op, size_name(size), mode))
                samples += lossy.series(host, way, op, size, mode, impairments, plan["seconds"], turn)
    return samples


def crowds(host, way, plan, progress):
    """Samples of CROWDS, in every turn."""
    samples = []
    for turn in range(plan["turns"]):
        for qps, depth, mode in CROWDS:
            progress(turn + 1, plan["turns"], (way.name, f"{qps} x {depth}", mode))
            samples += lossy.series(host, way, "write", KB64, mode, FEW, plan["seconds"], turn, qps, depth)
    return samples


def pairs(host, ways, plan, progress):
    """Pairs of measurements in each turn: standard and extended mode without loss; reordering only; latency."""
    found = {"clean": {}, "reordering": [], "latency": {}}
    for turn in range(plan["turns"]):
        for way in ways:
            progress(turn + 1, plan["turns"], (way.name, "pairs"))
            order = ("gbn", "extended", "extended", "gbn")
            runs = [lossy.goodput(host, way, "write", KB64, mode, plan["seconds"],
                                  (lossy.keys(mode), lossy.keys(mode)))["gbps"] for mode in order]
            found["clean"].setdefault(way.name, []).append(
                (runs[1] + runs[2]) / (runs[0] + runs[3]) if runs[0] + runs[3] else 0.0)
            for mode in ("extended", "reorder"):
                found["reordering"].append(
                    lossy.reordering(host, way, mode, KB64, plan["seconds"], turn))
            clean, lost = (lossy.latency(host, way, "extended", LATENCY_BYTES, loss, plan["seconds"], turn)
                           for loss in (0, 1))
            found["latency"].setdefault(way.name, []).append((clean, lost))
    return found


def tcp(host, pair, plan, report):
    """Samples of one iperf3 stream with the same losses; none if the kernel cannot drop frames."""
    samples = []
    for turn in range(min(2, plan["turns"])):
        found = []
        for loss in TCP_LOSSES:
            if not pair.lossy(loss):
                report.notes.append("TCP: nft cannot drop frames at random here, so TCP is not measured")
                return []
            found.append({"path": "veth", "op": "tcp", "size": 0, "mode": "tcp", "loss": loss, "bursts": False,
                          "turn": turn, "gbps": iperf.one_stream(host, pair, plan["seconds"]),
                          "retransmitted": None, "lost": 0})
        for one in found:
            one["base"] = found[0]["gbps"]
        samples += found
    pair.lossy(0)
    report.notes.append("TCP: iperf3, one stream, without segmentation offload, so that one frame is lost at "
                        "a time; dropped by nftables at both ends")
    return samples


# ---- machine-independent ----

def simulator(host, quick):
    argv = [str(host.binary(SIM))] + (["--quick"] if quick else [])
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{argv[0]}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return json.loads(done.stdout)


def instructions(host, plan, progress):
    """{(operation, size): {mode: facts}}"""
    found = {}
    for op in plan["ops"]:
        for size in (4096, 65536):
            for mode in MODES:
                progress(1, 1, ("callgrind", op, str(size), mode))
                found.setdefault((op, size), {})[mode] = \
                    engine.instructions(host, op, size, 64 if size == 65536 else 256, mode)
    return found


# ---- results ----

def plan_of(options):
    if options.quick:
        return {"turns": options.turns_given or 1, "seconds": options.seconds_given or 0.4,
                "series": QUICK, "ops": ("write",)}
    return {"turns": options.turns_given or TURNS, "seconds": options.seconds_given or SECONDS,
            "series": SERIES, "ops": OPS}


def run(host, machine, options, progress):
    plan = plan_of(options)
    ways = [paths.Memif(host), paths.AfPacket(host)]
    report = LossReport(machine)
    counted = instructions(host, plan, progress)
    simulated = simulator(host, options.quick)
    samples = real_ports(host, ways, plan, progress)
    crowded = crowds(host, ways[0], plan, progress)
    found = pairs(host, ways, plan, progress)
    progress(1, 1, ("veth", "tcp"))
    fill(report, ways, plan, samples, tcp(host, ways[1].pair, plan, report))
    crowd_lines(report, ways[0], crowded)
    sim_lines(report, simulated)
    report.bar("runs that died", sum("died" in s for s in samples + crowded), 0, at_least=False)
    real_bars(report, ways, plan, samples)
    crowd_bars(report, ways[0], crowded)
    pair_bars(report, ways, found)
    sim_bars(report, simulated)
    instruction_bars(report, counted)
    report.extra = {"simulator": simulated, "samples": samples, "crowds": crowded,
                    "instructions": {f"{op} {size}": modes for (op, size), modes in counted.items()}}
    curves.plot(report.table, ways, simulated["rows"], [loss for loss, bursts in COLUMNS if not bursts])
    return report


def size_name(size):
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def fill(report, ways, plan, samples, stream):
    for way in ways:
        for op, size, mode, _, _ in plan["series"]:
            report.line(way.name, f"{op.upper():5} {size_name(size)} {mode}",
                        lossy.pick(samples, path=way.name, op=op, size=size, mode=mode))
    if stream:
        report.line("veth", "TCP", stream)
    report.notes.append(f"two lossless runs of one series differ by {lossy.noise(samples):.1%} (median)")
    report.notes.append(f"bursts: {lossy.BURST_PACKETS} packets on average; resent/lost: of the direction that "
                        "carries payload, all impairments of the line together")
    for text in sorted({f"{s['path']} {s['op']} {s['mode']} at {s['loss']:g} %: {s['died']}"
                        for s in samples if "died" in s}):
        report.notes.append(text)


def real_bars(report, ways, plan, samples):
    """Bars for each cell of extended mode: share of goodput; SEND and READ compared with WRITE; packets sent
    again."""
    for way in ways:
        for op, size, mode, impairments, _ in plan["series"]:
            here = lossy.pick(samples, path=way.name, op=op, size=size, mode=mode)
            if mode == "extended":
                cell_bars(report, way, f"{op.upper()} {size_name(size)}", here, impairments)
                if op != "write":
                    beside_write(report, way, op, size, lossy.pick(samples, path=way.name, size=size, mode=mode))
            elif (op, mode) == ("write", "reorder"):
                report.bar(f"{way.name} reorder WRITE at 1 % / no loss",
                           lossy.relatives(lossy.pick(here, loss=1)), REORDER_MODE_BAR)


def crowd_name(qps, depth, mode):
    return f"{qps} x {depth} WRITE 64 KB {mode}"


def crowd_lines(report, way, samples):
    for qps, depth, mode in CROWDS:
        report.line(way.name, crowd_name(qps, depth, mode), lossy.pick(samples, qps=qps, depth=depth, mode=mode))


def crowd_bars(report, way, samples):
    """Queue pairs x messages outstanding on each. One message at a time: the bar of every cell; two: their own, and no timeout."""
    for qps, depth, mode in CROWDS:
        here = lossy.pick(samples, qps=qps, depth=depth, mode=mode, loss=1)
        if mode != "extended":
            continue
        text = f"{way.name} {crowd_name(qps, depth, mode)} at 1 %"
        report.bar(f"{text} / no loss", lossy.relatives(here), BARS[1] if depth == 1 else SHALLOW_BAR)
        if depth > 1:
            report.bar(f"{text}, timeouts", lossy.timeouts(here), 0, at_least=False)
            report.bar(f"{text}, timeouts that no pause explains", lossy.unexplained_timeouts(here), 0, at_least=False)
            report.notes.append(f"{text}: the ends stood still for {sum(s['paused_ms'] for s in here)} ms, counted in whole "
                                "milliseconds of each pause")
        again = lossy.resent(here)
        if again is not None:
            report.bar(f"{text}, resent / lost", again, RESENT_BAR, at_least=False)


def cell_bars(report, way, what, here, impairments):
    for loss, bursts in impairments:
        cell = lossy.pick(here, loss=loss, bursts=bursts)
        text = f"{way.name} extended {what} at {impairment_name((loss, bursts))}"
        report.bar(f"{text} / no loss", lossy.relatives(cell), BARS[loss])
        again = lossy.resent(cell)
        if again is not None:
            report.bar(f"{text}, resent / lost", again, RESENT_BAR, at_least=False)


def beside_write(report, way, op, size, samples):
    for impairment in sorted({(s["loss"], s["bursts"]) for s in lossy.pick(samples, op=op)}):
        ratios = lossy.between(lossy.pick(samples, loss=impairment[0], bursts=impairment[1]), op, "write")
        if ratios:
            report.bar(f"{way.name} extended {op.upper()} / WRITE, {size_name(size)} at "
                       f"{impairment_name(impairment)}", ratios, OP_BAR)


def pair_bars(report, ways, found):
    for way in ways:
        report.bar(f"{way.name} extended / gbn without loss", found["clean"][way.name], CLEAN_BAR)
        for mode in ("extended", "reorder"):
            some = lossy.pick(found["reordering"], path=way.name, mode=mode)
            report.bar(f"{way.name} {mode}, 10 % overtaken by 64 packets / none", lossy.relatives(some),
                       REORDERING_BAR)
            report.notes.append(
                f"{way.name} {mode}, 10 % overtaken by 64 packets: sent again "
                f"{sum(s['retransmitted'] or 0 for s in some)} of {sum(s['held'] for s in some)} held back")
        quiet, lost = ({part: stats.median([pair[i][part] for pair in found["latency"][way.name]])
                        for part in ("p50", "p999")} for i in (0, 1))
        report.notes.append(
            f"{way.name} extended WRITE of 4 KB, half a round trip: p50 {quiet['p50']:.1f} us, p99.9 "
            f"{quiet['p999']:.1f} us; at 1 % p50 {lost['p50']:.1f} us, p99.9 {lost['p999']:.1f} us")
        report.bar(f"{way.name} 4 KB WRITE p99.9 at 1 % / max(10 p50, 2 p99.9) without loss",
                   [b["p999"] / max(10 * a["p50"], 2 * a["p999"]) for a, b in found["latency"][way.name]],
                   1.0, at_least=False)


def sim_lines(report, simulated):
    """Adds the rows of the simulator."""
    groups = {}
    for row in simulated["rows"]:
        groups.setdefault((row["mtu"], row["op"], row["mode"]), []).append(
            {"loss": row["loss_percent"], "bursts": row.get("bursts", False), "gbps": row["goodput_gbps"],
             "base": row["goodput_gbps"] / row["relative"] if row["relative"] else 1.0,
             "retransmitted": row["retransmitted"], "lost": row["lost"]})
    for (mtu, op, mode), rows in groups.items():
        report.line(f"sim {mtu}", f"{op.upper():5} 256 KB {mode}", rows)


def sim_bars(report, simulated):
    for row in simulated["rows"]:
        if row["loss_percent"] in SIM_BARS and row["mode"] == "extended":
            text = f"simulator extended {row['op'].upper()}, MTU {row['mtu']}, at {row['loss_percent']:g} %"
            report.bar(f"{text} / no loss", row["relative"], SIM_BARS[row["loss_percent"]])
            report.bar(f"{text}, resent / lost", row["retransmitted"] / max(row["lost"], 1), RESENT_BAR,
                       at_least=False)
    for row in simulated["reordering"]:
        text = (f"simulator {row['mode']} {row['op'].upper()}, MTU {row['mtu']}, "
                f"{row['reordered_percent']} % overtaken by up to {row['places']}")
        if row["mode"] == "extended":
            report.bar(f"{text} / none", row["relative"], REORDERING_BAR)
            report.bar(f"{text}, sent again", row["retransmitted"], 0, at_least=False)
        else:
            report.notes.append(f"{text}: {row['relative']:.3f} of without, {row['retransmitted']} "
                                "sent again")


def instruction_bars(report, counted):
    for (op, size), modes in counted.items():
        ratio = modes["extended"]["all"] / modes["gbn"]["all"]
        report.notes.append(
            f"instructions a packet, {op.upper()} {size_name(size)}: gbn {modes['gbn']['all']:.0f}, reorder "
            f"{modes['reorder']['all']:.0f}, extended {modes['extended']['all']:.0f}; without payload "
            f"{modes['gbn']['protocol']:.0f}, {modes['reorder']['protocol']:.0f}, "
            f"{modes['extended']['protocol']:.0f}")
        report.bar(f"instructions a packet, {op.upper()} {size_name(size)}, extended / gbn", ratio,
                   INSTRUCTIONS_BAR, at_least=False)
    slow = {}
    for modes in counted.values():
        for mode in ("reorder", "extended"):
            for name, calls in modes[mode]["slow"].items():
                slow[name] = slow.get(name, 0) + calls
    if slow:
        report.notes.append("called on a clean link: " + ", ".join(f"{n} {c}" for n, c in slow.items()))
    report.bar("calls of the slow path on a clean link", sum(slow.values()), 0, at_least=False)
    report.bar("contexts taken, packets sent again on a clean link",
               sum(m["trouble"] for modes in counted.values() for m in modes.values()), 0, at_least=False)
