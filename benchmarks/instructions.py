# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet in each mode, and calls of functions that a clean link never needs, by callgrind.

A part of `benchmarks/run loss` that uses no port and no clock, so that it is the same on every run.
"""

import loss
from lib import engine
from lib.report import Report

TITLE = "Instructions a packet on a clean link"
PROGRAMS = ["valgrind", "meson", "ninja"]
TARGETS = [engine.TARGET]


class InstructionsReport(Report):
    """A report of notes and bars, without a table."""

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
