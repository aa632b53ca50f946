# SPDX-License-Identifier: BSD-3-Clause
"""Where unmodified programs run: two sides, each with an endpoint of uroce, over memif, veth, tap or uroced.

The environment names what is tested: UROCE_RUN, UROCE_VERBS_LIBRARY_DIR, UROCE_LIFE, UROCE_DAEMON.
"""
import functools
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time


BUILT = "life", "load", "depths", "mpi", "mpich"  # programs of this directory


def built():
    """Where they are, as `run` or its caller has said."""
    return {name: os.environ.get(f"UROCE_{name.upper()}") for name in BUILT}


class Failure(Exception):
    pass


class Program:
    """A program on one side, with a terminal of its own: then it writes its lines at once."""

    def __init__(self, arguments, env, setup=None):
        ours, theirs = pty.openpty()
        self.text = ""
        # No session of its own: Linux 6.18 is unfair between sessions (docs/programs.md).
        self.process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=env, process_group=0, preexec_fn=setup)
        os.close(theirs)
        self.reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self.reader.start()

    def _read(self, fd):
        try:
            while data := os.read(fd, 65536):
                self.text += data.decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            pass  # the last writer has closed the terminal
        os.close(fd)

    def wait(self, seconds):
        """The exit status; None: it did not end in time."""
        try:
            status = self.process.wait(max(seconds, 0.01))
        except subprocess.TimeoutExpired:
            return None
        self.reader.join(5)
        return status

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # what it has started, too, if it has ended itself
        except ProcessLookupError:
            pass
        self.process.wait()


@functools.cache
def sanitizer():
    """The environment in which a program that was compiled without AddressSanitizer can load libraries that were compiled with it."""
    library = pathlib.Path(os.environ["UROCE_VERBS_LIBRARY_DIR"], "libibverbs.so.1")
    symbols = subprocess.run(["readelf", "--dyn-syms", "--dynamic", "--wide", library], capture_output=True, text=True, check=True).stdout
    if "__asan_init" not in symbols:
        return {}
    # gcc links its own, clang leaves it to the program.
    compiler, name = ("gcc", "libasan.so") if "[libasan." in symbols else ("clang", "libclang_rt.asan-x86_64.so")
    runtime = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    # uroce-run puts a library of its own before it, which the order allows: it needs nothing of the sanitizer's before main().
    options = [os.environ.get("ASAN_OPTIONS", "exitcode=99"), "detect_leaks=0", "verify_asan_link_order=0"]
    return {"LD_PRELOAD": runtime, "ASAN_OPTIONS": ":".join(options)}


def proc_of(address):
    """An IPv4 address as /proc/net has it."""
    return "".join(f"{int(byte):02X}" for byte in reversed(address.split(".")))


class Bed:
    """Side "a" is the server's and side "b" the client's. Subclasses say how they are connected."""
    setup = None  # called in each program's process before it starts

    def __init__(self, sets=(), cpus=None):
        self.dir = tempfile.mkdtemp(prefix="uroce-programs-")
        self.sets = [*sets]
        self.pin = ["taskset", "-c", cpus] if cpus else []
        self.port = 18515
        self.dropped = self.accepted = 0  # packets, as the programs say at their ends

    def note(self, text):
        """Counts what [impair] has dropped."""
        for dropped, accepted in re.findall(r"\[impair\] dropped (\d+) packets; (\d+) were accepted", text):
            self.dropped += int(dropped)
            self.accepted += int(accepted)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def inside(self, side, command, bare=False):
        """The arguments that run a command on this side; `bare`: with the system's own libraries."""
        sets = [word for s in self.sets for word in ("--set", s)]
        run = [] if bare else [os.environ["UROCE_RUN"], *self.endpoint(side), *sets]
        return [*self.into(side), *self.pin, *run, *command.split()]

    def start(self, side, command, env=(), bare=False):
        return Program(self.inside(side, command, bare),
                       {**os.environ, "UROCE_LOG": "1", **dict(env), **({} if bare else sanitizer())}, self.setup)

    def listens(self, side, port):
        """Whether a program of this side listens on a TCP port."""
        out = subprocess.run([*self.into(side), "cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=False).stdout
        return re.search(rf":{port:04X} \w+:0000 0A ", out) is not None

    def listens_by_cm(self, side, port, program):
        """Whether this program listens for connections of rdma_cm."""
        return re.search(rf"listens on port {port}\b", program.text) is not None

    def has_udp_port(self, side, port):
        """Whether a program of this side has a UDP port."""
        return re.search(rf":{port:04X} \w+:0000 07 ", self.read(side, "/proc/net/udp")) is not None

    def has_joined(self, side, group):
        """Whether the kernel of this side is in an IPv4 multicast group."""
        return proc_of(group) in self.read(side, "/proc/net/igmp")

    def read(self, side, path):
        return subprocess.run([*self.into(side), "cat", path], capture_output=True, text=True, check=False).stdout

    def gid(self, side):
        """The index of the GID that the programs of this side use."""
        return 0

    def words(self):
        """What {words} in a row's commands stand for. A port that is new, so that no old socket is in the way."""
        self.port += 1
        return {"tests": os.path.dirname(os.path.abspath(__file__)), "port": self.port, "peer": self.peer, "address": "10.77.0.1",
                "own": "10.77.0.2", "dir": self.dir, **built()}


class Memif(Bed):
    """Two processes joined by shared memory; the kernel does not know their addresses."""
    name = "memif"
    peer = "127.0.0.1"

    def __init__(self, **options):
        super().__init__(**options)
        for side, role, host in ("a", "server", 1), ("b", "client", 2):
            with open(f"{self.dir}/{side}.conf", "w", encoding="ascii") as f:
                f.write(f"[port]\ndriver = memif\nrole = {role}\ndevice = {self.dir}/memif.sock\nmtu = 4200\n"
                        f"framecnt = 256\n[address]\nipv4 = 10.77.0.{host}/24\nipv6 = fd77::{host}/64\n")

    def into(self, side):
        return []

    def endpoint(self, side):
        return ["--config", f"{self.dir}/{side}.conf"]


class Veth(Bed):
    """Two network namespaces; the endpoints share the kernel's interfaces and addresses."""
    name = "veth"
    peer = "10.77.0.1"

    def __init__(self, **options):
        super().__init__(**options)
        self.netns = {side: f"uroce-{side}-{os.getpid()}" for side in "ab"}

    def __enter__(self):
        for name in self.netns.values():
            self._ip("netns", "add", name)
        self._ip("link", "add", "uroce0", "mtu", "4200", "netns", self.netns["a"], "type", "veth",
                 "peer", "name", "uroce1", "mtu", "4200", "netns", self.netns["b"])
        for side, interface, host in ("a", "uroce0", 1), ("b", "uroce1", 2):
            for device in "lo", interface:
                self._ip("-n", self.netns[side], "link", "set", device, "up")
            self._ip("-n", self.netns[side], "address", "add", f"10.77.0.{host}/24", "dev", interface)
        return self

    def __exit__(self, *_):
        for name in self.netns.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        super().__exit__()

    @staticmethod
    def _ip(*arguments):
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def into(self, side):
        return ["ip", "netns", "exec", self.netns[side]]

    def endpoint(self, side):
        return ["--dev", "uroce0" if side == "a" else "uroce1"]


class Host(Veth):
    """Four endpoints on one host, for programs that start each other: on a bridge in one namespace, with addresses that the kernel does
    not have."""
    name = "host"
    peer = "127.0.0.1"
    endpoints = 4

    def __init__(self, **options):
        super().__init__(**options)
        self.netns = {"a": f"uroce-a-{os.getpid()}"}
        for i in range(self.endpoints):
            with open(f"{self.dir}/{i}.conf", "w", encoding="ascii") as f:
                f.write(f"[port]\ndriver = af_packet\ndevice = uroce{i}\n[address]\nipv4 = 10.77.0.{i + 1}/24\n")

    def __enter__(self):
        name = self.netns["a"]
        self._ip("netns", "add", name)
        self._ip("-n", name, "link", "add", "bridge0", "mtu", "4200", "type", "bridge", "mcast_snooping", "0")
        for i in range(self.endpoints):
            self._ip("link", "add", f"uroce{i}", "mtu", "4200", "netns", name, "type", "veth", "peer", "name", f"port{i}", "mtu", "4200", "netns", name)
            self._ip("-n", name, "link", "set", f"port{i}", "master", "bridge0", "up")
            self._ip("-n", name, "link", "set", f"uroce{i}", "up")
        for device in "lo", "bridge0":
            self._ip("-n", name, "link", "set", device, "up")
        return self

    def into(self, side):
        return super().into("a")

    def endpoint(self, side):
        return []

    def words(self):
        pool = ",".join(f"{self.dir}/{i}.conf" for i in range(self.endpoints))
        return {**super().words(), "run": f"{os.environ['UROCE_RUN']} --pool {pool}"}


class Tap(Veth):
    """One process, whose port is an interface that DPDK makes."""
    name = "tap"
    peer = "127.0.0.1"

    def __init__(self, **options):
        super().__init__(**options)
        self.netns = {"a": f"uroce-t-{os.getpid()}"}
        with open(f"{self.dir}/tap.conf", "w", encoding="ascii") as f:
            f.write("[port]\ndriver = tap\ndevice = uroce-tap\n[address]\nipv4 = 10.77.0.1/24\n")

    def __enter__(self):
        self._ip("netns", "add", self.netns["a"])
        return self

    def endpoint(self, side):
        return ["--config", f"{self.dir}/tap.conf"]


class Uroced(Veth):
    """Processes of one host, each with a port leased from uroced. The kernel has the same addresses on an interface that is not
    uroced's, for programs that begin by TCP on the address that rdma_cm uses."""
    name = "uroced"
    ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2"}
    leases = "--range", "10.77.0.1-10.77.0.40/24"

    def __init__(self, **options):
        super().__init__(**options)
        self.netns = {"a": f"uroce-d-{os.getpid()}"}
        self.socket = f"{self.dir}/uroced.sock"
        self.daemon = None

    def __enter__(self):
        name = self.netns["a"]
        self._ip("netns", "add", name)
        self._ip("link", "add", "kernel0", "netns", name, "type", "veth", "peer", "name", "kernel1", "netns", name)
        for device in "lo", "kernel0", "kernel1":
            self._ip("-n", name, "link", "set", device, "up")
        for address in self.ADDRESSES.values():
            self._ip("-n", name, "address", "add", f"{address}/24", "dev", "kernel0")
        # No address rests: the next row's programs want the same ones.
        command = [os.environ["UROCE_DAEMON"], "--socket", self.socket, *self.leases, "--quarantine", "0",
                   "--set", "eal.hugepages=no", "--set", "eal.memory_mb=128"]
        self.daemon = Program([*self.into("a"), *self.pin, *command], dict(os.environ), self.setup)
        if not wait_until(lambda: os.path.exists(self.socket) or self.daemon.process.poll() is not None, 30) or not os.path.exists(self.socket):
            raise Failure(f"uroced does not start: {self.daemon.text[-2000:]}")
        return self

    def __exit__(self, *_):
        if self.daemon:
            self.daemon.end()
        super().__exit__()

    def into(self, side):
        return super().into("a")

    def endpoint(self, side):
        return ["--dev", f"uroced:{self.socket}@{self.ADDRESSES[side]}"]

    def words(self):
        return {**super().words(), "run": f"{os.environ['UROCE_RUN']} --dev uroced:{self.socket}"}


class UrocedOne(Uroced):
    """The same with one address for all processes, as with a kernel driver. Programs that know only names reach each other by it."""
    name = "uroced-one"
    ADDRESSES = {"a": "10.77.0.1"}
    leases = "--address", "10.77.0.1/24"

    def endpoint(self, side):
        return ["--dev", f"uroced:{self.socket}"]

    def words(self):
        return {**super().words(), "own": "10.77.0.1"}


BEDS = {bed.name: bed for bed in (Memif, Veth, Host, Tap, Uroced, UrocedOne)}


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
