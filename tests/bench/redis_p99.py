#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How late redis-server answers while it is traced, with a leak verdict each 10 s and without.

redis_p99.py HEAPTAP SECONDS ROUNDS [OPTION...]: a line "UNTRACED TRACED WITH_VERDICTS VERDICTS" of the 99th percentiles
in ms and the number of verdicts. Runs without and with verdicts take turns, ROUNDS of each, some SECONDS long, and the
medians count. All takes (2 * ROUNDS + 1) * SECONDS and half a minute. OPTIONs are those of heaptap attach, such as
--snapshot auto. The server has some 300 MiB.
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

heaptap, seconds, rounds, *options = sys.argv[1:]
seconds, rounds = int(seconds), int(rounds)


def wait_for(done):
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    sys.exit("redis_p99: waited in vain")


def load(path, requests):
    """The 99th percentile and the maximum of so many SETs by 10 clients, and the requests of a second."""
    start = time.monotonic()
    text = subprocess.run(["redis-benchmark", "-s", path, "-c", "10", "-n", str(requests), "-r", "100000", "-d", "200",
                           "-t", "set", "--csv"], check=True, capture_output=True, text=True).stdout
    row = next(csv.DictReader(io.StringIO(text)))
    return (float(row["p99_latency_ms"]), float(row["max_latency_ms"])), requests / (time.monotonic() - start)


def traced(pid, path, requests, more):
    """What load() returns while heaptap traces the server, and the number of its verdicts."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "report%n.json")
        with open(os.path.join(directory, "err"), "w", encoding="utf-8") as err:
            tap = subprocess.Popen([heaptap, "attach", "--force", "-i", "10s", "-o", out, *more, str(pid)], stderr=err)
        wait_for(lambda: "attached to" in open(err.name, encoding="utf-8").read())
        result, rate = load(path, requests)
        tap.send_signal(signal.SIGINT)
        tap.wait()
        nr = 0
        for name in os.listdir(directory):
            if name.startswith("report"):
                with open(os.path.join(directory, name), encoding="utf-8") as f:
                    nr += json.load(f)["processes"][0]["scan"] is not None
        return result, rate, nr


def measure(pid, path):
    load(path, 300000)
    untraced, rate = load(path, 300000)
    _, rate, _ = traced(pid, path, 100000, ["--no-scan"])
    requests = int(rate * seconds)
    without, with_verdicts, nr = [], [], 0
    for _ in range(rounds):
        without.append(traced(pid, path, requests, ["--no-scan"])[0])
        result, _, verdicts = traced(pid, path, requests, ["--scan", *options])
        with_verdicts.append(result)
        nr += verdicts
    for name, rows in ("without", without), ("with", with_verdicts):
        print(name, *(f"{p99:.3f} (worst {worst:.3f})" for p99, worst in rows), file=sys.stderr)
    medians = [statistics.median(p99 for p99, _ in rows) for rows in (without, with_verdicts)]
    print(f"{untraced[0]:.3f} {medians[0]:.3f} {medians[1]:.3f} {nr}")


with tempfile.TemporaryDirectory() as home:
    socket = os.path.join(home, "socket")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly",
                               "no", "--enable-debug-command", "yes", "--dir", home], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists(socket))
        subprocess.run(["redis-cli", "-s", socket, "debug", "populate", "1000000", "key", "200"], check=True,
                       stdout=subprocess.DEVNULL)
        measure(server.pid, socket)
    finally:
        server.kill()
        server.wait()
