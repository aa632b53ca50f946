#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroced_rings.py UROCED UROCE_PERF: direct rings between processes that lease ports of uroced; ends that lie, that are stopped, that end, and
a daemon that is started again."""
import os
import random
import signal
import struct
import time

from uroced_bed import Page, conduct, daemon, ended, endpoint, kill, leased, listening, path, ports, stats, text, wait_for
from uroced_client import PATIENCE_S, Lease, Refused, Ring, ip

MANY = 20000  # frames


def forwarded():
    return sum(p["rx_packets"] for p in ports().values())


def server(name, page, *more, **keywords):
    p = endpoint("server", name, *page.options, *more, **keywords)
    return p, listening(name)


def client(name, page, peer, *more, **keywords):
    """Compares every byte. A process of the host may be stopped, so its peer is patient."""
    return endpoint("client", name, "--peer", peer, "--verify", "--timeout", "19", "--retry", "7", *page.options, *more, **keywords)


def interrupted(p, name):
    """Ends uroce-perf client in the middle of its traffic; one that failed has ended before."""
    p.send_signal(signal.SIGINT)
    assert p.wait(PATIENCE_S) == 130, f"{name}: status {p.returncode}"


def address_of(process):
    wait_for("the lease", lambda: process.pid in leased().values())
    return next(address for address, pid in leased().items() if pid == process.pid)


def stop(*processes):
    for p in processes:
        p.kill()
        p.wait()
    wait_for("the end of leases", lambda: not leased())


def two_processes():
    """UROCED-DIRECT-01: the daemon forwards next to nothing of a connection between two processes."""
    page, own = Page(), Page()
    s, peer = server("pair-server", page)
    c = client("pair-client", own, peer, "--op", "write", "--size", "4096", "--duration", "1000", "--bidir")
    wait_for("frames by the ring, both ways", lambda: page.read("direct_tx") and own.read("direct_tx"))
    sent, passed = own.read("direct_tx"), forwarded()
    own.grows("traffic", "direct_tx", MANY)
    page.grows("traffic", "direct_tx", MANY)
    sent, passed = own.read("direct_tx") - sent, forwarded() - passed
    assert passed < sent / 20, f"{sent} frames by the ring, {passed} by the daemon"
    assert [p["rings"] for p in ports().values() if p.get("rings")] == [1, 1], ports()
    interrupted(c, "pair-client")
    s.kill()
    s.wait()


def again():
    """UROCED-DIRECT-01: another process has the same address, and a ring of its own."""
    page, own = Page(), Page()
    s, peer = server("again-server", page)

    def begin(dev):
        return client("again-client", own, peer, "--op", "send", "--size", "2048", "--duration", "1000", dev=dev)

    def uses_ring(c):
        if c.poll() is not None:
            assert "another process has the address" in text("again-client"), text("again-client")
            return None
        return own.read("direct_tx") > 100

    c = begin(f"uroced:{path}")
    wait_for("frames by the ring", lambda: uses_ring(c))
    address = address_of(c)
    c.kill()  # with a ring that it does not give back
    c.wait()
    wait_for("the end of the lease", lambda: address not in leased())
    received = page.read("direct_rx")
    used = None
    while not used:  # addresses rest for a while
        c = begin(f"uroced:{path}@{address}")
        wait_for("frames by the ring", lambda: (used := uses_ring(c)) is None or used)
        used = uses_ring(c)
    assert address_of(c) == address
    wait_for("frames by the other end", lambda: page.read("direct_rx") > received + 100)
    interrupted(c, "again-client")
    stop(s)


def stopped():
    """UROCED-DIRECT-03: one end is stopped; the other one goes on with a third process, and with this one when it goes on."""
    page, own, third = Page(), Page(), Page()
    s, peer = server("stop-server", page)
    c = client("stop-client", own, peer, "--op", "read", "--size", "1M", "--depth", "16", "--duration", "1000")
    other = client("stop-third", third, peer, "--op", "write", "--size", "4096", "--duration", "1000")
    wait_for("two rings", lambda: own.read("direct_tx") and third.read("direct_tx"))
    page.grows("answers by the ring", "direct_tx", MANY)
    for _ in range(3):
        before = page.read("direct_lost")

        def loses():
            """Unless it is stopped when it has asked for less than a ring of frames."""
            c.send_signal(signal.SIGSTOP)
            third.grows("the third process's traffic", "direct_tx", 1000)
            time.sleep(0.2)  # a page is at most 0.1 s old
            lost = page.read("direct_lost") > before
            c.send_signal(signal.SIGCONT)
            own.grows("the traffic to go on", "direct_rx", 1000)
            return lost

        wait_for("frames to be lost", loses)
    interrupted(c, "stop-client")
    interrupted(other, "stop-third")
    stop(s)


# ---- ends that lie ----

def rc(src_mac, dst_mac, src, dst, opcode=4, qpn=0x123456):
    payload = struct.pack(">BBHIII", opcode, 0x40, 0xffff, qpn, 7, 0) + bytes(20)
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0, src, dst)
    return dst_mac + src_mac + b"\x08\0" + header + struct.pack(">HHHH", 50000, 4791, 8 + len(payload), 0) + payload


def mac(address):
    return b"\x02\x75" + address


def attacks(ring, liar, victim, third, rng):
    """Each is what the other end may do for some time."""
    me, it, other = ip(liar), ip(victim), ip(third)

    def forge(*frames):
        for _ in range(128):
            ring.push(rng.choice(frames))

    def sides(*ends):
        """But for the other end's head, by which this one learns what is taken."""
        for at in ends:
            for _ in range(50):
                n = rng.choice((4, 64, 5000))
                i = at + 4 + rng.randrange(ring.side - n - 4)
                ring.memory[i:i + n] = rng.randbytes(n)

    def full_of_garbage():
        """All slots are full, by what they say: of the frames that the other end takes next."""
        for _ in range(128):
            ring.push(rng.randbytes(rng.randrange(ring.frame_max)), rng.choice((0, 57, 58, 100, ring.frame_max, ring.frame_max + 1, 2**32 - 1)))

    def heads():
        for _ in range(1000):
            ring.set_head(rng.getrandbits(32))

    def words():
        for at in 0, 64, 68:
            ring.words[(ring.own + at) // 4] = rng.getrandbits(32)

    def begin_again():
        """As the other end counts."""
        ring.sent = ring.taken()

    return [lambda: forge(rc(mac(other), mac(it), me, it), rc(mac(me), mac(it), other, it), rc(mac(me), mac(it), me, it, 0x64)), full_of_garbage,
            lambda: forge(rc(mac(me), mac(it), me, it), rc(mac(me), mac(it), me, it, 0xc4), rc(mac(me), mac(it), me, it, 0x11)),
            lambda: sides(ring.own), lambda: sides(ring.other), lambda: sides(ring.own, ring.other), heads, words, begin_again]


def attack_during(page, todo, rng):
    """While traffic of another process passes."""
    until = page.read("direct_tx") + MANY
    while (sent := page.read("direct_tx")) < until:
        assert sent, "the traffic has ended"
        for _ in range(20):
            rng.choice(todo)()


def liars():
    """UROCED-DIRECT-01, UROCED-DIRECT-02: whatever an end does with the memory, it is its own harm alone. A client is stopped, and somebody else
    uses its end."""
    page, own = Page(), Page()
    s, peer = server("victim", page)
    liar = client("liar", own, peer, "--op", "write", "--size", "4096", "--duration", "1000")
    wait_for("a ring to the liar", lambda: own.read("direct_tx") > 1000)
    address = address_of(liar)
    liar.send_signal(signal.SIGSTOP)
    # Until then its worker sends.
    assert os.waitid(os.P_PID, liar.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
    ring = Ring.of_process(liar.pid, mac(ip(address)), 4218)
    wait_for("the other end to take what was sent", lambda: ring.taken() == ring.sent)
    own = Page()
    third = client("third", own, peer, "--op", "write", "--size", "4096", "--duration", "1000", "--bidir")
    wait_for("a ring to the third process", lambda: own.read("direct_tx") > 1000)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    forged, garbage, *_ = todo = attacks(ring, address, peer, address_of(third), rng)
    for attack in forged, garbage:
        before, sent = page.read("direct_refused"), ring.sent
        attack()
        wait_for("all frames to be taken", lambda: ring.taken() == (sent + 128) & 0xffffffff)
        wait_for("them to be refused", lambda: page.read("direct_refused") >= before + 128)
    attack_during(own, todo, rng)
    attack_during(own, [*todo, lambda: ring.memory.__setitem__(slice(ring.other, ring.other + 4), rng.randbytes(4))], rng)
    interrupted(third, "third")
    assert "every byte verified" in text("third"), text("third")
    ring.close()
    stop(liar, s)


# ---- what the daemon says ----

def requested(lease, other):
    """Both request a ring, and then this lease is ended by nonsense. What the daemon said until then."""
    other.request_ring(lease.name)
    lease.request_ring(other.name)
    lease.sock.send(b"?")
    got = []
    while (message := lease.told()) is not None:
        got.append(message)
        if isinstance(message, Ring):
            message.close()
    lease.close()
    return got


def ring_of(lease, name):
    """Its next message is of a ring to this client."""
    got = lease.told()
    assert isinstance(got, Ring) and got.name == name, got
    got.close()


def versions():
    """UROCED-DIRECT-01: clients that do not know direct rings get none, nor those with which nobody requests one."""
    for one, two in (1, 1), (1, 2), (2, 1):
        a, b = Lease(path, version=one), Lease(path, version=two)
        assert not requested(a, b)
        b.sock.send(b"?")
        assert b.told() is None
        b.close()
    a, b = Lease(path, version=2), Lease(path, version=2)
    name, other = a.name, b.name
    for nobody in "0.0.0.0", "0.0.0.62", "10.77.0.60", "192.0.2.1", name, other, other:
        a.request_ring(nobody)
    time.sleep(0.1)
    b.request_ring(name)
    ring_of(b, name)
    ring_of(a, other)
    a.request_ring(other)  # a second one
    a.sock.send(b"?")
    assert a.told() is None
    assert b.told() == name, "its other end has left"
    a.close()
    b.close()


def deaf():
    """UROCED-DIRECT-01: a client that does not read learns later that rings have ended, and gets none until it has."""
    a, b = Lease(path, version=2), Lease(path, version=2)
    address, secret = b.address, b.secret
    b.close()
    messages = 0
    while True:
        wait_for("the lease", lambda: leases(address, secret))
        got = requested(Lease(path, address, secret, version=2), a)
        if len(got) != 1:
            break
        messages += 2
        assert messages < 10000, "a socket takes more than any socket"
    while True:
        got = a.told() if messages else None
        if got is None:
            break
        assert isinstance(got, Ring) if messages % 2 == 0 else got == address, (got, messages)
        if isinstance(got, Ring):
            got.close()
        messages -= 1
    a.sock.settimeout(0.5)
    try:
        more = a.told()
        raise AssertionError(f"told {more}")
    except TimeoutError:
        a.sock.settimeout(PATIENCE_S)
    b = Lease(path, address, secret, version=2)
    a.request_ring(address)
    b.request_ring(a.address)
    ring_of(b, a.address)
    ring_of(a, address)
    b.close()
    assert a.told() == address
    a.close()


def leases(address, secret):
    """Whether the daemon has seen the end of the lease before."""
    try:
        Lease(path, address, secret).close()
    except Refused as e:
        assert str(e) == "taken", e
        return False
    return True


def stands_still(page):
    before = page.read("direct_tx")
    time.sleep(0.5)  # a page is at most 0.1 s old
    return page.read("direct_tx") == before


def restarted(first):
    """UROCED-DIRECT-01, UROCED-RELEASE-01: without a daemon there is no ring; with the next one there is another."""
    page, own = Page(), Page()
    s, peer = server("restart-server", page)
    c = client("restart-client", own, peer, "--op", "write", "--size", "4096", "--duration", "1000")
    wait_for("frames by the ring", lambda: own.read("direct_tx") > 100 and len(leased()) == 2)
    before = leased()
    kill(first)
    wait_for("the end of the ring", lambda: stands_still(own))
    second = daemon()
    wait_for("the same leases", lambda: os.path.exists(stats) and leased() == before)
    own.grows("frames by a ring of the new daemon", "direct_tx", 1000)
    interrupted(c, "restart-client")
    stop(s)
    return second


def without(*options):
    """UROCED-DIRECT-01: a daemon that gives no rings."""
    d = daemon(*options)
    a, b = Lease(path, version=2), Lease(path, version=2)
    assert not requested(a, b), options
    b.close()
    page, own = Page(), Page()
    s, peer = server("without-server", page)
    c = client("without-client", own, peer, "--op", "write", "--size", "4096", "--duration", "1000")
    own.grows("traffic by the daemon", "rx_frames", 100)
    passed = forwarded()
    wait_for("traffic by the daemon", lambda: forwarded() > passed + 200)
    assert not own.read("direct_tx") and not page.read("direct_tx") and not page.read("direct_rx"), options
    interrupted(c, "without-client")
    s.kill()
    s.wait()
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 60)


def one_address():
    """UROCED-DIRECT-04: processes with one address have rings as well."""
    d = daemon("--address", "10.78.0.1/24")
    two_processes()
    versions()
    stopped()
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 60)


def main():
    for options in ("--no-direct",), ("--rate", "1"), ("--no-direct", "--address", "10.78.0.1/24"):
        without(*options)
        print(f"no rings with {' '.join(options)}")
    one_address()
    print("processes with one address have rings")
    d = daemon()
    two_processes()
    print("two processes have a ring")
    versions()
    deaf()
    print("the daemon says when a ring has ended, and clients that do not know rings get none")
    again()
    print("another process with the same address has a ring of its own")
    stopped()
    print("a process that is stopped stops no other")
    liars()
    print("an end that lies harms itself alone")
    d = restarted(d)
    print("the daemon is killed and started again, and its clients have another ring")
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 60)


conduct(main)
