# SPDX-License-Identifier: BSD-3-Clause
"""Samples the counters of a running endpoint."""

import threading
import time

from .host import Failure
from .telemetry import Telemetry


class Watch:
    """Queries `what` from `process` periodically, in a thread, until stop() or the end of the process."""

    def __init__(self, process, what, every_s):
        self.process = process
        self.what = what
        self.every_s = every_s
        self.samples = []
        self.going = True
        self.telemetry = self._connect()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _connect(self):
        return Telemetry(f"uroce-{self.process.popen.pid}", self.process)

    def _ask(self):
        """Returns one answer. If it is lost, the query is repeated over a new connection."""
        try:
            answer = self.telemetry.ask(self.what)
            if answer:
                self.samples.append((time.monotonic(), answer))
        except (Failure, ValueError, KeyError):
            self.telemetry.close()
            self.telemetry = self._connect()

    def _run(self):
        while self.going and self.process.alive():
            try:
                self._ask()
            except Failure:
                return
            time.sleep(self.every_s)

    def stop(self):
        """Returns [(seconds of the monotonic clock, answer)]."""
        self.going = False
        self.thread.join()
        self.telemetry.close()
        return self.samples
