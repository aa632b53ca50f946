# SPDX-License-Identifier: BSD-3-Clause
"""A row of uroce-switches over veth pairs, each in a network namespace of its own, with a host of the kernel's at each of them, and a
place for a manager at the beginning.

    manager l0 -- p1 s1 p3 -- p1 s2 p3 -- p1 s3 ...
                     p2          p2          p2
                     host 1      host 2      host 3
"""

import json
import os
import re
import subprocess
import time

from . import netns, stats

MTU = 1500
WAIT_S = 60


class Row:
    """Switch k, from 1 on, has the description "switch k", its host the address 10.78.0.<k + 1>. close() may be called twice."""

    def __init__(self, host, count):
        self.host, self.count, self.open = host, count, True
        self.names = {part: f"{netns.PREFIX}row{part}-{os.getpid()}"
                      for part in ["m", *(f"{kind}{k}" for kind in "sh" for k in range(1, count + 1))]}
        netns.reap_leftovers()
        host.closers.append(self.close)
        for name in self.names.values():
            netns.ip("netns", "add", name)
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1",
                            "net.ipv6.conf.all.disable_ipv6=1"], capture_output=True)
        self.join("m", "l0", "s1", "p1", "10.78.0.1/24")
        for k in range(1, count + 1):
            self.join(f"h{k}", "l0", f"s{k}", "p2", f"10.78.0.{k + 1}/24")
            if k < count:
                self.join(f"s{k}", "p3", f"s{k + 1}", "p1")
        self.switches = [self.start(k) for k in range(1, count + 1)]
        for process in self.switches:
            process.wait_for("forwarding", 60)

    def join(self, one, device, other, peer, address=None):
        netns.ip("link", "add", "name", device, "mtu", str(MTU), "netns", self.names[one], "type", "veth", "peer", "name", peer,
                 "mtu", str(MTU), "netns", self.names[other])
        netns.ip("-n", self.names[one], "link", "set", "dev", device, "up")
        netns.ip("-n", self.names[other], "link", "set", "dev", peer, "up")
        if address:
            netns.ip("-n", self.names[one], "addr", "add", address, "dev", device)

    def start(self, k):
        ports = [word for device in ("p1", "p2", "p3")[:3 if k < self.count else 2] for word in ("--port", f"dev={device}")]
        return self.host.start(f"switch-{k}", [
            "ip", "netns", "exec", self.names[f"s{k}"], self.host.binary("app/switch/uroce-switch"), *ports,
            "--set", "eal.memory_mb=64", "--set", "eal.hugepages=no", "--set", f"management.description=switch {k}",
            "--set", "management.open=yes"])

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
        """The median, each sent when the last one was answered."""
        said = self.run("ping", "-A", "-n", "-c", count, f"10.78.0.{k + 1}")
        return stats.median([float(t) * 1e6 for t in re.findall(r"time=([0-9.]+) ms", said)][count // 10:])

    def read_ns(self, k, count):
        """The median of a request for two registers, one after the other: passes over one node, divided by their requests."""
        said = self.ctl("monitor", "loop", f"switch {k}", "--interval", 0, "--count", count + 1, "--tiers", 1, "--window", 1, "--json", "-")
        passes = [json.loads(line) for line in said.splitlines()]
        requests = (len(passes[0]["values"]) + 1) // 2
        took = [(b["time_s"] - a["time_s"]) * 1e9 / requests for a, b in zip(passes, passes[1:])]
        return stats.median(took[count // 10:])

    def fault(self, k):
        """The link of host k goes down: seconds until the report is printed, what it says, and what a comparing monitor prints."""
        ctl = ["ip", "netns", "exec", self.names["m"], str(self.host.binary("app/ctl/uroce-ctl"))]
        faults = self.host.start("faults", ctl + ["faults", "--dev", "l0"])
        watch = self.host.start("compare", ctl + ["monitor", "compare", "--dev", "l0", "--interval", "0.1", "--json",
                                                  self.host.tmp / "compare.json"])
        until = time.monotonic() + WAIT_S
        while not (self.host.tmp / "compare.json").exists() or (self.host.tmp / "compare.json").read_text().count("\n") < 3:
            if time.monotonic() > until or not watch.alive():
                raise netns.Failure(f"monitor compare does not begin: {watch.tail()}")
            time.sleep(0.05)
        began = time.monotonic()
        netns.ip("-n", self.names[f"h{k}"], "link", "set", "dev", "l0", "down")
        while f'"switch {k}" port 2: link down' not in faults.text():
            if time.monotonic() - began > WAIT_S:
                raise netns.Failure(f"no report came: {faults.tail()}")
            time.sleep(0.0005)
        took = time.monotonic() - began
        time.sleep(0.5)  # a pass or two of the comparing monitor
        faults.stop()
        watch.stop()
        changes = {v["register"] for line in (self.host.tmp / "compare.json").read_text().splitlines() for v in json.loads(line)["values"]}
        return took, changes

    def close(self):
        if self.open:
            self.open = False
            for process in getattr(self, "switches", []):
                process.stop()
            for name in self.names.values():
                netns.delete(name)
