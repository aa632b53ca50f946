#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""field_tools.py SCENARIO | --write: runs the field's own tools, unmodified, on a fabric of agents.

Scenarios: socket (the adapter's link is a unix socket), veth (it is a network interface; needs root), switches (processes of
uroce-switch; needs root), endpoints (of uroce-perf, with traffic; needs root), rings (switches of one process, endpoints by memif), engines (OpenSM's routing engines), sweep (more
than 500 nodes, and a switch that dies), handover (two adapters, two subnet managers). --write puts the table of
tools into docs/management.md; the scenarios fail if the page has another one. fabric_bed.py names the environment.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from fabric_bed import Bed, Failure, check, wait_until

LEAVES, SPINES, HOSTS = 2, 2, 3
NODES = LEAVES * (HOSTS + 1) + SPINES + 1  # with the adapter
SWITCHES = LEAVES + SPINES
ENGINES = ["minhop", "updn", "ftree", "dfsssp", "lash"]
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "management.md"
BEGIN, END = "<!-- tools: begin -->\n", "<!-- tools: end -->\n"


def count(pattern):
    return lambda out: len(re.findall(pattern, out, re.M))


def has(*patterns):
    return lambda out: all(re.search(p, out, re.M) for p in patterns)


def equals(counter, number):
    return lambda out: counter(out) == number


# The outcome is what the page says, and the function checks it; a number is the exit status, if not 0. {self} is the adapter's LID, {host} that of host-2-3,
# {leaf} that of leaf-1.
BEFORE_SM = [
    ("ibstat", "the adapter and its port: Initializing, LinkUp",
     has(r"^CA 'uroce0'", r"State: Initializing", r"Physical state: LinkUp", r"Base lid: 0$", r"Link layer: InfiniBand")),
    ("ibstat -l", "the adapters' names", has(r"^uroce0$")),
    ("ibstat -p", "the ports' GUIDs", has(r"^0x[0-9a-f]{16}$")),
    ("smpquery -D nodeinfo 0,1", "NodeInfo along a directed route", has(r"^NodeType:\.+Switch", r"^NumPorts:\.+6")),
    ("smpquery -D nodedesc 0,1,2", "NodeDescription two hops away", has(r"host-1-1")),
    ("ibnetdiscover", "the whole topology, without a subnet manager",
     lambda out: count(r"^Ca\t")(out) == NODES - SWITCHES and count(r"^Switch\t")(out) == SWITCHES),
]
WITH_SM = [
    ("ibstat uroce0 1", "Active, with a LID and the SM's", has(r"State: Active", r"Base lid: [1-9]", r"SM lid: [1-9]")),
    ("sminfo", "the SM: master", has(r"sm lid [1-9]\d* .*SMINFO_MASTER")),
    ("ibaddr {host}", "GID and LID of a port", has(r"GID fe80::\S+ LID start 0x\w+")),
    ("smpquery nodeinfo {host}", "NodeInfo by LID", has(r"^NodeType:\.+Channel Adapter")),
    ("smpquery portinfo {leaf} 2", "PortInfo of a switch's port", has(r"^LinkState:\.+Active", r"^LinkWidthActive:\.+4X")),
    ("smpquery switchinfo {leaf}", "SwitchInfo", has(r"^LinearFdbCap:\.+[1-9]", r"^LinearFdbTop:\.+[1-9]")),
    ("smpquery guidinfo {host}", "the port's GUIDs", has(r"0x02")),
    ("smpquery pkeys {host}", "the P_Key table", has(r"0xffff")),
    ("ibnetdiscover -p", "every link, one line an end", equals(count(r"^(CA|SW) .* - (CA|SW) "), 2 * (NODES - SWITCHES + LEAVES * SPINES))),
    ("ibhosts", "the endpoints", equals(count(r"^Ca\t"), NODES - SWITCHES)),
    ("ibswitches", "the switches", equals(count(r"^Switch\t"), SWITCHES)),
    ("ibnodes", "both", equals(count(r"^(Ca|Switch)\t"), NODES)),
    ("iblinkinfo", "every link with its state, width and speed",
     lambda out: count(r"Active/  LinkUp")(out) == 2 * (NODES - SWITCHES + LEAVES * SPINES) and "Could be" not in out),
    ("ibtracert {self} {host}", "the path by the loaded tables, hop by hop", has(r"^From ca", r"switch port", r"^To ca .*host-2-3")),
    ("ibroute {leaf}", "a switch's forwarding table", equals(count(r"^0x[0-9a-f]{4} \d{3} : "), NODES)),
    ("dump_fts", "the tables of all switches", equals(count(r"^0x[0-9a-f]{4} \d{3} : "), NODES * SWITCHES)),
    ("ibportstate {leaf} 2 query", "a port and the port at its other end", has(r"LinkState:\.+Active", r"Peer PortInfo|Peer")),
    ("ibfindnodesusing {leaf_guid} 2", "the nodes whose traffic passes a link", has(r"host-1-1|leaf-1")),
    ("smpdump {host} 0x11", "an SMP's bytes", has(r"^0101 01")),
    ("saquery", "NodeRecords of all nodes, an RMPP response", equals(count(r"NodeRecord dump"), NODES)),
    ("saquery -p", "PathRecords", has(r"PathRecord dump")),
    ("saquery LR", "LinkRecords", equals(count(r"LinkRecord dump"), 2 * (NODES - SWITCHES + LEAVES * SPINES))),
    ("perfquery {leaf} 2", "PortCounters", has(r"^PortXmitPkts:\.+[1-9]", r"^SymbolErrorCounter:\.+10$")),
    ("perfquery -x {leaf} 2", "PortCountersExtended", has(r"^PortXmitPkts:\.+[1-9]", r"^PortUnicastXmitPkts:\.+[1-9]")),
    ("perfquery -a {leaf}", "the counters of all ports of a switch, added up", has(r"^PortSelect:\.+255", r"^SymbolErrorCounter:\.+10$")),
    ("ibqueryerrors", "the ports with errors, in the whole fabric; exits with 1 if there are any", has(r"SymbolErrorCounter == 10", r"1 ports have errors"), 1),
    ("perfquery -R {leaf} 2", "resets the counters of a port", lambda out: True),
    ("perfquery {leaf} 2", "the counters after the reset", has(r"^SymbolErrorCounter:\.+0$")),
    ("saquery -s", "the ports with a subnet manager", equals(count(r"^PortInfoRecord dump"), 1)),
    ("ibportstate {leaf} 3 disable", "takes a link down", has(r"^After PortInfo set", r"^PhysLinkState:\.+Disabled")),
    ("ibportstate {leaf} 3 enable", "brings it up again; OpenSM makes it active", has(r"^After PortInfo set")),
]


# Programs that stay: each scenario starts OpenSM; handover_scenario() starts the others as they are here.
OPENSM = ("opensm", "the subnet manager: sweeps, assigns LIDs, loads the tables, makes ports active")
IBPING_SERVER = ("ibping -S -C uroce1", "answers pings on the second adapter of this host")
IBPING = ("ibping -C uroce0 -c 3 {host}", "pings it from the first one", has("3 packets transmitted, 3 received"))


def lid_of(bed, name):
    """The LID that OpenSM has assigned to a node. saquery lists a node from its first answer on, with LID 0 at first."""
    assigned = []

    def is_assigned():
        for record in bed.run("saquery", status=None).split("NodeRecord dump")[1:]:
            if re.search(rf"NodeDescription\.+{re.escape(name)}$", record, re.M):
                assigned.append(int(re.search(r"lid\.+(\d+)", record).group(1)))
        return assigned and assigned[-1]

    wait_until(is_assigned, f"OpenSM assigns a LID to {name}", 20)
    return assigned[-1]


def try_tools(bed, rows, lids):
    for command, outcome, is_right, *status in rows:
        out = bed.run(command.format(**lids), *status)
        check(is_right(out), f"'{command.format(**lids)}' does not show {outcome}:\n{out[-3000:]}")
        print(f"ok: {command.format(**lids)}")


def run_all(bed, sweep_s=1):
    try_tools(bed, BEFORE_SM, {})
    sm = bed.start_opensm(sweep_s=sweep_s)
    bed.wait_for_sm(sm, "SUBNET UP")
    lids = {"self": lid_of(bed, "uroce0"), "host": lid_of(bed, "host-2-3"), "leaf": lid_of(bed, "leaf-1"),
            "leaf_guid": "0x0200000000000100"}
    for command, trap in [("errors", 129), ("overruns", 130), ("silence", 131)]:
        bed.command(f"{command} leaf-1 2")
        wait_until(lambda: re.search(rf"num:{trap} .*Producer:2 .* LID:{lids['leaf']}\b", sm.log.read_text(errors="replace")), f"OpenSM's log shows trap {trap}", 20)
        print(f"ok: trap {trap}")
    try_tools(bed, WITH_SM, lids)
    wait_until(lambda: re.search(r"LinkState:\.+Active", bed.run(f"smpquery portinfo {lids['leaf']} 3", status=None)), "OpenSM makes the link active", 20)
    wait_until(lambda: bed.run("saquery", status=None).count("NodeRecord dump") == NODES, "OpenSM knows all nodes again", 20)
    return sm, lids


def socket_scenario():
    with Bed() as bed:
        bed.start_fabric(LEAVES, SPINES, HOSTS, ["first", "second"])
        hca = bed.start_hca(f"unix:{bed.dir}/first")
        sm, lids = run_all(bed, sweep_s=0)  # it looks again only when a trap says so
        # The capability IsSM is the port's as long as the SM runs.
        check("IsSM" in bed.run(f"smpquery portinfo {lids['self']}"), "IsSM while OpenSM runs")
        bed.stop(sm)
        wait_until(lambda: "IsSM" not in bed.run(f"smpquery portinfo {lids['self']}"), "IsSM goes with OpenSM", 5)
        # A program that brings its adapter with it.
        out = bed.run(["--link", f"unix:{bed.dir}/second", "ibnetdiscover"])
        check(count(r"^Ca\t")(out) == NODES - SWITCHES + 1, "uroce-umad-run --link: ibnetdiscover by an adapter of its own")
        bed.run(["--link", "nonsense", "ibnetdiscover"], 1)
        # A LID that is nowhere, and an adapter that is gone.
        out = bed.run("smpquery -t 50 nodeinfo 4000", status=None)
        check("failed" in out or "fail" in out, f"smpquery of a LID that is not there: {out}")
        bed.stop(hca)
        check("no channel adapter answers" in bed.run("ibstat"), "ibstat without an adapter")


class Namespace:
    """A network namespace with pairs of veth interfaces."""

    def __init__(self, *pairs):
        if os.geteuid() != 0:
            print("needs root")
            sys.exit(77)
        self.name, self.pairs = f"uroce-tools-{os.getpid()}", pairs
        self.inside = ["ip", "netns", "exec", self.name]

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        for a, b in self.pairs:
            self.join(a, b)
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.name], check=True)

    def ip(self, *arguments):
        subprocess.run(["ip", "-n", self.name, *arguments], check=True)

    def join(self, a, b):
        self.ip("link", "add", a, "type", "veth", "peer", "name", b)
        self.set(a, "up")
        self.set(b, "up")

    def set(self, interface, state):
        self.ip("link", "set", interface, state)


def veth_scenario():
    """The adapter on a network interface; Wireshark's dissector sees everything that passes."""
    with Namespace(("tools0", "tools1")) as namespace, Bed() as bed:
        bed.inside = namespace.inside
        capture = bed.dir / "capture.pcap"
        dump = bed.start(*bed.inside, "dumpcap", "-q", "-P", "-i", "tools0", "-w", capture, stderr=subprocess.PIPE)
        check(any("File:" in line for line in dump.stderr), "dumpcap starts")
        bed.start_fabric(LEAVES, SPINES, HOSTS, [("--eth", "tools0")])
        bed.start_hca("eth:tools1")
        run_all(bed)
        time.sleep(0.5)
        bed.stop(dump, signal.SIGINT)
        check_capture(capture)
        # The cable is pulled, and plugged in again.
        namespace.set("tools1", "down")
        wait_until(lambda: "State: Down" in bed.run("ibstat uroce0 1"), "the port goes down with the interface", 5)
        time.sleep(0.5)  # both ends have seen it
        namespace.set("tools1", "up")
        wait_until(lambda: "State: Active" in bed.run("ibstat uroce0 1"), "OpenSM makes the port active again", 20)
        # The interface is deleted, and another one has its name.
        namespace.ip("link", "del", "tools1")
        wait_until(lambda: "State: Down" in bed.run("ibstat uroce0 1"), "the port goes down with its interface", 5)
        time.sleep(0.5)
        namespace.join("tools0", "tools1")
        wait_until(lambda: "State: Active" in bed.run("ibstat uroce0 1"), "OpenSM makes the port active on a new interface", 20)
        # The same while the other end stands still: it has seen no interface go.
        bed.fabric.send_signal(signal.SIGSTOP)
        namespace.ip("link", "del", "tools1")
        wait_until(lambda: "State: Down" in bed.run("ibstat uroce0 1"), "the port goes down with its second interface", 5)
        namespace.join("tools0", "tools1")
        bed.fabric.send_signal(signal.SIGCONT)
        wait_until(lambda: "State: Active" in bed.run("ibstat uroce0 1"), "OpenSM makes the port active on a third interface", 20)


def switches_scenario():
    """Two processes of uroce-switch, joined by veth, with an adapter each: one by a socket, one by an interface."""
    with Namespace(("trunk0", "trunk1"), ("edge0", "edge1")) as namespace, Bed() as bed:
        bed.inside = namespace.inside
        for ports in ["--port", f"socket={bed.dir}/first,clients=1", "--port", "dev=trunk0"], ["--port", "dev=trunk1", "--port", "dev=edge0"]:
            switch = bed.start(*bed.inside, os.environ["UROCE_SWITCH"], *ports, "--set", "eal.hugepages=no", stdout=subprocess.PIPE)
            check(any(line.startswith("forwarding") for line in switch.stdout), "uroce-switch starts")
        bed.start_hca(f"unix:{bed.dir}/first")
        bed.start_hca("eth:edge1", "uroce1")
        sm = bed.start_opensm(config="qos TRUE\nqos_max_vls 8\nqos_high_limit 4\nqos_vlarb_high 0:64\nqos_vlarb_low 0:4,1:8,2:16\n"
                              "qos_sl2vl 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7\n")
        bed.wait_for_sm(sm, "SUBNET UP")
        wait_until(lambda: count("^(Ca|Switch)\t")(bed.run("ibnetdiscover", status=None)) == 4, "two switches and two adapters")
        wait_until(lambda: "State: Active" in bed.run("ibstat uroce1 1"), "OpenSM makes both ports active")
        wait_until(lambda: count("Active/  LinkUp")(bed.run("iblinkinfo", status=None)) == 6, "iblinkinfo shows three links, each from both ends")
        first, second = lid_of(bed, "uroce0"), lid_of(bed, "uroce1")
        check(count("-> switch port")(bed.run(f"ibtracert {first} {second}")) == 2, "ibtracert passes two switches")
        check("SMINFO_MASTER" in bed.run("sminfo -C uroce1"), "sminfo from the other end")
        check(bed.run("saquery -C uroce1").count("NodeRecord dump") == 4, "saquery from the other end")
        near = re.search(r'lid (\d+)-\d+ "uroce-switch"', bed.run(f"ibtracert {first} {second}")).group(1)
        out = bed.run(f"perfquery -C uroce1 -a {near}")
        check(has(r"^PortXmitPkts:\.+[1-9]", r"^PortRcvPkts:\.+[1-9]")(out), f"perfquery of a switch:\n{out}")
        # OpenSM has configured the virtual lanes.
        check(has(r"^WEIGHT: \|0x4 \|0x8 \|0x10\|0x0 ", r"^WEIGHT: \|0x40\|0x0 ")(bed.run(f"smpquery vlarb {near} 1")), "the weights of OpenSM")
        check(has(r"in  1, out  2: \|( \d\|){8} 0\| 1\|")(bed.run(f"smpquery sl2vl {near} 2")), "the mapping of service levels of OpenSM")
        check(has(r"^VLHighLimit:\.+4$")(bed.run(f"smpquery portinfo {near} 2")), "the limit of high priority of OpenSM")
        namespace.set("trunk0", "down")
        wait_until(lambda: count("^(Ca|Switch)\t")(bed.run("ibnetdiscover", status=None)) == 2, "one switch and adapter without the trunk")
        wait_until(lambda: bed.run("saquery").count("NodeRecord dump") == 2, "OpenSM has forgotten the others", 20)
        namespace.set("trunk0", "up")
        wait_until(lambda: bed.run("saquery", status=None).count("NodeRecord dump") == 4, "OpenSM has found them again", 20)
        print("ok: two uroce-switch")


def endpoints_scenario():
    """Two endpoints of uroce-perf behind a switch: OpenSM sets their ports active, and reads them while they transfer."""
    with Namespace(("edge0", "host0"), ("edge1", "host1")) as namespace, Bed() as bed:
        bed.inside = namespace.inside

        def endpoint(number, role, *options):
            config = bed.dir / f"endpoint-{number}.conf"
            config.write_text(f"[eal]\nhugepages = no\n[port]\ndriver = af_packet\ndevice = host{number}\n"
                              f"[address]\nipv4 = 10.77.0.{number + 1}/24\n[transport]\npath_mtu = 1024\n"
                              f"[management]\ndescription = endpoint-{number}\n")
            return bed.start(*bed.inside, os.environ["UROCE_PERF"], role, "--config", config, *options,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        switch = bed.start(*bed.inside, os.environ["UROCE_SWITCH"], "--port", f"socket={bed.dir}/first,clients=2", "--port", "dev=edge0",
                           "--port", "dev=edge1", "--set", "eal.hugepages=no", stdout=subprocess.PIPE)
        check(any(line.startswith("forwarding") for line in switch.stdout), "uroce-switch starts")
        server = endpoint(0, "server")
        check(any("listening" in line for line in server.stdout), "the server listens")
        bed.start_hca(f"unix:{bed.dir}/first")
        sm = bed.start_opensm()
        bed.wait_for_sm(sm, "SUBNET UP")
        client = endpoint(1, "client", "--peer", "10.77.0.1", "--op", "write", "--duration", "200")
        wait_until(lambda: bed.run("saquery", status=None).count("NodeRecord dump") == 4, "OpenSM knows both endpoints")
        names = "".join(f"endpoint-{i}" for i in (0, 1) if f'"endpoint-{i}"' in bed.ask("ibnetdiscover"))
        check(names == "endpoint-0endpoint-1", f"ibnetdiscover knows them: {names}")
        lids = [lid_of(bed, f"endpoint-{i}") for i in (0, 1)]
        wait_until(lambda: all("LinkState:.......................Active" in bed.run(f"smpquery portinfo {lid} 1", status=None) for lid in lids),
                   "OpenSM makes their ports active", 20)
        check(count("-> switch port")(bed.ask(f"ibtracert {lids[0]} {lids[1]}")) == 1, "ibtracert passes the switch")

        def received():
            return int(re.search(r"^PortRcvData:\.+(\d+)", bed.ask(f"perfquery -x {lids[0]} 1"), re.M).group(1))

        before = received()
        wait_until(lambda: received() > before + 100000, "perfquery counts what the client writes", 20)
        bed.stop(client, signal.SIGINT)
        check(client.returncode == 130, "the client ends when it is interrupted")
        client = endpoint(1, "client", "--peer", "10.77.0.1", "--op", "write", "--iters", "1000", "--verify")
        check(client.wait(60) == 0, "the client ends well, every byte compared")

        def registers(node, *names):
            done = subprocess.run([os.environ["UROCE_CTL"], "reg", "read", node, *names, "--socket", bed.dir / "first", "--json", "-"],
                                  text=True, capture_output=True, timeout=60)
            return [int(json.loads(done.stdout)[name], 0) for name in names] if done.returncode == 0 else [-1] * len(names)

        seen = registers("endpoint-0", "handshakes:1", "link_recovered:1")
        check(seen[0] >= 2 and seen[1] == 0, f"the server counts the connections of both clients: {seen}")
        print("ok: endpoints with traffic")


def rings_scenario():
    """Two switches in one process, joined by a ring; the adapter on a socket, and endpoints by memif: no interface of the kernel. An
    endpoint that goes and comes is seen by OpenSM, the counters and uroce-ctl."""
    with Bed() as bed:
        path = f"{bed.dir}/fabric"

        def endpoint(number, role, *options):
            config = bed.dir / f"endpoint-{number}.conf"
            config.write_text(f"[eal]\nhugepages = no\n[port]\ndriver = memif\ndevice = {bed.dir}/host{number}\nrole = client\n"
                              f"[address]\nipv4 = 10.77.0.{number + 1}/24\n[management]\ndescription = endpoint-{number}\n")
            return bed.start(os.environ["UROCE_PERF"], role, "--config", config, *options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        switches = bed.start(os.environ["UROCE_SWITCH"], "--set", "eal.hugepages=no", "--set", "forwarding.frames=512",
                             "--set", "management.open=yes", "--switch", "left", "--port", f"socket={path},clients=3", "--port", f"memif={bed.dir}/host0", "--port", "ring=trunk",
                             "--switch", "right", "--port", "ring=trunk", "--port", f"memif={bed.dir}/host1", stdout=subprocess.PIPE)
        check(any(line.startswith("right: forwarding") for line in switches.stdout), "uroce-switch starts")
        server = endpoint(0, "server")
        check(any("listening" in line for line in server.stdout), "the server listens")
        bed.start_hca(f"unix:{path}")
        sm = bed.start_opensm()
        bed.wait_for_sm(sm, "SUBNET UP")

        def seen(name):
            return f'"{name}"' in bed.run("ibnetdiscover", status=None)

        client = endpoint(1, "client", "--peer", "10.77.0.1", "--op", "write", "--size", "20000", "--duration", "200", "--verify")
        wait_until(lambda: all(seen(name) for name in ("left", "right", "endpoint-0", "endpoint-1")), "ibnetdiscover shows switches and endpoints")
        lids = [lid_of(bed, name) for name in ("endpoint-0", "endpoint-1", "right")]
        wait_until(lambda: count("Active/  LinkUp")(bed.run("iblinkinfo", status=None)) == 8, "iblinkinfo shows four links, each from both ends")
        path_ = bed.ask(f"ibtracert {lids[0]} {lids[1]}")
        check(count("-> switch port")(path_) == 2 and '"left"' in path_ and '"right"' in path_, f"ibtracert passes both switches:\n{path_}")

        def counter(name, lid, port, option="-x "):
            return int(re.search(rf"^{name}:\.+(\d+)", bed.ask(f"perfquery {option}{lid} {port}"), re.M).group(1))

        before = [counter("PortRcvData", lid, port) for lid, port in ((lids[0], 1), (lids[2], 1))]
        wait_until(lambda: all(counter("PortRcvData", lid, port) > then + 100000 for (lid, port), then in zip(((lids[0], 1), (lids[2], 2)), before)),
                   "perfquery counts what passes memif and ring", 20)
        check(counter("LinkDownedCounter", lids[2], 2, "") == 0, "the link has not been down")
        shown = bed.dir / "faults"
        with shown.open("w") as out:
            bed.start(os.environ["UROCE_CTL"], "faults", "--socket", path, stdout=out, stderr=subprocess.DEVNULL)

        def reports():
            done = subprocess.run([os.environ["UROCE_CTL"], "reg", "read", "right", "fault_here", "--socket", path, "--json", "-"],
                                  text=True, capture_output=True, timeout=60)
            return done.returncode == 0 and int(json.loads(done.stdout)["fault_here"], 0) == 1

        wait_until(reports, "the switch reports to uroce-ctl")
        lid = lids[2]
        bed.stop(client, signal.SIGINT)
        wait_until(lambda: re.search(rf"num:128 .* LID:{lid}\b", sm.log.read_text(errors="replace")), "OpenSM's log shows trap 128 of the switch", 20)
        wait_until(lambda: not seen("endpoint-1"), "ibnetdiscover does not show the endpoint", 20)
        check(counter("LinkDownedCounter", lid, 2, "") == 1, "the switch counts that the link went down")
        wait_until(lambda: re.search(r'^[^\n]*"right" port 2: link down', shown.read_text(), re.M), "uroce-ctl faults shows it", 20)
        client = endpoint(1, "client", "--peer", "10.77.0.1", "--op", "write", "--iters", "1000", "--verify")
        check(client.wait(60) == 0, "the endpoint that has come back transfers, every byte compared")
        wait_until(lambda: re.search(r'^[^\n]*"right" port 2: link up', shown.read_text(), re.M), "uroce-ctl faults shows that it is up", 20)
        print("ok: rings and memif")


def check_capture(capture):
    def tshark(what):
        return subprocess.run(["tshark", "-r", capture, "-Y", what], check=True, text=True, capture_output=True).stdout

    seen = tshark("infiniband.mad").count("\n")
    wrong = tshark("_ws.malformed")
    check(seen > 500, f"Wireshark takes {seen} packets for MADs, not more than 500")
    check(wrong == "", f"Wireshark finds malformed packets:\n{wrong[:2000]}")
    print(f"ok: {seen} MADs, none malformed for Wireshark")


def expect_nodes(bed, nodes, switches):
    out = bed.run("ibnetdiscover")
    check(count(r"^Switch\t")(out) == switches and count(r"^Ca\t")(out) == nodes - switches,
          f"ibnetdiscover finds {switches} switches and {nodes - switches} endpoints")


def sweep_scenario():
    """More than 500 nodes. A spine switch dies and returns, and so does a leaf with its endpoints. OpenSM looks for changes
    once an hour: it learns of these by traps."""
    leaves, spines, hosts = 24, 12, 20
    nodes, switches = leaves * (hosts + 1) + spines + 1, leaves + spines
    with Bed() as bed:
        bed.start_fabric(leaves, spines, hosts, ["first"])
        bed.start_hca(f"unix:{bed.dir}/first")
        sm = bed.start_opensm(sweep_s=3600)
        bed.wait_for_sm(sm, "SUBNET UP")
        expect_nodes(bed, nodes, switches)
        records = bed.run("saquery")
        check(records.count("NodeRecord dump") == nodes, f"saquery has {nodes} records")
        lids = [int(lid) for lid in re.findall(r"lid\.+(\d+)", records)]
        check(len(set(lids)) == nodes and min(lids) >= 1, "each node has a LID of its own")
        self_lid, far = lid_of(bed, "uroce0"), lid_of(bed, "host-24-20")
        path = bed.run(f"ibtracert {self_lid} {far}")
        spine = re.search(r'"(spine-\d+)"', path).group(1)

        bed.command(f"kill {spine}")
        bed.wait_for_sm(sm, "SUBNET UP", 2)
        expect_nodes(bed, nodes - 1, switches - 1)
        path = bed.run(f"ibtracert {self_lid} {far}")
        check(spine not in path and '"host-24-20"' in path, f"the path avoids {spine}:\n{path}")
        # Each endpoint answers at its LID: the tables lead everywhere.
        for leaf in range(1, leaves + 1):
            lid = lid_of(bed, f"host-{leaf}-1")
            check(f"host-{leaf}-1" in bed.run(f"smpquery nodedesc {lid}"), f"host-{leaf}-1 answers at LID {lid}")

        bed.command(f"revive {spine}")
        bed.wait_for_sm(sm, "SUBNET UP", 3)
        expect_nodes(bed, nodes, switches)
        bed.command("kill leaf-7")
        bed.wait_for_sm(sm, "SUBNET UP", 4)
        expect_nodes(bed, nodes - 1 - hosts, switches - 1)
        bed.command("revive leaf-7")
        bed.wait_for_sm(sm, "SUBNET UP", 5)
        expect_nodes(bed, nodes, switches)
        print(f"ok: OpenSM, {nodes} nodes")


def engines_scenario():
    """OpenSM's routing engines: each loads tables that lead from everywhere to everywhere."""
    for engine in ENGINES:
        with Bed() as bed:
            bed.start_fabric(4, 2, 2, ["first"])
            bed.start_hca(f"unix:{bed.dir}/first")
            sm = bed.start_opensm("-R", engine)
            bed.wait_for_sm(sm, "SUBNET UP")
            check(bed.sm_says(sm, f"{engine} tables configured on all switches"), f"OpenSM uses {engine}")
            lids = [int(lid) for lid in re.findall(r"lid\.+(\d+)", bed.run("saquery"))]
            check(len(lids) == 15, f"15 nodes, not {len(lids)}")
            for lid in lids[1:]:
                check(f"lid {lid}-{lid}" in bed.run(f"ibtracert {lids[0]} {lid}").splitlines()[-1], f"{engine}: a way from {lids[0]} to {lid}")
            print(f"ok: opensm -R {engine}")


def handover_scenario():
    """Two adapters with a subnet manager each: the second waits, and takes over when the first one dies."""
    with Bed() as bed:
        bed.start_fabric(LEAVES, SPINES, HOSTS, ["first", "second"])
        bed.start_hca(f"unix:{bed.dir}/first")
        bed.start_hca(f"unix:{bed.dir}/second", "uroce1")
        check(bed.run("ibstat -l") == "uroce0\nuroce1\n", "ibstat -l lists both")
        first = bed.start_opensm("-p", "5")
        bed.wait_for_sm(first, "SUBNET UP")
        second = bed.start_opensm("-p", "3", name="uroce1")
        bed.wait_for_sm(second, "Entering STANDBY state")
        check("SMINFO_MASTER" in bed.run(f"sminfo -C uroce1 {lid_of(bed, 'uroce0')}"), "the second adapter sees the master")
        check("SMINFO_STANDBY" in bed.run(f"sminfo {lid_of(bed, 'uroce1')}"), "the first adapter sees the standby")
        bed.stop(first, signal.SIGKILL)
        bed.wait_for_sm(second, "Entering MASTER state")
        bed.wait_for_sm(second, "SUBNET UP")
        lid = lid_of(bed, "uroce1")
        check(re.search(rf"sm lid {lid} .*SMINFO_MASTER", bed.run("sminfo")), "the first adapter sees the new master")
        # An endpoint that is not an agent of uroce: a server of ibping on one adapter, its client on the other.
        server = bed.start(os.environ["UROCE_UMAD_RUN"], *IBPING_SERVER[0].split(), env=bed.environment())
        wait_until(lambda: IBPING[2](bed.run(IBPING[0].format(host=lid), status=None)), "ibping", 20)
        bed.stop(server)
        print("ok: two subnet managers")


def zone_scenario():
    """A zone's manager and OpenSM: the switch has the zone's key, so OpenSM manages its adapter alone; then the key is given back."""
    with Bed() as bed:
        path, key, zones = bed.dir / "fabric.sock", bed.dir / "key", bed.dir / "zones"
        switch = bed.start(os.environ["UROCE_SWITCH"], "--port", f"socket={path},clients=4", "--set", "eal.hugepages=no", stdout=subprocess.PIPE)
        check(any(line.startswith("forwarding") for line in switch.stdout), "uroce-switch starts")

        def ctl(*words):
            done = subprocess.run([os.environ["UROCE_CTL"], *map(str, words), "--socket", path], text=True, capture_output=True, timeout=60)
            check(done.returncode == 0, f"uroce-ctl {words}: {done.stdout}{done.stderr}")
            return json.loads(done.stdout) if "--json" in words else done.stdout

        def key_of_switch():
            return ctl("keys", "show", "uroce-switch", "--json", "-", "--m-key-file", key if key.exists() else "/dev/null")[0]["key"]

        guid = next(n["guid"] for n in ctl("topology", "--json", "-")["nodes"] if n["type"] == "switch")
        zones.write_text(f"zone lab\nkey 0x77\nlease 2\nnode {guid}\n")
        manager = bed.start(os.environ["UROCE_CTL"], "manage", "run", "lab", "--zones", zones, "--socket", path, "--key-out", key,
                            "--json", bed.dir / "events", stdout=subprocess.DEVNULL)

        def events(name):
            lines = (bed.dir / "events").read_text().splitlines(keepends=True) if (bed.dir / "events").exists() else []
            return [e for e in (json.loads(line) for line in lines if line.endswith("\n")) if e["event"] == name]

        wait_until(lambda: any(e["held"] == 1 for e in events("nodes")), "the switch has the zone's key")
        terms = len(events("state"))
        bed.start_hca(f"unix:{path}")
        sm = bed.start_opensm()
        bed.wait_for_sm(sm, "Entering MASTER state")
        wait_until(lambda: "SMINFO_MASTER" in bed.run("sminfo -D 0", status=None), "OpenSM is master among its own kind")
        # It tries to configure the switch, which refuses.
        wait_until(lambda: int(ctl("reg", "read", "uroce-switch", "agent_bad_key", "--json", "-")["agent_bad_key"], 0) > 0, "the switch refuses OpenSM's writes")
        lid = re.compile(r"^Lid:\.+0$", re.M)
        check(lid.search(bed.run("smpquery -D portinfo 0,1 0")), "OpenSM gives the switch no LID")
        check(key_of_switch() == key.read_text().strip(), "the switch has the zone's key still")
        ctl("reg", "write", "uroce-switch", "scratch", "7", "--m-key-file", key)
        check([m["state"] for m in ctl("manage", "list", "--zones", zones, "--json", "-")] == ["master"], "the zone has its master")
        check(len(events("state")) == terms, f"the manager was master all the time: {events('state')}")
        # When the zone's manager ends, the switch is OpenSM's.
        bed.stop(manager)
        check(events("end"), "the manager ends")
        wait_until(lambda: not lid.search(bed.run("smpquery -D portinfo 0,1 0", status=None)), "OpenSM gives the switch a LID", 60)
        wait_until(lambda: "State: Active" in bed.run("ibstat uroce0 1"), "OpenSM makes the link active")
        print("ok: a zone's manager beside OpenSM")


SCENARIOS = {"socket": socket_scenario, "veth": veth_scenario, "switches": switches_scenario,
             "endpoints": endpoints_scenario, "rings": rings_scenario, "engines": engines_scenario, "sweep": sweep_scenario, "handover": handover_scenario, "zone": zone_scenario}


def table():
    lines = ["| command | outcome |", "|---|---|"]
    lids = {"self": "LID", "host": "LID", "leaf": "LID", "leaf_guid": "GUID"}
    for command, outcome, *_ in [*BEFORE_SM, OPENSM, *WITH_SM, IBPING_SERVER, IBPING]:
        lines.append(f"| `{command.format(**lids)}` | {outcome} |")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        text = PAGE.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        PAGE.write_text(text[:begin] + table() + text[end:])
        return 0
    if len(sys.argv) != 2 or sys.argv[1] not in SCENARIOS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        check(table() in PAGE.read_text(), f"{PAGE} does not have the table of this program: run it with --write")
        SCENARIOS[sys.argv[1]]()
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


sys.exit(main())
