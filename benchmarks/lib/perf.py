# SPDX-License-Identifier: BSD-3-Clause
"""Runs uroce-perf, server and client, over a path of paths.py. One thread posts and polls, so locks are
switched off."""

import json
import time

from .host import MEMORY_MB, Failure

GBN = (["transport.mode=gbn"], ["transport.mode=gbn"])  # `sets` of run(): both sides go back N
AUTO_BAR = 0.95  # of mode auto (extended) relative to gbn, wherever a benchmark measures both
LEADS = {"read"}  # operations whose client receives the payload


# An end that stands still for as long makes the other one time out.
TIMEOUT_NS = 1_000_000


class Clean:
    """What is in vain where nothing can be lost: packets sent again, timeouts, and the probes that extended mode sends
    before a timeout, after two round trips. In runs in which an end stood still for longer than the timeout, by its own
    clock, and in the others."""

    # What is counted: the counters of uroce-perf that add up to it, and whether a run without a pause may have any.
    # A probe may be early: it is one small packet, and what it asks is answered at once.
    KINDS = {"packets sent again": (("retransmitted_packets", "retransmitted_responses"), False),
             "timeouts": (("rto", "local_ack_timeout_err"), False),
             "probes": (("probes_sent",), True)}

    def __init__(self):
        self.runs = self.paused = 0
        self.excused = dict.fromkeys(self.KINDS, 0)
        self.unexplained = dict.fromkeys(self.KINDS, 0)

    def add(self, figures):
        ends = figures["client"], figures["server"]
        paused = max(end["pause_ns"] for end in ends) >= TIMEOUT_NS
        self.runs += 1
        self.paused += paused
        into = self.excused if paused else self.unexplained
        for kind, (counters, _) in self.KINDS.items():
            into[kind] += sum(end["counters"][name] for end in ends for name in counters)

    @staticmethod
    def words(counts):
        return ", ".join(f"{n} {kind}" for kind, n in counts.items())

    def fill(self, report):
        report.notes.append(f"memif: {self.runs} runs; in {self.paused} of them an end stood still for a millisecond or "
                            f"more: {self.words(self.excused)}; in the others: {self.words(self.unexplained)}")
        for kind, (_, allowed) in self.KINDS.items():
            if not allowed:
                report.bar(f"memif, no end stood still: {kind}", self.unexplained[kind], 0, at_least=False)


def sides(op):
    """(side of the server, side of the client): payload goes from side 0 to side 1."""
    return (0, 1) if op in LEADS else (1, 0)


def start(host, path, role, side, more, dedicated, sets):
    conf, own = path.conf(side)
    own = own + [f"worker.mode={'dedicated' if dedicated else 'inline'}",
                 f"eal.memory_mb={MEMORY_MB}", "worker.thread_safe=no", *sets]
    argv = path.inside(side) + [host.binary("app/perf/uroce-perf"), role, "--config", conf]
    for key in own:
        argv += ["--set", key]
    return host.start(f"uroce-perf-{role}", argv + more, host.cpu(side, dedicated))


def wait_for_socket(path, process):
    """Waits for the socket of the memif server, without which a memif client does not start."""
    until = time.monotonic() + 15
    while not path.socket.exists():
        if not process.alive() or time.monotonic() > until:
            raise Failure(f"{process.name} makes no memif socket: {process.tail()}")
        time.sleep(0.02)


def wait_for_client(processes, timeout_s):
    """If the server has failed, reports its error, which says more than the client's."""
    try:
        processes["client"].wait(timeout_s)
    except Failure as failure:
        server = processes["server"]
        if server.alive():
            raise Failure(f"{failure}; the server says: {server.tail(2)}")
        server.wait(1)
        raise


def run(host, path, op, size, seconds, mode="bw", dedicated=False, more=(), sets=((), ()), warmup=0.5):
    """Runs once and returns uroce-perf's JSON object; errors raise a Failure. For a list of sizes it returns
    a list, measured one after the other by the same processes. `sets`: more keys for side 0 and side 1."""
    path.prepare()
    result = host.tmp / "perf.json"
    result.unlink(missing_ok=True)
    sizes = size if isinstance(size, list) else [size]
    server_side, client_side = sides(op)
    client_args = ["--peer", path.address(server_side), "--op", op, "--mode", mode,
                   "--sizes", ",".join(map(str, sizes)), "--duration", str(seconds),
                   "--warmup", str(warmup), "--json", result, *more]
    roles = {server_side: ("server", ["--once"]), client_side: ("client", client_args)}
    processes = {}
    try:
        # If the client must be started first, it retries until the server is up.
        order = [server_side, client_side] if path.first() is None else \
            [path.first(), 1 - path.first()]
        for side in order:
            role, args = roles[side]
            processes[role] = start(host, path, role, side, args, dedicated, sets[side])
            if side == order[1]:
                break
            if hasattr(path, "socket"):
                wait_for_socket(path, processes[role])
            if role == "server":
                processes[role].wait_for("listening")
        wait_for_client(processes, (seconds + warmup) * len(sizes) + 30)
        processes["server"].wait(10)
    finally:
        for process in processes.values():
            process.stop()
    figures = json.loads(result.read_text())
    runs = figures.get("results", [figures])
    for each in runs:
        if each["errors"]:
            raise Failure(f"uroce-perf {op} over {path.name} counts {each['errors']} errors")
    if hasattr(path, "clean"):
        for each in runs:
            path.clean.add(each)
    return runs if isinstance(size, list) else runs[0]
