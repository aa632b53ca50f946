# SPDX-License-Identifier: BSD-3-Clause
"""AUTO beside all other kinds of congestion control in every pattern and topology: goodput, and the 99th percentile of slowdown (the
time of a message divided by its time in the idle network). Delays are those of shipped endpoints and switches."""

from . import fabric_paper, stats

NAME = "rivals"
NETWORKS = {size: {"tree": nets["tree"], "dragonfly": nets["dragonfly"], "dragonfly ugal": {**nets["dragonfly"], "routing": "ugal"}}
            for size, nets in fabric_paper.NETWORKS.items()}
# Switches that drop: 1 MB a queue, messages of 16 KB. Marks at an eighth of that; an idle round trip is 4 us.
DROPS = {"flit": 0, "rate": 256_000_000_000, "delay": 500, "lossless": 0, "queue": 1 << 20, "slots": 32, "message": 16384,
         "run": 3_000_000, "warm": 500_000}
DROPPING = "tree, drops"
NETWORKS["small"][DROPPING] = {"topology": "tree", "k": 4, "n": 2}
NETWORKS["full"][DROPPING] = {"topology": "tree", "k": 4, "n": 3}
DROPPING_TRAFFIC = ("incast", "hot_node", "permutation", "uniform_random")
DROPPING_CONTENDERS = {"swift": {"target": 6000}, "dcqcn": {"ecn": 131072}}
COLLECTIVE = {"slots": 4, "message": 16384}
# Messages of 30 MB among those of web search: a longer run, and time for the rest to complete. As in the papers that such sizes are
# from, a message has a connection of its own, nearly always.
POISSON = {"run": 500_000, "warm": 100_000, "drain": 2_000_000, "load": 50, "flows": 16}
TRAFFIC = {"incast": {}, "permutation": {}, "hot_node": {}, "alltoall_round_robin": {}, "uniform_random": {},
           "uniform_random_seq_gen": {}, "ring_allreduce": COLLECTIVE, "tree_allreduce": COLLECTIVE, "storage": POISSON,
           "hadoop": POISSON, "websearch": POISSON}
# Marks at 16 KB, which is the room of an input; Swift's target: an idle round trip of 1 us, and two more for queues.
CONTENDERS = {"none": {}, "auto": {}, "auto, round trips": {"pacing": "auto", "source": "round_trip"}, "swift": {"target": 3000},
              "dcqcn": {"ecn": 16384}, "cmdpd": {"init0": 8, "init1": 16}}
# Beside these, without bars: over all ways; where ports decide on the way, with ports that congestion does not change; and, for
# arrivals, with all queue pairs in turn.
PATHS = {"none, 16 paths": {"pacing": "none", "paths": 16}, "auto, 16 paths": {"pacing": "auto", "paths": 16}}
TURNS = {"none, in turn": {"pacing": "none", "sparseFirst": 0}, "auto, in turn": {"pacing": "auto", "sparseFirst": 0}}
STAY = {"none, plb off": {"pacing": "none", "plb": 0}, "auto, plb off": {"pacing": "auto", "plb": 0}}
HASHED = ("tree", DROPPING)
ALL = {**CONTENDERS, **PATHS, **STAY, **TURNS}
AUTOS = {"auto": "AUTO", "auto, round trips": "AUTO by round trips"}  # as shipped, and with [pacing] delay = round_trip
SHARE = 0.95


def traffics(network):
    return DROPPING_TRAFFIC if network == DROPPING else tuple(TRAFFIC)


def is_arrivals(traffic):
    return TRAFFIC[traffic] is POISSON


def words(size, network, traffic, contender, seed):
    w = {**NETWORKS[size][network], **fabric_paper.TIMES[size], "seed": seed, "pattern": traffic, **TRAFFIC[traffic],
         "pacing": contender, "source": "stamps", **ALL[contender]}
    return {**w, **DROPS, **DROPPING_CONTENDERS.get(contender, {})} if network == DROPPING else w


def check(found):
    if found["errors"]:
        return "requests fail"
    return "something was lost on links with credits" if found["lossless"] and found["dropped"] else None


def plan(size, seeds):
    for seed in seeds:
        for network in NETWORKS[size]:
            for traffic in traffics(network):
                for contender in [*CONTENDERS, *PATHS, *(STAY if network in HASHED else []), *(TURNS if is_arrivals(traffic) else [])]:
                    yield words(size, network, traffic, contender, seed)


def goodput(found):
    """Where messages arrive whether others have completed or not: what part of the bytes has completed. Else Gb/s."""
    return found["completed_bytes"] / found["offered_bytes"] if found.get("offered_bytes") else found["gbps"]


def slowdown(found):
    """The 99th percentile. Without any message: infinite."""
    return found["slowdown_1000"]["p99"] / 1000 if found["slowdown_1000"]["count"] else float("inf")


def report(out, cells, size, seeds):
    lines, rows, both = [], [], []
    for network in NETWORKS[size]:
        for traffic in traffics(network):
            runs = {s: {c: cells.known(words(size, network, traffic, c, s)) for c in CONTENDERS} for s in seeds}
            both += auto_by_seed(network, traffic, runs)
            whole = [run for run in runs.values() if all(run.values())]
            if not whole:
                continue
            found = {c: [run[c] for run in whole] for c in CONTENDERS}
            row = {c: {"goodput": stats.median([goodput(f) for f in fs]), "of_none": ratios(found, c),
                       "gbps": stats.median([f["gbps"] for f in fs]), "slowdown_p99": stats.median([slowdown(f) for f in fs]),
                       "jain": stats.median([f["jain_sent"] for f in fs]), "throttles": max(f["throttles"] for f in fs),
                       "unfinished": max(f["unfinished"] for f in fs)} for c, fs in found.items()}
            rows.append({"part": NAME, "network": network, "traffic": traffic, **row})
            lines.append([network, traffic, len(whole), absolute(row["none"]["goodput"]),
                          *(span(row[c]["of_none"]) for c in CONTENDERS if c != "none"),
                          *(f"{row[c]['slowdown_p99']:.1f}" for c in CONTENDERS), row["auto"]["throttles"]])
            judge(out, f"{network}, {traffic}", row)
    out.rows += rows
    report_more(out, cells, size, seeds)
    others = [c for c in CONTENDERS if c != "none"]
    out.table("rivals", "Goodput relative to none (Poisson arrivals: part of the bytes that completed), and p99 slowdown", [
        "network", "traffic", "seeds", "none, Gb/s", *others,
        *(f"{c} p99" for c in CONTENDERS), "auto throttles"], lines)
    out.table("auto", "AUTO relative to no pacing, by seeds: goodput, p99 slowdown, most throttles, most delays stamped by switches", [
        "network", "traffic", "seeds", "none, Gb/s", "goodput", "p99", "throttles", "stamped"], both)


def report_more(out, cells, size, seeds):
    """The runs without bars."""
    paths, moves, turns = [], [], []
    for network in NETWORKS[size]:
        for traffic in traffics(network):
            runs = {c: [f for s in seeds if (f := cells.known(words(size, network, traffic, c, s)))] for c in
                    ("none", "auto", *PATHS, *STAY, *TURNS)}
            if all(len(runs[c]) == len(runs["none"]) > 0 for c in PATHS):
                paths.append([network, traffic, len(runs["none"]), absolute(stats.median([goodput(f) for f in runs["none"]])),
                              *(span(ratios(runs, c)) for c in PATHS), *(p99(runs[c]) for c in ("none", "auto", *PATHS))])
            if network in HASHED and all(len(runs[c]) == len(runs["none"]) > 0 for c in STAY):
                moves.append([network, traffic, len(runs["none"]), absolute(stats.median([goodput(f) for f in runs["none, plb off"]])),
                              *(span(stats.ratios_of([goodput(f) for f in runs[c]], [goodput(f) for f in runs[f"{c}, plb off"]]))
                                for c in ("none", "auto")),
                              *(p99(runs[c]) for c in ("none, plb off", "none", "auto, plb off", "auto"))])
            if is_arrivals(traffic) and all(len(runs[c]) == len(runs["none"]) > 0 for c in TURNS):
                turns.append([network, traffic, len(runs["none"]),
                              *(p99(runs[c]) for c in ("none, in turn", "none", "auto, in turn", "auto"))])
    out.table("paths", "Over 16 paths of each queue pair: goodput relative to none over one, and p99 slowdown", [
        "network", "traffic", "seeds", "none, Gb/s", *PATHS, "none p99", "auto p99", *(f"{c} p99" for c in PATHS)], paths)
    out.table("moves", "Queue pairs that leave congested paths (PLB): goodput relative to those that stay, and p99 slowdown", [
        "network", "traffic", "seeds", "none, plb off, Gb/s", "none", "auto", "none, plb off p99", "none p99", "auto, plb off p99",
        "auto p99"], moves)
    out.table("turns", "Queue pairs in turn, and those first that had less than their share: p99 slowdown", [
        "network", "traffic", "seeds", "none, in turn", "none", "auto, in turn", "auto"], turns)


def p99(found):
    return f"{stats.median([slowdown(f) for f in found]):.1f}"


def absolute(value):
    return f"{value:.0f}" if value > 1 else f"{100 * value:.1f} %"


def auto_by_seed(network, traffic, runs):
    """A line of AUTO beside no pacing, of all seeds that both have run."""
    pairs = [(run["auto"], run["none"]) for run in runs.values() if run["auto"] and run["none"]]
    if not pairs:
        return []
    return [[network, traffic, len(pairs), absolute(stats.median([goodput(none) for _, none in pairs])),
             span([goodput(auto) / goodput(none) for auto, none in pairs]),
             span([slowdown(auto) / slowdown(none) for auto, none in pairs]), max(auto["throttles"] for auto, _ in pairs),
             max(auto["stamped"] for auto, _ in pairs)]]


def ratios(found, contender):
    """Goodput relative to none, of each seed."""
    return stats.ratios_of([goodput(f) for f in found[contender]], [goodput(f) for f in found["none"]])


def span(values):
    text = f"{stats.median(values):.3f}"
    return text if len(values) == 1 else f"{text} [{min(values):.3f}, {max(values):.3f}]"


def judge(out, where, row):
    """Within 5 % of the best of all others, and not below no pacing."""
    others = {c: v for c, v in row.items() if c not in AUTOS}
    best = max(others, key=lambda c: others[c]["goodput"])
    quick = min(others, key=lambda c: others[c]["slowdown_p99"])
    for name, title in AUTOS.items():
        auto = row[name]
        out.bar(f"{where}: {title} / the best goodput, {best}", auto["goodput"] / others[best]["goodput"], SHARE)
        out.bar(f"{where}: {title} / none, goodput", stats.median(auto["of_none"]), 1)
        out.bar(f"{where}: {title} / the least p99 slowdown, {quick}", auto["slowdown_p99"] / others[quick]["slowdown_p99"], 1 / SHARE,
                at_least=False)
