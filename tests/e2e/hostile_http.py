#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hostile_http.py ADDRESS PORT SECONDS [PATH]: for so long 200 connections at a time that say nothing, say one byte a
time, send headers without an end, or garbage. In the end an honest request must be answered."""
import random
import select
import socket
import sys
import time

address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
path = sys.argv[4] if len(sys.argv) > 4 else "/metrics"
start = time.monotonic()
rng = random.Random(1)
made = refused = 0


def silent(s):
    pass


def slow(s):
    s.send(b"G")


def huge(s):
    s.send(f"GET {path} HTTP/1.1\r\n".encode() + b"X: " + b"y" * 65536)


def huge_path(s):
    s.send(b"GET /" + b"a" * 100000)


def huge_body(s):
    s.send(f"POST {path} HTTP/1.1\r\n".encode() + b"Host: x\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 65536)


def garbage(s):
    s.send(rng.randbytes(2000))


def greedy(s):
    s.send(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode() * 50)  # and never reads the answers


kinds = [silent, slow, slow, huge, huge_path, huge_body, garbage, greedy]
open_now = []
while time.monotonic() - start < seconds:
    while len(open_now) < 200:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.setblocking(False)
        try:
            s.connect((address, port))
        except BlockingIOError:
            pass
        open_now.append((s, rng.choice(kinds)))
        made += 1
    time.sleep(0.05)
    _, writable, _ = select.select([], [s for s, _ in open_now], [], 0)
    for s, kind in list(open_now):
        if s not in writable:
            continue
        try:
            kind(s)
        except BlockingIOError:
            continue
        except OSError:
            refused += 1
            open_now.remove((s, kind))
            s.close()
for s, _ in open_now:
    s.close()

def ask():
    with socket.create_connection((address, port), 60) as honest:
        honest.settimeout(60)
        honest.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        said = b""
        while piece := honest.recv(65536):
            said += piece
        return said


# The server has closed the slow ones by now, or does so soon: until then it refuses more.
end = time.monotonic() + 120
while True:
    try:
        answer = ask()
        break
    except ConnectionError:
        if time.monotonic() > end:
            raise
        time.sleep(0.1)
assert answer.startswith(b"HTTP/1.1 200 "), answer[:100]
assert refused > 0, "the server has ended none of these connections"
print(f"{made} connections, {refused} of them ended by the server")
