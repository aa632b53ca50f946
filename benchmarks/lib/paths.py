# SPDX-License-Identifier: BSD-3-Clause
"""Paths to the other side. Each gives testpmd and uroce-perf the same device with the same rings, so that
they differ only in uroce.

Side 0 sends the payload and side 1 receives it. For a READ, the uroce-perf client is therefore side 1.
"""

from . import netns
from .host import ROOT

CONF = ROOT / "pmd-config"
ROCE_BYTES = 14 + 20 + 8 + 12 + 4  # Ethernet, IPv4, UDP, BTH, ICRC
RETH_BYTES = 16


class Memif:
    """Shared memory. The receiving side is memif's client, because only the client can receive directly into
    its own buffers (zero copy), which needs hugepages."""

    name = "memif"
    pmtu = 4096
    mbuf_bytes = 4608
    mbufs = 2047
    ring_order = 8

    def __init__(self, host, zero_copy=True):
        self.host = host
        self.socket = host.tmp / "memif.sock"
        self.zero_copy = zero_copy and host.huge

    def prepare(self):
        """Called before each run, while the path is not in use."""
        if self.host.huge:
            self.host.top_up_hugepages()
        self.socket.unlink(missing_ok=True)

    def inside(self, side):
        return []

    def first(self):
        """The side that must be started first; None if either may be."""
        return 0

    def vdev(self, side):
        role = "client" if side else "server"
        zero_copy = "yes" if side and self.zero_copy else "no"
        return (f"net_memif0,role={role},socket={self.socket},socket-abstract=no,"
                f"rsize={self.ring_order},bsize=4224,zero-copy={zero_copy}")

    def conf(self, side):
        """The configuration file, and keys that override it."""
        sets = [f"port.device={self.socket}"]
        if side and self.zero_copy:
            sets.append("port.zero_copy=yes")
        return CONF / ("memif-client.conf" if side else "memif-server.conf"), sets

    def address(self, side):
        return "10.77.0.2" if side else "10.77.0.1"


class Veth:
    mbufs = 4095

    def __init__(self, host, mtu):
        self.host = host
        self.pair = netns.Pair(host, mtu)

    def prepare(self):
        if self.host.huge:
            self.host.top_up_hugepages()

    def inside(self, side):
        return self.pair.inside(side)

    def first(self):
        return None

    def conf(self, side):
        letter = "b" if side else "a"
        return CONF / f"veth-{self.name}-{letter}.conf", []

    def address(self, side):
        return "10.77.0.2" if side else "10.77.0.1"


class AfPacket(Veth):
    name = "af_packet"
    pmtu = 4096
    mbuf_bytes = 4864
    slots = 1024  # as in pmd-config/veth-af_packet-*.conf

    def __init__(self, host):
        super().__init__(host, 4300)

    def vdev(self, side):
        # Slots of 4608 bytes without gaps: 8 slots occupy 9 pages.
        return (f"net_af_packet0,iface={netns.DEVICES[side]},qpairs=1,framesz=4608,"
                f"blocksz=36864,framecnt={self.slots}")


class AfXdp(Veth):
    name = "af_xdp"
    pmtu = 2048
    mbuf_bytes = 3840  # an mbuf with its headers fits into a page

    def __init__(self, host):
        super().__init__(host, 2200)

    def vdev(self, side):
        return (f"net_af_xdp0,iface={netns.DEVICES[side]},start_queue=0,queue_count=1,"
                "busy_budget=0")


class Leased:
    """Ports of uroced. `bed`: tests/programs/bed.Uroced, whose daemon runs."""

    name = "uroced"
    pmtu = 4096

    def __init__(self, host, bed):
        self.host, self.bed = host, bed

    def prepare(self):
        if self.host.huge:
            self.host.top_up_hugepages()

    def inside(self, side):
        return self.bed.into(self.letter(side))

    def first(self):
        return None

    def conf(self, side):
        return CONF / "uroced.conf", [f"port.dev={self.bed.endpoint(self.letter(side))[1]}"]

    def address(self, side):
        return self.bed.ADDRESSES[self.letter(side)]

    @staticmethod
    def letter(side):
        return "b" if side else "a"
