#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How late redis-server answers while it is traced, with leak verdicts and without.

redis_p99.py HEAPTAP MIB SECONDS ROUNDS [OPTION...]: a line "UNTRACED TRACED WITH_VERDICTS WORST WORST_WITH_VERDICTS
VERDICTS": 99th percentiles in ms, the longest that a request took without and with verdicts, and the number of verdicts.
Runs without and with verdicts take turns, ROUNDS of each, some SECONDS long with a verdict in each half, and the medians
count. OPTIONs are those of heaptap attach, such as --snapshot auto. The server has some MIB of values.
"""
import csv
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from own_redis import own_redis, wait_for

VALUE_BYTES, KEY_BYTES = 1000, 1100 # of each key, and with what redis needs for it

heaptap, mib, seconds, rounds, *options = sys.argv[1:]
mib, seconds, rounds = int(mib), int(seconds), int(rounds)


def load(server, requests):
    """The 99th percentile and the maximum of so many SETs, and the requests of a second."""
    start = time.monotonic()
    text = subprocess.run(server.load("-n", str(requests), "--csv"), check=True, capture_output=True, text=True).stdout
    row = next(csv.DictReader(io.StringIO(text)))
    return (float(row["p99_latency_ms"]), float(row["max_latency_ms"])), requests / (time.monotonic() - start)


def traced(server, requests, more):
    """What load() returns while heaptap traces the server, and the number of its verdicts."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "report%n.json")
        with open(os.path.join(directory, "err"), "w", encoding="utf-8") as err:
            tap = subprocess.Popen([heaptap, "attach", "--force", "-i", f"{seconds * 500}ms", "-o", out, *more, str(server.pid)],
                                   stderr=err)
        wait_for(lambda: "attached to" in open(err.name, encoding="utf-8").read())
        result, rate = load(server, requests)
        tap.send_signal(signal.SIGINT)
        tap.wait()
        nr = 0
        for name in os.listdir(directory):
            if name.startswith("report"):
                with open(os.path.join(directory, name), encoding="utf-8") as f:
                    nr += json.load(f)["processes"][0]["scan"] is not None
        return result, rate, nr


def measure(server):
    load(server, 300000)
    untraced, rate = load(server, 300000)
    _, rate, _ = traced(server, 100000, ["--no-scan"])
    requests = int(rate * seconds)
    without, with_verdicts, nr = [], [], 0
    for _ in range(rounds):
        without.append(traced(server, requests, ["--no-scan"])[0])
        result, _, verdicts = traced(server, requests, ["--scan", *options])
        with_verdicts.append(result)
        nr += verdicts
    for name, rows in ("without", without), ("with", with_verdicts):
        print(name, *(f"{p99:.3f} (worst {worst:.3f})" for p99, worst in rows), file=sys.stderr)
    p99s, worsts = ([statistics.median(row[i] for row in rows) for rows in (without, with_verdicts)] for i in (0, 1))
    print(*("%.3f" % ms for ms in (untraced[0], *p99s, *worsts)), nr)


with own_redis() as redis:
    redis.ask("debug", "populate", str((mib << 20) // KEY_BYTES), "key", str(VALUE_BYTES))
    measure(redis)
