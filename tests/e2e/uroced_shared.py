#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroced_shared.py UROCED UROCE_PERF: processes that share one address. Connections between them, and by a veth pair with another daemon and with
an endpoint without one; one that lies, one that is killed, a daemon that is started again. With UROCE_RUN, unmodified programs as well."""
import os
import shutil
import signal
import struct
import subprocess
import sys

from uroced_bed import Page, conduct, daemon, ended, endpoint, kill, leased, listening, path, ports, program, run, start, text, tmp, total, wait_for
from uroced_client import PATIENCE_S, RING, Lease, Memif

HOST, PEER = "10.78.0.1", "10.78.0.2"
OPTIONS = "--per-user", "8", "--clients", "8"
LINKS = f"uca{os.getpid() % 100000}", f"ucb{os.getpid() % 100000}"
NS = f"uroced{os.getpid()}"


def traffic(name, op, to=HOST, server=None, client=None):
    """server, client: keywords of endpoint()."""
    s = endpoint("server", f"{name}-server", "--once", **(server or {}))
    listening(f"{name}-server")
    c = endpoint("client", f"{name}-client", "--peer", to, "--op", op, "--size", "20000", "--iters", "50", "--verify", **(client or {}))
    ended(c, f"{name}-client")
    ended(s, f"{name}-server")


def listens(name):
    wait_for(name, lambda: "listens on port" in text(name))


def pair(name, server, client, server_socket=path, client_socket=path):
    """Two unmodified programs; the server listens by rdma_cm."""
    s = program(f"{name}-server", *server, socket=server_socket)
    listens(f"{name}-server")
    ended(program(f"{name}-client", *client, socket=client_socket), f"{name}-client")
    ended(s, f"{name}-server")


def one_host():
    """UROCED-STEER-01, UROCED-STEER-02, CM-PREFIX-01."""
    traffic("write", "write")
    server = endpoint("server", "first")
    listening("first")
    second = endpoint("server", "second")
    assert second.wait(120) and "in use" in text("second"), text("second")
    return server


def refusals(server):
    """UROCED-SELF-01, UROCED-PORTS-02: a listener that is killed leaves its port, and requests for it are refused."""
    before = ports()["the host itself"]["cm"]["no_service"]
    server.kill()
    server.wait()
    wait_for("the end of the lease", lambda: not leased())
    client = endpoint("client", "refused", "--peer", HOST, "--iters", "1")
    assert client.wait(60), "there is no listener"
    wait_for("a refusal", lambda: ports()["the host itself"]["cm"]["no_service"] > before)


def datagram(lease, sport, dport, data=b""):
    """UDP to the host."""
    udp = struct.pack(">HHHH", sport, dport, 8 + len(data), 0) + data
    return (lease.mac + lease.mac + b"\x08\0" +
            struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, lease.ip, lease.ip) + udp)


def roce(lease, dqpn, sqpn):
    """A datagram from queue pair sqpn, without a right checksum: the daemon does not look at it."""
    bth = struct.pack(">BBHII", 0x64, 0, 0xffff, dqpn, 0) + struct.pack(">II", 1, sqpn) + bytes(20)
    return datagram(lease, 0xc000, 4791, bth)


def wake(lease, number):
    """A UDP datagram to the discard port, without data."""
    return datagram(lease, number, 9)


def liar():
    """UROCED-GUARD-02."""
    a, b = Lease(path), Lease(path)
    assert a.ip == b.ip and a.mac == b.mac and 0 < a.number < 63 and 0 < b.number < 63 and a.number != b.number
    m, victim = Memif(a), Memif(b)
    wait_for("both links", lambda: len([p for p in ports().values() if "lease" in p and p["link_up"]]) == 2)
    to, before = b.number << 18 | 7, total("qpn")
    m.send(roce(a, to, b.number << 18 | 9))
    m.send(roce(a, to, 1))
    m.send(good := roce(a, to, a.number << 18 | 9))
    assert victim.frames(0.3, 1) == [good]
    assert not m.frames(0.1)
    wait_for("counters", lambda: total("qpn") == before + 2)
    victim.put(RING + 4, 0)  # it sleeps
    for number in 0, 63, b.number + 64, a.number:  # UROCED-DIRECT-04
        m.send(wake(a, number))
    m.frames(0.1)
    assert not b.woken() and not victim.frames(0.1)
    m.send(wake(a, b.number))
    assert b.woken(PATIENCE_S) and victim.frames(0.3, 1) == [wake(a, b.number)]
    for lease in a, b:
        lease.close()
    m.close()
    victim.close()
    wait_for("the end of the leases", lambda: not leased())


def restarted(d, noted=True):
    """UROCED-NUMBER-01, UROCED-RELEASE-03: a listener is there for new clients after its daemon was started again, also if the first one
    had not noted the lease."""
    server = endpoint("server", "kept", "--once")
    listening("kept")
    wait_for("lease", lambda: server.pid in leased().values())
    kill(d, noted)
    d = daemon("--address", f"{HOST}/24", *OPTIONS)
    wait_for("the lease again", lambda: os.path.exists(f"{tmp}/stats.json") and server.pid in leased().values())
    ended(endpoint("client", "later", "--peer", HOST, "--iters", "20"), "later")
    ended(server, "kept")
    return d


def ip(*command, ns=None):
    subprocess.run(["ip", *(("-n", ns) if ns else ()), *command], check=True)


def make_network():
    """A veth pair to another network namespace."""
    if subprocess.run(["ip", "netns", "add", NS], check=False).returncode or subprocess.run(
            ["ip", "link", "add", LINKS[0], "type", "veth", "peer", "name", LINKS[1], "netns", NS], check=False).returncode:
        return False
    ip("link", "set", LINKS[0], "up")
    ip("link", "set", LINKS[1], "up", ns=NS)
    return True


def stop(d):
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 10)


def uplink():
    """Another host: a daemon, and an endpoint of its own."""
    d = daemon("--address", f"{HOST}/24", *OPTIONS, "--uplink", f"dev={LINKS[0]}")
    far = f"{tmp}/far.sock"
    other = daemon("--address", f"{PEER}/24", *OPTIONS, "--uplink", f"dev={LINKS[1]}", "--json", f"{tmp}/far.json", socket=far, ns=NS)
    if run and shutil.which("rping"):
        pair("far", ("rping", "-s", "-a", "0.0.0.0", "-C", "5"), ("rping", "-c", "-a", PEER, "-C", "5"), far, path)
    else:
        traffic("up", "write", HOST, client={"dev": f"uroced:{far}"})
    stop(other)
    print("two hosts with a daemon each")
    ip("address", "add", f"{PEER}/24", "dev", LINKS[1], ns=NS)
    traffic("own", "write", PEER, server={"dev": LINKS[1], "ns": NS})
    subprocess.run(["ip", "netns", "exec", NS, "ping", "-c", "1", "-W", "5", HOST], check=True, stdout=subprocess.DEVNULL)
    stop(d)
    print("a host with an endpoint of its own, and its kernel's ping")


def has_ring():
    """UROCED-DIRECT-04: between two processes of this host."""
    pages = Page(), Page()
    server = endpoint("server", "near", *pages[0].options)
    listening("near")
    client = endpoint("client", "near-client", "--peer", HOST, "--verify", "--duration", "1000", *pages[1].options)
    for page in pages:
        page.grows("frames to the ring", "direct_tx", 100)
        page.grows("frames from the ring", "direct_rx", 100)
    client.send_signal(signal.SIGINT)
    assert client.wait(60) == 130, text("near-client")
    server.kill()
    server.wait()


def share():
    """UROCED-KERNEL-01: the address of a kernel interface, which keeps everything else."""
    ip("address", "add", f"{HOST}/24", "dev", LINKS[0])
    ip("neighbour", "flush", "dev", LINKS[1], ns=NS)  # which has the MAC address of the daemon before
    d = daemon("--share", LINKS[0], *OPTIONS)
    traffic("shared", "write", HOST, client={"dev": LINKS[1], "ns": NS})
    traffic("sharing", "read", PEER, server={"dev": LINKS[1], "ns": NS})
    subprocess.run(["ping", "-c", "1", "-W", "5", PEER], check=True, stdout=subprocess.DEVNULL)
    has_ring()
    stop(d)
    print("the address of the kernel")


def main():
    if os.getuid() != 0:
        print("skipped: needs root, for network interfaces")
        sys.exit(77)
    d = daemon("--address", f"{HOST}/24", *OPTIONS)
    refusals(one_host())
    print("processes with one address connect to each other, and a port has one listener")
    liar()
    print("a liar is stopped")
    d = restarted(restarted(d), noted=False)
    print("the daemon is killed and started again, and a listener has its port")
    if run and shutil.which("rping") and shutil.which("ibv_rc_pingpong"):
        pair("rping", ("rping", "-s", "-a", "0.0.0.0", "-C", "5", "-V"), ("rping", "-c", "-a", "127.0.0.1", "-C", "5", "-V"))
        pair("udaddy", ("udaddy", "-b", HOST, "-C", "3"), ("udaddy", "-s", "127.0.0.1", "-C", "3"))
        print("rping and udaddy, over 127.0.0.1")
    stop(d)
    if not make_network():
        print("no veth pair can be made here: other hosts are not tested")
        return
    uplink()
    share()


def remove_network():
    for command in ("link", "delete", LINKS[0]), ("netns", "delete", NS):
        subprocess.run(["ip", *command], check=False, stderr=subprocess.DEVNULL)


conduct(main, remove_network)
