# SPDX-License-Identifier: BSD-3-Clause
"""Goodput through loss and reordering that uroce's own ports inject ([impair]), as samples.

Each end drops what arrives there, so every packet, data or ACK, can be lost once. A sample belongs to a
series: one path, operation, size and mode in one turn, in which the losses follow one another and the
lossless case comes twice. A sample's `base` is the mean of those two.
"""

from . import perf, stats
from .host import Failure

WARMUP_S = 0.2
DEPTH = 32


def keys(mode, loss=0.0, seed=1, reorder=0, side=0):
    """What an endpoint is told besides its file."""
    sets = [f"transport.mode={mode}", f"impair.seed={seed * 2 + side}"]
    if loss:
        sets.append(f"impair.rx_loss={loss:g}")
    if reorder:
        sets += [f"impair.rx_reorder={reorder}", "impair.rx_reorder_packets=64"]
    return sets


def both(mode, loss, seed):
    return tuple(keys(mode, loss, seed, side=side) for side in (0, 1))


def total(figures, name):
    return sum(figures[end]["counters"][name] for end in ("client", "server"))


def check_mode(figures, mode):
    if figures["qp_mode"] != mode:
        raise Failure(f"the queue pair is {figures['qp_mode']}, not {mode}")


def sample(figures):
    """Packets with payload count as sent again: of an extended READ its responses. There a READ asked for
    again, for the missing part alone, is to the responses what a NAK is to a WRITE; standard mode does not
    count responses that go again, so its figure is of requests."""
    responses = figures["op"] == "read" and figures["qp_mode"] == "extended"
    return {
        "gbps": figures["gbps"],
        "retransmitted": total(figures, "retransmitted_responses" if responses
                               else "retransmitted_packets"),
        "asked_again": total(figures, "retransmitted_packets") if responses else 0,
        "lost": total(figures, "impaired_lost"),
        "held": total(figures, "impaired_packets") - total(figures, "impaired_lost"),
        "missed": total(figures, "rx_missed"),
    }


def goodput(host, way, op, sizes, mode, seconds, sets):
    """A sample for each size. A queue pair that dies is a goodput of 0."""
    try:
        runs = perf.run(host, way, op, list(sizes), seconds, sets=sets, warmup=WARMUP_S,
                        more=["--depth", str(DEPTH)])
    except Failure as failure:
        if len(sizes) > 1:
            return [goodput(host, way, op, [size], mode, seconds, sets)[0] for size in sizes]
        return [{"gbps": 0.0, "retransmitted": 0, "lost": 0, "held": 0, "missed": 0,
                 "died": str(failure)}]
    for figures in runs:
        check_mode(figures, mode)
    return [sample(figures) for figures in runs]


def series(host, way, op, sizes, mode, losses, seconds, turn):
    """Samples of one turn."""
    order = [loss for loss in losses if loss]
    order = [0] + order[:len(order) // 2] + [0] + order[len(order) // 2:]
    if turn % 2:
        order.reverse()
    found = []
    for place, loss in enumerate(order):
        runs = goodput(host, way, op, sizes, mode, seconds, both(mode, loss, 100 * turn + place + 1))
        for size, one in zip(sizes, runs):
            found.append({"path": way.name, "op": op, "size": size, "mode": mode, "loss": loss,
                          "turn": turn, **one})
    for one in found:
        clean = [s["gbps"] for s in found if s["loss"] == 0 and s["size"] == one["size"]]
        if not min(clean):
            raise Failure(f"{way.name} {op} {mode} does not work without loss: "
                          f"{one.get('died', 'see the logs')}")
        one["base"] = sum(clean) / len(clean)
    return found


NEARLY_NONE = 0.0001  # percent: one packet of a million, but [impair] is at work


def pairs(host, way, size, mode, run, base, seconds, count):
    """What costs less than two runs of a turn differ by: `count` pairs of runs, each an (operation, loss),
    one right after the other; the ratios of their goodput. Drawing lots for each packet costs as much as a
    light loss itself, so it is done in either."""
    ratios = []
    for i in range(count):
        found = {}
        for one in (base, run) if i % 2 else (run, base):
            op, loss = one
            found[one] = goodput(host, way, op, [size], mode, seconds,
                                 both(mode, loss or NEARLY_NONE, 1000 + i))[0]["gbps"]
        if not found[base]:
            raise Failure(f"{way.name} {mode} does not work: {base[0]} at {base[1]:g} %")
        ratios.append(found[run] / found[base])
    return ratios


def pick(samples, **wanted):
    return [s for s in samples if all(s[key] == value for key, value in wanted.items())]


def relative(samples):
    """Median of goodput to the turn's lossless goodput."""
    return stats.median([s["gbps"] / s["base"] for s in samples])


def resent(samples):
    """Packets sent again for each packet lost, all samples together; NaN when too few were lost."""
    lost = sum(s["lost"] + s["missed"] for s in samples)
    return sum(s["retransmitted"] for s in samples) / lost if lost >= 100 else float("nan")


def between(samples, op, other):
    """Median over turns of the goodput of one operation to that of another."""
    ratios = []
    for one in samples:
        if one["op"] == op:
            same = pick(samples, op=other, **{k: one[k] for k in ("path", "size", "mode", "loss", "turn")})
            ratios += [one["gbps"] / (sum(s["gbps"] for s in same) / len(same))] \
                if same and sum(s["gbps"] for s in same) else []
    return stats.median(ratios)


def noise(samples):
    """How far two lossless runs of the same series are apart: median of |a/b - 1|."""
    groups = {}
    for s in pick(samples, loss=0):
        groups.setdefault(tuple(s[k] for k in ("path", "op", "size", "mode", "turn")), []).append(s["gbps"])
    return stats.median([abs(g[0] / g[1] - 1) for g in groups.values() if len(g) == 2])


def reordering(host, way, mode, size, seconds, turn):
    """One pair, without and with 10 % of the payload's packets overtaken by 64; no loss."""
    pair = []
    for percent in (0, 10):
        sets = (keys(mode, seed=turn + 1), keys(mode, seed=turn + 1, reorder=percent, side=1))
        pair.append(goodput(host, way, "write", [size], mode, seconds, sets)[0])
    return {"path": way.name, "mode": mode, "turn": turn, "base": pair[0]["gbps"], **pair[1]}


def latency(host, way, mode, size, loss, seconds, turn):
    """{"p50", "p999"}: half a round trip of a WRITE, us."""
    figures = perf.run(host, way, "write", size, seconds, mode="lat", sets=both(mode, loss, turn + 1),
                       warmup=WARMUP_S)
    check_mode(figures, mode)
    return {"p50": figures["lat_us"]["p50"], "p999": figures["lat_us"]["p999"]}
