#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mcast.py BUILD_DIR: multicast through a switch that snoops IGMP and MLD: a Linux bridge forwards a group only to the ports that have
reported it. Debian's mckey sends to an IPv4 group and to an IPv6 group, and receives at two ports each: at one uroce reports the group itself
(MCAST-JOIN-01), at the other, whose address is the kernel's, the kernel does (MCAST-JOIN-02)."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1]
PATIENCE = 60
SWITCH = f"mcast-s-{os.getpid()}"
GROUPS = {"239.1.2.3": "10.77.0.", "ff15::1234": "fd77::"}
# One program at each port, with the group that it uses: ports 1 and 4 have kernel addresses, 2 and 5 send.
PORTS = [(group, kind) for group in GROUPS for kind in ("own", "kernel", "sender")]
HOSTS = [f"mcast-{i}-{os.getpid()}" for i in range(len(PORTS))]


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def build_network():
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_querier", "1", "mcast_startup_query_interval", "50",
       "mcast_igmp_version", "3", "mcast_mld_version", "2")
    ip("-n", SWITCH, "link", "set", "br0", "up")
    for i, host in enumerate(HOSTS):
        ip("netns", "add", host)
        ip("link", "add", f"p{i}", "netns", SWITCH, "mtu", "4200", "type", "veth", "peer", "name", "eth0", "mtu", "4200", "netns", host)
        ip("-n", SWITCH, "link", "set", f"p{i}", "master", "br0", "up")
        ip("-n", host, "link", "set", "eth0", "up")
        if PORTS[i][1] == "kernel":
            ip("-n", host, "address", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            ip("-n", host, "address", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")


def start(tmp, i):
    """The program of a port, with the kernel's addresses or with some of uroce's own."""
    group, kind = PORTS[i]
    config = f"{tmp}/{i}.conf"
    with open(config, "w", encoding="ascii") as f:
        f.write(f"[port]\ndriver = af_packet\ndevice = eth0\n[address]\nipv4 = 10.77.0.{i + 1}/24\nipv6 = fd77::{i + 1}/64\n")
    endpoint = ["--dev", "eth0"] if kind == "kernel" else ["--config", config]
    send = ["-s", "-o"] if kind == "sender" else []
    return subprocess.Popen(["ip", "netns", "exec", HOSTS[i], f"{BUILD}/app/run/uroce-run", *endpoint, "--set", "eal.hugepages=no",
                             "timeout", str(PATIENCE), "mckey", "-m", group, "-b", f"{GROUPS[group]}{i + 1}", *send],
                            env={**os.environ, "UROCE_VERBS_LIBRARY_DIR": f"{BUILD}/lib/verbs"}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def members(group):
    """The ports to which the bridge forwards the group."""
    out = subprocess.run(["bridge", "-n", SWITCH, "mdb", "show"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3] for line in out.splitlines() if f" grp {group} " in line + " "}


def wait_for_members(group, ports):
    until = time.monotonic() + PATIENCE
    while (now := members(group)) != ports:
        if time.monotonic() > until:
            sys.exit(f"FAILED: the bridge forwards {group} to {sorted(now)} instead of {sorted(ports)}")
        time.sleep(0.05)


def run(tmp, started):
    receivers = {group: {f"p{i}" for i, (g, kind) in enumerate(PORTS) if g == group and kind != "sender"} for group in GROUPS}
    started += [start(tmp, i) for i, (_, kind) in enumerate(PORTS) if kind != "sender"]
    for group in GROUPS:
        wait_for_members(group, receivers[group])
    # They only send, so they become no members.
    started += [start(tmp, i) for i, (_, kind) in enumerate(PORTS) if kind == "sender"]
    for program in started:
        out, _ = program.communicate(timeout=PATIENCE + 20)
        if program.returncode or "return status 0" not in out:
            sys.exit(f"FAILED: {' '.join(program.args[4:])}\n{out}")
    for group in GROUPS:
        wait_for_members(group, set())


def main():
    if os.geteuid() != 0 or not shutil.which("mckey") or not shutil.which("bridge"):
        print("skipped: needs root, mckey and bridge")
        sys.exit(77)
    started = []
    with tempfile.TemporaryDirectory() as tmp:
        try:
            build_network()
            run(tmp, started)
        finally:
            for program in started:
                program.kill()
                program.wait()
            for namespace in [SWITCH, *HOSTS]:
                subprocess.run(["ip", "netns", "del", namespace], stderr=subprocess.DEVNULL, check=False)
    print("mckey: both groups at both receivers, and the bridge forwards them to these alone, until they leave")


main()
