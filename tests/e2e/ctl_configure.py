#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_configure.py UROCE_SWITCH UROCE_CTL: E2PROM, virtual lanes and keys of a real switch, over a unix socket: no root."""
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

switch, ctl = sys.argv[1:]
tmp = tempfile.mkdtemp(prefix="uroce-ctl-configure-")
path, state, key, wrong = (f"{tmp}/{name}" for name in ("fabric.sock", "state", "key", "wrong"))
KEY = "0x1122334455667788"
running = []


def start_switch(*options):
    p = subprocess.Popen([switch, "--port", f"socket={path},clients=2,mode=0600", "--set", "eal.hugepages=no", "--state", state,
                          "--set", f"management.m_key={KEY}", *options], stdout=subprocess.PIPE, text=True)
    running.append(p)
    for line in p.stdout:
        if line.startswith("forwarding"):
            return p
    sys.exit("the switch does not start")


def stop(p):
    p.terminate()
    p.wait(timeout=120)
    running.remove(p)


def run(*words, status=0, key=key):
    done = subprocess.run([ctl, *words, "--socket", path, "--m-key-file", key], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def await_eeprom(start, holds):
    """Until the switch has saved an E2PROM that starts so."""
    while True:
        with open(state) as f:
            if json.load(f)["eeprom"].startswith(start):
                return
        holds()
        time.sleep(0.02)


def test_eeprom():
    assert run("e2prom", "read", "#1", "0x100", "4").split() == ["0x0100", "ff", "ff", "ff", "ff"]
    run("e2prom", "write", "#1", "0x100", "1", "0x22", "3")
    assert run("e2prom", "read", "#1", "0x100", "4").split() == ["0x0100", "01", "22", "03", "ff"]
    assert "no answer; a wrong key has none" in run("e2prom", "write", "#1", "0", "9", status=1, key=wrong)
    run("e2prom", "defaults", "#1", "scan_ns", "7000000", "bist_rate:1", "55")
    assert run("e2prom", "defaults", "#1").split() == ["scan_ns", "0x6acfc0", "(7000000)", "bist_rate:1", "0x37", "(55)"]

    end = time.monotonic() + 60

    def in_time():
        assert time.monotonic() < end, "the E2PROM is not saved"

    await_eeprom(b"URN1".hex(), in_time)

    # A list that is interrupted while it is replaced is none.
    def image(cnt):
        return b"URN1" + b"".join(b"\x00\x05" + i.to_bytes(8, "big") for i in range(1, cnt)) + b"\xff\xff"

    open(f"{tmp}/image", "wb").write(image(1000))
    load = subprocess.Popen([ctl, "e2prom", "load", "#1", f"{tmp}/image", "--socket", path, "--m-key-file", key],
                            stdout=subprocess.PIPE)
    running.append(load)
    # Requests of another program would find the chip busy most of the time; the state file tells when the letters are gone.
    def loads():
        assert load.poll() is None, "the load has ended before it was interrupted"

    await_eeprom("ff", loads)
    load.kill()
    load.wait(timeout=60)
    running.remove(load)
    assert run("e2prom", "defaults", "#1") == "no list\n"
    open(f"{tmp}/image", "wb").write(image(40))
    run("e2prom", "load", "#1", f"{tmp}/image")
    got = [v["value"] for v in json.loads(run("e2prom", "defaults", "#1", "--json", "-"))["defaults"]]
    assert got == [f"0x{i:x}" for i in range(1, 40)], got
    assert run("e2prom", "load", "#1", f"{tmp}/image").startswith("0 bytes written")


def test_lanes():
    before = run("vl", "show", "#1", "1")
    assert "would lose its lane" in run("vl", "set", "#1", "1", "low=0:4", status=1)
    assert run("vl", "show", "#1", "1") == before
    sl2vl = "8,9," + ",".join(["8"] * 13) + ",9"
    run("vl", "set", "#1", "1", "high=9:255", "low=8:4", "limit=2", f"sl2vl={sl2vl}")
    got = json.loads(run("vl", "show", "#1", "1", "--json", "-"))[0]
    assert (got["high"], got["low"], got["limit"], got["sl2vl"]) == ("9:255", "8:4", 2, sl2vl), got
    assert "does not answer a request for PortInfo" in run("vl", "set", "#1", "1", "limit=3", status=1, key=wrong)
    assert json.loads(run("vl", "show", "#1", "1", "--json", "-"))[0] == got, "without the key"


def test_qos():
    subprocess.run([ctl, "qos", "solve", "0=70", "4=30,40", "--rate", "10", "--json", f"{tmp}/qos"], check=True, timeout=60)
    run("qos", "apply", "#1", "1", f"{tmp}/qos", "--force")
    solved, got = json.load(open(f"{tmp}/qos")), json.loads(run("vl", "show", "#1", "1", "--json", "-"))[0]
    assert all(solved[name] == got[name] for name in ("high", "low", "limit", "sl2vl")), (solved, got)


def test_reports():
    """What uroce-ctl sends to end a report has the key: it is no violation, which would be reported in turn."""
    faults = subprocess.Popen([ctl, "faults", "--duration", "240", "--socket", path, "--m-key-file", key], stdout=subprocess.PIPE, text=True)
    running.append(faults)
    first = ""
    while "key" not in first:
        run("e2prom", "write", "#1", "0", "9", "--timeout-ms", "50", "--retries", "0", status=1, key=wrong)
        if select.select([faults.stdout], [], [], 0.5)[0]:
            first = faults.stdout.readline()
            assert first, "no report came"
    before = run("reg", "read", "#1", "agent_bad_key")
    time.sleep(2)
    assert run("reg", "read", "#1", "agent_bad_key") == before
    stop(faults)


def test_keys():
    assert f"key {KEY}, protect 1" in run("keys", "show", "#1")
    assert "key 0 (none, or not shown without it)" in run("keys", "show", "#1", key=wrong)
    assert "not #1" in run("keys", "set", "#1", "7", status=1, key=wrong)
    open(f"{tmp}/new", "w").write("0x99\n")
    assert "--lease, or --force" in run("keys", "set", "#1", f"@{tmp}/new", "--protect", "2", status=1)
    assert "1 of 1 nodes" in run("keys", "set", "#1", f"@{tmp}/new", "--protect", "2", "--lease", "30")
    assert "there is no node #1" in run("keys", "show", "#1", status=1), "nothing is read without the key"
    assert "key 0x99, protect 2, lease 30 s" in run("keys", "show", "#1", key=f"{tmp}/new")
    # Every command has the key, discovery too.
    assert "switch" in run("topology", key=f"{tmp}/new")
    run("keys", "clear", "#1", key=f"{tmp}/new")
    assert "key 0 (none), protect 0" in run("keys", "show", "#1", key=wrong)


def test():
    open(key, "w").write(KEY + "\n")
    open(wrong, "w").write("5\n")
    p = start_switch()
    test_eeprom()
    test_lanes()
    test_qos()
    test_reports()
    lanes = run("vl", "show", "#1", "1")
    test_keys()
    stop(p)
    # It has kept all of it.
    p = start_switch()
    assert "0x005" in run("reg", "list") and run("reg", "read", "#1", "scratch").split()[1] == "0x27"
    assert run("vl", "show", "#1", "1") == lanes
    print("E2PROM, lanes and keys of a switch are as they were set")


try:
    test()
finally:
    for p in running:
        p.kill()
        p.wait()
    shutil.rmtree(tmp)
