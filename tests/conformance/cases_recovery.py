# SPDX-License-Identifier: BSD-3-Clause
"""The device as requester: losses, timeouts and receivers that are not ready."""

import struct
import time

import roce
from roce import (NAK_SEQUENCE, READ_REQUEST, RNR, RNR_MS, SEND_ONLY, psn_add, psn_diff)
from station import Failure, Unsupported, case, check, equal
from cases_requester import RADDR, RKEY, source, take, take_read_request
from responder import GoBackN

TICK = 4.096e-6


def timeout_s(code):
    return TICK * (1 << code)


def not_before(s, when, start, seconds, what):
    """The only check of time: a packet must not come too early."""
    took = when - start
    check(took >= seconds - s.grain_s, f"{what} came {took * 1e3:.2f} ms after, not before "
          f"{seconds * 1e3:.2f} ms is allowed")


# ---- sequence NAKs ----

@case("IBA 9.7.5", "after a sequence NAK everything from its PSN on is sent again, in order and as it was")
def goes_back_n(s):
    if s.mode == "reorder":
        raise Unsupported("mode reorder sends the missing packet first")
    c = s.connect(timeout=0)
    region, data = source(s, 6 * c.mtu)
    c.post("write", region, len(data))
    take(c, "write", data, c.dut_psn)
    with s.counted(packet_seq_err=1):
        c.ack(psn_add(c.dut_psn, 2), 0, syndrome=NAK_SEQUENCE)
        for i in range(2, 6):
            p = c.expect(roce.WRITE_LAST if i == 5 else roce.WRITE_MIDDLE, psn=psn_add(c.dut_psn, i))
            equal(p.payload, data[i * c.mtu:(i + 1) * c.mtu], f"payload of {p}")
            # The device may send in portions, each of which ends with AckReq.
            if p.ackreq and i < 5:
                c.ack(p.psn, 0)
        c.silent("it was asked for once")
    c.ack(psn_add(c.dut_psn, 5), 1)
    c.completions((0, "SUCCESS"))


@case("IBA 9.7.5", "a sequence NAK acknowledges what is before its PSN: those work requests complete")
def nak_acknowledges(s):
    c = s.connect(timeout=0)
    region, data = source(s, 100)
    psn = c.dut_psn
    for i in range(4):
        c.post("write", region, 100, id=i)
        psn = take(c, "write", data, psn)
    c.ack(psn_add(c.dut_psn, 2), 2, syndrome=NAK_SEQUENCE)
    c.completions((0, "SUCCESS"), (1, "SUCCESS"))
    c.expect(roce.WRITE_ONLY, psn=psn_add(c.dut_psn, 2))
    c.ack(psn_add(c.dut_psn, 3), 4)
    c.completions((2, "SUCCESS"), (3, "SUCCESS"))


def through_losses(s, requests, lose_requests, lose_responses=(), **options):
    """Work requests to a go-back-N peer with losses. Everything must complete, with the right bytes."""
    c = s.connect(**{"timeout": 17, "retry": 6, **options})
    region = s.dut.region(1 << 18)
    outgoing = s.bytes(1 << 17)
    region.write(outgoing)
    peer = GoBackN(c, RADDR, lose_requests=lose_requests, lose_responses=lose_responses)
    there = s.bytes(1 << 17)
    peer.memory[1 << 18:(1 << 18) + len(there)] = there
    for i, (op, n) in enumerate(requests):
        if op == "read":
            c.post("read", region, n, off=(1 << 17) + i * 8192, id=i,
                   raddr=RADDR + (1 << 18) + i * 8192, rkey=RKEY)
        elif op == "fadd":
            c.post("fadd", region, 8, off=(1 << 17) + i * 8192, id=i,
                   raddr=RADDR + (1 << 19) + 64 * i, rkey=RKEY, compare_add=i + 1)
        else:
            c.post(op, region, n, off=i * 8192, id=i, raddr=RADDR + i * 8192, rkey=RKEY)
    got = peer.finish(len(requests))
    equal([(w.id, w.status) for w in got], [(i, "SUCCESS") for i in range(len(requests))],
          "completions")
    sends = iter(peer.sends)
    for i, (op, n) in enumerate(requests):
        mine = outgoing[i * 8192:i * 8192 + n]
        if op == "send":
            equal(next(sends), mine, f"SEND {i}")
        elif op == "write":
            equal(bytes(peer.memory[i * 8192:i * 8192 + n]), mine, f"WRITE {i}")
        elif op == "read":
            equal(region.read((1 << 17) + i * 8192, n), there[i * 8192:i * 8192 + n], f"READ {i}")
        else:
            equal(region.read((1 << 17) + i * 8192, 8), bytes(8), f"value found by atomic {i}")
            at = (1 << 19) + 64 * i
            equal(bytes(peer.memory[at:at + 8]), struct.pack("<Q", i + 1),
                  f"atomic {i} ran once")
    return peer


@case("IBA 9.7.5", "a SEND of 8 packets, each lost once in its turn: it arrives whole, once")
def each_packet_lost(s):
    for lost in range(8):
        through_losses(s, [("send", 8 * 1024)], {lost})


@case("IBA 9.7.5", "every second packet of a WRITE is lost at first: it arrives whole")
def every_second_packet_lost(s):
    through_losses(s, [("write", 8 * 1024)], {0, 2, 4, 6})


@case("IBA 9.7.5", "the packet that is sent again is lost again")
def retransmission_lost(s):
    through_losses(s, [("write", 8 * 1024)], {3, 8, 9})


@case("IBA 9.7.5", "ACKs are lost: what was executed is not executed again, and completes")
def acks_lost(s):
    peer = through_losses(s, [("send", 100), ("write", 100), ("send", 3000)], (), {0, 1, 2})
    equal(len(peer.sends), 2, "SENDs executed")


@case("IBA 9.7.5", "READ responses are lost, each in its turn: the READ completes with the right bytes")
def each_response_lost(s):
    for lost in range(6):
        through_losses(s, [("read", 6 * 1024)], (), {lost})


@case("IBA 9.7.5", "a READ between WRITEs, any one request or response lost: all complete in order")
def mixed_losses(s):
    requests = [("write", 1024), ("read", 3 * 1024), ("send", 100), ("fadd", 8), ("write", 2048)]
    for lost in range(6):
        through_losses(s, requests, {lost})
    for lost in range(6):
        through_losses(s, requests, (), {lost})


@case("IBA 9.4.5", "the answer of an atomic is lost: it is asked for again and has run once")
def atomic_answer_lost(s):
    through_losses(s, [("fadd", 8), ("fadd", 8)], (), {0})
    through_losses(s, [("fadd", 8), ("fadd", 8)], (), {1, 2})


@case("Lumina: counters", "the counter of retransmitted packets says what the wire shows")
def retransmissions_counted(s):
    c = s.connect(timeout=17, retry=6)
    region, data = source(s, 16 * 1024)
    peer = GoBackN(c, RADDR, lose_requests={3, 9})
    before = s.dut.counters()
    c.post("write", region, len(data))
    peer.finish(1)
    s.barrier()
    while c.inbox:
        peer.take(c.inbox.popleft())
    after = s.dut.counters()
    name = "retransmitted_packets"
    if name not in after:
        raise Unsupported("there is no such counter")
    equal(after[name] - before[name], peer.repeated, "retransmitted packets, seen on the wire")


# ---- timeouts ----

@case("C9-142, C9-143", "nothing is answered: the request is repeated retry_cnt times, never before the timeout, "
      "then it fails and the rest is flushed")
def retry_limit(s):
    code, retries = 16, 2
    for op in ("read", "send"):
        c = s.connect(timeout=code, retry=retries)
        region, _ = source(s, 100)
        with s.counted(local_ack_timeout_err=retries + 1, retry_exceeded_err=1):
            start = time.monotonic()
            c.post(op, region, 100, id=0)
            for i in range(retries + 1):
                p = c.expect(READ_REQUEST if op == "read" else SEND_ONLY, psn=c.dut_psn)
                not_before(s, p.when, start, i * timeout_s(code), f"transmission {i + 1}")
                if i == 0 and op == "read":
                    c.post("write", region, 100, id=1, fence=1)
            flushed = [(1, "WR_FLUSH_ERR")] if op == "read" else []
            c.completions((0, "RETRY_EXC_ERR"), *flushed)
            not_before(s, time.monotonic(), start, (retries + 1) * timeout_s(code), "the error")
            c.in_error()
            c.silent("the connection is over")


@case("C9-142", "with retry_cnt 0 the first timeout ends the connection")
def no_retry(s):
    c = s.connect(timeout=14, retry=0)
    region, data = source(s, 100)
    c.post("send", region, 100)
    c.expect(SEND_ONLY, psn=c.dut_psn)
    c.completions((0, "RETRY_EXC_ERR"))
    c.silent("no retry is allowed")


@case("C9-142", "an acknowledgement refills the retries: more losses than retry_cnt in a row of messages end nothing")
def retries_refilled(s):
    c = s.connect(timeout=18, retry=1)
    region, _ = source(s, 100)
    for i in range(3):
        c.post("send", region, 100, id=i)
        psn = psn_add(c.dut_psn, i)
        c.expect(SEND_ONLY, psn=psn)
        c.expect(SEND_ONLY, psn=psn)
        c.ack(psn, i + 1)
        c.completions((i, "SUCCESS"))
        c.drain()


# ---- receiver not ready ----

@case("C9-130", "after an RNR NAK the request is repeated, not before the NAK's time")
def rnr_wait(s):
    for code in (26, 28, 0):
        c = s.connect(timeout=0, rnr_retry=2)
        region, data = source(s, 100)
        with s.counted(rnr_nak_retry_err=1):
            c.post("send", region, 100)
            take(c, "send", data, c.dut_psn)
            start = time.monotonic()
            c.ack(c.dut_psn, 0, syndrome=RNR | code)
            p = c.expect(SEND_ONLY, psn=c.dut_psn)
            not_before(s, p.when, start, RNR_MS[code] / 1e3, f"the repeat after RNR code {code}")
            c.ack(c.dut_psn, 1)
            c.completions((0, "SUCCESS"))


@case("C9-130", "rnr_retry repeats, then the request fails with that status")
def rnr_limit(s):
    for retries in (0, 1, 3):
        c = s.connect(timeout=0, rnr_retry=retries)
        region, data = source(s, 100)
        with s.counted(rnr_retry_exceeded_err=1):
            c.post("send", region, 100)
            for _ in range(retries + 1):
                take(c, "send", data, c.dut_psn)
                c.ack(c.dut_psn, 0, syndrome=RNR | 1)
            c.completions((0, "RNR_RETRY_EXC_ERR"))
            c.in_error()
            c.silent("the connection is over")


@case("C9-130", "rnr_retry 7 has no end")
def rnr_without_end(s):
    c = s.connect(timeout=0, rnr_retry=7)
    region, data = source(s, 100)
    c.post("send", region, 100)
    for _ in range(20):
        take(c, "send", data, c.dut_psn)
        c.ack(c.dut_psn, 0, syndrome=RNR | 1)
    take(c, "send", data, c.dut_psn)
    c.ack(c.dut_psn, 1)
    c.completions((0, "SUCCESS"))


@case("C9-130", "an RNR NAK completes what is before its PSN, and nothing leaves while the time runs")
def rnr_holds_back(s):
    c = s.connect(timeout=0, rnr_retry=3)
    region, data = source(s, 100)
    c.post("write", region, 100, id=0)
    c.post("send", region, 100, id=1)
    psn = take(c, "write", data, c.dut_psn)
    take(c, "send", data, psn)
    start = time.monotonic()
    c.ack(psn, 1, syndrome=RNR | 28)
    c.completions((0, "SUCCESS"))
    c.post("write", region, 100, id=2)
    p = c.expect(SEND_ONLY, psn=psn)
    not_before(s, p.when, start, RNR_MS[28] / 1e3, "the next packet")
    take(c, "write", data, psn_add(psn, 1))
    c.ack(psn_add(psn, 1), 3)
    c.completions((1, "SUCCESS"), (2, "SUCCESS"))


@case("C9-130", "a sequence NAK right behind an RNR NAK, as Linux sends it, does not shorten the wait")
def rnr_then_sequence_nak(s):
    c = s.connect(timeout=0, rnr_retry=3)
    region, data = source(s, 3 * c.mtu)
    c.post("send", region, len(data))
    take(c, "send", data, c.dut_psn)
    start = time.monotonic()
    c.ack(c.dut_psn, 0, syndrome=RNR | 28)
    c.ack(c.dut_psn, 0, syndrome=NAK_SEQUENCE)
    p = c.next("the repeat")
    equal(p.psn, c.dut_psn, "PSN of the repeat")
    not_before(s, p.when, start, RNR_MS[28] / 1e3, "the repeat")
    peer = GoBackN(c, RADDR)
    peer.take(p)
    equal([w.status for w in peer.finish(1)], ["SUCCESS"], "completion")
    equal(peer.sends, [data], "bytes")


# ---- responses of READs out of order ----

@case("IBA 9.7.5", "a READ response beyond a missing one: the missing one is asked for again, the READ completes "
      "with the right bytes")
def read_gap(s):
    c = s.connect(timeout=19, retry=6)
    region = s.dut.region()
    data = s.bytes(6 * c.mtu)
    c.post("read", region, len(data), rkey=RKEY)
    take_read_request(c, c.dut_psn, len(data))
    c.read_response(data, c.dut_psn, 1, first=0, last=2)
    c.read_response(data, c.dut_psn, 1, first=3)
    p = c.expect(READ_REQUEST)
    ahead = psn_diff(p.psn, c.dut_psn)
    check(0 <= ahead <= 2, f"{p}: asks for what came, or not for what is missing")
    va, rkey, length = p.reth
    equal((va, rkey), (RADDR + ahead * c.mtu, RKEY), "RETH of the repeated READ")
    check(ahead * c.mtu + length >= 3 * c.mtu and length <= len(data) - ahead * c.mtu,
          f"{p}: length of the repeated READ")
    peer = GoBackN(c, RADDR)
    peer.memory[:len(data)] = data
    peer.psn, peer.msn = psn_add(c.dut_psn, 6), 1
    peer.take(p)
    equal([w.status for w in peer.finish(1)], ["SUCCESS"], "completion")
    equal(region.read(0, len(data)), data, "bytes")


@case("IBA 9.7.5", "READ responses in the wrong order are never placed in the wrong place")
def read_responses_reordered(s):
    c = s.connect(timeout=19, retry=6)
    region = s.dut.region()
    data = s.bytes(6 * c.mtu)
    c.post("read", region, len(data), rkey=RKEY)
    take_read_request(c, c.dut_psn, len(data))
    for i in (1, 0, 3, 2, 5, 4):
        c.read_response(data, c.dut_psn, 1, first=i, last=i + 1)
    peer = GoBackN(c, RADDR)
    peer.memory[:len(data)] = data
    peer.psn, peer.msn = psn_add(c.dut_psn, 6), 1
    equal([w.status for w in peer.finish(1)], ["SUCCESS"], "completion")
    equal(region.read(0, len(data)), data, "bytes")
    if c.dut.poll(c.qp):
        raise Failure("the READ completed twice")
