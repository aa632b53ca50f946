#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""benchmark_report.py SOURCE_DIR: what benchmarks/throughput, msgrate, latency, scale, programs and fabric make of figures that are given
here: rows, bars, held or missed, and the tables of docs/benchmarks.md. Nothing is run or measured."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "benchmarks"))
sys.dont_write_bytecode = True

import fabric  # noqa: E402
import latency  # noqa: E402
import management  # noqa: E402
import msgrate  # noqa: E402
import programs  # noqa: E402
import scale  # noqa: E402
import switch  # noqa: E402
import tables  # noqa: E402
import throughput  # noqa: E402
from lib import cells, fabric_faults, fabric_paper, fabric_plots, fabric_rivals, fabric_size, lossy, perf  # noqa: E402
from lib.host import Failure  # noqa: E402
from lib.report import Report  # noqa: E402

MACHINE = {"cpu": "none", "cpus": 2, "kernel": "0", "hugepages": True, "load": 0, "build": ""}
TURNS = 3


def way(name, pmtu):
    return types.SimpleNamespace(name=name, pmtu=pmtu, zero_copy=name == "memif", pair=None)


WAYS = [way("memif", 4096), way("af_xdp", 2048), way("af_packet", 4096)]


def report(name):
    made = Report(name, name, MACHINE)
    made.plot = lambda *_args, **_more: None
    return made


def figures(contenders, value_of, parts=()):
    """What stats.turns() returns if each contender has value_of(key) in every turn."""
    found = {}
    for key, _measure in contenders:
        for full in [(key, part) for part in parts] or [key]:
            found[full] = [float(value_of(*full))] * TURNS
    return found


def of_throughput(values, modes=(("", False),)):
    runs = throughput.contenders(None, WAYS, WAYS[0], None, modes, 1)
    return throughput.fill(report("throughput"), WAYS, modes, figures(runs, lambda _way, what: values.get(what, 5 if "cache" in what else 50)))


def of_msgrate(values, modes=(("", False),)):
    runs = msgrate.contenders(None, WAYS, None, modes, 1)
    return msgrate.fill(report("msgrate"), WAYS, modes, figures(runs, lambda _way, what: values.get(what, 5)))


def of_latency(values, modes=(("", False),)):
    memif, xdp, packet = WAYS
    runs = [(memif, "write"), (memif, "send"), (memif, "read"), (xdp, "write"), (packet, "write")]
    found = figures(latency.contenders(None, runs, memif, None, modes, 1),
                    lambda key, part: values.get((key[0], part), values.get((*key, part), 1)), ("p50", "p99"))
    return latency.fill(report("latency"), runs, modes, found)


def bars_of(made):
    return {bar["name"]: (bar["value"], bar["sense"], bar["bar"], bar["ok"]) for bar in made.bars}


def as_run(made):
    """Through JSON, as benchmarks/run all writes it."""
    return json.loads(json.dumps({"rows": [{"benchmark": made.name, **row} for row in made.rows],
                                  "bars": [{"benchmark": made.name, **bar} for bar in made.bars]}))


def printed(made):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        made.print()
    return out.getvalue()


class Throughput(unittest.TestCase):
    def test_bars_compare_with_pipe_testpmd_and_tcp(self):
        bars = bars_of(of_throughput({"raw": 100, "pipe write": 60, "pipe read": 80, "tcp": 20, "write": 45,
                                      "send": 44, "read": 39, "write gbn": 50, "read gbn": 40, "send gbn": 44}))
        self.assertEqual(bars["memif WRITE / bare pipe"], (0.75, ">=", 0.75, True))
        self.assertEqual(bars["memif SEND / bare pipe"], (0.7333, ">=", 0.75, False))
        self.assertEqual(bars["memif READ / bare pipe"], (0.4875, ">=", 0.75, False))
        self.assertEqual(bars["memif WRITE / copying testpmd"], (0.45, ">=", 0.40, True))
        self.assertEqual(bars["memif READ / copying testpmd"], (0.39, ">=", 0.40, False))
        self.assertEqual(bars["memif WRITE / TCP"], (2.25, ">=", 2.0, True))
        self.assertEqual(bars["memif READ / TCP"], (1.95, ">=", 2.0, False))
        self.assertEqual(bars["memif WRITE, auto / gbn"], (0.9, ">=", 0.95, False))
        self.assertEqual(bars["memif READ, auto / gbn"], (0.975, ">=", 0.95, True))

    def test_faster_pipe_of_a_turn_counts(self):
        bars = bars_of(of_throughput({"pipe write": 60, "pipe write kept in cache": 100, "pipe read": 80,
                                      "pipe read kept in cache": 40, "write": 60, "read": 60}))
        self.assertEqual(bars["memif WRITE / bare pipe"], (0.6, ">=", 0.75, False))
        self.assertEqual(bars["memif READ / bare pipe"], (0.75, ">=", 0.75, True))

    def test_older_bars_stay(self):
        bars = bars_of(of_throughput({"raw": 100, "raw zero copy": 200, "write": 32}))
        self.assertEqual(bars["memif WRITE / raw"], (0.32, ">=", 0.33, False))
        self.assertEqual(bars["memif WRITE / raw, zero copy"], (0.16, ">=", 0.33, False))
        self.assertEqual(bars["af_xdp WRITE / raw"], (0.32, ">=", 0.70, False))
        self.assertEqual(bars["af_packet WRITE / raw"], (0.32, ">=", 0.75, False))
        self.assertEqual(bars["memif SEND / WRITE"][1:3], (">=", 0.85))

    def test_every_operation_of_every_port_is_compared_with_gbn(self):
        bars = bars_of(of_throughput({}))
        for port in WAYS:
            for op in ("WRITE", "SEND", "READ"):
                self.assertIn(f"{port.name} {op}, auto / gbn", bars)

    def test_dedicated_workers_have_rows(self):
        made = of_throughput({}, (("", False), (" dedicated", True)))
        self.assertIn("uroce READ dedicated", {row["what"] for row in made.rows})


class Msgrate(unittest.TestCase):
    def test_bars(self):
        bars = bars_of(of_msgrate({"raw": 40, "pipe": 12, "write 1": 6, "write 1 gbn": 6.4}))
        self.assertEqual(bars["memif 64 B WRITE / raw"], (0.15, ">=", 0.20, False))
        self.assertEqual(bars["memif 64 B WRITE / raw testpmd"], (0.15, ">=", 0.15, True))
        self.assertEqual(bars["memif 64 B WRITE / bare pipe"], (0.5, ">=", 0.50, True))
        self.assertEqual(bars["memif 64 B WRITE, 1 QP, auto / gbn"], (0.9375, ">=", 0.95, False))
        self.assertEqual(bars["memif 64 B WRITE, 1024 QPs with 1 outstanding each / 1 QP"], (0.8333, ">=", 0.60, True))
        for name in ("memif 64 B SEND, 1 QP", "memif 64 B WRITE, 16 QPs", "af_xdp 64 B WRITE, 1 QP",
                     "af_packet 64 B WRITE, 1 QP"):
            self.assertIn(f"{name}, auto / gbn", bars)


    def test_what_is_sent_again_needs_a_reason(self):
        none = {name: 0 for counters, _ in perf.Clean.KINDS.values() for name in counters}

        def run(pause_ns, **counts):
            return {"client": {"counters": {**none, **counts}, "pause_ns": 0},
                    "server": {"counters": none, "pause_ns": pause_ns}}
        clean, made = perf.Clean(), report("msgrate")
        for figures in (run(0, probes_sent=5), run(1000000, retransmitted_packets=7, rto=4, probes_sent=3),
                        run(999999, retransmitted_packets=2, local_ack_timeout_err=1)):
            clean.add(figures)
        clean.fill(made)
        bars = bars_of(made)
        self.assertEqual(bars["memif, no end stood still: packets sent again"], (2, "<=", 0, False))
        self.assertEqual(bars["memif, no end stood still: timeouts"], (1, "<=", 0, False))
        self.assertNotIn("memif, no end stood still: probes", bars)
        self.assertIn("3 runs; in 1 of them", made.notes[0])
        self.assertIn("7 packets sent again, 4 timeouts, 3 probes", made.notes[0])
        self.assertIn("in the others: 2 packets sent again, 1 timeouts, 5 probes", made.notes[0])

    def test_a_pause_explains_as_many_timeouts_as_it_has_milliseconds(self):
        samples = [{"timeouts": 2, "paused_ms": 4}, {"timeouts": 3, "paused_ms": 1}, {"timeouts": 1, "paused_ms": 0}]
        self.assertEqual(lossy.timeouts(samples), 6)
        self.assertEqual(lossy.unexplained_timeouts(samples), 3)

    def test_a_moonshot_is_shown_and_not_owed(self):
        made = of_msgrate({"raw": 40, "write 1": 8, "many": 8})
        name = "moonshot: memif 64 B WRITE / raw testpmd"
        self.assertEqual(bars_of(made)[name], (0.2, ">=", 0.30, False))
        self.assertNotIn(name, [bar["name"] for bar in made.missed()])
        self.assertIn(f"beyond {name}: 0.200", printed(made))
        text = tables.plain(as_run(made), "msgrate")
        self.assertIn("Moonshots: memif 64 B WRITE / raw testpmd 0.200 (0.200 to 0.200), hoped for: at least 0.3.", text)
        self.assertNotIn("at least 0.3 |", text)


class Latency(unittest.TestCase):
    def test_bars(self):
        bars = bars_of(of_latency({("raw", "p50"): 0.4, ("memif", "write", "p50"): 1.1, ("memif", "write", "p99"): 2.3,
                                   ("memif", "send", "p50"): 1.0, ("memif", "send", "p99"): 2.0,
                                   ("memif", "write gbn", "p50"): 1.0}))
        self.assertEqual(bars["memif 8 B WRITE p50 / raw p50"], (2.75, "<=", 3.0, True))
        self.assertEqual(bars["memif 8 B WRITE p50 / raw ping-pong p50"], (2.75, "<=", 2.5, False))
        self.assertEqual(bars["memif 8 B SEND p50 / raw ping-pong p50"], (2.5, "<=", 2.5, True))
        self.assertEqual(bars["memif 8 B WRITE p99 / p50"], (2.0909, "<=", 2.0, False))
        self.assertEqual(bars["memif 8 B SEND p99 / p50"], (2.0, "<=", 2.0, True))
        self.assertEqual(bars["memif 8 B WRITE p50, auto / gbn"], (1.1, "<=", 1.05, False))
        self.assertEqual(bars["memif 8 B READ p50, auto / gbn"][1:], ("<=", 1.05, True))
        self.assertIn("af_packet 8 B WRITE p50, auto / gbn", bars)


def of_scale(values, qps=1000):
    """The report of one operation. `values`: figures of a seed by loss, or a list of them."""
    figure = {"goodput_gbps": 100, "messages": 1000, "p50_us": 50, "p999_us": 60, "lost": 0, "resent": 0, "probes": 0,
              "timeouts": 0, "ack_timeouts": 0, "holes": 0, "state_bytes": 0, "state_peak_bytes": 0}
    cells = [(scale.cell_of(qps, 1, "write", "extended", *loss),
              [{**figure, **seed} for seed in (found if isinstance(found, list) else [found])])
             for loss, found in {(0, False): {}, (1, False): {}, **values}.items()]
    return scale.fill(scale.ScaleReport(MACHINE), cells)


class Scale(unittest.TestCase):
    def test_worst_seed_counts(self):
        made = of_scale({(1, False): [{"goodput_gbps": 97, "lost": 1000, "resent": 1000},
                                      {"goodput_gbps": 94, "lost": 1000, "resent": 1101}]})
        self.assertEqual(bars_of(made)["1000 QPs, WRITE, 1 %: goodput / no loss, worst seed"], (0.94, ">=", 0.95, False))
        self.assertEqual(bars_of(made)["1000 QPs, WRITE, 1 %: resent / lost, worst seed"], (1.101, "<=", 1.1, False))
        self.assertIn("MISSED: goodput < 0.95, resent > 1.1", printed(made))

    def test_bars_hold(self):
        made = of_scale({(5, True): {"goodput_gbps": 80, "lost": 1000, "resent": 1100, "holes": 4, "state_bytes": 16384}})
        self.assertEqual(bars_of(made)["1000 QPs, WRITE, 5 % bursts: goodput / no loss, worst seed"],
                         (0.8, ">=", 0.8, True))
        self.assertEqual(bars_of(made)["1000 QPs: bytes of loss state for each open hole, worst cell"],
                         (4096, "<=", 4096, True))
        self.assertNotIn("MISSED", printed(made))

    def test_packet_sent_again_without_loss_misses(self):
        made = of_scale({(0, False): {"resent": 1}})
        self.assertEqual(bars_of(made)["1000 QPs, WRITE, 0 %: sent again without loss"], (1, "<=", 0, False))

    def test_ideal_sender_of_a_full_line_loses_what_is_lost(self):
        self.assertEqual(scale.ideal_kept(98, 5000, 0.05), 0.95)

    def test_ideal_sender_with_one_message_waits_for_repairs(self):
        # One of 16 packets is lost in 14.9 % of the messages, twice in 0.16 %.
        self.assertAlmostEqual(scale.ideal_kept(11, 45.75, 0.01), 45.75 / (45.75 + 0.1501 * 40), 3)
        self.assertEqual([scale.repairs(0.01, share) for share in (0.5, 0.86, 0.999)], [0, 1, 2])
        self.assertEqual(scale.repairs(0, 0.999), 0)

    def test_table_has_a_column_for_each_loss(self):
        found = as_run(of_scale({(1, True): {"goodput_gbps": 99, "lost": 200, "resent": 198}}))
        self.assertEqual(tables.scale(found), """\
| QPs | what | no loss, Gb/s | 1 % | 1 % in bursts | resent / lost | timeouts at 1 % | bytes a hole | most, MB | p99.9 at 1 %, us | ideal |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 1000 | WRITE | 100 | 1.00 (0.99) | 0.99 (0.99) | 0.99 | 0 | 0 | 0 | 60 | 140 |""")
        self.assertEqual(tables.missed_scale(found).split(";")[0], "\n\nBars: 6 of 6 hold")


class Programs(unittest.TestCase):
    def of_mpi(self):
        """Which bed each run has, and the report."""
        ways = types.SimpleNamespace(bed=lambda name: name)
        runs, beds = {}, {}
        with unittest.mock.patch.object(programs, "mpi", lambda bed, over, ranks, _seconds: beds.setdefault((ranks, over), bed)):
            for key, measure in programs.contenders(ways, ["mpi"], 1):
                if key[0].startswith("mpi"):
                    measure()
                    value = {"tcp": 6.0, "uroce": 4.0, "uroced": 12.0}[key[1]]
                    runs.update({(key, part): [value] * TURNS for part in ("latency", "bandwidth", "allreduce")})
                else:
                    runs[key] = [5.0] * TURNS
        return beds, programs.fill(report("programs"), runs, ["mpi"])

    def test_two_ranks_cross_the_veth_pair_that_uroce_perf_crosses(self):
        beds, made = self.of_mpi()
        self.assertEqual(beds, {(2, "uroce"): "veth", (2, "tcp"): "veth", (2, "uroced"): "uroced",
                                (4, "uroce"): "host", (4, "tcp"): "host", (4, "uroced"): "uroced"})
        self.assertEqual([row["path"] for row in made.rows if "2 ranks" in row["what"]], ["veth"] * 4 + ["uroced"] * 4)
        self.assertEqual([row["path"] for row in made.rows if "4 ranks" in row["what"]], ["bridge"] * 2 + ["uroced"] * 2)

    def test_bars_of_mpi(self):
        _beds, made = self.of_mpi()
        self.assertEqual(bars_of(made), {
            "MPI ping-pong, 2 ranks: TCP / uroce, veth": (1.5, ">=", 3.0, False),
            "MPI bandwidth, 2 ranks / uroce-perf SEND, veth": (0.8, ">=", 0.9, False),
            "MPI allreduce, 4 ranks: TCP / uroce, bridge": (1.5, ">=", 1.0, True),
            "MPI ping-pong, 2 ranks: TCP / uroce, uroced": (0.5, ">=", 3.0, False),
            "MPI bandwidth, 2 ranks / uroce-perf SEND, uroced": (2.4, ">=", 0.9, True),
            "MPI allreduce, 4 ranks: TCP / uroce, uroced": (0.5, ">=", 1.0, False)})


class Fabric(unittest.TestCase):
    """Figures of runs that were not made, by what their arguments say."""

    def cells(self, resume=True, folder=None):
        folder = folder or tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, True)
        return cells.Cells("/bin/false", resume, folder=folder)

    def found(self, gbps=1000, wait=100, slowdown=2000, **more):
        times = {"mean": wait, "p99": 200, "max": 300}
        return {"gbps": gbps, "wait_ns": times, "message_ns": {**times, "count": 1}, "slowdown_1000": {"p50": slowdown, "p99": slowdown, "max": slowdown, "count": 1}, "hosts": 64,
                "share_of_links": 0.5, "throttles": 5, "samples": 100, "jain_sent": 1, "unfinished": 0, "retransmitted": 0,
                "lost_frames": 0, "dropped": 0, "cpu_seconds": 1, "events": 1, "intervals": [{"gbps": gbps, "wait_mean_ns": wait, "wait_max_ns": 3 * wait}] * 20,
                "errors": 0, "lossless": True, "stamped": 0, "switches": 4, "lanes": 1, "channels": 8, "dependencies": 8, "cycle": False,
                "all_arrive": True, "rss_mb": 1, **more}

    def filled(self, part, kept, seeds=(1,)):
        made = fabric.FabricReport(MACHINE)
        part.report(made, kept, "small", seeds)
        return made

    def test_grid_is_the_papers(self):
        self.assertEqual(len(fabric_paper.GRID), 36)
        self.assertTrue(all(low < high for low, high in fabric_paper.GRID))

    def test_plan_has_the_whole_grid_for_each_place(self):
        for seeds in ((1,), (1, 2)):
            plan = [tuple(sorted(w.items())) for w in fabric_paper.plan("full", seeds)]
            for place in fabric_paper.places():
                for seed in seeds:
                    for pair in (None, *fabric_paper.GRID):
                        self.assertIn(tuple(sorted(fabric_paper.words("full", *place, seed, pair).items())), plan)

    def test_kept_runs_are_found_by_their_arguments(self):
        kept = self.cells()
        kept.engine = "e1"
        kept.keep({"a": 1, "b": 2}, {"gbps": 3})
        self.assertEqual(kept.run({"b": 2, "a": 1}), {"gbps": 3, "engine": "e1"})
        self.assertIsNone(kept.known({"a": 1, "b": 3}))
        self.assertIsNone(self.cells(resume=False, folder=kept.folder).known({"a": 1, "b": 2}))
        self.assertEqual(kept.known({"a": 1, "b": 2})["gbps"], 3)

    def test_no_run_begins_after_the_budget_and_one_that_fails_is_named(self):
        kept = self.cells()
        with self.assertRaisesRegex(Failure, "--a=1"):
            kept.run({"a": 1})
        kept.end = 0
        self.assertIsNone(kept.run({"a": 1}))
        self.assertEqual(list(kept.folder.glob("*")), [])

    def test_changes_are_those_of_the_same_seed(self):
        kept, place = self.cells(), ("tree", "output", "uniform_random")
        for seed, gain in ((1, 1.02), (2, 1.06), (3, 1.04)):
            kept.keep(fabric_paper.words("small", *place, seed), self.found(gbps=1000 * seed, wait=100 * seed))
            kept.keep(fabric_paper.words("small", *place, seed, (6, 10)), self.found(gbps=1000 * seed * gain, wait=85 * seed))
        made = self.filled(fabric_paper, kept, (1, 2, 3))
        self.assertEqual([round(c, 6) for c in made.rows[0]["grid"]["6-10"]], [2, 6, 4])
        self.assertEqual([round(c, 6) for c in made.rows[0]["wait_change"]], [-15])
        self.assertIn("+4.00 [+2.00, +6.00]", printed(made))
        bars = {b["name"]: b["ok"] for b in made.bars}
        self.assertFalse(bars["tree, output, uniform_random: CMDPD's best change of throughput, %"])
        self.assertTrue(bars["tree, output, uniform_random: CMDPD's best change of the mean delay, %"])
        self.assertEqual(made.missed(), [])

    def test_bars_of_auto_are_owed(self):
        kept = self.cells()
        of = {"none": (1000, 4000), "auto": (940, 2200), "auto, round trips": (1000, 2000), "swift": (1000, 2000), "dcqcn": (900, 2000),
              "cmdpd": (990, 9000)}
        for name, (gbps, slowdown) in of.items():
            kept.keep(fabric_rivals.words("small", "tree", "incast", name, 1), self.found(gbps=gbps, slowdown=slowdown))
        made = self.filled(fabric_rivals, kept)
        self.assertEqual([b["name"] for b in made.missed()], [
            "tree, incast: AUTO / the best goodput, none", "tree, incast: AUTO / none, goodput",
            "tree, incast: AUTO / the least p99 slowdown, swift"])
        self.assertEqual(len(made.rows), 1, "what was not run has no row")

    def test_auto_is_never_below_no_pacing(self):
        for auto, missed in ((999.9, ["tree, incast: AUTO / none, goodput"]), (1000, [])):
            kept = self.cells()
            for name in fabric_rivals.CONTENDERS:
                kept.keep(fabric_rivals.words("small", "tree", "incast", name, 1), self.found(gbps=auto if name == "auto" else 1000))
            self.assertEqual([b["name"] for b in self.filled(fabric_rivals, kept).missed()], missed)

    def test_what_arrives_at_random_is_measured_by_what_completes(self):
        kept = self.cells()
        for name in fabric_rivals.CONTENDERS:
            bytes_of = {"offered_bytes": 1000, "completed_bytes": 990 if name == "auto" else 1000}
            kept.keep(fabric_rivals.words("small", "tree", "storage", name, 1), self.found(gbps=1100 if name == "auto" else 1000, **bytes_of))
        made = self.filled(fabric_rivals, kept)
        self.assertEqual([b["name"] for b in made.missed()], ["tree, storage: AUTO / none, goodput"])
        self.assertIn("100.0 %", printed(made))

    def test_auto_is_compared_by_seed(self):
        kept = self.cells()
        for seed, gbps in ((1, 990), (2, 1020), (3, 1000)):
            for name in ("none", "auto"):
                kept.keep(fabric_rivals.words("small", "tree", "incast", name, seed), self.found(gbps=gbps if name == "auto" else 1000))
        made = self.filled(fabric_rivals, kept, (1, 2, 3, 4))
        self.assertEqual(made.extra["tables"]["auto"]["rows"], [["tree", "incast", 3, "1000", "1.000 [0.990, 1.020]", "1.000 [1.000, 1.000]", 5, 0]])
        self.assertEqual(made.extra["tables"]["rivals"]["rows"], [])

    def test_only_links_with_credits_lose_nothing(self):
        self.assertIsNone(fabric_rivals.check({"errors": 0, "lossless": False, "dropped": 5}))
        self.assertIn("lost", fabric_rivals.check({"errors": 0, "lossless": True, "dropped": 5}))
        self.assertEqual({fabric_rivals.words("small", n, "incast", "none", 1).get("lossless", 1) for n in fabric_rivals.NETWORKS["small"]}, {0, 1})

    def test_time_to_recover(self):
        def recovered(shares):
            return fabric_faults.recovery_ms({"intervals": [{"gbps": 100}] * 10 + [{"gbps": 100 * s} for s in shares]})
        self.assertEqual(recovered([1] * 80), 0)
        self.assertAlmostEqual(recovered([0.5] * 7 + [0.9] * 73), 0.7)
        self.assertAlmostEqual(recovered([0.9, 0.5, 0.9] + [0.5] * 10 + [0.85] * 67), 1.3, msg="one good interval is no recovery")
        self.assertIsNone(recovered([0.5] * 80))
        kept, place = self.cells(), ("extended, 16 paths", "dead")
        for lost, ok in ((9, True), (11, False)):
            kept.keep(fabric_faults.recover_words("small", *place, 1), self.found(
                intervals=[{"gbps": 100}] * 10 + [{"gbps": 10}] * lost + [{"gbps": 90}] * (80 - lost)))
            bar, = self.filled(fabric_faults, kept).bars
            self.assertEqual((bar["ok"], bar["value"]), (ok, lost / 10))

    def test_a_cycle_of_channels_misses(self):
        for cycle in (False, True):
            kept = self.cells()
            kept.keep(fabric_size.graph_words("tree, 64"), self.found(cycle=cycle))
            self.assertEqual([b["ok"] for b in self.filled(fabric_size, kept).bars], [not cycle])

    def test_large_networks_compare_auto(self):
        kept = self.cells()
        for name, gbps in (("none", 1000), ("auto", 940), ("swift", 1000)):
            kept.keep(fabric_size.large_words("permutation", name), self.found(gbps=gbps))
        self.assertEqual([b["ok"] for b in self.filled(fabric_size, kept).bars], [False, False, True])

    def test_faults_have_a_row_for_what_was_run(self):
        kept = self.cells()
        kept.keep(fabric_faults.down_words("small", "extended", "dead", 1), self.found(
            slowdown=9000, message_ns={"count": 7, "max": 1500000}, lost_frames=3))
        row, = self.filled(fabric_faults, kept).rows
        self.assertEqual((row["down"], row["slowdown_p99"], row["worst_ms"], row["messages"]), ("dead", 9, 1.5, 7))

    def test_memory_of_a_host_and_time_of_the_papers_size_have_bars(self):
        for kb, minutes, missed in ((255, 29, 0), (257, 31, 2)):
            kept = self.cells()
            kept.keep(fabric_size.words(fabric_size.BARE, 1), self.found(rss_mb=1, host_bytes=kb << 10, queue_pairs=2, pattern="permutation"))
            kept.keep(fabric_paper.words("full", "tree", "output", "uniform_random", 1, (6, 10)), self.found(cpu_seconds=60 * minutes))
            made = self.filled(fabric_size, kept)
            self.assertEqual((len(made.bars), len(made.missed())), (2, missed))

    def test_all_parts_report_what_there_is(self):
        kept = self.cells()
        for part in fabric.PARTS:
            self.assertEqual(self.filled(part, kept).rows, [])
            for words in part.plan("small", (1,)):
                kept.keep(words, self.found(rss_mb=1, host_bytes=1, queue_pairs=1, pattern="uniform_random"))
            self.assertGreater(len(self.filled(part, kept).rows), 0)
            self.assertIn("p99" if part in (fabric_rivals, fabric_faults) else "uniform_random", printed(self.filled(part, kept)))


    def options(self, *parts):
        return types.SimpleNamespace(part=list(parts) or None, resume=True, budget=None, quick=True, turns_given=1, jobs=1)

    def ran(self, *parts):
        """The report of benchmarks/run fabric, in which runs of other parts fail; and which parts were run."""
        kept, begun = self.cells(), []
        for part in fabric.PARTS:
            for words in part.plan("small", (1,)) if part.NAME in parts else ():
                kept.keep(words, self.found(rss_mb=1, host_bytes=1, queue_pairs=1, pattern="uniform_random"))
        with unittest.mock.patch.multiple(fabric, Cells=lambda *_args, **_more: kept), \
                unittest.mock.patch.object(fabric_plots, "plot", lambda *_args: begun.append("plots")), \
                unittest.mock.patch.object(fabric_size, "compare", lambda *_args: begun.append("compare")):
            host = types.SimpleNamespace(binary=lambda name: name, say=None)
            return fabric.run(host, MACHINE, self.options(*parts), lambda _run, _runs, key: begun.extend(key)), set(begun)

    def test_only_the_parts_that_are_asked_for_are_run(self):
        for parts, more in ((["faults"], []), (["faults", "paper"], ["plots"]), (["size", "size"], ["compare"])):
            made, begun = self.ran(*parts)
            self.assertEqual(begun, {*parts, *more})
            self.assertEqual(set(made.extra["parts"]), set(parts))
            self.assertEqual({bar["part"] for bar in made.bars} | {table["part"] for table in made.extra["tables"].values()}, set(parts))
        self.assertEqual(fabric.parts_of(self.options()), list(fabric.PARTS))

    def test_an_unknown_part_is_named(self):
        with self.assertRaisesRegex(Failure, "--part speed: the parts of this benchmark are paper, rivals, faults, size"):
            fabric.run(None, MACHINE, self.options("faults", "speed"), None)

    def test_a_part_says_of_which_runs_and_engine_it_is(self):
        kept = self.cells()
        kept.engine = "e1"
        plan = [("faults", words, None) for words in fabric_faults.plan("small", (1, 2))]
        self.assertEqual(fabric.made_of(kept, plan), "")
        for _, words, _ in plan[:3]:
            kept.keep(words, self.found())
        self.assertEqual(fabric.made_of(kept, plan),
                         f"3 of {len(plan)} runs, by the engine (tree of lib/) e1; one seed; 3 s of processor time")


class Pages(unittest.TestCase):
    """What tables.py makes of the pages of this tree, in a copy of them."""

    TABLES = {**{name: [name] for name in tables.SECTIONS}, "loss": ["loss", "loss-simulator", "instructions"],
              "admission": ["admission", "admission-peers"], "pacing": ["pacing", "incast"]}
    FABRIC = {"paper": ["fabric-paper-machine", "fabric-paper", "fabric-paper-delay", "fabric-paper-readings", "fabric-chance"],
              "rivals": ["fabric-machine", "fabric", "fabric-rivals", "fabric-auto", "fabric-paths", "fabric-moves", "fabric-turns"],
              "faults": ["fabric-faults-machine", "fabric-faults", "fabric-loss", "fabric-down", "fabric-recovery"],
              "size": ["fabric-size-machine", "fabric-size", "fabric-speed", "fabric-graphs", "fabric-large"]}

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root, True)
        for page in tables.PAGES:
            (self.root / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tables.ROOT / page, self.root / page)

    def blocks(self, *pages):
        """[(name, text)], in their order."""
        texts = [(self.root / page).read_text(encoding="utf-8") for page in pages or tables.PAGES]
        return [(found[1], found[0]) for text in texts for found in tables.BLOCK.finditer(text)]

    def filled(self, run):
        """The names of the blocks that this run has replaced."""
        before = self.blocks()
        (self.root / "run.json").write_text(json.dumps(run), encoding="utf-8")
        with unittest.mock.patch.object(tables, "ROOT", self.root), \
                unittest.mock.patch.object(sys, "argv", ["tables.py", str(self.root / "run.json"), "--commit", "c0ffee"]):
            self.assertEqual(tables.main(), 0)
        return {new[0] for old, new in zip(before, self.blocks(), strict=True) if new != old}

    def run_of(self, name):
        """As benchmarks/run writes it: of each benchmark the least that its tables need."""
        def plain(*rows):
            return [{"path": path, "what": what, "unit": "", "median": 1, "min": 1, "max": 1} for path, what in rows]

        def lossy_row(path, what, loss):
            return {"path": path, "what": what, "loss_percent": loss, "bursts": False, "gbps": 1, "relative": 1}
        rows = {
            "throughput": plain(("af_packet", "uroce WRITE"), ("af_packet", "raw testpmd, 4154 B frames")),
            "latency": plain(("af_packet", "uroce WRITE, p50"), ("veth", "TCP (sockperf), p50")),
            "loss": [lossy_row(path, f"WRITE 64 KB {mode}", loss)
                     for path in ("memif", "sim 4096") for mode in ("extended", "gbn") for loss in (0, 1)],
            "scale": of_scale({}).rows,
            "memory": [{"what": "a queue pair", "conventional": 1, "uroce": 1, "how": ""}],
            "scheduler": [{"what": "doorbell", "instructions": {"10": 1}}],
            "connections": [{"size": 64, "way": "own", "qps": 128, "median": 1, "ratio": 1, "again": 0}],
            "vl": [{"kind": "row", "q": 0, "h": 2, "l": 2, "law": 1, "measured": 1, "iba": 1, "iba_rule": 1}],
            "admission": [{"peers": peers, "senders": 8, "load": 2, "mode": "plain", "refused": 1, "jain": 1, "mean_us": 1, "worst_us": 1}
                          for peers in (1, 8)],
            "pacing": [{"what": "slow destination", "mode": "none", "healthy": 1, "slow": 1, "wait_ms": 1, "peak_ms": 1, "resent": 0},
                       {"what": "incast", "mode": "none", "gbps": 1, "drop_share": 0, "resent": 0, "wait_ms": 1, "p50_ms": 1, "p99_ms": 1,
                        "jain": 1}],
            "management": [{"what": "a register", "value": 1, "unit": "us", "paper": ""}]}.get(name, plain(("veth", "uroce")))
        notes = {"loss": ["instructions a packet, WRITE 4 KB: gbn 5, reorder 6, extended 7; without payload 1, 2, 3"],
                 "management": ["A MAD is large", "rings: slow", "veth: not measured"], "switch": ["18 discoveries by uroce-ctl"],
                 "programs": ["the thread takes little"]}.get(name, ["a note that no page has"])
        return {"benchmark": name, "machine": MACHINE, "rows": rows, "bars": [], "notes": notes}

    def run_of_all(self):
        runs = [self.run_of(name) for name in tables.SECTIONS]
        return {"benchmark": "all", "machine": MACHINE, "bars": [], "notes": [note for run in runs for note in run["notes"]],
                "rows": [{"benchmark": run["benchmark"], **row} for run in runs for row in run["rows"]]}

    def fabric(self, *parts):
        made, _begun = Fabric.ran(self, *parts)
        return made.json()

    # What Fabric.ran() needs.
    cells, found, options = Fabric.cells, Fabric.found, Fabric.options

    def test_every_section_has_its_machine_above_its_first_table(self):
        names = [name for name, _ in self.blocks("docs/benchmarks.md")]
        for section in (*tables.SECTIONS, "fabric", "fabric-faults", "fabric-size"):
            self.assertIn(f"{section}-machine", names)
            self.assertEqual(names[names.index(f"{section}-machine") + 1], section)
        names = [name for name, _ in self.blocks("docs/results/fabric.md")]
        for machine, first in (("fabric-paper", "fabric-paper"), ("fabric", "fabric-rivals"), ("fabric-faults", "fabric-loss"),
                               ("fabric-size", "fabric-graphs")):
            self.assertIn(f"{machine}-machine", names)
            self.assertEqual(names[names.index(f"{machine}-machine") + 1], first)

    def test_every_block_is_of_some_benchmark(self):
        known = {name for names in (*self.TABLES.values(), *self.FABRIC.values()) for name in names}
        self.assertEqual({name for name, _ in self.blocks()}, known | {f"{name}-machine" for name in tables.SECTIONS} | {"headline"})

    def test_a_run_of_one_benchmark_replaces_its_section_only(self):
        for name, own in self.TABLES.items():
            with self.subTest(name):
                self.assertEqual(self.filled(self.run_of(name)), {f"{name}-machine", *own})
                self.assertIn("none, 2 virtual CPUs, Linux 0, with hugepages, release build of c0ffee.",
                              dict(self.blocks())[f"{name}-machine"])

    def test_a_run_of_all_replaces_all_sections_and_what_needs_three(self):
        self.assertEqual(self.filled(self.run_of_all()), {"headline", *(f"{name}-machine" for name in self.TABLES),
                                                          *(name for own in self.TABLES.values() for name in own)})
        self.assertIn("Of one run: none, 2 virtual CPUs", dict(self.blocks())["headline"])
        both = self.blocks()
        for name in self.TABLES:
            self.filled(self.run_of(name))
        self.assertEqual(self.blocks(), both, "a run of one gives the same, with its notes")

    def test_a_run_of_some_leaves_the_others(self):
        run = self.run_of_all()
        run["rows"] = [row for row in run["rows"] if row["benchmark"] in ("memory", "scheduler")] + [{"benchmark": "instructions"}]
        self.assertEqual(self.filled(run), {"memory", "memory-machine", "scheduler", "scheduler-machine"})

    def test_a_run_without_a_table_changes_nothing(self):
        before = self.blocks()
        for name, rows, error in (("instructions", [{}], "no page has a table of instructions"), ("vl", [], "vl is not in this run"),
                                  ("admission", self.run_of("admission")["rows"][1:], "no row of the table with peers, senders, load")):
            with self.assertRaisesRegex(SystemExit, error):
                self.filled({**self.run_of(name), "rows": rows})
            self.assertEqual(self.blocks(), before)

    def test_a_run_of_a_part_of_fabric_replaces_what_is_of_that_part(self):
        for part, own in self.FABRIC.items():
            with self.subTest(part):
                self.assertEqual(self.filled(self.fabric(part)), set(own))
                self.assertRegex(dict(self.blocks())[own[0]], r"(\d+) of \1 runs, by the engine")

    def test_a_run_of_all_of_fabric_replaces_all_of_it(self):
        self.assertEqual(self.filled(self.fabric(*self.FABRIC)), {name for own in self.FABRIC.values() for name in own})


class Tables(unittest.TestCase):
    def test_new_run_has_a_column_for_the_bare_pipe(self):
        text = tables.plain(as_run(of_throughput({"raw": 100, "pipe write": 60, "write": 45})), "throughput")
        self.assertIn("| path | what | median | turns | to raw | to bare pipe |", text)
        self.assertIn("| memif | bare pipe, WRITE | 60 Gb/s | 60 to 60 | 0.60 (0.60 to 0.60) |  |", text)
        self.assertIn("| memif | uroce WRITE | 45 Gb/s | 45 to 45 | 0.45 (0.45 to 0.45) | 0.75 (0.75 to 0.75) |", text)
        self.assertIn("| memif | uroce WRITE gbn | 50 Gb/s |", text)

    def test_missed_bars_are_listed(self):
        text = tables.plain(as_run(of_msgrate({"raw": 40, "pipe": 12, "write 1": 5.5})), "msgrate")
        self.assertIn("| memif 64 B WRITE / bare pipe | 0.458 (0.458 to 0.458) | MISSED: at least 0.5 |", text)

    def test_fabric_has_a_table_for_each_part_and_its_bars(self):
        made = fabric.FabricReport(MACHINE)
        made.extra["parts"] = {"rivals": "3 of 4 runs", "size": "1 of 2 runs"}
        made.part = "rivals"
        made.table("rivals", "A title", ["network", "none"], [["tree", 5]])
        made.table("auto", "Nothing was run", ["network"], [])
        made.bar("tree, incast: AUTO / none, goodput", 0.99, 1)
        made.bar("tree, storage: AUTO / none, goodput", 1, 1)
        made.part = "faults"  # of which nothing was run
        made.table("loss", "Nothing was run", ["mode"], [])
        made.part = "size"
        made.table("size", "A title", ["hosts"], [[16]])
        made.bar("memory of a host", 33, 256, at_least=False)
        made.bar("4096 hosts, permutation: AUTO / none, goodput", 0.9, 1)
        self.assertNotIn("Nothing was run", printed(made))
        texts = tables.blocks(json.loads(json.dumps(made.json())), "")
        self.assertEqual(sorted(texts), ["fabric", "fabric-auto", "fabric-machine", "fabric-rivals", "fabric-size", "fabric-size-machine",
                                         "fabric-speed"])
        self.assertEqual(texts["fabric-machine"], "3 of 4 runs.")
        self.assertEqual(texts["fabric-rivals"], "| network | none |\n| --- | --- |\n| tree | 5 |")
        self.assertEqual(texts["fabric-auto"], "None of these runs has been made.")
        self.assertIn("| AUTO | not below no pacing | 1 of 2 | tree, incast 0.990 |", texts["fabric"])
        self.assertEqual(texts["fabric-size-machine"], "1 of 2 runs.")
        self.assertEqual(texts["fabric-size"].splitlines()[2:], [
            "| memory of a host | holds | 33 |", "| 4096 hosts, permutation: AUTO / none, goodput | MISSED | 0.900 |"])
        self.assertEqual(texts["fabric-speed"], "| hosts |\n| --- |\n| 16 |")

    def test_latency_of_a_new_run(self):
        text = tables.plain(as_run(of_latency({("pipe", "p50"): 0.5})), "latency")
        self.assertIn("| memif | bare pipe, 82 B frames, p50 | 0.500 us |", text)
        self.assertIn("| memif | uroce WRITE, p50 | 1 us | 1 to 1 | 1.00 (1.00 to 1.00) | 2.00 (2.00 to 2.00) |", text)

    def test_run_of_before_the_bare_pipe_renders_as_then(self):
        old = {"rows": [{"benchmark": "msgrate", "path": "memif", "what": "raw", "unit": "M/s", "median": 46.5,
                         "min": 19.1, "max": 49.4, "turns": [46.5]},
                        {"benchmark": "msgrate", "path": "memif", "what": "uroce", "unit": "M/s", "median": 7.27,
                         "min": 5.65, "max": 8.01, "turns": [7.27], "ratio": 0.172, "ratio_interval": [0.139, 0.295],
                         "ratio_to": "raw"}],
               "bars": [{"benchmark": "msgrate", "name": "uroce / raw", "value": 0.172, "bar": 0.2, "sense": ">=",
                         "ok": False}]}
        self.assertEqual(tables.plain(old, "msgrate"), """\
| path | what | median | turns | to raw |
| --- | --- | --- | --- | --- |
| memif | raw | 46.5 M/s | 19.1 to 49.4 |  |
| memif | uroce | 7.27 M/s | 5.65 to 8.01 | 0.17 (0.14 to 0.29) |

Bars: 0 of 1 hold.

| missed bar | measured | wanted |
| --- | --- | --- |
| uroce / raw | 0.172 | MISSED: at least 0.2 |""")

    def test_run_without_ratios_has_no_column_of_them(self):
        old = {"rows": [{"benchmark": "rxe", "path": "veth", "what": "uroce / rxe", "unit": "", "median": 1.5, "min": 1,
                         "max": 2, "turns": [1.5]}], "bars": []}
        self.assertEqual(tables.plain(old, "rxe").splitlines()[0], "| path | what | median | turns |")


class Management(unittest.TestCase):
    """Each bar of a figure that is too bad is missed, and of one that is good is held."""

    def bars(self, fill, found):
        made = management.ManagementReport(MACHINE)
        fill(made, found)
        return [bar["ok"] for bar in made.bars]

    def test_rings(self):
        def found(read, two, lid):
            return {"hops": [{"hops": h, "read_ns": read * (h + 2), "read_two_ns": two * (h + 2), "lid_ns": lid * (h + 2),
                              "echo_ns": 100 * (h + 1)} for h in range(21)]}
        self.assertEqual(self.bars(management.rings, found(150, 150, 110)), [True] * 4)
        self.assertEqual(self.bars(management.rings, found(300, 400, 300)), [True, False, False, False])
        bent = found(150, 150, 110)
        bent["hops"][10]["read_ns"] *= 3
        self.assertFalse(self.bars(management.rings, bent)[0])

    def test_e2prom(self):
        def found(read, write, meanwhile):
            return {"bytes": [{"bytes": n, "read_ns": read * n, "write_ns": write * n} for n in range(1, 7)], "idle_ns": 1000,
                    "meanwhile_ns": meanwhile}
        self.assertEqual(self.bars(management.e2prom, found(150000, 3000000, 1000)), [True] * 3)
        self.assertEqual(self.bars(management.e2prom, found(100000, 3300000, 1200)), [False] * 3)

    def test_faults(self):
        def found(arrives, named):
            return {"scan_ns": 1000000, "faults": [{"fault": "hot", "notice_ns": 1, "arrives_ns": arrives, "round_trip_ns": 1000, "named": named}]}
        self.assertEqual(self.bars(management.ring_faults, found(900, True)), [True, True])
        self.assertEqual(self.bars(management.ring_faults, found(1100, False)), [False, False])

    def test_model(self):
        def found(start, hop, bend, two):
            return [{"hops": h, "read_ns": (read := start + hop * (h + 1) + bend * (h == 10)), "read_two_ns": read * two} for h in range(21)]
        self.assertEqual(self.bars(management.model, found(5960, 876, 0, 1)), [True] * 4)
        self.assertEqual(self.bars(management.model, found(6100, 876, 0, 1)), [False, True, True, True])
        self.assertEqual(self.bars(management.model, found(5960, 890, 0, 1)), [True, False, True, True])
        self.assertEqual(self.bars(management.model, found(5960, 876, 20, 1.02)), [True, True, False, False])

    def test_veth_faults(self):
        def bars(changes):
            return self.bars(lambda made, found: management.fault_bars(made, "link down", {"state:2", "link_downed:2"}, found), changes)
        self.assertEqual(bars({("0x5", "state:2"), ("0x5", "link_downed:2")}), [True, True])
        self.assertEqual(bars({("0x5", "state:2"), ("0x4", "link_downed:2")}), [False, True])
        self.assertEqual(bars({("0x5", "state:2"), ("0x5", "rx_errors:1")}), [False, False])

    def discovered(self, idle, busy, nodes=23, lost=0, resent=0):
        def of(ms, mads, **more):
            return {"mads_per_data": mads, "time_ms": ms, "nodes": 23, "links": 22, "requests": 174, "resent": 0, "mads": 3828, "data": 119,
                    "lost": 0, "waits": 0.9, **more}
        return {"there": {"nodes": 23, "links": 22}, "idle": of(idle, 0), "peak_mb": 9,
                "busy": [of(busy, 32, nodes=nodes, lost=lost, resent=resent), of(9 * busy, 1)]}

    def test_discovery_beside_data(self):
        def fill(made, found):
            management.ring_discovery(made, "line:21", found)
        self.assertEqual(self.bars(fill, self.discovered(1, 1.04)), [True] * 7)
        self.assertEqual(self.bars(fill, self.discovered(1, 1.06, nodes=22, lost=1)), [True, True, False, False, True, True, False])
        self.assertEqual(self.bars(fill, self.discovered(1, 1, resent=1)), [True, True, True, False, True, True, True])

    def test_table(self):
        made = management.ManagementReport(MACHINE)
        management.ring_discovery(made, "line:21", self.discovered(1, 2))
        text = tables.blocks(made.json(), "")["management"]
        self.assertIn("| rings: discovery of line:21, with data on its links: a frame for 32 MADs | 2 ms | 119 frames moved; it waited on "
                      "90 % of the links' directions |", text)
        self.assertIn("2.000 | MISSED: at most 1.05 |", text)


class Switch(unittest.TestCase):
    def bars(self, gbps, found):
        samples = {(what, op): [gbps if what != "bridge" else 10.0] * TURNS for what in ("bridge", "managed", "alone", "sender", "anywhere") for op in switch.OPS}
        return [bar["ok"] for bar in switch.fill(report("switch"), samples, found).bars]

    def test_bars(self):
        self.assertEqual(self.bars(7, [4, 4, 2, 5]), [True] * 5)
        self.assertEqual(self.bars(5, [2, 2, None]), [False] * 5)
        self.assertFalse(self.bars(7, [])[-1], "nothing was managed")

    def test_table(self):
        samples = {(what, op): [10.0 if what == "bridge" else 5.0] * TURNS for what in ("bridge", "managed", "alone", "sender", "anywhere") for op in switch.OPS}
        found = tables.blocks(switch.fill(report("switch"), samples, [4, 4, 4]).json(), "")
        self.assertIn("| veth | uroce-switch, managed, READ | 5 Gb/s | 5 to 5 | 0.50 (0.50 to 0.50) |", found["switch"])
        self.assertIn("| path | what | median | turns | to the bridge |", found["switch"])
        self.assertIn("| uroce-switch / bridge, WRITE, managed | 0.500 (0.500 to 0.500) | MISSED: at least 0.6 |", found["switch"])
        self.assertIn("none, 2 virtual CPUs", found["switch-machine"])


class Text(unittest.TestCase):
    def test_both_ratios_are_printed(self):
        text = printed(of_throughput({"raw": 100, "pipe write": 60, "write": 30}))
        self.assertIn("0.30 [0.30, 0.30] of raw, 0.50 [0.50, 0.50] of the bare pipe", text)
        self.assertIn("MISSED memif WRITE / bare pipe: 0.500 [0.500, 0.500] (bar >= 0.75)", text)


if __name__ == "__main__":
    unittest.main()
