#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fill a pipe that is open here: fill_pipe.py FD. It takes no other byte then."""
import fcntl
import os
import sys

fd = int(sys.argv[1])
flags = fcntl.fcntl(fd, fcntl.F_GETFL)
fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
try:
    while True:
        os.write(fd, b"\n" * 4096)
except BlockingIOError:
    pass
fcntl.fcntl(fd, fcntl.F_SETFL, flags)
