# SPDX-License-Identifier: BSD-3-Clause
"""A star whose middle is uroce-switch instead of the kernel's bridge."""

import json

from . import netns
from .star import Star

LANE_KB = 4096


class SwitchedStar(Star):
    def __init__(self, host, sides, keys=None):
        """`keys`: {i: keys of the port's description, such as "rate=0.1"}."""
        super().__init__(host, sides)
        self.cnt, self.keys = sum(sides), keys or {}
        self.json = host.tmp / "switch.json"
        self.process = None
        for i in range(self.cnt):
            netns.ip("-n", self.bridge, "link", "set", f"b{i}", "nomaster")

    def start_switch(self, *settings):
        """Port i + 1 leads to endpoint i. `settings`: KEY=VALUE."""
        self.json.unlink(missing_ok=True)
        argv = ["ip", "netns", "exec", self.bridge, self.host.binary("app/switch/uroce-switch")]
        for i in range(self.cnt):
            argv += ["--port", ",".join(filter(None, [f"dev=b{i}", self.keys.get(i)]))]
        for setting in ("eal.memory_mb=768", "forwarding.frames=512", f"forwarding.lane_kb={LANE_KB}", *settings):
            argv += ["--set", setting]
        self.process = self.host.start("uroce-switch", [*argv, "--json", self.json, "--interval", "0.05"])
        self.process.wait_for("forwarding between")

    def stats(self):
        """What the switch has written last, or None."""
        try:
            return json.loads(self.json.read_text())
        except (OSError, ValueError):
            return None

    def stop_switch(self):
        """The counts at the end."""
        self.process.stop()
        self.process = None
        return self.stats()

    def close(self):
        if self.process:
            self.process.stop()
            self.process = None
        super().close()
