#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""soak.py [-a N] [-k N] [-s SOURCES] [-p PROGRAM] [-m MIB]: heaptap comes and goes, and is killed, at random moments (root).

For each source (bpf,ptrace,inline; auto, too): first heaptap is attached and detached N times (-a, 10000), each time after up to
200 ms; then it is killed N times (-k, 2000), after up to 400 ms. A target that verifies its own memory runs meanwhile:
one of 8 busy threads by inline, one of changing rates by auto, a slow one by the others; -p "PROGRAM ARG...": this one of tests/targets. A program
that reads a file of twice MIB again and again (-m, 192) in the memory cgroup of heaptap takes its memory away;
-m 0: no such pressure. After each round the target runs on its own code, without memory of heaptap, and is not traced;
at the end its memory is right, and it has as many descriptors and mappings as before (with threads a few mappings more).
HEAPTAP_SEED=N: the random moments (1). Status: 0 all right, 1 findings."""

import getopt
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from watched import HEAPTAP, Target, text_of

PROGRAMS = {"inline": ["sums", "8"], "auto": ["steady", "changing"]}
MORE_MAPPINGS = 32  # of arenas that grow, in a program of several threads

READER = """
import os, random, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
while os.getppid() != 1:
    os.pread(fd, 1 << 20, random.randrange(size))
"""


class Pressure:
    """A memory cgroup in which pages of a file push out everything else."""

    def __init__(self, directory, mib):
        self.group = None
        self.reader = None
        if not mib:
            return
        for root, controllers, limit in (("/sys/fs/cgroup", "cgroup.subtree_control", "memory.max"),
                                         ("/sys/fs/cgroup/memory", None, "memory.limit_in_bytes")):
            if os.path.exists(root + "/cgroup.procs") and (not controllers or "memory" in text_of(root + "/" + controllers)):
                self.group = root + "/heaptap-soak.%d" % os.getpid()
                break
        if not self.group:
            print("soak.py: no memory cgroup here: without memory pressure")
            return
        os.mkdir(self.group)
        with open(self.group + "/" + limit, "w") as file:
            file.write(str(mib << 20))
        path = directory + "/pages"
        with open(path, "wb") as file:
            file.truncate(mib << 21)
        self.reader = subprocess.Popen([sys.executable, "-c", READER, path], preexec_fn=self.enter)

    def enter(self):
        # A shell ignores it for what it starts in the background, and heaptap would, too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.group:
            with open(self.group + "/cgroup.procs", "w") as procs:
                procs.write(str(os.getpid()))

    def end(self):
        if self.reader:
            self.reader.kill()
            self.reader.wait()
        for _ in range(100):
            try:
                if self.group:
                    os.rmdir(self.group)
                return
            except OSError:
                time.sleep(0.05)


def size_of(pid):
    """Descriptors and mappings, without the page that the kernel gives to a process with uprobes for the rest of its life."""
    maps = text_of("/proc/%d/maps" % pid)
    return len(os.listdir("/proc/%d/fd" % pid)), maps.count("\n") - maps.count("[uprobes]\n")


def has_grown(before, now, more):
    return now[0] != before[0] or not before[1] - more <= now[1] <= before[1] + more


def one_round(world, target, source, is_kill):
    """What is wrong, or None."""
    with open(world["dir"] + "/err", "w") as err:
        process = subprocess.Popen([HEAPTAP, "attach", "-b", source, "--no-scan", str(target.pid)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=err, preexec_fn=world["pressure"].enter)
    time.sleep(random.random() * (0.4 if is_kill else 0.2))
    process.send_signal(signal.SIGKILL if is_kill else signal.SIGINT)
    try:
        status = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "does not end"
    # A signal that comes before the handlers ends heaptap, as it ends any program.
    if not is_kill and status not in (0, -signal.SIGINT):
        return "status %d: %s" % (status, text_of(world["dir"] + "/err").strip())
    return target.wait_for_peace()


def rounds(world, source, nr, is_kill):
    program = world["program"] or PROGRAMS.get(source, ["steady"])
    target = Target(world["dir"], program)
    time.sleep(0.2 if program[1:] else 0)  # its threads begin
    before = size_of(target.pid)
    what = "%s: %s" % (source, "killed" if is_kill else "attached and detached")
    findings = 0
    for i in range(nr):
        said = one_round(world, target, source, is_kill)
        if said:
            findings += 1
            print("%s: round %d: %s" % (what, i, said), flush=True)
        if said and said.startswith("target"):
            break
    if target.process.poll() is None and has_grown(before, size_of(target.pid), MORE_MAPPINGS if program[1:] else 0):
        findings += 1
        print("%s: descriptors and mappings of the target: %s, before %s" % (what, size_of(target.pid), before))
    harm = target.harm()
    if harm:
        findings += 1
        print("%s: %s" % (what, harm))
    print("%s %d times, %d findings" % (what, nr, findings), flush=True)
    return findings


def main():
    options = dict(getopt.getopt(sys.argv[1:], "a:k:s:p:m:h")[0])
    if "-h" in options:
        print(__doc__)
        return 0
    random.seed(int(os.environ.get("HEAPTAP_SEED", 1)))
    findings = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        os.environ["HEAPTAP_RUN_DIR"] = directory + "/run"
        world = {"dir": directory, "pressure": Pressure(directory, int(options.get("-m", 192))),
                 "program": options.get("-p", "").split()}
        try:
            for source in options.get("-s", "bpf,ptrace,inline").split(","):
                findings += rounds(world, source, int(options.get("-a", 10000)), False)
                findings += rounds(world, source, int(options.get("-k", 2000)), True)
        finally:
            world["pressure"].end()
    return 1 if findings else 0


sys.exit(main())
