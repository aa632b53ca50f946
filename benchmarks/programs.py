# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs over uroce: perftest over memif, veth and uroced beside uroce-perf, with the target of a one-sided test
asleep; ucx_perftest, fi_pingpong and an MPI program (tests/programs/mpi.c) beside the same programs over the kernel's TCP; what
the thread that makes progress for a sleeping target (`adaptive`) costs a program that polls; and how long a packet takes that wakes it.

Latencies are of half a round trip: perftest's and TCP's medians, the means of the others. TCP crosses a veth pair between two
namespaces, and so do two ranks of MPI over uroce. Four ranks are in one namespace: over uroce on the ports of a bridge, over TCP on the
loopback interface. Over uroced, all programs are in one."""

import contextlib
import os
import re
import subprocess
import sys

from lib import iperf, paths, perf, polling, stats
from lib.host import ROOT, Failure, child_setup
from lib.report import Report

sys.path.insert(0, str(ROOT / "tests" / "programs"))
import bed as beds  # noqa: E402

TITLE = "Programs: perftest, UCX, libfabric and MPI, unmodified"
PROGRAMS = ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_send_lat", "ib_read_lat", "ibv_asyncwatch", "ping", "ucx_perftest", "fi_pingpong", "mpirun", "gnuplot",
            "iperf3", "sockperf", "valgrind", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "app/uroced/uroced", "lib/verbs/libibverbs.so.1", "lib/verbs/librdmacm.so.1",
           "lib/verbs/liburoce-preload.so", "tests/programs/mpi", polling.TARGET]
SIZE, SMALL = 65536, 8
OPS = ("send", "write", "read")
BW_BAR, ONE_SIDED_BAR, LATENCY_BAR, FASTER = 0.9, 0.7, 3.0, 1.0
ADAPTIVE_BAR = 0.97  # of the bandwidth, and of the messages a second, with progress = tick
COUNTED_BAR = 0.03  # more instructions than with progress = tick; share of the thread
PARTS = ("memif", "veth", "uroced", "ucx", "libfabric", "mpi", "progress", "wake")
MODES = ("tick", "adaptive")
# Longer than the longest sleep without a packet, UR_REST_MAX_NS (lib/edge/rest.h): both threads sleep when the next request is posted.
GAP_US = 3000
WAKE_BAR = 200  # us; without a wake it would be half of UR_REST_MAX_NS, 500, in the median
# Operations for each second of a turn, of programs that print a mean; most need less than a second for them. On a busy machine both ends
# begin on one CPU, where a round trip takes a slice of the scheduler's, and are separated after some 100 ms.
ROUND_TRIPS, MESSAGES = 100000, 20000
MIB = 1 << 20
UCX_QUIET = {"UCX_NET_DEVICES": "all", "UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_WARN_UNUSED_ENV_VARS": "n"}
UCX = {"uroce": {**UCX_QUIET, "UCX_TLS": "rc_verbs,ud_verbs,self"}, "tcp": {**UCX_QUIET, "UCX_TLS": "tcp,self"}}
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 0"
MPI = {"uroce": "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any --mca btl ^openib,ofi,vader,tcp",
       "tcp": "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include {peer}/24"}
# Programs that run over TCP as well: (name, key of the contender, which of its figures, unit).
OTHERS = {"ucx": [("ucx_perftest tag_lat", "ucx lat", None, "us"), ("ucx_perftest tag_bw", "ucx bw", None, "Gb/s")],
          "libfabric": [("fi_pingpong msg", "fi lat", None, "us")],
          "mpi": [("MPI ping-pong, 2 ranks", "mpi 2", "latency", "us"), ("MPI bandwidth, 2 ranks", "mpi 2", "bandwidth", "Gb/s"),
                  ("MPI allreduce, 4 ranks", "mpi 4", "allreduce", "us")]}


def pair(bed, server_command, client_command, seconds, by_cm=False, **how):
    """The client's output. {port} and {peer} are replaced. `by_cm`: the server listens for connections of rdma_cm."""
    words = bed.words()
    server_command, client_command = server_command.format(**words), client_command.format(**words)
    server = bed.start("a", server_command, **how)
    client = None
    try:
        ready = (lambda: bed.listens_by_cm("a", words["port"], server)) if by_cm else lambda: bed.listens("a", words["port"])
        if not beds.wait_until(lambda: ready() or server.process.poll() is not None, 30):
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

def perftest(way, command, seconds, **how):
    with way() as bed:
        return pair(bed, f"{command} -p {{port}}", f"{command} -p {{port}} {{peer}}", seconds, **how)


def bandwidth(way, op, seconds, **how):
    """Gb/s of payload."""
    text = perftest(way, f"ib_{op}_bw -s {SIZE} -D {max(2, round(seconds))} --report_gbits", seconds, **how)
    return figure(rf"^ {SIZE} +\d+ +\S+ +(\S+)", text)


def latency(way, op, seconds, **how):
    """The typical half round trip, in us."""
    return figure(rf"^ {SMALL} +\d+ +\S+ +\S+ +(\S+)",
                  perftest(way, f"ib_{op}_lat -s {SMALL} -n 5000", seconds, **how))


# ---- a wake ----

def read_latency(way, gap_us, seconds):
    """The typical round trip of a READ, in us; its target sleeps in a system call of its own. perftest measures from one post to the next, with
    the gap."""
    count = max(100, round(seconds * 200))
    text = perftest(way, f"ib_read_lat -s {SMALL} -n {count}" + (f" --latency_gap {gap_us}" if gap_us else ""), seconds)
    return figure(rf"^ {SMALL} +\d+ +\S+ +\S+ +(\S+)", text) - gap_us


def ping(bed, side, to, seconds):
    """The median round trip in us, one each GAP_US and more; the first one resolves the address and does not count."""
    command = [*bed.into(side), "ping", "-n", "-c", str(max(100, round(seconds * 100))), "-i", str(2 * GAP_US * 1e-6), to]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    times = [float(ms) * 1000 for ms in re.findall(r"icmp_seq=\d+ .*time=(\S+) ms", done.stdout)][1:]
    if len(times) < 50:
        raise Failure(f"ping is not answered: {done.stdout[-300:]}{done.stderr[-300:]}")
    return stats.median(times)


def ping_of_kernel(seconds):
    with beds.Veth() as bed:
        return ping(bed, "b", bed.peer, seconds)


def ping_of_tap(seconds):
    """Of a program that only waits for asynchronous events."""
    with beds.Tap() as bed:
        program = bed.start("a", "ibv_asyncwatch")
        try:
            if not beds.wait_until(lambda: "async event FD" in program.text or program.process.poll() is not None, 30):
                raise Failure("ibv_asyncwatch does not open its device")
            for command in ("address", "add", "10.77.0.2/24"), ("link", "set", "up"):
                subprocess.run([*bed.into("a"), "ip", *command, "dev", "uroce-tap"], check=True)
            return ping(bed, "a", "10.77.0.1", seconds)
        finally:
            program.end()


# ---- UCX, libfabric ----

# `over`: uroce, over veth; uroced; or tcp, over veth.

def is_tcp(over):
    return over == "tcp"


def ucx(way, over, test, count, size, column, seconds, more=""):
    """A column of the line of ucx_perftest's results."""
    command = f"ucx_perftest -p {{port}} -t {test} -n {count} -w 10 -s {size}{more}"
    with way() as bed:
        text = pair(bed, command, command + " {peer}", seconds, env=UCX["tcp" if is_tcp(over) else "uroce"], bare=is_tcp(over))
    return figure(r"^Final: +\d+" + r" +\S+" * column + r" +(\S+)", text)


def ucx_latency(way, over, seconds):
    return ucx(way, over, "tag_lat", round(ROUND_TRIPS * seconds), SMALL, 2, seconds)


def ucx_asleep(way, over, seconds):
    """The mean, of programs that sleep in epoll_wait() whenever there is nothing for them: half a round trip."""
    return ucx(way, over, "tag_lat", round(ROUND_TRIPS * seconds / 50), SMALL, 2, seconds, " -E sleep")


def ucx_bandwidth(way, over, seconds):
    """Gb/s; ucx_perftest prints MiB/s."""
    return ucx(way, over, "tag_bw", round(MESSAGES * seconds), SIZE, 4, seconds) * MIB * 8e-9


def libfabric(way, over, seconds):
    """The mean, of half a round trip: fi_pingpong has no median."""
    provider = "-p tcp" if is_tcp(over) else "-p verbs -d uroce0"
    command = f"fi_pingpong {provider} -e msg -I {round(ROUND_TRIPS * seconds)} -S 64"
    with way() as bed:
        text = pair(bed, command + " -B {port}", command + " -P {port} {peer}", seconds, bare=is_tcp(over))
    return figure(r"^64 +(?:\S+ +){5}(\S+)", text)


# ---- MPI ----

# Over OpenMPI's own TCP four ranks hang in one of some forty runs: rank 1 waits for messages that rank 0 has sent. That run is begun anew.
MPI_TCP_TRIES, MPI_WAIT_S = 3, 60


def mpi(way, over, ranks, seconds):
    """{"latency": us, "bandwidth": Gb/s, "allreduce": us}"""
    # As in tests/programs/rows/openmpi.toml, which says why nobody is to yield.
    env = {**UCX["uroce"], "UCX_ASYNC_MODE": "poll"}
    with way() as bed:
        if bed.name == "veth":  # a rank in each namespace
            programs = " : ".join("-np 1 " + " ".join(bed.inside(side, "{mpi} speed", bare=is_tcp(over))) for side in "ab")
            # The ranks find mpirun by PMIx, which otherwise listens on the loopback interface only. They stand for two hosts, but mpirun counts
            # two ranks on one: UCX would give each half of the device's bandwidth, and use READs from 116 KB on instead of 30 KB.
            env |= {"PMIX_MCA_ptl_base_if_include": f"{bed.peer}/24", "UCX_NUM_PPN": "1"}
        else:
            programs = f"-np {ranks} {'' if is_tcp(over) else '{run}'} {{mpi}} speed"
        command = f"{MPIRUN} {MPI['tcp' if is_tcp(over) else 'uroce']} {programs}".format(**bed.words())
        for left in reversed(range(MPI_TCP_TRIES if is_tcp(over) else 1)):
            run = bed.start("a", command, env=env, bare=True)
            try:
                status = run.wait(seconds * 4 + MPI_WAIT_S)
            finally:
                run.end()
            if status == 0:
                break
            if status is not None or not left:
                raise Failure(f"`{command}` fails: {run.text[:600] or 'it does not end'}")
    found = re.search(r"^latency_us (\S+) bandwidth_gbps (\S+) allreduce_us (\S+)", run.text, re.M)
    if not found:
        raise Failure(f"mpi prints no result: {run.text[-300:]}")
    return dict(zip(("latency", "bandwidth", "allreduce"), map(float, found.groups())))


# ---- contenders ----

class Ways:
    """Where contenders run. uroced runs from its first use to the end; while it is idle it sleeps."""

    def __init__(self, host):
        self.host = host
        self.memif, self.veth = paths.Memif(host), paths.AfPacket(host)
        self.daemon = None

    def uroced(self):
        if not self.daemon:
            self.daemon = beds.Uroced()
            self.host.closers.append(lambda: self.daemon.__exit__())
            self.daemon.__enter__()
        return contextlib.nullcontext(self.daemon)

    def bed(self, name):
        """A function that makes a bed."""
        return {"memif": beds.Memif, "veth": beds.Veth, "host": beds.Host, "uroced": self.uroced}[name]

    def path(self, name):
        """The same for uroce-perf."""
        if name == "uroced":
            with self.uroced() as bed:
                return paths.Leased(self.host, bed)
        return self.memif if name == "memif" else self.veth


def of_perftest(ways, way, seconds):
    bed = ways.bed(way)
    for op in OPS:
        yield (f"uroce-perf {way}", op), lambda o=op: perf.run(ways.host, ways.path(way), o, SIZE, seconds)["gbps"]
        yield (way, op), lambda o=op: bandwidth(bed, o, seconds)
    for op in ("write", "send"):
        yield (way, f"{op} lat"), lambda o=op: latency(bed, o, seconds)
    if way != "memif":
        yield (way, "tcp lat"), lambda: iperf.ping_pong(ways.host, ways.veth.pair, seconds)["p50"]


def of_others(ways, part, seconds):
    for over in ("uroce", "uroced", "tcp"):
        bed, of_four = (ways.bed("uroced" if over == "uroced" else name) for name in ("veth", "host"))
        if part == "ucx":
            yield ("ucx lat", over), lambda o=over, b=bed: ucx_latency(b, o, seconds)
            yield ("ucx bw", over), lambda o=over, b=bed: ucx_bandwidth(b, o, seconds)
        elif part == "libfabric":
            yield ("fi lat", over), lambda o=over, b=bed: libfabric(b, o, seconds)
        else:
            yield ("mpi 2", over), lambda o=over, b=bed: mpi(b, o, 2, seconds)
            yield ("mpi 4", over), lambda o=over, b=of_four: mpi(b, o, 4, seconds)
    if part != "libfabric":
        for way in ("veth", "uroced"):
            yield (f"uroce-perf {way}", "send"), lambda w=way: perf.run(ways.host, ways.path(w), "send", SIZE, seconds)["gbps"]


def of_progress(ways, seconds):
    for mode in MODES:
        env = {"UROCE_SET": f"worker.progress={mode}"}
        yield ("progress", f"{mode} bw"), lambda e=env: bandwidth(ways.bed("memif"), "send", seconds, env=e)
        yield ("progress", f"{mode} lat"), lambda e=env: latency(ways.bed("memif"), "send", seconds, env=e)


def of_wake(ways, seconds):
    for way in ("memif", "veth", "uroced"):
        yield ("wake", f"{way} awake"), lambda b=ways.bed(way): read_latency(b, 0, seconds)
        yield ("wake", f"{way} asleep"), lambda b=ways.bed(way): read_latency(b, GAP_US, seconds)
        if way != "memif":
            yield ("wake", f"{way} ucx"), lambda w=way: ucx_asleep(ways.bed(w), w, seconds)
    yield ("wake", "tcp ucx"), lambda: ucx_asleep(ways.bed("veth"), "tcp", seconds)
    yield ("wake", "kernel"), lambda: ping_of_kernel(seconds)
    yield ("wake", "tap"), lambda: ping_of_tap(seconds)


def contenders(ways, parts, seconds):
    found = {}  # what two parts compare with is measured once a turn
    for part in parts:
        if part in ("memif", "veth", "uroced"):
            more = of_perftest(ways, part, seconds)
        else:
            more = (of_progress(ways, seconds) if part == "progress" else of_wake(ways, seconds) if part == "wake"
                    else of_others(ways, part, seconds))
        for key, measure in more:
            found.setdefault(key, measure)
    return list(found.items())


def prepare(host):
    """Where beds find what was built, and the weight that their programs have."""
    os.environ["UROCE_RUN"] = str(host.binary("app/run/uroce-run"))
    os.environ["UROCE_DAEMON"] = str(host.binary("app/uroced/uroced"))
    os.environ["UROCE_VERBS_LIBRARY_DIR"] = str(host.binary("lib/verbs"))
    os.environ["UROCE_MPI"] = str(host.binary("tests/programs/mpi"))
    # Linux 6.18 can let a session with a raised weight, and a thread in it that often wakes, run for 17 s while all else on its CPU
    # waits, `uroced` and the kernel's own threads too: the virtual time of such a session stands still.
    host.raise_sessions = False
    beds.Bed.setup = staticmethod(lambda: child_setup(None, session=False))


def run(host, machine, options, progress):
    parts = options.part or PARTS
    if unknown := set(parts) - set(PARTS):
        raise Failure(f"--part {unknown.pop()}: the parts of this benchmark are {', '.join(PARTS)}")
    prepare(host)
    counted = {}
    for mode in MODES if "progress" in parts else ():
        progress(1, 1, ("progress", mode, "counted"))
        counted["counted", mode] = polling.count(host, mode)
    found = stats.turns(contenders(Ways(host), parts, options.seconds), options.turns, progress)
    report = Report("programs", TITLE, machine)
    report.extra["parts"] = list(parts)
    return fill(report, found | counted, parts)


# ---- the report ----

def fill(report, found, parts=PARTS):
    for way in ("memif", "veth", "uroced"):
        if way in parts:
            fill_perftest(report, found, way)
    for part in ("ucx", "libfabric", "mpi"):
        if part in parts:
            fill_others(report, found, part)
    if "progress" in parts:
        fill_progress(report, found)
    if "wake" in parts:
        fill_wake(report, found)
    report.plot("Gb/s of payload; us")
    return report


def fill_perftest(report, found, way):
    base = f"uroce-perf {way}"
    for op in OPS:
        report.row(way, f"uroce-perf, {op.upper()}", "Gb/s", found[base, op])
        report.row(way, f"ib_{op}_bw", "Gb/s", found[way, op], found[base, op], "uroce-perf")
        report.bar(f"ib_{op}_bw / uroce-perf {op.upper()}, {way}", stats.ratios_of(found[way, op], found[base, op]), BW_BAR)
        if op != "send":
            report.bar(f"ib_{op}_bw, whose target sleeps / uroce-perf {op.upper()}, {way}",
                       stats.ratios_of(found[way, op], found[base, op]), ONE_SIDED_BAR)
    for op in ("write", "send"):
        report.row(way, f"ib_{op}_lat", "us", found[way, f"{op} lat"])
    if way == "memif":
        return
    tcp = found[way, "tcp lat"]
    report.row(way, "TCP over veth (sockperf), p50", "us", tcp)
    for op in ("write", "send"):
        report.bar(f"TCP / ib_{op}_lat, {way}", stats.ratios_of(tcp, found[way, f"{op} lat"]), LATENCY_BAR)


def fill_others(report, found, part):
    """Programs that run over TCP as well."""
    for way, over in ("veth", "uroce"), ("uroced", "uroced"):
        for what, name, inner, unit in OTHERS[part]:
            path = "bridge" if (name, way) == ("mpi 4", "veth") else way
            ours, theirs = (found[((name, of), inner) if inner else (name, of)] for of in (over, "tcp"))
            report.row(path, f"{what}, TCP", unit, theirs)
            report.row(path, what, unit, ours, theirs, "TCP")
            if unit == "Gb/s":
                report.bar(f"{what} / uroce-perf SEND, {path}", stats.ratios_of(ours, found[f"uroce-perf {path}", "send"]), BW_BAR)
            else:
                report.bar(f"{what}: TCP / uroce, {path}", stats.ratios_of(theirs, ours), FASTER if name == "mpi 4" else LATENCY_BAR)


def fill_progress(report, found):
    """What the thread costs a program that polls."""
    for what, part, unit in ("ib_send_bw", "bw", "Gb/s"), ("ib_send_lat", "lat", "us"):
        tick, adaptive = found["progress", f"tick {part}"], found["progress", f"adaptive {part}"]
        report.row("memif", f"{what}, progress = tick", unit, tick)
        report.row("memif", f"{what}, progress = adaptive", unit, adaptive, tick, "tick")
        faster = stats.ratios_of(adaptive, tick) if part == "bw" else stats.ratios_of(tick, adaptive)
        report.bar(f"{what}: speed with progress = adaptive / tick", faster, ADAPTIVE_BAR)
    counted = [found["counted", mode] for mode in MODES]
    report.bar("instructions of a program that polls: adaptive / tick", counted[1]["program"] / counted[0]["program"], 1 + COUNTED_BAR,
               at_least=False)
    report.bar("share of a CPU for the thread, while the program polls, counted", polling.share(counted[1]["wake"]), COUNTED_BAR,
               at_least=False)
    report.notes.append(f"the thread takes {counted[1]['wake']:.0f} instructions each time that it wakes, at most "
                        f"{polling.WAKES_PER_SECOND} times a second; a CPU executes more than {polling.INSTRUCTIONS_PER_SECOND:.0e} a second")


def fill_wake(report, found):
    """How long a packet takes whose target sleeps."""
    for way in ("memif", "veth", "uroced"):
        awake, asleep = found["wake", f"{way} awake"], found["wake", f"{way} asleep"]
        report.row(way, "ib_read_lat, the target awake", "us", awake)
        report.row(way, f"ib_read_lat, {GAP_US // 1000} ms later: asleep", "us", asleep, awake, "awake")
        report.bar(f"READ that wakes its target, us, {way}", asleep, WAKE_BAR, at_least=False)
        if way != "memif":
            report.row(way, "ucx_perftest tag_lat, both ends asleep, TCP", "us", found["wake", "tcp ucx"])
            report.row(way, "ucx_perftest tag_lat, both ends asleep", "us", found["wake", f"{way} ucx"], found["wake", "tcp ucx"], "TCP")
            report.bar(f"half a round trip that wakes both ends, us, {way}", found["wake", f"{way} ucx"], WAKE_BAR, at_least=False)
    report.row("veth", "ping of the kernel", "us", found["wake", "kernel"])
    report.row("tap", "ping of a program that sleeps", "us", found["wake", "tap"], found["wake", "kernel"], "the kernel")
    report.bar("ping that wakes its target, us, tap", found["wake", "tap"], WAKE_BAR, at_least=False)
