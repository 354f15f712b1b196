#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a page of metrics with the parser of prometheus_client, which is strict, and tests an expression on it.

openmetrics.py URL EXPRESSION: status 0 if it is true; `samples` are all samples, value(name, **labels) sums up."""
import sys
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    text = answer.read().decode("utf-8")

families = list(text_string_to_metric_families(text))
samples = [sample for family in families for sample in family.samples]

# What the parser lets pass: each series once, each family in one piece.
series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
assert len(series) == len(set(series)), "a series is there twice"
assert len(families) == len({family.name for family in families}), "a family is there twice"
for family in families:
    assert family.documentation, family.name
    assert family.type != "unknown", family.name


def value(name, **labels):
    found = [s.value for s in samples if s.name == name and all(s.labels.get(k) == v for k, v in labels.items())]
    return sum(found) if found else float("nan")


print(text)
sys.exit(0 if eval(sys.argv[2]) else 1)
