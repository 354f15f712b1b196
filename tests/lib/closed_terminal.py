#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a program as the first of a terminal that is closed when "ready" has been printed: closed_terminal.py COMMAND...

Prints how the program ended.
"""
import os
import pty
import signal
import sys

pid, master = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
told = b""
while b"ready" not in told:
    told += os.read(master, 4096)
os.close(master)
print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
