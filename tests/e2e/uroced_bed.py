# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of uroced have in common: UROCED UROCE_PERF are the first arguments of the program; with UROCE_RUN unmodified programs run
as well. A directory, a daemon, and what the test starts, which conduct() ends."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from uroced_client import PATIENCE_S, Lease, Refused

uroced, perf = sys.argv[1:3]
run = os.environ.get("UROCE_RUN")
tmp = tempfile.mkdtemp(prefix="uroced-")
path, stats = f"{tmp}/s.sock", f"{tmp}/stats.json"
running = []


def start(*command, ns=None, **more):
    """ns: a network namespace."""
    if ns:
        command = ("ip", "netns", "exec", ns, *command)
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, errors="replace", **more)
    running.append(p)
    return p


def daemon(*more, socket=path, ns=None):
    """Its output is in uroced.log."""
    log = open(f"{tmp}/uroced.log", "a", encoding="utf-8")
    p = start(uroced, "--socket", socket, "--mode", "0666", "--per-user", "4", "--clients", "6", "--quarantine", "2", "--json", stats,
              "--interval", "0.05", "--set", "eal.memory_mb=128", "--set", "eal.hugepages=no", *more, ns=ns, stdout=log, stderr=log)
    wait_for("the daemon's socket", lambda: answers(p, socket))
    return p


def kill(d, noted=True):
    """Kills a daemon, and removes the page that it has written; unless `noted`, its leases as well, as if it had not come to that."""
    d.kill()
    d.wait()
    os.unlink(stats)
    if not noted:
        os.unlink(f"{path}.leases")


def answers(p, socket=path):
    if p.poll() is not None:
        sys.exit(f"the daemon ended: {open(f'{tmp}/uroced.log', encoding='utf-8').read()}")
    try:
        Lease(socket, message=b"?")
    except Refused:
        return True
    except OSError:
        return False


def wait_for(what, condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"{what}: not in {seconds} s\n" + logs())
        time.sleep(0.02)


def logs():
    return "".join(f"-- {f}\n{open(f'{tmp}/{f}', encoding='utf-8', errors='replace').read()[-3000:]}" for f in sorted(os.listdir(tmp))
                   if f.endswith(".log"))


class Page:
    """The counters of an endpoint, while it runs."""

    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.at = f"127.0.0.1:{s.getsockname()[1]}"
        self.options = "--metrics", self.at

    def read(self, counter):
        try:
            with urllib.request.urlopen(f"http://{self.at}/metrics", timeout=PATIENCE_S) as page:
                return sum(int(v) for v in re.findall(rf"^uroce_{counter}_total\{{.*\}} (\d+)$", page.read().decode(), re.M))
        except OSError:
            return 0

    def grows(self, what, counter, by=1):
        before = self.read(counter)
        wait_for(what, lambda: self.read(counter) >= before + by)


def ports():
    with open(stats, encoding="utf-8") as f:
        return {p["name"]: p for p in json.load(f)["ports"]}


def leased():
    """Addresses and process numbers of leases whose ports are connected."""
    return {p["lease"]["address"]: p["lease"]["pid"] for p in ports().values() if "lease" in p and p["link_up"]}


def total(counter):
    return sum(p.get("guard", p).get(counter, p.get(counter, 0)) for p in ports().values())


def refused(why, *args, **kwargs):
    try:
        Lease(path, *args, **kwargs)
    except Refused as e:
        assert str(e) == why, f"refused because of {e}, not {why}"
        return
    raise AssertionError(f"granted, although {why}")


def endpoint(role, name, *more, dev=f"uroced:{path}", ns=None):
    """uroce-perf; its output is in NAME.log."""
    log = open(f"{tmp}/{name}.log", "w", encoding="utf-8")
    return start(perf, role, "--dev", dev, "--set", "eal.memory_mb=64", "--set", "eal.hugepages=no", *more, ns=ns, stdout=log,
                 stderr=log)


def text(name):
    with open(f"{tmp}/{name}.log", encoding="utf-8", errors="replace") as f:
        return f.read()


def listening(name):
    wait_for(name, lambda: "listening" in text(name))
    return re.search(r"addresses ([\d.]+)", text(name))[1]


def ended(p, name, seconds=60):
    try:
        status = p.wait(seconds)
    except subprocess.TimeoutExpired:
        sys.exit(f"{name} does not end\n" + logs())
    if status:
        sys.exit(f"{name}: status {status}\n" + logs())


def conduct(test, tidy=lambda: None):
    """Runs the test, and ends everything that it has started."""
    try:
        test()
    except AssertionError:
        print(logs())
        raise
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(tmp, ignore_errors=True)
        tidy()


def program(name, *command, socket=path):
    """An unmodified program; its output is in NAME.log."""
    log = open(f"{tmp}/{name}.log", "w", encoding="utf-8")
    env = {**os.environ, "UROCE_DEV": f"uroced:{socket}", "UROCE_SET": "eal.memory_mb=64;eal.hugepages=no", "UROCE_LOG": "1"}
    return start("stdbuf", "-oL", run, *command, stdout=log, stderr=log, env=env)
