# SPDX-License-Identifier: BSD-3-Clause
"""Networks of hundreds of engines in ns-3 (docs/design/ns3.md): the CMDPD paper's experiments, with its pairs of init0 and init1;
AUTO beside all other kinds of congestion control in more patterns; loss, dead links and spraying; large networks. All in
virtual time: load of this machine makes no difference. docs/results/fabric.md has the figures and what they mean.

Every run is kept (lib/cells.py). With --resume those of earlier times are taken, and with --budget none begins after so many
seconds; the report is of what there is, and says what is missing.
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
        self.tables = []  # (title, columns, rows of text)
        self.extra["tables"] = {}

    def table(self, name, title, columns, rows):
        """`name`: what benchmarks/tables.py calls it."""
        if not rows:
            return
        self.tables.append((title, columns, rows))
        self.extra["tables"][name] = {"columns": columns, "rows": rows}

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


def run(host, machine, options, progress):
    report = FabricReport(machine)
    cells = Cells(host.binary(PROGRAM), options.resume, options.budget, say=host.say)
    size = "small" if options.quick else "full"
    seeds = range(1, 1 + (options.turns_given or (3 if options.quick else 1)))
    plan = [(part.NAME, words, part.check) for part in PARTS for words in part.plan(size, seeds)]
    run_all(cells, plan, options.jobs or os.cpu_count(), progress)
    for part in PARTS:
        part.report(report, cells, size, seeds)
    fabric_size.compare(report, host, 2 if options.quick else 5)
    done = [found for found in (cells.known(words) for _, words, _ in plan) if found]
    report.extra["made_of"] = (
        f"{len(done)} of {len(plan)} runs, by the engine (tree of lib/) {', '.join(sorted({f['engine'] for f in done}))}; "
        f"{len(seeds)} seeds; {sum(f['cpu_seconds'] for f in done):.0f} s of processor time")
    report.notes.append(report.extra["made_of"])
    if fabric_plots.plot(cells, size, seeds[0]):
        report.notes.append("plots: results/fabric-*.svg")
    return report
