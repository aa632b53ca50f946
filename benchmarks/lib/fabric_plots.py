# SPDX-License-Identifier: BSD-3-Clause
"""Plots like the CMDPD paper's: results/fabric-throughput.svg, throughput of the pairs of parameters beside the run without pacing (its
figure 5), and results/fabric-delay.svg, the mean delay in switches over time (its figure 6)."""

from . import fabric_paper as paper
from .host import ROOT
from .report import gnuplot

COLOURS = (0x777777, 0x2266AA, 0xCC7722, 0x33883F)


def panels(cells, size, seed, queues):
    for network in ("tree", "dragonfly"):
        for pattern in paper.PATTERNS:
            base = cells.known(paper.words(size, network, queues, pattern, seed))
            if base:
                yield network, pattern, base, lambda pair, n=network, p=pattern: cells.known(paper.words(size, n, queues, p, seed, pair))


def bars(network, pattern, base, of):
    """One panel of figure 5: without pacing, and each pair that was run."""
    have = [("none", base)] + [(f"{a}-{b}", of((a, b))) for a, b in paper.GRID if of((a, b))]
    lines = [f'{i} {found["gbps"]} {COLOURS[min(i, 1)]} "{name}"' for i, (name, found) in enumerate(have)]
    return [f"set title '{network}, {pattern}'", "$d << EOD", *lines, "EOD",
            "plot $d using 1:2:3:xtic(4) with boxes lc rgb variable"]


def curves(network, pattern, base, of):
    """One panel of figure 6: ten intervals."""
    have = [("none", base)] + [(f"{a}-{b}", of((a, b))) for a, b in paper.FEW if of((a, b))]
    script, parts = [f"set title '{network}, {pattern}'"], []
    for i, (name, found) in enumerate(have):
        waits = [v["wait_mean_ns"] for v in found["intervals"]]
        half = [(a + b) / 2 for a, b in zip(waits[::2], waits[1::2])]
        script += [f"$d{i} << EOD", *(f"{n + 1} {value}" for n, value in enumerate(half)), "EOD"]
        parts.append(f"$d{i} using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb {COLOURS[i]} title '{name}'")
    return [*script, "plot " + ", ".join(parts)]


def plot(cells, size, seed, queues="output"):
    """Whether there was anything to plot, and gnuplot."""
    found = list(panels(cells, size, seed, queues))
    rows = (len(found) + 3) // 4
    ok = bool(found)
    for name, draw, ylabel in (("throughput", bars, "Gb/s"), ("delay", curves, "mean delay in switches, ns")):
        out = ROOT / "results" / f"fabric-{name}.svg"
        out.parent.mkdir(exist_ok=True)
        script = [f"set terminal svg noenhanced size 1600,{330 * rows} font 'sans,11' background 'white'", f"set output '{out}'",
                  f"set multiplot layout {rows},4", "set style fill solid", "set boxwidth 0.8", "set yrange [0:*]", "set grid y",
                  f"set ylabel '{ylabel}'", "set key bottom right" if name == "delay" else "unset key",
                  "set xtics rotate by 90 right font ',7'" if name == "throughput" else "set xlabel 'tenths of the run'"]
        for panel in found:
            script += draw(*panel)
        ok = ok and gnuplot("\n".join([*script, "unset multiplot"]))
    return ok
