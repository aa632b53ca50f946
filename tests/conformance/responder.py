# SPDX-License-Identifier: BSD-3-Clause
"""A conforming go-back-N responder in the script, with configurable losses.

It stands for any standard device: executes what is expected, drops what is early and reports the
gap once, acknowledges duplicates, answers READs and atomics from a memory of its own.
"""

import time

import station
from roce import (COMPARE_SWAP, FETCH_ADD, NAK_SEQUENCE, NO_CREDITS, READ_REQUEST, SEND_FIRST,
                  SEND_LAST_INV, SEND_MIDDLE, SEND_ONLY_INV, WRITE_FIRST, WRITE_LAST_IMM,
                  WRITE_MIDDLE, WRITE_ONLY, WRITE_ONLY_IMM, psn_add, psn_diff)
from station import check, equal

WRITES = (WRITE_FIRST, WRITE_MIDDLE, WRITE_MIDDLE + 1, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM)


class GoBackN:
    """`lose_requests` and `lose_responses` are sets of ordinals, from 0, of the packets that arrive and of
    those that would be sent. Memory begins at `base`."""

    def __init__(self, c, base=0x10000, size=1 << 20, lose_requests=(), lose_responses=()):
        self.c, self.base, self.memory = c, base, bytearray(size)
        self.lose_requests, self.lose_responses = set(lose_requests), set(lose_responses)
        self.psn, self.msn = c.dut_psn, 0
        self.sends, self.send_bytes = [], b""
        self.write_at = 0
        self.nak_sent = False
        self.atomics = {}
        # Requests received, with the PSNs that they take; number that began at a PSN seen before.
        self.arrived, self.repeated, self.answered = 0, 0, 0
        self.seen = set()
        self.log = []

    def run(self, messages):
        """Runs until this number of messages has been executed and no more of their packets arrive."""
        while self.msn < messages:
            self.take(self.c.next(f"message {self.msn + 1} of {messages}"))

    def take(self, p):
        lost = self.arrived in self.lose_requests
        self.arrived += 1
        self.repeated += p.psn in self.seen
        self.seen.add(p.psn)
        self.log.append(p)
        if lost:
            self.c.station.note("    (lost)")
            return
        ahead = psn_diff(p.psn, self.psn)
        if ahead > 0:
            if not self.nak_sent:
                self.nak_sent = True
                self.answer(lambda: self.c.ack(self.psn, self.msn, syndrome=NAK_SEQUENCE))
        elif ahead < 0:
            self.again(p)
        else:
            self.nak_sent = False
            self.execute(p)

    def answer(self, send):
        lost = self.answered in self.lose_responses
        self.answered += 1
        if lost:
            self.c.station.note("    (a response is lost)")
        else:
            send()

    def again(self, p):
        """A duplicate."""
        if p.operation == READ_REQUEST:
            self.respond(p)
        elif p.operation in (FETCH_ADD, COMPARE_SWAP):
            if p.psn in self.atomics:
                self.answer(lambda: self.c.atomic_response(self.atomics[p.psn], p.psn, self.msn))
        else:
            self.acknowledge()

    def acknowledge(self):
        # The newest PSN of a SEND or WRITE: an Acknowledge never names a READ or an atomic.
        self.answer(lambda: self.c.ack(self.last_data, self.msn, syndrome=NO_CREDITS))

    def execute(self, p):
        op = p.operation
        if op == READ_REQUEST:
            self.psn = psn_add(p.psn, max(1, -(-p.reth[2] // self.c.mtu)))
            self.msn += 1
            self.respond(p)
            return
        self.psn = psn_add(p.psn, 1)
        if op in (FETCH_ADD, COMPARE_SWAP):
            self.msn += 1
            self.atomic(p)
            return
        self.last_data = p.psn
        if op in WRITES:
            self.place(p)
        else:
            self.gather(p)
        if op not in (SEND_FIRST, SEND_MIDDLE, WRITE_FIRST, WRITE_MIDDLE):
            self.msn += 1
        if p.ackreq:
            self.acknowledge()

    def place(self, p):
        if p.reth:
            self.write_at = p.reth[0] - self.base
        self.memory[self.write_at:self.write_at + len(p.payload)] = p.payload
        self.write_at += len(p.payload)

    def gather(self, p):
        check(p.operation <= 5 or p.operation in (SEND_LAST_INV, SEND_ONLY_INV),
              f"{p} is not a request")
        self.send_bytes += p.payload
        if p.operation not in (SEND_FIRST, SEND_MIDDLE):
            self.sends.append(self.send_bytes)
            self.send_bytes = b""

    def respond(self, p):
        va, _, length = p.reth
        at = va - self.base
        data = bytes(self.memory[at:at + length])
        equal(len(data), length, f"range of {p}")
        for i in range(max(1, -(-length // self.c.mtu))):
            self.answer(lambda i=i: self.c.read_response(data, p.psn, self.msn, i, i + 1))

    def atomic(self, p):
        va, _, swap_add, compare = p.atomic
        at = va - self.base
        found = int.from_bytes(self.memory[at:at + 8], "little")
        new = (found + swap_add) % (1 << 64) if p.operation == FETCH_ADD else (
            swap_add if found == compare else found)
        self.memory[at:at + 8] = new.to_bytes(8, "little")
        self.atomics[p.psn] = found
        self.answer(lambda: self.c.atomic_response(found, p.psn, self.msn))

    def finish(self, wanted):
        """Keeps answering until the completions are there; returns them."""
        got, until = [], time.monotonic() + 2 * station.PATIENCE_S
        while len(got) < wanted:
            got += self.c.dut.poll(self.c.qp)
            while self.c.inbox:
                self.take(self.c.inbox.popleft())
            check(time.monotonic() < until, f"{len(got)} of {wanted} completions came: {got}")
            self.c.station.pump(time.monotonic() + 0.002)
        return got
