# SPDX-License-Identifier: BSD-3-Clause
"""What a message costs in instructions: over both ends, by operation, size and mode, split by part of the work.

Counted by callgrind on benchmarks/raw/engine_loop: two engines in one process, without a port, a clock or threads. So
the figures are the same on every run, however busy the machine is. They differ a little between compilers, and between
CPUs for which the C library or ISA-L choose another routine.

Requests are posted in bursts, each of which is sent by one call of the engine, as in a round of a busy worker, or one by
one, as where an application waits for every message. With many queue pairs, a burst has one message of each of the next
queue pairs: each message has an ACK of its own, and finds the state of its queue pair out of the fastest cache. How many
lines of it were not there, at both ends, is counted with a cache of 48 KB (lib/engine.py). The parts (lib/parts.py):

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
MANY, MANY_MESSAGES = 1024, 2048  # queue pairs, one message outstanding each
SMALL_BAR = 1400  # 64 B WRITEs and SENDs in bursts
EXTENDED_BAR = 1.05
# 1.049 is the worst ratio, of SENDs in bursts; other compilers differ. What either costs is guarded by OWN, within 3 %.
EXTENDED_GUARD = 1.06
# The share of uroce's own code when this table was last set; a change that makes a message dearer by more than SLACK
# fails. Lower it with every change that makes a message cheaper. Without copying and the ICRC, of which the C library
# and ISA-L have a routine for each kind of CPU.
SLACK = 1.03
FOREIGN = ("copy", "ICRC")
OWN = {
    ("write", 64, "gbn", 32, 1): 739,
    ("write", 64, "reorder", 32, 1): 741,
    ("write", 64, "extended", 32, 1): 759,
    ("write", 64, "gbn", 1, 1): 2159,
    ("write", 64, "reorder", 1, 1): 2180,
    ("write", 64, "extended", 1, 1): 2228,
    ("write", 64, "gbn", 32, 1024): 1646,
    ("write", 64, "reorder", 32, 1024): 1667,
    ("write", 64, "extended", 32, 1024): 1752,
    ("write", 4096, "gbn", 32, 1): 787,
    ("write", 4096, "reorder", 32, 1): 791,
    ("write", 4096, "extended", 32, 1): 807,
    ("write", 65536, "gbn", 32, 1): 11747,
    ("write", 65536, "reorder", 32, 1): 11817,
    ("write", 65536, "extended", 32, 1): 12196,
    ("send", 64, "gbn", 32, 1): 858,
    ("send", 64, "reorder", 32, 1): 860,
    ("send", 64, "extended", 32, 1): 901,
    ("send", 64, "gbn", 1, 1): 2302,
    ("send", 64, "reorder", 1, 1): 2323,
    ("send", 64, "extended", 1, 1): 2397,
    ("send", 4096, "gbn", 32, 1): 909,
    ("send", 4096, "reorder", 32, 1): 913,
    ("send", 4096, "extended", 32, 1): 958,
    ("send", 65536, "gbn", 32, 1): 12039,
    ("send", 65536, "reorder", 32, 1): 12109,
    ("send", 65536, "extended", 32, 1): 12708,
    ("read", 64, "gbn", 32, 1): 1670,
    ("read", 64, "reorder", 32, 1): 1688,
    ("read", 64, "extended", 32, 1): 1711,
    ("read", 64, "gbn", 1, 1): 2660,
    ("read", 64, "reorder", 1, 1): 2679,
    ("read", 64, "extended", 1, 1): 2740,
    ("read", 4096, "gbn", 32, 1): 1688,
    ("read", 4096, "reorder", 32, 1): 1707,
    ("read", 4096, "extended", 32, 1): 1730,
    ("read", 65536, "gbn", 32, 1): 14500,
    ("read", 65536, "reorder", 32, 1): 14890,
    ("read", 65536, "extended", 32, 1): 15986,
}
# Cache lines that a WRITE fetches with many queue pairs, when this was last set, and what may be added.
LINES = {"gbn": 22.0, "reorder": 24.3, "extended": 24.0}
LINES_SLACK = 1.05


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


def name_of(op, size, mode, burst, qps):
    size = f"{size >> 10} KB" if size >= 1024 else f"{size} B"
    way = "one by one" if burst == 1 else f"in {burst}s" if qps == 1 else f"{qps} QPs"
    return f"{op.upper():5} {size:>5} {mode:8} {way}"


def loads(quick):
    """(operation, size, mode, burst, queue pairs)"""
    for op in OPS:
        for size in SIZES:
            if quick and op != "write" and size != SMALL:
                continue
            ways = ((BURST, 1), (1, 1)) if size == SMALL else ((BURST, 1),)
            if size == SMALL and op == "write":
                ways += ((BURST, MANY),)
            for burst, qps in ways:
                for mode in MODES:
                    yield op, size, mode, burst, qps


def measure(host, report, quick, progress):
    """{load: instructions per message}, and the share of uroce's own code; adds a row for each."""
    totals, own = {}, {}
    todo = list(loads(quick))
    for i, load in enumerate(todo):
        op, size, mode, burst, qps = load
        progress(i + 1, len(todo), (op, str(size), mode, str(burst), str(qps)))
        parts = engine.by_part(host, op, size, MANY_MESSAGES if qps > 1 else SIZES[size], mode, burst, qps)
        totals[load] = sum(parts.values()) - parts.get("driver", 0)
        own[load] = totals[load] - sum(parts.get(part, 0) for part in FOREIGN)
        report.rows.append({"what": name_of(*load), "unit": "instructions", "op": op, "size": size, "mode": mode,
                            "burst": burst, "qps": qps, "all": round(totals[load], 1),
                            "parts": {part: round(cost, 1) for part, cost in parts.items()}})
    return totals, own


def fetched(host, report, progress):
    """{mode: cache lines that a WRITE fetches, with many queue pairs}"""
    lines = {}
    for i, mode in enumerate(MODES):
        progress(i + 1, len(MODES), ("cache lines", mode))
        lines[mode] = engine.lines_fetched(host, "write", SMALL, MANY_MESSAGES, mode, BURST, MANY)
    report.notes.append(f"cache lines that a message fetches, {MANY} queue pairs, both ends: " +
                        ", ".join(f"{mode} {n:.1f}" for mode, n in lines.items()))
    return lines


def bars(report, totals, own, lines):
    for op in ("write", "send"):
        for mode in MODES:
            load = (op, SMALL, mode, BURST, 1)
            report.bar(f"{name_of(*load)}: instructions", totals[load], SMALL_BAR, at_least=False)
    for load, total in totals.items():
        op, size, mode, burst, qps = load
        if mode == "extended":
            report.bar(f"{name_of(*load)} / gbn", total / totals[op, size, "gbn", burst, qps], EXTENDED_BAR,
                       at_least=False, guard=EXTENDED_GUARD)
    dearer = {load: cost / OWN[load] for load, cost in own.items() if cost > OWN[load] * SLACK}
    for load, ratio in dearer.items():
        report.notes.append(f"{name_of(*load)}, without copying and ICRC: {ratio:.3f} of what it was")
    report.bar("loads that cost more than they did", len(dearer), 0, at_least=False)
    more = [mode for mode, n in lines.items() if n > LINES[mode] * LINES_SLACK]
    report.bar(f"modes that fetch more cache lines than they did, {MANY} queue pairs", len(more), 0, at_least=False)


def run(host, machine, options, progress):
    report = InstructionsReport(machine)
    bars(report, *measure(host, report, options.quick, progress), fetched(host, report, progress))
    ops = ("write",) if options.quick else loss.OPS
    loss.instruction_bars(report, loss.instructions(host, {"ops": ops}, progress))
    return report
