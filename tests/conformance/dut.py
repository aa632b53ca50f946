# SPDX-License-Identifier: BSD-3-Clause
"""The device under test, as the tester sees it: commands to the program dut, one line each way."""

import collections
import json
import socket
import subprocess
import time

PATIENCE_S = 30

# ibv_wc_status
STATUS = ("SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR",
          "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR",
          "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",
          "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR",
          "RESP_TIMEOUT_ERR", "GENERAL_ERR")

# ibv_access_flags
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL_ACCESS = 15
REMOTE_INVALIDATE = 1 << 16  # UROCE_ACCESS_REMOTE_INVALIDATE

WITH_GRH, WITH_IMM, WITH_INV = 1, 2, 8

Completion = collections.namedtuple("Completion", "id status opcode length flags imm")


class Gone(Exception):
    """The program under test has ended."""


class Refused(Exception):
    """A command failed in the program under test."""


class Region:
    def __init__(self, dut, reply, size):
        self.dut, self.size = dut, size
        self.mr, self.addr, self.rkey, self.lkey = (int(reply[k]) for k in
                                                    ("mr", "addr", "rkey", "lkey"))

    def read(self, off=0, length=None):
        length = self.size - off if length is None else length
        reply = self.dut.ask("read", mr=self.mr, off=off, len=length)
        return bytes.fromhex(reply.get("hex", ""))

    def write(self, data, off=0):
        for at in range(0, len(data), 65536):
            self.dut.ask("write", mr=self.mr, off=off + at, hex=data[at:at + 65536].hex())


class Dut:
    def __init__(self, sock, process=None):
        self.sock, self.process = sock, process
        self.sock.settimeout(PATIENCE_S)
        self.lines = sock.makefile("r")
        self.impl = self.ask("hello")["impl"]

    def ask(self, word, **args):
        text = " ".join([word] + [f"{k}={v}" for k, v in args.items() if v is not None])
        try:
            self.sock.sendall(text.encode() + b"\n")
            reply = self.lines.readline()
        except (OSError, ValueError) as e:
            raise Gone(f"no answer to '{text[:80]}': {e}") from None
        if not reply:
            raise Gone(f"it ended at '{text[:80]}'")
        words = reply.split()
        if words[0] != "ok":
            raise Refused(f"{text[:120]}: {reply.strip()}")
        return dict(w.split("=", 1) for w in words[1:])

    def region(self, size=65536, access=ALL_ACCESS, pd=0):
        return Region(self, self.ask("mr", size=size, access=access, pd=pd), size)

    def poll(self, qp, recv=False):
        reply = self.ask("poll", qp=qp, recv=int(recv))
        out = []
        for i in range(len(reply)):
            n = [int(x) for x in reply[f"wc{i}"].split(":")]
            out.append(Completion(n[0], STATUS[n[1]], *n[2:]))
        return out

    def wait(self, qp, count, recv=False):
        """Polls `count` completions; returns fewer if they do not arrive."""
        until = time.monotonic() + PATIENCE_S
        out = self.poll(qp, recv)
        while len(out) < count and time.monotonic() < until:
            time.sleep(0.002)
            out += self.poll(qp, recv)
        return out

    def state(self, qp):
        return self.ask("state", qp=qp)["state"]

    def counters(self):
        """All counters in one dictionary; of equal names the last one counts."""
        flat = {}

        def walk(value):
            for k, v in value.items():
                if isinstance(v, dict):
                    walk(v)
                elif isinstance(v, int):
                    flat[k] = v
        got = json.loads(self.ask("counters")["json"])
        for part in ("drops", "workers") if "workers" in got else got:
            walk(got[part] if isinstance(got[part], dict) else {part: got[part]})
        return flat

    def close(self):
        try:
            self.ask("quit")
        except (Gone, Refused):
            pass
        self.sock.close()
        if self.process:
            try:
                return self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                return -1
        return 0


def spawn(command, frames=None):
    """Starts the program; `frames` is the relay's descriptor."""
    ours, theirs = socket.socketpair()
    command = command + ["--control", str(theirs.fileno())]
    keep = [theirs.fileno()]
    if frames is not None:
        command += ["--frames", str(frames.fileno())]
        keep.append(frames.fileno())
    process = subprocess.Popen(command, pass_fds=keep, stdin=subprocess.DEVNULL)
    theirs.close()
    return Dut(ours, process)


def connect(host, port):
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Dut(socket.create_connection((host, port), timeout=PATIENCE_S))
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
