# SPDX-License-Identifier: BSD-3-Clause
"""The device as requester: what it sends, and when a work request completes."""

import struct

import roce
from roce import (COMPARE_SWAP, FETCH_ADD, NAK_ACCESS, NAK_INVALID, NAK_OPERATION, NAK_SEQUENCE,
                  READ_MIDDLE, READ_REQUEST, psn_add)
from station import case, check, equal, segments

RADDR, RKEY = 0x10000, 0x1234


def take(c, kind, data, psn, **options):
    """Checks the packets of one message of the device. Returns the PSN after it."""
    if kind == "write":
        options = {"va": RADDR, "rkey": RKEY, **options}
    parts = segments(kind, data, c.mtu, **options)
    for i, part in enumerate(parts):
        p = c.expect(part["opcode"], psn=psn_add(psn, i))
        equal(p.payload, part["payload"], f"payload of {p}")
        for field in ("reth", "imm", "inv"):
            equal(getattr(p, field), part.get(field), f"{field} of {p}")
    return psn_add(psn, len(parts))


def take_read_request(c, psn, length, raddr=RADDR):
    p = c.expect(READ_REQUEST, psn=psn)
    equal(p.reth, (raddr, RKEY, length), "RETH of the READ")
    return p


def source(s, n):
    """Returns (region, its n random bytes)."""
    region = s.dut.region(max(4096, n))
    data = s.bytes(n)
    if n:
        region.write(data)
    return region, data


# ---- completion ----

def two_messages(s, kind):
    c = s.connect(timeout=0)
    region, data = source(s, 3 * c.mtu)
    psn = c.dut_psn
    for i in range(2):
        c.post(kind, region, len(data), id=i)
    for _ in range(2):
        psn = take(c, kind, data, psn)
    c.no_completion("nothing was acknowledged")
    c.ack(psn_add(c.dut_psn, 2), 1)
    c.completions((0, "SUCCESS"))
    c.no_completion("the second message was not acknowledged")
    c.silent("the timeout is infinite")
    c.ack(psn_add(c.dut_psn, 5), 2)
    c.completions((1, "SUCCESS"))


@case("C9-060", "two SENDs of three packets, the first acknowledged: that one completes, the other does not")
def completion_of_sends(s):
    two_messages(s, "send")


@case("C9-060", "the same for WRITEs")
def completion_of_writes(s):
    two_messages(s, "write")


@case("C9-060", "two READs of three packets, the first answered: that one completes with its bytes, the "
      "other does not")
def completion_of_reads(s):
    c = s.connect(timeout=0)
    region, _ = source(s, 0)
    region = s.dut.region()
    n = 3 * c.mtu
    data = [s.bytes(n), s.bytes(n)]
    for i in range(2):
        c.post("read", region, n, off=i * n, id=i)
    for i in range(2):
        take_read_request(c, psn_add(c.dut_psn, 3 * i), n)
    c.read_response(data[0], c.dut_psn, 1)
    c.completions((0, "SUCCESS"))
    equal(region.read(0, 2 * n), data[0] + bytes(n), "bytes of the first")
    c.no_completion("the second READ was not answered")
    c.read_response(data[1], psn_add(c.dut_psn, 3), 2, last=2)
    c.no_completion("the second READ was not answered wholly")
    c.read_response(data[1], psn_add(c.dut_psn, 3), 2, first=2)
    c.completions((1, "SUCCESS"))
    equal(region.read(n, n), data[1], "bytes of the second")


@case("C9-060", "two FETCH_ADDs and two COMPARE_SWAPs: their requests are right, each completes with its "
      "answer, the value in host order")
def completion_of_atomics(s):
    for op, opcode, fields in (("fadd", FETCH_ADD, {"compare_add": 0x0102030405060708}),
                               ("cas", COMPARE_SWAP, {"compare_add": 5, "swap": 6})):
        c = s.connect(timeout=0)
        region = s.dut.region()
        for i in range(2):
            c.post(op, region, 8, off=8 * i, id=i, **fields)
        for i in range(2):
            p = c.expect(opcode, psn=psn_add(c.dut_psn, i))
            wanted = (RADDR, RKEY, 0x0102030405060708, 0) if op == "fadd" else (RADDR, RKEY, 6, 5)
            got = p.atomic[:3] + (0,) if op == "fadd" else p.atomic
            equal(got, wanted, "AtomicETH")
        c.atomic_response(0x1122334455667788, c.dut_psn, 1)
        c.completions((0, "SUCCESS"))
        equal(region.read(0, 16), struct.pack("=QQ", 0x1122334455667788, 0), "value")
        c.no_completion("the second atomic was not answered")
        c.atomic_response(7, psn_add(c.dut_psn, 1), 2)
        c.completions((1, "SUCCESS"))


@case("C9-060", "an ACK completes all messages up to its PSN")
def coalesced_ack(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    psn = c.dut_psn
    for i in range(5):
        c.post("write", region, 100, id=i)
        psn = take(c, "write", data, psn)
    c.ack(psn_add(c.dut_psn, 3), 4)
    c.completions(*[(i, "SUCCESS") for i in range(4)])
    c.no_completion("the fifth was not acknowledged")
    c.ack(psn_add(c.dut_psn, 4), 5)
    c.completions((4, "SUCCESS"))


@case("C9-060", "an ACK of a PSN inside a message completes nothing")
def ack_inside_a_message(s):
    c = s.connect(timeout=0)
    region, data = source(s, 3 * c.mtu)
    c.post("send", region, len(data))
    psn = take(c, "send", data, c.dut_psn)
    for i in range(2):
        c.ack(psn_add(c.dut_psn, i), 0)
        c.no_completion("the last packet was not acknowledged")
    c.silent("the timeout is infinite")
    c.ack(psn_add(psn, -1), 1)
    c.completions((0, "SUCCESS"))


@case("C9-060", "a response to a READ acknowledges the WRITEs before it")
def response_acknowledges(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    c.post("write", region, 100, id=0)
    c.post("write", region, 100, id=1)
    c.post("read", region, 8, off=1000, id=2)
    psn = take(c, "write", data, c.dut_psn)
    psn = take(c, "write", data, psn)
    take_read_request(c, psn, 8)
    c.read_response(b"answered", psn, 3)
    c.completions((0, "SUCCESS"), (1, "SUCCESS"), (2, "SUCCESS"))


# ---- what it sends ----

@case("IBA 9.7.2", "SENDs and WRITEs of every shape: opcodes, PSNs without a hole, full First and Middle, pad, "
      "RETH in the first packet alone")
def request_shapes(s):
    for kind in ("send", "write"):
        c = s.connect()
        psn, msn = c.dut_psn, 0
        for n in (0, 1, 2, 3, 5, c.mtu - 1, c.mtu, c.mtu + 1, 3 * c.mtu):
            region, data = source(s, n)
            c.post(kind, region, n, id=n)
            psn, msn = take(c, kind, data, psn), msn + 1
            c.ack(psn_add(psn, -1), msn)
            c.completions((n, "SUCCESS"))


@case("IBA 9.7.2", "immediate and invalidated key are in the last packet; a solicited event too")
def request_extras(s):
    c = s.connect()
    region, data = source(s, 2 * c.mtu)
    psn = c.dut_psn
    for msn, (op, fields) in enumerate((("send_imm", {"imm": 0x11223344}),
                                        ("write_imm", {"imm": 0x55667788}),
                                        ("send_inv", {"inv": RKEY})), 1):
        c.post(op, region, len(data), id=msn, imm=fields.get("imm", 0), solicited=1)
        kind = op.split("_")[0]
        if kind == "write":
            fields = {**fields, "va": RADDR, "rkey": RKEY}
        for i, part in enumerate(segments(kind, data, c.mtu, **fields)):
            p = c.expect(part["opcode"], psn=psn_add(psn, i))
            equal((p.imm, p.inv), (part.get("imm"), part.get("inv")), f"fields of {p}")
            equal(p.se, int(i == 1), f"solicited event of {p}")
        psn = psn_add(psn, 2)
        c.ack(psn_add(psn, -1), msn)
        c.completions((msn, "SUCCESS"))


@case("IBA 9.7.2", "a READ takes as many PSNs as its answer has packets")
def read_takes_psns(s):
    c = s.connect()
    region = s.dut.region()
    psn, msn = c.dut_psn, 0
    for n in (0, 1, c.mtu, c.mtu + 1, 4 * c.mtu):
        data = s.bytes(n)
        c.post("read", region, n, id=n)
        take_read_request(c, psn, n)
        msn += 1
        c.read_response(data, psn, msn)
        c.completions((n, "SUCCESS"))
        equal(region.read(0, n), data, f"bytes of a READ of {n}")
        psn = psn_add(psn, max(1, -(-n // c.mtu)))


@case("IBA 9.7.2", "requests across the wrap of PSNs: SEND, WRITE and READ")
def request_psn_wrap(s):
    for kind in ("send", "write", "read"):
        c = s.connect(dut_psn=0xFFFFFE)
        region, data = source(s, 4 * c.mtu)
        c.post(kind, region, len(data))
        if kind == "read":
            take_read_request(c, 0xFFFFFE, len(data))
            data = s.bytes(len(data))
            c.read_response(data, 0xFFFFFE, 1)
        else:
            equal(take(c, kind, data, 0xFFFFFE), 2, "PSN behind the message")
            c.ack(1, 1)
        c.completions((0, "SUCCESS"))
        if kind == "read":
            equal(region.read(0, len(data)), data, "bytes")


@case("IBA 9.7.3", "an ACK is asked for, at the latest when nothing follows")
def asks_for_ack(s):
    c = s.connect(timeout=0)
    region, data = source(s, 3 * c.mtu)
    c.post("write", region, len(data))
    got = [c.next("a packet of the WRITE") for _ in range(3)]
    check(got[-1].ackreq, f"{got[-1]}: AckReq is not set and nothing follows")
    c.ack(psn_add(c.dut_psn, 2), 1)
    c.completions((0, "SUCCESS"))


@case("IBA 10.8.3", "a fenced SEND does not leave before the READ in front of it is answered")
def fence(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    c.post("read", region, 8, off=1000, id=0)
    c.post("send", region, 100, id=1, fence=1)
    take_read_request(c, c.dut_psn, 8)
    c.silent("the SEND is fenced")
    c.read_response(b"answered", c.dut_psn, 1)
    psn = take(c, "send", data, psn_add(c.dut_psn, 1))
    c.ack(psn_add(psn, -1), 2)
    c.completions((0, "SUCCESS"), (1, "SUCCESS"))


@case("IBA 9.7.3", "no more READs and atomics are outstanding than the peer was said to remember")
def reads_outstanding(s):
    c = s.connect(timeout=0, rd=2)
    region = s.dut.region()
    for i in range(3):
        c.post("read", region, 8, off=8 * i, id=i)
    c.post("fadd", region, 8, off=64, id=3)
    for i in range(2):
        take_read_request(c, psn_add(c.dut_psn, i), 8)
    c.silent("two READs are unanswered")
    c.read_response(b"answer 0", c.dut_psn, 1)
    take_read_request(c, psn_add(c.dut_psn, 2), 8)
    c.silent("two READs are unanswered")
    c.read_response(b"answer 1", psn_add(c.dut_psn, 1), 2)
    c.expect(FETCH_ADD, psn=psn_add(c.dut_psn, 3))
    c.read_response(b"answer 2", psn_add(c.dut_psn, 2), 3)
    c.atomic_response(1, psn_add(c.dut_psn, 3), 4)
    c.completions(*[(i, "SUCCESS") for i in range(4)])
    equal(region.read(0, 24), b"answer 0answer 1answer 2", "bytes")


@case("IBA 9.7.7", "a SEND without credit: at most one packet leaves; more go when credits come, a WRITE needs none")
def credits_kept(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    c.post("send", region, 100, id=0)
    psn = take(c, "send", data, c.dut_psn)
    c.ack(c.dut_psn, 1, syndrome=0x00)
    c.completions((0, "SUCCESS"))
    c.post("write", region, 100, id=1)
    psn = take(c, "write", data, psn)
    c.ack(psn_add(psn, -1), 2, syndrome=0x00)
    c.completions((1, "SUCCESS"))
    for i in range(4):
        c.post("send", region, 100, id=2 + i)
    early = c.drain()
    check(len(early) <= 1 and all(p.psn == psn and p.ackreq for p in early),
          f"without credit {len(early)} packets left: {[str(p) for p in early]}")
    # Three more messages: the limit is 2 + 3.
    c.ack(psn_add(psn, -1), 2, syndrome=0x03)
    for i in range(len(early), 3):
        take(c, "send", data, psn_add(psn, i))
    psn = psn_add(psn, 3)
    c.silent("the credits are used up")
    c.ack(psn_add(psn, -1), 5)
    psn = take(c, "send", data, psn)
    c.ack(psn_add(psn, -1), 6)
    c.completions(*[(i, "SUCCESS") for i in range(2, 6)])


# ---- answers that are not as they should be ----

@case("IBA 9.7.5", "an ACK of a PSN that was not sent has no effect")
def ghost_ack(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    c.post("send", region, 100)
    take(c, "send", data, c.dut_psn)
    for ahead in (1, 2, 1000, 0x7FFFFF):
        c.ack(psn_add(c.dut_psn, ahead), 1)
    c.no_completion("its PSN was not acknowledged")
    c.alive()
    c.silent("the timeout is infinite")
    c.ack(c.dut_psn, 1)
    c.completions((0, "SUCCESS"))


@case("IBA 9.7.5", "old ACKs and NAKs have no effect")
def old_acks(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    for i in range(2):
        c.post("send", region, 100, id=i)
        take(c, "send", data, psn_add(c.dut_psn, i))
        if i == 0:
            c.ack(c.dut_psn, 1)
            c.completions((0, "SUCCESS"))
    c.ack(c.dut_psn, 1)
    c.ack(psn_add(c.dut_psn, -3), 0)
    for syndrome in (NAK_SEQUENCE, NAK_ACCESS, roce.RNR | 1):
        c.ack(c.dut_psn, 1, syndrome=syndrome)
    c.no_completion("its PSN was not acknowledged")
    c.silent("an old NAK asks for nothing")
    c.alive()
    c.ack(psn_add(c.dut_psn, 1), 2)
    c.completions((1, "SUCCESS"))


@case("IBA 9.7.5", "invalid request, access and operational NAKs: what is before completes, the one fails with that "
      "status, the rest is flushed")
def fatal_naks(s):
    for syndrome, status in ((NAK_INVALID, "REM_INV_REQ_ERR"), (NAK_ACCESS, "REM_ACCESS_ERR"),
                             (NAK_OPERATION, "REM_OP_ERR")):
        c = s.connect(timeout=0)
        region, data = source(s, 100)
        psn = c.dut_psn
        for i in range(4):
            c.post("write", region, 100, id=i)
            psn = take(c, "write", data, psn)
        c.ack(psn_add(c.dut_psn, 2), 2, syndrome=syndrome)
        c.completions((0, "SUCCESS"), (1, "SUCCESS"), (2, status), (3, "WR_FLUSH_ERR"))
        c.in_error()
        c.silent("the connection is over")


@case("IBA 9.7.5", "an access NAK for a READ fails it; its memory is as it was")
def nak_of_a_read(s):
    c = s.connect(timeout=0)
    region = s.dut.region()
    c.post("read", region, 3 * c.mtu)
    take_read_request(c, c.dut_psn, 3 * c.mtu)
    c.ack(c.dut_psn, 0, syndrome=NAK_ACCESS)
    c.completions((0, "REM_ACCESS_ERR"))
    equal(region.read(0, 64), bytes(64), "memory")


@case("IBA 9.7.5", "NAKs with reserved codes and reserved syndromes have no effect")
def reserved_syndromes(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    c.post("send", region, 100)
    take(c, "send", data, c.dut_psn)
    for syndrome in (0x40, 0x5F, 0x65, 0x7F):
        c.ack(c.dut_psn, 1, syndrome=syndrome)
    c.no_completion("its PSN was not acknowledged")
    c.alive()
    c.ack(c.dut_psn, 1)
    c.completions((0, "SUCCESS"))


@case("roce: ACK of a READ", "an ACK with the PSN of a READ does not complete it: the answer is asked for again")
def ack_of_a_read(s):
    c = s.connect(timeout=19, retry=6)
    region = s.dut.region()
    c.post("read", region, 8)
    take_read_request(c, c.dut_psn, 8)
    c.ack(c.dut_psn, 1)
    c.no_completion("the READ was not answered")
    take_read_request(c, c.dut_psn, 8)
    c.read_response(b"answered", c.dut_psn, 1)
    c.completions((0, "SUCCESS"))
    equal(region.read(0, 8), b"answered", "bytes")


@case("IBA 9.7.5", "an ACK beyond an unanswered READ means that the answer was lost: it is asked for again, and nothing "
      "completes before it")
def implied_nak(s):
    c = s.connect(timeout=19, retry=6)
    region, data = source(s, 100)
    c.post("read", region, 8, off=1000, id=0)
    c.post("send", region, 100, id=1)
    take_read_request(c, c.dut_psn, 8)
    psn = take(c, "send", data, psn_add(c.dut_psn, 1))
    c.ack(psn_add(psn, -1), 2)
    c.no_completion("the READ was not answered")
    take_read_request(c, c.dut_psn, 8)
    c.read_response(b"answered", c.dut_psn, 2)
    c.ack(psn_add(psn, -1), 2)
    c.completions((0, "SUCCESS"), (1, "SUCCESS"))
    equal(region.read(1000, 8), b"answered", "bytes")


@case("IBA 9.7.5", "a READ response of the wrong length is never taken for success")
def read_response_length(s):
    for size in (0, 8, 1020, 1028):
        c = s.connect(timeout=0)
        region = s.dut.region()
        c.post("read", region, 1024)
        take_read_request(c, c.dut_psn, 1024)
        c.transmit(c.packet(roce.READ_ONLY, psn=c.dut_psn, aeth=(31, 1), payload=b"x" * size))
        s.barrier()
        got = s.dut.poll(c.qp)
        check(not got or got[0].status != "SUCCESS",
              f"{got} after {size} bytes for a READ of 1024")
        equal(region.read(1024, 64), bytes(64), "memory behind the READ's")


@case("IBA 9.7.5", "a response of another kind than its request asked for is never taken for success")
def response_kind(s):
    for wrong in ("atomic", "middle"):
        c = s.connect(timeout=0)
        region = s.dut.region()
        c.post("read", region, 8)
        take_read_request(c, c.dut_psn, 8)
        if wrong == "atomic":
            c.atomic_response(0x4141414141414141, c.dut_psn, 1)
        else:
            c.transmit(c.packet(READ_MIDDLE, psn=c.dut_psn, payload=b"A" * 8))
        s.barrier()
        got = s.dut.poll(c.qp)
        check(not got or got[0].status != "SUCCESS", f"{got} after a wrong response")
        if not got:
            c.read_response(b"answered", c.dut_psn, 1)
            c.completions((0, "SUCCESS"))
            equal(region.read(0, 8), b"answered", "bytes")


@case("IBA 9.7.5", "responses that come twice are taken once")
def duplicate_responses(s):
    c = s.connect(timeout=0)
    region = s.dut.region()
    c.post("read", region, 2 * c.mtu, id=0)
    c.post("fadd", region, 8, off=8192, id=1)
    take_read_request(c, c.dut_psn, 2 * c.mtu)
    c.expect(FETCH_ADD, psn=psn_add(c.dut_psn, 2))
    data = s.bytes(2 * c.mtu)
    for bytes_now in (data, s.bytes(2 * c.mtu)):
        c.read_response(bytes_now, c.dut_psn, 1)
    for value in (5, 6):
        c.atomic_response(value, psn_add(c.dut_psn, 2), 2)
    c.completions((0, "SUCCESS"), (1, "SUCCESS"))
    s.barrier()
    equal(region.read(0, 2 * c.mtu), data, "bytes of the READ")
    equal(region.read(8192, 8), struct.pack("=Q", 5), "value of the atomic")
    c.silent("the timeout is infinite")
