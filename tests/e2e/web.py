#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""web.py UROCE_CTL HOSTILE_HTTP: the server of 'uroce-ctl web': what it answers, what it refuses, and clients that mean harm."""
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time

ctl, hostile = sys.argv[1:]
WAIT_S = 60
running = []


class Web:
    def __init__(self, *words, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([ctl, "web", "--listen", listen, "--interval", "0.2", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(self.process)
        line = self.process.stdout.readline()
        assert line.startswith("the fabric is at http://"), line + self.process.stderr.read()
        self.port = int(line.rstrip("/\n").rsplit(":", 1)[1])

    def ask(self, path, method="GET", host=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        c.putrequest(method, path, skip_host=True)
        if host != "":
            c.putheader("Host", host or f"127.0.0.1:{self.port}")
        c.endheaders()
        r = c.getresponse()
        return r.status, dict(r.getheaders()), r.read()

    def fabric(self, path="/fabric.json", holds=lambda o: True):
        end = time.monotonic() + WAIT_S
        while True:
            status, _, body = self.ask(path)
            if status == 200 and holds(json.loads(body)):
                return json.loads(body)
            assert time.monotonic() < end, (status, body[:2000])
            time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=WAIT_S)[1]
        assert self.process.returncode == 0, (self.process.returncode, said)
        return said


def answers():
    w = Web("--fabric-model", "fattree:4", "--model-event", "1,down,edge 0.0,3", "--model-event", "1,errors,aggregation 2.1,2",
            "--model-event", "1.5,kill,host 3.1.1")
    f = w.fabric(holds=lambda o: o["silent"] == 1)
    assert len(f["nodes"]) == f["all_nodes"] == 36 and len(f["links"]) == 48 and f["ranks"] == 4, f
    named = {(f["nodes"][k["a"]]["name"], k["a_port"], f["nodes"][k["b"]]["name"], k["b_port"]): k for k in f["links"]}
    down = [k for k, link in named.items() if link["state"] == "down"]
    silent = [k for k, link in named.items() if link["state"] == "silent"]
    assert down == [("aggregation 0.0", 1, "edge 0.0", 3)], down
    assert silent == [("edge 3.1", 2, "host 3.1.1", 1)], silent
    assert named["core 1.1", 3, "aggregation 2.1", 4]["state"] == "init"
    assert any(0 < k["ab_gbps"] < 1 and 0 < k["ba_gbps"] < 1 for k in f["links"]), "MADs are a load as well"
    faults = w.fabric("/faults.json", lambda o: o["open"] >= 2)["faults"]
    found = {(x["description"], x["port"], x["cause"]) for x in faults if x["state"] == "raised"}
    assert {("edge 0.0", 3, "link down"), ("aggregation 2.1", 2, "burst of receive errors")} <= found, faults
    assert {n["name"]: n["faults"] for n in f["nodes"]}["edge 0.0"] == 1
    # No two nodes in one place, rows from the endpoints up.
    assert len({(n["x"], n["y"]) for n in f["nodes"]}) == 36
    assert {n["rank"] for n in f["nodes"] if n["name"].startswith("host")} == {0}
    assert {n["rank"] for n in f["nodes"] if n["name"].startswith("core")} == {3}
    # The server says how old a text is, and passes go on.
    assert int(w.ask("/fabric.json")[1]["Uroce-Age-Ms"]) < WAIT_S * 1000
    w.fabric(holds=lambda o: o["pass"] > f["pass"] + 2)

    status, headers, body = w.ask("/")
    assert status == 200 and body.startswith(b"<!DOCTYPE html>")
    assert "default-src 'self'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    for path, kind in {"/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"}.items():
        status, headers, body = w.ask(path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body, path
        assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in body, f"{path}: a resource elsewhere"
    assert w.ask("/", "HEAD")[0] == 200
    assert w.ask("/../app.js")[0] == w.ask("/metrics")[0] == 404
    assert w.ask("/", "POST")[0] == w.ask("/", "DELETE")[0] == 405
    for host in ("localhost", f"localhost:{w.port}", "127.0.0.1", f"127.0.0.1:{w.port}"):
        assert w.ask("/", host=host)[0] == 200, host
    for host in ("", "fabric.example", "127.0.0.1.example", "localhost.example:80", "[::1]", "10.0.0.1", "127.0.0.1:80:80", ":", "]"):
        assert w.ask("/fabric.json", host=host)[0] == 403, host
    subprocess.run([hostile, "127.0.0.1", str(w.port), "3", "/fabric.json"], check=True, timeout=120)
    w.stop()


def same_picture():
    """Places come from the graph and its names: another order of discovery changes nothing."""
    found = []
    for window in ("1", "64"):
        w = Web("--fabric-model", "random:30,7", "--window", window)
        f = w.fabric()
        found.append(([(n["name"], n["x"], n["y"]) for n in f["nodes"]], [(k["a"], k["a_port"], k["b"], k["b_port"]) for k in f["links"]]))
        w.stop()
    assert found[0] == found[1]


def large():
    w = Web("--fabric-model", "fattree:14")
    f = w.fabric()
    assert f["no_endpoints"] and f["all_nodes"] == 931 and len(f["nodes"]) == 245, (f["all_nodes"], len(f["nodes"]))
    assert {n["type"] for n in f["nodes"]} == {"switch"} and f["ranks"] == 3
    assert sum(n["endpoints"] for n in f["nodes"]) == 686 and len(f["links"]) == 14 ** 3 // 2
    w.stop()


def what_comes_later():
    """A host whose link comes up later is found; a switch behind it too. What goes away again stays in the picture."""
    w = Web("--fabric-model", "line:3", "--model-event", "0,down,switch 1,2", "--model-event", "1,errors,switch 1,1",
            "--model-event", "2,up,switch 1,2", "--model-event", "4,down,switch 1,2")
    nodes = lambda o: {n["name"] for n in o["nodes"]}
    before = w.fabric()
    assert nodes(before) == {"endpoint 1", "switch 1"}, before
    after = w.fabric(holds=lambda o: "endpoint 2" in nodes(o) and all(k["state"] != "down" for k in o["links"]))
    assert nodes(before) < nodes(after) and after["all_nodes"] > before["all_nodes"]
    assert {k["errors"] for k in after["links"]} == {0, 1000}, "what was counted before is kept"
    gone = w.fabric(holds=lambda o: any(k["state"] == "down" for k in o["links"]))
    assert nodes(gone) == nodes(after) and len(gone["links"]) == len(after["links"])
    # Those behind it report here, too.
    w.fabric("/faults.json", lambda o: any(f["description"] == "switch 1" and f["cause"] == "link down" for f in o["faults"]))
    w.stop()


def log_of_another():
    """With --log the nodes' reports stay with the program that logs them, and the page shows its log."""
    with tempfile.NamedTemporaryFile("w+") as log:
        w = Web("--fabric-model", "line:2", "--model-event", "0.5,down,switch 1,2", "--log", log.name)
        w.fabric(holds=lambda o: any(k["state"] == "down" for k in o["links"]))
        assert w.fabric("/faults.json")["all"] == 0
        subprocess.run([ctl, "faults", "--log", log.name, "--fabric-model", "line:2", "--duration", "2", "--model-event",
                        "1,down,switch 1,2"], check=True, timeout=WAIT_S, stdout=subprocess.DEVNULL)
        assert w.fabric("/faults.json", lambda o: o["open"] == 1)["faults"][0]["cause"] == "link down"
        w.stop()


def addresses():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run([ctl, "web", "--fabric-model", "line:1", "--listen", "127.0.0.1:%d" % taken.getsockname()[1]],
                              capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 1 and "Address already in use" in done.stderr, done
    for wrong in ("8080", "127.0.0.1", "localhost:80", "::1:80", "1.2.3.4:99999", "[::1:80", ""):
        done = subprocess.run([ctl, "web", "--fabric-model", "line:1", "--listen", wrong], capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 2 and "is not ADDRESS:PORT" in done.stderr, (wrong, done)
    w = Web("--fabric-model", "line:1", listen="0.0.0.0:0")
    w.fabric()
    assert w.ask("/", host="10.1.2.3:80")[0] == 200 and w.ask("/", host="fabric.example")[0] == 403
    assert "no log-in" in w.stop()


try:
    answers()
    same_picture()
    large()
    what_comes_later()
    log_of_another()
    addresses()
    print("uroce-ctl web answers what it should, and nothing else")
finally:
    for p in running:
        if p.poll() is None:
            p.kill()
        p.communicate()
