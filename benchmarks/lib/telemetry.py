# SPDX-License-Identifier: BSD-3-Clause
"""Access to the telemetry socket (rte_telemetry) of a running endpoint: reads counters, changes settings."""

import json
import os
import pathlib
import socket
import time

from .host import Failure

RUNTIME = pathlib.Path("/var/run/dpdk")


class Telemetry:
    """`prefix` is [eal] file_prefix of the endpoint, `process` its process."""

    def __init__(self, prefix, process, timeout_s=15.0):
        self.process = process
        self.path = str(RUNTIME / prefix / "dpdk_telemetry.v2")
        until = time.monotonic() + timeout_s
        while not self.connect():
            if not process.alive() or time.monotonic() > until:
                raise Failure(f"{process.name} has no telemetry: {process.tail()}")
            time.sleep(0.02)

    def connect(self):
        if not os.path.exists(self.path):
            return False
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(10)
        try:
            self.sock.connect(self.path)
            self.bytes = json.loads(self.sock.recv(1024))["max_output_len"]
        except OSError:
            self.sock.close()
            return False
        return True

    def ask(self, command):
        """Sends a query and returns the value of the answer."""
        try:
            self.sock.send(command.encode())
            text = self.sock.recv(self.bytes).decode()
        except OSError as error:
            raise Failure(f"{self.process.name} does not answer {command}: {error}; "
                          f"{self.process.tail()}")
        return json.loads(text)[command.split(",", 1)[0]]

    def change(self, **keys):
        """Changes keys of [qos], either all of them or none."""
        answer = self.ask("/uroce/qos," + ";".join(f"{k}={v}" for k, v in keys.items()))
        if "error" in answer:
            raise Failure(answer["error"])

    def close(self):
        self.sock.close()
