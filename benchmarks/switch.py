# SPDX-License-Identifier: BSD-3-Clause
"""Three network namespaces joined by uroce-switch, compared with the same over a Linux bridge: 64 KB messages between
two of them, while a manager discovers the fabric again and again over a socket of the switch. The two endpoints have a CPU
each and poll, so the switch has to share one. It has the receiver's, with --realtime; WRITEs also with the sender's, and
where the kernel puts it without --realtime."""

import re
import threading

from lib import perf, stats
from lib.host import Failure
from lib.report import Report
from lib.star import Star

TITLE = "Switch: 64 KB messages, one queue pair, through uroce-switch and through a Linux bridge, Gb/s of payload"
PROGRAMS = ["gnuplot", "ip", "meson", "ninja"]
TARGETS = ["app/perf/uroce-perf", "app/switch/uroce-switch", "app/ctl/uroce-ctl"]
SIZE = 65536
OPS = ("write", "send", "read")
HOSTS = 3
BAR = 0.6
SLOTS = 1024  # of the endpoints' rings, as in pmd-config/veth-af_packet-*.conf
SEEN = 4  # nodes while two endpoints send; one that is not running is silent
MANAGE_S = 0.2  # from the end of a discovery to the next


class Bridge(Star):
    """As a path of perf.run(): endpoints 0 and 1 are its sides, the third one is idle."""
    name = "bridge"

    def __init__(self, host):
        super().__init__(host, (1,) * HOSTS)
        self.files = [super(Bridge, self).conf(i, self.name, {"port": {"framecnt": SLOTS}}) for i in range(HOSTS)]

    def prepare(self):
        pass

    def first(self):
        return None

    def conf(self, side):
        return self.files[side], []


class Switch(Bridge):
    """The same with the bridge's ports in the hands of uroce-switch, which runs inside of `with`. `cpus`: None: any, without --realtime."""
    name = "switch"

    def __init__(self, host, managed, cpus):
        super().__init__(host)
        self.managed, self.cpus = managed, cpus
        self.found = []  # nodes of each discovery; None: it failed
        for i in range(HOSTS):
            self.run_ip("link", "set", f"b{i}", "nomaster")

    def run_ip(self, *words):
        self.host.quiet("ip", "-n", self.bridge, *words)

    def __enter__(self):
        self.socket = self.host.tmp / "fabric.sock"
        ports = [word for i in range(HOSTS) for word in ("--port", f"dev=b{i}")]
        self.process = self.host.start("uroce-switch", [
            "ip", "netns", "exec", self.bridge, self.host.binary("app/switch/uroce-switch"), *ports,
            "--port", f"socket={self.socket},clients=2", "--set", "eal.memory_mb=128", "--set", "forwarding.lane_kb=1024",
            *(["--realtime"] if self.cpus else [])], self.cpus)
        self.process.wait_for("forwarding")
        self.stop = threading.Event()
        self.manager = threading.Thread(target=self.manage, daemon=True)
        if self.managed:
            self.manager.start()
        return self

    def manage(self):
        while not self.stop.wait(MANAGE_S):
            ctl = self.host.start("uroce-ctl", [self.host.binary("app/ctl/uroce-ctl"), "discover", "--socket", self.socket])
            try:
                ctl.wait(30)
                self.found.append(int(re.search(r"^(\d+) nodes:", ctl.text(), re.M)[1]))
            except (Failure, TypeError):
                self.found.append(None)

    def __exit__(self, *_):
        self.stop.set()
        if self.managed:
            self.manager.join(40)
        self.process.stop()


def measure(host, path, op, seconds):
    return perf.run(host, path, op, SIZE, seconds)["gbps"]


def through(host, path, op, seconds):
    with path:
        return measure(host, path, op, seconds)


def run(host, machine, options, progress):
    sender, receiver = host.cpu(0), host.cpu(1)  # perf.run(): payload goes from side 0 to side 1
    bridge, managed = Bridge(host), Switch(host, True, receiver)
    others = {"alone": Switch(host, False, receiver), "sender": Switch(host, True, sender), "anywhere": Switch(host, True, None)}
    contenders = []
    for op in OPS:
        contenders.append((("bridge", op), lambda o=op: measure(host, bridge, o, options.seconds)))
        contenders.append((("managed", op), lambda o=op: through(host, managed, o, options.seconds)))
    for name, switch in others.items():
        contenders.append(((name, "write"), lambda s=switch: through(host, s, "write", options.seconds)))
    found = stats.turns(contenders, options.turns, progress)
    return fill(Report("switch", TITLE, machine), found, managed.found)


def fill(report, found, discoveries):
    for op in OPS:
        report.row("veth", f"Linux bridge, {op.upper()}", "Gb/s", found["bridge", op])
        report.row("veth", f"uroce-switch, managed, {op.upper()}", "Gb/s", found["managed", op], found["bridge", op], "bridge")
    for name, what in (("alone", "not managed"), ("sender", "managed, on the sender's CPU"), ("anywhere", "managed, without --realtime")):
        report.row("veth", f"uroce-switch, {what}, WRITE", "Gb/s", found[name, "write"], found["bridge", "write"], "bridge")
    for op in OPS:
        report.bar(f"uroce-switch / bridge, {op.upper()}, managed", stats.ratios_of(found["managed", op], found["bridge", op]), BAR)
    found = [n for n in discoveries if n is not None]
    report.bar("discoveries meanwhile that failed, of all", 1 - len(found) / max(1, len(discoveries)), 0, at_least=False)
    report.bar("discoveries meanwhile that found the switch, the manager and both endpoints", sum(n >= SEEN for n in found), len(OPS))
    report.notes.append(f"{len(discoveries)} discoveries by uroce-ctl while messages were sent")
    report.plot("Gb/s of payload")
    return report
