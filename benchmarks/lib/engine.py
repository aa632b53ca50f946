# SPDX-License-Identifier: BSD-3-Clause
"""Runs benchmarks/raw/engine_loop under valgrind: instructions per packet (callgrind), and the bytes of a
queue pair that packets in order touch (lackey). The figures are the same on every run, however busy the
machine is."""

import json
import os
import re
import subprocess

from . import parts
from .host import Failure

TARGET = "benchmarks/raw/engine_loop"
# Work on a packet that does not depend on the transport mode: copying and the ICRC.
PAYLOAD = re.compile(r"^0x|memcpy|memmove|memset|crc", re.IGNORECASE)  # 0x: ISA-L, which is stripped
# Functions that run only after a gap: out-of-order and recovery contexts, kept packets, gaps in READ responses.
SLOW = re.compile(r"^ur_(ooo|rtx|reorder_(?!qp_init|deadline|qp_)|read_gap)_|^ur_(ooo|rtx)_take")
CACHE_LINE = 64
# A cache to count with, so that the figure is the same on every machine: bytes, ways, bytes of a line.
CACHE = ["--cache-sim=yes", f"--I1=32768,8,{CACHE_LINE}", f"--D1=49152,12,{CACHE_LINE}", f"--LL=2097152,16,{CACHE_LINE}"]
PMTU = 4096  # engine_loop's


def valgrind(host, tool, options, op, size, count, mode, burst=8, qps=1):
    """The JSON object that engine_loop prints. Its name and its environment, which lie above its stack, are always the same:
    they decide which lines of a cache the stack shares with what."""
    argv = ["valgrind", f"--tool={tool}", *options, TARGET, op, str(size), str(count), mode, str(burst), str(qps)]
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True, cwd=host.binary("."), env={"PATH": os.defpath})
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip().splitlines()
        raise Failure(f"`{' '.join(argv)}` fails: {' | '.join(words[-3:])}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def parse_callgrind(text):
    """({function: its own instructions}, {function: calls})"""
    names, own, calls = {}, {}, {}
    current = called = None
    after_calls = False

    def name_of(spec):
        number, _, name = spec.partition(" ")
        if name:
            names[number] = name.split("'")[0]
        return names[number]

    for line in text.splitlines():
        if line.startswith("fn="):
            current = name_of(line[3:])
        elif line.startswith("cfn="):
            called = name_of(line[4:])
        elif line.startswith("calls="):
            calls[called] = calls.get(called, 0) + int(line[6:].split()[0])
            after_calls = True  # the next line is the callee's cost
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            if not after_calls:
                own[current] = own.get(current, 0) + int(line.split()[1])
            after_calls = False
    return own, calls


def callgrind(host, op, size, count, mode, burst=8, qps=1, cache=False):
    """What callgrind says of engine_loop's measured(), as text, and what engine_loop says."""
    out = host.tmp / "callgrind.out"
    facts = valgrind(host, "callgrind", ["--collect-atstart=no", "--toggle-collect=measured",
                                         f"--callgrind-out-file={out}", *(CACHE if cache else [])],
                     op, size, count, mode, burst, qps)
    return out.read_text(), facts


def lines_fetched(host, op, size, count, mode, burst, qps):
    """Cache lines per message, over both ends, that are not in a first-level cache like CACHE when they are used;
    without those of the driver."""
    text, _ = callgrind(host, op, size, count, mode, burst, qps, cache=True)
    found = parts.split(text, ("D1mr", "D1mw"))
    return (sum(found.values()) - found.get("driver", 0)) / count


def by_part(host, op, size, count, mode, burst, qps=1):
    """{part of lib/parts.py: instructions per message}"""
    text, facts = callgrind(host, op, size, count, mode, burst, qps)
    found = parts.split(text)
    if not found:
        raise Failure("callgrind saw nothing of engine_loop's measured()")
    if facts["trouble"]:
        raise Failure(f"engine_loop {op} {mode} is not in order on a clean link")
    if found.get("other", 0) > sum(found.values()) / 50:
        raise Failure("callgrind does not name source files; build with debug information: "
                      f"`meson configure {host.build} -Ddebug=true`")
    return {part: cost / count for part, cost in found.items()}


def instructions(host, op, size, count, mode):
    """{"all": instructions per data packet, "protocol": the same without copying and ICRC, "slow": {function
    of the slow path: calls}}"""
    text, facts = callgrind(host, op, size, count, mode)
    own, calls = parse_callgrind(text)
    if not own:
        raise Failure("callgrind saw nothing of engine_loop's measured()")
    packets = count * max(1, -(-size // PMTU))
    protocol = sum(cost for name, cost in own.items() if not PAYLOAD.search(name))
    return {
        "all": sum(own.values()) / packets,
        "protocol": protocol / packets,
        "acks": facts["packets"] - packets,
        "trouble": facts["trouble"],
        "slow": {name: n for name, n in calls.items() if SLOW.search(name)},
    }


def touched(host, op, size, count, mode):
    """{"requester": offsets, "responder": offsets}: sets of the bytes of struct ur_qp that were read or
    written; and {(side, object): offsets}, the same of objects that queue pairs share."""
    out = host.tmp / "lackey.out"
    facts = valgrind(host, "lackey", ["--trace-mem=yes", "--basic-counts=no", f"--log-file={out}"],
                     op, size, count, mode)
    if facts["trouble"]:
        raise Failure(f"engine_loop {op} {mode} is not in order on a clean link")
    found = {"requester": set(), "responder": set()}
    ranges = [(found[side], facts[side], facts["qp_bytes"]) for side in found]
    shared = {}
    for side in found:
        for name, (base, size) in facts[f"shared_{side}"].items():
            shared[side, name] = set()
            ranges.append((shared[side, name], base, size))
    marks = 0
    with open(out, encoding="ascii", errors="replace") as trace:
        for line in trace:
            if line[:2] not in (" L", " S", " M"):
                continue
            where, _, length = line[3:].partition(",")
            where = int(where, 16)
            if where == facts["mark"]:
                marks += 1
            elif marks == 1:
                for offsets, base, size in ranges:
                    at = where - base
                    if -CACHE_LINE < at < size:
                        offsets.update(i for i in range(at, at + int(length)) if 0 <= i < size)
    if marks != 2 or not found["requester"] or not found["responder"]:
        raise Failure("lackey's trace of engine_loop is not complete")
    return found, shared


def lines(offsets):
    """Number of cache lines that contain these bytes. A queue pair is aligned to a cache line."""
    return len({i // CACHE_LINE for i in offsets})
