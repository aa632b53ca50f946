# SPDX-License-Identifier: BSD-3-Clause
"""A row of switches, each joined to the next by a veth pair, with a host of the kernel's at some of them, and a place for a manager
at the beginning. Hosts and manager have network namespaces of their own. The switches share one, and as few processes of
uroce-switch as DPDK has ports for: each is served by one thread, as a machine with few CPUs could not run a process for each switch.

    manager l0 -- b1 s1 a1 -- b2 s2 a2 -- b3 s3 a3 ...
                     h1          h2          h3
                     host 1      host 2      host 3
"""

import json
import os
import re
import subprocess
import time

from . import netns, stats

MTU = 1500
DPDK_PORTS = 32  # that a process can have
FRAMES, MEMORY_MB = 128, 256  # in the rings and queues of a port; of all ports of a process
WAIT_S = 60


def shared_out(ports, most):
    """ports[k]: of switch k. Neighbours in one list, each with at most `most` ports."""
    lists = []
    for k, own in ports.items():
        if not lists or sum(len(ports[i]) for i in lists[-1]) + len(own) > most:
            lists.append([])
        lists[-1].append(k)
    return lists


class Row:
    """Switch k, from 1 on, has the name "switch-k", and if k is in `hosts` a host with the address 10.78.0.<k + 1> at its port 2.
    close() may be called twice."""

    def __init__(self, host, count, hosts):
        self.host, self.open = host, True
        self.names = {part: f"{netns.PREFIX}row{part}-{os.getpid()}" for part in ["m", "s", *(f"h{k}" for k in hosts)]}
        netns.reap_leftovers()
        host.closers.append(self.close)
        for name in self.names.values():
            netns.ip("netns", "add", name)
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1",
                            "net.ipv6.conf.all.disable_ipv6=1"], capture_output=True)
        self.join("m", "l0", "s", "b1", "10.78.0.1/24")
        for k in hosts:
            self.join(f"h{k}", "l0", "s", f"h{k}", f"10.78.0.{k + 1}/24")
        for k in range(1, count):
            self.join("s", f"a{k}", "s", f"b{k + 1}")
        ports = {k: [f"b{k}", *([f"h{k}"] if k in hosts else []), *([f"a{k}"] if k < count else [])] for k in range(1, count + 1)}
        self.switches = [self.start(group, ports) for group in shared_out(ports, DPDK_PORTS)]
        for process in self.switches:
            process.wait_for("forwarding", 120)

    def join(self, one, device, other, peer, address=None):
        netns.ip("link", "add", "name", device, "mtu", str(MTU), "netns", self.names[one], "type", "veth", "peer", "name", peer,
                 "mtu", str(MTU), "netns", self.names[other])
        netns.ip("-n", self.names[one], "link", "set", "dev", device, "up")
        netns.ip("-n", self.names[other], "link", "set", "dev", peer, "up")
        if address:
            netns.ip("-n", self.names[one], "addr", "add", address, "dev", device)

    def start(self, group, ports):
        settings = {"eal.hugepages": "no", "eal.memory_mb": MEMORY_MB, "port.framecnt": FRAMES, "port.rx_desc": FRAMES,
                    "port.tx_desc": FRAMES, "forwarding.frames": FRAMES, "management.open": "yes"}
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        for k in group:
            words += ["--switch", f"switch-{k}", *(word for device in ports[k] for word in ("--port", f"dev={device}"))]
        return self.host.start(f"switches-{group[0]}", ["ip", "netns", "exec", self.names["s"],
                                                        self.host.binary("app/switch/uroce-switch"), *words])

    def run(self, *words, timeout_s=WAIT_S):
        argv = ["ip", "netns", "exec", self.names["m"], *map(str, words)]
        self.host.say(" ".join(argv))
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode != 0:
            raise netns.Failure(f"`{' '.join(argv)}` failed: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def ctl(self, *words):
        return self.run(self.host.binary("app/ctl/uroce-ctl"), *words, "--dev", "l0")

    def ping_ns(self, k, count):
        """The median, each sent when the last one was answered. -U: until ping has the answer, as uroce-ctl measures, and not until
        the kernel has stamped it; on a busy machine these differ by more than the way takes."""
        said = self.run("ping", "-A", "-U", "-n", "-c", count, f"10.78.0.{k + 1}")
        return stats.median([float(t) * 1e6 for t in re.findall(r"time=([0-9.]+) ms", said)])

    def read_ns(self, k, count):
        """The median of a request for two registers, each sent when the last one was answered."""
        said = self.ctl("reg", "read", f"switch-{k}", "uptime_ns", "load", "--count", count, "--json", "-")
        return json.loads(said)["requests"]["median_ns"]

    def scan(self, passes, percent, gbps):
        """Passes of a monitor, one after the other, within that share of its port: seconds, and bytes that the port has sent."""
        before = self.sent_bytes()
        began = time.monotonic()
        self.ctl("monitor", "loop", "--interval", 0, "--count", passes, "--share", percent, "--rate", gbps, "--json", "/dev/null")
        return time.monotonic() - began, self.sent_bytes() - before

    def sent_bytes(self):
        shown = json.loads(self.run("ip", "-s", "-j", "link", "show", "dev", "l0"))
        return shown[0]["stats64"]["tx"]["bytes"]

    def watch(self):
        """From now on faults are reported here, and a comparing monitor runs beside."""
        ctl = ["ip", "netns", "exec", self.names["m"], str(self.host.binary("app/ctl/uroce-ctl"))]
        self.compared = self.host.tmp / "compare.json"
        self.compare = self.host.start("compare", ctl + ["monitor", "compare", "--dev", "l0", "--interval", "0.1", "--json", self.compared])
        self.wait_until(lambda: self.passes() >= 3, self.compare)
        # The last program that asks for reports gets them.
        self.faults = self.host.start("faults", ctl + ["faults", "--dev", "l0"])
        time.sleep(1)

    def passes(self):
        return self.compared.read_text().count("\n") if self.compared.exists() else 0

    def wait_until(self, done, process):
        until = time.monotonic() + WAIT_S
        while not done():
            if time.monotonic() > until or not process.alive():
                raise netns.Failure(f"{process.name} does not say what is expected: {process.tail()}")
            time.sleep(0.0005)

    def fault(self, k, begin, port, cause):
        """Calls begin(). Seconds until the report is printed, seconds from there until it is confirmed, and the registers that the
        comparing monitor prints, each with the node's GUID."""
        before, began = self.passes(), time.monotonic()
        text = f'"switch-{k}" port {port}: {cause}'
        begin()
        self.wait_until(lambda: text in self.faults.text(), self.faults)
        took = time.monotonic() - began
        self.wait_until(lambda: len([line for line in self.faults.text().splitlines() if text in line]) >= 2, self.faults)
        early, sure = [float(line.split()[0]) for line in self.faults.text().splitlines() if text in line][:2]
        self.wait_until(lambda: self.passes() >= before + 5, self.compare)
        lines = self.compared.read_text().splitlines()[before:]
        return took, sure - early, {(v["guid"], v["register"]) for line in lines for v in json.loads(line)["values"]}

    def cut_link(self, k):
        netns.ip("-n", self.names[f"h{k}"], "link", "set", "dev", "l0", "down")

    def send_bad_frames(self, k, count):
        """Frames whose source is a group address, which are receive errors."""
        code = ("import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('l0', 0));"
                f"[s.send(bytes([2, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0x88, 0xb5]) + bytes(50)) for _ in range({count})]")
        subprocess.run(["ip", "netns", "exec", self.names[f"h{k}"], "python3", "-c", code], check=True)

    def call_hot(self, k):
        """The switch is hot from any load on."""
        self.ctl("reg", "write", f"switch-{k}", "load_limit", 0)

    def end_watch(self):
        self.faults.stop()
        self.compare.stop()

    def close(self):
        if self.open:
            self.open = False
            for process in getattr(self, "switches", []):
                process.stop()
            for name in self.names.values():
                netns.delete(name)
