#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_faults.py UROCE_CTL: the log of faults: what is in it, states, several writers, what is torn or no line of it."""
import json
import pathlib
import subprocess
import sys
import tempfile

ctl = sys.argv[1]
tmp = pathlib.Path(tempfile.mkdtemp(prefix="uroce-faults-"))
log = tmp / "faults.log"
MODEL = ["--fabric-model", "line:2", "--duration", "3"]
DOWN = ["--model-event", "1.5,down,switch 1,2"]
UP = ["--model-event", "2,up,switch 1,2"]
ERRORS = ["--model-event", "1.2,errors,switch 1,1"]
running = []


def run(*words, status=0, said=True):
    done = subprocess.run([ctl, "faults", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + (done.stderr if said else "")


def start(*words):
    p = subprocess.Popen([ctl, "faults", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.append(p)
    return p


def listed(*words):
    return json.loads(run("list", "--log", log, "--json", "-", *words, said=False))


def states():
    return [(f["id"], f["cause"], f["port"], f["state"]) for f in listed()]


def one_program():
    run("--log", log, *MODEL, *ERRORS, *DOWN)
    assert states() == [(1, "burst of receive errors", 1, "raised"), (2, "link down", 2, "raised")], states()
    fault = listed()[0]
    assert (fault["description"], fault["severity"], fault["value"], fault["limit"]) == ("switch 1", "error", 1000, 100), fault
    run("ack", 1, "--log", log)
    assert [f["id"] for f in listed("--open")] == [2]
    # A link that comes up again ends what its going down began.
    run("--log", log, *MODEL, *DOWN, *UP)
    found = [(c, s) for _, c, p, s in states()[2:] if p == 2]
    assert ("link down", "cleared") in found and ("link up", "cleared") in found, states()
    assert states()[0][3] == "acknowledged"
    text = run("list", "--log", log)
    assert ' error: 0x' in text and '"switch 1" port 1: burst of receive errors (1000, limit 100)  (acknowledged)' in text, text
    run("ack", "all", "--log", log)
    assert not listed("--open")
    assert "has no fault '99'" in run("ack", 99, "--log", log, status=1)
    assert "say which log" in run("list", status=2)
    assert "cannot be read: No such file" in run("list", "--log", tmp / "none", status=1)
    run("ack", "all", "--log", tmp / "none", status=1)
    assert not (tmp / "none").exists(), "acknowledging makes no log"


def at_once():
    """MGR-FAULT-03: what arrives is printed before its node has confirmed it, which takes a round trip, and then as a fault."""
    lines = run(*MODEL, *ERRORS, *DOWN).splitlines()
    for cause in ("burst of receive errors (1000, limit 100)", "link down"):
        found = [line for line in lines if cause in line]
        assert len(found) == 2 and found[0].split("  ")[1].startswith("not confirmed yet: "), lines
        assert found[0].split("not confirmed yet: ")[1] == found[1].split("  ")[1], lines
        assert 0 < float(found[1].split()[0]) - float(found[0].split()[0]) < 100e-6, lines


def in_the_node():
    """Acknowledged in a fabric: the causes are cleared in FAULT_STATUS, and a node that is not there harms nothing."""
    log.unlink()
    run("--log", log, *MODEL, *DOWN, "--load-routes", "updown")
    log.write_text(log.read_text().replace('"id":1', '"id":7').replace("0x27572", "0x99999", 1))
    run("ack", "all", "--log", log, "--fabric-model", "line:2")
    assert {f["state"] for f in listed()} == {"acknowledged"}


def put_together():
    """A file of two logs: what repeats an id, or comes after a later one, is passed over."""
    log.unlink()
    run("--log", log, *MODEL, *ERRORS, *DOWN)
    first = log.read_text()
    log.unlink()
    run("--log", log, *MODEL, *DOWN)
    log.write_text(first + log.read_text())
    assert [f["id"] for f in listed()] == [1, 2], listed()
    assert "1 of 3 lines are none of a log of faults" in run("list", "--log", log)
    run("ack", "all", "--log", log)
    assert not listed("--open")


def torn():
    """The line of a program that died is cut off; what is none of a log is counted and passed over."""
    log.unlink()
    run("--log", log, *MODEL, *DOWN)
    whole = log.read_text()
    last = listed()[-1]["id"]
    for cut in (1, len(whole.splitlines()[-1]) // 2):
        log.write_text(whole + whole.splitlines()[-1][:cut])
        assert len(listed()) == last
        run("--log", log, *MODEL, *ERRORS)
        lines = log.read_text().splitlines()
        assert log.read_text().startswith(whole) and all(json.loads(line) for line in lines), lines
        assert [f["id"] for f in listed()] == [last, last + 1], listed()
    log.write_text("nothing\n" + whole + '{"id": "x"}\n[]\n' + "y" * 100000 + "\n" + '{"id":-1}\n{"acknowledged":["a",{},-5]}\n')
    text = run("list", "--log", log)
    assert "5 of 7 lines are none of a log of faults" in text, text
    assert len(listed()) == last
    log.write_text(whole.replace("switch 1", "\\u001b[31m\\n"))
    assert "\033" not in run("list", "--log", log), "the log writes escapes to a terminal"


def several():
    """Programs that log at the same time: no line is lost or torn, and each has an id of its own."""
    log.unlink()
    tail = start("tail", "--log", tmp / "both.log", "--count", 4, "--json", tmp / "tail.json")
    assert tail.wait(60) == 1, "there is no log yet"
    (tmp / "both.log").touch()
    tail = start("tail", "--log", tmp / "both.log", "--count", 16, "--duration", 60, "--json", tmp / "tail.json")
    shape = ["--fabric-model", "line:9", "--duration", "3", "--log", tmp / "both.log"]
    for i in range(1, 9):
        shape += ["--model-event", f"1.5,errors,switch {i},1"]
    both = [start(*shape), start(*shape)]
    for p in both:
        assert p.wait(60) == 0, p.stderr.read()
    found = json.loads(run("list", "--log", tmp / "both.log", "--json", "-"))
    # The two fabrics are models of the same: their nodes, sequences and times are equal, so that each report is repeated.
    assert [f["id"] for f in found] == list(range(1, 9)), found
    assert {f["description"] for f in found} == {f"switch {i}" for i in range(1, 9)}
    seen = [tail.stdout.readline() for _ in range(8)]
    assert [line.split()[0] for line in seen] == [str(i) for i in range(1, 9)], seen
    other = [w.replace("1.5,errors", "1.6,errors") for w in map(str, shape)]
    assert start(*other).wait(60) == 0
    assert tail.wait(60) == 0, "tail has seen all of them"
    assert [f["id"] for f in json.loads((tmp / "tail.json").read_text())] == list(range(1, 17))


try:
    one_program()
    at_once()
    in_the_node()
    put_together()
    torn()
    several()
    print("the log of faults keeps what was reported")
finally:
    for p in running:
        if p.poll() is None:
            p.kill()
        p.communicate()
