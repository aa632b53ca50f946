# SPDX-License-Identifier: BSD-3-Clause
"""Instructions a packet in each mode, and calls of what a clean link never needs, by callgrind.

A part of `benchmarks/run loss`, alone: no port, no clock, the same on every run.
"""

import loss
from lib import engine
from lib.report import Report

TITLE = "Instructions a packet on a clean link"
PROGRAMS = ["valgrind", "meson", "ninja"]
TARGETS = [engine.TARGET]


class InstructionsReport(Report):
    """Notes and bars; there is no table."""

    def __init__(self, machine):
        super().__init__("instructions", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def run(host, machine, options, progress):
    report = InstructionsReport(machine)
    ops = ("write",) if options.quick else loss.OPS
    loss.instruction_bars(report, loss.instructions(host, {"ops": ops}, progress))
    return report
