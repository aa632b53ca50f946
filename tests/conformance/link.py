# SPDX-License-Identifier: BSD-3-Clause
"""Transport of frames: a kernel interface, or the relay of a ring in the tested program."""

import queue
import socket
import struct
import threading
import time

ETH_P_ALL = 0x0003
SO_TIMESTAMPNS = 35  # also the type of its control message
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1
PACKET_OUTGOING = 4


class Link:
    """A thread reads frames, so that nothing overflows. The time of a frame is when it arrived in the kernel or in the
    relay: this thread may have been kept waiting."""

    def __init__(self, sock, receive_one):
        self.sock = sock
        self.receive_one = receive_one
        # Not a SimpleQueue: get() of Python 3.11 waits for ever if its time is over when it looks at the clock again.
        self.frames = queue.Queue()
        self.sock.settimeout(0.2)
        self.open = True
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _receive(self):
        while self.open:
            try:
                got = self.receive_one(self.sock)
            except socket.timeout:
                continue
            except OSError:
                return
            if got is None:
                return
            if got[1]:
                self.frames.put(got)

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


def from_kernel(sock):
    """(arrival, frame) from an interface; an empty frame if it is one of ours."""
    frame, control, _, address = sock.recvmsg(65536, socket.CMSG_SPACE(16))
    if not frame:
        return None
    (_, _, stamp), = control
    seconds, ns = struct.unpack("qq", stamp)
    age = max(0, time.time_ns() - seconds * 10**9 - ns) / 1e9
    return time.monotonic() - age, b"" if address[2] == PACKET_OUTGOING else frame


def from_relay(sock):
    """(arrival, frame) from the relay, which puts its clock before the frame; None if it has ended."""
    message = sock.recv(65536)
    if not message:
        return None
    ns, = struct.unpack_from("q", message)
    return ns / 1e9, message[8:]


def kernel_interface(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.bind((name, ETH_P_ALL))
    index = socket.if_nametoindex(name)
    s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                 struct.pack("IHH8s", index, PACKET_MR_PROMISC, 0, b""))
    return Link(s, from_kernel)


def relay_pair():
    """Returns (our link, the descriptor for the program that relays)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for s in (ours, theirs):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return Link(ours, from_relay), theirs
