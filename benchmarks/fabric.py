# SPDX-License-Identifier: BSD-3-Clause
"""Networks of hundreds of engines in ns-3 (docs/design/ns3.md): the CMDPD paper's experiments, with its pairs of init0 and init1;
AUTO beside all other kinds of congestion control in more patterns; loss, dead links and spraying; large networks. All in
virtual time: load of this machine makes no difference. docs/results/fabric.md has the figures and what they mean.

Every run is kept (lib/cells.py). With --resume those of earlier times are taken, and with --budget none begins after so many
seconds; the report is of what there is, and says what is missing. --part runs one of the parts.
"""

import concurrent.futures
import os
import pathlib

from lib import fabric_faults, fabric_paper, fabric_plots, fabric_rivals, fabric_size
from lib.cells import Cells
from lib.host import Failure
from lib.report import Report

TITLE = "Networks of hundreds of engines"
PROGRAMS = ["meson", "ninja", "gnuplot"]
PROGRAM = "sim/uroce-ns3"
TARGETS = [PROGRAM, "sim/ns3-tcp"]
# In the order in which they run: what decides most for its time comes first.
PARTS = (fabric_paper, fabric_rivals, fabric_faults, fabric_size)


class FabricReport(Report):
    def __init__(self, machine):
        super().__init__("fabric", TITLE, machine)
        self.part = ""  # whose tables and bars are added
        self.tables = []  # (title, columns, rows of text)
        self.extra = {"parts": {}, "tables": {}}  # parts: by name, of which runs each is

    def table(self, name, title, columns, rows):
        """`name`: what benchmarks/tables.py calls it. Without rows only the JSON has it."""
        if rows:
            self.tables.append((title, columns, rows))
        self.extra["tables"][name] = {"part": self.part, "columns": columns, "rows": rows}

    def bar(self, *args, **more):
        super().bar(*args, **more)
        self.bars[-1]["part"] = self.part

    def print(self):
        print(f"\n{self.title}")
        for title, columns, rows in self.tables:
            print(f"\n{title}")
            widths = [max(len(str(line[i])) for line in [columns, *rows]) for i in range(len(columns))]
            for line in [columns, *rows]:
                print("  ".join(str(text).ljust(width) if i < 3 else str(text).rjust(width)
                                for i, (text, width) in enumerate(zip(line, widths))).rstrip())
        print()
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def preflight():
    if not pathlib.Path("/usr/include/ns3/simulator.h").exists():
        raise Failure("ns-3 is missing: sudo apt-get install libns3-dev")


def run_all(cells, plan, jobs, progress):
    """Runs the plan, [(part, words, check)], in its order."""
    def one(item):
        return cells.run(item[1], item[2])

    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        waiting = [(item[0], pool.submit(one, item)) for item in plan]
        for i, (part, done) in enumerate(waiting):
            if done.result() is not None:
                progress(i + 1, len(plan), (part,))
    finally:
        cells.stopped.set()  # runs that have not begun
        pool.shutdown(wait=False, cancel_futures=True)


def parts_of(options):
    names = [part.NAME for part in PARTS]
    if unknown := set(options.part or []) - set(names):
        raise Failure(f"--part {unknown.pop()}: the parts of this benchmark are {', '.join(names)}")
    return [part for part in PARTS if part.NAME in (options.part or names)]


def made_of(cells, plan):
    """Which runs of the plan there are; empty if there is none."""
    done = [(words, found) for words, found in ((words, cells.known(words)) for _, words, _ in plan) if found]
    if not done:
        return ""
    seeds = len({words["seed"] for words, _ in done if "seed" in words})
    return (f"{len(done)} of {len(plan)} runs, by the engine (tree of lib/) {', '.join(sorted({f['engine'] for _, f in done}))}; "
            f"{f'up to {seeds} seeds' if seeds > 1 else 'one seed'}; {sum(f['cpu_seconds'] for _, f in done):.0f} s of processor time")


def run(host, machine, options, progress):
    parts = parts_of(options)
    report = FabricReport(machine)
    cells = Cells(host.binary(PROGRAM), options.resume, options.budget, say=host.say)
    size = "small" if options.quick else "full"
    seeds = range(1, 1 + (options.turns_given or (3 if options.quick else 1)))
    plan = [(part.NAME, words, part.check) for part in parts for words in part.plan(size, seeds)]
    run_all(cells, plan, options.jobs or os.cpu_count(), progress)
    for part in parts:
        report.part = part.NAME
        part.report(report, cells, size, seeds)
        if part is fabric_size:
            fabric_size.compare(report, host, 2 if options.quick else 5)
        text = made_of(cells, [item for item in plan if item[0] == part.NAME])
        if text:
            report.extra["parts"][part.NAME] = text
        report.notes.append(f"{part.NAME}: {text or 'none of its runs has been made'}")
    if fabric_paper in parts and fabric_plots.plot(cells, size, seeds[0]):
        report.notes.append("plots: results/fabric-*.svg")
    return report
