#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_commands.py UROCE_SWITCH UROCE_CTL | --write: runs every command of uroce-ctl on two switches, joined by two rings, with a
program at either end: no root. The table of commands in docs/management.md is made of ROWS: --write puts it there, and the
test fails if the page has another one, or if uroce-ctl has a command that is not among them."""
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "management.md"
BEGIN, END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"
SECONDS = 60  # of a command


def has(*patterns):
    return lambda out: all(re.search(p, out, re.M) for p in patterns)


def times(pattern, number):
    return lambda out: len(re.findall(pattern, out, re.M)) == number


# {tmp} is a directory. The outcome is what the page says, and the function checks it. A fourth element: the command runs until its
# output is right and it is interrupted; "link down" says what happens meanwhile.
ROWS = [
    ("discover", "how many nodes and links there are, and what is wrong", has(r"^4 nodes: 2 switches, 2 endpoints; 4 links$")),
    ("topology", "the nodes, and what each port is linked to", has(r'^#1 switch .*"left"', r'7 +\w+ +1x +switch #2 "right" port 1$')),
    ("topology --json -", "the same as JSON", lambda out: len(json.loads(out)["nodes"]) == 4),
    ("topology --dot -", "the same for Graphviz", has(r"^(di)?graph ", r'label=".*left')),
    ("trace right", "the directed route from here, hop by hop, with the state of each port", has(r'-> #1 "left" port 1', r'-> #2 "right" port 1', "^2 hops$")),
    ("trace left 10.9.0.2 --sport 49152", "the path of RoCE packets with that source port", has(r"^source port 49152$", r'-> #3 "\S+" port 1')),
    ("trace left 10.9.0.2 --sport 49152 --spray 8", "the different paths of a queue pair that sprays", has(r"^path 0, source port 49152$", r"^path 1, ")),
    ("trace left 10.9.0.2 --ecmp", "all links that packets to the address may take", has('"left" port 7', '"left" port 8', "2 paths")),
    ("node left", "NodeInfo, NodeDescription and SwitchInfo", has(r"^NodeInfo$", r"num_ports +8$", r"^SwitchInfo$")),
    ("port left 7", "PortInfo", has(r"^PortInfo$", r"^ +state +\d")),
    ("reg list", "the registers", times(r"^0", 61)),
    ("reg read left uptime_ns tx_packets:7", "registers", has(r"^uptime_ns +0x", r"^tx_packets:7 +0x")),
    ("reg write left scratch 77", "writes a register", lambda out: out == ""),
    ("reg read left scratch", "what was written", has(r"^scratch .*\(77\)")),
    ("e2prom write left 0x100 1 2 3", "writes bytes, and reads them back", has("01 02 03|^$")),
    ("e2prom read left 0x100 4", "bytes of the E2PROM", has(r"0x0100 +01 02 03 ff")),
    ("e2prom defaults left scan_ns 7000000", "what registers get when the node starts", lambda out: True),
    ("vl show left 7", "arbitration tables, limit and mapping of a port", has(r"^  low=0:64,", r"^  limit=0$", r"^  sl2vl=0,1,")),
    ("vl set left 7 high=1:8 limit=3", "changes them", lambda out: True),
    ("vl show left 7", "what was changed", has(r"^  high=1:8$", r"^  limit=3$")),
    ("qos solve 0=60 1=40 --json {tmp}/qos", "tables for these shares", has(r"^low=0:192,1:128$", r"^SL 0 .*60.00 %")),
    ("qos apply left 7 {tmp}/qos --force", "writes them to a port", lambda out: True),
    ("vl show left 7", "the tables that were computed", has(r"^  low=0:192,1:128$")),
    ("routes compute", "LIDs and forwarding tables, without writing them", has(r"^updown: 4 LIDs, tables of 2 switches$")),
    ("routes load", "writes them, and asks every LID", has("loaded; every LID answers$")),
    ("routes source", "the ports by which requests travel there and back", has(r'"right"  there 1,[78]  back 1,[12]$')),
    ("trace left right", "the path of management by the loaded tables", has(r'"left" port [78] \(active', "^1 hops$")),
    ("counters left 7 --load-routes shortest", "the registers of a port that count, and PerfMgt's", has(r"^ +link_downed:7 +0$", "PortCounters")),
    ("monitor single left", "state and counters of all ports of a node, once", has(r"^ +state:7 +4$", r"^ +rx_errors:7 +0$")),
    ("monitor loop left --count 2 --interval 0.1", "the same again and again", times(r"^ +state:7 +4$", 2)),
    ("monitor compare --count 2 --interval 0.1 --tiers 3", "only what has changed", has(r"tx_packets:")),
    ("top --count 1", "rates, losses and load of all ports", has(r"^node +port state", r"^left +7 active")),
    ("bist left 7 --duration 0.2", "tests a link", has(r" 0 with wrong bytes: the link is good$")),
    ("keys set right 0x1234", "gives a node an M_Key", lambda out: True),
    ("keys show right --m-key 0x1234", "keys and their protection", has(r'"right"  key 0x1234')),
    ("keys clear right --m-key 0x1234", "takes it away", lambda out: True),
    ("keys show right", "that there is none", has(r'"right"  key 0 ')),
    ("faults --log {tmp}/log", "reports of faults as they arrive, also into a log", has(r'^[0-9.]+ s +critical: .*"left" port \d: link down'), "link down"),
    ("faults list --log {tmp}/log", "the log", has(r"link down")),
    ("faults ack all --log {tmp}/log", "acknowledges what is in it", lambda out: True),
    ("faults list --open --log {tmp}/log", "what is not acknowledged", lambda out: "link down" not in out),
    ("faults tail --log {tmp}/log --duration 0.3", "its end, and what is added", has(r"link down")),
    ("manage run lab --zones {tmp}/zones", "is a manager of a zone", has("lab"), "none"),
    ("web --listen 127.0.0.1:0", "a page with a picture of the fabric", has(r"http://127\.0\.0\.1:\d+/"), "none"),
]


def table():
    lines = ["| command | outcome |", "|---|---|"]
    for command, outcome, *_ in ROWS:
        lines.append(f"| `{command.format(tmp='').replace(' /', ' ')}` | {outcome} |")
    return "\n".join(lines) + "\n"


def write():
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(text[:begin] + table() + text[end:])


# ctl_manage.py and ctl.sh run these: the first need a second manager, the others take 10 s each.
ELSEWHERE = ["manage list", "manage handover", "manage disable", "manage enable", "e2prom save", "e2prom load"]


def check_complete(usage):
    """Each command of the help is in ROWS."""
    for line in re.findall(r"(?:Usage:|or:) +uroce-ctl (.*) \[OPTION\]", usage):
        name = " ".join(word for word in line.split() if re.fullmatch(r"[a-z0-9]+", word))
        assert name in ELSEWHERE or any(row[0].startswith(name) for row in ROWS), f"the command '{name}' is not in the table"


def start_switches(switch, tmp):
    p = subprocess.Popen([switch, "--set", "eal.hugepages=no", "--set", "management.open=yes", "--set", "forwarding.frames=128",
                          "--set", "forwarding.routes=10.9.0.2=8/1",
                          "--switch", "left", "--port", f"socket={tmp}/left,clients=6", "--port", "ring=one", "--port", "ring=two",
                          "--set", "forwarding.lids=8=7 9=8",
                          "--switch", "right", "--port", "ring=one", "--port", "ring=two", "--port", f"socket={tmp}/right,clients=1",
                          "--set", "forwarding.lids=8=3 9=3"], stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        if line.startswith("right: forwarding"):
            return p
    sys.exit("the switches do not start")


def wait_until(condition, what):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, what()
        time.sleep(0.05)


def flap(tmp):
    """A client of the switch comes and goes, again and again until what watches has begun. A report is confirmed by the node's last
    fault: the link stays down for a while."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(f"{tmp}/left")
    time.sleep(0.3)
    s.close()
    time.sleep(2)


def run_until(argv, is_right, event, tmp):
    with open(tmp / "shown", "w+") as shown:
        p = subprocess.Popen(argv, stdout=shown, stderr=subprocess.STDOUT)
        try:
            def done():
                if event == "link down":
                    flap(tmp)
                return is_right((tmp / "shown").read_text())

            wait_until(done, lambda: f"{argv}: {(tmp / 'shown').read_text()}")
        finally:
            p.send_signal(signal.SIGINT)
            status = p.wait(SECONDS)
    assert status in (0, 130, -signal.SIGINT), (argv, status)


def run(ctl, tmp, row):
    argv = [ctl, *row[0].format(tmp=tmp).split()]
    if not row[0].startswith(("faults list", "faults tail", "faults ack", "qos solve", "reg list")):
        argv += ["--socket", f"{tmp}/left"]
    if len(row) > 3:
        return run_until(argv, row[2], row[3], tmp)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, (argv, done)
    assert row[2](done.stdout), f"'{row[0]}' does not show {row[1]}:\n{done.stdout}"


def main(switch, ctl):
    assert table() in PAGE.read_text(), f"{PAGE} does not have the table of this program: run it with --write"
    check_complete(subprocess.run([ctl, "--help"], capture_output=True, text=True, timeout=SECONDS, check=True).stdout)
    with tempfile.TemporaryDirectory(prefix="uroce-commands-") as name:
        tmp = pathlib.Path(name)
        (tmp / "zones").write_text("zone lab\nkey 0x77\nnearest 0x0000000000000001\n")
        switches = start_switches(switch, tmp)
        other = subprocess.Popen([ctl, "faults", "--socket", f"{tmp}/right"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: "4 nodes" in subprocess.run([ctl, "discover", "--socket", f"{tmp}/left"], capture_output=True, text=True,
                                                           timeout=SECONDS).stdout, lambda: "not four nodes")
            for row in ROWS:
                run(ctl, tmp, row)
        finally:
            for p in (other, switches):
                p.terminate()
                p.wait(SECONDS)
    print(f"{len(ROWS)} commands of uroce-ctl, each with its outcome")


if sys.argv[1:] == ["--write"]:
    write()
else:
    main(*sys.argv[1:])
