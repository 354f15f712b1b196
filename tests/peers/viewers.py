#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests/peers/viewers.sh asks of files.

viewers.py schema FILE SCHEMA    FILE is what SCHEMA allows
viewers.py script FILE           print the script that gives FILE to speedscope's page
viewers.py compare PAGE REPORT   speedscope's list of profiles has the numbers of the JSON report
viewers.py functions PAGE REPORT KEY  speedscope's table of functions has its live_bytes (KEY) and the like
viewers.py top LIST REPORT KEY...     pprof -top has its flat and cumulated numbers; the sum of KEYs, "definite.bytes" too
"""
import base64
import json
import re
import sys


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def schema(path, rules):
    import jsonschema

    rules = load(rules)
    problems = list(jsonschema.validators.validator_for(rules)(rules).iter_errors(load(path)))
    for problem in problems[:5]:
        print(f"{path}: {problem.json_path}: {problem.message[:200]}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def script(path):
    with open(path, "rb") as f:
        data = base64.b64encode(f.read()).decode()
    print(f"speedscope.loadFileFromBase64({json.dumps(path)}, {json.dumps(data)})")


def compare(page, report):
    process = load(report)["processes"][0]
    with open(page, encoding="utf-8") as f:
        rows = re.findall(r'<tr title="([^",]*), [^"]*".*?<td[^>]*>([^<]*)</td></tr>', f.read())
    shown = {name: value.replace(",", "") for name, value in rows}
    expected = {
        "blocks leaked": sum(process["scan"][kind]["blocks"] for kind in ("definite", "indirect")),
        "temporary blocks": sum(stack["temporary"] for stack in process["stacks"]),
    }
    for name, value in expected.items():
        if shown.get(name) != str(value):
            sys.exit(f"speedscope shows {shown.get(name)} {name}, the report has {value}; all: {shown}")


def add_up(report, keys):
    """By function: in how much it is anywhere in the stack, and in how much it is the innermost."""
    sums = {}
    for stack in (stack for process in load(report)["processes"] for stack in process["stacks"]):
        value = 0
        for key in keys:
            item = stack
            for part in key.split("."):
                item = item[part]
            value += item
        names = [frame["function"] for frame in stack["frames"]]
        for name in set(names) if value else ():
            total, own = sums.get(name, (0, 0))
            sums[name] = total + value, own + (value if name == names[0] else 0)
    return sums


def same(shown, expected, who):
    if not expected or shown != expected:
        sys.exit(f"{who} shows {shown}, the report has {expected}")


def functions(page, report, key):
    with open(page, encoding="utf-8") as f:
        rows = re.findall(r"<tr[^>]*><td[^>]*>([0-9,]+) .*?</td><td.*?<span[^>]*></span>([^<]*)</td></tr>", f.read())
    shown = {name: int(total.replace(",", "")) for total, name in rows}
    # The allocator's function, which is no frame, is the innermost one there.
    expected = {name: total for name, (total, _) in add_up(report, [key]).items()}
    same({name: shown.get(name) for name in expected}, expected, "speedscope")
    if len(shown) <= len(expected):
        sys.exit(f"speedscope shows no allocator: {shown}")


def top(path, report, *keys):
    with open(path, encoding="utf-8") as f:
        rows = re.findall(r"^ *(\d+)B? +\S+ +\S+ +(\d+)B? +\S+ +(.*)$", f.read(), re.M)
    same({name: (int(total), int(own)) for own, total, name in rows}, add_up(report, keys), "pprof")


{"functions": functions, "top": top, "schema": schema, "script": script, "compare": compare}[sys.argv[1]](*sys.argv[2:])
