# SPDX-License-Identifier: BSD-3-Clause
"""The machine: installed programs, CPUs, hugepages, the build, and the processes that are started.

Host.close() releases everything that is reserved or started here. It runs at the end, also after a
signal or an error.
"""

import ctypes
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HUGEPAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
MEMORY_MB = 96  # per DPDK process
HUGEPAGES_WANTED = MEMORY_MB + 32  # pages of 2 MB for two processes, and the EAL's rounding
PR_SET_PDEATHSIG = 1
NICE = -19

# Programs that benchmarks call, and the Debian packages that contain them.
PACKAGES = {
    "dpdk-testpmd": "dpdk",
    "iperf3": "iperf3",
    "sockperf": "sockperf",
    "gnuplot": "gnuplot-nox",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "nft": "nftables",
    "stdbuf": "coreutils",
    "valgrind": "valgrind",
    "meson": "meson",
    "ninja": "ninja-build",
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mksquashfs": "squashfs-tools",
    **dict.fromkeys(("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_send_lat", "ib_read_lat"), "perftest"),
    "ibv_asyncwatch": "ibverbs-utils",
    "ping": "iputils-ping",
    "ucx_perftest": "ucx-utils",
    "fi_pingpong": "libfabric-bin",
    "mpirun": "openmpi-bin",
}


class Failure(Exception):
    """An error with one sentence for the user. The run ends with status 1."""


class Process:
    """A child process on its own CPUs, with its output in a log file."""

    def __init__(self, host, name, argv, cpus, stdin=subprocess.DEVNULL):
        self.name = name
        self.host = host
        host.count += 1
        self.log_path = host.tmp / f"{host.count:03d}-{name}.log"
        self.log = open(self.log_path, "wb")
        self.log.write((" ".join(argv) + "\n").encode())
        self.log.flush()
        self.popen = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: child_setup(cpus, host.raise_sessions),
        )
        host.processes.append(self)

    def text(self):
        return self.log_path.read_text(errors="replace").split("\n", 1)[-1]

    def alive(self):
        return self.popen.poll() is None

    def wait_for(self, needle, timeout_s=15.0):
        """Waits until the output contains `needle`. The process must not end before."""
        until = time.monotonic() + timeout_s
        while needle not in self.text():
            if not self.alive():
                raise Failure(f"{self.name} ended early; its last output: {self.tail()}")
            if time.monotonic() > until:
                raise Failure(f"{self.name} is not ready after {timeout_s:.0f} s: {self.tail()}")
            time.sleep(0.02)

    def wait(self, timeout_s):
        """Waits until the process ends, which it must do with status 0."""
        try:
            status = self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failure(f"{self.name} did not end in {timeout_s:.0f} s: {self.tail()}")
        self.forget()
        if status != 0:
            raise Failure(f"{self.name} failed with status {status}: {self.tail()}")

    def end(self, patience_s):
        """Waits until the process ends, with any status. Stops it after patience_s."""
        try:
            self.popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            pass
        self.stop()

    def tail(self, lines=6):
        words = [line.strip() for line in self.text().splitlines() if line.strip()]
        return " | ".join(words[-lines:]) or "(none)"

    def stop(self):
        """Ends the process: by SIGTERM, so that a PMD can close its port, and if necessary by SIGKILL."""
        for sig, patience_s in ((signal.SIGTERM, 4), (signal.SIGKILL, 4)):
            if not self.alive():
                break
            os.killpg(self.popen.pid, sig)
            try:
                self.popen.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
        self.forget()

    def forget(self):
        self.log.close()
        if self in self.host.processes:
            self.host.processes.remove(self)


def child_setup(cpus, session):
    """Runs in the child: it ends with its parent, stays on its CPUs and has priority over batch jobs; with `session` also if the kernel
    groups tasks by session, where only the weight of the session counts."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        if session:
            pathlib.Path("/proc/self/autogroup").write_text(str(NICE), encoding="ascii")
    except OSError:
        pass


class Host:
    def __init__(self, build=None, verbose=False):
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="uroce-bench-"))
        self.cpus = sorted(os.sched_getaffinity(0))
        self.processes = []
        self.closers = []  # called in reverse order
        self.reserved = 0
        self.huge = False  # decided once, so that all contenders have the same
        self.count = 0
        self.build_option = build
        self.build = None
        self.verbose = verbose
        self.raise_sessions = True

    def say(self, text):
        if self.verbose:
            print(f"    {text}", file=sys.stderr, flush=True)

    # ---- CPUs ----

    def cpu(self, side, dedicated=False):
        """The CPUs of side 0 or 1: one each, or two each with a dedicated worker."""
        if dedicated:
            return {self.cpus[2 * side], self.cpus[2 * side + 1]}
        return {self.cpus[side % len(self.cpus)]}

    def can_dedicate(self):
        return len(self.cpus) >= 4

    # ---- processes ----

    def start(self, name, argv, cpus=None, stdin=subprocess.DEVNULL):
        self.say(" ".join(str(a) for a in argv))
        return Process(self, name, [str(a) for a in argv], cpus, stdin)

    # ---- hugepages ----

    def reserve_hugepages(self):
        """Reserves missing hugepages. Without permission or memory, the benchmarks run without them."""
        self.huge = self.top_up_hugepages()
        return self.huge

    def top_up_hugepages(self):
        """Reserves more if another process has taken some. Returns whether there are enough."""
        before, idle = hugepages("nr"), free_hugepages()
        if idle < HUGEPAGES_WANTED:
            write_hugepages(before + HUGEPAGES_WANTED - idle)
            self.reserved += max(0, hugepages("nr") - before)
        return free_hugepages() >= HUGEPAGES_WANTED

    # ---- the build ----

    def binary(self, relative):
        return self.build / relative

    def make_build(self, targets):
        """Updates the release build: the one of --build, or build-release, which is set up if missing."""
        if self.build_option:
            self.build = pathlib.Path(self.build_option).resolve()
            if not (self.build / "build.ninja").exists():
                raise Failure(f"{self.build} is not a build directory; create it with "
                              f"`meson setup {self.build} {ROOT} --buildtype=release`")
        else:
            self.build = ROOT / "build-release"
            if not (self.build / "build.ninja").exists():
                self.quiet("meson", "setup", self.build, ROOT, "--buildtype=release", "-Ddebug=true",
                           "-Dtests=false", "-Dbenchmarks=true")
        for target in targets:
            if not self.knows_target(target):
                option = {"tests": "tests=true", "sim": "ns3=enabled"}.get(target.split("/")[0], "benchmarks=true")
                self.quiet("meson", "configure", self.build, f"-D{option}")
                self.quiet("ninja", "-C", self.build, "build.ninja")
        self.add_debug_info()
        self.quiet("ninja", "-C", self.build, *targets)

    def add_debug_info(self):
        """Names of source files in build-release, if it was made without; the code stays the same."""
        if not self.build_option and not self.build_value("debug"):
            self.quiet("meson", "configure", self.build, "-Ddebug=true")

    def build_value(self, name):
        """The value of an option of the build directory; None: there is no such option."""
        options = self.build / "meson-info" / "intro-buildoptions.json"
        return next((o["value"] for o in json.loads(options.read_text()) if o["name"] == name), None)

    def knows_target(self, target):
        return target + ":" in (self.build / "build.ninja").read_text(errors="replace")

    def quiet(self, *argv):
        argv = [str(a) for a in argv]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise Failure(f"`{' '.join(argv)}` failed:\n" + "\n".join(lines[-15:]))

    def optimized(self):
        return self.build_value("buildtype") in ("release", "debugoptimized", "minsize", None)

    # ---- the end ----

    def close(self, keep=False):
        for process in list(self.processes):
            process.stop()
        while self.closers:
            self.closers.pop()()
        if self.reserved:
            write_hugepages(max(0, hugepages("nr") - self.reserved))
            self.reserved = 0
        if keep:
            print(f"logs: {self.tmp}", file=sys.stderr)
        else:
            shutil.rmtree(self.tmp, ignore_errors=True)


def free_hugepages():
    """Free hugepages that are not reserved by a mapping of another process."""
    return hugepages("free") - hugepages("resv")


def hugepages(what):
    try:
        return int((HUGEPAGES / f"{what}_hugepages").read_text())
    except (OSError, ValueError):
        return 0


def write_hugepages(count):
    try:
        (HUGEPAGES / "nr_hugepages").write_text(str(count))
    except OSError:
        pass


def preflight(programs, root=True):
    """Checks programs and permissions. A Failure names the command that helps."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    missing = sorted({PACKAGES[p] for p in programs if shutil.which(p) is None})
    if missing:
        raise Failure(f"programs are missing: apt-get install --no-install-recommends -y {' '.join(missing)}")
    if root and os.geteuid() != 0:
        raise Failure("veth pairs and AF_XDP need root: run it with sudo")


def description(host):
    """Description of the machine, for the JSON and the heading."""
    model = platform.processor() or platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cpus": len(host.cpus),
        "kernel": platform.release(),
        "hugepages": host.huge,
        "load": round(os.getloadavg()[0], 2),
        "build": str(host.build.name) if host.build else "",
    }
