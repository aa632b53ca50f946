# SPDX-License-Identifier: BSD-3-Clause
"""Bytes per queue pair and per structure, compared with a conventional design.

Hot state is measured: a trace of all memory accesses shows which bytes of a queue pair's structure messages in
order read or write, from post to completion. Sending and receiving are counted separately, because state for
receiving is needed at any time, state for sending only while the queue pair is scheduled. There is a bar for the
larger of the two, over WRITEs, SENDs and READs, and one for the union of both sides of an operation, which a
queue pair needs that both sends and receives. What an operation touches of objects that queue pairs share is a fact
beside the bars.
"""

import json
import re
import subprocess

from lib import engine
from lib.host import Failure
from lib.report import Report

TITLE = "Memory: 10 000 queue pairs"
PROGRAMS = ["valgrind", "meson", "ninja"]
TARGETS = [engine.TARGET, "benchmarks/raw/memory", "app/perf/uroce-perf"]
QPS = 10000
MODES = ("gbn", "reorder", "extended")
OPS = ("write", "send", "read")
SIZES = (64, 16384)
MESSAGES = 24
HOT_BAR = 320
UNION_BAR = 440

# State of a conventional design on the adapter for 10 000 queue pairs (bytes): a context of 210 B and
# 8 WQEs each, five bitmaps of 500 bits, a reorder buffer of one BDP (0.5 MB), and a table of 500
# outstanding requests of 24 B.
CONVENTIONAL = {
    "context": 2.0e6,
    "send WQE cache": 4.9e6,
    "receive WQE cache": 4.9e6,
    "bitmaps": 3.0e6,
    "reorder buffer": 4.9e9,
    "outstanding requests": 114e6,
}


def facts_of(host, mode):
    argv = [str(host.binary("benchmarks/raw/memory")), str(QPS), mode]
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` fails: {done.stderr.strip()}")
    return json.loads(done.stdout)


def hot_of(host, mode, sizes, progress):
    """{(operation, side): offsets}, the union over all sizes; and {(side, object): offsets} of what is shared, the
    union over all operations as well."""
    found, common = {}, {}
    for op in OPS:
        for size in sizes:
            progress(1, 1, ("trace", mode, op, str(size)))
            sides, shared = engine.touched(host, op, size, MESSAGES, mode)
            for side, offsets in sides.items():
                found.setdefault((op, side), set()).update(offsets)
            for what, offsets in shared.items():
                common.setdefault(what, set()).update(offsets)
    return found, common


class MemoryReport(Report):
    """A report with a table of structures instead of contenders."""

    def __init__(self, machine):
        super().__init__("memory", TITLE, machine)
        self.hot = []

    def print(self):
        print(f"\n{self.title}")
        head = f"{'structure':44} {'conventional':>14} {'uroce':>14}  how"
        print(head + "\n" + "-" * 110)
        for row in self.rows:
            print(f"{row['what']:44} {amount(row['conventional']):>14} {amount(row['uroce']):>14}  "
                  f"{row['how']}")
        print(f"\n{'hot state, bytes (cache lines)':34} " +
              " ".join(f"{mode:>14}" for mode in MODES))
        for what, cells in self.hot:
            print(f"{what:34} " + " ".join(f"{n:>8} {f'({k})':>5}" for n, k in cells))
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    def structure(self, what, uroce, how, conventional=None):
        self.rows.append({"what": what, "conventional": conventional, "uroce": uroce, "how": how})


def amount(value):
    if value is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.1f} {unit}"
    return f"{value:.0f} B"


def structures(report, f, hot):
    """`f`: the facts of extended mode."""
    report.structure("context, hot", hot * QPS, f"{hot} B a QP, see below", CONVENTIONAL["context"])
    report.structure("context, all of it", f["qp"] * QPS,
                     f"{f['qp']} B a QP, attributes for query included")
    report.structure("send WQE cache", 0, "none: read in place when scheduled",
                     CONVENTIONAL["send WQE cache"])
    report.structure("receive WQE cache", 0, "none: read in place on demand",
                     CONVENTIONAL["receive WQE cache"])
    report.structure("bitmaps, all QPs in order", 0,
                     f"none; {f['ooo_context']} B (receiving) and {f['recovery_context']} B (sending) "
                     f"while a QP has a gap, {f['ooo_context_largest']} and {f['recovery_context_largest']} B while "
                     "it has a long one, within [transport] loss_memory_mb", CONVENTIONAL["bitmaps"])
    report.structure("reorder buffer, extended", 0, "none: placed in user memory on arrival",
                     CONVENTIONAL["reorder buffer"])
    report.structure("reorder buffer, standard headers", None,
                     f"bounded pool: {f['reorder_slot']} B a packet kept, {f['reorder_context']} B a QP "
                     f"with a gap, {f['read_gap_context']} B a QP with a gap in READ responses")
    report.structure("outstanding requests", 0, "none: the send queue is the table",
                     CONVENTIONAL["outstanding requests"])
    report.structure("MTT", 0, f"none: user addresses; {f['region']} B a memory region")
    report.structure("READs and atomics remembered", f["remembered_read"] * 16 * QPS,
                     f"{f['remembered_read']} B each, 16 a QP here")
    report.structure("send and receive queues", f["rings_bytes"] * QPS,
                     f"{f['rings_bytes']} B a QP: {f['depth']} elements each, the READs above included")
    report.structure("send and receive queues, UD", None,
                     f"{f['rings_ud']} B a QP; its own state is {f['unreliable_requester']} B of sending and "
                     f"{f['ud_responder']} B of receiving (RC gbn: {f['gbn_requester']} and {f['gbn_responder']} B)")


POOLS = {
    "qp_slot": ("queue pair slots", "max_qp"),
    "reorder_slots": ("early packets, mode reorder", "reorder_slots"),
    "reorder_contexts": ("QPs with a gap, mode reorder", "reorder_contexts"),
    "read_gaps": ("gaps in READ responses, mode reorder", "read_gaps"),
    "spray_contexts": ("QPs that spray, extended", "spray_contexts"),
    "destinations": ("destinations that are paced", None),
    "admission_peers": ("peers of receive pools", None),
    "cm_ids": ("connection identifiers", None),
    "cm_listeners": ("listeners", None),
    "cm_messages": ("management messages on their way", None),
}


def defaults(host):
    """The numbers of [transport], {key: number}."""
    done = subprocess.run([str(host.binary("app/perf/uroce-perf")), "--help-config"], capture_output=True, text=True)
    section = done.stdout.partition("[transport]")[2].partition("\n[")[0]
    return {key: int(value) for key, value in re.findall(r"^(\w+) = (\d+)$", section, re.MULTILINE)}


def pools(report, host, each):
    """A row for each pool of an engine, with its size in the default configuration."""
    known = defaults(host)
    for name, size in each.items():
        what, key = POOLS[name]
        count = known[key] if key else None
        report.structure(f"pool: {what}", size * count if count else None,
                         f"{size} B each" + (f", {count} by default ([transport] {key})" if count else ""))


def resident(report, facts):
    for mode, f in facts.items():
        each = f["resident_used"] / (2 * QPS)
        report.notes.append(
            f"resident, {mode}: {each:.0f} B a QP once each of {2 * QPS} QPs has carried traffic "
            f"({f['engine_bytes'] / QPS:.0f} B of engine and {f['rings_bytes']} B of queues handed over); "
            f"contexts in use: {f['contexts_held']}")


def run(host, machine, options, progress):
    report = MemoryReport(machine)
    facts = {mode: facts_of(host, mode) for mode in MODES}
    traces, shared = {}, {}
    for mode in MODES:
        traces[mode], shared[mode] = hot_of(host, mode, SIZES[:1] if options.quick else SIZES, progress)
    for op in OPS:
        for side in ("requester", "responder"):
            cells = [traces[mode][op, side] for mode in MODES]
            report.hot.append((f"{op.upper()} {side}", [(len(c), engine.lines(c)) for c in cells]))
        cells = [traces[mode][op, "requester"] | traces[mode][op, "responder"] for mode in MODES]
        report.hot.append((f"{op.upper()} both sides", [(len(c), engine.lines(c)) for c in cells]))
    whole = {mode: set().union(*traces[mode].values()) for mode in MODES}
    report.hot.append(("all of these", [(len(whole[m]), engine.lines(whole[m])) for m in MODES]))
    worst = {mode: max(len(offsets) for offsets in traces[mode].values()) for mode in MODES}
    union = {mode: max(len(traces[mode][op, "requester"] | traces[mode][op, "responder"]) for op in OPS)
             for mode in MODES}
    for side in ("requester", "responder"):
        for what in ("path", "send CQ", "receive CQ", "worker"):
            cells = [shared[mode][side, what] for mode in MODES]
            report.hot.append((f"shared, {side}: {what}", [(len(c), engine.lines(c)) for c in cells]))
    structures(report, facts["extended"], worst["extended"])
    pools(report, host, facts["extended"]["pools"])
    resident(report, facts)
    for mode in MODES:
        report.bar(f"hot state, {mode}, bytes a QP, the larger side", worst[mode], HOT_BAR, at_least=False)
        report.bar(f"hot state, {mode}, bytes a QP, both sides", union[mode], UNION_BAR, at_least=False)
    for mode in MODES:
        report.bar(f"contexts and slots in use in order, {mode}", facts[mode]["contexts_held"], 0,
                   at_least=False)
        report.bar(f"contexts taken in order, {mode}", facts[mode]["trouble"], 0, at_least=False)
    report.extra = {"hot": {mode: {f"{op} {side}": len(offsets)
                                   for (op, side), offsets in traces[mode].items()} for mode in MODES},
                    "shared": {mode: {f"{side} {what}": len(offsets)
                                      for (side, what), offsets in shared[mode].items()} for mode in MODES},
                    "facts": facts}
    return report
