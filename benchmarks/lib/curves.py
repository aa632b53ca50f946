# SPDX-License-Identifier: BSD-3-Clause
"""Plots results/loss.svg: goodput against loss, one panel per path and one for the simulator."""

from .host import ROOT
from .report import gnuplot

COLOURS = {"gbn": 0xAA3333, "reorder": 0xCC8822, "extended": 0x2266AA, "TCP": 0x777777}


def plot(table, ways, simulated, losses):
    """`table` is that of LossReport: (path, what, {loss: cell}). Returns the path of the plot or None."""
    panels = [(way.name, real_curves(table, way.name)) for way in ways]
    if simulated:
        panels.append(("simulator, 100 Gb/s, 40 us", sim_curves(simulated)))
    out = ROOT / "results" / "loss.svg"
    out.parent.mkdir(exist_ok=True)
    low, high = min(loss for loss in losses if loss), max(losses)
    script = [f"set terminal svg noenhanced size {420 * len(panels)},380 font 'sans,12' background 'white'",
              f"set output '{out}'", f"set multiplot layout 1,{len(panels)}",
              "set logscale x", f"set xrange [{low / 1.5}:{high * 1.5}]", "set yrange [0:1.05]",
              "set xtics (" + ", ".join(f"'{x:g}' {x:g}" for x in losses if x) + ")",
              "set grid", "set xlabel 'loss in each direction, %'",
              "set ylabel 'goodput / goodput without loss'", "set key bottom left"]
    for title, curves in panels:
        blocks, parts = [], []
        for i, (name, points) in enumerate(curves):
            blocks += [f"$d{i} << EOD", *(f"{x:g} {y:g}" for x, y in points), "EOD"]
            parts.append(f"$d{i} using 1:2 with linespoints lw 2 pt 7 lc rgb {COLOURS[name]} title '{name}'")
        if parts:
            script += blocks + [f"set title '{title}' noenhanced", "plot " + ", ".join(parts)]
    return out if gnuplot("\n".join(script + ["unset multiplot"])) else None


def real_curves(table, path):
    """WRITEs of 64 KB. With af_packet also TCP, which uses the same veth pair."""
    curves = []
    for where, what, cells, _ in table:
        words = what.split()
        points = [(loss, cell["relative"]) for (loss, bursts), cell in sorted(cells.items())
                  if loss and not bursts]
        if where == path and what.startswith("WRITE 64 KB") and points:
            curves.append((words[-1], points))
        elif path == "af_packet" and what == "TCP" and points:
            curves.append((what, points))
    return curves


def sim_curves(rows):
    mtu = max(row["mtu"] for row in rows)
    curves = {}
    for row in rows:
        if row["op"] == "write" and row["mtu"] == mtu and row["loss_percent"] and not row.get("bursts"):
            curves.setdefault(row["mode"], []).append((row["loss_percent"], row["relative"]))
    return [(mode, sorted(points)) for mode, points in curves.items()]
