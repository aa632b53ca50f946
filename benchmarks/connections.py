# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against the number of active queue pairs, each with one message outstanding.

One message at a time per queue pair is the hard case: with bursts, the cost of loading the state of a queue
pair into the cache is amortized. All queue pairs are active all the time, so successive messages belong to
different ones; the number of messages in flight verifies this.

Two other effects are involved besides the number of queue pairs, so each is measured both ways. Payload: 10 000
buffers of 4 KB are 40 MB, and copying uncached data costs any sender the same; shared buffers are as many as
the smallest number of queue pairs compared. Order: completions come in the order of the messages, so queue pairs
that post again at once ring their doorbells in a fixed order, which is easy to predict; in random order, the
next one is drawn from all that may post.
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
BUFFERS = FEW  # number of payload buffers on either side when queue pairs share them
WAYS = {"shared, in turn": ["--buffers", str(BUFFERS)],
        "shared, random": ["--buffers", str(BUFFERS), "--random-order"],
        "own, in turn": [],
        "own, random": ["--random-order"]}
BAR = 0.90
IN_FLIGHT_BAR = 0.90
TURNS, SECONDS = 3, 0.7
WARMUP_S = 0.5  # at least one message of each queue pair


def measure(host, way, qps, size, more, seconds):
    """Millions of messages per second, packets sent again, share of queue pairs with a message in flight."""
    sets = [f"transport.max_qp={max(COUNTS) + 16}"]
    figures = perf.run(host, way, "write", size, seconds, sets=(sets, sets), warmup=WARMUP_S,
                       more=["--qps", str(qps), "--depth", "1", *more])
    return figures["mops"], figures["retransmitted_packets"], figures["in_flight"]["mean"] / qps


class ConnectionsReport(Report):
    """A block for each size and method, a column for each number of queue pairs."""

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = f"{'messages, buffers, order':27}{'':26}" + "".join(f"{n:>10}" for n in COUNTS)
        print(head + "\n" + "-" * len(head))
        for size in SIZES:
            for name in WAYS:
                rows = {row["qps"]: row for row in self.rows if (row["size"], row["way"]) == (size, name)}
                label = f"{size:>5} B  {name}"
                for what, key, digits in (("millions a second", "median", 3), ("Gb/s", "gbps", 2),
                                          (f"ratio to {FEW}, by turns", "ratio", 2),
                                          ("in flight", "in_flight", 2), ("sent again, of 1000", "again", 2)):
                    print(f"{label:27}{what:26}" + "".join(f"{rows[n][key]:>10.{digits}f}" for n in COUNTS))
                    label = ""
                print()
        print(f"shared: {BUFFERS} buffers on either side; in flight: of one message each, on average")
        for note in self.notes:
            print(note)
        self.print_bars()

    def draw(self):
        out = ROOT / "results" / "connections.svg"
        out.parent.mkdir(exist_ok=True)
        script = ["set terminal svg noenhanced size 760,460 font 'sans,12' background 'white'",
                  f"set output '{out}'", f"set title '{self.title}'", "set logscale x", "set yrange [0:1.3]",
                  "set grid", "set xlabel 'active queue pairs'",
                  f"set ylabel 'messages a second / those of {FEW} QPs'", "set key bottom left"]
        parts = []
        for size in SIZES:
            for i, name in enumerate(WAYS):
                script += [f"$d{size}x{i} << EOD", *(f"{r['qps']} {r['ratio']}" for r in self.rows
                                                     if (r["size"], r["way"]) == (size, name)), "EOD"]
                parts.append(f"$d{size}x{i} using 1:2 with linespoints lw 2 pt {i + 4} title '{size} B, {name}'")
        gnuplot("\n".join(script + [f"plot {', '.join(parts)}, {BAR} lc rgb 0x999999 title 'bar'"]))


def run(host, machine, options, progress):
    way = Memif(host)
    turns = options.turns_given or (1 if options.quick else TURNS)
    seconds = options.seconds_given or (0.5 if options.quick else SECONDS)
    found = {}
    for turn in range(turns):
        for qps in COUNTS if turn % 2 == 0 else reversed(COUNTS):
            for size in SIZES:
                for name, more in WAYS.items():
                    progress(turn + 1, turns, (str(qps), "queue pairs", str(size), name))
                    found.setdefault((size, name, qps), []).append(
                        measure(host, way, qps, size, more, seconds))
    report = ConnectionsReport("connections", TITLE, machine)
    for (size, name, qps), runs in sorted(found.items()):
        mops = [m for m, _, _ in runs]
        ratios = stats.ratios_of(mops, [m for m, _, _ in found[size, name, FEW]])
        report.rows.append({
            "size": size, "way": name, "qps": qps, "median": round(stats.median(mops), 4),
            "gbps": round(stats.median(mops) * size * 8 / 1000, 3),
            "ratio": round(stats.median(ratios), 4), "ratio_interval": stats.interval(ratios),
            "in_flight": round(min(f for _, _, f in runs), 4), "turns": [round(m, 4) for m in mops],
            "again": round(sum(a for _, a, _ in runs) / sum(m * 1e3 * seconds for m in mops), 3)})
        if qps == MANY:
            report.bar(f"{size} B messages a second, {name}, {MANY} queue pairs / {FEW}", ratios, BAR)
    report.bar(f"messages in flight, of one each, at least, {FEW} queue pairs and more",
               min(r["in_flight"] for r in report.rows if r["qps"] >= FEW), IN_FLIGHT_BAR)
    report.draw()
    return report
