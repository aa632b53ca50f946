# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the distribution over uroce on one side, and the same programs over the Linux kernel's RoCEv2, rdma_rxe, on the other: in
the emulated guest of tests/interop."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

from bed import Bed, Failure, Program

INTEROP = pathlib.Path(__file__).resolve().parents[1] / "interop"
sys.path.insert(0, str(INTEROP))
from guest_command import GuestCommand  # noqa: E402

OURS, THEIRS = "10.77.0.1", "10.77.0.2"
PORT = 7471
BOOT_SECONDS = 1200  # with the image, which is built the first time
COMMAND_SECONDS = 240


class Guest:
    """One for all. UROCE_GUEST, "NAMESPACE CONFIGURATION ADDRESS", is one that runs already; ADDRESS is the kernel's beside uroce's.
    Otherwise it is booted, and uroce shares the kernel's address."""

    def __init__(self):
        self.process = None
        running = os.environ.get("UROCE_GUEST")
        if running:
            self.netns, config, self.kernel = running.split()
            self.endpoint = ["--config", config]
            return
        self.kernel, self.endpoint = OURS, ["--dev", "uroce0"]
        self.process = subprocess.Popen([INTEROP / "run", "--built", os.environ["UROCE_BUILT"], "--kernel", "6.1", "--shared", "--serve"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.netns = line.split()[1]
                return
            said.append(line)
        raise Failure(f"the guest does not boot: {''.join(said)[-2000:]}")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(60)

    def command(self, seconds, command):
        return ["ip", "netns", "exec", self.netns, INTEROP / "guest_command.py", f"{THEIRS}:{PORT}", str(seconds), command]

    def ask(self, command):
        return subprocess.run(self.command(30, command), capture_output=True, text=True, check=False).stdout


class InGuest(Program):
    """What is not at its end would stay in the guest."""

    def __init__(self, guest, command, env):
        self.guest, self.name = guest, command.removeprefix("env ").split()[0]
        super().__init__(guest.command(COMMAND_SECONDS, command), env)

    def end(self):
        if self.process.poll() is None:
            pattern = shlex.quote(rf"^(/bin/bash )?(/[a-z/]*/)?{self.name}")
            self.guest.ask(f"pkill -TERM -f {pattern}; sleep 1; pkill -KILL -f {pattern}")
        super().end()


class Rxe(Bed):
    guest = None
    guests_side = None

    def __enter__(self):
        if not Rxe.guest:
            Rxe.guest = Guest()
        return self

    def into(self, side):
        return ["ip", "netns", "exec", self.guest.netns]

    def endpoint(self, side):
        return self.guest.endpoint

    def start(self, side, command, env=()):
        if side == self.guests_side:
            return InGuest(self.guest, command, dict(os.environ))
        return super().start(side, command, env)

    def listens(self, side, port):
        if side != self.guests_side:
            return super().listens(side, port)
        return re.search(rf":{port:04X} \w+:0000 0A ", self.guest.ask("cat /proc/net/tcp /proc/net/tcp6")) is not None

    def listens_by_cm(self, side, port, program):
        if side != self.guests_side:
            return super().listens_by_cm(side, port, program)
        return re.search(rf"state LISTEN .*src-addr \S+:{port}\b", self.guest.ask("rdma resource show cm_id")) is not None

    def read(self, side, path):
        return self.guest.ask(f"cat {path}") if side == self.guests_side else super().read(side, path)

    def gid(self, side):
        return 1 if side == self.guests_side else 0

    def words(self):
        addresses = [OURS, THEIRS] if self.guests_side == "b" else [THEIRS, OURS]
        return {**super().words(), "address": addresses[0], "own": addresses[1]}


class RxeClient(Rxe):
    """The guest is the client."""
    name = "rxe-client"
    guests_side = "b"

    @property
    def peer(self):
        return self.guest.kernel


class RxeServer(Rxe):
    """The guest is the server."""
    name = "rxe-server"
    guests_side = "a"
    peer = THEIRS


def end_guest():
    if Rxe.guest:
        Rxe.guest.end()
        Rxe.guest = None


BEDS = {bed.name: bed for bed in (RxeClient, RxeServer)}
