#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_socket.py UROCE_SWITCH UROCE_CTL: uroce-ctl on a real switch, over a unix socket: no root."""
import json
import select
import signal
import subprocess
import sys
import tempfile

switch, ctl = sys.argv[1:]
tmp = tempfile.mkdtemp(prefix="uroce-ctl-")
path = f"{tmp}/fabric.sock"
running = []


def start(*argv):
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    running.append(p)
    return p


def run(*words, status=0):
    done = subprocess.run([ctl, *words, "--socket", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test():
    p = start(switch, "--port", f"socket={path},clients=3,mode=0600", "--set", "eal.hugepages=no",
              "--set", "forwarding.routes=10.0.0.2=8/1 10.0.0.3=4", "--set", "forwarding.lids=8=1 9=2 4=3")
    for line in p.stdout:
        if line.startswith("forwarding"):
            break
    else:
        sys.exit("the switch does not start")

    # Another manager stays on the first port: it is a node like any other.
    other = start(ctl, "monitor", "loop", "#0", "--socket", path)
    assert other.stdout.readline().startswith("#0"), "the other manager does not start"
    nodes = json.loads(run("topology", "--json", "-"))["nodes"]
    assert [n["type"] for n in nodes] == ["endpoint", "switch", "endpoint"], nodes
    assert not any(n["faults"] for n in nodes), nodes
    here, middle, there = nodes
    assert here["ports"][0]["peer_guid"] == middle["guid"] == there["ports"][0]["peer_guid"]
    assert [p["link"] for p in middle["ports"]] == ["endpoint", "endpoint", "down"], middle
    assert "0 sent again, 0 without a response" in run("discover")
    assert "2 hops" in run("trace", "#2")

    # RoCE packets by their source ports: each goes to one of the two ports, as it says, and both are all there are.
    flows = json.loads(run("trace", "#0", "10.0.0.2", "--sport", "1-64", "--ecmp", "--json", "-"))
    last = {f["sport"]: f["hops"][-1] for f in flows["flows"]}
    assert len(last) == 64 and {h["from"] for h in last.values()} == {1} and {h["from_port"] for h in last.values()} == {1, 2}
    assert flows["paths"] == 2 and {(h["from"], h["from_port"]) for h in flows["links"]} == {(0, 1), (1, 1), (1, 2)}, flows
    # A queue pair that sprays uses several source ports for one flow; ECMP gives a flow one path.
    flows = json.loads(run("trace", "#0", "10.0.0.2", "--sport", "49157", "--spray", "8", "--json", "-"))
    assert [f["path"] for f in flows["flows"]] == list(range(8)), flows
    assert [f["sport"] for f in flows["flows"]] == [0xc000 + (5 + 1031 * i) % 2**14 for i in range(8)], flows
    assert flows["sprayed_over"] == len({f["hops"][-1]["from_port"] for f in flows["flows"]}), flows
    assert "by 8 source ports" in run("trace", "#0", "10.0.0.2", "--sport", "49157", "--spray", "8")
    assert "the queue pair's own port" in run("trace", "#0", "10.0.0.2", "--sport", "7", "--spray", "2", status=1)
    assert "no LID for this address" in run("trace", "#0", "fe80::1", "--sport", "7", status=1)
    assert "no port of its 1 LIDs is up" in run("trace", "#0", "10.0.0.3", "--ecmp", status=1)
    assert "is no IP address" in run("trace", "#0", "there", "--ecmp", status=1)
    assert "neither a UDP port nor a range" in run("trace", "#0", "10.0.0.2", "--sport", "9-8", status=1)
    run("reg", "read", "#1", "uptime_ns", "node_guid")
    assert "key refused; give the node's key with --m-key" in run("reg", "write", "#1", "scratch", "1", status=1)

    # When the other one leaves, that is what changes, and nothing else.
    watch = start(ctl, "monitor", "compare", "#1", "--interval", "0.2", "--json", "-", "--socket", path)
    assert json.loads(watch.stdout.readline())["values"] == []
    other.send_signal(signal.SIGTERM)
    for line in watch.stdout:
        values = json.loads(line)["values"]
        if values:
            break
    assert {v["register"]: (v["before"], v["value"]) for v in values} == {"state:1": (2, 1), "link_downed:1": (0, 1)}, values

    # When the switch goes, what waits for it ends and says so.
    faults = subprocess.Popen([ctl, "faults", "--socket", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.append(faults)
    select.select([faults.stdout], [], [], 1)
    p.send_signal(signal.SIGTERM)
    said = faults.communicate(timeout=60)[1]
    assert faults.returncode == 1 and "the other end has closed the connection" in said, (faults.returncode, said)
    print("uroce-ctl manages a real switch")


try:
    test()
finally:
    for p in running:
        p.kill()
        p.wait()
