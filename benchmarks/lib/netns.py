# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces joined by a veth pair, as pmd-config/veth-*.conf expect: uroce0 in one, uroce1 in
the other. Their names contain the pid, so that remains of a killed run are recognized."""

import os
import pathlib
import subprocess

from .host import Failure

PREFIX = "uroce-bench-"
RUN = pathlib.Path("/run/netns")
DEVICES = ("uroce0", "uroce1")
NFT_TABLE = "uroce_bench"
# Addresses for the kernel's TCP, set only while it runs. 10.77.0.0/24 belongs to the endpoints.
TCP_ADDRESSES = ("192.0.2.1", "192.0.2.2")


def ip(*argv, check=True):
    done = subprocess.run(["ip", *argv], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Failure(f"`ip {' '.join(argv)}`: {done.stderr.strip()}")


def delete(name):
    """Deletes a namespace. Its processes are ended first, because they would keep its interfaces alive."""
    done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
    for pid in done.stdout.split():
        try:
            os.kill(int(pid), 9)
        except ProcessLookupError:
            pass
    ip("netns", "del", name, check=False)


def reap_leftovers():
    for path in RUN.glob(PREFIX + "*"):
        pid = path.name.rsplit("-", 1)[-1]
        if pid.isdigit() and not pathlib.Path(f"/proc/{pid}").exists():
            delete(path.name)


class Pair:
    """The MTU is that of the port's file. close() may be called twice."""

    def __init__(self, host, mtu):
        Pair.serial = getattr(Pair, "serial", 0) + 1
        self.names = [f"{PREFIX}{side}{Pair.serial}-{os.getpid()}" for side in "ab"]
        self.mtu = mtu
        self.open = True
        reap_leftovers()
        host.closers.append(self.close)
        for name in self.names:
            ip("netns", "add", name)
            # With IPv6 disabled the kernel sends nothing by itself. Read-only in containers.
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw",
                            "net.ipv6.conf.default.disable_ipv6=1"], capture_output=True)
        ip("link", "add", DEVICES[0], "mtu", str(mtu), "netns", self.names[0], "type", "veth",
           "peer", "name", DEVICES[1], "mtu", str(mtu), "netns", self.names[1])
        for name, device in zip(self.names, DEVICES):
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")

    def inside(self, side):
        return ["ip", "netns", "exec", self.names[side]]

    def lossy(self, percent):
        """Drops that share of the frames that arrive, at either end, by nftables; 0 drops none. Frames
        are single segments from now on: what the kernel joins would be lost as a whole. False where
        the kernel or nft cannot."""
        for name, device in zip(self.names, DEVICES):
            subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", device, "tso", "off", "gso", "off",
                            "gro", "off"], capture_output=True)
            rules = f"table netdev {NFT_TABLE}\ndelete table netdev {NFT_TABLE}\n"
            if percent:
                rules += (f"table netdev {NFT_TABLE} {{ chain in {{ type filter hook ingress device "
                          f"{device} priority 0; numgen random mod 1000000 < "
                          f"{round(percent * 10000)} drop; }}; }}\n")
            done = subprocess.run(["ip", "netns", "exec", name, "nft", "-f", "-"], input=rules,
                                  text=True, capture_output=True)
            if done.returncode != 0:
                return False
        return True

    def tcp_on(self):
        for name, device, address in zip(self.names, DEVICES, TCP_ADDRESSES):
            ip("-n", name, "addr", "replace", f"{address}/24", "dev", device)

    def tcp_off(self):
        for name, device in zip(self.names, DEVICES):
            ip("-n", name, "addr", "flush", "dev", device)

    def close(self):
        if self.open:
            self.open = False
            for name in self.names:
                delete(name)
