# SPDX-License-Identifier: BSD-3-Clause
"""In-band management, in real time and in virtual time.

Real time: registers, E2PROM, faults and discovery of real switches, joined by rings in one process (tests/fabric/ring_bench.c), and,
for root, of uroce-switch, joined by veth pairs.

Virtual time: a fabric with the numbers of Tianhe-2, 24 160 agents in one process. Agents and MADs are real; a hop and the execution of
a request take the paper's times (tests/fabric/fabric_bench.c). So these figures show what the protocol and the order of the requests
cost, not how fast this machine is. The paper's own figures are computed beside them.
"""

import json
import os
import shutil
import subprocess

from lib import row, stats
from lib.host import ROOT, Failure
from lib.report import Report, gnuplot

TITLE = "In-band management"
PROGRAMS = ["meson", "ninja"]
BENCH, RINGS = "tests/fabric/fabric_bench", "tests/fabric/ring_bench"
VETH_TARGETS = ["app/switch/uroce-switch", "app/ctl/uroce-ctl"]
TARGETS = [BENCH, RINGS, *VETH_TARGETS]
FABRIC, QUICK_FABRIC = "tianhe2", "fattree:8"
SIZES = {FABRIC: (24160, 66688), QUICK_FABRIC: (208, 384)}  # nodes, links
HOPS = 20
WINDOWS = (1, 64, 256, 0)  # 0: adapts, from 64 to 1024
RING_SWITCHES, RING_TURNS, QUICK_RING_TURNS = HOPS + 1, 2000, 100
ROW, TREE = f"line:{RING_SWITCHES}", "fattree:16"  # of real switches: 21; 320, and 1024 ends
RING_FABRICS = {ROW: 50, TREE: 5, FABRIC: 2}  # discoveries of each, one after the other
QUICK_RING_FABRICS = {ROW: 5, "fattree:8": 2}
MADS_PER_DATA = (32, 8, 1)  # the first has a bar: one frame of data is moved for so many MADs
FABRIC_MB = 8000  # of memory that FABRIC takes on rings
VETH_HOPS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)  # to the switches that are measured; 0: the one that is directly attached
QUICK_VETH_HOPS = (0, 1, 4, 20)
VETH_FAULT_HOPS = 4  # to the switch that has faults
VETH_COUNT = 20  # requests, and then pings, one after the other,
VETH_ROUNDS = 5  # so often in a turn: each of both meets what the machine does meanwhile
SCAN_PASSES, SHARE_PERCENT, VETH_GBPS = 20, 0.05, 10  # Gb/s: what ethtool says of a veth
LAW_BAR = 0.1  # of the read at most hops
PING_BAR = 3  # a request may take that many times as long as a frame, or a ping, that takes the same way
ROUND = 1.05  # of what should be equal

FRAME_BYTES = 342  # a MAD with its headers and ICRC
LINK_GBPS = 112  # of a direction
# What a MAD may have to wait for on a full link: a flit of 198 bits, packets of 1 KB and 4 KB with their headers.
DATA = (("flits", 2), ("1 KB", 80), ("4 KB", 301))

# The paper.
PROCESS_US, HOP_US, DIRECT_US = 5.9597, 0.8762, 6.73
PAPER_DISCOVERY_MS, PAPER_SWITCHES, PAPER_READS = 472.822, 5856, 12
PAPER_SCAN_S, PAPER_SCAN_REQUESTS, PAPER_SHARE = 9.38, 5856 * 120, 0.000493


def bench(host, progress, *words, program=BENCH):
    argv = [str(host.binary(program)), *map(str, words)]
    progress(1, 1, argv[1:4])
    host.say(" ".join(argv))
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return json.loads(done.stdout)


def line_through(points):
    """Least squares: (value at 0, slope, the largest distance of a point)."""
    n = len(points)
    sx, sy = sum(x for x, _ in points), sum(y for _, y in points)
    slope = (n * sum(x * y for x, y in points) - sx * sy) / (n * sum(x * x for x, _ in points) - sx * sx)
    start = (sy - slope * sx) / n
    return start, slope, max(abs(y - start - slope * x) for x, y in points)


class ManagementReport(Report):
    def __init__(self, machine):
        super().__init__("management", TITLE, machine)

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        for line in self.rows:
            print(f"{line['what']:72} {line['value']:12.3f} {line['unit']:6} {line['paper']}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    def fact(self, what, value, unit, paper=""):
        self.rows.append({"what": what, "value": round(value, 6), "unit": unit, "paper": paper})


def off(value, expected):
    return abs(value / expected - 1)


def law(report, where, points):
    """Processing + (hops + 1) x hop, in us."""
    process, hop, residual = line_through(points)
    report.fact(f"{where}: a register, 0 to {points[-1][0] - 1} hops: at the ends", process, "us", f"paper {PROCESS_US}")
    report.fact(f"{where}: for each hop, to and fro", hop, "us", f"paper {HOP_US}")
    return process, hop, residual


def rings(report, found):
    """Real switches in one process: what they do for a request, and for a frame that is only forwarded."""
    rows = found["hops"]
    residual = law(report, "rings", [(r["hops"] + 1, r["read_ns"] / 1000) for r in rows])[2]
    report.bar("rings: largest distance of a register read from the line, of the read at most hops", residual * 1000 / rows[-1]["read_ns"],
               LAW_BAR, at_least=False)
    report.bar("rings: two registers in a request / one, median over the hops",
               stats.median([r["read_two_ns"] / r["read_ns"] for r in rows]), ROUND, at_least=False)
    for name, key in (("by LID", "lid_ns"), ("by directed route", "read_ns")):
        ratios = {r["hops"]: r[key] / r["echo_ns"] for r in rows if r["hops"]}
        worst = max(ratios, key=ratios.get)
        report.bar(f"rings: register read {name} / a frame through the same switches and back, worst of 1 to {max(ratios)} hops "
                   f"(at {worst})", ratios[worst], PING_BAR, at_least=False)
    report.notes.append("rings: on a directed route the agent of each switch checks, changes and signs the MAD anew, both ways; by LID, "
                        "and for the frame, switches only forward.")


def e2prom(report, found):
    sizes = {r["bytes"]: r for r in found["bytes"]}
    for what, key, us in (("read", "read_ns", 150), ("write", "write_ns", 3000)):
        each = (sizes[6][key] - sizes[1][key]) / 5000
        report.fact(f"rings: E2PROM, {what}, for each byte", each, "us", f"paper {us}")
        report.bar(f"rings: E2PROM, {what}: a byte, off {us} us", off(each, us), 0.05, at_least=False)
    report.bar("rings: a register while the E2PROM works / otherwise", found["meanwhile_ns"] / found["idle_ns"], 1.1, at_least=False)


def ring_faults(report, found):
    for f in found["faults"]:
        report.fact(f"rings: {f['fault']}, 4 hops away: until the node notices", f["notice_ns"] / 1000, "us",
                    f"it looks every {found['scan_ns'] / 1e6:.0f} ms" if f["fault"] != "link down" else "")
        report.bar(f"rings: {f['fault']}: from notice to report, in round trips", f["arrives_ns"] / f["round_trip_ns"], 1, at_least=False)
        report.bar(f"rings: {f['fault']}: the report names node, port and cause", int(f["named"]), 1)


def veth(report, host, progress, options):
    """Switches joined by veth pairs, beside the kernel's ping through the same switches."""
    missing = [p for p in ("ip", "ping") if not shutil.which(p)]
    if os.geteuid() != 0 or missing:
        report.notes.append(f"veth: not measured: {'needs root' if not missing else missing[0] + ' is missing'}")
        return None
    hops = QUICK_VETH_HOPS if options.quick else VETH_HOPS
    line = row.Row(host, hops[-1] + 1, [h + 1 for h in hops])
    try:
        turns = range(options.turns)
        found = {h + 1: {"read": [], "ping": []} for h in hops}
        for turn in turns:
            for k in found:
                progress(turn + 1, options.turns, ("veth", f"{k - 1} hops"))
                for _ in range(VETH_ROUNDS):
                    found[k]["read"].append(line.read_ns(k, VETH_COUNT))
                    found[k]["ping"].append(line.ping_ns(k, VETH_COUNT))
        reads = {k: stats.median(v["read"]) for k, v in found.items()}
        residual = law(report, "veth", [(k, read / 1000) for k, read in reads.items()])[2]
        report.bar("veth: largest distance of a register read from the line, of the read at most hops",
                   residual * 1000 / reads[hops[-1] + 1], LAW_BAR, at_least=False)
        for k, v in found.items():
            report.fact(f"veth: two registers, {k - 1} hops", stats.median(v["read"]) / 1000, "us",
                        f"ping {stats.median(v['ping']) / 1000:.1f}")
            if k > 1:
                report.bar(f"veth: register read / ping through the same switches, {k - 1} hops", stats.ratios_of(v["read"], v["ping"]),
                           PING_BAR, at_least=False)
        veth_scan(report, *line.scan(SCAN_PASSES, SHARE_PERCENT, VETH_GBPS))
        veth_faults(report, line, VETH_FAULT_HOPS + 1)
        return {k - 1: read for k, read in reads.items()}, {k - 1: stats.median(v["ping"]) for k, v in found.items()}
    finally:
        line.close()


def veth_scan(report, seconds, sent):
    """A monitor that never pauses; discovery at its beginning is not held back, and counts."""
    report.fact(f"veth: {SCAN_PASSES} passes over all ports, one after the other, within {SHARE_PERCENT} % of {VETH_GBPS} Gb/s", seconds, "s")
    report.bar(f"veth: a scan that never pauses, percent of {VETH_GBPS} Gb/s that the port has sent",
               sent * 8 / (seconds * VETH_GBPS * 1e9) * 100, SHARE_PERCENT, at_least=False)


def veth_faults(report, line, k):
    """Each fault on the screen of `uroce-ctl faults`, and what `monitor compare` prints of it: that, and nothing else."""
    # integrity counts the times at which the agent found more errors than the port's LocalPhyErrors.
    own = {"burst of receive errors": (lambda: line.send_bad_frames(k, 1000), 2, {"rx_errors:2", "integrity:2"}),
           "load above its limit": (lambda: line.call_hot(k), 0, set()),
           "link down": (lambda: line.cut_link(k), 2, {"state:2", "link_downed:2"})}
    line.watch()
    try:
        for cause, (begin, port, registers) in own.items():
            took, confirmed, changes = line.fault(k, begin, port, cause)
            report.fact(f"veth: {cause}, {k - 1} hops away: from its beginning until it is printed", took * 1000, "ms")
            report.fact(f"veth: {cause}: from then until its node has confirmed it", confirmed * 1e6, "us")
            fault_bars(report, cause, registers, changes)
    finally:
        line.end_watch()


def fault_bars(report, cause, registers, changes):
    found = {register for _guid, register in changes}
    # All of them are of one node.
    others = len(found - registers) + max(0, len({guid for guid, _register in changes}) - 1)
    report.bar(f"veth: {cause}: other changes that a comparing monitor prints", others, 0, at_least=False)
    if others:
        report.notes.append(f"veth: {cause}: printed changes of " + ", ".join(f"{register} of {guid}" for guid, register in sorted(changes)))
    if registers:
        report.bar(f"veth: {cause}: changes that it prints of it, of {len(registers)}", len(found & registers), len(registers))


def memory_mb():
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6


def ring_discoveries(report, host, progress, quick):
    """In real time: one thread serves all switches, and moves the data as well."""
    for shape, turns in (QUICK_RING_FABRICS if quick else RING_FABRICS).items():
        if shape == FABRIC and memory_mb() < FABRIC_MB:
            report.notes.append(f"rings: {shape} was left out: it takes {FABRIC_MB / 1000:.0f} GB of memory")
            continue
        ring_discovery(report, shape, bench(host, progress, "discover", shape, turns, *MADS_PER_DATA, program=RINGS))
    report.notes.append("rings: a switch chip moves data on all of its ports while its agent works; here one thread does all of it, and is "
                        f"made to move one frame of data for every {MADS_PER_DATA[0]} MADs, each by one hop. So the bar shows that full rings "
                        "and queues do not hold up MADs, which have rings of their own as VL15 has buffers of its own, and not how much "
                        "data the thread could move: with more of it, discovery takes longer by the time that it costs.")


def ring_discovery(report, shape, found):
    idle, busy, there = found["idle"], found["busy"], found["there"]
    what = f"rings: discovery of {shape}"
    report.fact(f"{what}, {there['nodes']} nodes, window 64: {idle['requests']} requests, {idle['mads']} hops of MADs", idle["time_ms"], "ms",
                f"{found['peak_mb']} MB")
    for run in busy:
        report.fact(f"{what}, with data on its links: a frame for {run['mads_per_data']} MADs", run["time_ms"], "ms",
                    f"{run['data']} frames moved; it waited on {100 * run['waits']:.0f} % of the links' directions")
    for run in (idle, *busy):
        report.bar(f"{what}, {mads_name(run)}: nodes and links found, of those that there are",
                   min(run["nodes"] / there["nodes"], run["links"] / there["links"]), 1)
        report.bar(f"{what}, {mads_name(run)}: MADs and data lost, requests sent again", run["lost"] + run["resent"], 0, at_least=False)
    report.bar(f"{what}, with data, {mads_name(busy[0])} / idle, real time, one thread", busy[0]["time_ms"] / idle["time_ms"], ROUND,
               at_least=False)
    for run in busy[1:]:
        report.fact(f"{what}, with data, {mads_name(run)} / idle", run["time_ms"] / idle["time_ms"], "")


def mads_name(run):
    return f"a frame for {run['mads_per_data']} MADs" if run["mads_per_data"] else "idle"


def model(report, found):
    """The same law in virtual time. The model is given the paper's times, so what is off is what the protocol adds."""
    process, hop, residual = law(report, "model", [(r["hops"] + 1, r["read_ns"] / 1000) for r in found])
    report.bar("model: fitted time in the agent, off the paper's", off(process, PROCESS_US), 0.01, at_least=False)
    report.bar("model: fitted time of a hop, off the paper's", off(hop, HOP_US), 0.01, at_least=False)
    report.bar("model: largest distance of a register read from the line, us", residual, 0.01, at_least=False)
    report.bar("model: two registers in a request / one, worst of the hops", max(r["read_two_ns"] / r["read_ns"] for r in found), 1.01,
               at_least=False)


def name_of(window):
    return f"window {window}" if window else "adaptive window"


def discovery(report, runs, busy, fixed_busy, neighbours, fabric):
    nodes, links = SIZES[fabric]
    for window, run in runs.items():
        report.fact(f"discovery of {run['nodes']} nodes, {name_of(window)}: {run['requests']} requests", run["time_ms"], "ms",
                    f"paper {PAPER_DISCOVERY_MS:.0f}, {PAPER_SWITCHES * PAPER_READS} requests" if fabric == FABRIC else "")
        report.bar(f"discovery, {name_of(window)}: nodes found", run["nodes"], nodes)
        report.bar(f"discovery, {name_of(window)}: links found", run["link_ends"] / 2, links)
        report.bar(f"discovery, {name_of(window)}: requests sent again", run["resent"], 0, at_least=False)
    report.fact("real time of that on this machine, window 64: all agents and the manager, one thread", runs[64]["wall_s"], "s",
                f"CPU time {runs[64]['cpu_s']:.2f} s; the links are events of a model: on rings see above")
    for name, run in busy.items():
        report.fact(f"adaptive window, every link full of {name}", run["time_ms"], "ms")
        # The window that uroce-ctl uses unless it is told another one.
        report.bar(f"discovery, every link full of {name} / idle", run["time_ms"] / runs[0]["time_ms"], 1.05, at_least=False)
    # With so few open requests their time counts, and each hop has a packet under way: no window of its own hides that.
    for name, run in fixed_busy.items():
        report.fact(f"window 64, every link full of {name} / idle", run["time_ms"] / runs[64]["time_ms"], "")
    report.fact(f"two ports' neighbours a request, one request at a time: {neighbours['requests']} requests",
                neighbours["time_ms"], "ms", f"mean distance {neighbours['mean_hops']:.2f} links")
    expected = neighbours["requests"] * (PROCESS_US + HOP_US * neighbours["mean_hops"]) / 1000
    report.bar("the same, off (time in the agent + links x hop)", off(neighbours["time_ms"], expected), 0.005, at_least=False)
    if fabric == FABRIC:
        report.bar("discovery, window 64, ms", runs[64]["time_ms"], PAPER_DISCOVERY_MS, at_least=False)


def paper(report):
    """Two of its figures, computed from its others."""
    direct = PAPER_SWITCHES * PAPER_READS * DIRECT_US / 1000
    report.fact("the paper's discovery, 5856 x 12 reads of a directly attached chip", direct, "ms",
                f"paper {PAPER_DISCOVERY_MS}")
    gibit = PAPER_SCAN_REQUESTS * 2 * 4 * 198 / 2**30
    report.fact("the paper's scan, 702 720 x 2 x 4 x 198 bits", gibit, "Gibit", 'paper "1.0367 GB"')


def scan(report, one, many, capped, fabric):
    bits = one["first_link_mads"] * FRAME_BYTES * 8
    share = bits / (PAPER_SCAN_S * 2 * LINK_GBPS * 1e9)
    report.fact(f"scan, a request for each port of each switch: {one['requests']} requests, window 1", one["time_ms"] / 1000,
                "s", f"paper {PAPER_SCAN_S}, {PAPER_SCAN_REQUESTS} requests" if fabric == FABRIC else "")
    report.fact("the same, window 64", many["time_ms"] / 1000, "s")
    if fabric != FABRIC:
        return
    report.fact(f"a scan every {PAPER_SCAN_S} s: share of the manager's link, both directions", share * 100, "%",
                f"paper {PAPER_SHARE * 100}")
    report.bar(f"a scan every {PAPER_SCAN_S} s: percent of the link", share * 100, 0.05, at_least=False)
    report.fact(f"a scan that never pauses, within {SHARE_PERCENT} % of the manager's link", capped["time_ms"] / 1000, "s",
                f"paper {PAPER_SCAN_S}, at {PAPER_SHARE * 100} %")
    sent = capped["first_link_mads"] / 2 * FRAME_BYTES * 8 / (capped["time_ms"] / 1000 * LINK_GBPS * 1e9) * 100
    report.bar("a scan that never pauses: percent of the link, by bytes sent", sent, SHARE_PERCENT, at_least=False)
    report.bar("a scan that never pauses / the paper's, at about the same share", capped["time_ms"] / 1000 / PAPER_SCAN_S, 1, at_least=False)
    report.notes.append("A MAD with its headers has 342 bytes, the paper's packet 99: its 120 requests a switch would be "
                        f"{PAPER_SCAN_REQUESTS * 2 * FRAME_BYTES * 8 / (PAPER_SCAN_S * 2 * LINK_GBPS * 1e9) * 100:.3f} % "
                        "of the link. A MAD holds what the paper reads of a port with five requests.")


def fault(report, found):
    report.fact("from a link that goes down to the report at the manager", found["report_ns"] / 1000, "us")
    report.bar("report of a link that goes down / a round trip", found["report_ns"] / found["round_trip_ns"], 1, at_least=False)
    named = found["right_node"] and found["port"] == 2 and found["cause"] == 0
    report.bar("the report names node, port and cause", int(named), 1)


def hops_panel(ring, modelled, over_veth):
    """A register by hops: curves, and the line through what was measured on rings."""
    curves = [("rings, directed route", [(r["hops"], r["read_ns"] / 1000) for r in ring], 0x2266AA),
              ("rings, by LID", [(r["hops"], r["lid_ns"] / 1000) for r in ring], 0x66AADD),
              ("rings, a frame and back", [(r["hops"], r["echo_ns"] / 1000) for r in ring], 0x777777),
              ("model, times of the paper", [(r["hops"], r["read_ns"] / 1000) for r in modelled], 0xAA3333)]
    if over_veth:
        curves += [("veth", [(h, ns / 1000) for h, ns in over_veth[0].items()], 0xCC8822),
                   ("veth, ping", [(h, ns / 1000) for h, ns in over_veth[1].items()], 0x999999)]
    start, slope, _ = line_through([(r["hops"] + 1, r["read_ns"] / 1000) for r in ring])
    script, parts = [], []
    for i, (name, points, colour) in enumerate(curves):
        script += [f"$d{i} << EOD", *(f"{x} {y}" for x, y in points), "EOD"]
        parts.append(f"$d{i} using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb {colour} title '{name}'")
    parts.append(f"[0:{ring[-1]['hops']}] {start:g} + (x + 1) * {slope:g} lw 1 dt 2 lc rgb 'black' title "
                 f"'fit: {start:.2f} + (h + 1) x {slope:.2f} us'")
    return script + ["set logscale y", "set grid", "set key outside bottom center horizontal", "set xlabel 'hops'", "set xrange [0:*]",
                     "set yrange [*:*]", "set title 'A register read in band, us'", "plot " + ", ".join(parts), "unset logscale"]


def bars_panel(name, title, xlabel, bars):
    """(what, value) from the top to the bottom, on a logarithmic axis."""
    return ["unset key", "set logscale x", f"set xlabel '{xlabel}'", f"set xrange [{min(v for _, v in bars) / 4:g}:*]",
            f"set yrange [{len(bars) - 0.4}:-0.6]", "set style fill solid", f"set title '{title}'", f"${name} << EOD",
            *(f'{i} {value} "{what}"' for i, (what, value) in enumerate(bars)), "EOD",
            f"plot ${name} using 2:1:(1e-6):2:($1-0.35):($1+0.35):ytic(3) with boxxyerror lc rgb 0x2266AA", "unset logscale"]


def plot(report, ring, modelled, over_veth, runs, busy, scans):
    """results/management.svg: a register by hops, discovery by window and load, scans of all ports."""
    out = ROOT / "results" / "management.svg"
    out.parent.mkdir(exist_ok=True)
    found = [(f"{name_of(w)}, idle", run["time_ms"]) for w, run in runs.items()] + \
        [(f"adaptive window, {name}", run["time_ms"]) for name, run in busy.items()]
    times = [("one request at a time", scans[0]["time_ms"] / 1000), ("window 64", scans[1]["time_ms"] / 1000), ("the paper", PAPER_SCAN_S)]
    script = ["set terminal svg noenhanced size 1500,460 font 'sans,12' background 'white'", f"set output '{out}'",
              "set multiplot layout 1,3", *hops_panel(ring, modelled, over_veth),
              *bars_panel("found", f"Discovery of {runs[64]['nodes']} nodes, idle and beside data", "ms of virtual time", found),
              *bars_panel("times", "Monitor: the state of all ports, once", "s of virtual time", times), "unset multiplot"]
    return out if gnuplot("\n".join(script)) else None


def run(host, machine, options, progress):
    fabric = QUICK_FABRIC if options.quick else FABRIC
    report = ManagementReport(machine)
    turns = QUICK_RING_TURNS if options.quick else RING_TURNS
    ring = bench(host, progress, "read", RING_SWITCHES, turns, program=RINGS)
    rings(report, ring)
    e2prom(report, bench(host, progress, "e2prom", 5 if options.quick else 20, program=RINGS))
    ring_faults(report, bench(host, progress, "fault", 20 if options.quick else 200, program=RINGS))
    ring_discoveries(report, host, progress, options.quick)
    over_veth = veth(report, host, progress, options)
    modelled = bench(host, progress, "read", HOPS)["hops"]
    model(report, modelled)
    runs = {window: bench(host, progress, "discover", fabric, window, 0) for window in WINDOWS}
    busy, fixed_busy = ({name: bench(host, progress, "discover", fabric, window, ns) for name, ns in DATA} for window in (0, 64))
    discovery(report, runs, busy, fixed_busy, bench(host, progress, "neighbours", fabric), fabric)
    paper(report)
    scans = [bench(host, progress, "scan", fabric, *more) for more in ((1,), (64,), (64, round(SHARE_PERCENT * 1e4)))]
    scan(report, *scans, fabric)
    fault(report, bench(host, progress, "fault"))
    plot(report, ring["hops"], modelled, over_veth, runs, busy, scans)
    return report
