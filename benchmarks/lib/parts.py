# SPDX-License-Identifier: BSD-3-Clause
"""Says which part of the work an instruction belongs to, by the source file that it comes from.

A release build inlines most of the core, so a function's own instructions say little. With debug information
callgrind names the source file of inlined code as well. Headers with small helpers, such as PSN arithmetic, belong to
the function that they are inlined into.
"""

import collections
import re

PARTS = ("post", "schedule", "build", "copy", "ICRC", "decode", "execute", "answer", "complete", "driver")

# The first line that matches "function file" decides; a file that no line names is a helper.
RULES = [(re.compile(pattern), part) for pattern, part in (
    (r"crc| icrc\.[ch]$|^0x\w+ \?\?\?$", "ICRC"),  # 0x: ISA-L, which is stripped
    (r"^_*mem(cpy|move|set)| tx\.h$", "copy"),
    (r" (pair|engine_loop)\.c$", "driver"),
    (r"(on_ack|take_ack|progress|on_answer)\w* (recovery|selective|rtt|retry|spray)\.[ch]$", "answer"),
    (r"^ur_(cq_poll|core_complete|cq_push|send_queue_finish|responder_complete)", "complete"),
    (r" (cq|core)\.[ch]$", "complete"),
    (r"^ur_(sq|rq)_post|^ur_engine_doorbell| wq\.c$", "post"),
    (r" (emux|sched|vl|wheel|cc|dest|output)\.[ch]$| qp\.c$", "schedule"),
    (r" (completer|response|loss_answers|rtt|retry|read_gap|ooo|reorder)\w*\.[ch]$", "answer"),
    (r" (requester|loss|codec|selective|request|predict_tx)\w*\.[ch]$| (build|path|recovery|sgl|send_queue)\.[ch]$",
     "build"),
    (r" (packet|roce|cursor|ext)\.[ch]$", "decode"),
    # Where a function begins with inlined code, its own file is taken for that code's.
    (r" (responder|place|arrival|ext_place|engine|slots|predict)\w*\.[ch]$|^ur_(ext_)?responder_predicted ", "execute"),
)]
# Inlined everywhere: they count as part of their callers.
HELPERS = re.compile(r"^(psn|number|bytes|bits|stamp|table|qp|wq|sgl|send_queue|rtt|retry|recovery|mem|path|sched|core|"
                     r"cursor|roce|assert|slots)\.h$")


def part_of(function, own_file, file):
    """The part of code from `file`, inlined into `function`, which is in `own_file`."""
    for name in ((own_file,) if HELPERS.match(file) else (file, own_file)):
        for pattern, part in RULES:
            if pattern.search(f"{function} {name}"):
                return part
    return "driver" if file == "???" else "other"


def split(text, events=("Ir",)):
    """{part: events} of callgrind's output: instructions, or the sum of others that it counts."""
    names, files, cost = {}, {}, collections.Counter()
    columns = []
    function = own_file = file = None
    after_calls = False

    def name_of(spec, known):
        number, _, name = spec.partition(" ")
        if name:
            known[number] = name
        return known[number]

    for line in text.splitlines():
        key, _, spec = line.partition("=")
        if key == "fl":
            own_file = file = name_of(spec, files).rpartition("/")[2]
        elif key in ("fi", "fe"):
            file = name_of(spec, files).rpartition("/")[2]
        elif key == "fn":
            function, file = name_of(spec, names).split("'")[0], own_file
        elif key in ("cfi", "cfl"):
            name_of(spec, files)
        elif key == "cfn":
            name_of(spec, names)
        elif key == "calls":
            after_calls = True  # the next line is the callee's cost
        elif line.startswith("events: "):
            names_of_events = line.split()
            columns = [names_of_events.index(event) for event in events]
        elif line and line[0] in "0123456789+-*":
            counts = line.split()
            if not after_calls:  # zeros at the end are left out
                cost[part_of(function, own_file, file)] += sum(int(counts[i]) for i in columns if i < len(counts))
            after_calls = False
    return dict(cost)
