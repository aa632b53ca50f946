#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""management.py DEVICE PEER_MAC PCAP [silent]: asks the agent at the other end of a link, with frames made here from the
documented format, and checks the answers. Writes both to PCAP. silent: there must be no answer."""
import socket
import struct
import sys
import time
import zlib

device, peer, pcap_name = sys.argv[1:4]
silent = sys.argv[4:] == ["silent"]
HOP = bytes.fromhex("0180c200000e")
KEY = 0x1122334455667788
DR, LID, PERF, VENDOR = 0x81, 0x01, 0x04, 0x4A
GET, SET = 1, 2

sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
sock.bind((device, 0))
mac = sock.getsockname()[4]
pcap = open(pcap_name, "wb")
pcap.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
tid = 0


def record(frame):
    now = time.time()
    pcap.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)


def eui64(m):
    return bytes([m[0] ^ 2]) + m[1:3] + b"\xff\xfe" + m[3:]


def local(m):
    return bytes.fromhex("fe80000000000000") + eui64(m)


def lid_mac(lid):
    return bytes.fromhex("024c4944") + struct.pack(">H", lid)


def icrc(ip, rest):
    masked = b"\xff" * 8 + bytes([ip[0] | 0xF]) + b"\xff" * 3 + ip[4:7] + b"\xff" + ip[8:]
    udp, bth = rest[:8], rest[8:]
    masked += udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:]
    return struct.pack("<I", zlib.crc32(masked))


def frame(dmac, smac, src, dst, qpn, mad):
    bth = struct.pack(">BBHII", 0x64, 0x40, 0xFFFF, qpn, 0)
    deth = struct.pack(">II", 0x80010000 if qpn else 0, qpn)
    n = 8 + len(bth) + len(deth) + 256 + 4
    ip = struct.pack(">IHBB", 0x6E000000, n, 17, 255) + src + dst
    rest = struct.pack(">HHHH", 0xC000, 4791, n, 0) + bth + deth + mad
    return dmac + smac + b"\x86\xdd" + ip + rest + icrc(ip, rest)


def by_hop(qpn, mad):
    return frame(HOP, mac, local(mac), bytes.fromhex("ff02" + "00" * 13 + "01"), qpn, mad)


def by_lid(slid, dlid, qpn, mad):
    return frame(lid_mac(dlid), lid_mac(slid), local(lid_mac(slid)), local(lid_mac(dlid)), qpn, mad)


def smp(cls, method, attr, mod=0, data=b"", key=0):
    global tid
    tid += 1
    hops = (1, 1) if cls == DR else (0, 0)
    head = struct.pack(">BBBBHBBQHHI", 1, cls, 1, method, 0, *hops, tid, attr, 0, mod)
    body = struct.pack(">QHH28x", key, 0xFFFF, 0xFFFF) + data.ljust(64, b"\0")
    path = b"\0\1" + b"\0" * 62 if cls == DR else b"\0" * 64
    return head + body + path + b"\0" * 64


def gmp(cls, method, attr, body):
    global tid
    tid += 1
    head = struct.pack(">BBBBHHQHHI", 1, cls, 1, method, 0, 0, tid, attr, 0, 0)
    return (head + body).ljust(256, b"\0")


def ask(out, timeout=60.0):
    """The MAD that answers, or None."""
    record(out)
    wanted = out[-4 - 256:-4][8:16]
    end = time.monotonic() + timeout
    sock.send(out)
    while (left := end - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            got = sock.recv(65536)
        except TimeoutError:
            return None
        mad = got[-4 - 256:-4]
        if got[12:14] != b"\x86\xdd" or got[20] != 17 or got[56:58] != struct.pack(">H", 4791) or mad[3] != 0x81:
            continue
        if mad[8:16] != wanted:
            continue
        record(got)
        assert got[21] == 255 and struct.unpack(">I", got[14:18])[0] >> 20 == 0x6E0, "hop limit or traffic class"
        assert got[-4:] == icrc(got[14:54], got[54:-4]), "ICRC"
        assert got[6:12] == (bytes.fromhex(peer.replace(":", "")) if got[:6] == HOP else got[6:12])
        return mad
    return None


def status(mad):
    return struct.unpack(">H", mad[4:6])[0] & 0x7FFF


if silent:
    for _ in range(3):
        assert ask(by_hop(0, smp(DR, GET, 0x11)), 0.5) is None
    sys.exit()

guid = eui64(bytes.fromhex(peer.replace(":", "")))
info = ask(by_hop(0, smp(DR, GET, 0x11)))
assert info and status(info) == 0 and info[66] == 1 and info[67] == 1, "NodeInfo"
assert info[64 + 20:64 + 28] == guid, "port GUID"
assert info[193] == 1 and info[6] == 1, "return path and hop pointer"
print("NodeInfo by directed route: port GUID", guid.hex())

desc = ask(by_hop(0, smp(DR, GET, 0x10)))
assert desc[64:128].rstrip(b"\0") == b"a server", "NodeDescription"
for attr, mod in ((0x14, 0), (0x15, 1), (0x16, 0), (0x17, 0), (0x18, 1 << 16), (0x18, 3 << 16)):
    mad = ask(by_hop(0, smp(DR, GET, attr, mod)))
    assert mad and status(mad) == 0, f"attribute {attr:#x}"
assert status(ask(by_hop(0, smp(DR, GET, 0x12)))) == 0x0C, "an endpoint has no SwitchInfo"

port = ask(by_hop(0, smp(DR, GET, 0x15)))
assert port[64:72] == b"\0" * 8, "the M_Key is shown"
data = bytearray(port[64:128])
data[0:8] = struct.pack(">Q", KEY)
data[16:18] = struct.pack(">H", 9)  # LID
data[18:20] = struct.pack(">H", 3)  # of the subnet manager
data[32] = data[32] & 0xF0  # no change of the state
data[33] = 0
data[34] = 0x40  # M_KeyProtectBits 1
assert ask(by_hop(0, smp(DR, SET, 0x15, 0, bytes(data))), 0.5) is None, "a Set without the key is answered"
assert status(ask(by_hop(0, smp(DR, SET, 0x15, 0, bytes(data), KEY)))) == 0, "Set(PortInfo)"
mad = ask(by_lid(3, 9, 0, smp(LID, GET, 0x11)))
assert mad and mad[64 + 20:64 + 28] == guid, "NodeInfo by LID"
print("PortInfo is set with the key only; LID 9 answers")

counters = ask(by_lid(3, 9, 1, gmp(PERF, GET, 0x12, b"\0" * 40 + b"\0\1")))
assert counters and status(counters) == 0, "PortCounters"
packets = struct.unpack(">I", counters[64 + 36:64 + 40])[0]
assert packets >= 8, f"PortRcvPkts {packets}"
assert status(ask(by_lid(3, 9, 1, gmp(PERF, GET, 0x1D, b"\0" * 40 + b"\0\1")))) == 0, "PortCountersExtended"
print("PerfMgt: PortRcvPkts", packets)


def vendor(method, attr, body, key=0, **more):
    mad = ask(by_hop(1, gmp(VENDOR, method, attr, b"\0" * 13 + bytes.fromhex("027572") + struct.pack(">Q", key) + body)), **more)
    assert mad and mad[37:40] == bytes.fromhex("027572"), f"vendor attribute {attr:#x}"
    return mad


mad = vendor(GET, 0x10, struct.pack(">B3xHHQQ", 2, 0, 2, 0, 0))
assert mad[56:61] == b"uroce" and mad[71] == 1, "registers ID and NODE_TYPE"
write = struct.pack(">B3xHHQQ", 1, 5, 0, 4711, 0)
assert vendor(SET, 0x10, write)[49] == 5, "a register is written without the key"
assert vendor(SET, 0x10, write, KEY)[49] == 0
mad = ask(by_hop(0, smp(DR, GET, 0xFF10, 0, write)))
assert struct.unpack(">Q", mad[72:80])[0] == 4711, "the register by directed route"
mad = vendor(GET, 0x10, struct.pack(">B3xHHQQ", 2, 0x10, 0x11, 0, 0))
load, pool = struct.unpack(">QQ", mad[56:72])
assert load <= 1000 and 0 < pool <= 1000, f"LOAD {load}, MEMPOOL {pool}"
mad = vendor(SET, 0x11, struct.pack(">B3x6H6B", 2, 300, 301, 0, 0, 0, 0, 0xAB, 0xCD, 0, 0, 0, 0), KEY)
assert mad[49] == 0, "E2PROM"
start = time.monotonic()
mad = vendor(GET, 0x11, struct.pack(">B3x6H6B", 6, 300, 301, 302, 1, 2, 3, 0, 0, 0, 0, 0, 0))
assert mad[64:70] == b"\xab\xcd\xff\xff\xff\xff" and time.monotonic() - start >= 0.0009
print("registers and E2PROM are written with the key, and read")
