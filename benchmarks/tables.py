#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of docs/benchmarks.md and docs/results/fabric.md, and the three figures of README.md.

    benchmarks/run throughput --json throughput.json
    benchmarks/tables.py throughput.json --commit HASH

A table stands between <!-- NAME: begin --> and <!-- NAME: end -->. A run of one benchmark replaces the tables of its section, and the
line above them, NAME-machine, which says of which machine and commit they are. All else stays, so figures of two runs never stand
in one table. A run of all replaces every section but that of fabrics, and the figures of README.md, which are of three benchmarks.
A run of fabric replaces what belongs to the parts that were run.
"""

import argparse
import json
import pathlib
import re
import sys

import programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("docs/benchmarks.md", "docs/results/fabric.md", "README.md")
BLOCK = re.compile(r"<!-- (\S+): begin -->\n.*?<!-- \1: end -->", re.S)


def number(value):
    """Three significant digits, without an exponent."""
    if value is None:
        return ""
    if value != 0 and abs(value) < 0.0005:
        return "< 0.001"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text and float(text) == int(float(text)) else text


def ratio(value, interval=None):
    if value is None:
        return ""
    text = f"{value:.2f}" if abs(value) < 10 else number(value)
    return text if not interval else f"{text} ({interval[0]:.2f} to {interval[1]:.2f})"


def table(head, rows):
    if not rows:
        sys.exit(f"this run has no row of the table with {', '.join(filter(None, head))}")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def value_of(bar):
    """Three decimals, so that a near miss does not read like the bar."""
    if isinstance(bar["value"], int):
        return str(bar["value"])
    low, high = bar.get("interval") or (None, None)
    return f"{bar['value']:.3f}" + ("" if low is None else f" ({low:.3f} to {high:.3f})")


def bars(run, name):
    """How many bars hold, and each that does not."""
    mine = [bar for bar in run["bars"] if bar["benchmark"] == name and not bar.get("compares")]
    all_of_it = [bar for bar in mine if not bar.get("moonshot")]
    missed = [bar for bar in all_of_it if not bar["ok"]]
    sense = {">=": "at least", "<=": "at most"}
    moonshots = "; ".join(f"{bar['name'].removeprefix('moonshot: ')} {value_of(bar)}, hoped for: {sense[bar['sense']]} {bar['bar']:g}"
                          for bar in mine if bar.get("moonshot"))
    text = f"\n\nMoonshots: {moonshots}." if moonshots else ""
    if not all_of_it:
        return text
    text += f"\n\nBars: {len(all_of_it) - len(missed)} of {len(all_of_it)} hold."
    if not missed:
        return text
    rows = [[bar["name"], value_of(bar), f"MISSED: {sense[bar['sense']]} {bar['bar']:g}"] for bar in missed]
    return text + "\n\n" + table(["missed bar", "measured", "wanted"], rows)


def rows_of(run, name):
    rows = [row for row in run["rows"] if row["benchmark"] == name]
    if not rows:
        sys.exit(f"{name} is not in this run")
    return rows


def plain(run, name, base="raw"):
    """One contender a line."""
    found = rows_of(run, name)
    head = ["path", "what", "median", "turns"]
    rows = [[row["path"], row["what"], f"{number(row['median'])} {row['unit']}".strip(),
             f"{number(row['min'])} to {number(row['max'])}"] for row in found]
    # A run of before the bare pipe has no ratio to it.
    for column, key in ((f"to {base}", "ratio"), ("to bare pipe", "pipe_ratio")):
        if any(row.get(key) is not None for row in found):
            head.append(column)
            for line, row in zip(rows, found):
                line.append(ratio(row.get(key), row.get(f"{key}_interval")))
    return table(head, rows) + bars(run, name)


def goodput(run, chosen):
    """loss: a line for each load, a column for each loss rate."""
    loads = {}
    for row in rows_of(run, "loss"):
        if chosen(row["path"]):
            key = row["path"], " ".join(row["what"].split())
            loads.setdefault(key, {})[row["loss_percent"], bool(row.get("bursts"))] = row
    losses = sorted({cell for cells in loads.values() for cell in cells}, key=lambda cell: (cell[1], cell[0]))[1:]
    head = ["path", "load", "no loss, Gb/s", *(f"{loss:g} %{' in bursts' if burst else ''}" for loss, burst in losses),
            "resent / lost at 1 %"]
    lines = []
    for (path, what), cells in loads.items():
        line = [path, what, number(cells[0, False]["gbps"])]
        line += [ratio(cells[cell]["relative"]) if cell in cells else "" for cell in losses]
        line.append(ratio(cells.get((1, False), {}).get("resent_per_lost")))
        lines.append(line)
    return table(head, lines)


def scale(run):
    """A line for each number of queue pairs and operation, a column for each loss rate; of several seeds the worst."""
    loads = {}
    for row in rows_of(run, "scale"):
        loads.setdefault((row["qps"], row["depth"], row["op"], row["mode"]), {})[row["loss_percent"], row["bursts"]] = row
    losses = sorted({cell for cells in loads.values() for cell in cells}, key=lambda cell: (cell[1], cell[0]))[1:]
    names = [f"{loss:g} %{' in bursts' if bursts else ''}" for loss, bursts in losses]
    head = ["QPs", "what", "no loss, Gb/s", *names, "resent / lost", "timeouts at 1 %", "bytes a hole", "most, MB",
            "p99.9 at 1 %, us", "ideal"]
    lines = []
    for (qps, depth, op, mode), cells in loads.items():
        lossy = [cell for loss, cell in cells.items() if loss[0]]
        one = cells[1, False]
        lines.append([
            f"{qps}{f' x {depth}' if depth > 1 else ''}", op.upper() + ("" if mode == "extended" else f" {mode}"),
            number(cells[0, False]["goodput_gbps"]),
            *(f"{cells[loss]['kept_least']:.2f} ({cells[loss]['kept_ideal']:.2f})" if loss in cells else "" for loss in losses),
            f"{max(cell['resent_per_lost_most'] or 0 for cell in lossy):.2f}", one["timeouts"],
            max(cell["state_bytes_per_hole"] for cell in lossy),
            number(max(cell["state_peak_bytes"] for cell in lossy) / 1e6), number(one["p999_us"]),
            number(one["p999_ideal_us"])])
    return table(head, lines)


def missed_scale(run):
    """How many bars hold; the table shows the rest."""
    found = [bar for bar in run["bars"] if bar["benchmark"] == "scale"]
    return f"\n\nBars: {sum(bar['ok'] for bar in found)} of {len(found)} hold; the benchmark names those that do not."


def instructions(run):
    lines = []
    for note in run["notes"]:
        found = re.match(r"instructions a packet, (.*): gbn (\d+), reorder (\d+), extended (\d+); without payload "
                         r"(\d+), (\d+), (\d+)", note)
        if found:
            lines.append(found.groups())
    return table(["load", "gbn", "reorder", "extended", "gbn, no payload", "reorder, no payload",
                  "extended, no payload"], lines)


def memory(run):
    def size(value):
        return "" if value is None else "0" if value == 0 else f"{number(value / 1e6)} MB"
    lines = [[row["what"], size(row["conventional"]), size(row["uroce"]), row["how"]] for row in rows_of(run, "memory")]
    return table(["structure", "conventional", "uroce", "how"], lines) + bars(run, "memory")


def scheduler(run):
    rows = rows_of(run, "scheduler")
    sizes = list(rows[0]["instructions"])
    lines = [[row["what"], *(f"{row['instructions'][size]:g}" for size in sizes)] for row in rows]
    return table(["instructions of a", *(f"{size} queues" for size in sizes)], lines) + bars(run, "scheduler")


def connections(run):
    cells = {}
    for row in rows_of(run, "connections"):
        cells.setdefault((row["size"], row["way"]), {})[row["qps"]] = row
    sizes = sorted({qps for line in cells.values() for qps in line})
    lines = [[f"{size} B", way, number(line[128]["median"]), *(ratio(line[qps]["ratio"]) for qps in sizes),
              number(max(line[qps]["again"] for qps in sizes))] for (size, way), line in cells.items()]
    return table(["message", "buffers", "128 QPs, M/s", *(f"{qps} QP{'s' if qps > 1 else ''}" for qps in sizes),
                  "most resent of 1000"], lines) + bars(run, "connections")


def lanes(run):
    lines = [[row["q"], row["h"], row["l"], number(row["law"]), number(row["measured"]), number(row["iba_rule"]),
              number(row["iba"])] for row in rows_of(run, "vl") if row["kind"] == "row"]
    return table(["Q", "H", "L", "law", "`measured`", "IBA's rule", "`iba`"], lines) + bars(run, "vl")


def admission(run, several):
    cells = {}
    for row in rows_of(run, "admission"):
        if (row["peers"] > 1) == several:
            cells.setdefault((row["peers"], row["senders"], row["load"]), {})[row["mode"]] = row
    modes = list(next(iter(cells.values()), {}))
    lines = [[peers, senders, f"{load:g}", *(f"{number(line[mode]['refused'])}, {line[mode]['jain']:.3f}, "
              f"{number(line[mode]['mean_us'] / 1000)}, {number(line[mode]['worst_us'] / 1000)}" for mode in modes)]
             for (peers, senders, load), line in cells.items()]
    return table(["peers", "senders", "load", *modes], lines)


def slow_destination(run):
    lines = [[row["mode"], number(row["healthy"]), ratio(row.get("keep")), number(row["slow"]), number(row["wait_ms"]),
              number(row["peak_ms"]), row["resent"]]
             for row in rows_of(run, "pacing") if row["what"] == "slow destination"]
    return table(["mode", "three healthy, Gb/s", "of alone", "slow one, Gb/s", "its queue, ms", "peak, ms", "resent"],
                 lines)


def incast(run):
    lines = [[row["mode"], number(row["gbps"]), number(100 * row["drop_share"]), row["resent"], number(row["wait_ms"]),
              number(row["p50_ms"]), number(row["p99_ms"]), f"{row['jain']:.3f}"]
             for row in rows_of(run, "pacing") if row["what"] == "incast"]
    return table(["mode", "Gb/s", "dropped, %", "resent", "queue, ms", "p50, ms", "p99, ms", "Jain's index"],
                 lines) + bars(run, "pacing")


def pick(run, benchmark, **wanted):
    for row in rows_of(run, benchmark):
        if all(" ".join(row[key].split()) == value if isinstance(value, str) else row[key] == value
               for key, value in wanted.items()):
            return row
    sys.exit(f"{benchmark} has no row of {wanted}")


def headline(run, commit):
    """README.md: three figures beside their baselines."""
    extended = pick(run, "loss", path="memif", what="WRITE 64 KB extended", loss_percent=1, bursts=False)
    clean = pick(run, "loss", path="memif", what="WRITE 64 KB extended", loss_percent=0, bursts=False)
    gbn = pick(run, "loss", path="memif", what="WRITE 64 KB gbn", loss_percent=1, bursts=False)
    packet = pick(run, "throughput", path="af_packet", what="uroce WRITE")
    raw = pick(run, "throughput", path="af_packet", what="raw testpmd, 4154 B frames")
    short = pick(run, "latency", path="af_packet", what="uroce WRITE, p50")
    tcp = pick(run, "latency", path="veth", what="TCP (sockperf), p50")
    return table(["", "uroce", "baseline", "printed by"], [
        ["goodput kept at 1 % loss in each direction, 64 KB WRITE, shared memory",
         f"**{100 * extended['relative']:.0f} %** of {number(clean['gbps'])} Gb/s",
         f"go-back-N: {100 * gbn['relative']:.0f} %", "`benchmarks/run loss`"],
        ["64 KB WRITE over a veth pair, AF_PACKET", f"**{number(packet['median'])} Gb/s**",
         f"raw frames, DPDK's testpmd: {number(raw['median'])} Gb/s", "`benchmarks/run throughput`"],
        ["8 B WRITE over a veth pair, AF_PACKET, half a round trip", f"**{number(short['median'])} us**",
         f"the kernel's TCP, sockperf: {number(tcp['median'])} us", "`benchmarks/run latency`"]]) + (
             f"\n\nOf one run: {machine(run, commit)}")


def machine(run, commit):
    about = run["machine"]
    return (f"{about['cpu']}, {about['cpus']} virtual CPUs, Linux {about['kernel'].split('-')[0]}, "
            f"{'with' if about['hugepages'] else 'without'} hugepages, release build{f' of {commit}' if commit else ''}.")


# How the notes begin that belong below a table: a run of all has those of all benchmarks.
NOTES = {"management": r"rings: |veth: |A MAD ", "switch": r"\d+ discoveries ", "programs": r"the thread takes "}


def notes(run, name):
    return "".join(f"\n\n{note}" for note in run["notes"] if run["benchmark"] == name or re.match(NOTES[name], note))


def management(run):
    lines = [[row["what"], f"{number(row['value'])} {row['unit']}".strip(), row["paper"]] for row in rows_of(run, "management")]
    return table(["", "measured", "beside it"], lines) + bars(run, "management") + notes(run, "management")


# The tables of a benchmark's section.
SECTIONS = {
    "throughput": lambda run: {"throughput": plain(run, "throughput")},
    "msgrate": lambda run: {"msgrate": plain(run, "msgrate")},
    "latency": lambda run: {"latency": plain(run, "latency")},
    "loss": lambda run: {"loss": goodput(run, lambda path: not path.startswith("sim")),
                         "loss-simulator": goodput(run, lambda path: path.startswith("sim")) + bars(run, "loss"),
                         "instructions": instructions(run)},
    "scale": lambda run: {"scale": scale(run) + missed_scale(run)},
    "memory": lambda run: {"memory": memory(run)},
    "scheduler": lambda run: {"scheduler": scheduler(run)},
    "connections": lambda run: {"connections": connections(run)},
    "vl": lambda run: {"vl": lanes(run)},
    "turns": lambda run: {"turns": plain(run, "turns", "in turn")},
    "admission": lambda run: {"admission": admission(run, False), "admission-peers": admission(run, True) + bars(run, "admission")},
    "pacing": lambda run: {"pacing": slow_destination(run), "incast": incast(run)},
    "rxe": lambda run: {"rxe": plain(run, "rxe")},
    "switch": lambda run: {"switch": plain(run, "switch", "the bridge") + notes(run, "switch")},
    "programs": lambda run: {"programs": plain(run, "programs", "what it is compared with") + notes(run, "programs")},
    "sockets": lambda run: {"sockets": plain(run, "sockets", "TCP")},
    "management": lambda run: {"management": management(run)},
}
HEADLINE = {"throughput", "loss", "latency"}


def fabric_auto(found):
    """How often AUTO meets its bars."""
    kinds = {"the best goodput": "within 5 % of the best goodput", "none, goodput": "not below no pacing",
             "the least p99 slowdown": "within 5 % of the least p99 slowdown"}
    lines = []
    for title in ("AUTO", "AUTO by round trips"):
        for what, text in kinds.items():
            mine = [bar for bar in found if f": {title} / {what}" in bar["name"]]
            missed = [bar for bar in mine if not bar["ok"]]
            lines.append([title, text, f"{len(mine) - len(missed)} of {len(mine)}",
                          "; ".join(f"{bar['name'].split(':')[0]} {bar['value']:.3f}" for bar in missed)])
    return table(["", "bar", "holds", "missed"], lines)


NOTHING = "None of these runs has been made."


def fabric_bars(found):
    lines = [[bar["name"], "holds" if bar["ok"] else "MISSED", number(bar["value"])] for bar in found]
    return table(["bar", "holds", "measured"], lines) if lines else NOTHING


# What docs/benchmarks.md says of a part; the paper's bars are not uroce's.
SUMMARIES = {"rivals": ("fabric", fabric_auto), "faults": ("fabric-faults", fabric_bars), "size": ("fabric-size", fabric_bars)}
# The block of a table in docs/results/fabric.md, where it is not fabric-KEY.
FABRIC_TABLES = {"size": "fabric-speed"}


def fabric(run):
    texts = {}
    for part, made_of in run["parts"].items():
        name, summary = SUMMARIES.get(part, (f"fabric-{part}", None))
        texts[f"{name}-machine"] = f"{made_of}."
        if summary:
            texts[name] = summary([bar for bar in run["bars"] if bar["part"] == part and not bar.get("compares")])
    for key, each in run["tables"].items():
        if each["part"] in run["parts"]:
            texts[FABRIC_TABLES.get(key, f"fabric-{key}")] = table(each["columns"], each["rows"]) if each["rows"] else NOTHING
    return texts


def blocks(run, commit):
    """The text of each block that this run replaces."""
    if run["benchmark"] == "fabric":
        if "parts" not in run:
            sys.exit("this run of fabric does not say what its parts are made of: run it again with --resume")
        return fabric(run)
    if run["benchmark"] != "all":
        if run["benchmark"] not in SECTIONS:
            sys.exit(f"no page has a table of {run['benchmark']}")
        if run["benchmark"] == "programs" and set(run.get("parts", programs.PARTS)) != set(programs.PARTS):
            sys.exit(f"the table of programs is of one run of all parts, and this is of {', '.join(run['parts'])}")
        for each in run["rows"] + run["bars"]:
            each["benchmark"] = run["benchmark"]
    # Of a benchmark that a run of all does not have, the tables stay.
    names = {row["benchmark"] for row in run["rows"]} & set(SECTIONS) or {run["benchmark"]} & set(SECTIONS)
    texts = {}
    for name in names:
        texts |= {f"{name}-machine": machine(run, commit), **SECTIONS[name](run)}
    if HEADLINE <= names:
        texts["headline"] = headline(run, commit)
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", help="what `benchmarks/run NAME --json` has written")
    parser.add_argument("--commit", default="", help="the commit that was measured")
    options = parser.parse_args()
    with open(options.json, encoding="utf-8") as file:
        run = json.load(file)
    texts, seen = blocks(run, options.commit), set()

    def fill(found):
        if found[1] not in texts:
            return found[0]  # of another run
        seen.add(found[1])
        return f"<!-- {found[1]}: begin -->\n{texts[found[1]]}\n<!-- {found[1]}: end -->"
    pages = {ROOT / page: BLOCK.sub(fill, (ROOT / page).read_text(encoding="utf-8")) for page in PAGES}
    if set(texts) - seen:
        sys.exit(f"no page has a place for {', '.join(sorted(set(texts) - seen))}")
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
