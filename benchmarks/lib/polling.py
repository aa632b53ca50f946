# SPDX-License-Identifier: BSD-3-Clause
"""What the thread that makes progress costs a program that polls without a pause, in instructions, by callgrind: of the program's own
thread, and of the other one each time that it wakes. tests/programs/life is the program; it sends to itself."""

import os
import re

from .engine import parse_callgrind
from .host import Failure

TARGET = "tests/programs/life"
SLEEP = re.compile(r"clock_nanosleep|ppoll|ur_nap\b")  # of lib/api/progress.c and adaptive.c
SECONDS = 300
# While a program polls, the thread wakes once in UR_REST_MAX_NS (lib/edge/rest.h).
WAKES_PER_SECOND = 1000
# Fewer than a CPU that polls executes in a second, so that the share of the thread is an upper bound.
INSTRUCTIONS_PER_SECOND = 1_000_000_000


def count(host, mode):
    """{"program": instructions of its own thread, "wake": those of the progress thread each time that it wakes}"""
    config, out = host.tmp / "polling.conf", host.tmp / f"callgrind-{mode}"
    config.write_text(f"[port]\ndriver = memif\nrole = server\ndevice = {host.tmp}/polling.sock\n[address]\nipv4 = 10.77.0.1/24\n")
    run = host.start(f"polling-{mode}", [
        host.binary("app/run/uroce-run"), "--config", config, "--set", "eal.hugepages=no", "--set", f"worker.progress={mode}",
        "valgrind", "--tool=callgrind", "--fair-sched=yes", "--separate-threads=yes", f"--callgrind-out-file={out}",
        host.binary(TARGET), "poll_always"])
    run.wait(SECONDS)
    threads = [parse_callgrind(path.read_text()) for path in sorted(out.parent.glob(f"{out.name}-*"))]
    name = re.compile(r"^run_(adaptive|ticks)\b")
    found = [(own, calls) for own, calls in threads[1:] if any(name.match(function) for function in own)]
    if len(found) != 1:
        raise Failure(f"callgrind has no progress thread: {os.listdir(out.parent)}")
    own, calls = found[0]
    wakes = sum(n for function, n in calls.items() if SLEEP.match(function))
    if not wakes:
        raise Failure("callgrind: the progress thread never slept")
    return {"program": sum(threads[0][0].values()), "wake": sum(own.values()) / wakes}


def share(wake):
    """Of a CPU, for so many instructions each time that the thread wakes."""
    return wake * WAKES_PER_SECOND / INSTRUCTIONS_PER_SECOND
