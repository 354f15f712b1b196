#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The price of breakpoints as heaptap tells it, beside the true one.

price.py HEAPTAP SERVER SECONDS ROUNDS: for the program SERVER (tests/bench/server.c), redis-server under SETs, and a
backend of PostgreSQL under pgbench -S a line "NAME TOLD TRUE", in per cent of the program's CPU time, medians of ROUNDS.
The true one is what CPU time per request grows by while heaptap is attached (--backend bpf), as a part of it; SECONDS
untraced and as many traced take turns, on one process. A price below 20 % is not told: 0. Programs that are not installed
have no line.
"""
import contextlib
import glob
import json
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from own_redis import own_redis, wait_for

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def cpu_ns(pid):
    return sum(int(text_of(path).split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat"))


def per_request(pid, count, seconds):
    """CPU time of a request, in ns. count() is the number of requests so far."""
    # A count may wait for its moment, to which the CPU time belongs.
    nr, cpu = count(), cpu_ns(pid)
    time.sleep(seconds)
    nr_then = count()
    return (cpu_ns(pid) - cpu) / (nr_then - nr)


def traced(heaptap, pid, count, seconds):
    """What per_request() gives while heaptap is attached, and the part that it tells."""
    with tempfile.TemporaryDirectory() as directory:
        report, said = os.path.join(directory, "report.json"), os.path.join(directory, "said")
        with open(said, "w", encoding="utf-8") as err:
            tap = subprocess.Popen([heaptap, "attach", "--backend", "bpf", "--no-scan", "-o", report, str(pid)], stderr=err)
        wait_for(lambda: "attached to" in text_of(said))
        spent = per_request(pid, count, seconds)
        tap.send_signal(signal.SIGINT)
        tap.wait()
        return spent, json.loads(text_of(report))["cost"].get("probes_permille", 0) / 1000


def measure(heaptap, pid, count, seconds, rounds):
    told, true = [], []
    for _ in range(rounds):
        alone = per_request(pid, count, seconds)
        spent, said = traced(heaptap, pid, count, seconds)
        told.append(said)
        true.append((spent - alone) / spent)
    return 100 * statistics.median(told), 100 * statistics.median(true)


@contextlib.contextmanager
def started(*command, **options):
    process = subprocess.Popen(command, **{**QUIET, **options})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def own_server(path, seconds):
    hz = 500
    with started(path, str(seconds), str(hz)) as server:
        time.sleep(1)
        yield server.pid, lambda: time.monotonic() * 2 * hz


@contextlib.contextmanager
def redis():
    with own_redis() as server, started(*server.load("-l", "-q")):
        time.sleep(1)
        yield server.pid, server.nr_commands


@contextlib.contextmanager
def postgres(tools):
    """One backend, which answers pgbench -S."""
    user = pwd.getpwnam("postgres")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        data, said = os.path.join(home, "data"), os.path.join(home, "said")
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": home}
        database = ["-h", home, "-U", "postgres"]

        def do(program, *options):
            subprocess.run([os.path.join(tools, program), *options], check=True, **QUIET, **who)

        def backend():
            found = subprocess.run(["psql", *database, "-tAc", "select pid from pg_stat_activity where application_name = 'pgbench'"],
                                   capture_output=True, text=True, check=False, **who).stdout.split()
            return int(found[0]) if found else 0

        def count():
            # The next line of progress is for a whole second, so wait for it.
            seen = len(text_of(said))
            wait_for(lambda: len(text_of(said)) > seen)
            return sum(float(tps) for tps in re.findall(r"s, ([0-9.]+) tps", text_of(said)))

        do("initdb", "-D", data, "-U", "postgres")
        server = [os.path.join(tools, "postgres"), "-D", data, "-k", home, "-c", "listen_addresses="]
        with started(*server, **who):
            wait_for(lambda: subprocess.run(["psql", *database, "-c", ""], check=False, **QUIET, **who).returncode == 0)
            do("pgbench", "-i", *database)
            with open(said, "w", encoding="utf-8") as err, started("pgbench", "-S", "-P", "1", "-T", "600", *database, stderr=err, **who):
                wait_for(backend)
                yield backend(), count


def main():
    heaptap, server, seconds, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    programs = {"server": lambda: own_server(server, (2 * seconds + 10) * rounds)}
    if shutil.which("redis-benchmark"):
        programs["redis SET"] = redis
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if tools and shutil.which("psql"):
        programs["pgbench -S"] = lambda: postgres(tools[-1])
    for name, start in programs.items():
        with start() as (pid, count):
            print(name.replace(" ", "_"), *("%.1f" % share for share in measure(heaptap, pid, count, seconds, rounds)), flush=True)


if __name__ == "__main__":
    main()
