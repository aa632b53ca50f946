# SPDX-License-Identifier: BSD-3-Clause
"""A fabric of agents, channel adapters, subnet managers and tools, for the tests of this directory.

Environment: FABRIC, UROCE_HCA, UROCE_PERF, UROCE_SWITCH, UROCE_UMAD_RUN (programs), UROCE_UMAD_LIBRARY_DIR.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

TOOL_SECONDS = 60  # a tool that hangs
SLOW = 6  # the longest time on a slow machine, of that on an idle one


class Failure(Exception):
    """What a test expected and did not find."""


def check(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what, seconds=60):
    """Until the condition holds. A tool may fail while it does not: run it with status=None."""
    end = time.monotonic() + seconds * SLOW
    while not condition():
        check(time.monotonic() < end, f"{what}: not within {seconds * SLOW} s")
        time.sleep(0.05)


class Bed:
    """Everything that a test starts; ends it, by its process ids, when the test is over."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="uroce-tools-"))
        self.processes = []
        self.fabric = None
        self.inside = []  # the prefix that fabric and adapters are started with, such as ip netns exec NAME

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in reversed(self.processes):
            self.stop(p)
        shutil.rmtree(self.dir)

    def stop(self, process, sig=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(sig)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def start(self, *command, **options):
        process = subprocess.Popen([str(c) for c in command], text=True, **options)
        self.processes.append(process)
        return process

    def start_fabric(self, leaves, spines, hosts, outside):
        """`outside`: names of sockets in the bed's directory, or ("--eth", NAME)."""
        arguments = []
        for o in outside:
            arguments += o if isinstance(o, tuple) else [self.dir / o]
        self.fabric = self.start(*self.inside, os.environ["FABRIC"], leaves, spines, hosts, *arguments,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(self.fabric.stdout.readline() == "ready\n", "the fabric starts")

    def command(self, text):
        self.fabric.stdin.write(text + "\n")
        self.fabric.stdin.flush()
        check(self.fabric.stdout.readline() == "ok\n", f"the fabric obeys '{text}'")

    def start_hca(self, link, name="uroce0", *options):
        hca = self.start(*self.inside, os.environ["UROCE_HCA"], "--link", link, "--dir", self.dir, "--name", name,
                         "--description", name, *options, stdout=subprocess.PIPE)
        check(hca.stdout.readline() == f"{name} is ready in {self.dir}\n", f"{name} starts")
        return hca

    def environment(self, **more):
        return {**os.environ, "UROCE_UMAD_DIR": str(self.dir), **more}

    def run(self, command, status=0):
        """The output of a tool, as a string."""
        words = command.split() if isinstance(command, str) else command
        done = subprocess.run([os.environ["UROCE_UMAD_RUN"], *words], text=True, capture_output=True,
                              env=self.environment(), timeout=TOOL_SECONDS, stdin=subprocess.DEVNULL)
        check(status is None or done.returncode == status,
              f"'{' '.join(words)}' exits with {done.returncode}, not {status}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr

    def ask(self, command):
        """The output of a tool once it succeeds. Beside traffic on few CPUs its datagrams may be late or lost more often than it repeats them."""
        out = None

        def succeeds():
            nonlocal out
            try:
                out = self.run(command)
            except Failure:
                return False
            return True

        wait_until(succeeds, f"'{command}' succeeds")
        return out

    def start_opensm(self, *options, name="uroce0", sweep_s=1, config=""):
        """A subnet manager on the adapter, with light sweeps at this interval and lines of opensm.conf; its log is not
        buffered (-d 2)."""
        home = self.dir / f"opensm-{name}"
        home.mkdir(exist_ok=True)
        # A standby asks for the master more often than each 10 s.
        (home / "opensm.conf").write_text("sminfo_polling_timeout 200\npolling_retry_number 3\n" + config)
        guid = re.search(r"Port GUID: (0x\w+)", self.run(f"ibstat {name} 1")).group(1)
        sm = self.start(os.environ["UROCE_UMAD_RUN"], "opensm", "-F", home / "opensm.conf", "-g", guid, "-s", str(sweep_s), "-t", "200", "-d", "2", "-f", home / "log", *options,
                        env=self.environment(OSM_TMP_DIR=str(home), OSM_CACHE_DIR=str(home)),
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        sm.log = home / "log"
        return sm

    def sm_says(self, sm, text, times=1):
        return sm.log.exists() and sm.log.read_text(errors="replace").count(text) >= times

    def wait_for_sm(self, sm, text, times=1):
        wait_until(lambda: self.sm_says(sm, text, times), f"OpenSM says '{text}'")
