#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How late redis-server answers while it is traced, with a leak verdict each 10 s and without.

redis_p99.py HEAPTAP SECONDS [OPTION...]: a line "UNTRACED TRACED WITH_VERDICTS VERDICTS" of the 99th percentiles in ms
and the number of verdicts. OPTIONs are those of heaptap attach, such as --snapshot auto. The server has some 300 MiB.
"""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

heaptap, seconds, *options = sys.argv[1:]
seconds = int(seconds)


def wait_for(done):
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    sys.exit("redis_p99: waited in vain")


def p99(path):
    """Of SETs and GETs in turn by 10 clients, for so many seconds."""
    rows, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        text = subprocess.run(["redis-benchmark", "-s", path, "-c", "10", "-n", "200000", "-r", "100000", "-d", "200",
                               "-t", "set,get", "--csv"], check=True, capture_output=True, text=True).stdout
        rows += [float(row["p99_latency_ms"]) for row in csv.DictReader(io.StringIO(text))]
    return sorted(rows)[len(rows) // 2], max(rows)


def traced(pid, directory, more):
    """The percentiles while heaptap traces the server, and the number of its verdicts."""
    out = os.path.join(directory, "report%n.json")
    with open(os.path.join(directory, "err"), "w", encoding="utf-8") as err:
        tap = subprocess.Popen([heaptap, "attach", "--force", "-o", out, *more, str(pid)], stderr=err)
    wait_for(lambda: "attached to" in open(err.name, encoding="utf-8").read())
    result = p99(path)
    tap.send_signal(signal.SIGINT)
    tap.wait()
    nr = 0
    for name in os.listdir(directory):
        if name.startswith("report"):
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                nr += json.load(f)["processes"][0]["scan"] is not None
            os.unlink(os.path.join(directory, name))
    return result, nr


with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "socket")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
                               "--enable-debug-command", "yes", "--dir", directory], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists(path))
        subprocess.run(["redis-cli", "-s", path, "debug", "populate", "1000000", "key", "200"], check=True,
                       stdout=subprocess.DEVNULL)
        p99(path)
        untraced = p99(path)
        without, _ = traced(server.pid, directory, ["--no-scan", "-i", "10s"])
        with_verdicts, nr = traced(server.pid, directory, ["--scan", "-i", "10s", *options])
        print(f"{untraced[0]:.3f} {without[0]:.3f} {with_verdicts[0]:.3f} {nr}")
        print(f"worst {untraced[1]:.3f} {without[1]:.3f} {with_verdicts[1]:.3f}", file=sys.stderr)
    finally:
        server.kill()
        server.wait()
