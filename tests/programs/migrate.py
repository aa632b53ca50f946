#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""migrate.py target|source DIRECTORY ADDRESS:PORT [pin]: one side of a live migration of a virtual machine by QEMU over RDMA.

The source's machine has DIRECTORY/memory in its memory, and counts in another part of it all the time. When the target's runs, that memory is
compared, and it must count on. How long this may take is up to the caller."""
import filecmp
import json
import os
import socket
import subprocess
import sys
import time

AT, SIZE = 16 << 20, 64 << 20  # where the compared memory is, and how much there is of it
COUNTS, COUNTS_SIZE = 0x20000, 0x10000
# cli; mov ax, 0x2000; mov es, ax; xor di, di; again: inc word [es:di]; add di, 2; jmp again
BOOT_SECTOR = bytes.fromhex("fa b80020 8ec0 31ff 26ff05 83c702 ebf8").ljust(510, b"\0") + b"\x55\xaa"


class Machine:
    def __init__(self, name, *more):
        self.name = name
        with open(f"{name}.boot", "wb") as f:
            f.write(BOOT_SECTOR)
        self.process = subprocess.Popen(["qemu-system-x86_64", "-accel", "tcg", "-m", "128", "-nodefaults", "-display", "none", "-no-user-config",
                                         "-drive", f"file={name}.boot,format=raw,if=ide", "-qmp", f"unix:{name}.sock,server=on,wait=off", *more])
        self.socket = socket.socket(socket.AF_UNIX)
        while self.socket.connect_ex(f"{name}.sock"):
            if self.process.poll() is not None:
                sys.exit("qemu has ended")
            time.sleep(0.1)
        self.lines = self.socket.makefile("rw")
        self.lines.readline()  # the greeting
        self.do("qmp_capabilities")

    def do(self, command, **arguments):
        print(json.dumps({"execute": command, "arguments": arguments}), file=self.lines, flush=True)
        while line := self.lines.readline():
            answer = json.loads(line)
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        sys.exit(f"{command}: qemu has ended")

    def until(self, status, query):
        """Asks again and again, until the machine has this status."""
        while (answer := self.do(query)).get("status") != status:
            if answer.get("status") == "failed":
                sys.exit(f"{query}: {answer}")
            time.sleep(0.05)
        return answer

    def memory(self, at, size):
        """The name of a file with this part of the machine's memory."""
        self.do("human-monitor-command", **{"command-line": f'pmemsave {at} {size} "{self.name}.memory"'})
        return f"{self.name}.memory"

    def counts(self):
        with open(self.memory(COUNTS, COUNTS_SIZE), "rb") as f:
            return f.read()

    def end(self):
        self.do("quit")
        if status := self.process.wait():
            sys.exit(f"qemu has ended with status {status}")


def main():
    side, directory, address, pins = sys.argv[1], sys.argv[2], sys.argv[3], "pin" in sys.argv[4:]
    memory = f"{directory}/memory"
    pin = [{"capability": "rdma-pin-all", "state": pins}]
    if side == "target":
        machine = Machine(f"{directory}/target", "-incoming", "defer")
        machine.do("migrate-set-capabilities", capabilities=pin)
        machine.do("migrate-incoming", uri=f"rdma:{address}")
        machine.until("running", "query-status")
        before = machine.counts()
        if not filecmp.cmp(memory, machine.memory(AT, SIZE), shallow=False):
            sys.exit("the memory differs")
        while machine.counts() == before:
            time.sleep(0.05)
        print("the memory is the same, and the machine runs")
    else:
        with open(memory, "wb") as f:
            f.write(os.urandom(SIZE))
        machine = Machine(f"{directory}/source", "-device", f"loader,file={memory},addr={AT},force-raw=on")
        while not any(machine.counts()):
            time.sleep(0.05)
        machine.do("migrate-set-capabilities", capabilities=pin)
        machine.do("migrate-set-parameters", **{"max-bandwidth": 100 << 30})
        machine.do("migrate", uri=f"rdma:{address}")
        done = machine.until("completed", "query-migrate")
        print(f"migrated {done['ram']['transferred'] >> 20} MB in {done['total-time']} ms")
    machine.end()


main()
