#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""switches.py UROCE_SWITCH UROCE_CTL: several switches in one process, joined by rings. Each forwards, is managed, counts and
keeps its state as one in a process of its own does. A row of 40 of them is discovered, and crossed by a directed route."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

switch, ctl = sys.argv[1:]
tmp = tempfile.mkdtemp(prefix="uroce-switches-")
BASE = ["--set", "eal.hugepages=no", "--set", "forwarding.frames=128", "--set", "management.open=yes"]
ROW = 40
FRAMES = 2000


def argv(*switches):
    """Switches: name, ports, and further options."""
    words = [switch, *BASE]
    for name, ports, *more in switches:
        words += ["--switch", name, *(word for port in ports for word in ("--port", port)), *more]
    return words


def start(*switches):
    p = subprocess.Popen(argv(*switches), stdout=subprocess.PIPE, text=True)
    for _ in switches:
        while "forwarding between" not in (line := p.stdout.readline()):
            assert line, "the switches do not start"
    return p


def end(p):
    p.send_signal(signal.SIGTERM)
    p.stdout.read()
    assert p.wait(60) == 0


def client(path, p):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.settimeout(120)
    while "link up" not in (line := p.stdout.readline()):
        assert line, "the switches have ended"
    return s, line


def run_ctl(path, *words):
    done = subprocess.run([ctl, *words, "--socket", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (words, done)
    return done.stdout


def frame(src, dst, text):
    return dst + bytes([2, 0, 0, 0, 0, src]) + b"\x88\xb5" + text.ljust(50)


def three(stats, state):
    return [("left", [f"socket={tmp}/l.sock,clients=2", "ring=one"], "--json", stats[0], "--state", state[0]),
            ("middle", ["ring=one,rate=5", "ring=two", f"socket={tmp}/m.sock,clients=1"], "--json", stats[1], "--state", state[1]),
            ("right", [f"socket={tmp}/r.sock,clients=1", "ring=two"], "--json", stats[2], "--set", "management.description=the last")]


def chain():
    """SWITCH-RING-01. Three switches in a row: frames of every length cross them unchanged, and all are accounted for."""
    stats, state = [f"{tmp}/stats{i}" for i in range(3)], [f"{tmp}/state{i}" for i in range(2)]
    p = start(*three(stats, state))
    (a, line), (b, _) = client(f"{tmp}/l.sock", p), client(f"{tmp}/r.sock", p)
    assert line.startswith("left: port 1 (socket="), line
    a.send(frame(1, b"\xff" * 6, b"to all"))
    assert b.recv(9000) == frame(1, b"\xff" * 6, b"to all")
    for i in range(FRAMES):
        there = frame(2, bytes([2, 0, 0, 0, 0, 1]), b"%d" % i) + bytes([i % 256]) * (i * 7 % 4100)
        b.send(there)
        assert a.recv(9000) == there, i
    topology = run_ctl(f"{tmp}/l.sock", "topology")
    names = re.findall('^#. switch .*"(.*)"', topology, re.M)
    assert sorted(names) == ["left", "middle", "the last"], topology
    run_ctl(f"{tmp}/l.sock", "reg", "write", "middle", "load_limit", "77")
    assert "77" in run_ctl(f"{tmp}/l.sock", "reg", "read", "middle", "load_limit")
    run_ctl(f"{tmp}/l.sock", "routes", "load")
    guids = re.findall("^#. switch (0x[0-9a-f]+)", topology, re.M)
    assert len(set(guids)) == 3, topology
    end(p)
    for path in stats:
        found = json.load(open(path))
        received = sum(port["rx_packets"] + port["copies"] for port in found["ports"])
        ended = sum(port["tx_packets"] + sum(sum(lane["drops"].values()) for lane in port["lanes"]) for port in found["ports"])
        assert received == ended + found["queued"] and received > FRAMES, found
    lids = [json.load(open(path))["lid"] for path in state]
    assert all(lids) and len(set(lids)) == 2, f"each has a state of its own: {lids}"
    # The same switches are the same nodes, with what management has set.
    p = start(*three(stats, state))
    again = run_ctl(f"{tmp}/l.sock", "topology")
    assert re.findall("^#. switch (0x[0-9a-f]+)", again, re.M) == guids, (guids, again)
    end(p)
    assert [json.load(open(path))["lid"] for path in state] == lids
    print(f"{FRAMES} frames through three switches of one process; each with its name, statistics and state")


def row():
    """Each is a node of its own; a directed route crosses all."""
    first = [f"socket={tmp}/row.sock,clients=1,mtu=1500"]
    switches = [(f"s{i}", [*([f"ring=r{i - 1},mtu=1500"] if i else first), *([f"ring=r{i},mtu=1500"] if i < ROW - 1 else [])])
                for i in range(ROW)]
    p = start(*switches)
    found = run_ctl(f"{tmp}/row.sock", "topology")
    assert re.findall('^#[0-9]+ +switch .*"(.*)"', found, re.M) == [f"s{i}" for i in range(ROW)], found
    said = json.loads(run_ctl(f"{tmp}/row.sock", "reg", "read", f"s{ROW - 1}", "uptime_ns", "load", "--count", "20", "--json", "-"))
    assert said["requests"]["median_ns"] > 0
    end(p)
    print(f"a row of {ROW} switches in one process: found, and read across")


def wrong():
    """What cannot work is said in one sentence, with the switch's name where it is one's own."""
    for text, switches in (
            ("a ring joins two ports", [("a", ["ring=x"]), ("b", [f"socket={tmp}/w.sock"])]),
            ("c: ring=x: this name has two ports", [("a", ["ring=x"]), ("b", ["ring=x"]), ("c", ["ring=x"])]),
            ("b: dev=nosuch0", [("a", ["ring=x"]), ("b", ["ring=x", "dev=nosuch0"])]),
            ("b: ", [("a", ["ring=x"]), ("b", ["ring=x"], "--set", "forwarding.frames=1")]),
            ("b: socket=", [("a", [f"socket={tmp}/w.sock"]), ("b", [f"socket={tmp}/w.sock"])])):
        bad = subprocess.run(argv(*switches), capture_output=True, text=True, timeout=60)
        assert bad.returncode == 1 and text in bad.stderr and bad.stderr.count("\n") == 1, (text, bad)
    assert not os.path.exists(f"{tmp}/w.sock")
    print("what is wrong is named")


try:
    chain()
    row()
    wrong()
finally:
    subprocess.run(["rm", "-rf", tmp], check=True)
