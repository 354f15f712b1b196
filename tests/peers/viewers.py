#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests/peers/viewers.sh asks of files.

viewers.py schema FILE SCHEMA    FILE is what SCHEMA allows
viewers.py script FILE           print the script that gives FILE to speedscope's page
viewers.py compare PAGE REPORT   speedscope's list of profiles has the numbers of the JSON report
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


{"schema": schema, "script": script, "compare": compare}[sys.argv[1]](*sys.argv[2:])
