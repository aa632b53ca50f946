# SPDX-License-Identifier: BSD-3-Clause
"""The scripted end: connections that a test controls packet by packet, and the packets that it expects.

Nothing is asserted about how soon something comes, only what comes and in which order. That
something does *not* come is shown by a barrier: a request on another connection, sent later, is
answered first.
"""

import collections
import random
import time

import roce
from dut import ALL_ACCESS
from roce import (ACKNOWLEDGE, ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD, NO_CREDITS, RC, READ_FIRST,
                  READ_LAST, READ_MIDDLE, READ_ONLY, READ_REQUEST, SEND_FIRST, SEND_LAST,
                  SEND_LAST_IMM, SEND_LAST_INV, SEND_MIDDLE, SEND_ONLY, SEND_ONLY_IMM,
                  SEND_ONLY_INV, UC, UD, WRITE_FIRST, WRITE_LAST, WRITE_LAST_IMM, WRITE_MIDDLE,
                  WRITE_ONLY, WRITE_ONLY_IMM, Packet, psn_add, psn_diff)

PATIENCE_S = 20
TRANSPORTS = {"rc": RC, "uc": UC, "ud": UD}


class Failure(Exception):
    """The device violates the clause."""


class Unsupported(Exception):
    """The device does not have the feature that the test needs."""


def check(truth, text):
    if not truth:
        raise Failure(text)


def equal(got, wanted, what):
    if got != wanted:
        def show(v):
            return f"{v[:24].hex()}... ({len(v)} bytes)" if isinstance(v, bytes) else repr(v)
        raise Failure(f"{what}: {show(got)}, not {show(wanted)}")


def segments(kind, data, mtu, va=0, rkey=0, imm=None, inv=None):
    """The packets of a SEND ("send") or WRITE ("write"): a dict of fields for each."""
    first, middle, last, last_imm, only, only_imm = (
        (SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM)
        if kind == "send" else
        (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM))
    if imm is not None:
        last, only = last_imm, only_imm
    elif inv is not None:
        last, only = SEND_LAST_INV, SEND_ONLY_INV
    parts = [data[at:at + mtu] for at in range(0, len(data), mtu)] or [b""]
    out = []
    for i, part in enumerate(parts):
        at_end = i == len(parts) - 1
        opcode = (only if at_end else first) if i == 0 else last if at_end else middle
        fields = {"opcode": opcode, "payload": part}
        if kind == "write" and i == 0:
            fields["reth"] = (va, rkey, len(data))
        if at_end and imm is not None:
            fields["imm"] = imm
        if at_end and inv is not None:
            fields["inv"] = inv
        out.append(fields)
    return out


class Connection:
    """A queue pair of the device, and the end that this program plays."""

    def __init__(self, station, kind="rc", mtu=1024, psn=None, dut_psn=None, v6=False, mode=None,
                 access=ALL_ACCESS, **options):
        rng = station.rng
        self.station, self.dut, self.kind, self.mtu = station, station.dut, kind, mtu
        self.ours, self.theirs = station.addresses(v6)
        self.qpn = station.next_qpn()
        # PSN that we send next, and first PSN of the device.
        self.psn = rng.randrange(1 << 20, 1 << 22) if psn is None else psn
        self.dut_psn = rng.randrange(1 << 20, 1 << 22) if dut_psn is None else dut_psn
        self.first_psn = self.psn
        reply = self.dut.ask("qp", type=kind, mode=mode or station.mode, access=access,
                             srq=options.pop("srq", None), qkey=options.pop("qkey", None))
        self.qp, self.dut_qpn = int(reply["qp"]), int(reply["qpn"])
        self.inbox = collections.deque()
        # The ledger of requests: use of each PSN, and messages complete when it is executed.
        self.used, self.complete, self.messages = {}, {}, 0
        self.acked_psn = self.last_nak = None
        station.connections[self.qpn] = self
        self.dut.ask("connect", qp=self.qp, mtu=mtu, dest=self.qpn, ip=self.ours,
                     gid=station.gid_index(v6), rq_psn=self.psn, sq_psn=self.dut_psn, **options)

    # ---- sending ----

    def packet(self, opcode, **fields):
        base = {"opcode": opcode | TRANSPORTS[self.kind], "qpn": self.dut_qpn, "src": self.ours,
                "dst": self.theirs, "src_mac": self.station.mac,
                "dst_mac": self.station.dut_mac, "ident": self.station.next_ident(),
                "sport": 0xC000 | self.qpn & 0x3FFF}
        base.update(fields)
        return Packet(**base)

    def transmit(self, p):
        self.station.transmit(p)
        return p

    def request(self, opcode, payload=b"", psn=None, span=1, ledger=True, **fields):
        """Sends a request packet. Without `psn` it gets the next one, and takes `span` PSNs."""
        here = self.psn if psn is None else psn
        if ledger:
            self._note(opcode, here, span)
        if psn is None:
            self.psn = psn_add(here, span)
        return self.transmit(self.packet(opcode, payload=payload, psn=here, **fields))

    def _note(self, opcode, psn, span):
        if psn in self.used:
            return
        kind = {READ_REQUEST: "READ", COMPARE_SWAP: "atomic", FETCH_ADD: "atomic"}.get(opcode, "data")
        ends = opcode not in (SEND_FIRST, SEND_MIDDLE, WRITE_FIRST, WRITE_MIDDLE)
        self.messages += ends
        for i in range(span):
            self.used[psn_add(psn, i)] = kind
            self.complete[psn_add(psn, i)] = self.messages

    def message(self, kind, data, va=0, rkey=0, imm=None, inv=None, ackreq=1, psn=None, **fields):
        """Sends a complete SEND or WRITE; returns its first PSN. With `psn` it is sent again."""
        first = self.psn if psn is None else psn
        parts = segments(kind, data, self.mtu, va, rkey, imm, inv)
        for i, part in enumerate(parts):
            part.update(fields)
            self.request(psn=None if psn is None else psn_add(psn, i),
                         ackreq=ackreq if i == len(parts) - 1 else 0, **part)
        return first

    def send(self, data, **options):
        return self.message("send", data, **options)

    def write(self, region, data, off=0, **options):
        return self.message("write", data, va=region.addr + off, rkey=region.rkey, **options)

    def read(self, region, length, off=0, psn=None, rkey=None, **options):
        """Sends a READ request; returns its PSN."""
        here = self.psn if psn is None else psn
        span = max(1, -(-length // self.mtu))
        self.request(READ_REQUEST, psn=psn, span=span,
                     reth=(region.addr + off, region.rkey if rkey is None else rkey, length),
                     **options)
        return here

    def atomic(self, region, add=None, compare=None, swap=None, off=0, psn=None, rkey=None,
               **options):
        here = self.psn if psn is None else psn
        rkey = region.rkey if rkey is None else rkey
        if add is not None:
            self.request(FETCH_ADD, psn=psn, atomic=(region.addr + off, rkey, add, 0), **options)
        else:
            self.request(COMPARE_SWAP, psn=psn, atomic=(region.addr + off, rkey, swap, compare),
                         **options)
        return here

    def ack(self, psn, msn, syndrome=NO_CREDITS, **fields):
        """Sends an Acknowledge: ACK, RNR NAK or NAK."""
        self.transmit(self.packet(ACKNOWLEDGE, psn=psn, aeth=(syndrome, msn), **fields))

    def read_response(self, data, psn, msn, first=0, last=None, start=True, end=True):
        """Answers a READ with packets [first, last) of the response, which begins at PSN `psn`.

        `start` and `end`: whether the ends are First and Last of the answer, or Middle."""
        parts = [data[at:at + self.mtu] for at in range(0, len(data), self.mtu)] or [b""]
        for i in range(first, len(parts) if last is None else last):
            is_first, is_last = start and i == 0, end and i == len(parts) - 1
            opcode = READ_ONLY if is_first and is_last else (
                READ_FIRST if is_first else READ_LAST if is_last else READ_MIDDLE)
            fields = {} if opcode == READ_MIDDLE else {"aeth": (NO_CREDITS, msn)}
            self.transmit(self.packet(opcode, psn=psn_add(psn, i), payload=parts[i], **fields))

    def atomic_response(self, original, psn, msn):
        self.transmit(self.packet(ATOMIC_ACK, psn=psn, aeth=(NO_CREDITS, msn), original=original))

    # ---- expecting ----

    def next(self, what):
        """The next packet of any kind. `what` is for the message if there is none."""
        until = time.monotonic() + PATIENCE_S
        while not self.inbox:
            if not self.station.pump(until):
                raise Failure(f"nothing came in {PATIENCE_S} s; expected {what}")
        return self.inbox.popleft()

    def _is_ack(self, p):
        return p.operation == ACKNOWLEDGE and p.syndrome & 0x60 == roce.ACK

    def _is_repeat(self, p):
        """True for a repetition of the last NAK. One test forbids it; the others ignore it."""
        if p.operation != ACKNOWLEDGE or self._is_ack(p):
            return False
        repeated = self.last_nak == (p.syndrome, p.psn) and p.syndrome == roce.NAK_SEQUENCE
        self.last_nak = (p.syndrome, p.psn)
        return repeated

    def check_ack(self, p):
        """Rules for every ACK: its PSN is that of a SEND or WRITE that was sent, and its MSN fits."""
        kind = self.used.get(p.psn)
        check(kind is not None, f"{p}: an ACK for a PSN that was never sent")
        check(kind == "data", f"{p}: an Acknowledge carries the PSN of {kind}")
        check(self.complete[p.psn] <= p.msn <= self.messages,
              f"{p}: MSN is {p.msn}; {self.complete[p.psn]} messages end at or before this PSN, "
              f"{self.messages} were sent")
        if self.acked_psn is not None:
            check(psn_diff(p.psn, self.acked_psn) >= 0, f"{p}: behind an ACK of "
                  f"{self.acked_psn:#08x}")
        self.acked_psn = p.psn

    def expect(self, opcode, psn=None, syndrome=None, fits=None):
        """The next packet except for ACKs of earlier requests. It is checked against the arguments."""
        names = "any of " + ", ".join(roce.NAMES[o] for o in opcode) if isinstance(opcode, tuple) \
            else roce.NAMES[opcode]
        what = names + (f" psn {psn:#08x}" if psn is not None else "") + (
            f" syndrome {syndrome:#04x}" if syndrome is not None else "")
        while True:
            p = self.next(what)
            wanted = p.operation in opcode if isinstance(opcode, tuple) else p.operation == opcode
            if syndrome is not None:
                wanted = wanted and p.syndrome == syndrome
            wanted = wanted and (psn is None or p.psn == psn)
            if not wanted and self._is_ack(p):
                self.check_ack(p)
                continue
            if self._is_repeat(p) and not wanted:
                continue
            check(wanted, f"{p} came; expected {what}")
            check(p.opcode & 0xE0 == TRANSPORTS[self.kind], f"{p} is of another transport")
            return p

    def acked(self, psn=None):
        """ACKs up to the one of `psn`, by default the newest request."""
        psn = psn_add(self.psn, -1) if psn is None else psn
        while True:
            p = self.next(f"an ACK of {psn:#08x}")
            if self._is_repeat(p):
                continue
            check(self._is_ack(p), f"{p} came; expected an ACK of {psn:#08x}")
            self.check_ack(p)
            if p.psn == psn:
                return p

    def refused(self, syndrome, psn):
        """Expects a NAK. Requests that completed before it may have been acknowledged."""
        p = self.expect(ACKNOWLEDGE, psn=psn, syndrome=syndrome)
        check(p.msn <= self.messages, f"{p}: MSN of messages that were never sent")
        return p

    def drain(self):
        """All packets that arrive until a barrier has passed."""
        self.station.barrier()
        out, self.inbox = list(self.inbox), collections.deque()
        return out

    def silent(self, why, acks=False, naks=False):
        """Expects nothing more, except ACKs of requests that were sent, or the last NAK again."""
        for p in self.drain():
            if acks and self._is_ack(p):
                self.check_ack(p)
                continue
            if naks and self._is_repeat(p):
                continue
            raise Failure(f"{p} came; {why}")

    # ---- the device's side ----

    def post_recv(self, region, length, off=0, id=0, **options):
        self.dut.ask("recv", qp=self.qp, mr=region.mr, off=off, len=length, id=id, **options)

    def post(self, op, region, length=0, off=0, id=0, raddr=0x10000, rkey=0x1234, **options):
        self.dut.ask("send", qp=self.qp, op=op, mr=region.mr, off=off, len=length, id=id,
                     raddr=raddr, rkey=rkey, **options)

    def completions(self, *wanted, recv=False):
        """Expects these completions, (id, status) each, in this order. Returns them."""
        got = self.dut.wait(self.qp, len(wanted), recv)
        equal([(c.id, c.status) for c in got], list(wanted),
              "receive completions" if recv else "send completions")
        return got

    def no_completion(self, why, recv=False):
        self.station.barrier()
        got = self.dut.poll(self.qp, recv)
        check(not got, f"{got[0] if got else ''} completed; {why}")

    def in_error(self):
        until = time.monotonic() + PATIENCE_S
        while self.dut.state(self.qp) != "err":
            check(time.monotonic() < until, "the queue pair is not in the error state")
            time.sleep(0.005)

    def alive(self):
        equal(self.dut.state(self.qp), "rts", "state of the queue pair")


class Station:
    def __init__(self, link, dut, ip, dut_ip, mac, dut_mac, mode=None, device="uroce", gids=(0, 1),
                 ip6=None, dut_ip6=None, settle_s=0.0, grain_s=0.0):
        self.link, self.dut, self.mode, self.device = link, dut, mode, device
        self.ip, self.dut_ip, self.ip6, self.dut_ip6 = ip, dut_ip, ip6, dut_ip6
        self.mac, self.dut_mac = (bytes.fromhex(m.replace(":", "")) for m in (mac, dut_mac))
        self.gids, self.settle_s, self.grain_s = gids, settle_s, grain_s
        self._qpn, self._ident = 0x1000, 0
        self.case("")

    def case(self, name):
        """Resets the state. The random choices of a test depend only on its name."""
        self.rng = random.Random(name)
        self.connections, self.trace, self.malformed, self._barrier = {}, [], [], None
        self.started = time.monotonic()

    def addresses(self, v6):
        if v6 and not self.dut_ip6:
            raise Unsupported("the device has no IPv6 address here")
        return (self.ip6, self.dut_ip6) if v6 else (self.ip, self.dut_ip)

    def gid_index(self, v6):
        return self.gids[1 if v6 else 0]

    def next_qpn(self):
        self._qpn += 1
        return self._qpn

    def next_ident(self):
        self._ident = self._ident + 1 & 0xFFFF
        return self._ident

    def connect(self, kind="rc", **options):
        return Connection(self, kind, **options)

    def bytes(self, n):
        return self.rng.randbytes(n)

    def note(self, text):
        self.trace.append(f"{(time.monotonic() - self.started) * 1000:9.3f} ms  {text}")

    def transmit(self, p):
        self.note(f"--> {p}")
        self.link.send(p.build())

    def pump(self, until):
        """Receives one frame; False if none arrived in time."""
        got = self.link.receive(until)
        if got is None:
            return False
        try:
            p = roce.parse(got[1])
            if p is not None and p.qpn in self.connections:
                roce.check_sent(p)
        except roce.Malformed as e:
            self.note(f"<-- {e}")
            self.malformed.append(str(e))
            return True
        if p is None:
            return True
        p.when = got[0]
        if p.qpn in self.connections:
            c = self.connections[p.qpn]
            if c is not self._barrier:
                self.note(f"<-- {p}")
            if (p.src, p.dst) != (c.theirs, c.ours):
                self.malformed.append(f"{p} from {p.src} to {p.dst}")
            c.inbox.append(p)
        return True

    def barrier(self):
        """Returns when the device has processed everything sent before."""
        if self._barrier is None:
            self._barrier = Connection(self)
        c = self._barrier
        for _ in range(2):
            c.request(WRITE_ONLY, reth=(0, 0, 0), ackreq=1)
            c.acked()
        if self.settle_s:
            until = time.monotonic() + self.settle_s
            while self.pump(until):
                pass

    def counted(self, **wanted):
        return Counted(self, wanted)


class Counted:
    """with station.counted(name=n): the device's counter must grow by n meanwhile. Counters that the device
    does not have are ignored."""

    # rxe's names of the same things
    RXE = {"duplicate_request": "duplicate_request", "out_of_sequence": "out_of_seq_request",
           "packet_seq_err": "rcvd_seq_err", "rnr_nak_sent": "send_rnr_err",
           "rnr_nak_retry_err": "rcvd_rnr_err", "retry_exceeded_err": "retry_exceeded_err",
           "rnr_retry_exceeded_err": "retry_rnr_exceeded_err"}

    def __init__(self, station, wanted):
        self.station = station
        self.wanted = wanted

    def _now(self):
        got = self.station.dut.counters()
        if self.station.device == "rxe":
            return {ours: got[theirs] for ours, theirs in self.RXE.items() if theirs in got}
        return got

    def __enter__(self):
        self.before = self._now()

    def __exit__(self, kind, value, trace):
        if kind is not None:
            return
        self.station.barrier()
        after = self._now()
        for name, n in self.wanted.items():
            if name not in after:
                check(self.station.device != "uroce", f"there is no counter {name}")
                continue
            equal(after[name] - self.before[name], n, f"counter {name}")


# ---- the list of tests ----

Case = collections.namedtuple("Case", "name clause sentence run")
CASES = []


def case(clause, sentence):
    """Decorator for a test, a function of the station. `clause` is the source of the requirement."""
    def add(fn):
        CASES.append(Case(fn.__name__, clause, sentence, fn))
        return fn
    return add
