# SPDX-License-Identifier: BSD-3-Clause
"""Runs of a simulator that are kept: one file for each, named by a digest of the program and its arguments. The same arguments
give the same run on every machine, so what is kept need not be run again until the program changes what it computes."""

import hashlib
import json
import pathlib
import subprocess
import threading
import time

from .host import ROOT, Failure

FOLDER = ROOT / "results" / "cells"


def engine():
    """What git calls the tree of lib/, with + if it was changed since; empty without git."""
    def git(*argv):
        done = subprocess.run(["git", "-C", str(ROOT), *argv], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "lib")
    return git("rev-parse", "--short=12", "HEAD:lib") + ("+" if changed else "")


class Cells:
    """`program`: the path of the binary. `resume`: take what is kept, else run everything anew. `seconds`: after that no run
    begins, and run() returns None; None: without limit."""

    def __init__(self, program, resume, seconds=None, folder=FOLDER, say=lambda text: None):
        self.program, self.folder, self.say = pathlib.Path(program), pathlib.Path(folder), say
        self.end = None if seconds is None else time.monotonic() + seconds
        self.resume, self.stopped = resume, threading.Event()
        self.engine = engine()
        self.made = set()  # by this process

    def path(self, words):
        text = json.dumps([self.program.name, sorted((str(k), str(v)) for k, v in words.items())])
        return self.folder / (hashlib.sha256(text.encode()).hexdigest()[:24] + ".json")

    def known(self, words):
        """What the run has given, with `engine`; None: it was not run."""
        path = self.path(words)
        if path not in self.made and not self.resume:
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return {**kept["found"], "engine": kept["engine"]}

    def run(self, words, check=lambda found: None):
        """`check` returns what is wrong with the result, if anything is."""
        found = self.known(words)
        if found or self.stopped.is_set() or (self.end is not None and time.monotonic() > self.end):
            return found
        argv = [str(self.program), *(f"--{name}={value}" for name, value in words.items())]
        self.say(" ".join(argv))
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"`{' '.join(argv)}` fails: {(done.stderr or done.stdout).strip()[-300:]}")
        found = json.loads(done.stdout)
        wrong = check(found)
        if wrong:
            raise Failure(f"`{' '.join(argv)}`: {wrong}")
        self.keep(words, found)
        return {**found, "engine": self.engine}

    def keep(self, words, found):
        path = self.path(words)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{threading.get_ident()}")
        part.write_text(json.dumps({"words": words, "engine": self.engine, "found": found}), encoding="utf-8")
        part.replace(path)  # never a half
        self.made.add(path)
