#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroced.py UROCED UROCE_PERF: processes of one host that lease ports; one that lies, one that is killed, a daemon that is started
again. With UROCE_RUN, unmodified programs as well."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from fuse_mute import Mute
from uroced_bed import conduct, daemon, ended, endpoint, kill, leased, listening, logs, path, perf, program, refused, run, start, stats, text, tmp, total, wait_for
from uroced_client import PATIENCE_S, RING, SLOTS, Lease, Memif, Refused, ip


def interrupted(p, name):
    """Ends uroce-perf client in the middle of its traffic; one that failed has ended before."""
    p.send_signal(signal.SIGINT)
    if p.wait(60) != 130:
        sys.exit(f"{name}: status {p.returncode}\n" + logs())


def intervals(name):
    """How many intervals of uroce-perf --live had packets on a lane."""
    return len(re.findall(r"^ +\d+ \d+ +[1-9]\d* ", text(name), re.M))


# ---- what a client may send ----

def ip4(src, dst, source, destination):
    payload = bytes(26)
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0, source, destination)
    return dst + src + b"\x08\0" + header + payload


def arp(src, sender_mac, sender_ip, target):
    return b"\xff" * 6 + src + b"\x08\x06" + struct.pack(">HHBBH6s4s6s4s", 1, 0x800, 6, 4, 1, sender_mac, sender_ip, bytes(6), target) + bytes(18)


def liar():
    """UROCED-GUARD-01: forged frames are dropped and counted, others arrive."""
    a, b = Lease(path), Lease(path)
    m, victim = Memif(a), Memif(b)
    victim.frames(0.2)
    good = [ip4(a.mac, b.mac, a.ip, b.ip), arp(a.mac, a.mac, a.ip, b.ip)]
    bad = {"mac": ip4(b.mac, b.mac, a.ip, b.ip), "ip": ip4(a.mac, b.mac, ip("10.77.0.60"), b.ip), "arp": arp(a.mac, a.mac, b.ip, a.ip),
           "vlan": b.mac + a.mac + b"\x81\0\0\x01" + bytes(50), "management": b"\x01\x80\xc2\0\0\x0e" + a.mac + b"\x86\xdd" + bytes(60),
           "type": b.mac + a.mac + b"\x88\xb5" + bytes(50), "truncated": b"short",
           "nd": b.mac + a.mac + b"\x86\xdd" + struct.pack(">IHBB", 0x60000000, 24, 58, 255) + b"\xfe\x80" + bytes(6) +
           bytes([a.mac[0] ^ 2]) + a.mac[1:3] + b"\xff\xfe" + a.mac[3:] + bytes(16) + bytes([134]) + bytes(23)}
    m.send(good[0])
    for frame in bad.values():
        m.send(frame)
        m.send(frame)
    m.send(good[1])
    got = victim.frames(0.5, 2)
    assert got == good, [f.hex() for f in got]
    wait_for("counters", lambda: all(total(reason) == 2 for reason in bad))
    return a, b, m, victim


def hostile_memif(lease, m):
    """UROCED-RING-01, UROCED-REGION-01: what a client writes to its memory, and says of it, is its own harm alone."""
    before = total("broken")
    m.desc(0, m.head, 100, 0xfffffff0)
    m.put(6, m.head + 1)
    assert m.ended()
    wait_for("broken", lambda: total("broken") == before + 1)
    m = Memif(lease)  # the lease is still there
    m.put(6, 0x8000)
    assert m.ended()
    for wrong, options in {"No such lease": {"secret": b"0" * 22}, "Already connected": {},
                           "The memory is not sealed against shrinking": {"seal": False},
                           "The memory is larger than it says": {"larger": 4096},
                           "The memory cannot be sealed against growing": {"grows": True},
                           "The ring does not fit": {"ring_offset": 0x7ffffff8}}.items():
        held = Memif(lease) if wrong.startswith("Already") else None
        try:
            Memif(lease, **options)
        except Refused as e:
            assert str(e) == wrong, f"refused because: {e}"
        else:
            raise AssertionError(f"accepted, although: {wrong}")
        if held:
            held.close()


def sleeper(lease, other):
    """UROCED-WAKE-01: a client that sleeps is woken by what comes; one that says so for ever, and does not read, stops nobody."""
    m, sender = Memif(lease), Memif(other)
    frame = ip4(other.mac, lease.mac, other.ip, lease.ip)
    sender.frames(0.1)
    m.frames(0.1)
    sender.send(frame)
    assert m.frames(0.2, 1) == [frame] and not lease.woken(), "it polls"
    m.put(RING + 4, 0)
    before = total("wakes")
    sender.send(frame)
    assert lease.woken(PATIENCE_S) and m.frames(0.2, 1) == [frame]
    wait_for("wakes", lambda: total("wakes") > before)
    for _ in range(50):
        for _ in range(SLOTS // 2):
            sender.send(frame)
        assert len(m.frames(0.02)) <= SLOTS
    m.frames(0.1)
    lease.wake.shutdown(socket.SHUT_RDWR)  # and one that is not there
    sender.send(frame)
    assert m.frames(0.3, 1) == [frame]
    for end in m, sender:
        end.close()
    try:
        lease.wake.send(b"?")
        raise AssertionError("the daemon can be sent something")
    except BrokenPipeError:
        pass


def naps(pid):
    """How often the thread that forwards has slept."""
    with open(f"/proc/{pid}/task/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])


def dozer(pid, lease, other):
    """UROCED-WAKE-02: a client that does not know of interrupts is looked at often; when all do, the daemon sleeps. One that does not keep
    to it, or does so without end, is its own harm alone."""
    m, target = Memif(lease), Memif(other)
    frame = ip4(lease.mac, other.mac, lease.ip, other.ip)
    back = ip4(other.mac, lease.mac, other.ip, lease.ip)
    m.frames(0.1)
    target.frames(0.1)
    lease.interrupt()
    m.send(frame)
    assert target.frames(0.1, 1) == [frame], "the other one does not know of interrupts"
    other.interrupt()
    wait_for("the end of short sleeps", lambda: (before := naps(pid), time.sleep(0.5), naps(pid))[2] - before < 1000)
    wait_for("the daemon to ask for interrupts", lambda: m.get(4) == 0)
    m.send(frame)  # and does not interrupt
    assert target.frames(0.1, 1) == [frame]
    for _ in range(10000):
        lease.interrupt()
    os.eventfd_read(lease.event)
    os.eventfd_write(lease.event, 2**64 - 2)  # as full as it gets
    os.set_blocking(lease.event, True)  # of the daemon's, too
    target.send(back)
    assert m.frames(0.1, 1) == [back]
    m.send(frame)
    assert target.frames(0.1, 1) == [frame]
    for end in m, target:
        end.close()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def strange_descriptors(pid, lease):
    """UROCED-REGION-02: what else a client may send in place of memory: refused, and closed."""
    before, began = descriptors(pid), time.monotonic()
    ends = os.pipe()
    with open(f"{tmp}/file", "w+b") as file, open("/dev/zero", "r+b") as zero:
        file.truncate(1 << 20)
        for fd in *ends, file.fileno(), zero.fileno(), lease.sock.fileno():
            try:
                Memif(lease, fd=fd)
            except Refused as e:
                assert str(e) == "The memory is not sealed against shrinking", e
            else:
                raise AssertionError("accepted")
    for fd in ends:
        os.close(fd)
    m = Memif(lease)
    assert time.monotonic() - began >= 0.1, "a user makes four regions in 0.1 s"
    m.close()
    wait_for("its descriptors are closed", lambda: descriptors(pid) == before)


def mute(pid, lease, other):
    """UROCED-REGION-02, UROCED-CLOSE-01: a file whose close() does not end."""
    os.mkdir(f"{tmp}/fuse")
    try:
        fuse = Mute(f"{tmp}/fuse")
    except OSError as e:
        print(f"no file system in user space here: {e}")
        return
    before = descriptors(pid)
    try:
        Memif(lease, early=fuse.fd).sock.close()
        wait_for("close() of what came before the region", lambda: fuse.flushes)
        try:
            Memif(lease, fd=fuse.fd)
        except Refused as e:
            assert "not sealed" in str(e)
        wait_for("close()", lambda: fuse.flushes > 1)
        a, b = Memif(lease), Memif(other)
        b.frames(0.1)
        a.send(frame := ip4(lease.mac, other.mac, lease.ip, other.ip))
        assert b.frames(0.3, 1) == [frame]
        assert fuse.held and descriptors(pid) > before, "close() has ended"
        a.close()
        b.close()
    finally:
        fuse.close()
    wait_for("its descriptors are closed", lambda: descriptors(pid) == before)
    print("a file whose close() does not end stops no other client")


def rate():
    """UROCED-RATE-01."""
    d = daemon("--rate", "0.01")
    lease = Lease(path)
    m = Memif(lease)
    began = time.monotonic()
    for _ in range(40):
        m.send(ip4(lease.mac, lease.mac, lease.ip, lease.ip) + bytes(3940))
    took = time.monotonic() - began
    assert took >= 38 * 4000 * 8 / 1e7, f"{took} s"
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 10)
    lease.close()


def configurations():
    """UROCED-CLIENT-01: what the lease has cannot be set."""
    for setting in "address.ipv4=10.77.0.9/24", "address.mac=02:00:00:00:00:01", "port.driver=tap", "worker.count=2":
        done = subprocess.run([perf, "server", "--dev", f"uroced:{path}", "--set", setting], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "uroced" in done.stderr and setting.split("=")[0].split(".")[1] in done.stderr, done.stderr
    for name, why in {"uroced:/nowhere/s.sock": "no uroced listens", f"uroced:{path}@10.99.0.1": "not in its range",
                      f"uroced:{path}@nowhere": "not an IPv4 address"}.items():
        done = subprocess.run([perf, "server", "--dev", name], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def quota():
    """UROCED-LEASE-01, as another user: how many leases it gets, and why no more."""
    ours, theirs = os.pipe()
    os.chmod(tmp, 0o755)
    child = os.fork()
    if not child:
        kept = []
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            while True:
                kept.append(Lease(path))
        except (Refused, OSError) as e:
            os.write(theirs, f"{len(kept)} {e}".encode())
        os._exit(0)
    os.close(theirs)
    said = os.read(ours, 200).decode()
    os.waitpid(child, 0)
    return said


def crowd():
    """UROCED-NEW-01: two other users take all places with connections that say nothing."""
    ours, theirs = os.pipe()
    end, hold = os.pipe()
    for uid in 65531, 65532:
        if os.fork():
            continue
        try:
            os.close(hold)
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(32)]
            for s in silent:
                s.connect(path)
            os.write(theirs, b".")
            os.read(end, 1)
        finally:
            os._exit(0)
    for _ in range(2):
        assert os.read(ours, 1) == b"."
    Lease(path).close()
    os.close(hold)
    for fd in ours, theirs, end:
        os.close(fd)
    for _ in range(2):
        os.wait()


def interrupting(pid):
    """How many clients have written to the eventfd that came with their lease."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                found = re.search(r"^eventfd-count:\s+([0-9a-f]+)", f.read(), re.M)
        except FileNotFoundError:
            continue
        count += bool(found and int(found[1], 16))
    return count


def killed(pid):
    """A client that is killed harms no other, and its address rests. EDGE-REST-05: endpoints interrupt the daemon by their drivers."""
    before = interrupting(pid)
    server = endpoint("server", "server", "--once")
    peer = listening("server")
    other = endpoint("server", "other")
    address = listening("other")
    client = endpoint("client", "client", "--peer", peer, "--op", "write", "--size", "4096", "--duration", "200", "--timeout", "19",
                      "--live", "--live-interval", "0.2")
    wait_for("three leases and traffic", lambda: len(leased()) == 3 and intervals("client"))
    wait_for("interrupts", lambda: interrupting(pid) == before + 3)
    other.kill()
    other.wait()
    wait_for("end of the lease", lambda: address not in leased())
    refused("taken", address)
    before = intervals("client")
    wait_for("others' traffic", lambda: intervals("client") > before + 1)
    interrupted(client, "client")
    ended(server, "server")
    wait_for("the address", lambda: granted(address), 10)


def granted(address):
    try:
        Lease(path, address).close()
    except Refused as e:
        assert str(e) == "taken"
        return False
    return True


def restarted(first, noted=True):
    """UROCED-RELEASE-01, UROCED-EVENT-01: traffic goes on when the daemon is there again, with the same addresses. UROCED-RELEASE-03: also if the
    first one had not noted the leases."""
    server = endpoint("server", "server2", "--once")
    peer = listening("server2")
    watch = None
    if run and shutil.which("ibv_asyncwatch"):
        watch = start(run, "--dev", f"uroced:{path}", "ibv_asyncwatch", stdout=open(f"{tmp}/watch.log", "w", encoding="utf-8"),
                      stderr=subprocess.STDOUT)
    client = endpoint("client", "client2", "--peer", peer, "--op", "write", "--size", "4096", "--duration", "200", "--timeout", "19", "--retry", "7",
                   "--live", "--live-interval", "0.2")
    wait_for("leases and traffic", lambda: len(leased()) == 2 + bool(watch) and intervals("client2"))
    if watch:  # it sees the events of a device that it has opened
        wait_for("ibv_asyncwatch", lambda: "async event FD" in text("watch"))
    before = leased()
    kill(first, noted)
    second = daemon()
    if noted:
        refused("taken", peer)
    wait_for("the same leases", lambda: os.path.exists(stats) and leased() == before)
    wait_for("interrupts of the daemon that was started again", lambda: interrupting(second.pid) >= len(before))
    passed = intervals("client2")
    wait_for("the same traffic", lambda: intervals("client2") > passed + 1)
    interrupted(client, "client2")
    ended(server, "server2")
    if watch:
        wait_for("events", lambda: "PORT_ACTIVE" in text("watch"))
        assert re.search(r"PORT_ERR.*PORT_ACTIVE", text("watch"), re.S), text("watch")
        watch.terminate()
        watch.wait()
    return second


def opened_with(grant, name):
    """An endpoint that a daemon has given this lease, and nothing else: then it was killed."""
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(PATIENCE_S)
        client = endpoint("server", name)
        with listener.accept()[0] as connection:
            connection.settimeout(PATIENCE_S)
            connection.recv(200)
            wake, event = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), os.eventfd(0)
            socket.send_fds(connection, [grant], [wake[0].fileno(), event])
            os.unlink(path)
    os.close(event)
    for end in wake:
        end.close()
    return client


def restarted_while_opening(first):
    """UROCED-RELEASE-02: an endpoint that has a lease, and no port yet, when the daemon is killed; for good, and then not."""
    lease = Lease(path)
    kill(first)
    client = opened_with(lease.grant, "closing")
    assert client.wait(PATIENCE_S) not in (0, -signal.SIGKILL), text("closing")
    assert "was not back for good within 5 s" in text("closing"), text("closing")
    open(path, "w", encoding="utf-8").close()
    client = opened_with(lease.grant, "opening")
    second = daemon()
    assert listening("opening") == lease.address, (text("opening"), lease.address)
    wait_for("its port", lambda: os.path.exists(stats) and client.pid in leased().values())
    client.kill()
    client.wait()
    lease.close()
    return second


def programs():
    """Two unmodified programs."""
    def side(name, *more):
        return program(name, "ib_write_bw", "-p", "18777", "-n", "500", *more)

    server = side("ib_server")
    wait_for("ib_write_bw", lambda: ":4959 " in open("/proc/net/tcp", encoding="ascii").read() + open("/proc/net/tcp6", encoding="ascii").read())
    client = side("ib_client", "127.0.0.1")
    ended(client, "ib_client")
    ended(server, "ib_server")
    assert "BW average" in text("ib_client"), text("ib_client")


def main():
    if os.getuid() != 0:
        print("skipped: needs root, to be another user as well")
        sys.exit(77)
    rate()
    d = daemon()
    configurations()
    a, b, m, victim = liar()
    print("a liar is stopped")
    hostile_memif(a, m)
    victim.close()
    sleeper(a, b)
    print("a client that sleeps is woken")
    dozer(d.pid, a, b)
    print("a daemon that sleeps is interrupted")
    strange_descriptors(d.pid, a)
    mute(d.pid, a, b)
    refused("malformed", message=b"?")
    refused("foreign", "10.77.1.1")
    refused("taken", b.address)
    for lease in a, b:
        lease.close()
    wait_for("the end of leases", lambda: not leased())
    print("hostile memory and messages are refused")
    assert (got := quota()) == "4 quota", got
    print("a user has no more leases than its share")
    crowd()
    print("users who say nothing take no place from another")
    killed(d.pid)
    print("a client is killed, and others go on")
    d = restarted(d)
    print("the daemon is killed and started again, and its clients go on")
    d = restarted(d, noted=False)
    print("they go on if the daemon had not noted their leases")
    d = restarted_while_opening(d)
    print("an endpoint is being opened meanwhile")
    if run:
        programs()
        print("two unmodified programs")
    d.send_signal(signal.SIGTERM)
    ended(d, "the daemon", 10)
    assert not os.path.exists(path), "the socket is removed"


conduct(main)
