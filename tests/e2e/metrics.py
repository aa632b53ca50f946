#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""metrics.py PAGE [TELEMETRY RESULT]: the page is well-formed, agrees with what telemetry says of
/uroce/workers at the same time, and holds at least what uroce-perf's JSON result counts of the server."""
import json
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

text = open(sys.argv[1], encoding="utf-8").read()
wrong = []


def check(good, sentence):
    if not good:
        wrong.append(sentence)


# The grammar of the format, line by line; the parser below takes more than it says.
label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
name = r"uroce_[a-z0-9_]+"
line = re.compile(rf"# HELP {name} (?:[^\\\n]|\\[\\n])+|# TYPE {name} (?:counter|gauge)|"
                  rf"{name}\{{{label}(?:,{label})*\}} [0-9]+")
check(text.endswith("\n"), "the last line has no end")
for n, row in enumerate(text.splitlines(), 1):
    check(line.fullmatch(row), f"line {n} is not of the format: {row}")

heads = re.findall(r"^# TYPE (\S+) ", text, re.M)
check(len(heads) == len(set(heads)), "a family has two heads")
check(heads == re.findall(r"^# HELP (\S+) ", text, re.M), "a family lacks HELP or TYPE")

values = {}
for family in text_string_to_metric_families(text):
    check(family.documentation, f"{family.name} has no help")
    check(family.samples, f"{family.name} has no sample")
    for s in family.samples:
        # The parser calls a counter by its name without _total, a sample by the whole.
        check(s.name == family.name + ("_total" if family.type == "counter" else ""), f"{s.name} is a {family.type}")
        check(s.labels.get("port"), f"{s.name} has no port")
        key = (s.name, *sorted(s.labels.items()))
        check(key not in values, f"{key} stands there twice")
        values[key] = s.value


def total(counter):
    found = [v for k, v in values.items() if k[0] in (f"uroce_{counter}_total", f"uroce_{counter}")]
    check(found, f"{counter} is not on the page")
    return sum(found)


if len(sys.argv) > 2:
    said = open(sys.argv[2], encoding="utf-8").read()
    answer, _ = json.JSONDecoder().raw_decode(said, re.search(r'\{\s*"/uroce/workers"', said).start())
    answer = answer["/uroce/workers"]
    moving = {"no_mbuf", "sched_turns", "rx_frames", "tx_frames", "other_frames"}  # ARP, and rounds without work
    for counter in answer["worker0"]:
        there = sum(worker[counter] for worker in answer.values())
        if counter not in moving:
            check(total(counter) == there, f"{counter}: page {total(counter)}, telemetry {there}")
    result = json.load(open(sys.argv[3], encoding="utf-8"))["server"]["counters"]
    check(result["rx_write_requests"] >= 20000, "the result counts no writes")
    for counter, there in result.items():
        if counter in answer["worker0"] or counter == "dropped_packets":
            check(total(counter) >= there, f"{counter}: page {total(counter)}, result {there}")

for sentence in wrong[:20]:
    print(sentence, file=sys.stderr)
print(f"{len(values)} values of {len(heads)} families")
sys.exit(bool(wrong))
