# SPDX-License-Identifier: BSD-3-Clause
"""Transport of frames: a kernel interface, or the relay of a ring in the tested program."""

import queue
import socket
import struct
import threading
import time

ETH_P_ALL = 0x0003
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1
PACKET_OUTGOING = 4


class Link:
    """A thread reads frames from the socket, so that timestamps are accurate and nothing overflows."""

    def __init__(self, sock):
        self.sock = sock
        self.frames = queue.SimpleQueue()
        self.sock.settimeout(0.2)
        self.open = True
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _receive(self):
        while self.open:
            try:
                frame, address = self.sock.recvfrom(65536)
            except socket.timeout:
                continue
            except OSError:
                return
            if not frame:
                return
            if isinstance(address, tuple) and address[2] == PACKET_OUTGOING:
                continue
            self.frames.put((time.monotonic(), frame))

    def send(self, frame):
        self.sock.send(frame)

    def receive(self, until):
        """Returns (time, frame), or None if nothing arrived before `until`."""
        try:
            return self.frames.get(timeout=max(0, until - time.monotonic()))
        except queue.Empty:
            return None

    def close(self):
        self.open = False
        self.thread.join()
        self.sock.close()


def kernel_interface(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind((name, ETH_P_ALL))
    index = socket.if_nametoindex(name)
    s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                 struct.pack("IHH8s", index, PACKET_MR_PROMISC, 0, b""))
    return Link(s)


def relay_pair():
    """Returns (our link, the descriptor for the program that relays)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for s in (ours, theirs):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return Link(ours), theirs
