# SPDX-License-Identifier: BSD-3-Clause
"""Congestion control by destination over real ports: one slow destination among healthy ones, and incast.

A Linux bridge joins the endpoints; the sender's link is [port] rate_gbps, the slow last link [impair]
rx_rate_gbps with a queue, both exact by time. Rates are such that the emulated links, not the CPUs, are the
limit. Senders share one process and receivers another.
"""

import json
import re
import threading
import time

from lib import star, stats, switched
from lib.host import ROOT, Failure
from lib.report import Report, gnuplot
from lib.watch import Watch

TITLE = "Pacing by destination"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "app/switch/uroce-switch"]
COLOURS = {"none": 0x777777, "cmdpd": 0xCC8822, "auto": 0x2266AA, "dcqcn": 0xAA3333, "swift": 0x339944}
OTHER_COLOUR = 0x883399

# One slow destination.
HEALTHY = 3
LINK_GBPS = 1.0
SLOW_GBPS = LINK_GBPS / (HEALTHY + 1) / 10
QPS, SIZE, DEPTH = 64, 16384, 1  # to each destination; 1 MiB is on its way at most
SLOW_QUEUE_KB, SLOW_ECN_KB = 2048, 32
INIT0, INIT1 = (6, 8, 10, 15), (10, 12, 14, 16, 18, 20, 25, 30, 35, 40)

# Incast.
SENDERS = 16
RECEIVER_GBPS = 0.5
INCAST_QPS, INCAST_SIZE, INCAST_DEPTH = 4, 16384, 2
INCAST_QUEUE_KB, INCAST_ECN_KB = 1024, 128

# Over uroce-switch: the slow link is a port of the switch, so the queue is in it, and it stamps.
SWITCH_MODES = ("auto", "swift")
DELAYS = {"network delays": "auto", "round trips": "round_trip"}
SWITCH_SAMPLE_S = 0.05

KEEP_BAR = 0.95
QUEUE_BAR = 5
GOODPUT_BAR = 0.90

COMMON = {"eal": {"memory_mb": 384}, "worker": {"mode": "inline", "thread_safe": "no"},
          "transport": {"path_mtu": 4096, "window": 64, "max_qp": 512, "reorder_slots": 64}}
SWIFT_TARGET_US = 5000  # more than a packet takes on the slow link, 1.3 ms, and than processes that share CPUs wait
WATCH_S = 0.02
SET_UP_BYTES = 131072  # connections take less
SETTLE_S = 0.3
GRID_SETTLE_S = SLOW_QUEUE_KB * 8192 / (SLOW_GBPS * 1e9)  # a full queue drains in so long
CLIENT, SERVER = 0, 1  # sides
TIMEOUT = 18  # 1 s: longer than the queue that none makes, else it dies of retries


def algorithms():
    """Their names, in the order of the list that everything else is made from."""
    return re.findall(r"X\(\w+, (\w+), ", (ROOT / "include/uroce/pacing_modes.h").read_text())


def sections(**more):
    return {name: {**COMMON.get(name, {}), **more.get(name, {})} for name in {**COMMON, **more}}


def pacing_keys(mode):
    """"auto", or "cmdpd mean 8 16"."""
    words = mode.split()
    keys = {"mode": words[0]}
    if words[0] == "swift":
        keys["target_us"] = SWIFT_TARGET_US
    if len(words) > 1:
        keys.update(average=words[1], init0=words[2], init1=words[3])
    return keys


class Network:
    """Endpoints on a bridge: the servers stay for all runs, a client comes for each."""

    def __init__(self, host, senders, receivers, link_gbps, slow):
        """slow: keys of [impair] of the last receiver."""
        self.host = host
        self.senders, self.link_gbps = senders, link_gbps
        self.peers = range(senders, senders + receivers)
        self.star = star.Star(host, [senders, receivers])
        files = [self.star.conf(i, "server", sections(
            port={"framecnt": 1024, "mbufs": 4095},
            impair=slow if i == self.peers[-1] else {})) for i in self.peers]
        self.server = self.start("server", files, SERVER)
        self.slow = f"/uroce{receivers - 1 or ''}/impair"
        self.server.wait_for("listening")

    def start(self, role, files, side, more=()):
        argv = self.star.inside(side) + [self.host.binary("app/perf/uroce-perf"), role]
        for file in files:
            argv += ["--config", file]
        return self.host.start(f"uroce-perf-{role}", argv + list(more), self.host.cpu(side))

    def run(self, mode, peers, qps, size, depth, seconds, settle=SETTLE_S):
        """Facts of one run towards `peers`, numbers of receivers."""
        result = self.host.tmp / "perf.json"
        result.unlink(missing_ok=True)
        files = [self.star.conf(i, "client", sections(
            port={"rate_gbps": self.link_gbps, "framecnt": 256, "mbufs": 2047},
            pacing=pacing_keys(mode))) for i in range(self.senders)]
        watch = Watch(self.server, self.slow, WATCH_S)
        addresses = [self.star.address(self.peers[p]) for p in peers]
        client = self.start("client", files, CLIENT, [
            "--peer", ",".join(addresses), "--qps", qps, "--size", size, "--depth", depth,
            "--timeout", TIMEOUT, "--warmup", settle, "--duration", seconds, "--json", result])
        try:
            client.wait(seconds + 60)
        finally:
            client.stop()
            samples = watch.stop()
        figures = json.loads(result.read_text())
        if figures["errors"]:
            raise Failure(f"uroce-perf counts {figures['errors']} errors with {mode}")
        return {"mode": mode, "figures": figures, "link": link_facts(samples, settle, seconds)}


def link_facts(samples, settle, seconds):
    """Of the slow link: its queue in the measured seconds and over time, drops over the whole run."""
    first = samples[0][1]["rx0"]
    begin = next((t for t, s in samples if s["rx0"]["link_bytes"] > first["link_bytes"] + SET_UP_BYTES), None)
    if begin is None:
        return {"packets": 0, "wait_ms": 0.0, "peak_ms": 0.0, "drop_share": 0.0, "marks": 0, "series": []}
    series = []
    for (_, a), (t, b) in zip(samples, samples[1:]):
        a, b = a["rx0"], b["rx0"]
        packets = b["link_packets"] - a["link_packets"]
        if packets:
            series.append((t - begin, (b["link_wait_ns"] - a["link_wait_ns"]) / 1e6, packets))
    inside = [s for s in series if settle < s[0] <= settle + seconds]
    packets = sum(s[2] for s in inside)
    last = samples[-1][1]["rx0"]
    dropped = last["link_dropped"] + last["overflow"] - first["link_dropped"] - first["overflow"]
    carried = last["link_packets"] - first["link_packets"]
    return {"packets": packets, "wait_ms": sum(s[1] for s in inside) / packets if packets else 0.0,
            "peak_ms": max((s[1] / s[2] for s in inside), default=0.0),
            "drop_share": dropped / (dropped + carried) if carried else 0.0, "drops": dropped,
            "marks": last["link_marked"] - first["link_marked"],
            "series": [(round(t, 3), round(wait / n, 4)) for t, wait, n in series]}


# ---- one slow destination ----

def slow_network(host):
    return Network(host, 1, HEALTHY + 1, LINK_GBPS,
                   {"rx_rate_gbps": SLOW_GBPS, "rx_queue_kb": SLOW_QUEUE_KB, "rx_ecn_kb": SLOW_ECN_KB})


def slow_run(network, mode, seconds, settle=SETTLE_S):
    senders = range(HEALTHY + 1)
    found = network.run("none" if mode == "alone" else mode, senders[:-1] if mode == "alone" else senders,
                        QPS, SIZE, DEPTH, seconds, settle)
    peers = found["figures"]["peers"]
    return {"mode": mode, "healthy": sum(p["gbps"] for p in peers[:HEALTHY]),
            "least": min(p["gbps"] for p in peers[:HEALTHY]),
            "slow": 0.0 if mode == "alone" else peers[-1]["gbps"],
            "resent": found["figures"]["client"]["counters"]["retransmitted_packets"], **found["link"]}


def slow_destination(host, plan, progress):
    """[{mode: facts}], a turn each, and the grid's facts."""
    network = slow_network(host)
    turns = []
    for turn in range(plan["turns"]):
        order = ["alone", *plan["modes"]]
        found = {}
        for mode in order if turn % 2 == 0 else reversed(order):
            progress(turn + 1, plan["turns"], ("slow destination", mode))
            found[mode] = slow_run(network, mode, plan["seconds"])
        for mode in plan["modes"]:
            found[mode]["keep"] = found[mode]["healthy"] / found["alone"]["healthy"]
        turns.append(found)
    grid = []
    for average, init0, init1 in plan["grid"]:
        progress(1, 1, ("cmdpd", average, str(init0), str(init1)))
        one = slow_run(network, f"cmdpd {average} {init0} {init1}", plan["grid_seconds"],
                       GRID_SETTLE_S)
        grid.append({"average": average, "init0": init0, "init1": init1,
                     **{k: one[k] for k in ("healthy", "slow", "packets", "wait_ms", "drop_share", "resent")}})
    network.server.stop()
    network.star.close()
    return turns, grid


# ---- incast ----

def incast(host, plan, progress):
    network = Network(host, SENDERS, 1, LINK_GBPS,
                      {"rx_rate_gbps": RECEIVER_GBPS, "rx_queue_kb": INCAST_QUEUE_KB,
                       "rx_ecn_kb": INCAST_ECN_KB})
    turns = []
    for turn in range(plan["turns"]):
        order = [m for m in plan["modes"] if not m.startswith("cmdpd")]
        found = {}
        for mode in order if turn % 2 == 0 else reversed(order):
            progress(turn + 1, plan["turns"], ("incast", mode))
            one = network.run(mode, [0], INCAST_QPS, INCAST_SIZE, INCAST_DEPTH, plan["seconds"])
            figures = one["figures"]
            shares = [p["gbps"] for p in figures["peers"]]
            found[mode] = {"gbps": figures["gbps"], "p50_ms": figures["lat_us"]["p50"] / 1e3,
                           "p99_ms": figures["lat_us"]["p99"] / 1e3,
                           "jain": sum(shares) ** 2 / len(shares) / sum(s * s for s in shares),
                           "resent": figures["client"]["counters"]["retransmitted_packets"], **one["link"]}
        turns.append(found)
    network.server.stop()
    network.star.close()
    return turns


# ---- over uroce-switch ----

class SwitchQueue:
    """Samples the queue of one port while a run lasts."""

    def __init__(self, middle, port):
        self.middle, self.port, self.found = middle, port, []
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.end.wait(SWITCH_SAMPLE_S):
            now = self.middle.stats()
            if now:
                queued = sum(lane["queued_bytes"] for lane in now["ports"][self.port]["lanes"])
                self.found.append((time.monotonic(), queued * 8 / SLOW_GBPS / 1e6))

    def stop(self, seconds):
        """Milliseconds, of the last `seconds`."""
        self.end.set()
        self.thread.join()
        last = self.found[-1][0] if self.found else 0
        return [ms for at, ms in self.found if at > last - seconds]


def switch_run(host, middle, mode, delay, seconds):
    """One slow destination behind uroce-switch, with one source of delays."""
    senders = range(HEALTHY + 1)
    common = {**COMMON, "transport": {**COMMON["transport"], "mode": "extended"}}
    conf = [middle.conf(i, "end", {**common, "port": {"framecnt": 1024, "mbufs": 4095,
                                                      **({"rate_gbps": LINK_GBPS} if i == 0 else {})},
                                   **({"pacing": {**pacing_keys(mode), "delay": delay}} if i == 0 else {})})
            for i in range(HEALTHY + 2)]
    result = host.tmp / "perf.json"
    result.unlink(missing_ok=True)

    def start(role, files, side, more=()):
        argv = middle.inside(side) + [host.binary("app/perf/uroce-perf"), role]
        for file in files:
            argv += ["--config", file]
        return host.start(f"uroce-perf-{role}", [*argv, *more], host.cpu(side))

    server = start("server", conf[1:], SERVER)
    try:
        server.wait_for("listening")
        queue = SwitchQueue(middle, HEALTHY + 2)
        client = start("client", conf[:1], CLIENT, [
            "--peer", ",".join(middle.address(1 + p) for p in senders), "--qps", QPS, "--size", SIZE, "--depth", DEPTH,
            "--timeout", TIMEOUT, "--warmup", SETTLE_S, "--duration", seconds, "--json", result])
        try:
            client.wait(seconds + 60)
        finally:
            client.stop()
            samples = queue.stop(seconds)
    finally:
        server.stop()
    figures = json.loads(result.read_text())
    if figures["errors"]:
        raise Failure(f"uroce-perf counts {figures['errors']} errors with {mode}, {delay}")
    counters = figures["client"]["counters"]
    return {"healthy": sum(p["gbps"] for p in figures["peers"][:HEALTHY]), "slow": figures["peers"][-1]["gbps"],
            "wait_ms": stats.median(samples) if samples else 0.0, "peak_ms": max(samples, default=0.0),
            "stamped": figures["pacing"]["net_samples"], "blocked": figures["pacing"]["net_blocked"],
            "resent": counters["retransmitted_packets"]}


def over_switch(host, plan, progress):
    """[{"auto, network delays": facts}], a turn each."""
    middle = switched.SwitchedStar(host, [1, HEALTHY + 1], {HEALTHY + 1: f"rate={SLOW_GBPS:g}"})
    middle.start_switch()
    turns = []
    names = [(f"{mode}, {source}", mode, delay) for mode in SWITCH_MODES for source, delay in DELAYS.items()]
    for turn in range(plan["turns"]):
        found = {}
        for name, mode, delay in names if turn % 2 == 0 else reversed(names):
            progress(turn + 1, plan["turns"], ("over uroce-switch", name))
            found[name] = switch_run(host, middle, mode, delay, plan["seconds"])
        turns.append(found)
    middle.stop_switch()
    middle.close()
    return turns, [name for name, _, _ in names]


def fill_switch(report, turns, names):
    report.block(
        f"over uroce-switch: the same with the slow link at a port of {SLOW_GBPS:g} Gb/s, extended mode; queue of that port by "
        "its samples",
        {"healthy": "healthy Gb/s", "slow": "slow Gb/s", "wait_ms": "queue ms", "peak_ms": "peak ms", "stamped": "stamped delays", "blocked": "asks blocked", "resent": "sent again"},
        turns, names)
    report.bar("over uroce-switch: stamped delays that were used, fewest of the runs with network delays",
               min(t[n]["stamped"] for t in turns for n in names if "network" in n), 10)
    report.bar("over uroce-switch: stamped delays in runs with round trips",
               max(t[n]["stamped"] for t in turns for n in names if "network" not in n), 0, at_least=False)
    report.extra = {**report.extra, "over_switch": turns}


# ---- what came out ----

class PacingReport(Report):
    def __init__(self, machine):
        super().__init__("pacing", TITLE, machine)
        self.blocks = []  # heading, column names, [(name, cells)]

    def block(self, title, columns, turns, modes):
        """Medians over turns of columns {key: heading} for each mode."""
        lines = []
        for mode in modes:
            cells = {key: stats.median([t[mode][key] for t in turns]) for key in columns
                     if all(key in t[mode] for t in turns)}
            lines.append((mode, cells))
            self.rows.append({"what": title.split(":", maxsplit=1)[0], "mode": mode,
                              **{k: round(v, 5) for k, v in cells.items()},
                              "turns": [{k: round(t[mode][k], 5) for k in cells} for t in turns]})
        self.blocks.append((title, columns, lines))

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        for title, columns, lines in self.blocks:
            print(f"\n{title}")
            head = f"{'mode':20}" + "".join(f"{heading:>15}" for heading in columns.values())
            print(head + "\n" + "-" * len(head))
            for mode, cells in lines:
                print(f"{mode:20}" + "".join(f"{cells[key]:15.4f}" if key in cells else f"{'':15}"
                                             for key in columns))
        print()
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def plan_of(options):
    grid = [(average, i0, i1) for average in ("mean", "ewma") for i0 in INIT0 for i1 in INIT1 if i0 < i1]
    plan = {"turns": options.turns_given or 3, "seconds": options.seconds_given or 1.5,
            "modes": [*(m for m in algorithms() if m != "cmdpd"), "cmdpd mean 8 16", "cmdpd ewma 8 16"],
            "grid": grid, "grid_seconds": 1.0}
    if options.quick:
        plan.update(turns=options.turns_given or 1, seconds=options.seconds_given or 1.0,
                    grid=[g for g in grid if g[1] in (6, 15) and g[2] in (16, 40)])
    return plan


def run(host, machine, options, progress):
    plan = plan_of(options)
    report = PacingReport(machine)
    began = time.monotonic()
    if options.switch:
        fill_switch(report, *over_switch(host, plan, progress))
        return report
    slow, grid = slow_destination(host, plan, progress)
    many = incast(host, plan, progress)
    fill(report, plan, slow, grid, many)
    fill_switch(report, *over_switch(host, plan, progress))
    report.notes.append(f"measured in {time.monotonic() - began:.0f} s")
    plot(slow[0], many[0])
    return report


def fill(report, plan, slow, grid, many):
    report.block(
        f"slow destination: {QPS} QPs to each of {HEALTHY + 1}, sender {LINK_GBPS:g} Gb/s, the last one's "
        f"link {SLOW_GBPS:g} Gb/s; Gb/s of payload, ms, packets",
        {"healthy": "healthy Gb/s", "least": "least of them", "keep": "of alone", "slow": "slow Gb/s",
         "wait_ms": "queue ms", "peak_ms": "peak ms", "drops": "dropped", "resent": "sent again"},
        slow, ["alone", *plan["modes"]])
    report.block(
        f"incast: {SENDERS} senders of {LINK_GBPS:g} Gb/s, {INCAST_QPS} QPs each, to {RECEIVER_GBPS:g} Gb/s with "
        f"{INCAST_QUEUE_KB} KiB of queue",
        {"gbps": "Gb/s", "drop_share": "loss", "drops": "dropped", "resent": "sent again", "wait_ms": "queue ms",
         "p50_ms": "p50 ms", "p99_ms": "p99 ms", "jain": "Jain"},
        many, [m for m in plan["modes"] if not m.startswith("cmdpd")])
    report.notes.append(
        "of alone: the healthy ones' goodput / what they have where the slow one is absent; queue: mean and "
        f"largest mean of 20 ms; the grid settles for {GRID_SETTLE_S:.2f} s, in which a full queue drains")
    for average in ("mean", "ewma"):
        here = [g for g in grid if g["average"] == average and g["packets"]]
        if here:
            report.notes.append(grid_line(average, here, stats.median([t["none"]["wait_ms"] for t in slow])))
    report.extra = {"grid": grid, "slow": slow, "incast": many}
    bars(report, slow)


def grid_line(average, here, none_ms):
    best, worst = (f(here, key=lambda g: g["wait_ms"]) for f in (min, max))
    least = min(here, key=lambda g: g["healthy"])
    return (f"cmdpd {average}, {len(here)} pairs of init0, init1: queue {best['wait_ms']:.1f} ms "
            f"({best['init0']}, {best['init1']}) to {worst['wait_ms']:.1f} ms ({worst['init0']}, "
            f"{worst['init1']}), none has {none_ms:.1f}; healthy at least {least['healthy']:.3f} Gb/s "
            f"({least['init0']}, {least['init1']}); slow {min(g['slow'] for g in here):.4f} to "
            f"{max(g['slow'] for g in here):.4f} Gb/s")


def bars(report, slow):
    report.bar("auto: healthy destinations / slow one absent", [t["auto"]["keep"] for t in slow], KEEP_BAR)
    report.bar("slow destination's queue, none / auto",
               [t["none"]["wait_ms"] / max(t["auto"]["wait_ms"], 1e-6) for t in slow], QUEUE_BAR)
    report.bar("slow destination's goodput, auto / none",
               [t["auto"]["slow"] / t["none"]["slow"] for t in slow], GOODPUT_BAR)


def plot(slow, many):
    """results/pacing.svg: the two queues over time."""
    out = ROOT / "results" / "pacing.svg"
    out.parent.mkdir(exist_ok=True)
    script = ["set terminal svg noenhanced size 1000,400 font 'sans,12' background 'white'", f"set output '{out}'",
              "set multiplot layout 1,2", "set logscale y", "set grid", "set key top right",
              "set xlabel 's'", "set ylabel 'queue at the slow link, ms'"]
    for n, (title, found) in enumerate((("one slow destination of four", slow),
                                        (f"incast of {SENDERS}", many))):
        parts = []
        for i, (mode, facts) in enumerate((m, f) for m, f in found.items() if f["series"]):
            script += [f"$d{n}{i} << EOD", *(f"{t} {max(ms, 1e-3)}" for t, ms in facts["series"]), "EOD"]
            dash = 2 if "ewma" in mode else 1
            parts.append(f"$d{n}{i} using 1:2 with lines lw 2 dt {dash} lc rgb {COLOURS.get(mode.split()[0], OTHER_COLOUR)} "
                         f"title '{mode}'")
        if parts:
            script += [f"set title '{title}'", "plot " + ", ".join(parts)]
    return out if gnuplot("\n".join(script + ["unset multiplot"])) else None
