#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run tests several files at a time, and say of each test whether it passed, failed, was skipped or is unstable.

usage: run.py [--tags TAGS] [--count] JOB...

A job is KIND:FILE. Kinds:
  unit    a program of tests/unit (cmocka)
  plain   a bats file that needs no root
  e2e     a bats file of tests/e2e, in a mount namespace with libraries of its own (root)
  ptrace, inline   the same with that source of events
  make    a target of the Makefile, as one test
KIND:FILE@TAGS runs the tests of a bats file that fit these bats tags, in place of those of --tags.
--count runs nothing and prints the number of tests of each job that is a bats file.

A test that fails is run five times more, alone, after all others. If one of these runs fails, the test has failed. If all
pass, the test is unstable: this is no failure, but the last lines name it, and $O/unstable.tsv keeps it.
Skips are counted and printed with their reasons. tests/skips.tsv names those that are expected; with CI=true any other
skip is a failure.
The output of each job is in $O/tests/log/KIND/NAME.tap. Exit status: 0 if nothing failed, else 1.
Environment: O, HEAPTAP, JOBS (jobs at a time), CI, HEAPTAP_WATCH=1 (what the kernel logs about probes is a failure).
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import queue
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
O = os.path.abspath(os.environ.get("O", "build"))
HEAPTAP = os.environ.get("HEAPTAP", os.path.join(O, "heaptap"))
TRACING = ("e2e", "ptrace", "inline", "connect")
BATS = TRACING + ("plain",)
RERUNS = 5
# What a job is called when it ended before its last test.
WHOLE_FILE = "(the whole file)"

Result = collections.namedtuple("Result", "job name status reason detail")


class Job:
    """One file of tests, with the bats tags that choose among its tests."""

    def __init__(self, text, tags):
        self.kind, rest = text.split(":", 1)
        self.file, _, own_tags = rest.partition("@")
        self.tags = (own_tags or tags) if self.kind in BATS else ""
        # A unit test by its room, and by its build if this is not the usual one: scan/test_scan, tsan/scan/test_scan.
        self.name = os.path.relpath(os.path.abspath(self.file), O).replace("tests/unit/", "") if self.kind == "unit" \
            else os.path.splitext(os.path.basename(self.file))[0]
        self.label = f"{self.kind}:{self.name}"
        self.seconds = 0.0
        self.cpu_seconds = 0.0  # of all processes that were waited for

    def log(self):
        return os.path.join(O, "tests", "log", self.kind, self.name + ".tap")


# ---- what this machine cannot test ----

def works(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


# The shortest 32-bit program of x86: exit(0) by int 0x80. It is loaded at 64 KiB.
EXIT_32 = (b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x10054, 52, 0, 0, 52, 32, 1, 0, 0, 0) +
           struct.pack("<8I", 1, 0, 0x10000, 0x10000, 93, 93, 5, 4096) + b"\x31\xc0\x40\x31\xdb\xcd\x80\x90\x90")


def runs_32bit():
    """Kernels can be built or started without 32-bit programs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exit32")
        with open(path, "wb") as f:
            f.write(EXIT_32)
        os.chmod(path, 0o700)
        try:
            return works(path)
        except OSError:
            return False


class Machine:
    NO_BATS = "bats is not installed"

    def __init__(self, jobs):
        tracing = [j for j in jobs if j.kind in TRACING]
        self.is_root = os.geteuid() == 0
        self.has_bpf = not tracing or not self.is_root or works(HEAPTAP, "run", "-q", "--no-scan", "-b", "bpf", "--", "true")
        self.has_32bit = runs_32bit()
        self.namespaces = Namespaces() if tracing and self.is_root and works("unshare", "-m", "true") else None

    def obstacle(self, job):
        """Why no test of this job can run here, or None."""
        if job.kind in BATS and not shutil.which("bats"):
            return self.NO_BATS
        if job.kind == "unit" and not os.path.exists(job.file):
            return "was not built here"
        if job.kind not in TRACING:
            return None
        if not self.is_root:
            return "not root"
        if job.kind != "ptrace" and not self.has_bpf:
            return "no BPF here"
        return None


class Namespaces:
    """Mount namespaces with libraries of their own, each kept by a waiting shell. Jobs borrow one: none is made for each job."""

    def __init__(self):
        self.idle = queue.SimpleQueue()
        self.keepers = []

    def borrow(self):
        """The PID of a process in a namespace that no other job has."""
        try:
            return self.idle.get_nowait()
        except queue.Empty:
            keeper = subprocess.Popen([os.path.join(HERE, "own_libraries.sh"), "sh", "-c", "echo $$; read -r _"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.keepers.append(keeper)
            return int(keeper.stdout.readline())

    def give_back(self, pid):
        self.idle.put(pid)

    def close(self):
        for keeper in self.keepers:
            keeper.stdin.close()
            keeper.wait()


# ---- running ----

def command_of(job, only):
    if job.kind == "unit":
        return [job.file]
    if job.kind == "make":
        return ["make", "--no-print-directory", "-s", job.file]
    command = ["bats", "--tap", "--timing"]
    if only:
        # bats takes an extended regular expression.
        command += ["--filter", "^" + re.sub(r"([][\\.()*+?{}^$|/])", r"\\\1", only) + "$"]
    if job.tags:
        command += ["--filter-tags", job.tags]
    return command + [job.file]


def run(job, machine, log, only=None):
    """Runs a job, or one test of it; returns its results."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    if job.kind in ("ptrace", "inline", "connect"):
        env["HEAPTAP_BACKEND"] = job.kind
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = command_of(job, only)
    namespace = machine.namespaces.borrow() if job.kind in TRACING and machine.namespaces else None
    if namespace:
        command = ["nsenter", "-t", str(namespace), "-m", "-w"] + command
    with open(log, "w") as out:
        child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        _, wait_status, usage = os.wait4(child.pid, 0)
        status = child.returncode = os.waitstatus_to_exitcode(wait_status)
    if namespace:
        machine.namespaces.give_back(namespace)
    job.cpu_seconds += usage.ru_utime + usage.ru_stime
    with open(log, errors="replace") as said:
        lines = said.read().splitlines()
    if job.kind == "make":
        return [make_result(job, status, lines)]
    return tap_results(job, status, lines)


def make_result(job, status, lines):
    skipped = [s for s in lines if ": skipped: " in s]
    if status == 0 and skipped:
        return Result(job, job.file, "skipped", skipped[0].split(": skipped: ", 1)[1], [])
    return Result(job, job.file, "passed" if status == 0 else "failed", "", lines[-30:])


def test_name(text):
    """(name, reason of a skip or None) of what TAP has behind the number."""
    name, mark, reason = re.sub(r"^- ", "", text).partition("# skip")
    if not mark:
        name, mark, reason = name.partition("# SKIP")
        # cmocka has the name behind the mark, and no reason.
        if mark and not name.strip():
            name, reason = reason, ""
    name = re.sub(r" in \d+ms$", "", name.strip())
    return name, reason.strip() if mark else None


def tap_results(job, status, lines):
    results, planned, said = [], None, []
    for line in lines:
        if plan := re.match(r"1\.\.(\d+)", line):
            planned = int(plan[1])
        elif test := re.match(r"(not )?ok \d+ (.*)", line):
            name, reason = test_name(test[2])
            if reason is not None:
                told = [s for s in said if s.startswith("# skipped: ")]
                reason = reason or (told[-1][len("# skipped: "):] if told else "no reason was given")
                results.append(Result(job, name, "skipped", reason, []))
            else:
                results.append(Result(job, name, "failed" if test[1] else "passed", "", []))
                if job.kind == "unit":
                    results[-1].detail.extend(said)
            said = []
        else:
            said.append(line)
            if results and results[-1].status == "failed":
                results[-1].detail.append(line)
    if planned is None or len(results) < planned or (status != 0 and not any(r.status == "failed" for r in results)):
        why = f"ended with status {status} after {len(results)} of {planned or 'unknown'} tests"
        results.append(Result(job, WHOLE_FILE, "failed", "", [why] + lines[-20:]))
    return results


def chosen_tests(job, tags):
    """Names of the tests of a bats file that fit these tags, as bats --filter-tags chooses them."""
    names, of_file, of_test = [], set(), set()
    with open(job.file) as f:
        for line in f:
            if found := re.match(r"# bats (file|test)_tags=(.*)", line):
                words = {word.strip() for word in found[2].split(",")}
                of_file, of_test = (words, of_test) if found[1] == "file" else (of_file, words)
            elif found := re.match(r'@test "(.*)" \{', line):
                has = of_file | of_test
                if all((t[1:] not in has) if t[0] == "!" else (t in has) for t in tags.split(",") if t):
                    names.append(found[1].replace('\\"', '"'))
                of_test = set()
    return names


def run_what_can(job, machine, reason):
    """A job that needs what is missing here: tests with the tag "anyone" need nothing, all others are skipped."""
    if job.kind not in BATS or reason == Machine.NO_BATS:
        return [Result(job, WHOLE_FILE, "skipped", reason, [])]
    results, wanted = [], chosen_tests(job, job.tags)
    job.tags = ",".join(filter(None, (job.tags, "anyone")))
    able = chosen_tests(job, job.tags)
    if able and job.kind == "e2e":
        results = run(job, machine, job.log())
    return results + [Result(job, name, "skipped", reason, []) for name in wanted if name not in able or job.kind != "e2e"]


# ---- skips ----

class Expected:
    """The rows of tests/skips.tsv: test, condition, reason."""

    CONDITIONS = {
        "always": lambda m, _: True,
        "not-root": lambda m, _: not m.is_root,
        "no-bpf": lambda m, _: not m.has_bpf,
        "no-32bit": lambda m, _: not m.has_32bit,
        "without": lambda m, program: not shutil.which(program),
    }

    def __init__(self, machine):
        self.rows = []
        with open(os.path.join(HERE, "skips.tsv")) as f:
            for number, line in enumerate(f, 1):
                if line.startswith("#") or not line.strip():
                    continue
                fields = line.rstrip("\n").split("\t")
                name, _, program = fields[1].partition(" ") if len(fields) == 3 else ("", "", "")
                if name not in self.CONDITIONS:
                    sys.exit(f"run.py: tests/skips.tsv:{number}: not test, condition ({', '.join(self.CONDITIONS)}), reason")
                if self.CONDITIONS[name](machine, program):
                    self.rows.append((fields[0], fields[2]))

    def has(self, result):
        test = f"{result.job.label}: {result.name}"
        return any(fnmatch.fnmatchcase(test, pattern) and fnmatch.fnmatchcase(result.reason, reason)
                   for pattern, reason in self.rows)


def print_skips(title, skips):
    if not skips:
        return
    print(f"\n{title}: {len(skips)}")
    by_reason = collections.defaultdict(list)
    for r in skips:
        by_reason[r.reason].append(r)
    for reason, results in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        print(f"  {len(results)}: {reason}")
        for r in results[:20]:
            print(f"      {r.job.label}: {r.name}")
        if len(results) > 20:
            print(f"      and {len(results) - 20} more")


# ---- failures ----

def run_again(failed, machine):
    """Number of this test's failures in up to RERUNS runs alone; ends at the first one."""
    only = None
    if failed.job.kind in BATS and failed.name != WHOLE_FILE and not failed.name.startswith("setup_file failed"):
        only = failed.name
    for i in range(RERUNS):
        log = f"{failed.job.log()}.again"
        again = [r for r in run(failed.job, machine, log, only) if only is None or r.name in (only, WHOLE_FILE)]
        bad = [r for r in again if r.status == "failed" and (failed.job.kind != "unit" or r.name == failed.name or r.name == WHOLE_FILE)]
        if bad or not again:
            return i + 1, 1
    return RERUNS, 0


def keep_unstable(result):
    path = os.path.join(O, "unstable.tsv")
    is_new = not os.path.exists(path)
    with open(path, "a") as f:
        if is_new:
            f.write("# date\ttest\tfailures\twhat was said\n")
        detail = " / ".join(line.lstrip("# ") for line in result.detail if line.strip())[:400].replace("\t", " ")
        f.write(f"{time.strftime('%F %T')}\t{result.job.label}: {result.name}\t1 of {RERUNS + 1}\t{detail}\n")


def kernel_says():
    """Lines of the kernel about probes, a fault of its own, or a crash of heaptap (tests let its reader of names die)."""
    pattern = re.compile(r"leaking uprobe|BUG: |Oops|WARNING: .*(uprobe|bpf|ptrace)|(heaptap|links-of|keeper-of)\S* *\S*: segfault"
                         r"|traps: (heaptap|links-of|keeper-of)")
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [line for line in log.splitlines() if pattern.search(line) and "heaptap-names" not in line]


# ---- all of it ----

def run_all(jobs, machine):
    results = []

    def one(job):
        start = time.monotonic()
        obstacle = machine.obstacle(job)
        job_results = run_what_can(job, machine, obstacle) if obstacle else run(job, machine, job.log())
        job.seconds = time.monotonic() - start
        return job_results

    at_a_time = int(os.environ.get("JOBS") or os.cpu_count() + 1)
    if not machine.namespaces and machine.is_root and any(j.kind in TRACING for j in jobs):
        print("run.py: no mount namespace here: tests share libraries, so one file at a time")
        at_a_time = 1
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        futures = {pool.submit(one, job): job for job in jobs}
        for nr, future in enumerate(concurrent.futures.as_completed(futures), 1):
            job, got = futures[future], future.result()
            results += got
            count = collections.Counter(r.status for r in got)
            print(f"[{nr}/{len(jobs)}] {job.label}: {count['passed']} passed"
                  + "".join(f", {count[s]} {s}" for s in ("failed", "skipped") if count[s])
                  + f", {job.seconds:.1f} s, {job.cpu_seconds:.1f} s of CPU time", flush=True)
            for r in got:
                if r.status == "failed":
                    print(f"    failed: {r.name}", *(f"        {line}" for line in r.detail[:30]), sep="\n", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(usage="run.py [--tags TAGS] [--count] JOB...")
    parser.add_argument("--tags", default="")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("jobs", nargs="+")
    args = parser.parse_args()
    start = time.monotonic()
    jobs = [Job(text, args.tags) for text in args.jobs]
    if args.count:
        print(*(f"{j.label}\t{len(chosen_tests(j, j.tags))}" for j in jobs if j.kind in BATS), sep="\n")
        return 0
    machine = Machine(jobs)
    expected = Expected(machine)
    logged = len(kernel_says())
    results = run_all(jobs, machine)

    failed, unstable = [], []
    for r in results:
        if r.status != "failed":
            continue
        runs, failures = run_again(r, machine)
        print(f"again, alone: {r.job.label}: {r.name}: {'failed in run %d' % runs if failures else 'passed %d times' % runs}", flush=True)
        (failed if failures else unstable).append(r)
    if machine.namespaces:
        machine.namespaces.close()

    skipped = [r for r in results if r.status == "skipped"]
    unexpected = [r for r in skipped if not expected.has(r)]
    print_skips("skipped, as tests/skips.tsv expects", [r for r in skipped if expected.has(r)])
    print_skips("skipped, NOT expected (tests/skips.tsv)", unexpected)
    nr_failed, nr_skipped = len(failed), len(skipped)
    if os.environ.get("CI") == "true":
        nr_failed += len(unexpected)
        nr_skipped -= len(unexpected)
    new_lines = kernel_says()[logged:]
    if new_lines and any(j.kind in TRACING for j in jobs):
        print("\nthe kernel has logged during these tests:", *new_lines, sep="\n")
        nr_failed += 1 if os.environ.get("HEAPTAP_WATCH") else 0
    if failed:
        print("\nfailed:", *(f"  {r.job.label}: {r.name}" for r in failed), sep="\n")
    cpu_seconds = sum(j.cpu_seconds for j in jobs)
    print(f"\n{time.monotonic() - start:.0f} s, {cpu_seconds:.0f} s of CPU time, {len(jobs)} files; their output is in {os.path.relpath(O)}/tests/log")
    for r in unstable:
        keep_unstable(r)
        print(f"unstable: {r.job.label}: {r.name} (1 of {RERUNS + 1})")
    print(f"{len(results) - len(failed) - len(skipped)} passed, {nr_failed} failed, {nr_skipped} skipped")
    return 1 if nr_failed else 0


if __name__ == "__main__":
    sys.exit(main())
