#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a program on a terminal that takes no output: deaf_terminal.py COMMAND... <LINES

What it prints is held back, as by Ctrl-S. The lines are typed. Prints the PID of the program, and how it ended.
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
termios.tcflow(slave, termios.TCOOFF)
program = subprocess.Popen(
    sys.argv[1:], stdin=slave, stdout=slave, start_new_session=True, env=dict(os.environ, TERM="xterm")
)
os.write(master, sys.stdin.buffer.read())
print("pid", program.pid, flush=True)
print("ended", program.wait(), flush=True)
