#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hostile_hca.py UROCE_HCA [ROUNDS]: programs that send anything to uroce-hca, and a fabric that does. It goes on serving."""
import array
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

hca = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
QUERY, OPEN, REGISTER, UNREGISTER, MAD = range(1, 6)
OWN_LID, FABRIC_LID = 7, 9


def frame(mad, hop, qpn, icrc_ok=True):
    """A MAD as the fabric would send it."""
    dmac = bytes.fromhex("0180c200000e") if hop else bytes.fromhex("024c4944") + struct.pack(">H", OWN_LID)
    smac = bytes.fromhex("020000000001") if hop else bytes.fromhex("024c4944") + struct.pack(">H", FABRIC_LID)
    if hop:
        src, dst = socket.inet_pton(socket.AF_INET6, "fe80::ff:fe00:1"), socket.inet_pton(socket.AF_INET6, "ff02::1")
    else:
        src, dst = (socket.inet_pton(socket.AF_INET6, f"fe80::4c:49ff:fe44:{lid:x}") for lid in (FABRIC_LID, OWN_LID))
    udp_len = 8 + 12 + 8 + len(mad) + 4
    ip = struct.pack(">IHBB", 6 << 28 | 56 << 22, udp_len, 17, 255) + src + dst
    masked_ip = struct.pack(">IHBB", 0x6fffffff, udp_len, 17, 255) + src + dst
    udp = struct.pack(">HHH", 49152, 4791, udp_len)
    bth = struct.pack(">BBH", 0x64, 0x40, 0xffff) + struct.pack(">I", qpn) + struct.pack(">I", 0)
    deth = struct.pack(">II", 0x80010000 if qpn else 0, qpn)
    masked = b"\xff" * 8 + masked_ip + udp + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + deth + mad
    icrc = zlib.crc32(masked) ^ (0 if icrc_ok else 1)
    return dmac + smac + b"\x86\xdd" + ip + udp + b"\0\0" + bth + deth + mad + struct.pack("<I", icrc)


def random_mad(rng):
    mad = bytearray(rng.randbytes(256))
    mad[0:4] = bytes([rng.choice([1, 1, 1, 0]), rng.choice([0x01, 0x03, 0x04, 0x07, 0x32, 0x4a, 0x81, 0x81]),
                      rng.choice([1, 1, 2]), rng.choice([1, 2, 3, 5, 7, 0x12, 0x81, 0x92])])
    if rng.random() < 0.8:
        mad[4:8] = bytes([rng.choice([0, 0x80]), 0, rng.randrange(3), rng.randrange(3)])
        mad[16:18] = struct.pack(">H", rng.choice([0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1d, 0x20, 0xff10]))
        mad[20:24] = struct.pack(">I", rng.randrange(4))
        mad[8:12] = struct.pack(">I", rng.randrange(8))
        mad[24:36] = bytes([1, rng.randrange(5), rng.randrange(8), 0]) + struct.pack(">II", rng.randrange(40), rng.randrange(300))
    # A LID or an M_Key of its own would keep out most of what follows.
    if mad[1] & 0x7f == 1 and mad[3] == 2 and mad[17] == 0x15:
        mad[3] = 1
    if rng.random() < 0.3:
        mad[32:36] = b"\xff\xff\xff\xff"
    return bytes(mad)


def random_frame(rng):
    mad = random_mad(rng)
    qpn = rng.randrange(3) if rng.random() < 0.1 else 0 if mad[1] & 0x7f == 1 else 1
    f = frame(mad if rng.random() < 0.9 else mad[:100], rng.random() < 0.5, qpn, rng.random() < 0.95)
    if rng.random() < 0.1:
        f = bytearray(f)
        f[rng.randrange(len(f))] ^= 1 << rng.randrange(8)
    return bytes(f[:rng.randrange(len(f))] if rng.random() < 0.05 else f)


def message(rng):
    """What a program may send: mostly right, with a length or a number that is not."""
    kind = rng.choice([QUERY, OPEN, REGISTER, UNREGISTER, MAD, MAD, MAD, rng.randrange(100)])
    if kind == QUERY:
        m = struct.pack("=II", kind, rng.choice([1, 1, 2]))
    elif kind == OPEN:
        m = struct.pack("=III", kind, rng.choice([1, 1, 1, 2]), rng.choice([1, 1, 1, 0, 2]))
    elif kind == REGISTER:
        m = struct.pack("=IBBBBQQII", kind, rng.choice([1, 3, 4, 0x32, 0x81]), rng.choice([1, 2]), rng.choice([0, 1, 1, 2]),
                        rng.randrange(2), rng.choice([0, 0x26, 1 << 18]), 0, rng.choice([0x1405, 0]), 0)
    elif kind == UNREGISTER:
        m = struct.pack("=II", kind, rng.choice([0, 1, 31, 32, 1 << 31]))
    else:
        length = rng.choice([256, 256, 256, 24, 36, 0, 4000, 30000, 40000, 1 << 30])
        inline = length if length <= 32768 and rng.random() < 0.9 else rng.choice([0, 256])
        m = struct.pack("=II", kind, length)
        m += struct.pack("=IIIII", rng.choice([0, 0, 1, 31, 32, 1 << 31]), 0, rng.choice([0, 1, 20]), rng.choice([0, 1, 3]), 0)
        m += struct.pack(">IIHBBBBBB16sIHxxxxxx", rng.randrange(3), 0x80010000, rng.choice([0, OWN_LID, FABRIC_LID, 0xffff]),
                         0, 0, 0, 0, 0, 0, b"", 0, 0)
        m += (random_mad(rng) * 120)[:inline]
    return m[:rng.randrange(len(m))] if rng.random() < 0.05 else m


def descriptors(rng, tmp):
    """File descriptors that travel with a message."""
    what = rng.randrange(5)
    if what == 0:
        return [os.open("/dev/null", os.O_RDONLY)]
    if what == 1:
        fd = os.open(tmp / "short", os.O_RDWR | os.O_CREAT)
        os.write(fd, random_mad(rng) * rng.randrange(400))
        return [fd]
    if what == 2:
        return list(os.pipe())
    return []


def check_descriptors(process, conns):
    """Of two descriptors in a message it closes both."""
    for c in conns:
        c.close()
    for _ in range(100):
        left = len(os.listdir(f"/proc/{process.pid}/fd"))
        if left < 16:
            return
        time.sleep(0.1)
    sys.exit(f"{left} descriptors of programs that have ended are open")


def main():
    rng = random.Random(12)
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="uroce-hostile-"))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp / "link"))
    listener.listen(1)
    process = subprocess.Popen([hca, "--link", f"unix:{tmp}/link", "--dir", str(tmp)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("uroce0 is ready"), "uroce-hca starts"
        fabric = listener.accept()[0]
        fabric.setblocking(False)
        conns, answers = [], 0

        def connect():
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(str(tmp / "uroce0.umad"))
            s.setblocking(False)
            if rng.random() < 0.8:
                s.send(struct.pack("=III", OPEN, 1, 1))
            return s

        # A LID, so that packets to it are taken.
        port_info = bytearray(64)
        port_info[16:18] = struct.pack(">H", OWN_LID)
        port_info[18:20] = struct.pack(">H", FABRIC_LID)
        set_lid = bytes([1, 0x81, 1, 2, 0, 0, 1, 1]) + bytes(8) + b"\0\x15\0\0\0\0\0\1" + bytes(8) + b"\xff" * 4 + bytes(28)
        set_lid += bytes(port_info) + bytes([0, 1]) + bytes(126)
        fabric.send(frame(set_lid, True, 0))
        for _ in range(rounds):
            while len(conns) < 8:
                conns.append(connect())
            c = rng.choice(conns)
            passed = descriptors(rng, tmp)
            try:
                c.sendmsg([message(rng)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))] if passed else [])
                if rng.random() < 0.5:
                    c.recv(65536)
            except BlockingIOError:
                pass
            except OSError:
                conns.remove(c)
                c.close()
            for fd in passed:
                os.close(fd)
            if rng.random() < 0.02 and conns:
                conns.pop().close()
            for _ in range(rng.randrange(4)):
                try:
                    fabric.send(random_frame(rng))
                except BlockingIOError:
                    time.sleep(0.001)
            try:
                while fabric.recv(4096):
                    answers += 1
            except BlockingIOError:
                pass
            assert process.poll() is None, f"uroce-hca has ended with {process.returncode}"
        fabric.settimeout(1)
        try:
            while fabric.recv(4096):
                answers += 1
        except TimeoutError:
            pass
        assert answers > rounds / 30, f"the adapter has taken hardly any packet: {answers} answers"
        check_descriptors(process, conns)
        # It still answers.
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(120)
        s.connect(str(tmp / "uroce0.umad"))
        s.send(struct.pack("=II", QUERY, 1))
        assert s.recv(4096).startswith(b"uroce0\0"), "the adapter describes itself"
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, "uroce-hca ends at SIGTERM"
        assert not (tmp / "uroce0.umad").exists(), "its socket is gone"
        print(f"{rounds} rounds, {answers} answers")
    finally:
        if process.poll() is None:
            process.kill()
        shutil.rmtree(tmp)


main()
