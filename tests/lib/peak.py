#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""peak.py FILE COMMAND...: run it, and write the most memory that it or a child had, in bytes, to FILE."""
import os
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[2:], close_fds=False).returncode
with open(sys.argv[1], "w") as out:
    out.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(status if status >= 0 else 128 - status)
