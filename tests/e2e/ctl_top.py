#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_top.py UROCE_CTL: 'uroce-ctl top' on a terminal: the screen, its keys, and that it leaves the terminal as it was."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

ROWS, COLUMNS = 12, 120
WAIT_S = 60

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.execv(sys.argv[1], ["uroce-ctl", "top", "--fabric-model", "fattree:4", "--interval", "0.1",
                           "--model-event", "0.2,errors,core 1.1,2", "--model-event", "0.2,down,edge 2.0,1"])
said = b""


def read():
    global said
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            return False
    return True


def screens():
    """Those that are complete, without colours."""
    whole = said.decode().split("\033[H")[1:]
    return [re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", s).splitlines() for s in whole if "\033[J" in s]


def wait(what, holds):
    end = time.monotonic() + WAIT_S
    while not any(holds(s) for s in screens()[-1:]):
        assert time.monotonic() < end and read(), f"{what}: {screens()[-1:] or said}"


def press(key):
    """Only what is drawn from here on counts."""
    global said
    said = b""
    os.write(terminal, key)


wait("a table", lambda s: s[0].startswith("36 nodes, 0 do not answer; 96 ports, ") and s[2].startswith("node "))
assert b"\033[?1049h" in said, "it does not leave the shell's lines alone"
assert all(len(s) <= ROWS for s in screens()), "it is higher than the terminal"
assert not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON), "keys are not read one by one"
press(b"e")
wait("by errors", lambda s: s[1].startswith("by errors;") and s[3].startswith("core 1.1 ") and " 1000 " in s[3])
press(b"n")
wait("by node", lambda s: s[1].startswith("by node;") and s[3].startswith("host 0.0.0 "))
press(b"jj")
wait("two lines down", lambda s: s[3].startswith("edge 0.0 "))
press(b"k")
wait("a line up", lambda s: s[3].split()[:4] == ["edge", "0.0", "1", "init"])
press(b"l")
wait("by load", lambda s: s[1].startswith("by load;"))
press(b"d")
wait("by discards", lambda s: s[1].startswith("by discards;"))
press(b"q")
while read():
    pass
assert said.endswith(b"\033[?25h\033[?1049l"), said[-80:]
assert os.waitpid(pid, 0)[1] == 0
print("uroce-ctl top draws its screen and takes its keys")
