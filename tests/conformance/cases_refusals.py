# SPDX-License-Identifier: BSD-3-Clause
"""The device as responder: requests that it refuses, and the effect on the connection."""

import roce
from roce import (NAK_ACCESS, NAK_INVALID, NAK_OPERATION, RNR, SEND_FIRST, SEND_LAST, SEND_MIDDLE,
                  SEND_ONLY, WRITE_FIRST, WRITE_LAST, WRITE_MIDDLE, WRITE_ONLY, psn_add)
from dut import LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE
from station import case, check, equal
from cases_responder import receive_ring, take_read


def refusal(s, c, syndrome, psn):
    """There is one NAK; then the queue pair is in error and silent."""
    p = c.refused(syndrome, psn)
    c.in_error()
    c.write(s.dut.region(), b"behind")
    c.silent("the connection is over")
    return p


# ---- opcode sequence ----

def sequence(s, opcodes, at):
    """Sends these packets in order. The one at index `at` must be refused as invalid."""
    c = s.connect()
    receive_ring(s, c, 8192)
    region = s.dut.region()
    first = c.psn
    for opcode in opcodes:
        size = 100 if opcode in (SEND_LAST, WRITE_LAST, SEND_ONLY, WRITE_ONLY) else c.mtu
        fields = {"reth": (region.addr, region.rkey, 3 * c.mtu)} if opcode == WRITE_FIRST else {}
        if opcode == WRITE_ONLY:
            fields = {"reth": (region.addr, region.rkey, size)}
        c.request(opcode, s.bytes(size), **fields)
    refusal(s, c, NAK_INVALID, psn_add(first, at))


@case("IBA 9.7.4", "Middle or Last without a First is an invalid request; the connection ends")
def without_first(s):
    for opcode in (SEND_MIDDLE, SEND_LAST, WRITE_MIDDLE, WRITE_LAST):
        sequence(s, [opcode], 0)


@case("IBA 9.7.4", "First or Only inside a message is an invalid request")
def first_twice(s):
    for opcode in (SEND_FIRST, SEND_ONLY, WRITE_FIRST, WRITE_ONLY):
        sequence(s, [SEND_FIRST, opcode], 1)
        sequence(s, [WRITE_FIRST, WRITE_MIDDLE, opcode], 2)


@case("IBA 9.7.4", "a message that begins as a SEND and goes on as a WRITE is an invalid request")
def mixed_kinds(s):
    sequence(s, [SEND_FIRST, WRITE_MIDDLE], 1)
    sequence(s, [SEND_FIRST, SEND_MIDDLE, WRITE_LAST], 2)
    sequence(s, [WRITE_FIRST, SEND_LAST], 1)


# ---- lengths ----

@case("IBA 9.7.4", "First and Middle that are not full are invalid requests")
def short_first_and_middle(s):
    for sizes in ((1000,), (1024, 1020), (1028,)):
        c = s.connect()
        receive_ring(s, c, 8192)
        opcodes = [SEND_FIRST, SEND_MIDDLE]
        first = c.psn
        for opcode, size in zip(opcodes, sizes):
            c.request(opcode, s.bytes(size))
        refusal(s, c, NAK_INVALID, psn_add(first, len(sizes) - 1))


@case("IBA 9.7.4", "an empty Last is an invalid request")
def empty_last(s):
    c = s.connect()
    receive_ring(s, c, 8192)
    c.request(SEND_FIRST, s.bytes(c.mtu))
    psn = c.psn
    c.request(SEND_LAST, b"")
    refusal(s, c, NAK_INVALID, psn)


@case("IBA 9.7.4", "Only and Last that are longer than the path MTU are invalid requests")
def only_too_long(s):
    c = s.connect(mtu=256)
    receive_ring(s, c, 8192)
    psn = c.psn
    c.request(SEND_ONLY, s.bytes(260))
    refusal(s, c, NAK_INVALID, psn)
    c = s.connect(mtu=256)
    receive_ring(s, c, 8192)
    c.request(SEND_FIRST, s.bytes(256))
    psn = c.psn
    c.request(SEND_LAST, s.bytes(260))
    refusal(s, c, NAK_INVALID, psn)


@case("IBA 9.7.4", "a WRITE that brings more or less than its RETH says is an invalid request")
def write_length(s):
    for total, sizes in ((100, (104,)), (100, (96,)), (1500, (1024, 500)), (1500, (1024, 400)),
                         (3000, (1024, 400)), (1024, (1024, 4))):
        c = s.connect()
        region = s.dut.region()
        first = c.psn
        opcodes = (WRITE_ONLY,) if len(sizes) == 1 else (WRITE_FIRST, WRITE_LAST)
        for i, (opcode, size) in enumerate(zip(opcodes, sizes)):
            fields = {"reth": (region.addr, region.rkey, total)} if i == 0 else {}
            c.request(opcode, b"x" * size, **fields)
        p = c.next("a NAK of the WRITE")
        equal(p.syndrome, NAK_INVALID, f"syndrome for {sizes} bytes where the RETH says {total}")
        check(p.psn in (first, psn_add(first, len(sizes) - 1)), f"{p}: PSN of the NAK")
        c.in_error()
        equal(region.read(total, 64), bytes(64), "memory behind the range of the RETH")


@case("IBA 9.7.4", "a SEND longer than the receive is an invalid request; the receive completes with a length error")
def send_too_long(s):
    for size, at in ((101, 0), (3000, 2)):
        c = s.connect()
        region = receive_ring(s, c, 100 if at == 0 else 2500, 2)
        first = c.psn
        c.send(s.bytes(size))
        refusal(s, c, NAK_INVALID, psn_add(first, at))
        got = s.dut.wait(c.qp, 2, recv=True)
        equal([(w.id, w.status) for w in got], [(0, "LOC_LEN_ERR"), (1, "WR_FLUSH_ERR")], "receives")
        equal(region.read(region.size - 64, 64), b"\xee" * 64, "memory behind the receives")


# ---- access ----

def bad_access(s, rkey_xor=0, off=0, length=8, access=15, pd=0, syndrome=NAK_ACCESS, qp_access=15,
               kinds=("write", "read", "atomic")):
    for kind in kinds:
        c = s.connect(access=qp_access)
        region = s.dut.region(4096, access=access, pd=pd)
        region.write(b"untouched!" * 10)
        psn, rkey = c.psn, region.rkey ^ rkey_xor
        if kind == "write":
            c.message("write", b"x" * length, va=region.addr + off, rkey=rkey)
        elif kind == "read":
            c.read(region, length, off=off, rkey=rkey)
        else:
            c.atomic(region, add=1, off=off, rkey=rkey)
        refusal(s, c, syndrome, psn)
        equal(region.read(0, 100), b"untouched!" * 10, f"memory after a {kind}")


@case("IBA 9.7.4", "a wrong R_Key: remote access error, for WRITE, READ and atomics; no byte is touched")
def wrong_rkey(s):
    bad_access(s, rkey_xor=0x01000000)
    bad_access(s, rkey_xor=0x00000001)


@case("IBA 9.7.4", "a range that leaves the region by a byte: remote access error")
def out_of_bounds(s):
    bad_access(s, off=4096 - 7, kinds=("write", "read"))
    bad_access(s, off=4096, kinds=("write", "read", "atomic"))
    bad_access(s, off=-1, kinds=("write", "read"))
    bad_access(s, off=-8, kinds=("atomic",))


@case("IBA 9.7.4", "an address at the end of the address space does not wrap into the region")
def address_wraps(s):
    c = s.connect()
    region = s.dut.region(4096)
    psn = c.psn
    c.message("write", b"x" * 64, va=(1 << 64) - 32, rkey=region.rkey)
    refusal(s, c, NAK_ACCESS, psn)


@case("IBA 9.7.4", "a region without the right: remote access error")
def region_without_right(s):
    bad_access(s, access=LOCAL_WRITE | REMOTE_READ, kinds=("write", "atomic"))
    bad_access(s, access=LOCAL_WRITE | REMOTE_WRITE, kinds=("read", "atomic"))


@case("IBA 10.2.3", "a region of another protection domain: remote access error")
def other_domain(s):
    bad_access(s, pd=1)


@case("IBA 9.7.4", "an operation that the queue pair does not permit is an invalid request")
def qp_without_right(s):
    bad_access(s, qp_access=LOCAL_WRITE, syndrome=NAK_INVALID)


@case("IBA 9.7.4", "no byte needs no key: WRITE and READ of length 0 succeed with any key")
def zero_length_needs_no_key(s):
    c = s.connect()
    c.request(WRITE_ONLY, reth=(0x1234, 0xDEADBEEF, 0), ackreq=1)
    c.acked()
    psn = c.psn
    c.request(roce.READ_REQUEST, reth=(0x1234, 0xDEADBEEF, 0))
    equal(c.expect(roce.READ_ONLY, psn=psn).payload, b"", "payload")


@case("IBA 9.4.5", "an atomic whose address is not a multiple of 8 is an invalid request")
def unaligned_atomic(s):
    for off in (1, 4):
        c = s.connect()
        region = s.dut.region()
        psn = c.atomic(region, add=1, off=off)
        refusal(s, c, NAK_INVALID, psn)
        equal(region.read(0, 32), bytes(32), "memory")


@case("IBA 9.7.4", "a WRITE is refused at its first packet; what follows draws no second NAK")
def refused_once(s):
    c = s.connect()
    region = s.dut.region(4096)
    psn = c.message("write", s.bytes(3 * c.mtu), va=region.addr, rkey=region.rkey ^ 0x01000000)
    c.refused(NAK_ACCESS, psn)
    c.silent("a refused message goes on")
    equal(region.read(0, 3 * c.mtu), bytes(3 * c.mtu), "memory")


@case("IBA 9.7.5", "what was complete before a refused request is acknowledged or answered, then the NAK comes")
def nak_after_answers(s):
    c = s.connect()
    region = s.dut.region()
    data = s.bytes(3 * c.mtu)
    region.write(data, 4096)
    c.write(region, b"first", ackreq=0)
    read = c.read(region, len(data), off=4096)
    psn = c.message("write", b"x", va=region.addr, rkey=region.rkey ^ 0x01000000)
    equal(take_read(c, read, len(data))[0], data, "READ before the refused WRITE")
    equal(c.refused(NAK_ACCESS, psn).msn, 2, "MSN of the NAK")


@case("IBA 9.7.5", "a receive with an invalid local key is a remote operational error")
def bad_receive_key(s):
    c = s.connect()
    region = s.dut.region()
    c.post_recv(region, 100, id=7, lkey=region.lkey ^ 0x01000000)
    psn = c.psn
    c.send(b"x" * 10)
    refusal(s, c, NAK_OPERATION, psn)
    got = s.dut.wait(c.qp, 1, recv=True)
    check(got and got[0].id == 7 and got[0].status in ("LOC_PROT_ERR", "LOC_QP_OP_ERR"),
          f"receive completions: {got}")


@case("IBA 9.7.5", "a key that was deregistered is refused, from the next packet on")
def deregistered(s):
    c = s.connect()
    region = s.dut.region()
    c.write(region, b"x" * 10)
    c.acked()
    s.dut.ask("dereg", mr=region.mr)
    psn = c.psn
    c.message("write", b"y" * 10, va=region.addr, rkey=region.rkey)
    refusal(s, c, NAK_ACCESS, psn)


# ---- no receive ----

@case("C9-130", "a SEND without a receive: RNR NAK with the timer of the queue pair; executed when it comes again")
def rnr_of_send(s):
    for code in (12, 20):
        c = s.connect(min_rnr=code)
        with s.counted(rnr_nak_sent=1):
            psn = c.send(b"early")
            p = c.refused(RNR | code, psn)
        equal(p.msn, 0, "MSN of the RNR NAK")
        region = receive_ring(s, c, 64)
        c.send(b"early", psn=psn)
        equal(c.acked().msn, 1, "MSN")
        c.completions((0, "SUCCESS"), recv=True)
        equal(region.read(0, 5), b"early", "bytes")


@case("IBA 9.7.5", "behind an RNR NAK the rest of the message and further requests are dropped in silence")
def silence_after_rnr(s):
    c = s.connect()
    region = s.dut.region()
    psn = c.send(s.bytes(3 * c.mtu))
    c.write(region, b"behind")
    c.refused(RNR | 12, psn)
    c.silent("the peer waits")
    equal(region.read(0, 6), bytes(6), "memory of a WRITE behind the SEND")


@case("C9-130", "a WRITE with immediate without a receive: RNR NAK; repeated, it is executed once")
def rnr_of_write_immediate(s):
    c = s.connect()
    region = s.dut.region()
    data = s.bytes(2 * c.mtu + 10)
    psn = c.write(region, data, imm=5)
    p = c.expect(roce.ACKNOWLEDGE, syndrome=RNR | 12)
    check(p.psn in (psn, psn_add(psn, 2)), f"{p}: PSN of the RNR NAK")
    receive_ring(s, c, 64)
    for i, part in enumerate(_tail(c, region, data, psn, p.psn)):
        c.request(psn=psn_add(p.psn, i), **part)
    c.acked(psn_add(psn, 2))
    c.completions((0, "SUCCESS"), recv=True)
    equal(region.read(0, len(data)), data, "bytes")


def _tail(c, region, data, psn, start):
    """Sends the packets of the WRITE from PSN `start` on, the last one with AckReq."""
    from station import segments
    parts = segments("write", data, c.mtu, region.addr, region.rkey, imm=5)
    parts[-1]["ackreq"] = 1
    return parts[roce.psn_diff(start, psn):]


@case("C9-130", "an RNR NAK acknowledges what was before it")
def rnr_acknowledges(s):
    c = s.connect()
    region = s.dut.region()
    c.write(region, b"one", ackreq=0)
    c.write(region, b"two", ackreq=0)
    psn = c.send(b"early")
    equal(c.refused(RNR | 12, psn).msn, 2, "MSN of the RNR NAK")
