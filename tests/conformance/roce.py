# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames, written and read field by field.

Nothing here comes from the engine or looks at it: two ends that share code agree on the same
mistake. Sources are the InfiniBand specification's public descendants (opcodes, header layouts) and
the two checksums recorded from hardware of another vendor that selftest.py compares with.
"""

import binascii
import ipaddress
import struct

UDP_PORT = 4791
ETHERTYPE = {4: 0x0800, 6: 0x86DD}

# Transports, bits 7 to 5 of the opcode.
RC, UC, UD = 0x00, 0x20, 0x60
CNP = 0x81

(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM,
 WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM,
 READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY,
 ACKNOWLEDGE, ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD) = range(0x15)
SEND_LAST_INV, SEND_ONLY_INV = 0x16, 0x17

NAMES = {
    SEND_FIRST: "SEND_FIRST", SEND_MIDDLE: "SEND_MIDDLE", SEND_LAST: "SEND_LAST",
    SEND_LAST_IMM: "SEND_LAST_IMM", SEND_ONLY: "SEND_ONLY", SEND_ONLY_IMM: "SEND_ONLY_IMM",
    WRITE_FIRST: "WRITE_FIRST", WRITE_MIDDLE: "WRITE_MIDDLE", WRITE_LAST: "WRITE_LAST",
    WRITE_LAST_IMM: "WRITE_LAST_IMM", WRITE_ONLY: "WRITE_ONLY", WRITE_ONLY_IMM: "WRITE_ONLY_IMM",
    READ_REQUEST: "READ_REQUEST", READ_FIRST: "READ_FIRST", READ_MIDDLE: "READ_MIDDLE",
    READ_LAST: "READ_LAST", READ_ONLY: "READ_ONLY", ACKNOWLEDGE: "ACKNOWLEDGE",
    ATOMIC_ACK: "ATOMIC_ACK", COMPARE_SWAP: "COMPARE_SWAP", FETCH_ADD: "FETCH_ADD",
    SEND_LAST_INV: "SEND_LAST_INV", SEND_ONLY_INV: "SEND_ONLY_INV",
}
TRANSPORT_NAMES = {RC: "", UC: "UC_", UD: "UD_"}
READ_RESPONSES = (READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY)

# Extended headers in their order, by the operation.
_EXTENDED = {
    SEND_LAST_IMM: ("imm",), SEND_ONLY_IMM: ("imm",), WRITE_FIRST: ("reth",),
    WRITE_LAST_IMM: ("imm",), WRITE_ONLY: ("reth",), WRITE_ONLY_IMM: ("reth", "imm"),
    READ_REQUEST: ("reth",), READ_FIRST: ("aeth",), READ_LAST: ("aeth",), READ_ONLY: ("aeth",),
    ACKNOWLEDGE: ("aeth",), ATOMIC_ACK: ("aeth", "original"), COMPARE_SWAP: ("atomic",),
    FETCH_ADD: ("atomic",), SEND_LAST_INV: ("inv",), SEND_ONLY_INV: ("inv",),
}
# Field of Packet -> its struct format; AETH and DETH have 24-bit members and are taken apart below.
_FORMAT = {"reth": "!QII", "atomic": "!QIQQ", "original": "!Q", "imm": "!I", "inv": "!I",
           "aeth": "!I", "deth": "!II"}

# AETH syndromes.
ACK, RNR, NAK = 0x00, 0x20, 0x60
NO_CREDITS = 0x1F
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x60, 0x61, 0x62, 0x63
CREDITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
           2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768)
# Milliseconds of an RNR NAK's timer code.
RNR_MS = (655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56,
          3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76,
          327.68, 491.52)

PSN_MASK = 0xFFFFFF


def psn_add(psn, n):
    return (psn + n) & PSN_MASK


def psn_diff(a, b):
    """a - b as a signed number: the distance by which a is ahead of b."""
    d = (a - b) & PSN_MASK
    return d - 0x1000000 if d & 0x800000 else d


def headers_of(opcode):
    extended = _EXTENDED.get(opcode & 0x1F, ()) if opcode < 0x80 else ()
    return (("deth",) if opcode & 0xE0 == UD else ()) + extended


class Packet:
    """A frame. Fields that are not given have the value of a conforming sender."""

    FIELDS = {
        "opcode": 0, "se": 0, "migrated": 1, "tver": 0, "pkey": 0xFFFF, "fecn": 0, "becn": 0,
        "resv6": 0, "qpn": 0, "ackreq": 0, "resv7": 0, "psn": 0,
        # Extended headers; tuples in the order of their fields.
        "reth": None,      # va, rkey, length
        "atomic": None,    # va, rkey, swap or add, compare
        "aeth": None,      # syndrome, msn
        "original": None, "imm": None, "inv": None,
        "deth": None,      # qkey, source qpn
        "payload": b"", "pad": None,
        "src": None, "dst": None, "src_mac": b"", "dst_mac": b"",
        "tos": 0, "ttl": 64, "ident": 0, "sport": 0xC000, "udp_checksum": 0,
        # Only for tests: bytes cut off before the ICRC, bits flipped in the frame.
        "cut": 0, "icrc_xor": 0,
    }

    def __init__(self, **fields):
        unknown = set(fields) - set(self.FIELDS)
        if unknown:
            raise TypeError(f"no such field: {unknown}")
        self.__dict__.update(self.FIELDS)
        self.__dict__.update(fields)
        self.when = None

    @property
    def operation(self):
        return self.opcode & 0x1F

    @property
    def name(self):
        if self.opcode == CNP:
            return "CNP"
        transport = TRANSPORT_NAMES.get(self.opcode & 0xE0)
        if transport is None or self.operation not in NAMES:
            return f"opcode {self.opcode:#04x}"
        return transport + NAMES[self.operation]

    @property
    def syndrome(self):
        return self.aeth[0] if self.aeth else None

    @property
    def msn(self):
        return self.aeth[1] if self.aeth else None

    def __str__(self):
        text = f"{self.name} psn {self.psn:#08x}"
        if self.ackreq:
            text += " AckReq"
        if self.aeth:
            text += f" syndrome {self.aeth[0]:#04x} msn {self.aeth[1]}"
        if self.reth:
            text += " va {:#x} rkey {:#x} length {}".format(*self.reth)
        if self.atomic:
            text += " va {:#x} rkey {:#x} swap/add {:#x} compare {:#x}".format(*self.atomic)
        for field in ("imm", "inv", "original"):
            if getattr(self, field) is not None:
                text += f" {field} {getattr(self, field):#x}"
        if self.payload:
            text += f" {len(self.payload)} bytes"
        return text

    # ---- building ----

    def _transport_bytes(self):
        pad = -len(self.payload) % 4 if self.pad is None else self.pad
        bth = struct.pack(
            "!BBHII", self.opcode,
            self.se << 7 | self.migrated << 6 | (pad & 3) << 4 | self.tver, self.pkey,
            self.fecn << 31 | self.becn << 30 | self.resv6 << 24 | self.qpn, self.ackreq << 31
            | self.resv7 << 24 | self.psn)
        out = bth
        for field in headers_of(self.opcode):
            value = getattr(self, field)
            if value is None:
                raise ValueError(f"{self.name} needs {field}")
            if field == "aeth":
                value = (value[0] << 24 | value[1] & PSN_MASK,)
            out += struct.pack(_FORMAT[field], *(value if isinstance(value, tuple) else (value,)))
        out += self.payload + bytes(pad)
        return out[:len(out) - self.cut] if self.cut else out

    def build(self):
        transport = self._transport_bytes()
        src, dst = ipaddress.ip_address(self.src), ipaddress.ip_address(self.dst)
        udp = struct.pack("!HHHH", self.sport, UDP_PORT, 8 + len(transport) + 4, self.udp_checksum)
        if src.version == 4:
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, self.tos, 20 + len(udp) + len(transport) + 4,
                             self.ident, 0x4000, self.ttl, 17, 0, src.packed, dst.packed)
            ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        else:
            ip = struct.pack("!IHBB16s16s", 6 << 28 | self.tos << 20,
                             len(udp) + len(transport) + 4, 17, self.ttl, src.packed, dst.packed)
        crc = icrc(ip, udp, transport) ^ self.icrc_xor
        return (self.dst_mac + self.src_mac + struct.pack("!H", ETHERTYPE[src.version]) + ip + udp
                + transport + struct.pack("<I", crc))


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icrc(ip, udp, transport):
    """The invariant CRC, with ones in place of the fields that routers may change."""
    ip, udp, transport = bytearray(ip), bytearray(udp), bytearray(transport)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
    else:
        ip[0] |= 0x0F
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
    udp[6] = udp[7] = 0xFF
    transport[4] = 0xFF
    return binascii.crc32(b"\xff" * 8 + ip + udp + transport)


class Malformed(Exception):
    """A RoCEv2 frame that must not be sent."""


def _parse_ip(frame):
    """(version, IP header, UDP and the rest, tos, ttl, ident, src, dst), or None if it is not UDP."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == ETHERTYPE[4]:
        ip = frame[14:34]
        if ip[9] != 17:
            return None
        if ip[0] != 0x45 or checksum(ip) != 0:
            raise Malformed("IPv4 header with options or a wrong checksum")
        total, ident = struct.unpack_from("!HH", ip, 2)
        rest = frame[34:14 + total]
        return 4, ip, rest, ip[1], ip[8], ident, ip[12:16], ip[16:20]
    if kind == ETHERTYPE[6]:
        ip = frame[14:54]
        if ip[6] != 17:
            return None
        total = struct.unpack_from("!H", ip, 4)[0]
        tos = struct.unpack_from("!I", ip)[0] >> 20 & 0xFF
        return 6, ip, frame[54:54 + total], tos, ip[7], 0, ip[8:24], ip[24:40]
    return None


def parse(frame):
    """Returns a Packet, or None if the frame is not RoCEv2. Raises Malformed for a bad packet."""
    if len(frame) < 42:
        return None
    got = _parse_ip(frame)
    if got is None:
        return None
    version, ip, rest, tos, ttl, ident, src, dst = got
    if len(rest) < 8 or struct.unpack_from("!H", rest, 2)[0] != UDP_PORT:
        return None
    sport, _, length, udp_sum = struct.unpack_from("!HHHH", rest)
    if length != len(rest) or length < 8 + 12 + 4:
        raise Malformed("UDP and IP lengths disagree")
    transport = rest[8:-4]
    if struct.unpack("<I", rest[-4:])[0] != icrc(ip, rest[:8], transport):
        raise Malformed("wrong ICRC")
    opcode, flags, pkey, high, low = struct.unpack_from("!BBHII", transport)
    p = Packet(opcode=opcode, se=flags >> 7, migrated=flags >> 6 & 1, pad=flags >> 4 & 3,
               tver=flags & 15, pkey=pkey, fecn=high >> 31, becn=high >> 30 & 1,
               resv6=high >> 24 & 63, qpn=high & 0xFFFFFF, ackreq=low >> 31, resv7=low >> 24 & 127,
               psn=low & PSN_MASK, tos=tos, ttl=ttl, ident=ident, sport=sport, udp_checksum=udp_sum,
               src=str(ipaddress.ip_address(bytes(src))), dst=str(ipaddress.ip_address(bytes(dst))),
               dst_mac=bytes(frame[:6]), src_mac=bytes(frame[6:12]))
    at = 12
    for field in headers_of(opcode):
        size = struct.calcsize(_FORMAT[field])
        if at + size > len(transport):
            raise Malformed(f"{p.name} without its {field}")
        value = struct.unpack_from(_FORMAT[field], transport, at)
        at += size
        if field == "aeth":
            value = (value[0] >> 24, value[0] & PSN_MASK)
        setattr(p, field, value if len(value) > 1 else value[0])
    if at + p.pad > len(transport):
        raise Malformed(f"{p.name} pads more than it has")
    p.payload = bytes(transport[at:len(transport) - p.pad])
    if any(transport[len(transport) - p.pad:]) and p.pad:
        raise Malformed(f"{p.name} pads with other bytes than zero")
    return p


def check_sent(p):
    """Checks rules for every packet of a conforming sender. Raises Malformed with the violations."""
    wrong = []
    if p.tver:
        wrong.append(f"TVer {p.tver}")
    if p.pkey & 0x7FFF != 0x7FFF:
        wrong.append(f"P_Key {p.pkey:#06x}")
    if p.pad != -len(p.payload) % 4:
        wrong.append(f"pad {p.pad} behind {len(p.payload)} bytes")
    if p.resv6 or p.resv7:
        wrong.append("reserved bits of the BTH are set")
    if p.aeth and (p.aeth[0] & 0x80 or p.aeth[0] & 0x60 == 0x40):
        wrong.append(f"reserved syndrome {p.aeth[0]:#04x}")
    if p.aeth and p.aeth[0] & 0x60 == NAK and p.aeth[0] > NAK_OPERATION:
        wrong.append(f"reserved NAK code {p.aeth[0]:#04x}")
    if wrong:
        raise Malformed(f"{p}: {', '.join(wrong)}")
