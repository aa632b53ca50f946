# SPDX-License-Identifier: BSD-3-Clause
"""AUTO beside all other kinds of congestion control in every pattern and topology: goodput, and the 99th percentile of slowdown (the
time of a message divided by its time in the idle network). Delays are those of shipped endpoints and switches."""

from . import fabric_paper, stats

NAME = "rivals"
NETWORKS = {size: {"tree": nets["tree"], "dragonfly": nets["dragonfly"], "dragonfly ugal": {**nets["dragonfly"], "routing": "ugal"}}
            for size, nets in fabric_paper.NETWORKS.items()}
COLLECTIVE = {"slots": 4, "message": 16384}
# Messages of 30 MB among those of web search: a longer run, and time for the rest to complete.
POISSON = {"run": 500_000, "warm": 100_000, "drain": 2_000_000, "load": 50}
TRAFFIC = {"incast": {}, "permutation": {}, "hot_node": {}, "alltoall_round_robin": {}, "uniform_random": {},
           "uniform_random_seq_gen": {}, "ring_allreduce": COLLECTIVE, "tree_allreduce": COLLECTIVE, "storage": POISSON,
           "hadoop": POISSON, "websearch": POISSON}
# Marks at 16 KB, which is the room of an input; Swift's target: an idle round trip of 1 us, and two more for queues.
CONTENDERS = {"none": {}, "auto": {}, "auto, round trips": {"pacing": "auto", "source": "round_trip"}, "swift": {"target": 3000},
              "dcqcn": {"ecn": 16384}, "cmdpd": {"init0": 8, "init1": 16}}
AUTOS = {"auto": "AUTO", "auto, round trips": "AUTO by round trips"}  # as shipped, and with [pacing] delay = round_trip
SHARE = 0.95


def words(size, network, traffic, contender, seed):
    return {**NETWORKS[size][network], **fabric_paper.TIMES[size], "seed": seed, "pattern": traffic, **TRAFFIC[traffic],
            "pacing": contender, "source": "stamps", **CONTENDERS[contender]}


def check(found):
    return "something was lost on links with credits" if found["errors"] or found["dropped"] else None


def plan(size, seeds):
    for seed in seeds:
        for traffic in TRAFFIC:
            for network in NETWORKS[size]:
                for contender in CONTENDERS:
                    yield words(size, network, traffic, contender, seed)


def slowdown(found):
    """The 99th percentile. Without any message: infinite."""
    return found["slowdown_1000"]["p99"] / 1000 if found["slowdown_1000"]["count"] else float("inf")


def report(out, cells, size, seeds):
    lines, rows = [], []
    for network in NETWORKS[size]:
        for traffic in TRAFFIC:
            found = {c: [f for f in (cells.known(words(size, network, traffic, c, s)) for s in seeds) if f] for c in CONTENDERS}
            if not all(found.values()):
                continue
            row = {c: {"gbps": stats.median([f["gbps"] for f in fs]), "slowdown_p99": stats.median([slowdown(f) for f in fs]),
                       "jain": stats.median([f["jain_sent"] for f in fs]), "throttles": max(f["throttles"] for f in fs),
                       "unfinished": max(f["unfinished"] for f in fs)} for c, fs in found.items()}
            rows.append({"part": NAME, "network": network, "traffic": traffic, **row})
            lines.append([network, traffic, f"{row['none']['gbps']:.0f}",
                          *(f"{row[c]['gbps'] / row['none']['gbps']:.3f}" for c in CONTENDERS if c != "none"),
                          *(f"{row[c]['slowdown_p99']:.1f}" for c in CONTENDERS), row["auto"]["throttles"]])
            judge(out, f"{network}, {traffic}", row)
    out.rows += rows
    others = [c for c in CONTENDERS if c != "none"]
    out.table("Goodput relative to none, and p99 slowdown", ["network", "traffic", "none, Gb/s", *others,
                                                            *(f"{c} p99" for c in CONTENDERS), "auto throttles"], lines)


def judge(out, where, row):
    """Within 5 % of the best of all others, and not below no pacing."""
    others = {c: v for c, v in row.items() if c not in AUTOS}
    best = max(others, key=lambda c: others[c]["gbps"])
    quick = min(others, key=lambda c: others[c]["slowdown_p99"])
    for name, title in AUTOS.items():
        auto = row[name]
        out.bar(f"{where}: {title} / the best goodput, {best}", auto["gbps"] / others[best]["gbps"], SHARE)
        out.bar(f"{where}: {title} / none, goodput", auto["gbps"] / row["none"]["gbps"], 1)
        out.bar(f"{where}: {title} / the least p99 slowdown, {quick}", auto["slowdown_p99"] / others[quick]["slowdown_p99"], 1 / SHARE,
                at_least=False)
