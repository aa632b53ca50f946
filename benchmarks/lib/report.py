# SPDX-License-Identifier: BSD-3-Clause
"""The results of a benchmark as text and JSON: rows of the table, bars that must be met, a plot."""

import json
import shutil
import subprocess

from . import stats
from .host import ROOT


def holds_guard(bar):
    if "guard" not in bar:
        return False
    return bar["value"] >= bar["guard"] if bar["sense"] == ">=" else bar["value"] <= bar["guard"]


def is_owed(bar):
    return not bar.get("compares") and not bar.get("moonshot")


class Report:
    def __init__(self, name, title, machine):
        self.name = name
        self.title = title
        self.machine = machine
        self.rows = []
        self.bars = []
        self.notes = []
        self.extra = {}  # more facts, only for the JSON

    def row(self, path, what, unit, values, base=None, base_name="", pipe=None):
        """Adds a contender. `base`: the values of its baseline, by turn; `pipe`: those of the bare pipe."""
        row = {
            "path": path,
            "what": what,
            "unit": unit,
            "median": round(stats.median(values), 4),
            "min": round(min(values), 4),
            "max": round(max(values), 4),
            "turns": [round(v, 4) for v in values],
        }
        if base is not None:
            ratios = stats.ratios_of(values, base)
            row["ratio"] = round(stats.median(ratios), 4)
            row["ratio_interval"] = stats.interval(ratios)
            row["ratio_to"] = base_name
        if pipe is not None:
            ratios = stats.ratios_of(values, pipe)
            row["pipe_ratio"] = round(stats.median(ratios), 4)
            row["pipe_ratio_interval"] = stats.interval(ratios)
        self.rows.append(row)

    def bar(self, name, value, bar, at_least=True, guard=None, compares=False, moonshot=False):
        """Adds a bar. `value`: a number, or one per turn; then the median counts and the interval is shown.
        `guard`: for a bar that is known to be missed, the limit that ./check enforces meanwhile. `compares`: it
        is the bar of something else, shown to compare with; `moonshot`: it is hoped for, not owed. If such a bar is
        missed, nothing failed."""
        turns = value if isinstance(value, list) else None
        if turns is not None:
            value = stats.median(turns)
        ok = value >= bar if at_least else value <= bar
        self.bars.append({"name": name, "value": round(value, 4), "bar": bar,
                          "sense": ">=" if at_least else "<=", "ok": bool(ok),
                          **({"guard": guard} if guard is not None and not ok else {}),
                          **({"compares": True} if compares else {}),
                          **({"moonshot": True} if moonshot else {}),
                          **({"interval": stats.interval(turns), "turns": len(turns)} if turns else {})})

    def missed(self, guarded=False):
        """The bars that are missed; with `guarded`, without those that meet their guard."""
        return [bar for bar in self.bars if not bar["ok"] and is_owed(bar) and not (guarded and holds_guard(bar))]

    def json(self):
        return {"benchmark": self.name, "machine": self.machine, "rows": self.rows, "bars": self.bars,
                "notes": self.notes, **self.extra}

    # ---- text ----

    def print_machine(self):
        m = self.machine
        print(f"{m['cpu']}, {m['cpus']} CPUs, kernel {m['kernel']}, hugepages "
              f"{'yes' if m['hugepages'] else 'no'}, load {m['load']}, build {m['build']}")

    def print_bars(self):
        for bar in self.bars:
            digits = 3 if abs(bar["bar"]) < 10 else 0
            text = f"{bar['value']:.{digits}f}"
            if bar.get("turns", 1) > 1:
                low, high = bar["interval"]
                text += f" [{low:.{digits}f}, {high:.{digits}f}]"
            verdict = "ok    " if bar["ok"] else "MISSED" if is_owed(bar) else "beyond"
            print(f"{verdict} {bar['name']}: {text} (bar {bar['sense']} {bar['bar']:g})")
        if any(bar.get("compares") for bar in self.bars):
            print("beyond: the bar is another's, printed to compare with; it is none that this one has to meet")
        if any(bar.get("moonshot") for bar in self.bars):
            print("moonshot: hoped for, not owed")
        if any(bar.get("turns", 1) > 1 for bar in self.bars):
            print("in brackets: least and most of the turns")

    def print(self):
        print(f"\n{self.title}")
        self.print_machine()
        head = f"{'path':10} {'what':32} {'median':>9} {'min':>9} {'max':>9} {'':5} ratio"
        print(head + "\n" + "-" * (len(head) + 14))
        last = None
        for row in self.rows:
            if last is not None and row["path"] != last:
                print()
            last = row["path"]
            ratio = ""
            if "ratio" in row:
                low, high = row["ratio_interval"]
                ratio = f"{row['ratio']:.2f} [{low:.2f}, {high:.2f}] of {row['ratio_to']}"
            if "pipe_ratio" in row:
                low, high = row["pipe_ratio_interval"]
                ratio += f"{', ' if ratio else ''}{row['pipe_ratio']:.2f} [{low:.2f}, {high:.2f}] of the bare pipe"
            print(f"{row['path']:10} {row['what']:32} {row['median']:9.3f} {row['min']:9.3f} "
                  f"{row['max']:9.3f} {row['unit']:5} {ratio}")
        for note in self.notes:
            print(note)
        print()
        self.print_bars()

    # ---- plot ----

    def plot(self, ylabel, logscale=False):
        """Plots results/NAME.svg: a bar per row, in the order of the table. Returns its path or None."""
        out = ROOT / "results" / f"{self.name}.svg"
        out.parent.mkdir(exist_ok=True)
        lines = []
        for i, row in enumerate(self.rows):
            label = f"{row['path']}: {row['what']}".replace('"', "'")
            colour = {"raw": 0x999999, "bare": 0x777777, "TCP": 0xCC7722}.get(row["what"].split()[0], 0x2266AA)
            lines.append(f'{i} {row["median"]} {row["min"]} {row["max"]} {colour} "{label}"')
        script = "\n".join([
            f"set terminal svg noenhanced size 900,{160 + 26 * len(lines)} font 'sans,12' background 'white'",
            f"set output '{out}'",
            f"set title \"{self.title}\"",
            "set style fill solid", "set boxwidth 0.8", "unset key", "set grid x",
            f"set xlabel '{ylabel}; whiskers: least and most of the turns'",
            "set logscale x" if logscale else "set xrange [0:*]",
            f"set yrange [{len(lines) - 0.4}:-0.6]",
            "$data << EOD", *lines, "EOD",
            "x0 = " + ("GPVAL_X_MIN" if logscale else "0"),
            "plot $data using 2:1:(" + ("1e-3" if logscale else "0") +
            "):2:($1-0.4):($1+0.4):5:ytic(6) with boxxyerror lc rgb variable, "
            "$data using 2:1:3:4 with xerrorbars lc rgb 'black' pt 0",
        ])
        return out if gnuplot(script) else None


def gnuplot(script):
    if shutil.which("gnuplot") is None:
        return False
    return subprocess.run(["gnuplot"], input=script, text=True, capture_output=True).returncode == 0


def write_json(path, reports):
    """Writes one JSON object; for several benchmarks it contains all their rows and bars."""
    if len(reports) == 1:
        whole = reports[0].json()
    else:
        whole = {"benchmark": "all", "machine": reports[0].machine, "rows": [], "bars": [], "notes": []}
        for report in reports:
            whole["rows"] += [{"benchmark": report.name, **row} for row in report.rows]
            whole["bars"] += [{"benchmark": report.name, **bar} for bar in report.bars]
            whole["notes"] += report.notes
    text = json.dumps(whole, indent=2) + "\n"
    if path == "-":
        print(text, end="")
    else:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
