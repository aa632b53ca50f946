#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_manage.py UROCE_SWITCH UROCE_CTL: two managers of a zone on a real switch; one is killed. No root."""
import json
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

switch, ctl = sys.argv[1:]
tmp = pathlib.Path(tempfile.mkdtemp(prefix="uroce-manage-"))
path = f"{tmp}/fabric.sock"
zones = tmp / "zones"
WAIT_S = 60
running = []


def start(*argv):
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, bufsize=1)
    running.append(p)
    return p


def ctl_says(*words):
    return subprocess.run([ctl, *words, "--socket", path], capture_output=True, text=True, timeout=WAIT_S)


def run(*words, status=0):
    done = ctl_says(*words)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


class Manager:
    def __init__(self, name, *words):
        self.key = tmp / name
        self.process = start(ctl, "manage", "run", "lab", "--zones", str(zones), "--socket", path, "--poll", "0.2",
                             "--interval", "0.3", "--key-out", str(self.key), "--json", "-", *words)
        self.guid = None
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def wait(self, event, within_s=WAIT_S, **what):
        """The next event of this kind that says so; a tuple: one of these."""
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=within_s)
            except queue.Empty:
                raise TimeoutError(f"no {event} {what} after {seen}") from None
            assert line, f"no {event} {what} after {seen}"
            e = json.loads(line)
            seen.append(e)
            self.guid = e["guid"] if e["event"] == "state" else self.guid
            if e["event"] == event and all(e.get(k) in (v if isinstance(v, tuple) else (v,)) for k, v in what.items()):
                return e

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait("end")
        assert self.process.wait(WAIT_S) == 0


def managers():
    return {m["guid"]: m for m in json.loads(run("manage", "list", "--zones", str(zones), "--json", "-"))}


def write(key, status=0):
    return run("reg", "write", "uroce-switch", "scratch", "7", "--m-key", key, status=status)


def wait_until(condition):
    """condition: returns whether it holds, and what is printed if it never does."""
    until = time.monotonic() + WAIT_S
    while not (seen := condition())[0]:
        assert time.monotonic() < until, seen[1]
        time.sleep(0.2)


def resigns():
    """The master has no heir, and refuses, until it has asked a standby that answers."""
    done = ctl_says("manage", "handover", "lab", "--zones", str(zones))
    assert not done.returncode or "refuses" in done.stderr, done
    return not done.returncode, done


def refuses():
    """A master that was late is none for a moment, and then nothing is there to refuse."""
    said = run("manage", "handover", "lab", "--zones", str(zones), status=1)
    return "refuses" in said, said


def hand_over(master, heir):
    """The heir has two leases to acknowledge. On a busy machine it may need longer: then the master takes the zone back, and is
    asked again when the heir is a standby. Time decides nothing else here, so anything else is an error."""
    for _ in range(5):
        wait_until(resigns)
        e = master.wait("state", phase=("FOLLOW", "CONTEND"))
        if e["phase"] == "FOLLOW":
            if e["master"] != heir.guid:
                master.wait("state", phase="FOLLOW", master=heir.guid)
            heir.wait("state", state="master")
            return
        master.wait("state", state="master")
        wait_until(lambda: ((seen := managers())[heir.guid]["state"] == "standby", seen))
        time.sleep(1)  # until the master has asked it again
    raise TimeoutError("five times the heir has not acknowledged within two leases")


def test():
    p = start(switch, "--port", f"socket={path},clients=4,mode=0600", "--set", "eal.hugepages=no")
    for line in p.stdout:
        if line.startswith("forwarding"):
            break
    else:
        sys.exit("the switch does not start")
    guid = [n["guid"] for n in json.loads(run("topology", "--json", "-"))["nodes"] if n["type"] == "switch"][0]
    zones.write_text(f"zone lab\nkey 0x77\nlease 1\nnode {guid}\nzone other\nkey 1\nnode 1\n")

    # The first one becomes master, and its key is the switch's; what happens is reported to it.
    a = Manager("a", "--priority", "5")
    assert a.wait("state", state="master")["held"] == 1
    a.wait("nodes", held=1)
    b = Manager("b")
    b.wait("state", phase="FOLLOW", master=a.guid)
    assert a.wait("fault", cause="link up")["node"] == guid
    assert {m["state"] for m in managers().values()} == {"master", "standby"}
    first = a.key.read_text()
    assert a.key.stat().st_mode & 0o777 == 0o600
    write(first.strip())
    said = write("1", status=1)
    assert "was not written" in said, said

    # It is killed: the other one takes over, not before the lease has ended, and the key is another one.
    killed = time.time()
    a.process.kill()
    e = b.wait("state", state="master")
    assert e["time_s"] - killed >= 1, e
    b.wait("nodes", held=1)
    second = b.key.read_text()
    assert "was not written" in write(first.strip(), status=1)
    write(second.strip())

    # It comes back as a standby, although it comes first, and gets the zone by command.
    a = Manager("a", "--priority", "5")
    a.wait("state", phase="FOLLOW", master=b.guid)
    refused = run("manage", "handover", "lab", "0x1", "--zones", str(zones), status=1)
    assert "refuses" in refused, refused
    hand_over(b, a)
    assert not b.key.exists()

    # A standby that is disabled is no heir; a manager with other zones is none either, and has no say.
    run("manage", "disable", "lab", b.guid, "--zones", str(zones))
    b.wait("state", state="not active")
    time.sleep(1)  # until the master has asked it again
    wait_until(refuses)
    run("manage", "enable", "lab", b.guid, "--zones", str(zones))
    b.wait("state", phase="FOLLOW")
    other = tmp / "other"
    other.write_text(zones.read_text().replace("0x77", "0x78"))
    assert "all must have the same" in run("manage", "handover", "lab", "--zones", str(other), status=1)

    # One that ends hands over; the last one gives the keys back.
    a.end()
    b.wait("state", state="master")
    b.end()
    keys = json.loads(run("keys", "show", "uroce-switch", "--json", "-"))[0]
    assert (keys["key"], keys["lease_s"]) == ("0", 0), keys
    assert not a.key.exists() and not b.key.exists()

    # A key that cannot be put at its place is left nowhere else.
    (tmp / "place").mkdir()
    said = run("manage", "run", "lab", "--zones", str(zones), "--key-out", str(tmp / "place"), status=1)
    assert "--key-out" in said and "Is a directory" in said, said
    assert not (tmp / "place.new").exists()
    print("two managers share a zone")


try:
    test()
finally:
    for p in running:
        p.kill()
        p.wait()
