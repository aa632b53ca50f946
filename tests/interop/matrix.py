#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Defines and runs the scenarios between uroce and the kernel's rxe.

tests/interop/run calls this program in uroce's network namespace, once for each kernel. The scenarios of a
`Group` share an endpoint with the group's impairment. A scenario is a line of keys for interop-uroce (spec.h).
"""

import argparse
import re
import subprocess
import sys
import time

from guest_command import GuestCommand

SOME_FAILED = 3  # exit status; any other but 0 is this program's own failure

IMPAIRED = {
    0: {},
    1: {"loss": 1, "duplicate": 1, "reorder": 2},
    5: {"loss": 5, "duplicate": 1, "reorder": 2},
}


# rxe of this kernel completes a READ with the old contents of its memory if an ACK of an older request arrives among
# the responses; this also happens between two rxe. So for its READs, uroce's transmit direction has no reordering.
CONFUSED_BY_LATE_ACKS = "6.12"


class Group:
    """Scenarios with the same loss rate."""

    def __init__(self, name, loss=0, sets=()):
        self.name, self.loss, self.sets = name, loss, list(sets)
        self.capture = name
        self.scenarios = []

    def parts(self, kernel):
        """The group itself, or its scenarios split into two groups with different impairment."""
        if self.loss == 0 or kernel != CONFUSED_BY_LATE_ACKS:
            return [self]
        orderly = Group(self.name, self.loss, [*self.sets, "impair.tx_reorder=0"])
        orderly.capture += "-orderly"
        others = Group(self.name, self.loss, self.sets)
        for scenario in self.scenarios:
            keys = scenario[2]
            reads = {"read", "cas", "fadd"} & set(keys.get("ops", "").split(",")) and keys.get("from") != "uroce"
            (orderly if reads else others).scenarios.append(scenario)
        return [others, orderly]

    def add(self, name, short=False, **keys):
        """Adds a scenario. If the name ends in ".from-END", that end posts the requests."""
        end = re.search(r"\.from-(\w+)$", name)
        if end:
            keys["from"] = end[1]
        self.scenarios.append((f"{self.name}.{name}", short, keys))

    def settings(self):
        impair = [f"impair.{d}_{key}={value}" for d in ("rx", "tx")
                  for key, value in IMPAIRED[self.loss].items()]
        return ["eal.hugepages=no", "worker.mode=inline"] + impair + self.sets


RC_OPS = "send,send_imm,write,write_imm,read,cas,fadd"
UC_OPS = "send,send_imm,write,write_imm"
ENDS = ("uroce", "rxe")


def around(mtu):
    """Sizes at boundaries: padding, one packet or two, a full last packet."""
    return ",".join(str(n) for n in (0, 1, 2, 3, 4, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 3, 9 * mtu + 77))


def clean():
    g = Group("clean")
    for end in ENDS:
        for mode in ("gbn", "reorder"):
            g.add(f"rc.{mode}.from-{end}", short=mode == "gbn", ops=RC_OPS, sizes=around(1024), mode=mode)
        for mtu in (256, 512, 2048, 4096):
            g.add(f"rc.mtu{mtu}.from-{end}", short=mtu == 4096, mtu=mtu, ops=RC_OPS, sizes=around(mtu))
        for gid in ("6", "ll"):
            g.add(f"rc.gid-{gid}.from-{end}", short=gid == "ll", gid=gid, ops=RC_OPS, sizes=around(1024))
            g.add(f"ud.gid-{gid}.from-{end}", short=gid == "6", service="ud", gid=gid, ops="send,send_imm",
                  sizes="0,1,2,3,64,1000,1024")
        g.add(f"rc.large.from-{end}", short=True, ops="send,write,read,write_imm", sizes="65536,1048576,4194304",
              depth=4, mtu=4096)
        g.add(f"rc.large-mtu1024.from-{end}", ops="send,write,read", sizes="100000,1000001,4194304", depth=4)
        g.add(f"rc.pieces.from-{end}", short=True, ops=UC_OPS + ",read", sizes=around(1024), sge=4, signal=7)
        g.add(f"rc.inline.from-{end}", short=True, ops=UC_OPS, sizes="0,1,3,8,33,64", inline_data=1, signal=3)
        g.add(f"rc.fence.from-{end}", short=True, ops="read,relay,cas", sizes=around(1024), depth=24)
        g.add(f"rc.solicited.from-{end}", short=True, ops="send,write_imm,write", sizes="0,100,5000", count=64, solicited=1)
        g.add(f"rc.psn-wrap.from-{end}", short=True, psn=0xfffff8, ops=RC_OPS, sizes="10,3000,10000", depth=21)
        g.add(f"rc.psn-wrap-read.from-{end}", psn=0xfffffe, ops="read,write", sizes="9000,100000")
        g.add(f"rc.one-read-at-a-time.from-{end}", ops="read,fadd,read,cas", sizes="100,5000", count=64, rd=1)
        g.add(f"rc.deep.from-{end}", ops="send,write", sizes="64", count=1024, depth=128, signal=16)
        for srq in ENDS:
            g.add(f"rc.srq-{srq}.from-{end}", short=srq != end, srq=srq, ops=RC_OPS, sizes=around(1024))
        g.add(f"uc.from-{end}", short=True, service="uc", ops=UC_OPS, sizes=around(1024))
        g.add(f"uc.mtu4096.from-{end}", service="uc", mtu=4096, ops=UC_OPS, sizes=around(4096), sge=3)
        g.add(f"uc.gid-6.from-{end}", service="uc", gid="6", ops=UC_OPS, sizes=around(1024))
        g.add(f"uc.srq.from-{end}", service="uc", srq="both", ops=UC_OPS, sizes=around(1024))
        g.add(f"ud.from-{end}", short=True, service="ud", ops="send,send_imm", sizes="0,1,2,3,64,1000,1024")
        g.add(f"ud.pieces.from-{end}", service="ud", mtu=4096, ops="send,send_imm", sizes="10,1000,4096", sge=3, signal=4)
        g.add(f"ud.srq.from-{end}", service="ud", srq="both", ops="send,send_imm", sizes="0,1,1024")
    for mode in ("gbn", "reorder"):
        g.add(f"rc.{mode}.from-both", short=mode == "reorder", mode=mode, ops=RC_OPS, sizes=around(1024))
        g.add(f"rc.{mode}.large.from-both", mode=mode, ops="write,read,send", sizes="65536,1048576", depth=8, mtu=4096)
    return g


def lossy(percent):
    g = Group(f"loss{percent}", loss=percent)
    # rxe recovers losses at the end of a message only by its timeout, and never gives up.
    patience = {"uroce": {}, "both": {}, "rxe": {"timeout": 15}}
    for mode in ("gbn", "reorder"):
        for end in ENDS + ("both",):
            short = end == "both" and percent == 1
            g.add(f"rc.{mode}.from-{end}", short=short, mode=mode, ops=RC_OPS, sizes=around(1024), **patience[end])
            g.add(f"rc.{mode}.long.from-{end}", mode=mode, ops="write,read,send", sizes="65536,300000", count=24,
                  depth=6, **patience[end])
        for end in ENDS:
            g.add(f"rc.{mode}.burst.from-{end}", mode=mode, ops="write,read", sizes="65536", count=32, depth=2,
                  **patience[end])
            g.add(f"rc.{mode}.srq.from-{end}", mode=mode, srq="both", ops="send,write_imm,send_imm",
                  sizes=around(1024), **patience[end])
            g.add(f"rc.{mode}.mtu4096.from-{end}", mode=mode, mtu=4096, gid="6", ops=RC_OPS,
                  sizes="1,4096,20000,400000", **patience[end])
            g.add(f"rc.{mode}.large.from-{end}", mode=mode, mtu=4096, ops="write,read,send", sizes="4194304", depth=2,
                  **patience[end])
    for end in ENDS:
        g.add(f"uc.from-{end}", short=percent == 1, service="uc", lossy=1, ops="send_imm,write_imm", sizes=around(1024),
              count=200, depth=200)
        g.add(f"ud.from-{end}", short=percent == 1, service="ud", lossy=1, ops="send_imm", sizes="8,500,1024",
              count=200, depth=200)
    return g


REFUSED = ("key-write", "key-write-long", "key-read", "key-fadd", "end-write", "end-read", "right-write", "right-read",
           "long-send", "long-send-packets")


def faults(loss):
    """Requests that end in an error, and receivers that are not ready."""
    room = {"sizes": "10000"}  # memory for the requests of kinds that are not rounds
    g = Group("faults" if loss == 0 else f"faults-loss{loss}", loss=loss)
    for end in ENDS:
        # Only without loss, because a queue pair in error does not repeat a lost NAK.
        for fault in REFUSED if loss == 0 else ():
            short = fault in ("key-write", "end-read", "long-send")
            g.add(f"refused.{fault}.from-{end}", short=short, kind="refused", fault=fault, **room)
        g.add(f"not-ready.from-{end}", short=loss == 0, late_ms=150, ops="send,send_imm,write,write_imm,read",
              sizes=around(1024), depth=12)
        g.add(f"not-ready.gbn.from-{end}", late_ms=150, ops="send,write_imm,read", sizes=around(1024), mode="gbn", depth=12)
        g.add(f"not-ready.srq.from-{end}", late_ms=100, ops="send,write_imm,send_imm", sizes="10,5000,100", srq="both", count=60, depth=12)
        g.add(f"rnr-exceeded.from-{end}", short=loss == 0, kind="rnr-exceeded", rnr_retry=2, **room)
        g.add(f"death.from-{end}", short=loss == 0, kind="death", retry=3, timeout=14, **room)
        if loss == 0:
            g.add(f"invalidate.from-{end}", short=True, kind="invalidate", **room)
            g.add(f"wrong-qkey.from-{end}", short=True, kind="wrong-qkey", service="ud", **room)
    for gid in ("4", "6"):
        if loss == 0:
            g.add(f"vanish.gid-{gid}", short=gid == "4", kind="vanish", connect="cm", active="uroce" if gid == "4" else "rxe", gid=gid)
    return g


def cm():
    """Connections by CM. uroce connects or accepts."""
    g = Group("cm")
    for end in ENDS:
        for gid in ("4", "6", "ll"):
            g.add(f"rc.gid-{gid}.by-{end}", short=gid == "6", connect="cm", active=end, gid=gid, ops=RC_OPS,
                  sizes=around(1024), **{"from": "both"})
        g.add(f"refusals.by-{end}", short=True, connect="cm", active=end, kind="refusals", ops=RC_OPS, sizes="100,5000")
        g.add(f"20-connections.by-{end}", short=True, connect="cm", active=end, kind="connections", count=20,
              ops="send,read", sizes="3000", **{"from": "both"})
        g.add(f"1000-connections.by-{end}", connect="cm", active=end, kind="connections", count=1000,
              ops="send,read", sizes="100", **{"from": "both"})
        g.add(f"srq.by-{end}", connect="cm", active=end, srq="both", ops=RC_OPS, sizes=around(1024), **{"from": "both"})
    return g


def cm_lossy():
    g = Group("cm-loss1", loss=1)
    for end in ENDS:
        g.add(f"rc.by-{end}", connect="cm", active=end, ops=RC_OPS, sizes=around(1024), **{"from": "both"})
        g.add(f"50-connections.by-{end}", connect="cm", active=end, kind="connections", count=50, ops="send,read",
              sizes="3000", **{"from": "both"})
    return g


def dedicated():
    """Dedicated workers of uroce; all other groups use inline mode."""
    g = Group("dedicated", sets=["worker.mode=dedicated"])
    g.add("rc.from-both", short=True, ops=RC_OPS, sizes=around(1024))
    g.add("rc.large.from-both", ops="write,read,send", sizes="65536,1048576", depth=8, mtu=4096)
    for end in ENDS:
        g.add(f"uc.from-{end}", service="uc", ops=UC_OPS, sizes=around(1024))
        g.add(f"ud.from-{end}", service="ud", ops="send,send_imm", sizes="0,1,2,3,64,1000,1024")
        g.add(f"20-connections.by-{end}", connect="cm", active=end, kind="connections", count=20, ops="send,read",
              sizes="3000", **{"from": "both"})
    return g


def volume(megabytes):
    """The given volume of each operation, in each direction and mode, on a bad link."""
    g = Group("volume", loss=1)
    for mode in ("gbn", "reorder"):
        for end in ENDS:
            for op in ("write", "read", "send"):
                g.add(f"{op}.{mode}.from-{end}", mode=mode, ops=op, sizes="65536", depth=32, mtu=4096,
                      megabytes=megabytes, timeout=13 if end == "rxe" else 18)
    return g


# Limits: packets sent again per packet lost, and share of the losses repaired by timeouts.
RESENT_BAR, TIMEOUT_BAR = 6, 0.05


def recovery(runs):
    """Many short connections on a bad link, for the figures of judge_recovery()."""
    g = Group("recovery", loss=1)
    for mode in ("gbn", "reorder"):
        for run in range(runs):
            g.add(f"{mode}.{run}.from-uroce", mode=mode, ops="write,read,send", sizes="65536", count=60, depth=6,
                  mtu=(1024, 4096)[run % 2], seed=run + 1)
    return g


def judge_recovery(said, runs):
    """Compares losses and repairs of all runs of a mode with the bars; returns the number of missed bars."""
    missed = 0
    for mode in ("gbn", "reorder"):
        mine = [line for line in said if f".recovery.{mode}." in line]
        dead = runs - sum(line.startswith("ok ") for line in mine)
        lost, again, timeouts, probes = (
            sum(int(n) for n in re.findall(f"{what} (\\d+)", "\n".join(mine)))
            for what in ("lost", "sent again", "timeouts", "probes"))
        print(f"recovery, {mode}: {runs} runs, {lost} lost, {again} sent again, {timeouts} timeouts, {probes} probes")
        for what, value, bar in (("runs that failed", dead, 0), ("sent again / lost", again / max(lost, 1), RESENT_BAR),
                                 ("timeouts / lost", timeouts / max(lost, 1), TIMEOUT_BAR)):
            met = lost > 0 and value <= bar
            print(f"{'ok' if met else 'MISSED'} recovery.{mode}: {what} {value:.3g}, at most {bar:g}", flush=True)
            missed += not met
    return missed


def matrix():
    return [clean(), dedicated(), faults(0), faults(1), cm(), cm_lossy(), lossy(1), lossy(5)]


def lines(group, args):
    for name, short, keys in group.scenarios:
        if args.short and not short or args.only and not re.search(args.only, name):
            continue
        for run in range(args.repeat):
            # Each run has its own data; the first one has that of the scenario.
            again = {"seed": int(keys.get("seed", 1)) + 1000 * run} if run else {}
            yield " ".join([f"{name}.{run + 1}" if args.repeat > 1 else name] +
                           [f"{k}={v}" for k, v in {**keys, **again}.items()])


def run_group(group, args, said):
    """Returns (passed, failed). Prints the output of interop-uroce, keeps it in `said`, and names scenarios that were
    not run."""
    todo = list(lines(group, args))
    if not todo:
        return 0, 0
    command = [f"{args.programs}/interop-uroce", "run", "--config", args.config, "--peer", args.guest]
    for setting in group.settings():
        command += ["--set", setting]
    if args.keep:
        command += ["--set", f"capture.file={args.keep}/{args.kernel}-{group.capture}.pcap"]
    passed = failed = 0
    with open(f"{args.tmp}/interop-uroce.log", "a") as log:
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, errors="replace")
        p.stdin.write("\n".join(todo) + "\n")
        p.stdin.close()
        for line in p.stdout:
            word, _, rest = line.rstrip().partition(" ")
            said.append(f"{word} {args.kernel}.{rest}")
            print(said[-1], flush=True)
            passed += word == "ok"
            failed += word == "FAILED"
        p.wait()
    for line in todo[passed + failed:]:
        print(f"FAILED {args.kernel}.{line.split()[0]}: the program ended with status {p.returncode}")
        failed += 1
    return passed, failed


GUEST_IPS = {"4": "10.77.0.2", "6": "fd77::2"}
OUR_IPS = {"4": "10.77.0.1", "6": "fd77::1"}
# Options of rdmacm-utils. With -V, both ends compare every step of rping.
TOOLS = {
    "rping": {"server": "rping -s -a {guest} -p 7174 -C {count} -S {bytes} -V",
              "client": "rping -c -a {us} -p 7174 -C {count} -S {bytes} -V"},
    "ucmatose": {"server": "ucmatose -b {guest} -C {count} -S {bytes}",
                 "client": "ucmatose -s {us} -C {count} -S {bytes}"},
    "udaddy": {"server": "udaddy -b {guest} -C {count} -S {bytes}",
               "client": "udaddy -s {us} -C {count} -S {bytes}"},
}


def tools():
    """(name, short, tool, role of the guest's end, family, count, bytes). Without loss, because these tools end when
    they have received everything, even if their last ACK has not arrived."""
    for tool in TOOLS:
        for role in ("server", "client"):
            yield f"{tool}.guest-{role}", True, tool, role, "4", 10, 1000
            yield f"{tool}.guest-{role}.gid-6", False, tool, role, "6", 10, 1000
    for role in ("server", "client"):
        yield f"rping.guest-{role}.large", False, "rping", role, "4", 50, 65000


def greet(guest):
    """Waits until the guest's program listens; returns the kernel's version."""
    for _ in range(300):
        try:
            return GuestCommand(guest, "uname -r").finish()[1].split()[0]
        except (OSError, IndexError):
            time.sleep(0.2)
    return None


def run_tool(args, tool, role, family, count, size):
    """Returns None, or the reason of a failure."""
    values = {"guest": GUEST_IPS[family], "us": OUR_IPS[family], "count": count, "bytes": size}
    ours = [f"{args.programs}/interop-cm", tool, "--config", args.config, "--count", str(count), "--bytes", str(size)]
    for setting in Group("").settings():
        ours += ["--set", setting]
    if role == "server":
        theirs = GuestCommand(args.guest, TOOLS[tool][role].format(**values))
        ours += ["--peer", GUEST_IPS[family]]
    p = subprocess.Popen(ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if role == "client":
        first = p.stdout.readline()
        if first != "listening\n":
            return f"uroce's end says: {first}{p.communicate()[0]}"
        theirs = GuestCommand(args.guest, TOOLS[tool][role].format(**values))
    try:
        said, _ = p.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        p.kill()
        said, _ = p.communicate()
    status, output = theirs.finish()
    if p.returncode == 0 and status == 0:
        return None
    return f"uroce's end has status {p.returncode}: {said.strip()}; {tool} has {status}: {output[-300:].strip()}"


def run_tools(args):
    passed = failed = 0
    for name, short, *how in tools():
        name = f"tools.{name}"
        if args.short and not short or args.only and not re.search(args.only, name):
            continue
        why = run_tool(args, *how)
        print(f"ok {args.kernel}.{name}" if why is None else f"FAILED {args.kernel}.{name}: {why}", flush=True)
        passed, failed = passed + (why is None), failed + (why is not None)
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True)
    for option in ("--programs", "--config", "--guest", "--tmp", "--keep", "--only"):
        parser.add_argument(option)
    parser.add_argument("--volume", type=float, default=0)
    parser.add_argument("--recovery", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.repeat < 1:
        parser.error("--repeat needs a number from 1 on")
    apart = args.volume or args.recovery or args.repeat > 1
    groups = [volume(max(1, int(args.volume / 1e6)))] if args.volume else \
        [recovery(args.recovery)] if args.recovery else matrix()
    if args.list:
        for group in groups:
            for line in lines(group, args):
                print(line)
        return 0
    release = greet(args.guest)
    if release is None:
        print("FAILED interop: the program in the guest does not answer")
        return SOME_FAILED
    print(f"interop: rxe of Linux {release}", flush=True)
    passed, failed = (0, 0) if apart else run_tools(args)
    said = []
    for group in groups:
        for part in group.parts(args.kernel):
            p, f = run_group(part, args, said)
            passed, failed = passed + p, failed + f
    if args.recovery:
        failed += judge_recovery(said, args.recovery)
    print(f"interop {args.kernel}: {passed} passed, {failed} failed")
    return SOME_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
