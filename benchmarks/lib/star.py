# SPDX-License-Identifier: BSD-3-Clause
"""A Linux bridge, the kernel's own switch, with a veth for each of several endpoints. The endpoints of one
side share a process and a CPU, because processes that share a CPU would add milliseconds to every delay.

Each side has its own network namespace, and the bridge a third one. DPDK's af_packet driver computes the
number of its fanout group as pid XOR ifindex, so two processes in one namespace sometimes request the same
group for different interfaces, which the kernel refuses."""

import os
import subprocess

from . import netns

MTU = 4300


class Star:
    """Endpoint i has interface u<i> and address 10.77.0.<i + 1>. close() may be called twice."""

    def __init__(self, host, sides):
        """`sides`: the number of endpoints of each side. Side 0 has the first ones."""
        Star.serial = getattr(Star, "serial", 0) + 1
        self.names = [f"{netns.PREFIX}star{Star.serial}{part}-{os.getpid()}"
                      for part in ["", *(f"s{side}" for side in range(len(sides)))]]
        self.host = host
        self.open = True
        netns.reap_leftovers()
        host.closers.append(self.close)
        for name in self.names:
            netns.ip("netns", "add", name)
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1",
                            "net.ipv6.conf.all.disable_ipv6=1"], capture_output=True)
        self.bridge, *self.spaces = self.names
        netns.ip("-n", self.bridge, "link", "add", "br0", "type", "bridge")
        netns.ip("-n", self.bridge, "link", "set", "br0", "mtu", str(MTU), "up")
        spaces = [space for space, count in zip(self.spaces, sides) for _ in range(count)]
        for i, space in enumerate(spaces):
            self.join(i, space)

    def join(self, i, space):
        netns.ip("link", "add", f"u{i}", "mtu", str(MTU), "netns", space, "type", "veth",
                 "peer", "name", f"b{i}", "mtu", str(MTU), "netns", self.bridge)
        netns.ip("-n", self.bridge, "link", "set", f"b{i}", "master", "br0")
        netns.ip("-n", self.bridge, "link", "set", f"b{i}", "up")
        netns.ip("-n", space, "link", "set", f"u{i}", "up")

    def inside(self, side):
        return ["ip", "netns", "exec", self.spaces[side]]

    def address(self, i):
        return f"10.77.0.{i + 1}"

    def conf(self, i, name, sections):
        """Writes the configuration file of endpoint i. `sections`: more keys, {section: {key: value}}."""
        whole = {"port": {"driver": "af_packet", "device": f"u{i}"},
                 "address": {"ipv4": f"{self.address(i)}/24"}}
        for section, keys in sections.items():
            whole.setdefault(section, {}).update(keys)
        path = self.host.tmp / f"{name}-{i}.conf"
        path.write_text("".join(f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())
                                for section, keys in whole.items()))
        return path

    def close(self):
        if self.open:
            self.open = False
            for name in self.names:
                netns.delete(name)
