# SPDX-License-Identifier: BSD-3-Clause
"""In-band management, in real time and in virtual time.

Real time: registers, E2PROM and faults of real switches, joined by rings in one process (tests/fabric/ring_bench.c), and, for root,
by veth pairs between processes.

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
VETH_SWITCHES = 5  # one a hop, and the one that is directly attached
VETH_COUNT = 400  # requests and pings of a turn
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
    report.fact(f"{where}: a register, 0 to {len(points) - 1} hops: at the ends", process, "us", f"paper {PROCESS_US}")
    report.fact(f"{where}: for each hop, to and fro", hop, "us", f"paper {HOP_US}")
    return process, hop, residual


def rings(report, found):
    """Real switches in one process: what they do for a request, and for a frame that is only forwarded."""
    rows = found["hops"]
    residual = law(report, "rings", [(r["hops"] + 1, r["read_ns"] / 1000) for r in rows])[2]
    report.bar("rings: largest distance of a register read from the line, of the read at most hops", residual * 1000 / rows[-1]["read_ns"],
               0.1, at_least=False)
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
    """Processes of uroce-switch, joined by veth pairs, beside the kernel's ping through the same switches."""
    missing = [p for p in ("ip", "ping") if not shutil.which(p)]
    if os.geteuid() != 0 or missing:
        report.notes.append(f"veth: not measured: {'needs root' if not missing else missing[0] + ' is missing'}")
        return None
    line = row.Row(host, VETH_SWITCHES)
    try:
        turns = range(options.turns)
        found = {k: {"read": [], "ping": []} for k in range(1, VETH_SWITCHES + 1)}
        for turn in turns:
            for k in found:
                progress(turn + 1, options.turns, ("veth", f"{k - 1} hops"))
                found[k]["read"].append(line.read_ns(k, VETH_COUNT))
                found[k]["ping"].append(line.ping_ns(k, VETH_COUNT))
        law(report, "veth", [(k, stats.median(v["read"]) / 1000) for k, v in found.items()])
        for k, v in found.items():
            report.fact(f"veth: two registers, {k - 1} hops", stats.median(v["read"]) / 1000, "us",
                        f"ping {stats.median(v['ping']) / 1000:.1f}")
            if k > 1:
                report.bar(f"veth: register read / ping through the same switches, {k - 1} hops", stats.ratios_of(v["read"], v["ping"]),
                           PING_BAR, at_least=False)
        took, changes = line.fault(VETH_SWITCHES)
        report.fact(f"veth: a link goes down {VETH_SWITCHES - 1} hops away: until its report is printed", took * 1000, "ms")
        report.bar("veth: other changes than this link's that a comparing monitor prints", len(changes - {"state:2", "link_downed:2"}), 0,
                   at_least=False)
        report.bar("veth: changes of this link that it prints: its state, its count", len(changes & {"state:2", "link_downed:2"}), 2)
        return {k - 1: stats.median(v["read"]) for k, v in found.items()}, {k - 1: stats.median(v["ping"]) for k, v in found.items()}
    finally:
        line.close()


def ring_discovery(report, found):
    """In real time: one thread serves all switches, and forwards the data as well."""
    idle, busy = found["idle"], found["busy"]
    for name, run in (("idle", idle), ("busy", busy)):
        report.bar(f"rings: discovery, {name}: nodes found", run["nodes"], RING_SWITCHES + 2)
        report.bar(f"rings: discovery, {name}: requests sent again", run["resent"], 0, at_least=False)
    report.fact(f"rings: discovery of {RING_SWITCHES} switches and 2 ends, window 64", idle["time_ms"], "ms")
    report.fact("rings: the same, every ring and queue full of data in both directions", busy["time_ms"], "ms",
                f"{1000 * busy['time_ms'] / busy['rounds']:.0f} us a round")
    report.bar("rings: discovery, every ring full of data / idle, real time, one thread", busy["time_ms"] / idle["time_ms"], 1.05,
               at_least=False)
    report.notes.append("rings: no MAD is lost or sent again, but the CPU that forwards the data of all switches is the one that moves the "
                        "MADs: in each round it sends 32 frames by each port, and a MAD moves by about a hop in a round. Switches with a CPU "
                        "each would still be slower than idle ones, as long as data takes all of that CPU. What full links alone cost is in "
                        "the figures of the model: MADs wait for the packet that is being sent, no longer.")


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
    report.fact("CPU time of that on this machine, window 64: all agents and the manager", runs[64]["cpu_s"], "s")
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


def scan(report, one, many, fabric):
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
    ring_discovery(report, bench(host, progress, "discover", RING_SWITCHES, 3 if options.quick else 20, program=RINGS))
    over_veth = veth(report, host, progress, options)
    modelled = bench(host, progress, "read", HOPS)["hops"]
    model(report, modelled)
    runs = {window: bench(host, progress, "discover", fabric, window, 0) for window in WINDOWS}
    busy, fixed_busy = ({name: bench(host, progress, "discover", fabric, window, ns) for name, ns in DATA} for window in (0, 64))
    discovery(report, runs, busy, fixed_busy, bench(host, progress, "neighbours", fabric), fabric)
    paper(report)
    scans = [bench(host, progress, "scan", fabric, window) for window in (1, 64)]
    scan(report, *scans, fabric)
    fault(report, bench(host, progress, "fault"))
    plot(report, ring["hops"], modelled, over_veth, runs, busy, scans)
    return report
