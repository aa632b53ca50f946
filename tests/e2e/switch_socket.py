#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""switch_socket.py UROCE_SWITCH: programs without privileges as ports of a switch: a unix socket, one frame a message."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

CLIENTS = 3
switch = sys.argv[1]
tmp = tempfile.mkdtemp(prefix="uroce-switch-")
path, stats = f"{tmp}/fabric.sock", f"{tmp}/stats.json"


def client():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.settimeout(10)
    return s


def mac(host):
    return bytes([2, 0, 0, 0, 0, host])


def frame(src, dst, text):
    return dst + mac(src) + b"\x88\xb5" + text.ljust(50)


def silent(s):
    s.settimeout(0.3)
    try:
        return s.recv(9000) is None
    except TimeoutError:
        return True
    finally:
        s.settimeout(10)


def start():
    p = subprocess.Popen([switch, "--port", f"socket={path},clients={CLIENTS},mode=0600", "--set", "eal.hugepages=no",
                          "--set", "forwarding.frames=128", "--json", stats], stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        if line.startswith("forwarding"):
            return p
    sys.exit("the switch does not start")


def links(p, n, state):
    """Waits until n links have changed."""
    while n:
        line = p.stdout.readline()
        assert line, "the switch has ended"
        n -= line.rstrip().endswith(f"link {state}")


def main():
    p = start()
    assert os.stat(path).st_mode & 0o777 == 0o600
    a, b, c = (client() for _ in range(CLIENTS))
    links(p, CLIENTS, "up")
    hello = frame(1, b"\xff" * 6, b"to all")
    a.send(hello)
    assert b.recv(9000) == hello and c.recv(9000) == hello
    answer = frame(2, mac(1), b"to one")
    b.send(answer)
    assert a.recv(9000) == answer and silent(c)

    # One too many is sent away; a place is free again when its client has left.
    d = client()
    assert d.recv(9000) == b""
    c.close()
    links(p, 1, "down")
    e = client()
    links(p, 1, "up")
    a.send(hello)
    assert e.recv(9000) == hello and b.recv(9000) == hello

    # Nothing that a client sends ends the switch: too short, too long, and a client that never reads.
    for length in (0, 1, 13, 60, 4218, 4219, 9000, 60000):
        e.send(b"\xfe" * length) if length else e.send(frame(3, mac(9), b"x"))
    for _ in range(20000):
        try:
            a.send(frame(1, mac(2), b"y" * 1000), socket.MSG_DONTWAIT)
        except BlockingIOError:
            time.sleep(0.001)
    e.send(frame(3, mac(1), b"still here"))
    while b"still here" not in a.recv(9000):
        pass

    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 0
    assert not os.path.exists(path)
    ports = json.load(open(stats))
    received = sum(port["rx_packets"] + port["copies"] for port in ports["ports"])
    ended = sum(port["tx_packets"] + sum(sum(lane["drops"].values()) for lane in port["lanes"]) for port in ports["ports"])
    assert received == ended + ports["queued"], (received, ended, ports["queued"])

    # What a killed switch leaves behind does not hinder the next one; one that runs does.
    p = start()
    p.kill()
    p.wait()
    assert os.path.exists(path)
    p = start()
    second = subprocess.run([switch, "--port", f"socket={path}", "--set", "eal.hugepages=no"], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and "another program listens there" in second.stderr, second
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 0
    print(f"{received} frames: all accounted for")


try:
    main()
finally:
    subprocess.run(["rm", "-rf", tmp], check=True)
