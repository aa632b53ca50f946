# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a scheduling turn, of a wake-up and of a doorbell, with 10 to 100 000 send queues.

Counted by callgrind, not timed, so that the figures are the same on every run. In a wake-up, a gate opens for
one of the queues that wait there. In a turn, the arbiter selects a lane, and the next queue of the lane sends a
packet.
"""

import json
import subprocess

from lib import engine
from lib.host import ROOT, Failure
from lib.report import Report, gnuplot

TITLE = "Scheduling: instructions, whatever the number of send queues"
PROGRAMS = ["valgrind", "gnuplot", "meson", "ninja"]
TARGET = "benchmarks/raw/sched_loop"
TARGETS = [TARGET]
OPS = {"turn": "turn of a ready queue", "wake": "wake-up at a gate", "doorbell": "doorbell"}
QUEUES = (10, 100, 1000, 10000, 100000)
COUNT = 10000
FLAT_BAR = 1.05


def instructions(host, op, queues, count):
    out = host.tmp / "callgrind.out"
    argv = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=measured",
            f"--callgrind-out-file={out}", str(host.binary(TARGET)), op, str(queues), str(count)]
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip().splitlines()
        raise Failure(f"`{' '.join(argv)}` fails: {' | '.join(words[-3:])}")
    facts = json.loads(done.stdout.strip().splitlines()[-1])
    if (facts["ready"], facts["waiting"]) != (queues, queues):
        raise Failure(f"sched_loop {op}: {facts['ready']} queues are ready at the end, not {queues}")
    if {"turn": facts["turns"], "wake": facts["woken"]}.get(op, count) != count:
        raise Failure(f"sched_loop {op}: {facts} instead of {count} times")
    own, _ = engine.parse_callgrind(out.read_text())
    if not own:
        raise Failure("callgrind did not see sched_loop's measured()")
    return sum(own.values()) / count


class SchedulerReport(Report):
    """A column for each number of queues."""

    def __init__(self, machine):
        super().__init__("scheduler", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = f"{'instructions':24}" + "".join(f"{n:>10}" for n in QUEUES) + f"{'most/least':>12}"
        print(head + "\n" + "-" * len(head))
        for row in self.rows:
            print(f"{row['what']:24}" + "".join(f"{v:>10.1f}" for v in row["instructions"].values()) +
                  f"{row['ratio']:>12.3f}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    def plot(self):
        out = ROOT / "results" / "scheduler.svg"
        out.parent.mkdir(exist_ok=True)
        most = max(max(row["instructions"].values()) for row in self.rows)
        script = ["set terminal svg noenhanced size 620,380 font 'sans,12' background 'white'",
                  f"set output '{out}'", f"set title \"{self.title}\"", "set logscale x",
                  f"set xrange [{QUEUES[0] / 2}:{QUEUES[-1] * 2}]", f"set yrange [0:{most * 1.3}]",
                  "set grid", "set xlabel 'send queues that are ready'",
                  "set ylabel 'instructions each time'", "set key top left"]
        parts = []
        for i, row in enumerate(self.rows):
            points = [f"{n} {v}" for n, v in row["instructions"].items()]
            script += [f"$d{i} << EOD", *points, "EOD"]
            parts.append(f"$d{i} using 1:2 with linespoints pt 7 title \"{row['what']}\"")
        return out if gnuplot("\n".join(script + ["plot " + ", ".join(parts)])) else None


def run(host, machine, options, progress):
    report = SchedulerReport(machine)
    count = COUNT // 10 if options.quick else COUNT
    for op, what in OPS.items():
        cells = {}
        for i, queues in enumerate(QUEUES):
            progress(i + 1, len(QUEUES), (op, str(queues)))
            cells[queues] = round(instructions(host, op, queues, count), 2)
        ratio = max(cells.values()) / min(cells.values())
        report.rows.append({"what": what, "unit": "instructions", "instructions": cells,
                            "ratio": round(ratio, 4)})
        report.bar(f"{what}: instructions, most to least", ratio, FLAT_BAR, at_least=False)
    drawn = report.plot()
    if drawn:
        report.notes.append(f"plot: {drawn}")
    return report
