# SPDX-License-Identifier: BSD-3-Clause
"""Networks of 1024 and 4096 hosts: runs that end, their memory and time."""

NAME = "size"
RUNS = {"full": ({"topology": "tree", "k": 4, "n": 5, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "permutation", "warm": 5_000, "run": 10_000, "qps": 4},
                 {"topology": "tree", "k": 16, "n": 3, "pattern": "uniform_random", "warm": 2_000, "run": 5_000, "slots": 16,
                  "qps": 254}),
        "small": ({"topology": "tree", "k": 4, "n": 4, "pattern": "uniform_random", "warm": 10_000, "run": 20_000},)}
HOST_BYTES = 256 << 10  # besides queue pairs


def words(run, seed):
    return {**run, "pacing": "auto", "seed": seed}


def check(found):
    return "requests fail" if found["errors"] else None


def plan(size, seeds):
    for run in RUNS[size]:
        yield words(run, seeds[0])


def report(out, cells, size, seeds):
    lines = []
    for run in RUNS[size]:
        found = cells.known(words(run, seeds[0]))
        if not found:
            continue
        rate = found["events"] / max(found["cpu_seconds"], 0.01)
        lines.append([found["hosts"], run["pattern"], run["run"], f"{found['events'] / 1e6:.0f}", f"{found['cpu_seconds']:.0f}",
                      f"{rate / 1e6:.2f}", found["rss_mb"], f"{found['host_bytes'] / 1024:.0f}", found["queue_pairs"]])
        out.rows.append({"part": NAME, **{k: found[k] for k in ("hosts", "pattern", "events", "cpu_seconds", "rss_mb",
                                                               "host_bytes", "queue_pairs")}})
    out.table("Large networks", ["hosts", "pattern", "ns measured", "events, 10^6", "CPU, s", "10^6 events/s", "memory, MB",
                                 "KB of a host", "queue pairs"], lines)
