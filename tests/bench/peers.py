#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""peers.py [-r ROUNDS] [-t TOOLS] [-p PROGRAMS] [-s SECONDS] [-k FILE] [-w FILE]: heaptap beside other heap profilers (root).

Each tool records all allocations of real programs with their stacks; rounds (5) alternate, so that a disturbance hits all.
heaptap runs as typed, with no option ("heaptap", whose report is text), or with the one that the name says.
  whole    elapsed time of the whole command, as a multiple of that of heaptrack
  time     elapsed, as a multiple of the program alone (time of a tool's start is measured with "true" and left out);
           of redis the requests per second of the program alone, as a multiple of those with the tool
  p99      of redis: 99 % of the requests were answered in so many ms
  memory   resident memory of all processes, less that of the program alone
  output   bytes of all files that the tool wrote
  report   time of the command that makes a text of them; "-" where the run itself writes it, or where there is no such command
Each is a median; time and p99 with "(minimum-maximum)". A tool that needs more than 15 s for a program has fewer rounds, as "rounds" says.
-k FILE keeps the runs: what is there is not run again, so that -s SECONDS makes a part and the next call goes on. It goes
when all is written, and another heaptap begins anew. -w FILE writes whole time, time, p99 and memory of the programs that
have all rounds, a row for each tool, between its lines <!-- peers --> and <!-- end -->.
A tool or program that is not installed is named and left out."""

import getopt
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAPTAP = os.environ.get("HEAPTAP", ROOT + "/build/heaptap")
# What the rounds of one tool on one program may take together, after the first.
TOOL_S = 15

C_SOURCE = "#include <stdio.h>\n" + "".join(
    "struct s%d { int a; char *b; struct s%d *next; }; int f%d(struct s%d *s) { int n = 0; for (; s; s = s->next) n += s->a * %d; return n; }\n"
    % (i, i, i, i, i) for i in range(300))

PROGRAMS = {
    "2 million events": [os.environ.get("O", ROOT + "/build") + "/tests/bench/pair", "-n", "1000000"],
    "perl": ["perl", "-e", 'my %h; for my $i (1..150000) { $h{$i % 5000} = [ $i, "x$i" ]; } print scalar(keys %h), "\\n";'],
    "python3": ["python3", "-c", "import os; d = {}\nfor i in range(60000): d[i % 7000] = [i, 'x' * (600 + i % 9)]\nprint(len(d))"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 30000) "
                "insert into t select x, 'row ' || x from c; select count(*), sum(length(b)) from t where b like '%7%';"],
    "clang": ["clang", "-O1", "-c", "-o", "/dev/null", "{dir}/source.c"],
    "redis": ["redis-server", "--port", "{port}", "--save", "", "--appendonly", "no"],
}


def library(pattern):
    found = sorted(glob.glob("/usr/lib/*/" + pattern) + glob.glob("/usr/lib/" + pattern))
    return found[0] if found else None


def libc():
    return library("libc.so.6")


# name: (command before the program, environment, command that makes the report); None: not installed
def tools():
    probe = "u:%s:malloc { @size[tid] = arg0; } ur:%s:malloc /@size[tid]/ { @sum[ustack(16)] = sum(@size[tid]); delete(@size[tid]); }" % (libc(), libc())
    jemalloc, tcmalloc = library("libjemalloc.so.2"), library("libtcmalloc.so.4")
    have = {
        "heaptap": ([HEAPTAP, "run", "--"], {}, None),
        "heaptap, JSON": ([HEAPTAP, "run", "-o", "{dir}/out.json", "--"], {}, None),
        "heaptap, recording": ([HEAPTAP, "run", "-w", "{dir}/out.heaptap", "--"], {}, [HEAPTAP, "report", "{dir}/out.heaptap"]),
        "heaptap, bpf": ([HEAPTAP, "run", "--backend", "bpf", "--"], {}, None),
        "heaptrack": (["heaptrack", "-o", "{dir}/out"], {}, ["sh", "-c", "heaptrack_print -f {dir}/out*"]),
        "heaptrack, raw": (["heaptrack", "--raw", "-o", "{dir}/out"], {},
                           ["sh", "-c", "heaptrack --interpret {dir}/out.raw* >/dev/null 2>&1; heaptrack_print -f $(ls {dir}/out* | grep -v raw)"]),
        "bpftrace": (["bpftrace", "-o", "{dir}/out.txt", "-e", probe, "-c"], {}, None),
        "memcheck": (["valgrind", "-q", "--leak-check=full", "--log-file={dir}/out.txt"], {}, None),
        "dhat": (["valgrind", "-q", "--tool=dhat", "--dhat-out-file={dir}/out.json"], {}, None),
        "jemalloc": ([], {"LD_PRELOAD": jemalloc, "MALLOC_CONF": "prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:{dir}/out"},
                     ["sh", "-c", "jeprof --text $(command -v {program}) {dir}/out*"]),
        "tcmalloc": ([], {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "{dir}/out", "HEAP_PROFILE_ALLOCATION_INTERVAL": "0"},
                     ["sh", "-c", "google-pprof --text $(command -v {program}) $(ls {dir}/out* | tail -1)"]),
    }
    for name, (command, env, report) in have.items():
        lacks = (command and not shutil.which(command[0])) or env.get("LD_PRELOAD", "") is None
        yield name, None if lacks else (command, env, report)


def resident(session):
    """Bytes of all processes of the session, with shared pages divided."""
    total = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(stat).read()
            if int(text.rsplit(")", 1)[1].split()[3]) == session:
                total += int(re.search(r"^Pss:\s+(\d+)", open(os.path.dirname(stat) + "/smaps_rollup").read(), re.M).group(1)) << 10
        except (OSError, AttributeError, IndexError, ValueError):
            pass
    return total


class Process:
    """A command in a session of its own, whose memory is looked at ten times a second."""

    def __init__(self, command, env, directory):
        self.out = open(directory + "/said", "w+")
        self.start = time.monotonic()
        self.process = subprocess.Popen(command, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out,
                                        start_new_session=True, cwd=directory)
        self.memory = 0
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while self.process.poll() is None:
            self.memory = max(self.memory, resident(self.process.pid))
            time.sleep(0.1)

    def wait(self):
        status = self.process.wait()
        elapsed = time.monotonic() - self.start
        self.thread.join()
        return status, elapsed


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def filled(words, **values):
    for key, value in values.items():
        words = [w.replace("{%s}" % key, str(value)) for w in words]
    return words


def redis_load(port):
    """Requests per second and p99 in ms of SET, once the server answers."""
    for _ in range(1200):
        if subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False).stdout == b"PONG\n":
            break
        time.sleep(0.05)
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", "30000", "-r", "5000", "-d", "128", "-t", "set", "--csv"], capture_output=True,
                          text=True, check=False).stdout.splitlines()
    values = dict(zip(done[0].replace('"', "").split(","), done[1].replace('"', "").split(",")))
    subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], capture_output=True, check=False)
    return float(values["rps"]), float(values["p99_latency_ms"])


def run(program, tool):
    """One run: dict of measures, or None if it failed."""
    command, env, report = tool
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/source.c", "w") as file:
            file.write(C_SOURCE)
        port = free_port()
        words = filled(PROGRAMS.get(program, [program]), dir=directory, port=port)
        words[0] = shutil.which(words[0])
        # bpftrace splits its command at each space, knows no quotes, and takes ELF files only.
        if command[:1] == ["bpftrace"]:
            with open(directory + "/program", "w") as file:
                file.write("exec %s\n" % shlex.join(words))
            words = ["/bin/sh %s/program" % directory]
        process = Process(filled(command, dir=directory) + words, {k: v.replace("{dir}", directory) for k, v in env.items()}, directory)
        result = {}
        if program == "redis":
            try:
                result["rps"], result["p99"] = redis_load(port)
            except (IndexError, KeyError, ValueError):
                os.killpg(process.process.pid, signal.SIGKILL)
        status, result["time"] = process.wait()
        result["memory"] = process.memory
        if status or (program == "redis" and "rps" not in result):
            process.out.seek(0)
            print("peers.py: %s: status %d: %s" % (program, status, process.out.read()[-200:].strip()), file=sys.stderr)
            return None
        result["output"] = sum(os.path.getsize(f) for f in glob.glob(directory + "/out*"))
        result["report"] = None
        if report:
            start = time.monotonic()
            words = filled(report, dir=directory, program=PROGRAMS.get(program, [program])[0])
            if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                result["report"] = time.monotonic() - start
        return result


def spread(values, form):
    return "%s (%s-%s)" % tuple(form(v) for v in (statistics.median(values), min(values), max(values)))


def mib(nr):
    return "%.1f" % (nr / (1 << 20))


def whole(program, results, others):
    """Of the whole command, beside that of heaptrack. A run of redis ends when its load does."""
    if program == "redis" or not others:
        return ""
    return "%.2f" % (statistics.median(r["time"] for r in results) / statistics.median(r["time"] for r in others))


def row(program, name, results, alone, others, start):
    results, alone, others = ([r for r in rs if r] for rs in (results, alone, others))
    if not results or not alone:
        return "| %s | %s | failed | | | | | | |" % (program, name)
    base = statistics.median(r["time"] for r in alone)
    if program == "redis":
        rps = statistics.median(r["rps"] for r in alone)
        times = [rps / r["rps"] for r in results]
    else:
        times = [max(r["time"] - start, 0) / base for r in results]
    p99 = spread([r["p99"] for r in results], lambda v: "%.1f" % v) if program == "redis" else ""
    own = statistics.median(r["memory"] for r in alone)
    reports = [r["report"] for r in results if r["report"] is not None]
    return "| %s | %s | %s | %s | %s | %s | %s | %s | %d |" % (
        program, name, whole(program, results, others), spread(times, lambda v: "%.2f" % v), p99, mib(statistics.median(max(r["memory"] - own, 0) for r in results)),
        mib(statistics.median(r["output"] for r in results)), "%.1f" % statistics.median(reports) if reports else "-", len(results))


def write_into(path, lines):
    with open(path) as file:
        text = file.read()
    begin, end = "<!-- peers -->\n", "<!-- end -->"
    at = text.index(begin) + len(begin)
    with open(path, "w") as file:
        file.write(text[:at] + "\n".join(lines) + "\n" + text[text.index(end, at):])


class Runs:
    """The runs of each program by each tool, in a file: {"of": heaptap, "runs": {program: {tool: [measures, or null for a run that failed]}}}."""

    def __init__(self, path, seconds):
        stat = os.stat(HEAPTAP)
        self.path, self.end, self.of, self.what = path, time.monotonic() + seconds, {}, [stat.st_mtime_ns, stat.st_size]
        if path and os.path.exists(path):
            with open(path) as file:
                kept = json.load(file)
            if kept.get("of") == self.what:
                self.of = kept["runs"]
            else:
                print("peers.py: %s is of another heaptap: all is run anew" % path)

    def get(self, program, name):
        return self.of.get(program, {}).get(name, [])

    def is_done(self, program, name, rounds):
        runs = self.get(program, name)
        return len(runs) >= rounds or sum(r["took"] for r in runs if r) > TOOL_S or runs[-2:] == [None, None]

    def add(self, program, name, tool):
        """False when the time is over."""
        if time.monotonic() > self.end:
            return False
        start = time.monotonic()
        measures = run(program, tool)
        if measures:
            measures["took"] = time.monotonic() - start
        self.of.setdefault(program, {}).setdefault(name, []).append(measures)
        if self.path:
            with open(self.path + ".new", "w") as file:
                json.dump({"of": self.what, "runs": self.of}, file)
            os.rename(self.path + ".new", self.path)
        return True

    def fill(self, program, wanted, rounds):
        """All runs of a program that are missing. False when the time is over before."""
        for nr in range(1, rounds + 1):
            for name, tool in wanted.items():
                if len(self.get(program, name)) < nr and not self.is_done(program, name, nr) and not self.add(program, name, tool):
                    return False
        return True


def table(runs, wanted, programs):
    """A row for each program and tool; a tool that cannot even run "true" has none."""
    starts = {name: min((r["time"] for r in runs.get("true", name) if r), default=None) for name in wanted}
    for program in programs:
        for name, start in starts.items():
            if start is not None:
                yield row(program, name, runs.get(program, name), runs.get(program, "alone"), runs.get(program, "heaptrack"),
                          start - starts["alone"])


def by_tool(lines):
    """The rows of table() as a row for each tool: whole time, time and memory for each program; only "alone" with the least and the greatest."""
    cells, programs, p99 = {}, [], {}
    for program, tool, whole, took, late, memory in ((line.strip("| ").split(" | ") + [""] * 6)[:6] for line in lines if line.startswith("| ")):
        if program not in programs:
            programs.append(program)
        median = took.split(" (")[0]
        cells.setdefault(tool, {})[program] = took if tool == "alone" else ", ".join(filter(None, (whole, median, memory)))
        p99[tool] = late.split(" (")[0].strip() or p99.get(tool, "")
    yield "| tool | %s | p99, ms |" % " | ".join(programs)
    yield "|---|" + "---|" * len(programs) + "---|"
    for tool, of in cells.items():
        yield "| %s | %s | %s |" % (tool, " | ".join(of.get(program, "-") for program in programs), p99[tool])


def installed(options):
    """The tools, and the programs, that are here and wanted."""
    wanted = {"alone": ([], {}, None)}
    for name, tool in tools():
        if tool is None:
            print("peers.py: %s is not installed: left out" % name)
        elif name in options.get("-t", name).split(";"):
            wanted[name] = tool
    programs = []
    for program in PROGRAMS:
        if not shutil.which(PROGRAMS[program][0]):
            print("peers.py: %s is not installed: left out" % program)
        elif program in (options.get("-p") or program).split(","):
            programs.append(program)
    return wanted, programs


def main():
    os.environ.pop("HEAPTAP_NO_CODE", None)
    options = dict(getopt.getopt(sys.argv[1:], "r:t:p:s:k:w:h")[0])
    if "-h" in options:
        print(__doc__)
        return 0
    rounds = int(options.get("-r", 5))
    wanted, programs = installed(options)
    runs = Runs(options.get("-k"), float(options.get("-s", 1e9)))
    # "true" twice, because the first run fills caches.
    done = [program for program in programs if runs.fill("true", wanted, 2) and runs.fill(program, wanted, rounds)]
    missing = [program for program in programs if program not in done]
    lines = list(table(runs, wanted, done))
    if missing:
        lines += ["", "Not measured yet: %s." % ", ".join(missing)]
    print("\n".join(lines))
    if missing:
        print("peers.py: the time is over: the next call goes on")
    if done and "-w" in options:
        write_into(options["-w"], ["Made by `make bench-peers` on %s, %d CPUs, Linux %s, %s." % (
            os.uname().machine, os.cpu_count(), os.uname().release.split("-")[0], time.strftime("%Y-%m-%d")), ""] +
            list(by_tool(lines)) + [line for line in lines if not line.startswith("| ")])
        if not missing and "-k" in options:
            os.remove(options["-k"])
    return 0


sys.exit(main())
