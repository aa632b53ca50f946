#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios that uroce and the kernel's rxe run against each other, and what runs them.

tests/interop/run calls it in uroce's network namespace, once for each kernel. Scenarios of one `Group` share
an endpoint, opened with the group's impairment; a scenario is a line of keys for interop-uroce (spec.h).
"""

import argparse
import re
import subprocess
import sys

IMPAIRED = {
    0: {},
    1: {"loss": 1, "duplicate": 1, "reorder": 2},
    5: {"loss": 5, "duplicate": 1, "reorder": 2},
}


class Group:
    """Scenarios at one rate of loss."""

    def __init__(self, name, loss=0, sets=()):
        self.name, self.loss, self.sets = name, loss, list(sets)
        self.scenarios = []

    def add(self, name, short=False, **keys):
        self.scenarios.append((f"{self.name}.{name}", short, keys))

    def settings(self):
        impair = [f"impair.{d}_{key}={value}" for d in ("rx", "tx")
                  for key, value in IMPAIRED[self.loss].items()]
        return ["eal.hugepages=no", "worker.mode=inline"] + impair + self.sets


def matrix():
    clean = Group("clean")
    clean.add("rc-send", short=True, ops="send", sizes="0,1,64,1024,4096")
    return [clean]


def lines(group, args):
    for name, short, keys in group.scenarios:
        if args.short and not short or args.only and not re.search(args.only, name):
            continue
        yield " ".join([name] + [f"{k}={v}" for k, v in keys.items()])


def run_group(group, args):
    """(passed, failed); prints what interop-uroce says, and names what it never came to."""
    todo = list(lines(group, args))
    if not todo:
        return 0, 0
    command = [args.program, "run", "--config", args.config, "--peer", args.guest]
    for setting in group.settings():
        command += ["--set", setting]
    with open(f"{args.tmp}/interop-uroce.log", "a") as log:
        p = subprocess.run(command, input="\n".join(todo) + "\n", stdout=subprocess.PIPE, stderr=log, text=True)
    passed = failed = 0
    for line in p.stdout.splitlines():
        word, _, rest = line.partition(" ")
        print(f"{word} {args.kernel}.{rest}", flush=True)
        passed += word == "ok"
        failed += word == "FAILED"
    for line in todo[passed + failed:]:
        print(f"FAILED {args.kernel}.{line.split()[0]}: the program ended with status {p.returncode}")
        failed += 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True)
    for option in ("--program", "--config", "--guest", "--tmp", "--keep", "--only"):
        parser.add_argument(option)
    parser.add_argument("--volume", type=float, default=0)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    groups = matrix()
    if args.list:
        for group in groups:
            print("\n".join(lines(group, args)))
        return 0
    passed = failed = 0
    for group in groups:
        p, f = run_group(group, args)
        passed, failed = passed + p, failed + f
    print(f"interop {args.kernel}: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
