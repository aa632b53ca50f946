#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""switch_socket.py UROCE_SWITCH UROCE_CTL: programs without privileges as ports of a switch: a unix socket, one frame a
message. Two switches joined by memif are discovered by uroce-ctl over such a socket."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

CLIENTS = 3
# Beside a build, a write that reaches the disk (fsync) may take long; nothing that the switch owes depends on it.
PATIENCE_S = 200
switch, ctl = sys.argv[1:]
tmp = tempfile.mkdtemp(prefix="uroce-switch-")
path, stats = f"{tmp}/fabric.sock", f"{tmp}/stats.json"
started = []


def client():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.settimeout(PATIENCE_S)
    return s


def mac(host):
    return bytes([2, 0, 0, 0, 0, host])


def frame(src, dst, text):
    return dst + mac(src) + b"\x88\xb5" + text.ljust(50)


def crc_of(packet):
    """The ICRC of an IPv6 packet (IBA A17.3): ones before it, and for what routers change."""
    masked = bytearray(packet)
    masked[0] |= 0x0f
    masked[1:4] = b"\xff" * 3
    masked[7] = 0xff
    masked[46:48] = b"\xff\xff"
    masked[52] = 0xff
    return zlib.crc32(b"\xff" * 8 + masked).to_bytes(4, "little")


GET, SET, TRAP, NOTICE, NODE_INFO, LFT = 1, 2, 5, 2, 0x11, 0x19


def smp(tid, method=GET, attribute=NODE_INFO, modifier=0, data=b"", further=b""):
    """A directed-route SMP with one hop, to the neighbour, or further by its ports, as docs/design/management.md says."""
    mad = struct.pack(">BBBBHBBQHHI", 1, 0x81, 1, method, 0, 1, 1 + len(further), tid, attribute, 0, modifier) + bytes(8) + b"\xff" * 4
    mad = (mad.ljust(64, b"\0") + data).ljust(128, b"\0") + b"\0\1" + further
    bth = struct.pack(">BBHII", 0x64, 0x40, 0xffff, 0, 0) + bytes(7) + b"\0"
    payload = bth + mad.ljust(256, b"\0")
    udp = struct.pack(">HHHH", 0xc000, 4791, 8 + len(payload) + 4, 0)
    ip = struct.pack(">IHBB", 0x6 << 28 | 56 << 22, len(udp) + len(payload) + 4, 17, 255)
    ip += bytes.fromhex("fe80" + "00" * 6 + "000000fffe000001") + bytes.fromhex("ff02" + "00" * 13 + "01")
    packet = ip + udp + payload
    return bytes.fromhex("0180c200000e") + mac(1) + b"\x86\xdd" + packet + crc_of(packet)


def check_agent(s, port):
    """The agent answers, to this port only."""
    s.send(smp(0x1234))
    answer = s.recv(9000)
    packet = answer[14:]
    assert packet[-4:] == crc_of(packet[:-4])
    mad = packet[40 + 8 + 12 + 8:]
    assert mad[3] == 0x81 and struct.unpack(">Q", mad[8:16])[0] == 0x1234, mad[:24].hex()
    info = mad[64:]
    assert info[2] == 2 and info[3] == CLIENTS, "a switch with its ports"
    assert info[36] == port, "the port at which the request arrived"


def silent(s):
    s.settimeout(0.3)
    try:
        return s.recv(9000) is None
    except TimeoutError:
        return True
    finally:
        s.settimeout(PATIENCE_S)


def start(*ports, more=()):
    ports = ports or (f"socket={path},clients={CLIENTS},mode=0600",)
    p = subprocess.Popen([switch, *(word for port in ports for word in ("--port", port)), "--set", "eal.hugepages=no",
                          "--set", "forwarding.frames=128", "--json", stats, *more], stdout=subprocess.PIPE, text=True)
    started.append(p)
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

    check_agent(a, 1)
    check_agent(b, 2)
    assert silent(c)

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
    assert p.wait(PATIENCE_S) == 0
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
    assert p.wait(PATIENCE_S) == 0
    print(f"{received} frames: all accounted for")


def fabric():
    """uroce-ctl sees both switches, the link between them, and that it goes down."""
    first = start(f"socket={path},clients=2", f"memif={tmp}/link.sock")
    second = start(f"memif={tmp}/link.sock,role=client", f"socket={tmp}/other.sock,clients=1")
    links(first, 1, "up")

    def topology():
        done = subprocess.run([ctl, "topology", "--socket", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout

    both = topology()
    assert len(re.findall("^#. switch ", both, re.M)) == 2, both
    # Port 3 of the first and port 1 of the second are linked.
    assert re.search('3  init .* switch #2 .* port 1$', both, re.M) and re.search('1  init .* switch #1 .* port 3$', both, re.M), both
    end(second)
    links(first, 1, "down")
    one = topology()
    assert len(re.findall("^#. switch ", one, re.M)) == 1 and re.search("3  down", one), one
    end(first)
    print("uroce-ctl: two switches, then one")


def saved(state, route):
    """Waits until the state has the route."""
    until = time.monotonic() + PATIENCE_S
    while route not in json.load(open(state))["lft"]:
        assert time.monotonic() < until, f"{route} is not saved"
        time.sleep(0.1)


def restart():
    """What a manager has set is there again in the next switch, with the same ports; what is not a state is refused."""
    state = f"{tmp}/state.json"
    table = bytes([255, 2, 0, 1] + [255] * 60)

    def ask(s, *words):
        s.send(smp(*words))
        answer = s.recv(9000)[14 + 40 + 28:]
        assert answer[3] == 0x81 and not answer[4] & 0x7f and not answer[5], answer[:24].hex()
        return answer[64:128]

    # Without a state, too, it is the same node when it is started again.
    guids = []
    for _ in range(2):
        p = start()
        s = client()
        links(p, 1, "up")
        guids.append(ask(s, 1)[12:20])
        end(p)
    assert guids[0] == guids[1], f"the GUID of a switch of sockets changes: {guids}"
    # A link in place of the new file is not followed.
    os.symlink(f"{tmp}/victim", f"{state}.new")
    p = start(more=("--state", state))
    s = client()
    links(p, 1, "up")
    assert ask(s, 1, SET, LFT, 0, table) == table
    guid = ask(s, 5)[12:20]
    end(p)
    assert os.stat(state).st_mode & 0o777 == 0o600
    assert not os.path.exists(f"{tmp}/victim") and not os.path.lexists(f"{state}.new")
    p = start(more=("--state", state))
    s = client()
    links(p, 1, "up")
    assert ask(s, 2, GET, LFT) == table
    assert ask(s, 6)[12:20] == guid, "a switch of sockets keeps its GUID"
    # A save that fails is repeated until it succeeds. (A directory is in the way: also for root.)
    os.mkdir(f"{state}.new")
    other = bytes([255] * 32 + [2] + [255] * 31)
    assert ask(s, 7, SET, LFT, 0, other) == other
    time.sleep(2.5)
    assert [32, 2] not in json.load(open(state))["lft"]
    os.rmdir(f"{state}.new")
    saved(state, [32, 2])
    assert ask(s, 8, SET, LFT, 0, table) == table
    # It is written soon after a change, too: nothing is lost with the process.
    table = table[::-1].replace(bytes([255, 1]), bytes([255, 3]))
    assert ask(s, 3, SET, LFT, 0, table) == table
    saved(state, [61, 0])
    p.kill()
    p.wait()
    p = start(more=("--state", state))
    s = client()
    links(p, 1, "up")
    assert ask(s, 4, GET, LFT) == table
    end(p)
    good = json.load(open(state))
    for wrong in ({"lid": 65537}, {"guid": "0x1"}, {"lid": "1"}, {"lft": [[1, 300]]}):
        with open(state, "w") as f_:
            json.dump({**good, **wrong}, f_)
        bad = subprocess.run([switch, "--port", f"socket={path},clients={CLIENTS}", "--set", "eal.hugepages=no", "--state", state],
                             capture_output=True, text=True, timeout=60)
        assert bad.returncode == 1 and "a value that is not valid" in bad.stderr, bad
    with open(state, "w") as f_:
        json.dump(good, f_)
    for text, ports in (("other ports", ["--port", f"socket={path},clients=2"]), ("is not a state", []), ("line 1", [])):
        if not ports:
            with open(state, "w") as f:
                f.write("{}" if text == "is not a state" else "{")
        ports = ports or ["--port", f"socket={path},clients={CLIENTS}"]
        bad = subprocess.run([switch, *ports, "--set", "eal.hugepages=no", "--state", state], capture_output=True, text=True, timeout=60)
        assert bad.returncode == 1 and text in bad.stderr and bad.stderr.count("\n") == 1, bad
    print("a switch that is started again has its forwarding table")


def report(guid, cause, severity, port, sequence):
    """The notice of a fault (docs/design/management.md)."""
    details = struct.pack(">BBBxIQQQQ", severity, cause, port, sequence, 1, 0, 0, guid)
    return struct.pack(">B3sHHH", 1, bytes.fromhex("027572"), 1, 0, 1) + details


def hostile():
    """Reports that a client makes up, in the name of the switch, of itself and of nobody, make no line; a real fault does."""
    p = start(more=("--set", "management.open=yes"))
    a, b = client(), client()
    links(p, 2, "up")
    a.send(smp(1))
    guid = int.from_bytes(a.recv(9000)[14 + 40 + 28 + 64:][12:20], "big")
    shown = f"{tmp}/faults.txt"
    with open(shown, "w") as out:
        watch = subprocess.Popen([ctl, "faults", "--socket", path, "--count", "1", "--duration", "240", "--json", f"{tmp}/faults.json"],
                                 stdout=out)
    try:
        links(p, 1, "up")
        said, until, sequence = "", time.monotonic() + PATIENCE_S, 100
        while "denied by their node" not in said or "0 denied" in said or " 0 of unknown" in said:
            assert time.monotonic() < until and watch.poll() is None, said
            for name, cause, severity, port in ((guid, 0, 3, 2), (guid, 4, 2, 0), (guid + 7, 0, 3, 1), (guid, 200, 9, 1)):
                sequence += 1
                a.send(smp(sequence << 8, TRAP, NOTICE, 0, report(name, cause, severity, port, sequence), bytes([CLIENTS])))
            time.sleep(0.1)
            said = open(shown).read()
        sure = [line for line in said.splitlines() if "not confirmed yet: " not in line]
        assert not any(word in line for line in sure for word in ("critical", "link", "load")), said
        # Of a flood, 8 in a second are shown.
        times = [float(line.split()[0]) for line in said.splitlines() if "not confirmed yet: " in line]
        assert times and all(late - early > 0.5 for early, late in zip(times, times[8:])), said
        b.close()
        assert watch.wait(240) == 0
        said = open(shown).read()
    finally:
        watch.kill()
        watch.wait()
    sure = "\n".join(line for line in said.splitlines() if "not confirmed yet: " not in line)
    lines = re.findall(r"(\w+): (?:#\d+ )?\".*port (\d+): (.*)", sure)
    assert lines == [("critical", "2", "link down")], said
    written = json.load(open(f"{tmp}/faults.json"))
    assert [f["cause"] for f in written[:-1]] == ["link down"] and written[-1]["unconfirmed"]["denied"] > 0, written
    end(p)
    print(f"{written[-1]['unconfirmed']} reports made up, one fault shown")


def flood():
    """A client that sends management packets all the time, and reads nothing, keeps no other from the agent or from data."""
    p = start()
    a, b, c = (client() for _ in range(CLIENTS))
    links(p, CLIENTS, "up")
    hello = frame(3, b"\xff" * 6, b"where I am")
    c.send(hello)
    assert a.recv(9000) == hello
    sent = 0
    for round_ in range(100):
        try:
            for _ in range(200):
                b.send(smp(1000000 + sent), socket.MSG_DONTWAIT)
                sent += 1
        except BlockingIOError:
            pass
        a.send(smp(round_))
        assert struct.unpack(">Q", a.recv(9000)[14 + 40 + 28 + 8:][:8])[0] == round_
        data = frame(1, mac(3), b"data %d" % round_)
        a.send(data)
        assert c.recv(9000) == data
    end(p)
    written = json.load(open(stats))
    ports = written["ports"]
    assert 0 <= written["load"] <= 1
    assert sent > 5000 and ports[2]["rx_packets"] > 5000, (sent, ports[2])
    print(f"{sent} management packets of one client, all answers for the other")


def end(p):
    p.send_signal(signal.SIGTERM)
    assert p.wait(PATIENCE_S) == 0


try:
    main()
    fabric()
    restart()
    hostile()
    flood()
finally:
    for p in started:
        p.kill()
        p.wait()
    subprocess.run(["rm", "-rf", tmp], check=True)
