#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the tester's own packets with bytes recorded from other hardware and another driver."""

import glob
import os
import struct
import sys

import roce


def frames(path):
    with open(path, "rb") as f:
        data = f.read()
    endian = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at < len(data):
        size = struct.unpack_from(endian + "I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def main():
    seen = 0
    bad = 0
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.pcap"))):
        for frame in frames(path):
            try:
                p = roce.parse(frame)
            except roce.Malformed as e:
                if "corrupt" not in path:
                    sys.exit(f"{path}: {e}")
                bad += 1
                continue
            if p is None or p.qpn == 1:
                continue
            if p.build() != frame[:len(p.build())]:
                sys.exit(f"{path}: {p}\n  was  {frame.hex()}\n  made {p.build().hex()}")
            seen += 1
    if seen < 500 or bad == 0:
        sys.exit(f"only {seen} good and {bad} bad packets were seen")
    print(f"{seen} packets taken apart and made again, {bad} wrong ones refused")


if __name__ == "__main__":
    main()
