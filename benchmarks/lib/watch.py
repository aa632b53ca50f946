# SPDX-License-Identifier: BSD-3-Clause
"""Looks at a running endpoint's counters again and again."""

import threading
import time

from .host import Failure
from .telemetry import Telemetry


class Watch:
    """Asks `process` for `what` every so often, in a thread, until stop() or its end."""

    def __init__(self, process, what, every_s):
        self.telemetry = Telemetry(f"uroce-{process.popen.pid}", process)
        self.what = what
        self.every_s = every_s
        self.samples = []
        self.going = True
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while self.going:
            try:
                answer = self.telemetry.ask(self.what)
            except Failure:
                return
            if answer:
                self.samples.append((time.monotonic(), answer))
            time.sleep(self.every_s)

    def stop(self):
        """[(seconds of the monotonic clock, answer)]"""
        self.going = False
        self.thread.join()
        self.telemetry.close()
        return self.samples
