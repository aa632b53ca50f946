# SPDX-License-Identifier: BSD-3-Clause
"""The ceiling: DPDK's own testpmd. One side only sends, the other only receives, without copies of the
payload, checksums or a protocol. Received frames are counted."""

import re
import subprocess
import time

from .host import MEMORY_MB, Failure

PPS = re.compile(r"Rx-pps:\s*(\d+)")


def memory(host):
    """EAL options: hugepages if enough are free, because DPDK aborts if there are too few."""
    return ["--in-memory", "--single-file-segments"] if host.huge and host.top_up_hugepages() else \
        ["--no-huge", "--no-shconf"]


def start(host, path, side, cpu, forward):
    # The first lcore only reads commands, so the two can share a CPU.
    argv = path.inside(side) + [
        "stdbuf", "-oL", "dpdk-testpmd", f"--lcores=(0,1)@{cpu}", "--no-pci", "--no-telemetry",
        f"--file-prefix=uroce-bench-{host.count}", "-m", str(MEMORY_MB), "--log-level=error", *memory(host),
        "--vdev", path.vdev(side), "--", "-i", "--disable-link-check",
        f"--total-num-mbufs={path.mbufs}", f"--mbuf-size={path.mbuf_bytes}", "--burst=32", *forward,
    ]
    process = host.start(f"testpmd-{'rx' if side else 'tx'}", argv, stdin=subprocess.PIPE)
    process.wait_for("testpmd>")
    return process


def command(process, text):
    try:
        process.popen.stdin.write((text + "\n").encode())
        process.popen.stdin.flush()
    except BrokenPipeError:
        if text == "quit":
            return
        raise Failure(f"{process.name} ended early: {process.tail()}")


def rates(process):
    return [int(n) for n in PPS.findall(process.text())]


def ask_rate(process):
    known = len(rates(process))
    command(process, "show port stats 0")
    until = time.monotonic() + 5
    while len(rates(process)) == known:
        if time.monotonic() > until or not process.alive():
            raise Failure(f"{process.name} does not tell its rate: {process.tail()}")
        time.sleep(0.01)
    return rates(process)[-1]


def frames_per_second(host, path, frame_bytes, seconds):
    """Frames received per second, averaged by testpmd between two queries."""
    path.prepare()
    cpus = [min(host.cpu(side)) for side in (0, 1)]
    sides = {}
    first = path.first() or 0
    for side in (first, 1 - first):
        forward = ["--forward-mode=rxonly"] if side else \
            ["--forward-mode=txonly", f"--txpkts={frame_bytes}"]
        sides[side] = start(host, path, side, cpus[side], forward)
    try:
        command(sides[1], "start")
        command(sides[0], "start")
        time.sleep(min(1.0, seconds / 2))
        ask_rate(sides[1])
        time.sleep(seconds)
        rate = ask_rate(sides[1])
        # memif's sender may crash if its peer ends first. The figure is known by then.
        for side in (0, 1):
            command(sides[side], "quit")
            sides[side].end(10)
    finally:
        for process in sides.values():
            process.stop()
    if rate == 0:
        raise Failure(f"testpmd over {path.name} receives nothing: {sides[1].tail()}")
    return rate
