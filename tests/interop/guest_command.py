#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""guest_command.py HOST:PORT SECONDS COMMAND...: runs a command in the guest, through `interop-rxe serve`, prints what it prints, and
ends with its status."""
import re
import socket
import sys


class GuestCommand:
    """A command that runs in the guest, for at most so many seconds."""

    def __init__(self, guest, command, seconds=60):
        host, port = guest.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=seconds + 30)
        self.socket.sendall(f"command timeout {seconds} {command}; echo \"status $?\"\n".encode())

    def finish(self):
        """Waits for its end; returns (status, output)."""
        output = b""
        while chunk := self.socket.recv(65536):
            output += chunk
        self.socket.close()
        status = re.search(rb"status (\d+)\s*$", output)
        return int(status[1]) if status else -1, output.decode(errors="replace")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        status, output = GuestCommand(sys.argv[1], " ".join(sys.argv[3:]), int(sys.argv[2])).finish()
    except OSError as e:
        sys.exit(f"the program in the guest does not answer: {e}")
    print(re.sub(r"status -?\d+\s*$", "", output), end="", flush=True)
    sys.exit(status if 0 <= status < 256 else 1)


if __name__ == "__main__":
    main()
