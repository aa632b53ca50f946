# SPDX-License-Identifier: BSD-3-Clause
"""Unreliable services: UC and UD, in both directions."""

import roce
from dut import WITH_GRH, WITH_IMM
from roce import (SEND_FIRST, SEND_LAST, SEND_MIDDLE, SEND_ONLY, SEND_ONLY_IMM, UC, UD,
                  WRITE_FIRST, WRITE_LAST, psn_add)
from station import case, check, equal, segments
from cases_responder import receive_ring
from cases_requester import RADDR, RKEY, source, take

GRH_BYTES = 40
QKEY = 0x11111111


# ---- UC ----

@case("IBA 9.8.3", "UC SEND and WRITE, with immediate too: executed, and nothing is answered")
def uc_requests(s):
    c = s.connect("uc")
    region = receive_ring(s, c, 4096)
    target = s.dut.region()
    data = s.bytes(2 * c.mtu + 3)
    c.message("send", data)
    c.message("send", b"imm", imm=7)
    c.message("write", data, va=target.addr, rkey=target.rkey)
    c.message("write", data, va=target.addr + 8192, rkey=target.rkey, imm=8)
    got = c.completions((0, "SUCCESS"), (1, "SUCCESS"), (2, "SUCCESS"), recv=True)
    equal([(w.length, w.imm if w.flags & WITH_IMM else None) for w in got],
          [(len(data), None), (3, 7), (len(data), 8)], "lengths and immediates")
    equal(region.read(0, len(data)), data, "SEND")
    equal(target.read(0, len(data)), data, "WRITE")
    equal(target.read(8192, len(data)), data, "WRITE with immediate")
    c.silent("UC answers nothing")


@case("IBA 9.8.3", "a UC message with a gap is lost as a whole; the next one is received, in the same receive")
def uc_gap(s):
    for lost in range(3):
        c = s.connect("uc")
        region = receive_ring(s, c, 4096)
        data = s.bytes(3 * c.mtu)
        for i, part in enumerate(segments("send", data, c.mtu)):
            if i == lost:
                c.psn = psn_add(c.psn, 1)
            else:
                c.request(**part)
        s.barrier()
        c.no_completion("the message has a gap", recv=True)
        c.message("send", b"whole")
        c.completions((0, "SUCCESS"), recv=True)
        equal(region.read(0, 5), b"whole", "bytes")
        c.alive()
        c.silent("UC answers nothing")


@case("IBA 9.8.3", "UC: a wrong sequence of opcodes, a wrong key and a wrong length lose the message in silence")
def uc_bad_messages(s):
    for bad in ("middle", "key", "length"):
        c = s.connect("uc")
        receive_ring(s, c, 4096)
        target = s.dut.region(4096)
        if bad == "middle":
            c.request(SEND_MIDDLE, s.bytes(c.mtu))
            c.request(SEND_LAST, b"x")
        elif bad == "key":
            c.message("write", b"x" * 8, va=target.addr, rkey=target.rkey ^ 0x01000000)
        else:
            c.request(WRITE_FIRST, s.bytes(c.mtu), reth=(target.addr + 100, target.rkey, 3000))
            c.request(WRITE_LAST, b"x" * 100)
        c.message("send", b"whole")
        c.completions((0, "SUCCESS"), recv=True)
        equal(target.read(0, 8), bytes(8), "memory")
        c.silent("UC answers nothing")


@case("IBA 9.8.3", "UC requests of the device: their opcodes and RETH; they complete without an answer")
def uc_requester(s):
    c = s.connect("uc")
    psn = c.dut_psn
    for kind in ("send", "write"):
        for n in (0, 5, 3 * c.mtu):
            region, data = source(s, n)
            c.post(kind, region, n, id=n)
            for i, part in enumerate(segments(kind, data, c.mtu, RADDR, RKEY)):
                p = c.expect(part["opcode"], psn=psn_add(psn, i))
                equal((p.opcode, p.payload, p.reth), (part["opcode"] | UC, part["payload"],
                                                      part.get("reth")), f"{p}")
            psn = psn_add(psn, i + 1)
            c.completions((n, "SUCCESS"))


# ---- UD ----

def datagram(c, data, qkey=QKEY, source_qpn=0x77, **fields):
    opcode = SEND_ONLY_IMM if "imm" in fields else SEND_ONLY
    c.request(opcode, data, deth=(qkey, source_qpn), **fields)


@case("IBA 9.8.4", "a UD SEND: 40 bytes of GRH area, then the payload; the completion has length, source and immediate")
def ud_receive(s):
    c = s.connect("ud")
    region = receive_ring(s, c, 2048)
    for i, n in enumerate((0, 1, 1000)):
        data = s.bytes(n)
        datagram(c, data, **({"imm": 9} if n == 1 else {}))
        w = c.completions((i, "SUCCESS"), recv=True)[0]
        equal(w.length, n + GRH_BYTES, "byte_len")
        check(w.flags & WITH_GRH, "the completion says that there is no GRH")
        if n == 1:
            equal((w.imm, w.flags & WITH_IMM), (9, WITH_IMM), "immediate")
        equal(region.read(2048 * i + GRH_BYTES, n), data, "payload")
    c.silent("UD answers nothing")


@case("RoCE v2 GRH", "over IPv4 the IP header is in the last 20 bytes of the GRH area, over IPv6 it is all of it")
def ud_grh(s):
    for v6 in (False, True):
        if v6 and not s.dut_ip6:
            continue
        c = s.connect("ud", v6=v6)
        region = receive_ring(s, c, 2048)
        datagram(c, b"hello")
        c.completions((0, "SUCCESS"), recv=True)
        grh = region.read(0, GRH_BYTES)
        ours = roce.ipaddress.ip_address(c.ours).packed
        theirs = roce.ipaddress.ip_address(c.theirs).packed
        if v6:
            equal(grh[8:], ours + theirs, "addresses in the GRH")
        else:
            equal((grh[20] >> 4, grh[32:]), (4, ours + theirs), "IPv4 header in the GRH area")


@case("IBA 9.8.4", "a datagram with another Q_Key, or too long for its receive: the first is dropped, neither is answered")
def ud_qkey(s):
    c = s.connect("ud")
    region = receive_ring(s, c, 2048)
    with s.counted(qkey=1):
        datagram(c, b"wrong", qkey=QKEY ^ 1)
        c.silent("UD answers nothing")
    c.no_completion("the Q_Key is wrong", recv=True)
    datagram(c, b"right")
    c.completions((0, "SUCCESS"), recv=True)
    equal(region.read(GRH_BYTES, 5), b"right", "payload")


@case("IBA 9.8.4", "a datagram without a receive is dropped; the next one is received")
def ud_without_receive(s):
    c = s.connect("ud")
    datagram(c, b"early")
    c.silent("UD answers nothing")
    region = receive_ring(s, c, 2048)
    datagram(c, b"later")
    c.completions((0, "SUCCESS"), recv=True)
    equal(region.read(GRH_BYTES, 5), b"later", "payload")


@case("IBA 9.8.4", "UD packets have PSNs of no meaning: any is received")
def ud_psn(s):
    c = s.connect("ud")
    receive_ring(s, c, 2048)
    for i, psn in enumerate((5, 5, 0xFFFFFF, 0)):
        c.request(SEND_ONLY, b"x", psn=psn, deth=(QKEY, 1))
        c.completions((i, "SUCCESS"), recv=True)


@case("IBA 9.8.4", "opcodes that UD does not have are dropped")
def ud_opcodes(s):
    c = s.connect("ud")
    receive_ring(s, c, 2048)
    for opcode in (SEND_FIRST, WRITE_FIRST):
        c.request(opcode, b"x" * 64, deth=(QKEY, 1), reth=(0, 0, 64))
    c.silent("UD answers nothing")
    c.no_completion("UD has no such opcode", recv=True)
    datagram(c, b"x")
    c.completions((0, "SUCCESS"), recv=True)


@case("IBA 9.8.4", "datagrams of the device: DETH with Q_Key and its own number; they complete without an answer")
def ud_requester(s):
    c = s.connect("ud")
    region, data = source(s, 1000)
    for i, n in enumerate((0, 3, 1000)):
        c.post("send", region, n, id=i, ip=c.ours, gid=s.gid_index(False), dest=c.qpn, qkey=QKEY)
        p = c.expect(SEND_ONLY)
        equal((p.opcode, p.deth, p.payload), (SEND_ONLY | UD, (QKEY, c.dut_qpn), data[:n]), str(p))
        c.completions((i, "SUCCESS"))


@case("IBA 9.8.3", "UC WRITE with immediate of the device, in its last packet")
def uc_immediate(s):
    c = s.connect("uc")
    region, data = source(s, 2 * c.mtu)
    c.post("write_imm", region, len(data), imm=0x01020304)
    take(c, "write", data, c.dut_psn, imm=0x01020304)
    c.completions((0, "SUCCESS"))
