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
DOWN = {"none": {"downLinks": 0}, "dead": {}, "dead, ports kept": {"repath": 0},
        "dead, routing learns after 1 ms": {"reroute": 1_000_000},
        "down 0.2 ms of each 1.7 ms": {"downFor": 200_000, "downEvery": 1_700_000},
        "down 0.2 ms of each 1 ms": {"downFor": 200_000, "downEvery": 1_000_000}}


def loss_words(size, mode, loss, seed):
    return {**NETWORKS[size], **LINKS, **LOAD, **LOSS_TIMES, **MODES[mode], "loss": loss, "seed": seed}


def down_words(size, mode, down, seed):
    return {**NETWORKS[size], **LINKS, **DOWN_LOAD, **DOWN_TIMES, **MODES[mode], **DOWN[down], "seed": seed}


# Time to recover: traffic that always fills what there is, in intervals of 0.1 ms. Without routing a queue pair has to find another
# path by itself, and how long some hundred of them take with one path each is only reported: None. So is what routing does alone.
RECOVER = {"run": 9_000_000, "warm": 1_000_000, "intervals": 90, "downLinks": 1, "downAt": FAULT_NS}
RECOVER_DOWN = {**DOWN, "dead, routing learns after 1 ms, ports kept": {"reroute": 1_000_000, "repath": 0}}
RECOVERIES = {("extended, 16 paths", "dead"): 1.0,
              **{(mode, "dead"): None for mode in ("gbn", "reorder", "extended")},
              **{(mode, "dead, routing learns after 1 ms"): 2.0 for mode in MODES},
              ("extended", "dead, routing learns after 1 ms, ports kept"): None}
# Of the goodput before: nine tenths of the three quarters that the uplinks of the leaf can still carry. Hosts have a fixed number of
# messages outstanding, so in the end those to and from that leaf set the pace of all.
RECOVERED = 0.675


def recover_words(size, mode, down, seed):
    return {**NETWORKS[size], **LINKS, **LOAD, **RECOVER, **MODES[mode], **RECOVER_DOWN[down], "seed": seed}


def series(found):
    """Goodput of each interval, of the mean before the fault."""
    gbps = [v["gbps"] for v in found["intervals"]]
    before = stats.median(gbps[:(FAULT_NS - RECOVER["warm"]) * RECOVER["intervals"] // RECOVER["run"]])
    return [g / before for g in gbps]


def recovery_ms(found):
    """From the fault to the first interval since which the mean of what follows, and of the next five, is recovered; None: never."""
    shares, ms = series(found), RECOVER["run"] / RECOVER["intervals"] / 1e6
    first = (FAULT_NS - RECOVER["warm"]) * RECOVER["intervals"] // RECOVER["run"]
    for i in range(first, len(shares) - 5):
        if stats.median(shares[i:i + 5]) >= RECOVERED and stats.median(shares[i:]) >= RECOVERED and shares[i] >= RECOVERED:
            return (i - first) * ms
    return None


def check(found):
    return "requests fail" if found["errors"] else None


def plan(size, seeds):
    for seed in seeds:
        for mode in MODES:
            for loss in LOSSES:
                yield loss_words(size, mode, loss, seed)
        for mode, down in RECOVERIES:
            yield recover_words(size, mode, down, seed)
        for mode in MODES:
            for down in DOWN:
                yield down_words(size, mode, down, seed)


def report_recovery(out, cells, size, seeds):
    lines = []
    for (mode, down), bar_ms in RECOVERIES.items():
        found = [f for f in (cells.known(recover_words(size, mode, down, s)) for s in seeds) if f]
        if not found:
            continue
        times = [recovery_ms(f) for f in found]
        shares = series(found[0])
        first = (FAULT_NS - RECOVER["warm"]) * RECOVER["intervals"] // RECOVER["run"]
        out.rows.append({"part": NAME, "mode": mode, "down": down, "recovery_ms": times, "series": shares})
        lines.append([down, mode, ", ".join("never" if t is None else f"{t:.1f}" for t in times),
                      *(f"{stats.median(shares[first + 5 * i:first + 5 * i + 5]):.2f}" for i in range(8))])
        if bar_ms is not None:
            out.bar(f"{down}, {mode}: ms until goodput is {RECOVERED} of that before",
                    max(RECOVER["run"] / 1e6 if t is None else t for t in times), bar_ms, at_least=False)
    out.table("recovery", f"A core link dies: ms until goodput is {RECOVERED} of that before, and goodput in each 0.5 ms since, of that before", [
        "link", "mode", "ms", *(f"{0.5 * i:g}" for i in range(8))], lines)


def report(out, cells, size, seeds):
    report_recovery(out, cells, size, seeds)
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
    out.table("loss", "Random loss: goodput relative to none, p99 slowdown, packets sent again for each lost frame at 1 %", [
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
    out.table("down", "A core link goes down: slowdown of messages, and the time of the longest that completed, ms", [
        "link", "mode", "messages", "unfinished", "frames lost", "p50", "p99", "longest"], lines)
