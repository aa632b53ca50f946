#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""migrate.py target|source DIRECTORY ADDRESS:PORT [pin]: one side of a live migration of a virtual machine by QEMU over RDMA.

The source's machine has DIRECTORY/memory in its memory. When the target's runs, that memory is compared."""
import filecmp
import json
import os
import socket
import subprocess
import sys
import time

AT, SIZE = 16 << 20, 64 << 20  # where the compared memory is, and how much there is of it
SECONDS = 60


class Machine:
    def __init__(self, name, *more):
        path = f"{name}.sock"
        self.process = subprocess.Popen(["qemu-system-x86_64", "-accel", "tcg", "-m", "128", "-nodefaults", "-display", "none", "-no-user-config",
                                         "-qmp", f"unix:{path},server=on,wait=off", *more])
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(SECONDS * 10):
            try:
                self.socket.connect(path)
                break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("qemu has ended")
                time.sleep(0.1)
        self.lines = self.socket.makefile("rw")
        self.lines.readline()  # the greeting
        self.do("qmp_capabilities")

    def do(self, command, **arguments):
        print(json.dumps({"execute": command, "arguments": arguments}), file=self.lines, flush=True)
        while True:
            answer = json.loads(self.lines.readline())
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def until(self, status, query):
        """Asks again and again, until the machine has this status."""
        for _ in range(SECONDS * 20):
            answer = self.do(query)
            if answer.get("status") == status:
                return answer
            if answer.get("status") == "failed":
                sys.exit(f"{query}: {answer}")
            time.sleep(0.05)
        sys.exit(f"{query}: still {answer}")

    def end(self):
        self.do("quit")
        if status := self.process.wait(SECONDS):
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
        machine.do("human-monitor-command", **{"command-line": f"pmemsave {AT} {SIZE} \"{memory}.arrived\""})
        if not filecmp.cmp(memory, f"{memory}.arrived", shallow=False):
            sys.exit("the memory differs")
        print("the memory is the same")
    else:
        with open(memory, "wb") as f:
            f.write(os.urandom(SIZE))
        machine = Machine(f"{directory}/source", "-device", f"loader,file={memory},addr={AT},force-raw=on")
        machine.do("migrate-set-capabilities", capabilities=pin)
        machine.do("migrate-set-parameters", **{"max-bandwidth": 100 << 30})
        machine.do("migrate", uri=f"rdma:{address}")
        done = machine.until("completed", "query-migrate")
        print(f"migrated {done['ram']['transferred'] >> 20} MB in {done['total-time']} ms")
    machine.end()


main()
