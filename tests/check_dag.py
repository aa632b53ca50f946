#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_dag.py NM ARCHIVE PREFIX: the objects of ARCHIVE whose names begin with PREFIX call each other in one
direction only. Prints the cycles and which symbols close them, and fails if there is one."""

import subprocess
import sys


def symbols_of(nm, archive, prefix):
    """{object: (symbols that it defines, symbols that it needs)}"""
    listing = subprocess.run([nm, "--format=posix", "--print-armap", archive], capture_output=True, text=True,
                             check=True).stdout
    objects = {}
    name = None
    for line in listing.splitlines():
        if line.endswith("]:") and "[" in line:
            name = line[line.rindex("[") + 1:-2]
            continue
        words = line.split()
        if name is None or len(words) < 2 or not name.startswith(prefix):
            continue
        defined, needed = objects.setdefault(name, (set(), set()))
        if words[1] == "U":
            needed.add(words[0])
        elif words[1].isupper():
            defined.add(words[0])
    return objects


def calls_of(objects):
    """{object: {object that it calls: symbols}}"""
    home = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}
    calls = {name: {} for name in objects}
    for name, (_, needed) in objects.items():
        for symbol in needed:
            callee = home.get(symbol)
            if callee and callee != name:
                calls[name].setdefault(callee, set()).add(symbol)
    return calls


def cycles_of(calls):
    """Strongly connected components of more than one object (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for callee in calls[name]:
            if callee not in index:
                visit(callee)
                low[name] = min(low[name], low[callee])
            elif callee in stack:
                low[name] = min(low[name], index[callee])
        if low[name] == index[name]:
            members = set()
            while True:
                members.add(stack.pop())
                if name in members:
                    break
            if len(members) > 1:
                found.append(members)

    for name in sorted(calls):
        if name not in index:
            visit(name)
    return found


def main():
    nm, archive, prefix = sys.argv[1:]
    objects = symbols_of(nm, archive, prefix)
    calls = calls_of(objects)
    if len(objects) < 2 or not any(calls.values()):
        sys.exit(f"{archive} has no objects named {prefix}* that call each other")
    cycles = cycles_of(calls)
    for members in cycles:
        print("these call each other in a circle:", *sorted(members))
        for name in sorted(members):
            for callee in sorted(members & calls[name].keys()):
                print(f"  {name} -> {callee}: {', '.join(sorted(calls[name][callee]))}")
    if cycles:
        sys.exit(1)
    print(len(objects), "objects,", sum(len(c) for c in calls.values()), "edges, no cycle")


main()
