# SPDX-License-Identifier: BSD-3-Clause
"""Many queue pairs overload one SRQ. Measured in each mode of [admission]: the number of refused requests,
and how fairly and how soon each queue pair is served. First with the queue pairs of one peer, over memif; then
with those of several peers, each with its own interface and address on a Linux bridge. The peers are endpoints
of one process, because many processes on few CPUs would measure the kernel's scheduler.

The server handles one message in SERVICE_US and then posts its receive again. A queue pair has one message
outstanding and pauses for senders * SERVICE_US / load between two messages. Without waiting, all of them
together would request `load` times the service rate. The RNR timer is 10 us; plain, which has nothing else to
limit refusals, is also measured with longer timers. A figure is the median over the turns, and a bar applies to
the worst cell.
"""

import json
import os

from lib import paths, perf, star, stats, switched
from lib.host import ROOT, Failure
from lib.report import Report, gnuplot

TITLE = "Admission to an SRQ that is overrun: one peer over memif, several on a bridge"
SWITCH_TITLE = "Admission to an SRQ that is overrun: several peers over uroce-switch, with and without waiting at the first hop"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "app/switch/uroce-switch"]
MODES = ("plain", "plain 0.64 ms", "plain 5 ms", "ab", "paper", "intelligent")
RNR_TIMERS = {"plain 0.64 ms": 12, "plain 5 ms": 18}  # codes; of the others 10 us
PLAINS = tuple(mode for mode in MODES if mode.startswith("plain"))
SENDERS = (2, 8, 32, 64)
LOADS = (1.2, 2, 4)
SERVICE_US = 100
RECEIVES = 4
TURNS, SECONDS, WARMUP = 2, 0.8, 0.3

PEERS = (8, 16, 32)
PEER_QPS = 4
PEER_LOADS = (2, 4)
PEER_MODES = ("plain", "ab", "paper", "intelligent")
PEER_SERVICE_US = 200
SWITCH_PEERS = (4, 16)
SWITCH_MODES = ("paper", "intelligent")
PEER_TIMEOUT = 18  # 1 s: no process is off the CPU for that long
PEER_COMMON = {"eal": {"memory_mb": 640}, "worker": {"mode": "inline", "thread_safe": "no"},
               "transport": {"mode": "extended", "path_mtu": 4096, "max_qp": 512}}

WASTE = 10  # refusals per service in plain from which the bars on refusals apply; one is the minimum
WASTE_BAR = 0.10
JAIN_BAR = 0.95
MEAN_BAR = 1.05
COLOURS = {"plain": 0xAA3333, "plain 0.64 ms": 0xCC6666, "plain 5 ms": 0xDD9999, "ab": 0xCC8822,
           "paper": 0x44884A, "intelligent": 0x2266AA}


class AdmissionReport(Report):
    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = (f"{'peers':>5} {'senders':>7} {'load':>5} {'mode':14} {'refused/service':>15} {'of plain':>8} {'Jain':>7} "
                f"{'mean us':>9} {'p99.9 us':>9} {'worst us':>9}")
        print(head + "\n" + "-" * len(head))
        last = None
        for row in self.rows:
            key = (row["peers"], row["senders"], row["load"])
            if last is not None and key != last:
                print()
            last = key
            print(f"{row['peers']:5} {row['senders']:7} {row['load']:5g} {row['mode']:14} {row['refused']:15.3f} "
                  f"{row['of_plain']:8.3f} {row['jain']:7.4f} {row['mean_us']:9.0f} {row['p999_us']:9.0f} "
                  f"{row['worst_us']:9.0f}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()


def one(host, path, mode, senders, load, seconds):
    think = round(senders * SERVICE_US / load)
    sets = [f"admission.mode={mode.split()[0]}", "transport.mode=extended"]
    result = perf.run(host, path, "send", 64, seconds, warmup=WARMUP, sets=(sets, sets), more=[
        "--qps", str(senders), "--depth", "1", "--signal-every", "1", "--srq", "--receives", str(RECEIVES),
        "--service-us", str(SERVICE_US), "--think-us", str(think),
        "--min-rnr-timer", str(RNR_TIMERS.get(mode, 1))])
    return facts(result, senders, think)


def facts(result, senders, think):
    served = result["client"]["ops"]
    return {
        "refused": result["server"]["counters"]["rnr_nak_sent"] / served,
        "jain": result["fairness"]["jain"],
        "served_per_s": served / result["duration_s"],
        # Little's law: a client that is not pausing is waiting.
        "mean_us": senders * result["duration_s"] * 1e6 / served - think,
        "p999_us": result["lat_us"]["p999"],
        "worst_us": result["lat_us"]["max"],
    }


class Crowd:
    """Peers and a server on a bridge. Process 0 runs the peers, process 1 the server."""

    def __init__(self, host, most, kind=star.Star):
        self.host, self.most = host, most
        self.star = kind(host, [most, 1])

    def start(self, role, files, side, more):
        argv = self.star.inside(side) + [self.host.binary("app/perf/uroce-perf"), role]
        for file in files:
            argv += ["--config", file]
        return self.host.start(f"uroce-perf-{role}", argv + more, self.host.cpu(side))

    def one(self, mode, peers, load, seconds):
        senders = peers * PEER_QPS
        think = round(senders * PEER_SERVICE_US / load)
        common = {**PEER_COMMON, "admission": {"mode": mode}}
        result = self.host.tmp / "perf.json"
        result.unlink(missing_ok=True)
        files = [self.star.conf(i, "client", {**common, "port": {"framecnt": 256, "mbufs": 2047}})
                 for i in range(peers)]
        there = self.star.conf(self.most, "server", {**common, "port": {"framecnt": 1024, "mbufs": 4095}})
        server = self.start("server", [there], 1, ["--shared-srq"])
        try:
            server.wait_for("listening")
            client = self.start("client", files, 0, [
                "--peer", self.star.address(self.most), "--op", "send", "--size", "64", "--qps", PEER_QPS,
                "--depth", "1", "--signal-every", "1", "--srq", "--receives", RECEIVES, "--service-us",
                PEER_SERVICE_US, "--think-us", think, "--min-rnr-timer", "1", "--timeout", PEER_TIMEOUT,
                "--warmup", WARMUP, "--duration", seconds, "--json", result])
            try:
                client.wait(seconds + 60)
            finally:
                client.stop()
        finally:
            server.stop()
        figures = json.loads(result.read_text())
        if figures["errors"]:
            raise Failure(f"uroce-perf counts {figures['errors']} errors with {peers} peers in mode {mode}")
        return facts(figures, senders, think)

    def close(self):
        self.star.close()


def over_switch(host, options, turns, seconds, progress):
    """The same over uroce-switch: what waiting at the first hop gains. [row]"""
    counts = SWITCH_PEERS[:1] if options.quick else SWITCH_PEERS
    crowd = Crowd(host, max(counts), switched.SwitchedStar)
    found = {}
    for turn in range(turns):
        for peers in counts:
            for load in PEER_LOADS:
                for mode in SWITCH_MODES:
                    for hold in ("off", "hold") if turn % 2 == 0 else ("hold", "off"):
                        name = mode if hold == "off" else f"{mode}, hold"
                        progress(turn + 1, turns, (f"{peers} peers", f"{load:g}", name))
                        crowd.star.start_switch(f"forwarding.admission={hold}")
                        try:
                            cell = crowd.one(mode, peers, load, seconds)
                        finally:
                            ports = (crowd.star.stop_switch() or {"ports": []})["ports"]
                        cell["held"] = sum(p["held"] for p in ports)
                        cell["late"] = sum(p["held_late"] for p in ports)
                        cell["dropped"] = sum(sum(lane["drops"].values()) for p in ports for lane in p["lanes"])
                        found.setdefault((peers, peers * PEER_QPS, load, name), []).append(cell)
    crowd.close()
    return rows_of(found, [m for mode in SWITCH_MODES for m in (mode, f"{mode}, hold")])


def judge_switch(report, rows):
    """Figures, not bars: how much the hold gains depends on how long a request waits compared with half a millisecond."""
    for mode in SWITCH_MODES:
        held = [r for r in rows if r["mode"] == f"{mode}, hold"]
        none = [r for r in rows if r["mode"] == mode]
        for name, key in (("refused a service", "refused"), ("mean time to service", "mean_us"),
                          ("worst time to service", "worst_us")):
            report.bar(f"over uroce-switch, {mode}: {name}, hold, of none, worst cell",
                       max(h[key] / max(n[key], 1e-9) for h, n in zip(held, none)), 1.05, at_least=False, compares=True)
    for row in rows:
        if row["mode"].endswith("hold"):
            report.notes.append(
                f"{row['peers']} peers, load {row['load']:g}, {row['mode']}: {stats.median([t['held'] for t in row['turns']]):.0f} "
                f"packets waited, {stats.median([t['late'] for t in row['turns']]):.0f} queue pairs for half a millisecond; "
                f"{stats.median([t['dropped'] for t in row['turns']]):.0f} frames dropped")


def summary(peers, senders, load, mode, turns, plain):
    """Medians over the turns."""
    row = {"peers": peers, "senders": senders, "load": load, "mode": mode,
           "refused": stats.median([t["refused"] for t in turns]),
           "jain": stats.median([t["jain"] for t in turns]),
           "mean_us": stats.median([t["mean_us"] for t in turns]),
           "p999_us": stats.median([t["p999_us"] for t in turns]),
           "worst_us": stats.median([t["worst_us"] for t in turns]),
           "turns": turns}
    row["of_plain"] = row["refused"] / (plain or row)["refused"] if (plain or row)["refused"] else 1.0
    return row


def ratios(rows, key, mode, other):
    """Ratios of `mode` to `other`, for each cell in which plain refuses many requests."""
    found = []
    for row in rows:
        if row["mode"] != mode:
            continue
        same = {r["mode"]: r for r in rows
                if all(r[k] == row[k] for k in ("peers", "senders", "load"))}
        if same["plain"]["refused"] >= WASTE:
            found.append(row[key] / same[other][key])
    return found


def judge(report, rows, of):
    """The bars are those of intelligent. The same of paper, to compare with: it promises less."""
    for mode in ("intelligent", "paper"):
        judge_mode(report, rows, mode, of if mode == "intelligent" else f"{of}, {mode}", mode != "intelligent")
    saved = ratios(rows, "refused", "paper", "ab")
    if saved:
        report.bar(f"{of}, paper: refused, of ab's, worst cell of the same", max(saved), 1.0, at_least=False,
                   compares=True)


def judge_mode(report, rows, mode, of, compares):
    def at_most(name, value, bar):
        report.bar(f"{of}: {name}", value, bar, at_least=False, compares=compares)

    mine = [r for r in rows if r["mode"] == mode]
    modes = {r["mode"] for r in rows}
    waste = ratios(rows, "refused", mode, "plain")
    if waste:
        at_most(f"refused, of plain's, worst cell of those where plain refuses {WASTE} a service or more", max(waste),
                WASTE_BAR)
        for other in (name for name in (*PLAINS, "ab") if name in modes):
            at_most(f"worst time to service, of {other}'s, worst cell of the same",
                    max(ratios(rows, "worst_us", mode, other)), 1.0)
            at_most(f"mean time to service, of {other}'s, worst cell of the same",
                    max(ratios(rows, "mean_us", mode, other)), MEAN_BAR)
    at_most("refused a service, worst cell", max(r["refused"] for r in mine), 1.1)
    report.bar(f"{of}: Jain's index, worst cell", min(r["jain"] for r in mine), JAIN_BAR, compares=compares)


def judge_load(report, rows):
    most = max(r["senders"] for r in rows)
    saved = [r["refused"] for r in rows if r["senders"] == most and r["mode"] == "plain"]
    report.bar("one peer: plain's refusals a service at the highest load, of those at the lowest, most senders",
               saved[-1] / saved[0], 1.0)


def plot(rows):
    loads = sorted({r["load"] for r in rows})
    out = ROOT / "results" / "admission.svg"
    out.parent.mkdir(exist_ok=True)
    most = max(r["senders"] for r in rows)
    panels = [(f"load {load:g}", "senders", [r for r in rows if r["load"] == load]) for load in loads]
    panels.append((f"{most} senders", "load", [r for r in rows if r["senders"] == most]))
    script = [f"set terminal svg noenhanced size {360 * len(panels)},380 font 'sans,12' background 'white'",
              f"set output '{out}'", f"set multiplot layout 1,{len(panels)}", "set logscale y",
              "set yrange [0.1:300]", "set grid", "set ylabel 'refused requests a service'", "set key top left"]
    for title, key, here in panels:
        blocks, parts = [], []
        for i, mode in enumerate(MODES):
            points = sorted((r[key], max(r["refused"], 0.1)) for r in here if r["mode"] == mode)
            blocks += [f"$mode{i} << EOD", *(f"{x:g} {y:g}" for x, y in points), "EOD"]
            parts.append(f"$mode{i} using 1:2 with linespoints lw 2 pt 7 lc rgb {COLOURS[mode]} title '{mode}'")
        script += blocks + [f"set title '{title}'", f"set xlabel '{key}'",
                            "set logscale x 2" if key == "senders" else "unset logscale x",
                            "plot " + ", ".join(parts)]
    return out if gnuplot("\n".join(script + ["unset multiplot"])) else None


def one_peer(host, options, turns, seconds, progress):
    """{(peers, senders, load, mode): facts of each turn}"""
    senders = (2, 16, 64) if options.quick else SENDERS
    loads = (1.2, 4) if options.quick else LOADS
    path = paths.Memif(host, zero_copy=False)
    found = {}
    for turn in range(turns):
        for cnt in senders:
            for load in loads:
                for mode in MODES if turn % 2 == 0 else reversed(MODES):
                    progress(turn + 1, turns, (str(cnt), f"{load:g}", mode))
                    found.setdefault((1, cnt, load, mode), []).append(
                        one(host, path, mode, cnt, load, seconds))
    return found


def several_peers(host, options, turns, seconds, progress):
    """Like one_peer(), for several peers."""
    crowd = Crowd(host, max(PEERS))
    found = {}
    for turn in range(turns):
        for peers in PEERS[1:2] if options.quick else PEERS:
            for load in PEER_LOADS:
                for mode in PEER_MODES if turn % 2 == 0 else reversed(PEER_MODES):
                    progress(turn + 1, turns, (f"{peers} peers", f"{load:g}", mode))
                    found.setdefault((peers, peers * PEER_QPS, load, mode), []).append(
                        crowd.one(mode, peers, load, seconds))
    crowd.close()
    return found


def rows_of(found, modes):
    """The modes of a cell in this order, plain first."""
    rows = []
    for cell in sorted({key[:3] for key in found}):
        plain = None
        for mode in modes:
            row = summary(*cell, mode, found[(*cell, mode)], plain)
            plain = plain or row
            rows.append(row)
    return rows


def run(host, machine, options, progress):
    turns = options.turns_given or (1 if options.quick else TURNS)
    seconds = options.seconds_given or (0.5 if options.quick else SECONDS)
    report = AdmissionReport("admission", SWITCH_TITLE if options.switch else TITLE, machine)
    if options.switch:
        report.rows = over_switch(host, options, turns, seconds, progress)
        judge_switch(report, report.rows)
        return report
    single = rows_of(one_peer(host, options, turns, seconds, progress), MODES)
    several = rows_of(several_peers(host, options, turns, seconds, progress), PEER_MODES)
    report.rows = single + several
    report.notes.append(f"one service takes {SERVICE_US} us, of several peers {PEER_SERVICE_US} us, {RECEIVES} "
                        "receives; a request that waits is refused once in mode intelligent: that is how the "
                        "receiver learns of it; paper is intelligent A/B aging as published, without grants")
    report.notes.append("where refusals in plain and ab use a whole CPU, fewer requests are served than the receiver "
                        "could serve; their times are then limited by that CPU")
    if (os.cpu_count() or 1) < 4:
        report.notes.append("few CPUs: a neighbour that takes one delays calls, and the worst time shows it")
    judge(report, single, "one peer")
    judge_load(report, single)
    judge(report, several, "several peers")
    plotted = plot(single)
    if plotted:
        report.notes.append(f"plot, of one peer: {plotted.relative_to(ROOT)}")
    return report
