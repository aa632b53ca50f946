# SPDX-License-Identifier: BSD-3-Clause
"""The upper limit of an endpoint: benchmarks/raw/bare_pipe.c over the same path. It copies, sums, checks, copies
and acknowledges like uroce, with frames of the same size, and has no protocol."""

import json

from .host import MEMORY_MB, Failure
from .paths import ROCE_BYTES, RETH_BYTES
from .perf import wait_for_client, wait_for_socket
from .testpmd import memory

TARGET = "benchmarks/raw/bare_pipe"
HEADERS = ROCE_BYTES - 4  # without the ICRC
LEADS = {"read", "pingpong"}  # modes whose client is side 1


def start(host, path, side, words):
    argv = path.inside(side) + [
        host.binary(TARGET), f"--lcores=0@{min(host.cpu(side))}", "--no-pci", "--no-telemetry",
        f"--file-prefix=uroce-bench-{host.count}", "-m", str(MEMORY_MB), "--log-level=error", *memory(host),
        "--vdev", path.vdev(side), "--", *words]
    return host.start(f"bare-pipe-{words[0]}", argv)


def result_of(process):
    try:
        return json.loads(process.text().strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Failure(f"bare_pipe gives no figure: {process.tail()}")


def run(host, path, mode, message, seconds, more=(), warmup=0.5):
    """Runs once and returns the JSON object of the client; a byte that arrives wrong raises a Failure."""
    path.prepare()
    payload = min(message, path.pmtu)
    client_side = 1 if mode in LEADS else 0
    headers = HEADERS if message > payload else HEADERS + RETH_BYTES
    words = {1 - client_side: ["server"], client_side: [
        "client", "--mode", mode, "--message", str(message), "--payload", str(payload), "--headers", str(headers),
        "--seconds", str(seconds), "--warmup", str(warmup), *more]}
    processes = {}
    try:
        for side in (path.first(), 1 - path.first()):
            processes[side] = start(host, path, side, words[side])
            if side == path.first():
                wait_for_socket(path, processes[side])
        ends = {"client": processes[client_side], "server": processes[1 - client_side]}
        wait_for_client(ends, seconds + warmup + 30)
        ends["server"].wait(10)
        return result_of(ends["client"])
    finally:
        for process in processes.values():
            process.stop()


def gbps(host, path, mode, message, seconds, more=()):
    return run(host, path, mode, message, seconds, more)["gbps"]


def million_messages(host, path, mode, message, seconds, window):
    return run(host, path, mode, message, seconds, ["--window", str(window)])["mops"]


def half_round_trip(host, path, message, seconds):
    """{"p50", "p99"} in us."""
    lat = run(host, path, "pingpong", message, seconds)["lat_us"]
    return {"p50": lat["p50"], "p99": lat["p99"]}
