# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that heaptap may do anything with, and what must be true of it afterwards."""

import os
import re
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.environ.get("O", ROOT + "/build")
HEAPTAP = os.environ.get("HEAPTAP", O + "/heaptap")
TARGETS = O + "/tests/targets/"


class Target:
    """A program that verifies its own memory; without an end of its own."""

    def __init__(self, directory, program=("steady",)):
        self.out = directory + "/target.out"
        with open(self.out, "w") as out:
            self.process = subprocess.Popen([TARGETS + program[0], *program[1:]], stdout=out, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        while "ready" not in open(self.out).read():
            time.sleep(0.005)

    def status(self, key):
        try:
            return re.search(r"^%s:\s+(\S+)" % key, open("/proc/%d/status" % self.pid).read(), re.M).group(1)
        except (OSError, AttributeError):
            return None

    def other_code(self):
        """Name of a file whose code differs from the target's memory, and the first byte that does."""
        with open("/proc/%d/maps" % self.pid) as maps, open("/proc/%d/mem" % self.pid, "rb", 0) as mem:
            for line in maps:
                fields = line.split(None, 5)
                if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
                    continue
                start, end = (int(a, 16) for a in fields[0].split("-"))
                with open(fields[5].strip(), "rb", 0) as file:
                    file.seek(int(fields[2], 16))
                    want = file.read(end - start)
                mem.seek(start)
                have = mem.read(len(want))
                if have != want:
                    at = next((i for i in range(min(len(have), len(want))) if have[i] != want[i]), 0)
                    return "%s+%#x is %#x" % (fields[5].strip(), int(fields[2], 16) + at, have[at] if have else 0)
        return None

    def harm(self):
        """What heaptap has left in the target, or None; ends it."""
        said = self.wait_for_peace()
        self.process.terminate()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return said or "target: does not answer SIGTERM"
        if said:
            return said
        if status != 0 or "right" not in open(self.out).read():
            return "target: status %d: %s" % (status, open(self.out).read()[-60:].strip())
        return None

    def wait_for_peace(self):
        """A guardian whose heaptap died needs a moment."""
        for _ in range(100):
            said = self.looks()
            if not said:
                return None
            time.sleep(0.05)
        return said

    def looks(self):
        if self.process.poll() is not None:
            return "target: ended with status %d: %s" % (self.process.returncode, open(self.out).read()[-60:].strip())
        if self.status("TracerPid") != "0":
            return "target: is still traced"
        if self.status("State") in ("T", "t", None):
            return "target: is stopped"
        try:
            file = self.other_code()
            if file:
                return "target: its code differs: %s" % file
            if "/memfd:heaptap-" in open("/proc/%d/maps" % self.pid).read():
                return "target: memory of heaptap stays"
        except OSError as e:
            return "target: %s" % e
        return None


def text_of(path):
    try:
        return open(path, errors="replace").read()
    except OSError:
        return ""
