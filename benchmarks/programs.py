# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs over uroce: perftest over memif and veth beside uroce-perf, with the target of a one-sided test asleep;
ucx_perftest, fi_pingpong and an MPI program (tests/programs/mpi.c) beside the same programs over the kernel's TCP.

Latencies are of half a round trip: perftest's and TCP's medians, the means of the others. TCP of perftest, UCX and libfabric crosses the same veth pair; that of MPI stays in one
namespace, as do its ranks over uroce, on the ports of a bridge."""

import os
import re
import sys

from lib import iperf, paths, perf, stats
from lib.host import ROOT, Failure, child_setup
from lib.report import Report

sys.path.insert(0, str(ROOT / "tests" / "programs"))
import bed as beds  # noqa: E402

TITLE = "Programs: perftest, UCX, libfabric and MPI, unmodified"
PROGRAMS = ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_send_lat", "ucx_perftest", "fi_pingpong", "mpirun", "gnuplot",
            "iperf3", "sockperf", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "lib/verbs/libibverbs.so.1", "lib/verbs/librdmacm.so.1",
           "lib/verbs/liburoce-preload.so", "tests/programs/mpi"]
SIZE, SMALL = 65536, 8
OPS = ("send", "write", "read")
BW_BAR, ONE_SIDED_BAR, LATENCY_BAR, FASTER = 0.9, 0.7, 3.0, 1.0
MIB = 1 << 20
UCX_QUIET = {"UCX_NET_DEVICES": "all", "UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_WARN_UNUSED_ENV_VARS": "n"}
UCX = {"uroce": {**UCX_QUIET, "UCX_TLS": "rc_verbs,ud_verbs,self"}, "tcp": {**UCX_QUIET, "UCX_TLS": "tcp,self"}}
MPI = {"uroce": "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any --mca btl ^openib,ofi,vader,tcp {run}",
       "tcp": "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 127.0.0.1/8"}


def pair(bed, server_command, client_command, seconds, **how):
    """The client's output. {port} and {peer} are replaced."""
    words = bed.words()
    server_command, client_command = server_command.format(**words), client_command.format(**words)
    server = bed.start("a", server_command, **how)
    client = None
    try:
        if not beds.wait_until(lambda: bed.listens("a", words["port"]) or server.process.poll() is not None, 30):
            raise Failure(f"`{server_command}` does not listen: {server.text[-300:]}")
        client = bed.start("b", client_command, **how)
        if client.wait(seconds * 4 + 60) != 0:
            raise Failure(f"`{client_command}` fails: {client.text[-300:]}")
        return client.text
    finally:
        server.end()
        if client:
            client.end()


def figure(pattern, text):
    found = re.search(pattern, text, re.M)
    if not found:
        raise Failure(f"no line of the output has the result: {text[-300:]}")
    return float(found[1])


# ---- perftest ----

def perftest(way, command, seconds):
    with way() as bed:
        return pair(bed, f"{command} -p {{port}}", f"{command} -p {{port}} {{peer}}", seconds)


def bandwidth(way, op, seconds):
    """Gb/s of payload."""
    text = perftest(way, f"ib_{op}_bw -s {SIZE} -D {max(2, round(seconds))} --report_gbits", seconds)
    return figure(rf"^ {SIZE} +\d+ +\S+ +(\S+)", text)


def latency(way, op, seconds):
    """The typical half round trip, in us."""
    return figure(rf"^ {SMALL} +\d+ +\S+ +\S+ +(\S+)", perftest(way, f"ib_{op}_lat -s {SMALL} -n {5000 if seconds > 1 else 1000}", seconds))


# ---- UCX, libfabric ----

def ucx(over, test, count, size, column, seconds):
    """A column of the line of ucx_perftest's results."""
    command = f"ucx_perftest -p {{port}} -t {test} -n {count} -w 10 -s {size}"
    with beds.Veth() as bed:
        text = pair(bed, command, command + " {peer}", seconds, env=UCX[over], bare=over == "tcp")
    return figure(r"^Final: +\d+" + r" +\S+" * column + r" +(\S+)", text)


def ucx_latency(over, seconds):
    return ucx(over, "tag_lat", 20000 if seconds > 1 else 2000, SMALL, 2, seconds)


def ucx_bandwidth(over, seconds):
    """Gb/s; ucx_perftest prints MiB/s."""
    return ucx(over, "tag_bw", 4000 if seconds > 1 else 400, SIZE, 4, seconds) * MIB * 8e-9


def libfabric(over, seconds):
    """The mean, of half a round trip: fi_pingpong has no median."""
    provider = "-p verbs -d uroce0" if over == "uroce" else "-p tcp"
    command = f"fi_pingpong {provider} -e msg -I {5000 if seconds > 1 else 500} -S 64"
    with beds.Veth() as bed:
        text = pair(bed, command + " -B {port}", command + " -P {port} {peer}", seconds, bare=over == "tcp")
    return figure(r"^64 +(?:\S+ +){5}(\S+)", text)


# ---- MPI ----

def mpi(over, ranks, seconds):
    """{"latency": us, "bandwidth": Gb/s, "allreduce": us}"""
    with beds.Host() as bed:
        command = f"mpirun --allow-run-as-root --oversubscribe -np {ranks} {MPI[over]} {{mpi}} speed".format(**bed.words())
        run = bed.start("a", command, env=UCX["uroce"], bare=True)
        try:
            if run.wait(seconds * 4 + 120) != 0:
                raise Failure(f"`{command}` fails: {run.text[-300:]}")
        finally:
            run.end()
    found = re.search(r"^latency_us (\S+) bandwidth_gbps (\S+) allreduce_us (\S+)", run.text, re.M)
    if not found:
        raise Failure(f"mpi prints no result: {run.text[-300:]}")
    return dict(zip(("latency", "bandwidth", "allreduce"), map(float, found.groups())))


def contenders(host, memif, packet, seconds):
    found = []
    for op in OPS:
        found.append((("uroce-perf", op), lambda o=op: perf.run(host, memif, o, SIZE, seconds)["gbps"]))
        found.append((("memif", op), lambda o=op: bandwidth(beds.Memif, o, seconds)))
        found.append((("uroce-perf veth", op), lambda o=op: perf.run(host, packet, o, SIZE, seconds)["gbps"]))
        found.append((("veth", op), lambda o=op: bandwidth(beds.Veth, o, seconds)))
    for op in ("write", "send"):
        found.append((("memif", f"{op} lat"), lambda o=op: latency(beds.Memif, o, seconds)))
        found.append((("veth", f"{op} lat"), lambda o=op: latency(beds.Veth, o, seconds)))
    found.append((("veth", "tcp lat"), lambda: iperf.ping_pong(host, packet.pair, seconds)["p50"]))
    for over in ("uroce", "tcp"):
        found.append((("ucx lat", over), lambda o=over: ucx_latency(o, seconds)))
        found.append((("ucx bw", over), lambda o=over: ucx_bandwidth(o, seconds)))
        found.append((("fi lat", over), lambda o=over: libfabric(o, seconds)))
        found.append((("mpi 2", over), lambda o=over: mpi(o, 2, seconds)))
        found.append((("mpi 4", over), lambda o=over: mpi(o, 4, seconds)))
    return found


def run(host, machine, options, progress):
    os.environ["UROCE_RUN"] = str(host.binary("app/run/uroce-run"))
    os.environ["UROCE_VERBS_LIBRARY_DIR"] = str(host.binary("lib/verbs"))
    os.environ["UROCE_MPI"] = str(host.binary("tests/programs/mpi"))
    beds.Bed.setup = staticmethod(lambda: child_setup(None))  # the same priority as uroce-perf
    memif, packet = paths.Memif(host), paths.AfPacket(host)
    found = stats.turns(contenders(host, memif, packet, options.seconds), options.turns, progress)
    return fill(Report("programs", TITLE, machine), found)


def fill(report, found):
    fill_perftest(report, found)
    fill_others(report, found)
    report.plot("Gb/s of payload; us")
    return report


def fill_perftest(report, found):
    for way, base in ("memif", "uroce-perf"), ("veth", "uroce-perf veth"):
        for op in OPS:
            report.row(way, f"uroce-perf, {op.upper()}", "Gb/s", found[base, op])
            report.row(way, f"ib_{op}_bw", "Gb/s", found[way, op], found[base, op], "uroce-perf")
            report.bar(f"ib_{op}_bw / uroce-perf {op.upper()}, {way}", stats.ratios_of(found[way, op], found[base, op]), BW_BAR)
            if op != "send":
                report.bar(f"ib_{op}_bw, whose target sleeps / uroce-perf {op.upper()}, {way}",
                           stats.ratios_of(found[way, op], found[base, op]), ONE_SIDED_BAR)
        for op in ("write", "send"):
            report.row(way, f"ib_{op}_lat", "us", found[way, f"{op} lat"])
    report.row("veth", "TCP (sockperf), p50", "us", found["veth", "tcp lat"])
    for op in ("write", "send"):
        report.bar(f"TCP / ib_{op}_lat, veth", stats.ratios_of(found["veth", "tcp lat"], found["veth", f"{op} lat"]), LATENCY_BAR)


def fill_others(report, found):
    """Programs that run over TCP as well: (path, what, over uroce, over TCP, bar of TCP's time / uroce's)"""
    def mpi_part(ranks, part):
        return [found[(f"mpi {ranks}", over), part] for over in ("uroce", "tcp")]

    for path, what, (ours, theirs), bar in (
            ("veth", "ucx_perftest tag_lat", [found["ucx lat", over] for over in ("uroce", "tcp")], LATENCY_BAR),
            ("veth", "fi_pingpong msg", [found["fi lat", over] for over in ("uroce", "tcp")], LATENCY_BAR),
            ("bridge", "MPI ping-pong, 2 ranks", mpi_part(2, "latency"), LATENCY_BAR),
            ("bridge", "MPI allreduce, 4 ranks", mpi_part(4, "allreduce"), FASTER)):
        report.row(path, f"{what}, TCP", "us", theirs)
        report.row(path, what, "us", ours, theirs, "TCP")
        report.bar(f"{what}: TCP / uroce", stats.ratios_of(theirs, ours), bar)
    perf_send = found["uroce-perf veth", "send"]
    for path, what, (ours, theirs) in (("veth", "ucx_perftest tag_bw", [found["ucx bw", over] for over in ("uroce", "tcp")]),
                                       ("bridge", "MPI bandwidth, 2 ranks", mpi_part(2, "bandwidth"))):
        report.row(path, f"{what}, TCP", "Gb/s", theirs)
        report.row(path, what, "Gb/s", ours, theirs, "TCP")
        report.bar(f"{what} / uroce-perf SEND, veth", stats.ratios_of(ours, perf_send), BW_BAR)
