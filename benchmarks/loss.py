# SPDX-License-Identifier: BSD-3-Clause
"""Goodput through loss and reordering, against no loss.

Real ports lose packets by [impair], both ends what arrives there; TCP's frames are dropped by nftables in
the same places. What a bar asks of extended mode is measured in every turn, the full table in the first.
Beside it the simulator, whose figures no neighbour changes, and callgrind's count of instructions.
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
SIZES = (65536, 1 << 20)
OPS = ("write", "send", "read")
MODES = ("gbn", "reorder", "extended")
LOSSES = (0, 0.01, 0.1, 1, 5)  # percent, in each direction
TURNS, SECONDS = 4, 1.0
LATENCY_BYTES = 4096

CLOSE = 0.05  # what the turns put closer to its bar, or beyond, is measured again
PAIRS = 16
BARS = {0.01: 0.99, 0.1: 0.95, 1: 0.80, 5: 0.50}  # extended, of no loss
OP_BAR = 0.90
RESENT_BAR = 1.15
REORDER_MODE_BAR = 0.60  # at 1 %
SIM_BAR = 0.77  # at 1 %
REORDERING_BAR = 0.95
CLEAN_BAR = 0.95
INSTRUCTIONS_BAR = 1.10


class LossReport(Report):
    """A line for each path, operation, size and mode; a column for each loss."""

    def __init__(self, machine, losses):
        super().__init__("loss", TITLE, machine)
        self.losses = losses
        self.table = []

    def line(self, path, what, samples):
        """`samples` of one path, operation, size and mode. Kept for the table and the JSON."""
        cells = {}
        for loss in self.losses:
            here = lossy.pick(samples, loss=loss)
            if here:
                cells[loss] = {"gbps": round(stats.median([s["gbps"] for s in here]), 3),
                               "relative": round(lossy.relative(here), 4) if loss else 1.0,
                               "retransmitted": sum(s.get("retransmitted", 0) for s in here),
                               "lost": sum(s.get("lost", 0) + s.get("missed", 0) for s in here),
                               "turns": [round(s["gbps"] / s["base"], 4) for s in here]}
        self.table.append((path, what, cells))
        self.rows += [{"path": path, "what": what, "loss_percent": loss, **cell}
                      for loss, cell in cells.items()]

    def print(self):
        print(f"\n{self.title}; beside it the ratio to no loss")
        self.print_machine()
        head = f"{'path':10} {'what':22}" + "".join(f"{f'{loss:g} %':>15}" for loss in self.losses) + \
            "   resent/lost"
        print(head + "\n" + "-" * len(head))
        last = None
        for path, what, cells in self.table:
            if last is not None and path != last:
                print()
            last = path
            text = ""
            for loss in self.losses:
                cell = cells.get(loss)
                ratio = f"{cell['relative']:6.3f}" if cell and loss else ""
                text += f"{cell['gbps']:8.2f} {ratio:6}" if cell else f"{'':15}"
            lost = sum(c["lost"] for c in cells.values())
            again = sum(c["retransmitted"] for c in cells.values())
            print(f"{path:10} {what:22}{text}   " + (f"{again}/{lost} = {again / lost:.2f}" if lost else ""))
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


# ---- real ports ----

def modes_of(turn):
    return MODES if turn == 0 else MODES[-1:]


def real_ports(host, ways, plan, progress):
    samples = []
    for turn in range(plan["turns"]):
        for way in ways if turn % 2 == 0 else reversed(ways):
            for op in plan["ops"]:
                for mode in modes_of(turn):
                    progress(turn + 1, plan["turns"], (way.name, op, mode))
                    samples += lossy.series(host, way, op, plan["sizes"], mode, plan["losses"],
                                            plan["seconds"], turn)
            if turn:
                progress(turn + 1, plan["turns"], (way.name, "write", "reorder"))
                samples += lossy.series(host, way, "write", plan["sizes"][:1], "reorder", (0, 1),
                                        plan["seconds"], turn)
    return samples


def pairs(host, ways, plan, progress):
    """Standard and extended mode without loss, reordering alone, latency: in pairs, turn by turn."""
    found = {"clean": {}, "reordering": [], "latency": {}}
    for turn in range(plan["turns"]):
        for way in ways:
            progress(turn + 1, plan["turns"], (way.name, "pairs"))
            order = ("gbn", "extended", "extended", "gbn")
            runs = [lossy.goodput(host, way, "write", plan["sizes"][:1], mode, plan["seconds"],
                                  lossy.both(mode, 0, 1))[0]["gbps"] for mode in order]
            if not all(runs):
                raise Failure(f"{way.name} does not work without loss")
            found["clean"].setdefault(way.name, []).append((runs[1] + runs[2]) / (runs[0] + runs[3]))
            for mode in ("extended", "reorder"):
                found["reordering"].append(
                    lossy.reordering(host, way, mode, plan["sizes"][0], plan["seconds"], turn))
            clean, lost = (lossy.latency(host, way, "extended", LATENCY_BYTES, loss, plan["seconds"], turn)
                           for loss in (0, 1))
            found["latency"].setdefault(way.name, []).append((clean, lost))
    return found


def questions(ways, plan, samples):
    """What the bars of extended mode ask of real ports: (path, text, size, run, base, bar, ratio of the
    turns), the runs as (operation, loss)."""
    for way in ways:
        here = lossy.pick(samples, path=way.name, mode="extended")
        for loss in plan["losses"][1:]:
            for size in plan["sizes"]:
                ratio = lossy.relative(lossy.pick(here, op="write", size=size, loss=loss))
                yield (way, f"WRITE {size_name(size)} at {loss:g} % / no loss", size, ("write", loss),
                       ("write", 0), BARS[loss], ratio)
        for op in plan["ops"][1:]:
            ratio, size, loss = min(
                (lossy.between(lossy.pick(here, size=size, loss=loss), op, "write"), size, loss)
                for loss in plan["losses"] for size in plan["sizes"])
            yield (way, f"{op.upper()} / WRITE, the worst, {size_name(size)} at {loss:g} %", size, (op, loss),
                   ("write", loss), OP_BAR, ratio)


def second_look(host, ways, plan, samples, progress):
    """[(text, ratio, bar)]. Of many ratios of a few turns the worst is worse than any is: what is close to
    its bar is measured again, and that counts."""
    answers = []
    for way, text, size, run, base, bar, ratio in questions(ways, plan, samples):
        if ratio < bar + CLOSE:
            progress(1, 1, (way.name, f"{PAIRS} pairs", text))
            again = lossy.pairs(host, way, size, "extended", run, base, plan["seconds"], PAIRS)
            text += f", of {PAIRS} pairs (turns: {ratio:.3f})"
            ratio = stats.median(again)
        answers.append((f"{way.name} extended {text}", ratio, bar))
    return answers


def tcp(host, pair, plan, report):
    """Samples of one iperf3 stream through the same losses; none where the kernel cannot drop."""
    samples = []
    for turn in range(min(2, plan["turns"])):
        found = []
        for loss in plan["losses"]:
            if not pair.lossy(loss):
                report.notes.append("TCP: nft cannot drop frames at random here, so TCP is not measured")
                return []
            found.append({"path": "veth", "op": "tcp", "size": 0, "mode": "tcp", "loss": loss, "turn": turn,
                          "gbps": iperf.one_stream(host, pair, plan["seconds"])})
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


# ---- what came out ----

def plan_of(options):
    if options.quick:
        return {"turns": options.turns_given or 1, "seconds": options.seconds_given or 0.4,
                "sizes": SIZES[:1], "ops": OPS, "losses": (0, 1, 5)}
    return {"turns": options.turns_given or TURNS, "seconds": options.seconds_given or SECONDS,
            "sizes": SIZES, "ops": OPS, "losses": LOSSES}


def run(host, machine, options, progress):
    plan = plan_of(options)
    ways = [paths.Memif(host), paths.AfPacket(host)]
    report = LossReport(machine, plan["losses"])
    counted = instructions(host, plan, progress)
    simulated = simulator(host, options.quick)
    samples = real_ports(host, ways, plan, progress)
    found = pairs(host, ways, plan, progress)
    looked = second_look(host, ways, plan, samples, progress)
    progress(1, 1, ("veth", "tcp"))
    fill(report, ways, plan, samples, tcp(host, ways[1].pair, plan, report))
    sim_lines(report, simulated)
    for text, ratio, bar in looked:
        report.bar(text, ratio, bar)
    real_bars(report, ways, plan, samples)
    pair_bars(report, ways, found)
    sim_bars(report, simulated)
    instruction_bars(report, counted)
    report.extra = {"simulator": simulated, "samples": samples,
                    "instructions": {f"{op} {size}": modes for (op, size), modes in counted.items()}}
    curves.plot(report.table, ways, simulated["rows"], plan["losses"])
    return report


def size_name(size):
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def fill(report, ways, plan, samples, stream):
    for way in ways:
        for op in plan["ops"]:
            for size in plan["sizes"]:
                for mode in MODES:
                    report.line(way.name, f"{op.upper():5} {size_name(size)} {mode}",
                                lossy.pick(samples, path=way.name, op=op, size=size, mode=mode))
    if stream:
        report.line("veth", "TCP", stream)
    report.notes.append(f"two lossless runs of one series differ by {lossy.noise(samples):.1%} (median)")
    for text in sorted({f"{s['path']} {s['op']} {s['mode']} at {s['loss']:g} %: {s['died']}"
                        for s in samples if "died" in s}):
        report.notes.append(text)


def real_bars(report, ways, plan, samples):
    for way in ways:
        here = lossy.pick(samples, path=way.name, mode="extended")
        for op in plan["ops"]:
            report.bar(f"{way.name} extended {op.upper()}, resent / lost",
                       lossy.resent([s for s in lossy.pick(here, op=op) if s["loss"]]), RESENT_BAR,
                       at_least=False)
        standard = lossy.pick(samples, path=way.name, mode="reorder", op="write", loss=1,
                              size=plan["sizes"][0])
        report.bar(f"{way.name} reorder WRITE at 1 % / no loss", lossy.relative(standard),
                   REORDER_MODE_BAR)


def pair_bars(report, ways, found):
    for way in ways:
        report.bar(f"{way.name} extended / gbn without loss", stats.median(found["clean"][way.name]),
                   CLEAN_BAR)
        here = lossy.pick(found["reordering"], path=way.name)
        for mode in ("extended", "reorder"):
            some = lossy.pick(here, mode=mode)
            report.notes.append(
                f"{way.name} {mode}, 10 % overtaken by 64 packets, no loss: {lossy.relative(some):.3f} of "
                f"without; sent again {sum(s['retransmitted'] for s in some)} of "
                f"{sum(s['held'] for s in some)} packets held back")
        quiet, lost = ({part: stats.median([pair[i][part] for pair in found["latency"][way.name]])
                        for part in ("p50", "p999")} for i in (0, 1))
        report.notes.append(
            f"{way.name} extended WRITE of 4 KB, half a round trip: p50 {quiet['p50']:.1f} us, p99.9 "
            f"{quiet['p999']:.1f} us; at 1 % p50 {lost['p50']:.1f} us, p99.9 {lost['p999']:.1f} us")
        report.bar(f"{way.name} 4 KB WRITE p99.9 at 1 % / max(10 p50, 2 p99.9) without loss",
                   stats.median([b["p999"] / max(10 * a["p50"], 2 * a["p999"])
                                 for a, b in found["latency"][way.name]]), 1.0, at_least=False)


def sim_lines(report, simulated):
    """The simulator's rows among the others."""
    groups = {}
    for row in simulated["rows"]:
        groups.setdefault((row["mtu"], row["op"], row["mode"]), []).append(
            {"loss": row["loss_percent"], "gbps": row["goodput_gbps"],
             "base": row["goodput_gbps"] / row["relative"] if row["relative"] else 1.0,
             "retransmitted": row["retransmitted"], "lost": row["lost"]})
    for (mtu, op, mode), rows in groups.items():
        report.line(f"sim {mtu}", f"{op.upper():5} 256 KB {mode}", rows)


def sim_bars(report, simulated):
    for row in simulated["rows"]:
        if row["loss_percent"] == 1 and row["mode"] == "extended":
            report.bar(f"simulator extended {row['op'].upper()}, MTU {row['mtu']}, at 1 % / no loss",
                       row["relative"], SIM_BAR)
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
