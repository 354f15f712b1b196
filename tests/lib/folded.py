#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
folded.py REPORT TOLD: is the JSON report true of the program, whose words are in TOLD (tests/targets/truth.h), and are
the sums over its callers its totals? Reads a large report once. Prints what was folded, and definite leaks.
"""
import json
import sys

report = json.load(open(sys.argv[1]))
process = report["processes"][0]
stacks = process["stacks"]
wrong = []


def check(what, have, wanted):
    if have != wanted:
        wrong.append(f"{what}: report says {have}, not {wanted}")


def names_of(stack):
    frames = [report["frames"][i] for i in report["backtraces"][stack["backtrace"]]] if "backtrace" in stack else []
    return [report["functions"][f["function"]].get("name") if "function" in f else None for f in frames]


def of_function(name, key):
    return sum(s.get(key, 0) for s in stacks if name in names_of(s))


totals = process["totals"]
for line in open(sys.argv[2]):
    word, kind, *args = line.split()
    if word == "allocated":
        check("bytes allocated", totals["alloc_bytes"], int(kind))
    if kind == "calls" and args[0] in ("malloc", "free"):
        check(f"blocks by {args[0]}", totals["allocs" if args[0] == "malloc" else "frees"], int(args[1]))
    if kind == "calls":
        check(f"calls of {args[0]}", process["functions"].get(args[0], 0), int(args[1]))
    if kind == "live":
        for key, number in zip(("live_blocks", "live_bytes"), args):
            check(f"{key} of {args[2]}", of_function(args[2], key), int(number))
for key in ("allocs", "frees", "alloc_bytes", "live_blocks", "live_bytes", "peak_bytes", "temporary"):
    check(f"sum of {key}", sum(s.get(key, 0) for s in stacks), totals[key])
for key in ("allocs", "frees", "stacks", "other"):
    check(f"lost {key}", process["lost"][key], 0)
folded = process["folded"]
check("folded callers", sum(s.get("folded", 0) for s in stacks), folded["callers"])
check("note", any("are counted for the functions" in n for n in process["notes"]), folded["callers"] > 0)
check("callers folded without a frame that says so", 0,
      sum("folded" in s and names_of(s)[0] != "[folded callers]" for s in stacks))
print("\n".join(wrong))
scan = process["scan"] or {"definite": {"blocks": 0}}
print(folded["callers"], folded["live_callers"], scan["definite"]["blocks"], len(stacks))
sys.exit(len(wrong) > 0)
