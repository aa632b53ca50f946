# SPDX-License-Identifier: BSD-3-Clause
"""A client of uroced that is no endpoint: asks for leases, and speaks memif as it likes."""
import array
import contextlib
import fcntl
import mmap
import os
import socket
import struct
import time

REASONS = ["malformed", "quota", "full", "no address", "foreign", "taken"]
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK = 1033, 1, 2
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
SLOTS, BUFFER = 16, 4352
PATIENCE_S = 60  # with a machine that is slow
RING = 128 + 16 * SLOTS
COOKIE = 0x3E31F20


class Refused(Exception):
    pass


def ip(text):
    return socket.inet_aton(text)


def request(address="0.0.0.0", secret=b"", program=b"liar", version=1):
    return b"ULQ%d" % version + ip(address) + secret.ljust(24, b"\0") + program.ljust(32, b"\0")


class Lease:
    def __init__(self, path, address="0.0.0.0", secret=b"", message=None, version=1):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(path)
        self.sock.send(message or request(address, secret, version=version))
        answer, fds, _, _ = socket.recv_fds(self.sock, 200, 2)
        self.wake, self.event = (socket.socket(fileno=fds[0]), fds[1]) if fds else (None, None)
        if not answer.startswith(b"ULG1"):
            raise Refused(REASONS[struct.unpack(">I", answer[4:8])[0]] if answer else "closed")
        self.grant = answer
        self.ip = answer[4:8]
        self.address = socket.inet_ntoa(self.ip)
        self.mac, self.number = answer[12:18], answer[19]
        self.name = f"0.0.0.{self.number}" if self.number else self.address  # in messages about rings
        self.id = struct.unpack(">I", answer[20:24])[0]
        self.secret = answer[24:48].rstrip(b"\0")
        self.memif = os.path.join(os.path.dirname(path), answer[48:].rstrip(b"\0").decode())

    def woken(self, seconds=0.2):
        """Whether the daemon writes to the socket that wakes this client; then it is read."""
        self.wake.settimeout(seconds)
        try:
            return bool(self.wake.recv(4096))
        except TimeoutError:
            return False

    def interrupt(self):
        """What a client does that knows of interrupts: once at first, and then when it has sent something and the ring asks for that."""
        os.eventfd_write(self.event, 1)

    def request_ring(self, name):
        """Asks for a direct ring."""
        self.sock.send(b"ULW1" + ip(name))

    def told(self):
        """The next message about a direct ring: a Ring, or the name of the client whose ring has ended. None: the daemon has ended the lease."""
        try:
            got, fds, _, _ = socket.recv_fds(self.sock, 200, 2)
        except ConnectionError:
            return None
        if not got:
            return None
        assert len(got) == 12 and got[:4] == b"ULD1" and got[11] == 0, got
        name, frame_max, second = struct.unpack(">4sHB", got[4:11])
        if frame_max:
            return Ring(socket.inet_ntoa(name), frame_max, second, *fds)
        assert not fds and not second, got
        return socket.inet_ntoa(name)

    def close(self):
        self.sock.close()
        if self.wake:
            self.wake.close()
            os.close(self.event)


class Ring:
    """An end of a direct ring (lib/edge/direct_ring.h). What is written, and to which side, is up to the caller."""

    def __init__(self, name, frame_max, second, memory):
        self.name, self.frame_max = name, frame_max
        self.slot = (8 + frame_max + 63) // 64 * 64
        self.side = 128 + 128 * self.slot
        self.memory = mmap.mmap(memory, 2 * self.side)
        self.words = memoryview(self.memory).cast("I")
        self.own, self.other = self.side * second, self.side * (1 - second)
        self.sent = 0
        os.close(memory)

    @classmethod
    def of_process(cls, pid, mac, frame_max):
        """The end of a process with one ring, whose frames have this source address."""
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            area = next(line.split()[0] for line in maps if "memfd:uroced-direct" in line)
        ring = cls(None, frame_max, 0, os.open(f"/proc/{pid}/map_files/{area}", os.O_RDWR))
        if bytes(ring.memory[128 + 8 + 6:128 + 8 + 12]) != mac:
            ring.own, ring.other = ring.other, ring.own
        ring.sent = max(ring.words[(ring.own + 128 + i * ring.slot) // 4] for i in range(128))
        return ring

    def set_head(self, value):
        self.words[self.own // 4] = value & 0xffffffff

    def taken(self):
        """How many frames the other end has taken."""
        return self.words[self.other // 4]

    def is_ready(self):
        return self.words[(self.other + 64) // 4] != 0

    def set_ready(self):
        self.words[(self.own + 64) // 4] = 1

    def push(self, frame, length=None):
        at = self.own + 128 + self.sent % 128 * self.slot
        self.memory[at + 8:at + 8 + len(frame)] = frame
        self.words[at // 4 + 1] = len(frame) if length is None else length
        self.sent = (self.sent + 1) & 0xffffffff
        self.words[at // 4] = self.sent

    def close(self):
        self.words.release()
        self.memory.close()


class Memif:
    """Client of memif, with a ring each way. What is sent and written is up to the caller."""

    def __init__(self, lease, secret=None, number=None, seal=True, ring_offset=0, larger=0, grows=False, fd=None, early=None):
        """larger: bytes of the file beyond the region; grows: no further seals; fd: is sent in place of the region; early: of the first message."""
        self.lease = lease
        self.fd = os.memfd_create("memif", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, 2 * RING + 2 * SLOTS * BUFFER + larger)
        if seal:
            fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | (F_SEAL_SEAL if grows else 0))
        self.memory = mmap.mmap(self.fd, 2 * RING + 2 * SLOTS * BUFFER)
        self.words = memoryview(self.memory).cast("H")
        for r in range(2):
            struct.pack_into("=I", self.memory, r * RING, COOKIE)
            for i in range(SLOTS):
                self.desc(r, i, BUFFER, 2 * RING + (r * SLOTS + i) * BUFFER)
        self.head, self.taken = 0, 0
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(lease.memif)
        assert self.receive()[0] == HELLO
        self.ask(struct.pack("=HHIB24s", INIT, 0x200, lease.id if number is None else number, 0, lease.secret if secret is None else secret), early)
        self.ask(struct.pack("=HHQ", ADD_REGION, 0, len(self.memory)), self.fd if fd is None else fd)
        event = os.eventfd(0)
        for flags, at in (1, ring_offset), (0, RING):
            self.ask(struct.pack("=HHHHIBH", ADD_RING, flags, 0, 0, at, SLOTS.bit_length() - 1, 0), event)
        os.close(event)
        self.ask(struct.pack("=H32s", CONNECT, b"liar"))
        self.give(SLOTS)

    def receive(self):
        got = self.sock.recv(128)
        if not got:
            raise Refused("closed")
        kind = struct.unpack("=H", got[:2])[0]
        if kind == DISCONNECT:
            raise Refused(got[6:].rstrip(b"\0").decode())
        return kind, got

    def ask(self, message, fd=None):
        more = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * 3))]
        self.sock.sendmsg([message.ljust(128, b"\0")], more)
        return self.receive()

    def desc(self, ring, i, length, offset, flags=0, region=0):
        struct.pack_into("=HHIII", self.memory, ring * RING + 128 + 16 * (i % SLOTS), flags, region, length, offset, 0)

    def put(self, at, value):
        """As one store: struct.pack_into() clears the bytes before it writes them, and the daemon takes the 0 for a broken ring."""
        self.words[at // 2] = value & 0xffff

    def get(self, at):
        return self.words[at // 2]

    def give(self, head):
        """Makes descriptors of the receiving ring available."""
        self.put(RING + 6, head)

    def send(self, frame):
        at = 2 * RING + self.head % SLOTS * BUFFER
        self.memory[at:at + len(frame)] = frame
        self.desc(0, self.head, len(frame), at)
        self.head += 1
        self.put(6, self.head)
        until = time.monotonic() + PATIENCE_S
        while self.get(64) != self.head & 0xffff:
            assert time.monotonic() < until, "the daemon does not take the frame"
            time.sleep(0.001)

    def frames(self, seconds, least=0):
        """What arrives in this time, and until there are so many, however slow the machine is."""
        got, began = [], time.monotonic()
        while time.monotonic() < began + (PATIENCE_S if len(got) < least else seconds):
            while self.taken != self.get(RING + 64):
                i = self.taken % SLOTS
                length, offset = struct.unpack_from("=II", self.memory, RING + 128 + 16 * i + 4)
                got.append(bytes(self.memory[offset:offset + length]))
                self.desc(1, i, BUFFER, 2 * RING + (SLOTS + i) * BUFFER)
                self.taken = (self.taken + 1) & 0xffff
                self.give(self.taken + SLOTS)
            time.sleep(0.002)
        return got

    def close(self):
        """Returns when the daemon has closed its end, too."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        while not self.ended():
            pass
        self.sock.close()

    def ended(self):
        """Whether the daemon has ended the connection."""
        try:
            return not self.sock.recv(128)
        except ConnectionError:
            return True
