#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the conformance tests against a device, and writes the table of docs/conformance.md."""

import argparse
import importlib
import json
import shlex
import sys
import time

import dut as dut_module
import link as link_module
import station
from station import CASES, Failure, Unsupported

MODULES = ("cases_headers", "cases_responder", "cases_refusals", "cases_requester",
           "cases_recovery", "cases_datagram", "cases_congestion")
TRACE_LINES = 40


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dut", help="the program under test with its options, or tcp:HOST:PORT")
    p.add_argument("--link", help="a network interface, or ring")
    p.add_argument("--device", default="uroce", choices=("uroce", "rxe"))
    p.add_argument("--mode", help="of the RC queue pairs of uroce: gbn or reorder")
    p.add_argument("--ip", default="10.77.0.2")
    p.add_argument("--dut-ip", default="10.77.0.1")
    p.add_argument("--ip6")
    p.add_argument("--dut-ip6")
    p.add_argument("--mac", default="02:75:72:00:00:0b")
    p.add_argument("--dut-mac", default="02:75:72:00:00:0a")
    p.add_argument("--gids", default="0,1", help="GID indices of IPv4 and IPv6")
    p.add_argument("--settle", type=float, default=0.0, help="seconds a barrier waits besides")
    p.add_argument("--grain", type=float, default=0.0, help="seconds of the device's timer ticks")
    p.add_argument("--patience", type=float, default=20, help="seconds that an answer may take")
    p.add_argument("--verdicts", help="file for the verdicts, JSON")
    p.add_argument("--expect", help="a table: every verdict must be the one that it has")
    p.add_argument("--column", help="the column of that table")
    p.add_argument("--table", nargs="+", metavar="FILE|COLUMN=JSON,JSON",
                   help="writes the table into FILE from verdicts of several runs")
    p.add_argument("--list", action="store_true", help="lists the tests")
    p.add_argument("tests", nargs="*", help="names, all by default")
    return p.parse_args()


class Runner:
    def __init__(self, args):
        self.args = args
        self.dut = self.link = None

    def start(self):
        """Starts the program under test and the link to it, also after it has died."""
        a = self.args
        self.stop()
        if a.dut.startswith("tcp:"):
            _, host, port = a.dut.split(":")
            self.link = link_module.kernel_interface(a.link)
            self.dut = dut_module.connect(host, int(port))
        elif a.link == "ring":
            self.link, frames = link_module.relay_pair()
            self.dut = dut_module.spawn(shlex.split(a.dut), frames)
            frames.close()
        else:
            self.link = link_module.kernel_interface(a.link)
            self.dut = dut_module.spawn(shlex.split(a.dut))
        gids = [int(g) for g in a.gids.split(",")]
        self.station = station.Station(
            self.link, self.dut, a.ip, a.dut_ip, a.mac, a.dut_mac, mode=a.mode, device=a.device,
            gids=gids, ip6=a.ip6, dut_ip6=a.dut_ip6, settle_s=a.settle, grain_s=a.grain)

    def stop(self):
        status = self.dut.close() if self.dut else 0
        if self.link:
            self.link.close()
        self.dut = self.link = None
        return status

    def run(self, test):
        """Runs a test; returns (verdict, reason)."""
        s = self.station
        try:
            self.dut.ask("clear")
            s.case(test.name)
            test.run(s)
            s.barrier()
            if s.malformed:
                return "fail", f"the device sent: {s.malformed[0]}"
            return "pass", ""
        except Failure as e:
            return "fail", str(e)
        except Unsupported as e:
            return "n/a", str(e)
        except dut_module.Refused as e:
            return "fail", f"refused: {e}"
        except dut_module.Gone as e:
            self.start()
            return "fail", f"the program under test is gone: {e}"

    def run_all(self, tests):
        verdicts = {}
        self.start()
        for test in tests:
            s, began = self.station, time.monotonic()
            verdict, why = self.run(test)
            verdicts[test.name] = {"verdict": verdict, "why": why}
            print(f"{verdict:5} {test.name} ({time.monotonic() - began:.2f} s)"
                  f"{': ' + why if why else ''}", flush=True)
            if verdict == "fail":
                for line in s.trace[-TRACE_LINES:]:
                    print(f"        {line}")
        status = self.stop()
        if status != 0:
            print(f"the program under test ended with status {status}")
        return verdicts, status


# ---- the table ----

BEGIN, END = "<!-- table: begin (run.py --table) -->", "<!-- table: end -->"


def worst_of(files):
    """Combines the verdicts of several runs: one failure is a failure."""
    out = {}
    for file in files:
        with open(file) as f:
            for test, got in json.load(f).items():
                if test not in out or got["verdict"] == "fail":
                    out[test] = got
    return out


def write_table(path, columns):
    """`columns`: name -> verdicts."""
    rows = [["clause", "test", "what it demands", *columns],
            ["---"] * (3 + len(columns))]
    for t in CASES:
        row = [t.clause, f"`{t.name}`", t.sentence]
        for verdicts in columns.values():
            got = verdicts.get(t.name)
            row.append(got["verdict"] if got else "-")
        rows.append(row)
    table = "\n".join("| " + " | ".join(r) + " |" for r in rows)
    with open(path) as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    with open(path, "w") as f:
        f.write(f"{before}{BEGIN}\n{table}\n{END}{after}")


def read_column(path, column):
    """The verdicts in the table, by test."""
    with open(path) as f:
        lines = f.read().split(BEGIN)[1].split(END)[0].strip().splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    at = cells[0].index(column)
    return {r[1].strip("`"): r[at] for r in cells[2:]}


def compare(path, column, verdicts):
    """The differences from the table, one sentence each. Better verdicts must be recorded in the table as well."""
    wanted = read_column(path, column)
    return [f"{t}: {got['verdict']}, and {path} says {wanted.get(t, 'nothing')}"
            for t, got in verdicts.items() if wanted.get(t) != got["verdict"]]


def main():
    args = arguments()
    for m in MODULES:
        importlib.import_module(m)
    if args.list:
        for t in CASES:
            print(f"{t.name:40} {t.clause}")
        return 0
    if args.table:
        columns = {}
        for part in args.table[1:]:
            name, files = part.split("=", 1)
            columns[name] = worst_of(files.split(","))
        write_table(args.table[0], columns)
        return 0
    unknown = [n for n in args.tests if not any(t.name == n for t in CASES)]
    if unknown or not args.dut or not args.link:
        sys.exit(f"run.py: no such test: {' '.join(unknown)}" if unknown
                 else "run.py: --dut and --link are needed")
    station.PATIENCE_S = args.patience
    tests = [t for t in CASES if not args.tests or t.name in args.tests]
    verdicts, status = Runner(args).run_all(tests)
    if args.verdicts:
        with open(args.verdicts, "w") as f:
            json.dump(verdicts, f, indent=1)
    counts = [sum(v["verdict"] == word for v in verdicts.values()) for word in ("pass", "fail", "n/a")]
    print("{} passed, {} failed, {} not applicable".format(*counts))
    if args.expect:
        wrong = compare(args.expect, args.column, verdicts)
        print("\n".join(wrong))
        return int(bool(wrong) or status != 0)
    return int(counts[1] > 0 or status != 0)


if __name__ == "__main__":
    sys.exit(main())
