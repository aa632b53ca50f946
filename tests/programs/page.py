# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/programs.md. Their cells are outcomes of runs: outcomes.json has those of the last `run --write` of each kind.

A run is of a kind: "plain", "loss", "cpus", "rxe", or a release. A row that has changed since it ran counts as not run."""
import collections
import itertools
import json
import os
import pathlib
import re
import time

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "programs.md"
OUTCOMES = HERE / "outcomes.json"
BEGIN, END = "<!-- programs: begin -->\n", "<!-- programs: end -->\n"
# Title of a column: the ways to connect, and the kind of run. A column of several ways has the number of those that it has.
PLAIN = {"memif": "memif", "veth": "veth", "uroced": "uroced", "uroced, one address": "uroced-one", "one host": "host",
         "guest is client": "rxe-client", "guest is server": "rxe-server"}
OTHER = {"1 % loss": "loss", "one CPU": "cpus"}
# Releases whose own programs run, in a chroot, on libraries that were built there.
RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13", "noble": "Ubuntu 24.04"}
SHOWN = {"-p {port}": "", "-lp {port}": "", "-B {port}": "", "-P {port}": "", "{peer}": "SERVER", "{address}": "SERVER", "{own}": "CLIENT", "{gid}": "GID",
         "{run}": "uroce-run ...", "{mpi}": "PROGRAM", "{mpich}": "PROGRAM", "{tests}/hpcc ": "", "sh {tests}/rcopy.sh {tests}/pyverbs.txt SERVER {dir}/copy": "rcopy FILE SERVER:FILE",
         "-o {dir}/got -w %{{size_download}} ": "", "SERVER:{port}": "SERVER",
         "--allow-run-as-root --oversubscribe ": "", "env DAT_OVERRIDE={tests}/dat/CLIENT.conf ": "", "--thread ": "", "--port={port} ": "",
         "sh {tests}/iser_disk.sh iser": "qemu-io -f raw -c write ... -c read ... iser", "env iser-initiator SERVER {port}": "iscsiadm --interface iser --login; dd",
         "python3 {tests}/migrate.py source {dir} SERVER": "qemu-system-x86_64, migrate rdma:SERVER", "rdma:SERVER pin": "rdma:SERVER, rdma-pin-all",
         "disk/1 {dir}": "disk/1"}


def release_ways(row, release):
    """What a row runs over with the programs of a release: veth if it can, or else memif; once, and not if they cannot do it."""
    if not row["about"] or "repeat" in row or release in row.get("not_on", []):
        return []
    return [where for where in ("veth", "memif") if where in row["where"]][:1]


def command_of(row):
    command = row.get("alone") or row.get("client") or row["server"] + " {peer}"
    for word, shown in SHOWN.items():
        command = command.replace(word, shown)
    return re.sub(r"\s+", " ", command).strip()


def ran_of(row):
    """What a run of the row is told apart by: with the environment that it sets."""
    return " ".join([*(f"{name}={value}" for name, value in row.get("env", {}).items()), command_of(row)])


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        models = re.findall(r"^model name\s*: (.*)", f.read(), re.M)
    return f"{len(os.sched_getaffinity(0))} x {models[0].strip() if models else os.uname().machine}, Linux {os.uname().release.split('-')[0]}"


def kind_of(options):
    return options.release or ("rxe" if options.rxe else "loss" if options.loss else "cpus" if options.cpus else "plain")


def save(path, kind, outcomes, seconds):
    """A run, for merge()."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"kind": kind, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "load": round(os.getloadavg()[1]),
                                "seconds": round(seconds),
                                "outcomes": outcomes}, indent=1), encoding="utf-8")


def merge(paths):
    """{"runs": a line each, "pyverbs": {outcome: number of tests}, "rows": {name: {"command": ..., kind: {way: [outcomes, in the order of
    the files]}}}}"""
    runs, rows, pyverbs = [], {}, {}
    for path in paths:
        run = json.loads(path.read_text(encoding="utf-8"))
        runs.append({key: run[key] for key in ("kind", "date", "machine", "load")})
        if run["kind"] == "pyverbs":
            pyverbs = collections.Counter(o["result"] for o in run["outcomes"])
            continue
        for o in run["outcomes"]:
            row = rows.setdefault(o["name"], {"command": o["command"]})
            if row["command"] == o["command"]:
                row.setdefault(run["kind"], {}).setdefault(o["where"], []).append(o["result"])
    return {"runs": list({json.dumps(run): run for run in runs}.values()), "pyverbs": pyverbs, "rows": rows}


def keep(merged, part):
    """Adds what outcomes.json has of kinds that are not among these runs; `part`: also of other rows of these kinds."""
    old = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    new = {run["kind"] for run in merged["runs"]}
    if part:
        for run in merged["runs"]:
            run["rows"] = sum(run["kind"] in row for row in merged["rows"].values())
    merged["runs"] = [run for run in old["runs"] if part or run["kind"] not in new] + merged["runs"]
    if "pyverbs" not in new:
        merged["pyverbs"] = old["pyverbs"]
    for name, before in old["rows"].items():
        row = merged["rows"].setdefault(name, {"command": before["command"]})
        if row["command"] == before["command"]:
            row.update({kind: of for kind, of in before.items() if kind not in row and (part or kind not in new)})


def write(paths, rows, part):
    merged = merge(paths)
    keep(merged, part)
    names = {row["name"] for row in rows}
    lines = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(merged["rows"].items()) if name in names]
    text = "{\"runs\": [\n" + ",\n".join(f" {json.dumps(run)}" for run in merged["runs"]) + "\n],\n\"pyverbs\": " \
        + json.dumps(merged["pyverbs"]) + ",\n\"rows\": {\n" + ",\n".join(lines) + "\n}}\n"
    OUTCOMES.write_text(text, encoding="utf-8")


def cell(results):
    """What the runs of one row over one way, of one kind, came to."""
    if not results:
        return "not run"
    good = [r for r in results if r in ("ok", "waits")]
    if not good:
        return "MISSED" if "MISSED" in results else "FAILED"
    return good[-1] if len(good) == len(results) else f"{good[-1]} in {len(good)} of {len(results)}"


def summary(row, ran, kind):
    """One cell for all ways to connect: those that are not ok by name."""
    cells = {where: cell(ran.get(kind, {}).get(where)) for where in row["where"]}
    if len(set(cells.values())) == 1:
        return next(iter(cells.values()))
    other = [text for text in dict.fromkeys(cells.values()) if text != "ok"]
    return "; ".join(f"{text}: {', '.join(where for where in cells if cells[where] == text)}" for text in other)


RXE = "rxe-client", "rxe-server"


def section(about, rows, outcomes):
    plain = {title: where for title, where in PLAIN.items() if any(where in row["where"] for row in rows)}
    other = {} if set(plain.values()) & set(RXE) else OTHER
    releases = [release for release in RELEASES if any(release in outcomes["rows"].get(row["name"], {}) for row in rows)]
    titles = [*plain, *other, *(RELEASES[release] for release in releases)]
    lines = ["", f"### {about}", "", f"| program | {' | '.join(titles)} | outcome |", "|---" * (len(titles) + 2) + "|"]
    for row in rows:
        ran = outcomes["rows"].get(row["name"], {})
        if ran.get("command") != ran_of(row):
            ran = {}
        cells = [cell(ran.get("rxe" if where in RXE else "plain", {}).get(where)) if where in row["where"] else "" for where in plain.values()]
        cells += [summary(row, ran, kind) for kind in other.values()]
        cells += ["; ".join(cell(ran.get(release, {}).get(where)) for where in release_ways(row, release)) for release in releases]
        lines.append(f"| `{command_of(row)}` | {' | '.join(cells)} | {row.get('outcome', 'runs')} |")
    return lines


def head(outcomes):
    """When and where. The load says how much else the machine had to do."""
    kinds, loads = {}, {}
    for run in outcomes["runs"]:
        key = run["date"], run["machine"]
        kinds.setdefault(key, []).append((run["kind"], run.get("rows")))
        loads[key] = max(loads.get(key, 0), run["load"])
    said = {"plain": "plain", "loss": "1 % loss", "cpus": "one CPU", "rxe": "rxe", "pyverbs": "pyverbs", **RELEASES}

    def runs(kind, rows):
        return said[kind] + (f" ({rows} row{'s' if rows > 1 else ''})" if rows else "")

    return [f"Run on {date}, {of}, load average up to {loads[date, of]}: {', '.join(runs(*r) for r in dict.fromkeys(ran))}."
            for (date, of), ran in kinds.items()]


def table(rows, outcomes):
    lines = head(outcomes)
    for about, of in itertools.groupby(rows, lambda row: row["about"]):
        if about:
            lines += section(about, list(of), outcomes)
    lines += ["", "### pyverbs", "", "| outcome | tests |", "|---|---|"]
    lines += [f"| {what} | {outcomes['pyverbs'].get(what, 0)} |" for what in ("ok", "skipped", "error")]
    return "\n".join(lines) + "\n"


def new_text(rows):
    """(what the page says, what it should say)"""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    outcomes = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return text, before + BEGIN + table(rows, outcomes) + END + rest.split(END)[1]
