# SPDX-License-Identifier: GPL-2.0-or-later
# Reads report formats by their public descriptions and checks them: python3 formats.py FILE...
# Prints the sums that each file has, one a line: FILE KIND NUMBER. Nothing of heaptap is used.
import csv
import json
import re
import sys

VERDICTS = "definite", "indirect"


# Refers to tables by numbers, and leaves out what is zero.
def of_json(path):
    report = json.load(open(path))
    tables = {name: len(report[name]) for name in ("modules", "sources", "functions", "frames", "backtraces")}

    def check(item, key, table):
        assert 0 <= item.get(key, 0) < max(tables[table], 1) and (key not in item or tables[table]), item
    for function in report["functions"]:
        check(function, "source", "sources")
    for frame in report["frames"]:
        check(frame, "function", "functions")
        check(frame, "module", "modules")
    assert all(0 <= i < tables["frames"] for b in report["backtraces"] for i in b)
    for name in ("modules", "sources", "functions", "backtraces"):
        assert len({json.dumps(item) for item in report[name]}) == tables[name], name + " has an item twice"
    stacks = [s for p in report["processes"] for s in p["stacks"]]
    for stack in stacks:
        check(stack, "backtrace", "backtraces")
        assert re.fullmatch("[0-9a-f]{16}", stack["id"])
        assert all(v not in (0, None, False, {"blocks": 0, "bytes": 0})
                   for key, v in stack.items() if key != "backtrace"), stack
    for kind, key in (("live-bytes", "live_bytes"), ("live-blocks", "live_blocks"), ("total-bytes", "alloc_bytes"),
                      ("total-blocks", "allocs"), ("temporary", "temporary"), ("peak", "peak_bytes")):
        yield kind, sum(s.get(key, 0) for s in stacks)
    if any(p["scan"] for p in report["processes"]):
        yield "leaked-bytes", sum(s.get(v, {}).get("bytes", 0) for s in stacks for v in VERDICTS)
        yield "leaked-blocks", sum(s.get(v, {}).get("blocks", 0) for s in stacks for v in VERDICTS)


def of_csv(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in r and None not in r.values() for r in rows), "a row of another length"
    for kind, column in (("live-bytes", "live_bytes"), ("live-blocks", "live_blocks"), ("peak", "peak_bytes"),
                         ("total-bytes", "alloc_bytes"), ("total-blocks", "allocs"), ("temporary", "temporary")):
        yield kind, sum(int(r[column]) for r in rows)
    if any(r["definite_blocks"] for r in rows):
        yield "leaked-bytes", sum(int(r[v + "_bytes"]) for r in rows for v in VERDICTS)
        yield "leaked-blocks", sum(int(r[v + "_blocks"]) for r in rows for v in VERDICTS)


# The kind is a part of the name: KIND.folded, KIND.dot.
def of_folded(path):
    total = 0
    for line in open(path):
        stack, value = line.rstrip("\n").rsplit(" ", 1)
        assert stack and all(stack.split(";")), line
        total += int(value)
    yield kind_of(path), total


def of_dot(path):
    text = open(path).read()
    yield kind_of(path), int(re.search(r'label=".*: (\d+) [a-z ]+(\\n.*)?"\n', text).group(1))


def kind_of(path):
    return path.split("/")[-1].split(".")[0]


SPEEDSCOPE_KINDS = {"live bytes": "live-bytes", "live blocks": "live-blocks", "bytes allocated": "total-bytes",
                    "blocks allocated": "total-blocks", "bytes leaked": "leaked-bytes",
                    "blocks leaked": "leaked-blocks", "bytes at the peak": "peak", "temporary blocks": "temporary"}


def of_speedscope(path):
    data = json.load(open(path))
    sums = {}
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = data["shared"]["frames"]
    for frame in frames:
        assert frame["name"] and set(frame) <= {"name", "file", "line", "col"}, frame
    assert 0 <= data["activeProfileIndex"] < len(data["profiles"])
    for profile in data["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] in ("bytes", "none")
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= i < len(frames) for sample in profile["samples"] for i in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        kind = SPEEDSCOPE_KINDS[profile["name"].split(",")[0]]
        sums[kind] = sums.get(kind, 0) + profile["endValue"]
    yield from sums.items()


def of_massif(path):
    lines = open(path).read().split("\n")
    for name in "desc", "cmd", "time_unit":
        assert lines.pop(0).startswith(name + ": ")
    at = -1
    time = -1
    for i, line in enumerate(lines):
        key, _, value = line.partition("=")
        if key == "snapshot":
            at += 1
            assert int(value) == at
        elif key == "time":
            assert int(value) >= time
            time = int(value)
        elif key == "mem_heap_B":
            heap = int(value)
        elif key == "heap_tree" and value != "empty":
            check_tree(lines[i + 1:], heap)
            yield ("peak" if value == "peak" else "live-bytes"), heap


# Each node has as many children as it says, and those of the root add up to it.
def check_tree(lines, total):
    def node(depth):
        line = lines.pop(0)
        match = re.fullmatch(r"( *)n(\d+): (\d+) .+", line)
        assert match and len(match.group(1)) == depth, line
        return int(match.group(3)), [node(depth + 1)[0] for _ in range(int(match.group(2)))]
    value, children = node(0)
    assert value == total == sum(children) or not children, (value, total, children)


READERS = ((".speedscope.json", of_speedscope), (".json", of_json), (".csv", of_csv), (".folded", of_folded), (".dot", of_dot), (".massif", of_massif))

for path in sys.argv[1:]:
    reader = next(reader for ending, reader in READERS if path.endswith(ending))
    for kind, number in reader(path):
        print(path, kind, number)
