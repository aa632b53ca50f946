# SPDX-License-Identifier: BSD-3-Clause
"""Samples of goodput under loss and reordering that uroce's own ports inject ([impair]).

Each end drops packets on arrival, so that every packet, data or ACK, can be lost once. A sample belongs to a
series: one path, operation, size and mode in one turn. A series contains all impairments, and the lossless
case twice; the `base` of its samples is the mean of these two. A run whose connection dies is a sample with a
goodput of 0 and is not repeated.
"""

from . import perf, stats
from .host import Failure

WARMUP_S = 0.2
DEPTH = 32
BURST_PACKETS = 8
FEWEST_LOST = 100  # packets; with fewer, no ratio is computed


def keys(mode, loss=0.0, seed=1, reorder=0, side=0, bursts=False):
    """Configuration keys of an endpoint in addition to its file. `loss` and `reorder` are in percent."""
    sets = [f"transport.mode={mode}", f"impair.seed={seed * 2 + side}"]
    if loss and bursts:
        share = loss / 100
        sets += [f"impair.rx_burst={100 * share / (1 - share) / BURST_PACKETS:.5f}",
                 f"impair.rx_burst_packets={BURST_PACKETS}"]
    elif loss:
        sets.append(f"impair.rx_loss={loss:g}")
    if reorder:
        sets += [f"impair.rx_reorder={reorder}", "impair.rx_reorder_packets=64"]
    return sets


def both(mode, loss, seed, bursts=False):
    return tuple(keys(mode, loss, seed, side=side, bursts=bursts) for side in (0, 1))


def check_mode(figures, mode):
    if figures["qp_mode"] != mode:
        raise Failure(f"the queue pair is {figures['qp_mode']}, not {mode}")


def sample(figures):
    """Counters of the direction of the payload: packets lost before the receiver, packets sent again by the
    sender. The sender of a READ is the responder; standard modes do not count its retransmitted responses."""
    read = figures["op"] == "read"
    sender, receiver = ("server", "client") if read else ("client", "server")
    out, into = figures[sender]["counters"], figures[receiver]["counters"]
    counted = not read or figures["qp_mode"] == "extended"
    return {
        "gbps": figures["gbps"],
        "retransmitted": out["retransmitted_responses" if read else "retransmitted_packets"] if counted else None,
        "lost": into["impaired_lost"] + into["rx_missed"],
        "held": into["impaired_packets"] - into["impaired_lost"],
        "timeouts": sum(figures[end]["counters"][name] for end in ("client", "server")
                        for name in ("rto", "local_ack_timeout_err")),
        "paused_ms": sum(figures[end]["paused_ms"] for end in ("client", "server")),
    }


def goodput(host, way, op, size, mode, seconds, sets, qps=1, depth=DEPTH):
    """One sample."""
    try:
        figures = perf.run(host, way, op, size, seconds, sets=sets, warmup=WARMUP_S,
                           more=["--depth", str(depth), "--qps", str(qps)])
    except Failure as failure:
        return {"gbps": 0.0, "retransmitted": None, "lost": 0, "held": 0, "timeouts": 0, "paused_ms": 0,
                "died": str(failure)}
    check_mode(figures, mode)
    return sample(figures)


def series(host, way, op, size, mode, impairments, seconds, turn, qps=1, depth=DEPTH):
    """Samples of one turn. `impairments`: (percent of loss, in bursts?), without (0, False)."""
    half = len(impairments) // 2
    order = [(0, False), *impairments[:half], (0, False), *impairments[half:]]
    if turn % 2:
        order.reverse()
    found = []
    for place, (loss, bursts) in enumerate(order):
        one = goodput(host, way, op, size, mode, seconds, both(mode, loss, 100 * turn + place + 1, bursts), qps, depth)
        found.append({"path": way.name, "op": op, "size": size, "mode": mode, "loss": loss, "bursts": bursts,
                      "qps": qps, "depth": depth, "turn": turn, **one})
    clean = [s["gbps"] for s in found if s["loss"] == 0]
    for one in found:
        one["base"] = sum(clean) / len(clean)
    return found


def timeouts(samples):
    """Of requesters and local ACK timeouts, over all samples."""
    return sum(s["timeouts"] for s in samples)


def unexplained_timeouts(samples):
    """The same, less those that a pause of an end explains. A timeout takes a millisecond at least, so n ms explain n at most."""
    return sum(max(0, s["timeouts"] - s["paused_ms"]) for s in samples)


def pick(samples, **wanted):
    return [s for s in samples if all(s[key] == value for key, value in wanted.items())]


def relatives(samples):
    """Goodput divided by the lossless goodput of the same turn, by turn; 0 for a connection that died."""
    return [s["gbps"] / s["base"] if s["base"] else 0.0 for s in samples]


def relative(samples):
    return stats.median(relatives(samples))


def resent(samples):
    """Packets sent again per packet lost, over all samples; None if too few were lost."""
    counted = [s for s in samples if s["retransmitted"] is not None]
    lost = sum(s["lost"] for s in counted)
    return sum(s["retransmitted"] for s in counted) / lost if lost >= FEWEST_LOST else None


def between(samples, op, other):
    """Goodput of one operation divided by that of another, by turn."""
    ratios = []
    for one in pick(samples, op=op):
        same = pick(samples, op=other, **{k: one[k] for k in ("path", "size", "mode", "loss", "bursts", "turn")})
        beside = sum(s["gbps"] for s in same) / len(same) if same else 0
        if beside:
            ratios.append(one["gbps"] / beside)
    return ratios


def noise(samples):
    """Difference between the two lossless runs of a series: the median of |a/b - 1|."""
    groups = {}
    for s in pick(samples, loss=0):
        groups.setdefault(tuple(s[k] for k in ("path", "op", "size", "mode", "turn")), []).append(s["gbps"])
    return stats.median([abs(g[0] / g[1] - 1) for g in groups.values() if len(g) == 2 and g[1]])


def reordering(host, way, mode, size, seconds, turn):
    """Two runs without loss: one without reordering, one in which 64 packets overtake each of 10 % of the
    data packets."""
    pair = []
    for percent in (0, 10):
        sets = (keys(mode, seed=turn + 1), keys(mode, seed=turn + 1, reorder=percent, side=1))
        pair.append(goodput(host, way, "write", size, mode, seconds, sets))
    return {"path": way.name, "mode": mode, "turn": turn, "base": pair[0]["gbps"], **pair[1]}


def latency(host, way, mode, size, loss, seconds, turn):
    """{"p50", "p999"} of half a round trip of a WRITE, us."""
    figures = perf.run(host, way, "write", size, seconds, mode="lat", sets=both(mode, loss, turn + 1),
                       warmup=WARMUP_S)
    check_mode(figures, mode)
    return {"p50": figures["lat_us"]["p50"], "p999": figures["lat_us"]["p999"]}
