# SPDX-License-Identifier: BSD-3-Clause
"""A Linux bridge with a veth for each of several endpoints, all in one network namespace: the kernel's own
switch. The endpoints of one side share a process and so a CPU: processes that take turns on a CPU would
add milliseconds of their own to every delay."""

import os
import subprocess

from . import netns

MTU = 4300


class Star:
    """Endpoint i has the interface u<i> and the address 10.77.0.<i + 1>. close() is safe to call twice."""

    def __init__(self, host, count):
        Star.serial = getattr(Star, "serial", 0) + 1
        self.name = f"{netns.PREFIX}star{Star.serial}-{os.getpid()}"
        self.host = host
        self.open = True
        netns.reap_leftovers()
        host.closers.append(self.close)
        netns.ip("netns", "add", self.name)
        subprocess.run(self.inside() + ["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1",
                                        "net.ipv6.conf.all.disable_ipv6=1"], capture_output=True)
        self.ip("link", "add", "br0", "type", "bridge")
        self.ip("link", "set", "br0", "mtu", str(MTU), "up")
        for i in range(count):
            self.ip("link", "add", f"u{i}", "mtu", str(MTU), "type", "veth", "peer", "name", f"b{i}",
                    "mtu", str(MTU))
            self.ip("link", "set", f"b{i}", "master", "br0")
            self.ip("link", "set", f"b{i}", "up")
            self.ip("link", "set", f"u{i}", "up")

    def ip(self, *argv):
        netns.ip("-n", self.name, *argv)

    def inside(self):
        return ["ip", "netns", "exec", self.name]

    def address(self, i):
        return f"10.77.0.{i + 1}"

    def conf(self, i, name, sections):
        """A configuration file of endpoint i. `sections`: {section: {key: value}} besides."""
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
            netns.delete(self.name)
