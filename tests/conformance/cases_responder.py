# SPDX-License-Identifier: BSD-3-Clause
"""The device as responder: execution and acknowledgement of requests."""

import struct

from roce import (ATOMIC_ACK, NAK_SEQUENCE, NO_CREDITS, READ_FIRST, READ_LAST, READ_MIDDLE,
                  READ_ONLY, SEND_ONLY, CREDITS, psn_add)
from dut import ALL_ACCESS, REMOTE_INVALIDATE, WITH_IMM, WITH_INV
from station import Unsupported, case, check, equal

GUARD = b"\xee" * 64


def receive_ring(s, c, size, count=4, **options):
    """A region with `count` receives of `size` bytes, posted with ids from 0."""
    region = s.dut.region(size * count + 64)
    region.write(b"\xee" * region.size)
    for i in range(count):
        c.post_recv(region, size, off=i * size, id=i, **options)
    return region


@case("C9-060", "two SENDs of three packets: the receives complete in order, each is acknowledged "
      "with its MSN")
def send_of_three_packets(s):
    c = s.connect()
    region = receive_ring(s, c, 4096)
    data = [s.bytes(3 * c.mtu), s.bytes(3 * c.mtu)]
    for i, d in enumerate(data):
        c.send(d)
        equal(c.acked().msn, i + 1, "MSN")
    got = c.completions((0, "SUCCESS"), (1, "SUCCESS"), recv=True)
    equal([w.length for w in got], [3 * c.mtu] * 2, "lengths")
    for i, d in enumerate(data):
        equal(region.read(i * 4096, len(d)), d, f"bytes of message {i}")
        equal(region.read(i * 4096 + len(d), 64), GUARD, "bytes behind it")


@case("IBA 9.7.4", "SENDs of 0 to 5 bytes, of a PMTU and one more: every pad count, no byte more "
      "than was sent")
def send_sizes(s):
    c = s.connect()
    region = receive_ring(s, c, 2048, 8)
    sizes = [0, 1, 2, 3, 4, 5, c.mtu, c.mtu + 1]
    for i, n in enumerate(sizes):
        data = s.bytes(n)
        c.send(data)
        c.acked()
        got = c.completions((i, "SUCCESS"), recv=True)
        equal(got[0].length, n, "length")
        equal(region.read(i * 2048, n + 4), data + GUARD[:4], f"a SEND of {n} bytes")


@case("IBA 9.7.4", "SEND with immediate: the completion has the immediate, in one packet and at the "
      "end of three")
def send_immediate(s):
    c = s.connect()
    receive_ring(s, c, 4096)
    for i, n in enumerate((10, 3 * c.mtu)):
        c.send(s.bytes(n), imm=0xABCD0000 + i)
        c.acked()
        w = c.completions((i, "SUCCESS"), recv=True)[0]
        equal((w.imm, w.flags & WITH_IMM, w.length), (0xABCD0000 + i, WITH_IMM, n), "immediate")


@case("IBA 9.4.1", "SEND with invalidate: the key is invalid afterwards, and the completion names it")
def send_invalidate(s):
    if s.device == "rxe":
        raise Unsupported("a region registered by a user cannot be invalidated there")
    c = s.connect()
    receive_ring(s, c, 4096)
    victim = s.dut.region(access=ALL_ACCESS | REMOTE_INVALIDATE)
    c.write(victim, b"before")
    c.acked()
    c.send(b"hello", inv=victim.rkey)
    c.acked()
    w = c.completions((0, "SUCCESS"), recv=True)[0]
    # The completion's immediate and invalidated key are one field; the immediate is in network order.
    key = struct.unpack("<I", struct.pack(">I", w.imm))[0]
    equal((w.flags & WITH_INV, key), (WITH_INV, victim.rkey), "flags, invalidated key")
    c.write(victim, b"after.", ackreq=1)
    c.refused(0x62, c.psn - 1)
    equal(victim.read(0, 6), b"before", "memory behind an invalidated key")


@case("C9-060", "WRITEs of every shape: the bytes and no other, no receive taken, MSN counts messages")
def write_sizes(s):
    c = s.connect()
    region = s.dut.region()
    for i, n in enumerate((0, 1, 2, 3, c.mtu, c.mtu + 1, 3 * c.mtu, 7 * c.mtu - 1)):
        region.write(b"\xee" * (n + 128))
        data = s.bytes(n)
        c.write(region, data, off=64)
        equal(c.acked().msn, i + 1, "MSN")
        equal(region.read(0, n + 128), GUARD + data + GUARD, f"a WRITE of {n} bytes")
    c.no_completion("a WRITE takes no receive", recv=True)


@case("IBA 9.7.4", "WRITE with immediate takes a receive, whose completion has length and immediate")
def write_immediate(s):
    c = s.connect()
    receive_ring(s, c, 16)
    region = s.dut.region()
    for i, n in enumerate((0, 100, 2 * c.mtu + 3)):
        data = s.bytes(n)
        c.write(region, data, imm=0x1000 + i)
        c.acked()
        w = c.completions((i, "SUCCESS"), recv=True)[0]
        equal((w.imm, w.flags & WITH_IMM, w.length), (0x1000 + i, WITH_IMM, n), "completion")
        equal(region.read(0, n), data, "bytes")


def take_read(c, psn, length):
    """Checks the responses to a READ; returns the bytes and the MSNs."""
    count = max(1, -(-length // c.mtu))
    data, msns = b"", []
    for i in range(count):
        opcode = READ_ONLY if count == 1 else (
            READ_FIRST if i == 0 else READ_LAST if i == count - 1 else READ_MIDDLE)
        p = c.expect(opcode, psn=psn_add(psn, i))
        size = c.mtu if i < count - 1 else length - i * c.mtu
        equal(len(p.payload), size, f"payload of response {i}")
        data += p.payload
        if opcode != READ_MIDDLE:
            check(p.syndrome & 0x60 == 0, f"{p}: syndrome of a READ response")
            msns.append(p.msn)
    return data, msns


@case("C9-148", "READs of every shape: First, Middle, Last and Only where they belong, full but for the "
      "last, PSNs of the request; MSN counts the READ")
def read_sizes(s):
    c = s.connect()
    region = s.dut.region()
    data = s.bytes(region.size)
    region.write(data)
    for i, n in enumerate((0, 1, 3, c.mtu, c.mtu + 1, 2 * c.mtu, 5 * c.mtu + 2)):
        psn = c.read(region, n, off=7)
        got, msns = take_read(c, psn, n)
        equal(got, data[7:7 + n], f"a READ of {n} bytes")
        equal(set(msns), {i + 1}, "MSNs")


@case("IBA 9.4.5", "FETCH_ADD and COMPARE_SWAP: the value found comes back, the new one is stored, "
      "carry and mismatch included")
def atomics(s):
    c = s.connect()
    region = s.dut.region()

    def value():
        return struct.unpack("=Q", region.read(8, 8))[0]

    region.write(struct.pack("=Q", 1000), 8)
    steps = (({"add": 7}, 1000, 1007), ({"add": (1 << 64) - 8}, 1007, 999),
             ({"compare": 5, "swap": 55}, 999, 999),
             ({"compare": 999, "swap": 0x123456789ABCDEF0}, 999, 0x123456789ABCDEF0))
    for i, (what, found, left) in enumerate(steps):
        psn = c.atomic(region, off=8, **what)
        p = c.expect(ATOMIC_ACK, psn=psn)
        equal((p.original, p.msn), (found, i + 1), "value found, MSN")
        equal(value(), left, "value left")
    equal(region.read(0, 8) + region.read(16, 8), bytes(16), "bytes beside it")


@case("C9-027", "READs, then a SEND, a WRITE and an atomic in one burst: the answers leave in the order "
      "of the requests")
def answers_in_order(s):
    c = s.connect(dest_rd=4)
    receive_ring(s, c, 4096)
    region = s.dut.region()
    data = s.bytes(8192)
    region.write(data, 8192)
    reads = [c.read(region, 3 * c.mtu, off=8192), c.read(region, 2 * c.mtu, off=8192)]
    c.send(b"x" * 10)
    sent = psn_add(c.psn, -1)
    add = c.atomic(region, add=1, off=16)
    c.write(region, b"y" * 10)
    for psn, n in zip(reads, (3, 2)):
        equal(take_read(c, psn, n * c.mtu)[0], data[:n * c.mtu], "READ")
    p = c.next("the ACK of the SEND, or the answer of the atomic that implies it")
    if c._is_ack(p):
        c.check_ack(p)
        equal(p.psn, sent, "PSN of the ACK")
        p = c.next("the answer of the atomic")
    equal((p.operation, p.psn), (ATOMIC_ACK, add), "answer of the atomic")
    c.acked()


@case("roce: ACK of a READ", "a WRITE and a READ in one burst: whatever leaves, no Acknowledge carries "
      "the PSN of the READ")
def no_ack_of_a_read(s):
    c = s.connect(dest_rd=4)
    region = s.dut.region()
    region.write(s.bytes(1000), 4096)
    for _ in range(20):
        c.write(region, b"x" * 100)
        psn = c.read(region, 100, off=4096)
        take_read(c, psn, 100)
        c.write(region, b"x" * 100)
        psn = c.atomic(region, add=1, off=8)
        c.expect(ATOMIC_ACK, psn=psn)
    c.write(region, b"end")
    c.acked()


@case("roce: ACK of a READ", "a WRITE that is repeated behind an executed READ is acknowledged with a PSN "
      "of a SEND or WRITE")
def no_ack_of_a_read_for_a_duplicate(s):
    c = s.connect(dest_rd=4)
    region = s.dut.region()
    first = c.write(region, b"x" * 100)
    c.acked()
    take_read(c, c.read(region, 100), 100)
    c.write(region, b"x" * 100, psn=first)
    c.silent("a repeated WRITE behind a READ", acks=True)
    c.write(region, b"end")
    c.acked()


@case("C9-105", "a repeated SEND is acknowledged again and not executed again")
def duplicate_send(s):
    c = s.connect()
    region = receive_ring(s, c, 4096)
    data = s.bytes(2 * c.mtu)
    psn = c.send(data)
    c.acked()
    c.completions((0, "SUCCESS"), recv=True)
    with s.counted(duplicate_request=2):
        region.write(GUARD)
        c.send(data, psn=psn)
        equal(c.acked().msn, 1, "MSN")
    equal(region.read(0, 64), GUARD, "memory of the receive")
    c.no_completion("the SEND was repeated", recv=True)
    c.send(b"next")
    c.acked()
    c.completions((1, "SUCCESS"), recv=True)


@case("C9-105", "a repeated WRITE is acknowledged again and does not write again")
def duplicate_write(s):
    c = s.connect()
    region = s.dut.region()
    psn = c.write(region, b"first")
    c.acked()
    c.write(region, b"later")
    c.acked()
    c.write(region, b"first", psn=psn)
    equal(c.acked().msn, 2, "MSN")
    equal(region.read(0, 5), b"later", "memory")


@case("IBA 9.7.5", "a repeated READ is executed again, from memory as it is now; so is a part of it "
      "from any PSN on")
def duplicate_read(s):
    c = s.connect()
    region = s.dut.region()
    data = s.bytes(4 * c.mtu)
    region.write(data)
    psn = c.read(region, 4 * c.mtu)
    equal(take_read(c, psn, 4 * c.mtu)[0], data, "READ")
    data = s.bytes(4 * c.mtu)
    region.write(data)
    c.read(region, 4 * c.mtu, psn=psn)
    equal(take_read(c, psn, 4 * c.mtu)[0], data, "repeated READ")
    c.read(region, 2 * c.mtu, off=2 * c.mtu, psn=psn_add(psn, 2))
    got, _ = take_read(c, psn_add(psn, 2), 2 * c.mtu)
    equal(got, data[2 * c.mtu:], "the second half again")
    c.write(region, b"end")
    equal(c.acked().msn, 2, "MSN")


@case("IBA 9.4.5", "a repeated atomic gets the first answer again and is executed once")
def duplicate_atomic(s):
    c = s.connect()
    region = s.dut.region()
    region.write(struct.pack("=Q", 40))
    first = c.atomic(region, add=1)
    equal(c.expect(ATOMIC_ACK, psn=first).original, 40, "value found")
    second = c.atomic(region, add=1)
    equal(c.expect(ATOMIC_ACK, psn=second).original, 41, "value found")
    for psn, found in ((first, 40), (second, 41), (first, 40)):
        c.atomic(region, add=1, psn=psn)
        equal(c.expect(ATOMIC_ACK, psn=psn).original, found, "value found, again")
    equal(struct.unpack("=Q", region.read(0, 8))[0], 42, "value in memory")


def open_gap(c):
    """Leaves a gap of one message with one PSN."""
    missing = c.psn
    c._note(SEND_ONLY, missing, 1)
    c.psn = psn_add(missing, 1)
    return missing


@case("IBA 9.7.4", "a gap is answered by a NAK with the missing PSN; what is sent again from there is "
      "executed once and in order")
def gap(s):
    c = s.connect()
    region = receive_ring(s, c, 256, 8)
    data = [s.bytes(100) for _ in range(6)]
    c.send(data[0])
    c.acked()
    missing = open_gap(c)
    later = [c.send(d) for d in data[2:]]
    c.refused(NAK_SEQUENCE, missing)
    c.send(data[1], psn=missing)
    for d, psn in zip(data[2:], later):
        c.send(d, psn=psn)
    equal(c.acked(later[-1]).msn, 6, "MSN")
    c.completions(*[(i, "SUCCESS") for i in range(6)], recv=True)
    for i, d in enumerate(data):
        equal(region.read(i * 256, 100), d, f"message {i}")


@case("IBA 9.7.4", "a gap is reported by one NAK, however many packets come behind it")
def gap_reported_once(s):
    c = s.connect()
    region = s.dut.region()
    missing = open_gap(c)
    for _ in range(20):
        c.write(region, b"behind")
    c.refused(NAK_SEQUENCE, missing)
    for _ in range(20):
        c.write(region, b"behind")
    c.silent("a gap is reported once")


@case("IBA 9.7.4", "after a gap is closed, the next one is reported again")
def gap_after_gap(s):
    c = s.connect()
    region = s.dut.region()
    for i in range(3):
        missing = open_gap(c)
        c.write(region, b"behind")
        c.refused(NAK_SEQUENCE, missing)
        c.write(region, b"before", psn=missing)
        c.write(region, b"behind", psn=psn_add(missing, 1))
        equal(c.acked().msn, 2 * i + 2, "MSN")


@case("IBA 9.7.5", "a NAK of a gap acknowledges all before it: requests that asked for no ACK count in "
      "its MSN")
def gap_acknowledges(s):
    c = s.connect()
    region = s.dut.region()
    for _ in range(3):
        c.write(region, b"quiet", ackreq=0)
    missing = open_gap(c)
    c.write(region, b"behind")
    equal(c.refused(NAK_SEQUENCE, missing).msn, 3, "MSN of the NAK")


@case("IBA 9.7.4", "a READ and an atomic behind a gap are not answered before it is closed")
def gap_before_read(s):
    c = s.connect()
    region = s.dut.region()
    region.write(b"a" * 8)
    missing = open_gap(c)
    read = c.read(region, 8)
    atomic = c.atomic(region, add=1, off=64)
    c.write(region, b"behind", off=128)
    c.refused(NAK_SEQUENCE, missing)
    c.silent("the gap is open", naks=True)
    equal(region.read(64, 8), bytes(8), "the atomic's memory")
    c.write(region, b"b" * 8, psn=missing)
    c.read(region, 8, psn=read)
    c.atomic(region, add=1, off=64, psn=atomic)
    c.write(region, b"behind", off=128, psn=psn_add(atomic, 1))
    equal(take_read(c, read, 8)[0], b"b" * 8, "READ behind the WRITE")
    c.expect(ATOMIC_ACK, psn=atomic)
    c.acked()
    equal(struct.unpack("=Q", region.read(64, 8))[0], 1, "the atomic ran once")


@case("IBA 9.7.2", "PSNs wrap from 2^24 - 1 to 0, inside a SEND, a WRITE and a READ")
def psn_wrap(s):
    for before in (1, 2):
        c = s.connect(psn=0x1000000 - before)
        region = receive_ring(s, c, 4096)
        data = s.bytes(4 * c.mtu)
        c.send(data)
        c.acked()
        equal(region.read(0, len(data)), data, "SEND")
        c = s.connect(psn=0x1000000 - before)
        c.write(region, data)
        c.acked()
        c = s.connect(psn=0x1000000 - before)
        equal(take_read(c, c.read(region, len(data)), len(data))[0], data, "READ")


@case("IBA 9.7.5", "many requests, an ACK asked for at the last: ACKs may coalesce, never go back, and the "
      "last covers all")
def acks_coalesce(s):
    c = s.connect()
    region = s.dut.region()
    for i in range(64):
        c.write(region, bytes([i]) * 64, off=64 * i, ackreq=int(i == 63))
    equal(c.acked().msn, 64, "MSN")
    equal(region.read(0, 4096), b"".join(bytes([i]) * 64 for i in range(64)), "memory")


@case("IBA 9.7.7", "credits in an ACK never promise more receives than are posted, and the limit never "
      "goes back")
def credits(s):
    c = s.connect()
    receive_ring(s, c, 64, 5)
    limit = 0
    for i in range(5):
        c.send(b"x")
        p = c.acked()
        if p.syndrome == NO_CREDITS:
            continue
        promised = CREDITS[p.syndrome & 0x1F]
        check(promised <= 4 - i, f"{p}: {promised} credits, {4 - i} receives are posted")
        check(p.msn + promised >= limit, f"{p}: the limit goes back from {limit}")
        limit = p.msn + promised


@case("IBA 9.7.7", "with a shared receive queue an ACK says that there is no flow control")
def credits_of_srq(s):
    c = s.connect(srq=1)
    receive_ring(s, c, 64, 4)
    c.send(b"x")
    equal(c.acked().syndrome, NO_CREDITS, "syndrome")
    c.completions((0, "SUCCESS"), recv=True)


@case("IBA 9.6.1", "the same over IPv6: SEND, WRITE, READ and an atomic")
def over_ipv6(s):
    c = s.connect(v6=True)
    region = receive_ring(s, c, 4096)
    data = s.bytes(2 * c.mtu + 1)
    c.send(data)
    c.acked()
    equal(region.read(0, len(data)), data, "SEND")
    c.write(region, data, off=4096)
    c.acked()
    equal(take_read(c, c.read(region, len(data), off=4096), len(data))[0], data, "READ")
    c.expect(ATOMIC_ACK, psn=c.atomic(region, add=1))


@case("IBA 9.7.4", "every path MTU: First and Middle are full, READ responses likewise")
def path_mtus(s):
    for mtu in (256, 512, 2048, 4096):
        c = s.connect(mtu=mtu)
        region = s.dut.region()
        data = s.bytes(2 * mtu + 5)
        c.write(region, data)
        c.acked()
        equal(region.read(0, len(data)), data, "WRITE")
        equal(take_read(c, c.read(region, len(data)), len(data))[0], data, "READ")
