# SPDX-License-Identifier: BSD-3-Clause
"""The lower limit of latency: benchmarks/raw/pingpong.c over the same path."""

import json

from .host import MEMORY_MB, Failure
from .perf import wait_for_socket
from .testpmd import memory


def half_round_trip(host, path, frame_bytes, seconds):
    """{"p50", "p99"} in us."""
    path.prepare()
    processes = []
    try:
        for side, words in ((0, ["pong"]), (1, ["ping", str(frame_bytes), str(seconds)])):
            argv = path.inside(side) + [
                host.binary("benchmarks/raw/pingpong"), f"--lcores=0@{min(host.cpu(side))}", "--no-pci",
                "--no-telemetry", f"--file-prefix=uroce-bench-{host.count}", "-m", str(MEMORY_MB),
                "--log-level=error", *memory(host), "--vdev", path.vdev(side), "--", *words]
            processes.append(host.start(f"pingpong-{words[0]}", argv))
            if side == 0:
                wait_for_socket(path, processes[0])
                processes[0].wait_for("ready")
        processes[1].wait(seconds + 20)
        line = processes[1].text().strip().splitlines()[-1]
        figures = json.loads(line)
    except ValueError:
        raise Failure(f"pingpong gives no figure: {processes[1].tail()}")
    finally:
        for process in processes:
            process.stop()
    return {"p50": figures["p50"], "p99": figures["p99"]}
