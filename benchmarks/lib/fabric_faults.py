# SPDX-License-Identifier: BSD-3-Clause
"""Networks that lose: random loss, links that go down and up, a core link that stays dead; go-back-N, the reorder buffer and extended
mode, one path by ECMP or spraying over sixteen UDP source ports."""

from . import stats

NAME = "faults"
LINKS = {"flit": 0, "rate": 100_000_000_000, "delay": 500, "lossless": 0, "queue": 4194304}  # room for all that is outstanding
NETWORKS = {"full": {"topology": "tree", "k": 4, "n": 3}, "small": {"topology": "tree", "k": 4, "n": 2}}
LOAD = {"pattern": "uniform_random", "slots": 16, "message": 16384, "pacing": "none"}
MODES = {"gbn": {"mode": "gbn"}, "reorder": {"mode": "reorder"}, "extended": {"mode": "extended"},
         "extended, 16 paths": {"mode": "extended", "paths": 16}}
LOSSES = (0, 0.01, 0.1, 1)
LOSS_TIMES = {"run": 4_000_000, "warm": 1_000_000}
# Arrivals that three of four links could carry, so that what a fault costs is time and not capacity.
DOWN_LOAD = {"pattern": "storage", "load": 30, "pacing": "none"}
FAULT_NS = 2_000_000
DOWN_TIMES = {"run": 4_000_000, "warm": 1_000_000, "drain": 4_000_000, "downLinks": 1, "downAt": FAULT_NS}
# Timeouts are 1 ms at least: with that period, each repeat may meet the next time that the link is down.
DOWN = {"none": {"downLinks": 0}, "dead": {}, "dead, routing learns after 1 ms": {"reroute": 1_000_000},
        "down 0.2 ms of each 1.7 ms": {"downFor": 200_000, "downEvery": 1_700_000},
        "down 0.2 ms of each 1 ms": {"downFor": 200_000, "downEvery": 1_000_000}}


def loss_words(size, mode, loss, seed):
    return {**NETWORKS[size], **LINKS, **LOAD, **LOSS_TIMES, **MODES[mode], "loss": loss, "seed": seed}


def down_words(size, mode, down, seed):
    return {**NETWORKS[size], **LINKS, **DOWN_LOAD, **DOWN_TIMES, **MODES[mode], **DOWN[down], "seed": seed}


def check(found):
    return "requests fail" if found["errors"] else None


def plan(size, seeds):
    for seed in seeds:
        for mode in MODES:
            for loss in LOSSES:
                yield loss_words(size, mode, loss, seed)
        for mode in MODES:
            for down in DOWN:
                yield down_words(size, mode, down, seed)


def report(out, cells, size, seeds):
    lines = []
    for mode in MODES:
        runs = {loss: [f for f in (cells.known(loss_words(size, mode, loss, s)) for s in seeds) if f] for loss in LOSSES}
        if not all(runs.values()):
            continue
        gbps = {loss: stats.median([f["gbps"] for f in fs]) for loss, fs in runs.items()}
        p99 = {loss: stats.median([f["slowdown_1000"]["p99"] / 1000 for f in fs]) for loss, fs in runs.items()}
        again = {loss: stats.median([f["retransmitted"] / max(1, f["lost_frames"] + f["dropped"]) for f in fs])
                 for loss, fs in runs.items()}
        out.rows.append({"part": NAME, "mode": mode, "gbps": gbps, "slowdown_p99": p99, "resent_per_lost": again})
        lines.append([mode, f"{gbps[0]:.0f}", *(f"{gbps[x] / gbps[0]:.3f}" for x in LOSSES[1:]), *(f"{p99[x]:.1f}" for x in LOSSES),
                      f"{again[LOSSES[-1]]:.2f}"])
    out.table("Random loss: goodput relative to none, p99 slowdown, packets sent again for each lost frame at 1 %", [
        "mode", "none, Gb/s", *(f"{x} %" for x in LOSSES[1:]), *(f"p99 {x} %" for x in LOSSES), "sent again"], lines)
    lines = []
    for down in DOWN:
        for mode in MODES:
            found = cells.known(down_words(size, mode, down, seeds[0]))
            if not found:
                continue
            worst_ms = found["message_ns"]["max"] / 1e6
            out.rows.append({"part": NAME, "mode": mode, "down": down, "slowdown_p99": found["slowdown_1000"]["p99"] / 1000,
                             "worst_ms": worst_ms, "unfinished": found["unfinished"], "messages": found["message_ns"]["count"]})
            lines.append([down, mode, found["message_ns"]["count"], found["unfinished"], found["lost_frames"],
                          f"{found['slowdown_1000']['p50'] / 1000:.1f}", f"{found['slowdown_1000']['p99'] / 1000:.0f}", f"{worst_ms:.2f}"])
    out.table("A core link goes down: slowdown of messages, and the time of the longest that completed, ms", [
        "link", "mode", "messages", "unfinished", "frames lost", "p50", "p99", "longest"], lines)
