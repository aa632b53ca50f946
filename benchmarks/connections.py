# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against the number of active queue pairs, each with one message outstanding.

One message at a time and queue pair is the hard case: a queue pair that bursts amortizes what it costs to
bring its state near. All of them are active all the time, so each message meets another one.

Payload is not what is asked about: 10 000 buffers of 4 KB are 40 MB, and copying what lies in no cache costs
the same whoever sends it. So the queue pairs share as many buffers as the fewer of those compared have.
"""

from lib import perf, stats
from lib.host import ROOT
from lib.paths import Memif
from lib.report import Report, gnuplot

TITLE = "Active queue pairs, one WRITE outstanding each, memif"
PROGRAMS = ["gnuplot", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf"]
COUNTS = (1, 8, 128, 1024, 4096, 10000, 16384)
SIZES = (64, 4096)
MANY, FEW = 10000, 128
BUFFERS = FEW  # of payload on either side, whatever the number of queue pairs; fewer have one each
BAR = 0.90
TURNS, SECONDS = 5, 1.0
WARMUP_S = 0.5  # at least one message of each queue pair


def measure(host, way, qps, size, seconds):
    """Millions of messages a second, packets sent again."""
    sets = [f"transport.max_qp={max(COUNTS) + 16}"]
    figures = perf.run(host, way, "write", size, seconds, sets=(sets, sets), warmup=WARMUP_S,
                       more=["--qps", str(qps), "--depth", "1", "--buffers", str(BUFFERS)])
    return figures["mops"], figures["retransmitted_packets"]


class ConnectionsReport(Report):
    """A line for each size, a column for each number of queue pairs."""

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = f"{'messages':34}" + "".join(f"{n:>10}" for n in COUNTS)
        print(head + "\n" + "-" * len(head))
        for size in SIZES:
            rows = {row["qps"]: row for row in self.rows if row["size"] == size}
            for what, key, digits in (("millions a second", "median", 3), ("Gb/s", "gbps", 2),
                                      (f"ratio to {FEW}, turn by turn", "ratio", 2),
                                      ("sent again, of 1000", "again", 2)):
                print(f"{size:>5} B  {what:26}" + "".join(f"{rows[n][key]:>10.{digits}f}" for n in COUNTS))
            print()
        print(f"payload: {BUFFERS} buffers on either side, which the queue pairs share")
        for note in self.notes:
            print(note)
        self.print_bars()

    def draw(self):
        out = ROOT / "results" / "connections.svg"
        out.parent.mkdir(exist_ok=True)
        script = ["set terminal svg size 700,420 font 'sans,12' background 'white'", f"set output '{out}'",
                  f"set title '{self.title}'", "set logscale x", "set yrange [0:1.3]", "set grid",
                  "set xlabel 'active queue pairs'", f"set ylabel 'messages a second / those of {FEW} QPs'",
                  "set key bottom right"]
        parts = []
        for size in SIZES:
            script += [f"$d{size} << EOD", *(f"{r['qps']} {r['ratio']}" for r in self.rows
                                             if r["size"] == size), "EOD"]
            parts.append(f"$d{size} using 1:2 with linespoints lw 2 pt 7 title '{size} B'")
        gnuplot("\n".join(script + [f"plot {', '.join(parts)}, {BAR} lc rgb 0x999999 title 'bar'"]))


def run(host, machine, options, progress):
    way = Memif(host)
    turns = options.turns_given or (2 if options.quick else TURNS)
    seconds = options.seconds_given or (0.5 if options.quick else SECONDS)
    found = {}
    for turn in range(turns):
        for qps in COUNTS if turn % 2 == 0 else reversed(COUNTS):
            for size in SIZES:
                progress(turn + 1, turns, (str(qps), "queue pairs", str(size)))
                found.setdefault((size, qps), []).append(measure(host, way, qps, size, seconds))
    report = ConnectionsReport("connections", TITLE, machine)
    for (size, qps), runs in sorted(found.items()):
        mops = [m for m, _ in runs]
        few = [m for m, _ in found[size, FEW]]
        report.rows.append({
            "size": size, "qps": qps, "median": round(stats.median(mops), 4),
            "gbps": round(stats.median(mops) * size * 8 / 1000, 3),
            "ratio": round(stats.ratio_of(mops, few), 4), "turns": [round(m, 4) for m in mops],
            "again": round(sum(a for _, a in runs) / sum(m * 1e3 * seconds for m in mops), 3)})
    for size in SIZES:
        report.bar(f"{size} B messages a second, {MANY} queue pairs / {FEW}",
                   stats.ratio_of([m for m, _ in found[size, MANY]], [m for m, _ in found[size, FEW]]), BAR)
    report.draw()
    return report
