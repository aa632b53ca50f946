# SPDX-License-Identifier: BSD-3-Clause
"""Congestion notification: CE marks in the IP header cause CNPs, and CNPs have an effect."""

import statistics
import time

import roce
from roce import CNP, WRITE_ONLY
from station import Unsupported, case, check, equal

ECT0, ECT1, CE = 2, 1, 3
CNP_INTERVAL_S = 50e-6


def notifications(c):
    """The CNPs received so far. ACKs are checked by the ledger."""
    out = []
    for p in c.drain():
        if p.opcode == CNP:
            out.append(p)
        else:
            check(c._is_ack(p), f"{p} came")
            c.check_ack(p)
    return out


def marked(s, c, region, count=1, tos=CE):
    for _ in range(count):
        c.write(region, b"x" * 64, tos=tos)
    got = notifications(c)
    if not got and s.device == "rxe" and tos & 3 == CE:
        raise Unsupported("the device sends no CNPs")
    return got


@case("Annex A17.9", "a packet marked congestion experienced is answered by a CNP: opcode 0x81, BECN, our queue pair, "
      "16 zero bytes, not marked itself")
def cnp_form(s):
    c = s.connect()
    region = s.dut.region()
    with s.counted(np_ecn_marked_roce_packets=1, np_cnp_sent=1):
        got = marked(s, c, region)
    equal(len(got), 1, "CNPs")
    p = got[0]
    equal((p.becn, p.ackreq, p.se, p.payload), (1, 0, 0, bytes(16)), f"fields of {p}")
    check(p.tos & 3 != CE, "the CNP is marked congestion experienced")


@case("Annex A17.9", "packets that are not marked, or only capable of it, draw no CNP")
def no_cnp(s):
    c = s.connect()
    region = s.dut.region()
    for ecn in (0, ECT0, ECT1):
        c.write(region, b"x", tos=ecn)
        c.acked()
    equal(notifications(c), [], "CNPs")


@case("Lumina: CNP generation", "many marked packets of one flow: at most a CNP every 50 us")
def cnp_rate(s):
    c = s.connect()
    region = s.dut.region()
    start = time.monotonic()
    got = marked(s, c, region, 200)
    allowed = 1 + (max(p.when for p in got) - start) / CNP_INTERVAL_S
    check(1 <= len(got) <= allowed, f"{len(got)} CNPs, {allowed:.0f} intervals")


@case("Lumina: CNP generation", "each flow has its own notifications")
def cnp_per_flow(s):
    region = s.dut.region()
    flows = [s.connect() for _ in range(4)]
    for c in flows:
        c.write(region, b"x", tos=CE)
    for c in flows:
        got = marked(s, c, region)
        check(len(got) >= 1, "a flow that was marked got no CNP")


@case("Lumina: CNP reaction", "a CNP is counted, and answered by nothing; traffic goes on")
def cnp_received(s):
    c = s.connect(timeout=0)
    region = s.dut.region()
    before = s.dut.counters()
    c.transmit(c.packet(CNP, becn=1, ackreq=0, psn=0, payload=bytes(16), migrated=0))
    c.silent("a CNP is not answered")
    after = s.dut.counters()
    names = ("rp_cnp_handled", "rp_cnp_ignored")
    if names[0] in after:
        equal(sum(after[n] - before[n] for n in names), 1, "CNPs counted")
    c.alive()
    c.post("write", region, 8)
    c.expect(roce.WRITE_ONLY, psn=c.dut_psn)
    c.ack(c.dut_psn, 1)
    c.completions((0, "SUCCESS"))


SLOWED_PACKETS = 48
CNPS = 40  # before it
# The device heeds so many within that time, or its rate recovers between them.
STEADY_CNPS, STEADY_S = 8, 40 * CNP_INTERVAL_S
STEADY_WRITES, WRITES_MAX = 9, 1000


def time_of_write(c, region, msn, congested):
    """(seconds from the first packet of a long WRITE to the last, whether the device heeded CNPs steadily until
    it began). `congested`: CNPs are sent before and during the WRITE, at most one per interval."""
    first = c.dut_psn
    cnps, heeded, came = [0.0], [], []

    def notify():
        if time.monotonic() - cnps[-1] > CNP_INTERVAL_S:
            c.transmit(c.packet(CNP, becn=1, ackreq=0, psn=0, payload=bytes(16), migrated=0))
            cnps.append(time.monotonic())

    def notify_until_it_comes():
        until = time.monotonic() + 1
        while not c.inbox and time.monotonic() < until:
            notify()
            c.station.pump(cnps[-1] + CNP_INTERVAL_S)

    # The ACK of a request that follows a CNP tells when the device had read both.
    while congested and len(heeded) < CNPS:
        notify()
        c.request(WRITE_ONLY, reth=(0, 0, 0), ackreq=1)
        heeded.append(c.acked().when)
        while c.station.pump(heeded[-1] + CNP_INTERVAL_S):
            pass
    c.post("write", region, SLOWED_PACKETS * c.mtu)
    for i in range(SLOWED_PACKETS):
        opcode = roce.WRITE_FIRST if i == 0 else roce.WRITE_LAST if i == SLOWED_PACKETS - 1 else roce.WRITE_MIDDLE
        if congested:
            notify_until_it_comes()
        came.append(c.expect(opcode, psn=roce.psn_add(first, i)).when)
    steady = congested and came[0] - heeded[-STEADY_CNPS] < STEADY_S
    c.ack(roce.psn_add(first, SLOWED_PACKETS - 1), msn)
    c.completions((0, "SUCCESS"))
    c.dut_psn = roce.psn_add(first, SLOWED_PACKETS)
    return came[-1] - came[0], steady


@case("Lumina: CNP reaction", f"amid CNPs a WRITE of {SLOWED_PACKETS} packets takes four times as long as without: the "
      "median of nine, the quickest of twenty before")
def cnp_slows(s):
    if "rp_cnp_handled" not in s.dut.counters():
        raise Unsupported("the device does not heed CNPs")
    c = s.connect(timeout=0)
    region = s.dut.region()
    quick = min(time_of_write(c, region, msn, False)[0] for msn in range(1, 21))
    slow = []
    for msn in range(21, 21 + WRITES_MAX):
        seconds, steady = time_of_write(c, region, msn, True)
        slow += [seconds] if steady else []
        if len(slow) == STEADY_WRITES:
            break
    check(len(slow) == STEADY_WRITES, f"of {WRITES_MAX} WRITEs {len(slow)} began amid {STEADY_CNPS} CNPs in "
          f"{STEADY_S * 1e3:.0f} ms: this machine is too busy for them")
    slow = statistics.median(slow)
    check(slow >= 4 * quick, f"{slow * 1e6:.0f} us with CNPs, {quick * 1e6:.0f} us without")


@case("Annex A17.9", "a CNP with a wrong ICRC changes nothing")
def cnp_wrong_icrc(s):
    c = s.connect()
    before = s.dut.counters()
    c.transmit(c.packet(CNP, becn=1, payload=bytes(16), icrc_xor=1))
    c.silent("a CNP is not answered")
    after = s.dut.counters()
    if "rp_cnp_handled" not in after:
        raise Unsupported("the device does not count CNPs")
    equal([after[n] - before[n] for n in ("rp_cnp_handled", "rp_cnp_ignored")], [0, 0], "CNPs counted")
