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
STEP_NS, FAULT_NS = 50_000, 2_000_000
DOWN_TIMES = {"run": 6_000_000, "warm": 0, "intervals": 120, "downLinks": 1, "downAt": FAULT_NS}
DOWN = {"dead": {}, "dead, routing learns after 1 ms": {"reroute": 1_000_000}, "down 0.2 ms of each 1 ms": {"downFor": 200_000, "downEvery": 1_000_000}}
RECOVERED = 0.95  # of what there was


def loss_words(size, mode, loss, seed):
    return {**NETWORKS[size], **LINKS, **LOAD, **LOSS_TIMES, **MODES[mode], "loss": loss, "seed": seed}


def down_words(size, mode, down, seed):
    return {**NETWORKS[size], **LINKS, **LOAD, **DOWN_TIMES, **MODES[mode], **DOWN[down], "seed": seed}


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


def recovery(found):
    """Goodput before the fault, the share of it afterwards (in the last quarter), and milliseconds until an interval has
    RECOVERED of it again for the first time after it was below; None: never, 0: it never was below."""
    rates = [i["gbps"] for i in found["intervals"]]
    first = FAULT_NS // STEP_NS
    before = stats.median(rates[first // 2:first])
    after = rates[first:]
    below = next((i for i, rate in enumerate(after) if rate < RECOVERED * before), None)
    share = stats.median(after[3 * len(after) // 4:]) / before
    if below is None:
        return before, share, 0.0
    again = next((i for i in range(below, len(after)) if after[i] >= RECOVERED * before), None)
    return before, share, None if again is None else again * STEP_NS / 1e6


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
            before, share, ms = recovery(found)
            out.rows.append({"part": NAME, "mode": mode, "down": down, "gbps_before": before, "share_after": share, "recovery_ms": ms})
            lines.append([down, mode, f"{before:.0f}", f"{share:.3f}", "never" if ms is None else f"{ms:.2f}",
                          f"{found['slowdown_1000']['max'] / 1000:.0f}"])
    out.table(f"One core link goes down: goodput at the end relative to before, and time until {RECOVERED} of it, ms", [
        "link", "mode", "before, Gb/s", "after", "recovers", "worst slowdown"], lines)
