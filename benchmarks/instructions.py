# SPDX-License-Identifier: BSD-3-Clause
"""What a message costs in instructions: over both ends, by operation, size and mode, split by part of the work.

Counted by callgrind on benchmarks/raw/engine_loop: two engines in one process, without a port, a clock or threads. So
the figures are the same on every run, however busy the machine is. They differ a little between compilers, and between
CPUs for which the C library or ISA-L choose another routine.

Requests are posted in bursts, each of which is sent by one call of the engine, as in a round of a busy worker, or one by
one, as where an application waits for every message. The parts (lib/parts.py):

  post      into the send or receive queue, and the doorbell
  schedule  the EMUX, lanes, timers
  build     requester and headers
  copy      payload, into the frame and out of it
  ICRC      of either end
  decode    headers
  execute   input and responder
  answer    ACKs and responses: making them, taking them
  complete  completions: pushing them, polling
  driver    the loop that takes the place of application and port; not part of a message's cost
"""

import loss
from lib import engine
from lib.parts import PARTS
from lib.report import Report

TITLE = "Instructions of a message, both ends"
PROGRAMS = ["valgrind", "meson", "ninja"]
TARGETS = [engine.TARGET]
MODES = ("gbn", "reorder", "extended")
OPS = ("write", "send", "read")
SIZES = {64: 512, 4096: 256, 65536: 64}  # bytes: messages
BURST = 32
SMALL = 64
SMALL_BAR = 1400  # 64 B WRITEs in bursts
EXTENDED_BAR = 1.05
EXTENDED_GUARD = 1.17
SMALL_GUARD = 1750
# The share of uroce's own code when this table was last set; a change that makes a message dearer by more than SLACK
# fails. Lower it with every change that makes a message cheaper. Without copying and the ICRC, of which the C library
# and ISA-L have a routine for each kind of CPU.
SLACK = 1.03
FOREIGN = ("copy", "ICRC")
OWN = {
    ("write", 64, "gbn", 32): 1097,
    ("write", 64, "reorder", 32): 1103,
    ("write", 64, "extended", 32): 1193,
    ("write", 64, "gbn", 1): 3751,
    ("write", 64, "reorder", 1): 3787,
    ("write", 64, "extended", 1): 4084,
    ("write", 4096, "gbn", 32): 1120,
    ("write", 4096, "reorder", 32): 1128,
    ("write", 4096, "extended", 32): 1218,
    ("write", 65536, "gbn", 32): 21366,
    ("write", 65536, "reorder", 32): 21511,
    ("write", 65536, "extended", 32): 24572,
    ("send", 64, "gbn", 32): 1498,
    ("send", 64, "reorder", 32): 1507,
    ("send", 64, "extended", 32): 1637,
    ("send", 64, "gbn", 1): 3940,
    ("send", 64, "reorder", 1): 3976,
    ("send", 64, "extended", 1): 4292,
    ("send", 4096, "gbn", 32): 1523,
    ("send", 4096, "reorder", 32): 1533,
    ("send", 4096, "extended", 32): 1663,
    ("send", 65536, "gbn", 32): 21987,
    ("send", 65536, "reorder", 32): 22134,
    ("send", 65536, "extended", 32): 24691,
    ("read", 64, "gbn", 32): 2944,
    ("read", 64, "reorder", 32): 2964,
    ("read", 64, "extended", 32): 3277,
    ("read", 64, "gbn", 1): 4642,
    ("read", 64, "reorder", 1): 4678,
    ("read", 64, "extended", 1): 5403,
    ("read", 4096, "gbn", 32): 2949,
    ("read", 4096, "reorder", 32): 2968,
    ("read", 4096, "extended", 32): 3282,
    ("read", 65536, "gbn", 32): 22193,
    ("read", 65536, "reorder", 32): 22484,
    ("read", 65536, "extended", 32): 24915,
}


class InstructionsReport(Report):
    """A line for each load, a column for each part."""

    def __init__(self, machine):
        super().__init__("instructions", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = f"{'load':32}{'all':>8}" + "".join(f"{part:>9}" for part in PARTS)
        print(head + "\n" + "-" * len(head))
        last = None
        for row in self.rows:
            if last not in (None, row["op"]):
                print()
            last = row["op"]
            print(f"{row['what']:32}{row['all']:>8.0f}" +
                  "".join(f"{row['parts'].get(part, 0):>9.0f}" for part in PARTS))
        print("all: without the driver's share\n")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def name_of(op, size, mode, burst):
    size = f"{size >> 10} KB" if size >= 1024 else f"{size} B"
    return f"{op.upper():5} {size:>5} {mode:8} {'one by one' if burst == 1 else f'in {burst}s'}"


def loads(quick):
    """(operation, size, mode, burst)"""
    for op in OPS:
        for size in SIZES:
            if quick and op != "write" and size != SMALL:
                continue
            for burst in ((BURST, 1) if size == SMALL else (BURST,)):
                for mode in MODES:
                    yield op, size, mode, burst


def measure(host, report, quick, progress):
    """{load: instructions per message}, and the share of uroce's own code; adds a row for each."""
    totals, own = {}, {}
    todo = list(loads(quick))
    for i, load in enumerate(todo):
        op, size, mode, burst = load
        progress(i + 1, len(todo), (op, str(size), mode, str(burst)))
        parts = engine.by_part(host, op, size, SIZES[size], mode, burst)
        totals[load] = sum(parts.values()) - parts.get("driver", 0)
        own[load] = totals[load] - sum(parts.get(part, 0) for part in FOREIGN)
        report.rows.append({"what": name_of(*load), "unit": "instructions", "op": op, "size": size, "mode": mode,
                            "burst": burst, "all": round(totals[load], 1),
                            "parts": {part: round(cost, 1) for part, cost in parts.items()}})
    return totals, own


def bars(report, totals, own):
    for mode in MODES:
        load = ("write", SMALL, mode, BURST)
        report.bar(f"{name_of(*load)}: instructions", totals[load], SMALL_BAR, at_least=False,
                   guard=SMALL_GUARD)
    for load, total in totals.items():
        op, size, mode, burst = load
        if mode == "extended":
            report.bar(f"{name_of(*load)} / gbn", total / totals[op, size, "gbn", burst], EXTENDED_BAR,
                       at_least=False, guard=EXTENDED_GUARD)
    dearer = {load: cost / OWN[load] for load, cost in own.items() if cost > OWN[load] * SLACK}
    for load, ratio in dearer.items():
        report.notes.append(f"{name_of(*load)}, without copying and ICRC: {ratio:.3f} of what it was")
    report.bar("loads that cost more than they did", len(dearer), 0, at_least=False)


def run(host, machine, options, progress):
    report = InstructionsReport(machine)
    bars(report, *measure(host, report, options.quick, progress))
    ops = ("write",) if options.quick else loss.OPS
    loss.instruction_bars(report, loss.instructions(host, {"ops": ops}, progress))
    return report
