# SPDX-License-Identifier: BSD-3-Clause
"""Goodput of 1 to 100 000 queue pairs through loss, in virtual time.

The shipped engine over the simulator (tests/sim/sim_scale.c), configured by default: 100 Gb/s, a round trip of
40 us, loss in both directions, one 64 KB message outstanding on each queue pair. Each cell runs with several
seeds, in a process of its own, one process for each CPU. The load of the machine changes how long this takes,
and no figure.

The ideal sender knows of a loss when the packet would have arrived, and sends it again one round trip after it
left. What it keeps of the goodput, and how long its messages take, are computed (ideal_*()).
"""

import concurrent.futures
import json
import subprocess

from lib import stats
from lib.host import Failure
from lib.report import Report

TITLE = "Goodput of many queue pairs through loss, in virtual time: 64 KB messages, 100 Gb/s, 40 us"
PROGRAMS = ["meson", "ninja"]
SIM = "tests/sim/sim_scale"
TARGETS = [SIM]
OPS = ("write", "send", "read")
LINE_GBPS, RTT_US, BYTES, MTU = 100, 40, 65536, 4096
# Queue pairs, messages outstanding on each, milliseconds measured, seeds. One message at a time does not fill
# the line; 32 do.
SIZES = ((1, 1, 200, 10), (1, 32, 100, 10), (1000, 1, 100, 10), (8000, 1, 100, 10), (100000, 1, 250, 2))
QUICK_SIZES = ((1, 1, 100, 2), (1, 32, 20, 2), (1000, 1, 20, 2), (8000, 1, 40, 1))
LOSSES = ((0.1, False), (1, False), (5, False), (0.1, True), (1, True), (5, True))
QUICK_LOSSES = ((1, False), (5, False), (1, True))
OTHER_MODES = ("gbn", "reorder")  # for comparison: WRITE, independent losses
OTHER_SIZES = ((1, 32), (1000, 1))

KEPT_BARS = {1: 0.95, 5: 0.80}
RESENT_BAR = 1.10
HOLE_BAR = 4096  # bytes of both ends for one open hole


def cell_of(qps, depth, op, mode, loss, bursts):
    return {"qps": qps, "depth": depth, "op": op, "mode": mode, "loss_percent": loss, "bursts": bursts}


def cells_of(quick):
    """[(cell, milliseconds, seeds)], the longest first, so that no CPU is idle at the end."""
    found = []
    for qps, depth, length, seeds in QUICK_SIZES if quick else SIZES:
        for op in OPS:
            found.append((cell_of(qps, depth, op, "extended", 0, False), length, 1))
            found += [(cell_of(qps, depth, op, "extended", *loss), length, seeds)
                      for loss in (QUICK_LOSSES if quick else LOSSES)]
        for mode in OTHER_MODES if (qps, depth) in OTHER_SIZES and not quick else ():
            found.append((cell_of(qps, depth, "write", mode, 0, False), length, 1))
            found += [(cell_of(qps, depth, "write", mode, loss, False), length, seeds) for loss in KEPT_BARS]
    return sorted(found, key=lambda entry: -entry[0]["qps"])


def simulate(host, cell, length, seed):
    argv = [str(host.binary(SIM)), "--op", cell["op"], "--mode", cell["mode"], "--qps", str(cell["qps"]),
            "--depth", str(cell["depth"]), "--loss", str(cell["loss_percent"]), "--run-ms", str(length),
            "--seed", str(seed)] + (["--bursts"] if cell["bursts"] else [])
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return json.loads(done.stdout)


def measure(host, cells, seeds_given, progress):
    """[(cell, [what each seed gave])] in the order of the tables."""
    jobs = [(i, seed) for i, (_cell, _length, seeds) in enumerate(cells)
            for seed in range(1, 1 + (min(seeds, seeds_given) if seeds_given else seeds))]
    found = [[] for _ in cells]
    with concurrent.futures.ThreadPoolExecutor(len(host.cpus)) as pool:
        running = {pool.submit(simulate, host, *cells[i][:2], seed): (i, seed) for i, seed in jobs}
        try:
            for n, done in enumerate(concurrent.futures.as_completed(running), 1):
                i, seed = running[done]
                found[i].append((seed, done.result()))
                progress(n, len(jobs), (f"{cells[i][0]['qps']} QPs", cells[i][0]["op"],
                                        loss_name(cells[i][0]), f"seed {seed}"))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    order = sorted(range(len(cells)), key=lambda i: (
        cells[i][0]["mode"] != "extended", cells[i][0]["mode"], cells[i][0]["qps"], cells[i][0]["depth"],
        OPS.index(cells[i][0]["op"]), cells[i][0]["bursts"], cells[i][0]["loss_percent"]))
    return [(cells[i][0], [result for _seed, result in sorted(found[i], key=lambda one: one[0])]) for i in order]


# ---- an ideal sender ----

def repairs(loss, share):
    """How often packets of a message are sent again one after the other, in `share` of the messages at most."""
    packets, times = BYTES // MTU, 0
    while (1 - loss ** (times + 1)) ** packets < share:
        times += 1
    return times


def ideal_kept(clean_gbps, clean_us, loss):
    """If the line is full it loses the share that is lost; else a message waits for each repair."""
    if clean_gbps > 0.9 * LINE_GBPS:
        return 1 - loss
    packets = BYTES // MTU
    mean = sum(1 - (1 - loss ** (k + 1)) ** packets for k in range(16))
    return clean_us / (clean_us + mean * RTT_US)


def ideal_us(clean_us, loss, share):
    return clean_us + RTT_US * repairs(loss, share)


# ---- results ----

def row_of(cell, results, clean):
    """Of several seeds: the median, or for what is counted the sum; `least` and `most` are the worst seeds."""
    loss = cell["loss_percent"] / 100
    kept = [one["goodput_gbps"] / clean["goodput_gbps"] for one in results]
    # With less than a hundred losses the ratio of one seed is chance.
    again = [one["resent"] / one["lost"] for one in results if one["lost"] >= 100]
    lost, resent = (sum(one[key] for one in results) for key in ("lost", "resent"))
    holes, state = (sum(one[key] for one in results) for key in ("holes", "state_bytes"))
    return {
        **cell, "seeds": len(results), "goodput_gbps": round(stats.median([r["goodput_gbps"] for r in results]), 3),
        "kept": round(stats.median(kept), 4), "kept_least": round(min(kept), 4),
        "kept_ideal": round(ideal_kept(clean["goodput_gbps"], clean["p50_us"], loss), 4),
        "lost": lost, "resent": resent, "resent_per_lost": round(resent / lost, 4) if lost else None,
        "resent_per_lost_most": round(max(again), 4) if again else None,
        "probes": sum(one["probes"] for one in results),
        "timeouts": sum(one["timeouts"] + one["ack_timeouts"] for one in results),
        "messages": sum(one["messages"] for one in results),
        "state_bytes_per_hole": round(state / holes) if holes else 0,
        "state_peak_bytes": max(one["state_peak_bytes"] for one in results),
        **{key: round(stats.median([one[key] for one in results]), 2) for key in ("p50_us", "p999_us")},
        "p50_ideal_us": round(ideal_us(clean["p50_us"], loss, 0.5), 2),
        "p999_ideal_us": round(ideal_us(clean["p999_us"], loss, 0.999), 2),
    }


def loss_name(cell):
    return f"{cell['loss_percent']:g} %{' bursts' if cell['bursts'] else ''}"


def size_name(cell):
    return f"{cell['qps']}{' x ' + str(cell['depth']) if cell['depth'] > 1 else ''}"


def mark(row):
    """What a row misses."""
    missed = []
    bar = KEPT_BARS.get(row["loss_percent"])
    if bar and row["kept_least"] < bar:
        missed.append(f"goodput < {bar:g}")
    if (row["resent_per_lost_most"] or row["resent_per_lost"] or 0) > RESENT_BAR:
        missed.append(f"resent > {RESENT_BAR:g}")
    return f"MISSED: {', '.join(missed)}" if missed and row["mode"] == "extended" else ""


class ScaleReport(Report):
    """A line for each cell: number of queue pairs, operation and loss."""

    def __init__(self, machine):
        super().__init__("scale", TITLE, machine)

    def print(self):
        print(f"\n{self.title}\nkept: of the goodput without loss, median of the seeds (worst); in each column the "
              "ideal sender's figure follows a slash")
        head = (f"{'QPs':>8} {'what':15} {'loss':12}{'Gb/s':>7} {'kept':>16} {'/':>6} {'resent/lost':>12} "
                f"{'probes':>8} {'timeouts':>8} {'B/hole':>7} {'peak MB':>8} {'p50 us':>9} {'/':>9} {'p99.9 us':>9} "
                f"{'/':>9}")
        print(head + "\n" + "-" * len(head))
        last = None
        for row in self.rows:
            group = row["qps"], row["depth"], row["op"], row["mode"]
            if last not in (None, group):
                print()
            last = group
            again = "" if row["resent_per_lost"] is None else f"{row['resent_per_lost']:.3f}"
            mode = "" if row["mode"] == "extended" else f" {row['mode']}"
            print(f"{size_name(row):>8} {row['op'].upper() + mode:15} {loss_name(row):12}{row['goodput_gbps']:7.2f} "
                  f"{row['kept']:8.3f} ({row['kept_least']:.3f}){row['kept_ideal']:7.3f} {again:>12} "
                  f"{row['probes']:8} {row['timeouts']:8} {row['state_bytes_per_hole']:7} "
                  f"{row['state_peak_bytes'] / 1e6:8.2f} {row['p50_us']:9.1f} {row['p50_ideal_us']:9.1f} "
                  f"{row['p999_us']:9.1f} {row['p999_ideal_us']:9.1f}  {mark(row)}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def fill(report, measured):
    clean = {(cell["qps"], cell["depth"], cell["op"], cell["mode"]): results[0]
             for cell, results in measured if not cell["loss_percent"]}
    for cell, results in measured:
        report.rows.append(row_of(cell, results, clean[cell["qps"], cell["depth"], cell["op"], cell["mode"]]))
    extended = [row for row in report.rows if row["mode"] == "extended"]
    for row in extended:
        bar = KEPT_BARS.get(row["loss_percent"])
        name = f"{size_name(row)} QPs, {row['op'].upper()}, {loss_name(row)}"
        if bar:
            ideal = f" (ideal {row['kept_ideal']:.2f})" if row["kept_ideal"] < bar else ""
            report.bar(f"{name}: goodput / no loss, worst seed{ideal}", row["kept_least"], bar)
        if row["lost"]:
            report.bar(f"{name}: resent / lost, worst seed",
                       row["resent_per_lost_most"] or row["resent_per_lost"], RESENT_BAR, at_least=False)
        else:
            report.bar(f"{name}: sent again without loss", row["resent"], 0, at_least=False)
    for size in sorted({(row["qps"], row["depth"]) for row in extended}):
        rows = [row for row in extended if (row["qps"], row["depth"]) == size]
        report.bar(f"{size_name(rows[0])} QPs: bytes of loss state for each open hole, worst cell",
                   max(row["state_bytes_per_hole"] for row in rows), HOLE_BAR, at_least=False)
    return report


def run(host, machine, options, progress):
    measured = measure(host, cells_of(options.quick), options.turns_given, progress)
    return fill(ScaleReport(machine), measured)
