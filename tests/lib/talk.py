#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Talk to a program on a terminal: talk.py COMMAND... <SCRIPT

Lines of the script: "expect TEXT" waits for it in what comes, behind what was found before; "send TEXT" types it and
Enter; "type TEXT" without Enter, with \\t and \\xNN; "run COMMAND" runs it in a shell; "end STATUS" waits for the end.
Waits two minutes at most: then something hangs. TALK_ROWS and TALK_COLUMNS: lines
and columns of the terminal, else it has no size.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LIMIT = int(os.environ.get("TALK_LIMIT", "120"))
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|[\x01\x02\x07]")


class Talk:
    def __init__(self, command):
        self.seen = b""
        self.all = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "vt100"
            if "TALK_ROWS" in os.environ:
                columns = int(os.environ.get("TALK_COLUMNS", "80"))
                size = struct.pack("HHHH", int(os.environ["TALK_ROWS"]), columns, 0, 0)
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execvp(command[0], command)

    def read(self, until):
        if not select.select([self.fd], [], [], max(0, until - time.monotonic()))[0]:
            raise SystemExit(self.say("waited in vain"))
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # all ends of the terminal are closed
            data = b""
        self.all += data
        self.seen += data
        return data

    def say(self, what):
        return "talk: %s; what came:\n%s" % (what, self.all.decode(errors="replace"))

    def expect(self, text):
        until = time.monotonic() + LIMIT
        while True:
            plain = ESCAPES.sub(b"", self.seen)
            at = plain.find(text)
            if at >= 0:
                self.seen = plain[at + len(text):]
                return
            if not self.read(until):
                raise SystemExit(self.say("ended before: " + text.decode()))

    def end(self, wanted):
        until = time.monotonic() + LIMIT
        while self.read(until):
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if status != wanted:
            raise SystemExit(self.say("status %d, not %d" % (status, wanted)))


def main():
    script = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    talk = Talk(sys.argv[1:])
    try:
        for line in script:
            word, _, text = line.partition(" ")
            if word == "expect":
                talk.expect(text.encode())
            elif word == "send":
                os.write(talk.fd, text.encode() + b"\r")
            elif word == "type":
                os.write(talk.fd, text.encode().decode("unicode_escape").encode("latin-1"))
            elif word == "run":
                subprocess.run(text, shell=True, check=True)
            elif word == "end":
                talk.end(int(text))
            else:
                raise SystemExit("talk: what is: " + line)
    except SystemExit:
        os.kill(talk.pid, signal.SIGKILL)
        raise


main()
