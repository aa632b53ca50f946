# SPDX-License-Identifier: BSD-3-Clause
"""Checks before a packet reaches a queue pair: a bad packet has no effect, and the following good packet
with the same PSN is executed."""

import roce
from roce import RC, UC, WRITE_ONLY, psn_add
from station import case, check, equal


def refused_silently(s, counter=None, region=None, connection=None, **wrong):
    """A WRITE with an error has no effect; the same WRITE without the error is executed."""
    c = connection or s.connect()
    region = region or s.dut.region()
    payload = wrong.pop("payload", b"wrong!!!")
    fields = {"reth": (region.addr, region.rkey, len(payload)), **wrong}
    psn = fields.pop("psn", c.psn)
    with s.counted(**({counter: 1} if counter else {})):
        c.request(fields.pop("opcode", WRITE_ONLY), payload, psn=psn, ackreq=1, ledger=False,
                  **fields)
        c.silent("a packet that is to be dropped")
    equal(region.read(0, 8), bytes(8), "memory")
    c.write(region, b"right!!!")
    c.acked()
    equal(region.read(0, 8), b"right!!!", "memory")


def accepted(s, **fields):
    """A WRITE with an unusual but valid field is executed."""
    c = s.connect()
    region = s.dut.region()
    c.write(region, b"unusual!", **fields)
    c.acked()
    equal(region.read(0, 8), b"unusual!", "memory")


@case("IBA A17", "a wrong ICRC: no effect, counted")
def wrong_icrc(s):
    refused_silently(s, "icrc", icrc_xor=0x00010000)


@case("IBA A17", "the ICRC does not cover what routers change: TTL, type of service, FECN and BECN, UDP checksum")
def variant_fields(s):
    for fields in ({"ttl": 1}, {"tos": 0xB8}, {"fecn": 1}, {"becn": 1}, {"resv6": 0x3F}):
        accepted(s, **fields)


@case("IBA 9.6.1", "another transport version than 0: no effect")
def wrong_tver(s):
    refused_silently(s, "tver", tver=1)
    refused_silently(s, "tver", tver=15)


@case("IBA 9.6.1", "a P_Key of another partition: no effect")
def wrong_pkey(s):
    refused_silently(s, "pkey", pkey=0x8123)


@case("IBA 10.9.3", "a limited member of the partition may talk to a full one")
def limited_pkey(s):
    accepted(s, pkey=0x7FFF)


@case("IBA 9.6.1", "a queue pair that does not exist: no effect")
def wrong_qpn(s):
    c = s.connect()
    refused_silently(s, "qpn", connection=c, qpn=c.dut_qpn ^ 0x800000)


@case("IBA 9.6.1", "an opcode of another transport than the queue pair's: no effect")
def wrong_transport(s):
    refused_silently(s, opcode=WRITE_ONLY | UC)


@case("IBA 9.7.4", "a reserved opcode: nothing is executed; at most it is refused as invalid")
def reserved_opcode(s):
    for opcode in (0x15, 0x1F):
        c = s.connect()
        region = s.dut.region()
        c.request(opcode | RC, b"whatever", psn=c.psn, ledger=False)
        for p in c.drain():
            check(p.operation == roce.ACKNOWLEDGE and p.syndrome == roce.NAK_INVALID,
                  f"{p} came for a reserved opcode")
        equal(region.read(0, 8), bytes(8), "memory")


@case("IBA 9.6.1", "a packet that does not come from the peer's address: no effect")
def wrong_source(s):
    refused_silently(s, "peer", src="10.77.0.77" if s.ip.startswith("10.77") else "10.99.0.77")


@case("IBA 9.6.1", "a packet for another address: no effect")
def wrong_destination(s):
    c = s.connect()
    refused_silently(s, connection=c, dst="10.77.0.99" if s.ip.startswith("10.77") else "10.99.0.99")


@case("IBA 9.6.1", "reserved bits of the BTH are not looked at")
def reserved_bits(s):
    accepted(s, resv7=0x7F)
    accepted(s, resv6=0x15)


@case("IBA 9.6.1", "the migration bit may be set or not")
def migration_bit(s):
    accepted(s, migrated=0)
    accepted(s, migrated=1)


@case("IBA A17", "any UDP source port, and UDP checksum 0")
def source_ports(s):
    for port in (0, 1024, 4791, 0xFFFF):
        accepted(s, sport=port)


@case("IBA 9.7.4", "a packet too short for its headers: no effect")
def truncated(s):
    refused_silently(s, "truncated", payload=b"", cut=4)


@case("IBA 9.7.4", "a pad count larger than what is there: no effect")
def pad_without_payload(s):
    c = s.connect(psn=0x100)
    region = s.dut.region()
    # The pad count without the pad bytes.
    c.request(WRITE_ONLY, b"", psn=c.psn, ledger=False, reth=(region.addr, region.rkey, 0), pad=3,
              cut=3)
    answers = c.drain()
    check(all(p.operation == roce.ACKNOWLEDGE and p.syndrome == roce.NAK_INVALID for p in answers),
          "a pad count without pad bytes was accepted")


@case("IBA 9.7.4", "a queue pair in the error state takes nothing and says nothing")
def error_state(s):
    c = s.connect()
    region = s.dut.region()
    s.dut.ask("modify", qp=c.qp, state="err")
    c.write(region, b"too late")
    c.silent("the queue pair is in the error state")
    equal(region.read(0, 8), bytes(8), "memory")


@case("IBA 9.7.5", "unsolicited responses change nothing")
def unasked_responses(s):
    c = s.connect()
    region = s.dut.region()
    for psn in (c.dut_psn, psn_add(c.dut_psn, 5), psn_add(c.dut_psn, -5)):
        c.ack(psn, 1)
        c.ack(psn, 1, syndrome=roce.NAK_SEQUENCE)
        c.ack(psn, 1, syndrome=roce.NAK_ACCESS)
        c.ack(psn, 1, syndrome=roce.RNR | 1)
        c.read_response(b"x" * 10, psn, 1)
        c.atomic_response(7, psn, 1)
    c.silent("responses without a request")
    c.alive()
    c.write(region, b"alive!!!")
    c.acked()
