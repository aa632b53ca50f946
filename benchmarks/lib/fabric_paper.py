# SPDX-License-Identifier: BSD-3-Clause
"""The CMDPD paper's experiments: four patterns on a fat tree and a dragonfly, no pacing and CMDPD with the paper's pairs of init0
and init1, by the time in switches as the paper's routers accumulate it. Beside that the other delays, the other readings of
the two conditions that are cut off in the paper's text, and an average that ages."""

from . import stats

NAME = "paper"
# The paper: 10^6 cycles, 32 bytes a cycle, packets of 2048 bytes at most, a fat tree of 256; its table of networks is lost.
TIMES = {"full": {"run": 1_000_000, "warm": 100_000}, "small": {"run": 200_000, "warm": 50_000}}
NETWORKS = {"full": {"tree": {"topology": "tree", "k": 4, "n": 4},
                     "dragonfly": {"topology": "dragonfly", "p": 3, "a": 6, "h": 3, "routing": "minimal"}},
            "small": {"tree": {"topology": "tree", "k": 4, "n": 3},
                      "dragonfly": {"topology": "dragonfly", "p": 2, "a": 4, "h": 2, "routing": "minimal"}}}
INIT0 = (6, 8, 10, 15)
INIT1 = (10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
GRID = [(low, high) for high in INIT1 for low in INIT0 if low < high]
FEW = [(6, 10), (8, 16)]  # those that throttle most, and the default
LOW = [(2, 4), (4, 8)]  # below the paper's
READINGS = {"mean": {}, "aged": {"ewma": 1}, "the average stays": {"keepAverage": 1}, "throttling ends": {"release": 1},
            "both": {"keepAverage": 1, "release": 1}}
# How much of it is chance: more seeds, where the few destinations of hot_node make runs differ most.
CHANCE = ("tree", "input", "hot_node")
CHANCE_SEEDS = range(1, 6)
CHANCE_PAIRS = (None, FEW[0], LOW[0])
SOURCES = ("one_way", "round_trip", "stamps")
QUEUES = ("output", "input")
PATTERNS = ("alltoall_round_robin", "uniform_random", "uniform_random_seq_gen", "hot_node")

# What the paper says of throughput: in words, and the change that it claims at least, per cent.
CLAIMS = {("tree", "hot_node"): ("differs much between pairs", None),
          ("tree", "alltoall_round_robin"): ("+10 to +12 %", 10),
          ("tree", "uniform_random"): ("+5.5 % on average", 5.5),
          ("tree", "uniform_random_seq_gen"): ("+6 % on average", 6),
          ("dragonfly", "hot_node"): ("lower for some pairs", None),
          ("dragonfly", "alltoall_round_robin"): ("at most +4 %", None),
          ("dragonfly", "uniform_random"): ("lower for some pairs", None),
          ("dragonfly", "uniform_random_seq_gen"): ("hardly a change", None)}
# The change of the mean delay in switches that it claims at least, per cent.
DELAY_CLAIM = {("tree", "uniform_random"): -10, ("tree", "uniform_random_seq_gen"): -10}


def words(size, network, queues, pattern, seed, pair=None, reading="mean", source="switches"):
    """The arguments of a run; `pair`: CMDPD with this init0 and init1, None: no pacing."""
    w = {**NETWORKS[size][network], **TIMES[size], "seed": seed, "queues": queues, "pattern": pattern}
    if not pair:
        return {**w, "pacing": "none", "source": "round_trip"}
    return {**w, "pacing": "cmdpd", "init0": pair[0], "init1": pair[1], "source": source, **READINGS[reading]}


def check(found):
    lost = found["errors"] or found["dropped"] or found["retransmitted"]
    return "something was lost on links with credits" if lost else None


def places():
    return [(network, queues, pattern) for network in ("tree", "dragonfly") for pattern in PATTERNS for queues in QUEUES]


def plan(size, seeds):
    """No pacing and the pairs that act most, everywhere; then other delays and readings, then the rest of the grid."""
    for seed in seeds:
        for place in places():
            yield words(size, *place, seed)
            for pair in FEW:
                yield words(size, *place, seed, pair)
    for seed in CHANCE_SEEDS:
        for pair in CHANCE_PAIRS:
            yield words(size, *CHANCE, seed, pair)
    for place in places():
        for pair in (*LOW, (15, 40)):
            yield words(size, *place, seeds[0], pair)
        for reading in list(READINGS)[1:]:
            yield words(size, *place, seeds[0], FEW[0], reading)
        for source in SOURCES:
            yield words(size, *place, seeds[0], FEW[0], source=source)
    for seed in seeds:
        for place in places():
            for pair in GRID:
                yield words(size, *place, seed, pair)


def percent(value, base):
    return 100 * (value / base - 1)


def changes(cells, size, place, seeds, value, **variant):
    """Relative to the run of the same seed without pacing, per cent; of the seeds that were run."""
    pairs = [(cells.known(words(size, *place, seed, **variant)), cells.known(words(size, *place, seed))) for seed in seeds]
    return [percent(value(a), value(b)) for a, b in pairs if a and b]


def gbps(found):
    return found["gbps"]


def wait(found):
    return found["wait_ns"]["mean"]


def short(values, digits=2):
    """The median, and the least and most if there are several."""
    if not values:
        return ""
    text = f"{stats.median(values):+.{digits}f}"
    return text if len(values) == 1 else f"{text} [{min(values):+.{digits}f}, {max(values):+.{digits}f}]"


def span(values):
    return f"{min(values):+.2f} to {max(values):+.2f}" if values else ""


def row(cells, size, place, seeds):
    base = [f for f in (cells.known(words(size, *place, seed)) for seed in seeds) if f]
    if not base:
        return None
    of_grid = {pair: changes(cells, size, place, seeds, gbps, pair=pair) for pair in GRID}
    of_wait = {pair: changes(cells, size, place, seeds, wait, pair=pair) for pair in GRID}
    have = [pair for pair in GRID if of_grid[pair]]
    acted = [cells.known(words(size, *place, seeds[0], pair)) for pair in have]
    return {"network": place[0], "queues": place[1], "pattern": place[2], "hosts": base[0]["hosts"],
            "gbps": stats.median([gbps(f) for f in base]), "wait_ns": stats.median([wait(f) for f in base]),
            "share_of_links": base[0]["share_of_links"],
            "pairs": len(have), "change": [stats.median(of_grid[p]) for p in have], "grid": {f"{a}-{b}": of_grid[a, b] for a, b in have},
            "wait_change": [stats.median(of_wait[p]) for p in have], "wait": {f"{a}-{b}": of_wait[a, b] for a, b in have},
            "p99_of_mean": stats.median([f["wait_ns"]["p99"] / wait(f) for f in base]),
            "deflections": [v["wait_max_ns"] / v["wait_mean_ns"] for f in base for v in f["intervals"] if v["wait_mean_ns"]],
            "throttles": max((f["throttles"] for f in acted if f), default=0),
            "samples": max((f["samples"] for f in acted if f), default=0),
            "low": {f"{a}-{b}": changes(cells, size, place, seeds, gbps, pair=(a, b)) for a, b in LOW},
            "readings": {r: changes(cells, size, place, seeds, gbps, pair=FEW[0], reading=r) for r in list(READINGS)[1:]},
            "sources": {s: changes(cells, size, place, seeds, gbps, pair=FEW[0], source=s) for s in SOURCES}}


def report_chance(out, cells, size):
    lines = []
    for seed in CHANCE_SEEDS:
        none, *paced = [cells.known(words(size, *CHANCE, seed, pair)) for pair in CHANCE_PAIRS]
        if none and all(paced):
            lines.append([seed, f"{gbps(none):.0f}", *(f"{percent(gbps(f), gbps(none)):+.1f} %" for f in paced)])
    out.table("chance", f"{', '.join(CHANCE)}: throughput by seed", ["seed", "none, Gb/s", *(f"{a}-{b}" for a, b in CHANCE_PAIRS[1:])], lines)


def report(out, cells, size, seeds):
    report_chance(out, cells, size)
    rows = [r for r in (row(cells, size, place, seeds) for place in places()) if r]
    out.rows += [{"part": NAME, **r} for r in rows]
    head = ["network", "queues", "pattern"]
    where = [[r["network"], r["queues"], r["pattern"]] for r in rows]
    out.table("paper", "Change of throughput by CMDPD, %, with the paper's delay (time in switches); pairs: of 36", [
        *head, "none, Gb/s", "6-10", "8-16", "pairs", "grid", "throttles of samples", *(f"{a}-{b}" for a, b in LOW)],
        [[*w, f"{r['gbps']:.0f}", short(r["grid"].get("6-10")), short(r["grid"].get("8-16")), r["pairs"], span(r["change"]),
          f"{r['throttles']} of {r['samples']}", *(short(r["low"][f"{a}-{b}"]) for a, b in LOW)] for w, r in zip(where, rows)])
    more = [(w, r) for w, r in zip(where, rows) if any(r["readings"].values()) or any(r["sources"].values())]
    out.table("paper-readings", "The same for 6-10: readings of the conditions that are cut off, an average that ages, other delays", [
        *head, *list(READINGS)[1:], *SOURCES],
        [[*w, *(short(r["readings"][x]) for x in list(READINGS)[1:]), *(short(r["sources"][s]) for s in SOURCES)] for w, r in more])
    out.table("paper-delay", "Change of the mean delay in switches by CMDPD, %, and how much longer than the mean delays are without", [
        *head, "none, ns", "6-10", "8-16", "grid", "p99 / mean", "longest / mean of an interval"],
        [[*w, f"{r['wait_ns']:.0f}", short(r["wait"].get("6-10")), short(r["wait"].get("8-16")), span(r["wait_change"]),
          f"{r['p99_of_mean']:.1f}", f"{min(r['deflections']):.1f} to {max(r['deflections']):.1f}"] for w, r in zip(where, rows)])
    for r in rows:
        judge(out, r)


def judge(out, r):
    key, where = (r["network"], r["pattern"]), f"{r['network']}, {r['queues']}, {r['pattern']}"
    said, least = CLAIMS[key]
    if not r["change"]:
        return
    out.notes.append(f"{where}: throughput with CMDPD {span(r['change'])} % in {r['pairs']} of {len(GRID)} pairs (paper: {said})")
    if least:
        out.bar(f"{where}: CMDPD's best change of throughput, %", max(r["change"]), least, compares=True)
    if key in DELAY_CLAIM:
        out.bar(f"{where}: CMDPD's best change of the mean delay, %", min(r["wait_change"]), DELAY_CLAIM[key], at_least=False,
                compares=True)
