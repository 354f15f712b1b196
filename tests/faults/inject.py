#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""inject.py [-a|-k] [-n POINTS] [-j JOBS] [-t TABLE] [SCENARIO...]: makes system calls of heaptap fail, one in each run (root).

First each scenario runs once under strace, which shows the system calls that heaptap makes. Then it runs again and again,
and in each run one call of one name fails with one errno (strace --inject). strace counts the calls of each thread, so
that the N-th call fails in each thread that comes so far. After each run:
  - heaptap was ended by no signal and within the limit, with a documented status, and a status other than 0 has a line;
  - the target runs, is not traced or stopped, has the code of its files, and its own memory is right to its end;
  - with status 0 the report can be read, and, where the program is always the same, is right or names what was lost;
  - no process of heaptap and no temporary file is left, and the kernel has logged nothing about it.

With -a allocations fail in place of system calls (tests/targets/libfail.c): the N-th one of all threads together.
With -k a process of heaptap that comes so far is ended by SIGKILL at its N-th call of ptrace() or pwrite().

  -c NAME     this call only
  -n POINTS   failing calls of each name, spread over all of its calls (12; 0: all)
  -e ERRNOS   so many errnos for each call, of those that it may have (0: all)
  -j JOBS     runs side by side (2)
  -t TABLE    writes one line for each run: scenario, call, N, errno, status, message, finding
  -l          lists the scenarios
HEAPTAP is the program under test, and O the directory of the build. Status: 0 no finding, 1 findings, 99 no strace."""

import collections
import concurrent.futures
import getopt
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from watched import HEAPTAP, TARGETS, Target, text_of

LIMIT_S = 60

# What each call may fail with. The first one is the most likely on a machine that lacks something.
ERRNOS = {
    "read": "EIO EINTR", "pread64": "EIO", "readv": "EIO", "preadv": "EIO", "write": "ENOSPC EIO EINTR", "writev": "ENOSPC EIO",
    "pwrite64": "ENOSPC EIO",
    "openat": "EMFILE EACCES ENOMEM EINTR", "open": "EMFILE EACCES", "openat2": "ENOSYS EAGAIN EMFILE",
    "newfstatat": "EACCES ENOMEM", "fstat": "ENOMEM", "stat": "EACCES", "lstat": "EACCES", "statx": "EACCES ENOSYS", "fstatfs": "EIO",
    "statfs": "EACCES", "access": "EACCES", "faccessat2": "EACCES ENOSYS", "readlink": "EACCES ENOENT", "readlinkat": "EACCES ENOENT",
    "getdents64": "ENOENT EIO", "lseek": "EINVAL", "fcntl": "EMFILE EINVAL", "dup": "EMFILE", "dup2": "EMFILE EBUSY", "dup3": "EMFILE",
    "ioctl": "EPERM ENOTTY ENOMEM",
    "mmap": "ENOMEM EPERM", "mprotect": "ENOMEM", "mremap": "ENOMEM", "madvise": "EINVAL", "mlock": "ENOMEM EPERM",
    "mlockall": "ENOMEM EPERM", "memfd_create": "EMFILE ENOSYS", "ftruncate": "EIO", "fallocate": "ENOSPC EOPNOTSUPP",
    "poll": "EINTR ENOMEM", "ppoll": "EINTR ENOMEM", "epoll_create1": "EMFILE", "epoll_ctl": "ENOSPC ENOMEM", "epoll_wait": "EINTR",
    "eventfd2": "EMFILE", "signalfd4": "EMFILE ENOMEM", "timerfd_create": "EMFILE", "timerfd_settime": "EINVAL", "pipe2": "EMFILE",
    "setitimer": "EINVAL", "timer_create": "EAGAIN", "timer_settime": "EINVAL", "clock_nanosleep": "EINTR", "nanosleep": "EINTR",
    "bpf": "EPERM ENOMEM E2BIG", "perf_event_open": "EACCES EMFILE",
    "ptrace": "EPERM ESRCH EIO", "process_vm_readv": "EPERM ESRCH EFAULT", "process_vm_writev": "EPERM ESRCH EFAULT",
    "clone": "EAGAIN ENOMEM", "clone3": "EAGAIN ENOMEM", "vfork": "EAGAIN", "fork": "EAGAIN", "execve": "EACCES ENOMEM",
    "wait4": "EINTR ECHILD", "waitid": "EINTR", "kill": "EPERM ESRCH", "tgkill": "ESRCH EAGAIN", "pidfd_open": "EMFILE ENOSYS ESRCH",
    "pidfd_send_signal": "EPERM ESRCH", "pidfd_getfd": "EPERM EMFILE",
    "prlimit64": "EPERM", "prctl": "EPERM EINVAL", "seccomp": "EINVAL EFAULT", "capset": "EPERM", "capget": "EPERM", "setsid": "EPERM",
    "setpriority": "EACCES", "sched_setaffinity": "EINVAL", "sched_getaffinity": "EPERM", "sched_setscheduler": "EPERM",
    "mkdir": "ENOSPC EACCES EROFS", "mkdirat": "EACCES EROFS", "unlink": "EROFS", "unlinkat": "EROFS EACCES", "rename": "ENOSPC",
    "renameat": "EIO ENOSPC", "renameat2": "EIO ENOSYS", "linkat": "EIO EPERM", "symlinkat": "EIO", "utimensat": "EPERM",
    "fchmod": "EPERM", "fchown": "EPERM", "fchownat": "EPERM", "fsync": "EIO", "flock": "EWOULDBLOCK ENOLCK",
    "socket": "EMFILE EACCES", "socketpair": "EMFILE", "bind": "EACCES EADDRINUSE", "listen": "EADDRINUSE", "connect": "ECONNREFUSED EACCES",
    "accept4": "EMFILE ECONNABORTED", "accept": "EMFILE", "shutdown": "ENOTCONN", "setsockopt": "EPERM", "getsockopt": "ENOMEM",
    "getsockname": "ENOBUFS", "sendmsg": "ENOMEM EPIPE", "sendto": "ENOMEM EPIPE", "recvmsg": "ENOMEM ECONNRESET",
    "recvfrom": "ENOMEM ECONNRESET", "getrandom": "ENOSYS", "sysinfo": "EFAULT", "close_range": "ENOSYS", "userfaultfd": "EPERM",
    "landlock_create_ruleset": "EOPNOTSUPP ENOSYS", "landlock_add_rule": "EINVAL", "landlock_restrict_self": "E2BIG",
    "unshare": "EPERM", "setns": "EPERM", "chdir": "EACCES", "fchdir": "EACCES", "setresuid": "EAGAIN", "setresgid": "EPERM",
    "setgroups": "EPERM", "move_pages": "EPERM",
}
# Calls that cannot fail so, or whose failure is no more than a test of the C library's own start.
NEVER = {
    "close": "frees the descriptor whatever it returns; an injected error would keep it open",
    "brk": "fails by returning the old end, and not by an error that strace could inject; libfail.c has allocations that fail",
    "munmap": "heaptap unmaps whole mappings only", "futex": "glibc ends a program whose futex fails otherwise than by EAGAIN",
    "rt_sigprocmask": "has no error with valid arguments", "rt_sigaction": "has no error with valid arguments",
    "rt_sigreturn": "does not return", "exit": "does not return", "exit_group": "does not return", "restart_syscall": "is made by the kernel",
    "set_robust_list": "start of libc", "rseq": "start of libc", "set_tid_address": "start of libc", "arch_prctl": "start of libc",
    "getpid": "has no error", "gettid": "has no error", "getppid": "has no error", "geteuid": "has no error", "getuid": "has no error",
    "getgid": "has no error", "getegid": "has no error", "uname": "has no error", "clock_gettime": "has no error", "umask": "has no error",
    "sched_yield": "has no error", "sigaltstack": "has no error", "rt_sigtimedwait": "a signal that is awaited always comes", "times": "has no error",
    "getpgrp": "has no error", "getpgid": "has no error", "tkill": "ends the thread itself", "membarrier": "start of libc",
}
# The target, where it is another one.
PROGRAMS = {"change": ("sums", "4")}
KILLING_CALLS = ("ptrace", "pwrite64")
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 126, 127}

# name: arguments; {pid} target, {dir} directory of the run, {rec} a recording of "leak", {t} targets.
# "-f": strace follows threads and children. Where heaptap traces by ptrace itself, its own processes cannot be traced too.
SCENARIOS = {
    "attach": ("-f", "attach -q -t 100ms -o {dir}/r.json {pid}"),
    "record": ("-f", "attach -q -t 100ms --no-scan -w {dir}/r.heaptap -o {dir}/r.json -o {dir}/r.html {pid}"),
    "follow": ("-f", "attach -q -f -t 100ms -d 0 -o {dir}/r.json {pid}"),
    "ptrace": ("", "attach -q -b ptrace -t 100ms -o {dir}/r.json {pid}"),
    "inline": ("", "attach -q -b inline -t 100ms -o {dir}/r.json {pid}"),
    "change": ("-f", "attach -q -b inline --no-scan -t 100ms -o {dir}/r.json {pid}"),
    "run": ("", "run -q -b bpf -o {dir}/r.json -- {t}leak"),
    "run-ptrace": ("", "run -q -b ptrace -o {dir}/r.json -- {t}leak"),
    "report": ("-f", "report -q -o {dir}/r.json {rec}"),
    "diff": ("-f", "diff -q {rec} {rec}"),
    "census": ("-f", "scan -q {pid}"),
    "system": ("-f", "system -q --pid {pid} --json -i 1s -t 1100ms"),
    "serve": ("-f", "serve -q --listen unix:{dir}/run/s {pid}"),
    "connect": ("-f", "connect -q --sysroot / -t 100ms -o {dir}/r.json unix:{dir}/run/s"),
    "doctor": ("-f", "doctor"),
}


class Run:
    """One run of heaptap with at most one kind of failing call."""

    mark_lock = threading.Lock()
    mark = 0

    def __init__(self, world, scenario, inject=None, trace=None):
        self.scenario = scenario
        self.dir = tempfile.mkdtemp(dir=world.dir)
        os.chmod(self.dir, 0o755)
        self.inject = inject
        self.trace = trace
        self.world = world
        with Run.mark_lock:
            Run.mark += 1
            self.mark = "HEAPTAP_INJECTED=%d.%d" % (os.getpid(), Run.mark)
        self.finding = None
        self.target = None
        self.peer = None

    def command(self):
        follow, args = SCENARIOS[self.scenario]
        args = args.format(pid=self.target.pid, dir=self.dir, rec=self.world.recording, t=TARGETS)
        if self.fails_allocation():
            return [HEAPTAP] + args.split()
        strace = ["strace", "-qq", "-o", self.trace or self.dir + "/strace"] + ([follow] if follow else [])
        if self.inject:
            name, nth, errno = self.inject
            how = "signal=" if errno == "SIGKILL" else "error="
            strace += ["-e", "trace=" + name, "-e", "inject=%s:%s:when=%d" % (name, how + errno, nth)]
            strace += ["--seccomp-bpf"] if follow and errno != "SIGKILL" else []
        return strace + [HEAPTAP] + args.split()

    def fails_allocation(self):
        return self.inject and self.inject[0] == "malloc"

    def environment(self, is_peer=False):
        name, value = self.mark.split("=")
        own = dict(os.environ, HEAPTAP_RUN_DIR=self.dir + "/run", HOME=self.dir, XDG_CACHE_HOME=self.dir + "/cache",
                   HEAPTAP_CONFIG="/dev/null", **{name: value})
        if self.fails_allocation() and not is_peer:
            own.update(LD_PRELOAD=TARGETS + "libfail.so", HEAPTAP_FAIL_AT=str(self.inject[1]), HEAPTAP_FAIL_COUNT=self.trace or "")
        return own

    def start(self, command, name):
        with open(self.dir + "/" + name + ".out", "w") as out, open(self.dir + "/" + name + ".err", "w") as err:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment(name == "peer"),
                                    start_new_session=True)

    def other_end(self, args):
        """heaptap without faults at the other end of a connection."""
        return self.start(["timeout", "-k", "5", "30", HEAPTAP] + args.format(pid=self.target.pid, dir=self.dir).split(), "peer")

    def wait_for_socket(self, process):
        while process.poll() is None and not os.path.exists(self.dir + "/run/s"):
            time.sleep(0.01)

    def serve(self):
        """heaptap serve ends when its client has asked for an end, or by SIGTERM."""
        process = self.start(self.command(), "heaptap")
        self.wait_for_socket(process)
        if process.poll() is None:
            self.peer = self.other_end("connect -q --sysroot / -t 100ms unix:{dir}/run/s")
            try:
                self.peer.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.finding = "the client hangs"
            for pid in self.left():
                if text_of("/proc/%d/comm" % pid).startswith("heaptap"):
                    os.kill(pid, signal.SIGTERM)
        return process

    def connect(self):
        """The socket of serve has its name before serve listens, so its message is waited for."""
        self.peer = self.other_end("serve --listen unix:{dir}/run/s {pid}")
        while self.peer.poll() is None and "waiting" not in text_of(self.dir + "/peer.err"):
            time.sleep(0.01)
        return self.start(self.command(), "heaptap")

    def go(self):
        os.mkdir(self.dir + "/run", 0o700)
        self.target = Target(self.dir, PROGRAMS.get(self.scenario, ("steady",)))
        starter = getattr(self, self.scenario, None)
        process = starter() if starter else self.start(self.command(), "heaptap")
        try:
            self.status = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.status = None
            self.finding = "hangs"
        if self.peer and self.scenario == "connect":
            self.peer.terminate()
        if self.peer:
            try:
                self.peer.wait(20)
            except subprocess.TimeoutExpired:
                self.finding = self.finding or "the other end hangs"
        self.judge()
        self.end_left()
        shutil.rmtree(self.dir, ignore_errors=True)
        return self

    def left(self):
        """Processes of this run, by their environment."""
        mark = self.mark.encode()
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        pids.append(int(pid))
            except OSError:
                pass
        return [p for p in pids if p != os.getpid()]

    def nobody_left(self):
        for _ in range(100):
            if not self.left():
                return True
            time.sleep(0.05)
        return False

    def end_left(self):
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def judge(self):
        said = [l for l in text_of(self.dir + "/heaptap.err").splitlines() if l]
        self.message = " | ".join(said)[:300]
        finding = self.finding or self.bad_end(said)
        if self.status is not None and not self.nobody_left():
            finding = finding or "left: " + ", ".join(text_of("/proc/%d/comm" % p).strip() for p in self.left())
        if self.status is None:
            self.end_left()
        harm = self.target.harm()
        if harm and "the probes stay in it, without effect" in self.message:
            harm = None
        self.finding = harm or finding or self.bad_files() or self.world.kernel_says()
        if self.finding and self.never_happens():
            self.finding = None

    def never_happens(self):
        """A stopped thread that is resumed is resumed; if it is gone, there is nothing to wait for."""
        return re.search(r"ptrace\(PTRACE_(CONT|SYSCALL|LISTEN|DETACH|SINGLESTEP).*INJECTED", text_of(self.dir + "/strace"))

    def bad_end(self, said):
        if self.status is None:
            return "hangs"
        if self.status < 0:
            return "ended by signal %d" % -self.status
        if self.status not in DOCUMENTED:
            return "status %d is not documented" % self.status
        # A report without a verdict says why.
        said = said + text_of(self.dir + "/heaptap.out").splitlines()[:1] if self.status == 6 else said
        if self.status and not any("heaptap" in l or "no leak verdict" in l for l in said) and not self.was_muted() and not self.names_losses():
            return "status %d without a word" % self.status
        if len(said) > 6:
            return "%d lines" % len(said)
        return None

    def names_losses(self):
        """Status 5, and a report that says what was lost."""
        try:
            processes = json.load(open(self.dir + "/r.json"))["processes"]
        except (OSError, ValueError):
            return False
        return self.status == 5 and any(sum(p["lost"].values()) for p in processes)

    def was_muted(self):
        """The call that failed was to write the message."""
        return re.search(r"writev?\(2, .*INJECTED", text_of(self.dir + "/strace"))

    def bad_files(self):
        for where, _, names in os.walk(self.dir):
            hidden = [n for n in names if n.startswith(".heaptap")]
            if hidden:
                return "left: " + hidden[0]
        path = self.dir + "/r.json"
        # The program ran untraced, which was said.
        if "not traced" in self.message or "nothing could be watched" in self.message:
            return None
        if self.status != 0 or " {dir}/r.json" not in SCENARIOS[self.scenario][1]:
            return None
        try:
            report = json.load(open(path))
        except (OSError, ValueError) as e:
            return "status 0, and the report: %s" % e
        return self.world.differs(self.scenario, report)


class World:
    """What all runs share: a directory, a recording, what a right report says."""

    def __init__(self, directory):
        self.dir = directory
        self.recording = directory + "/leak.heaptap"
        subprocess.run([HEAPTAP, "run", "-q", "-w", self.recording, "--", TARGETS + "leak"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.right = {}
        self.kernel = open("/dev/kmsg", "rb", 0)
        os.set_blocking(self.kernel.fileno(), False)
        os.lseek(self.kernel.fileno(), 0, os.SEEK_END)
        self.lock = threading.Lock()

    def kernel_says(self):
        with self.lock:
            while True:
                try:
                    line = os.read(self.kernel.fileno(), 8192).decode(errors="replace")
                except OSError:
                    return None
                if re.search(r"leaking uprobe|BUG:|WARNING:|Oops|ref_ctr", line):
                    return "kernel: " + line.split(";", 1)[-1].strip()

    def differs(self, scenario, report):
        """For a program that always does the same."""
        if scenario not in ("run", "run-ptrace", "report"):
            return None
        process = report["processes"][0]
        totals = {k: process["totals"][k] for k in ("allocs", "frees", "live_bytes")}
        if scenario not in self.right:
            self.right[scenario] = totals
        if sum(process["lost"].values()) or process.get("note") or totals == self.right[scenario]:
            return None
        return "report says %s, not %s, and no loss" % (totals, self.right[scenario])


def calls_of(path):
    """For each name of a call: how many of them the busiest thread makes, and how many of these come before main()."""
    counts = collections.defaultdict(collections.Counter)
    before = collections.Counter()
    first = None
    for line in open(path, errors="replace"):
        m = re.match(r"(?:(\d+) +)?([a-z_0-9]+)\(", line)
        if not m or m.group(2).startswith("syscall_0x"):
            continue
        thread, name = m.groups()
        first = first or thread or "main"
        counts[name][thread or "main"] += 1
        # main() begins with a look at the standard files.
        if name == "fcntl" and not before:
            before = collections.Counter({n: c[first] for n, c in counts.items()})
    return {n: (before[n], max(c.values())) for n, c in counts.items()}


def points(before, most, wanted):
    """Numbers of calls, spread evenly, without those of the dynamic linker in the first thread."""
    all_of_them = range(before + 1, most + 1)
    if not wanted or len(all_of_them) <= wanted:
        return list(all_of_them)
    return sorted({all_of_them[i * len(all_of_them) // wanted] for i in range(wanted)})


def plan_allocations(world, scenario, wanted):
    counted = world.dir + "/" + scenario + ".allocations"
    run = Run(world, scenario, ("malloc", 1 << 40, "ENOMEM"), trace=counted).go()
    if run.finding or (run.status != 0 and scenario != "doctor"):
        sys.exit("inject.py: %s without a fault: status %s: %s: %s" % (scenario, run.status, run.finding, run.message))
    most = max(int(line) for line in open(counted))
    # The first ones are of the start, where the most can go wrong.
    first = min(most, wanted or most, 64)
    return [("malloc", n, "ENOMEM") for n in list(range(1, first // 2 + 1)) + points(first // 2, most, wanted and wanted - first // 2)]


def plan(world, scenario, wanted, nr_errnos, errnos=None):
    trace = world.dir + "/" + scenario + ".strace"
    run = Run(world, scenario, trace=trace).go()
    if run.finding or (run.status != 0 and scenario != "doctor"):
        sys.exit("inject.py: %s without a fault: status %s: %s: %s" % (scenario, run.status, run.finding, run.message))
    unknown = set()
    for name, (before, most) in sorted(calls_of(trace).items()):
        if name not in ERRNOS:
            if name not in NEVER:
                unknown.add(name)
            continue
        # The program itself is executed by the first one.
        first = max(before, 1) if name == "execve" else before
        for nth in points(first, most, wanted):
            for errno in errnos or ERRNOS[name].split()[:nr_errnos]:
                yield name, nth, errno
    for name in unknown:
        print("inject.py: %s: no errno is known for %s(): not injected" % (scenario, name), file=sys.stderr)


def main():
    options, names = getopt.getopt(sys.argv[1:], "akc:e:n:j:t:lh")
    options = dict(options)
    if "-h" in options or "-l" in options:
        print("\n".join(SCENARIOS) if "-l" in options else __doc__)
        return 0
    if "-a" not in options and not shutil.which("strace"):
        print("inject.py: strace is not installed", file=sys.stderr)
        return 99
    wanted = int(options.get("-n", 12))
    nr_errnos = int(options.get("-e", 0)) or None
    table = open(options.get("-t", "/dev/null"), "w")
    nr, findings = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        world = World(directory)
        for scenario in names or SCENARIOS:
            if "-a" in options:
                todo = plan_allocations(world, scenario, wanted)
            elif "-k" in options:
                todo = [i for i in plan(world, scenario, wanted, 1, ["SIGKILL"]) if i[0] in KILLING_CALLS]
            else:
                todo = [i for i in plan(world, scenario, wanted, nr_errnos) if options.get("-c", i[0]) == i[0]]
            # Probes of --follow are in each process that has the library: one run at a time.
            jobs_at_once = 1 if scenario == "follow" else int(options.get("-j", 2))
            with concurrent.futures.ThreadPoolExecutor(jobs_at_once) as pool:
                jobs = {pool.submit(Run(world, scenario, inject).go): inject for inject in todo}
                for job in concurrent.futures.as_completed(jobs):
                    run = job.result()
                    name, nth, errno = run.inject
                    nr[scenario] += 1
                    row = (scenario, name, nth, errno, run.status, run.message, run.finding or "")
                    print("\t".join(map(str, row)), file=table, flush=True)
                    if run.finding:
                        findings += 1
                        print("%s: %s() number %d: %s: status %s: %s (%s)" % (scenario, name, nth, errno, run.status,
                                                                            run.finding, run.message), flush=True)
            print("%s: %d runs" % (scenario, nr[scenario]), flush=True)
    print("%d runs, %d findings" % (sum(nr.values()), findings))
    return 1 if findings else 0


sys.exit(main())
